//! The program's memory: its objects, and what the program has placed or ruled on itself.

use homenode_model::{NodeId, PageNo, PageRange};
use homenode_sys::Span;

use super::areas::Areas;
use crate::watch::numbers::PAGE;
use crate::watch::objects::{self, Object, WatchedObjects};

/// Pages that one touch brings along.
pub const AROUND: usize = 16;
/// The driver looks at seams only if they make up at most one part in this many of an object.
const SEAMS: usize = 8;
/// Pages are spread more evenly if the node with most of them now has at most this many eighths of
/// what one node had before.
const EVENER: u64 = 7;

/// See the module.
#[derive(Debug, Default)]
pub struct ProgramMemory {
    /// The objects.
    pub objects: WatchedObjects,
    /// Memory that the program has placed itself. The driver neither arms nor moves it by a policy,
    /// until the program asks for next touch there, leaves it to first touch, or frees it.
    pub placed: Areas,
    /// Memory that the program has ruled on: placed memory, and memory with a request for next
    /// touch. The guard neither judges it nor moves it back.
    pub ruled: Areas,
}

impl ProgramMemory {
    /// Where a page lies.
    pub fn address(&self, page: PageNo) -> Option<usize> {
        self.objects.numbers().address(page)
    }

    /// The object of a page.
    pub fn object(&self, page: PageNo) -> Option<&Object> {
        self.objects.get(self.address(page)?)
    }

    /// The home of a page, if it is known.
    pub fn home(&self, page: PageNo) -> Option<NodeId> {
        self.object(page)?.home(page)
    }

    /// Pages of a range as the policy numbers them, object by object.
    pub fn ranges(&self, address: usize, bytes: usize) -> Vec<PageRange> {
        let asked = objects::whole_pages(address, bytes);
        let part = |o: &Object| {
            let own = o.whole_pages();
            let (from, to) = (own.start.max(asked.start), own.end.min(asked.end));
            (from < to).then(|| PageRange {
                first: PageNo(o.pages.first.0 + ((from - own.start) / PAGE) as u64),
                count: ((to - from) / PAGE) as u64,
            })
        };
        self.objects.live().filter_map(part).collect()
    }

    /// The program has ruled on these pages.
    pub fn rule(&mut self, pages: PageRange) {
        if let Some(start) = self.address(pages.first) {
            self.ruled.add(Span::new(start, pages.count as usize * PAGE));
        }
    }

    /// The memory is free, or has a new owner.
    pub fn forget(&mut self, span: Span) {
        self.placed.remove(span);
        self.ruled.remove(span);
    }

    /// The seams of armed objects, without memory that the program has placed. At a seam, homes of
    /// two nodes meet, and whoever came first to a block has brought the pages of both.
    pub fn seams(&self) -> Vec<Span> {
        let mut list = Vec::new();
        for object in self.objects.live().filter(|o| o.treatment.is_armed_whole()) {
            let seams = object.seams(AROUND);
            let bytes: usize = seams.iter().map(|(from, to)| to - from).sum();
            // A pattern that consists of seams has no seams to correct.
            if bytes <= object.bytes / SEAMS {
                list.extend(seams);
            }
        }
        list.into_iter().flat_map(|(start, end)| self.placed.rest_of(Span { start, end })).collect()
    }

    /// Pages that have moved, with their former homes, without pages that the program has ruled on.
    pub fn moved(&self) -> Vec<(PageRange, NodeId)> {
        let moved = self.objects.live().flat_map(Object::moved_ranges);
        moved.flat_map(|(pages, home)| self.not_ruled(pages, home)).collect()
    }

    /// The parts of these pages that the program has not ruled on.
    fn not_ruled(&self, pages: PageRange, home: NodeId) -> Vec<(PageRange, NodeId)> {
        let Some(start) = self.address(pages.first) else { return Vec::new() };
        let rest = self.ruled.rest_of(Span::new(start, pages.count as usize * PAGE)).into_iter();
        let rest = rest.map(|span| span.inner(PAGE)).filter(|span| !span.is_empty());
        let range = |span: Span| PageRange {
            first: PageNo(pages.first.0 + ((span.start - start) / PAGE) as u64),
            count: span.pages() as u64,
        };
        rest.map(|span| (range(span), home)).collect()
    }

    /// Whether pages are spread more evenly over the nodes than when they were first seen.
    pub fn is_evener(&self) -> bool {
        let (mut before, mut now) = (Vec::new(), Vec::new());
        self.objects.live().for_each(|o| o.add_homes(&mut before, &mut now));
        let most = |pages: Vec<u64>| pages.into_iter().max().unwrap_or(0);
        let (before, now) = (most(before), most(now));
        before > 0 && now * 8 <= before * EVENER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Origin;

    const BASE: usize = 0x1000_0000;

    /// An object of 64 pages, each with its home.
    fn memory(home: impl Fn(u64) -> u16) -> ProgramMemory {
        memory_of(64, home)
    }

    fn memory_of(pages: u64, home: impl Fn(u64) -> u16) -> ProgramMemory {
        let mut memory = ProgramMemory::default();
        memory.objects.born(BASE, pages as usize * PAGE, Origin::Allocated([0; 6]));
        let object = memory.objects.at(BASE).unwrap();
        (0..pages).for_each(|i| _ = object.was_at(NodeId(home(i)), i));
        object.treatment.armed = true;
        memory
    }

    fn first(memory: &ProgramMemory) -> u64 {
        memory.objects.live().next().unwrap().pages.first.0
    }

    #[test]
    fn a_range_is_of_whole_pages_of_objects() {
        let memory = memory(|_| 0);
        let ranges = |at, bytes| -> Vec<(u64, u64)> {
            memory.ranges(at, bytes).iter().map(|r| (r.first.0 - first(&memory), r.count)).collect()
        };
        assert_eq!(ranges(BASE + 2 * PAGE, 3 * PAGE), [(2, 3)]);
        assert_eq!(ranges(BASE - 10 * PAGE, 200 * PAGE), [(0, 64)]);
        assert_eq!(ranges(BASE + 100 * PAGE, PAGE), []);
        let page = PageNo(first(&memory) + 63);
        assert_eq!((memory.address(page), memory.home(page)), (Some(BASE + 63 * PAGE), Some(NodeId(0))));
    }

    #[test]
    fn a_seam_is_where_homes_meet_but_a_pattern_of_seams_has_none() {
        let mut halves = memory_of(512, |i| u16::from(i >= 200));
        let seams = halves.seams();
        let [seam] = seams[..] else { panic!("{seams:?}") };
        assert!(seam.contains(BASE + 199 * PAGE) && seam.contains(BASE + 200 * PAGE), "{seam:?}");
        assert!(memory(|i| (i % 2) as u16).seams().is_empty());
        halves.placed.add(Span::new(BASE, 512 * PAGE));
        assert!(halves.seams().is_empty(), "the program has placed it");
    }

    #[test]
    fn what_the_program_has_ruled_on_does_not_go_back() {
        let mut memory = memory(|_| 0);
        let first = first(&memory);
        let object = memory.objects.at(BASE).unwrap();
        (8..16).for_each(|i| _ = object.note_move(PageNo(first + i), NodeId(1)));
        let moved = |m: &ProgramMemory| -> Vec<(u64, u64)> {
            m.moved().iter().map(|(r, home)| (r.first.0 - first, r.count * 10 + u64::from(home.0))).collect()
        };
        assert_eq!(moved(&memory), [(8, 80)]);
        memory.rule(PageRange { first: PageNo(first + 10), count: 2 });
        assert_eq!(moved(&memory), [(8, 20), (12, 40)]);
        memory.forget(Span::new(BASE, 64 * PAGE));
        assert_eq!(moved(&memory), [(8, 80)]);
    }

    #[test]
    fn an_eighth_less_on_the_fullest_node_is_more_even() {
        let mut memory = memory(|_| 0);
        let first = first(&memory);
        let mut moves = |pages: std::ops::Range<u64>| {
            let object = memory.objects.at(BASE).unwrap();
            pages.for_each(|i| _ = object.note_move(PageNo(first + i), NodeId(1)));
            memory.is_evener()
        };
        assert_eq!([moves(0..0), moves(0..7), moves(7..8)], [false, false, true]);
        assert!(!moves(8..60), "it is as uneven as before");
    }
}
