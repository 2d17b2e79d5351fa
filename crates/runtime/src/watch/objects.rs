//! The program's objects: allocations of at least [`SMALLEST`], and large static variables.

use std::collections::BTreeMap;

use homenode_model::{NodeId, ObjectId, PageNo, PageRange};

use super::numbers::{PAGE, PageNumbers};

/// Smallest object. What is smaller shares pages with others and stays where it is.
pub const SMALLEST: usize = 64 << 10;
/// Return addresses that are kept of an allocation: those of the C++ or Fortran library come first.
pub const FRAMES: usize = 6;

/// Where an object comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Allocated: return addresses, innermost first; zeros behind the last.
    Allocated([usize; FRAMES]),
    /// A static variable or common block: number in the launcher's table.
    Static(u32),
}

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its number.
    pub id: ObjectId,
    /// First byte.
    pub address: usize,
    /// Its length.
    pub bytes: usize,
    /// Where it comes from.
    pub origin: Origin,
    /// Numbers of its whole pages.
    pub pages: PageRange,
    /// It has been asked to follow its next touch.
    pub armed: bool,
    /// Starts of regions at which it was looked at without having pages.
    looks: u8,
    /// By block of [`HOME_PAGES`] pages: home, first home, and where the last move came from. Filled when armed.
    blocks: Vec<BlockHome>,
    /// Nodes that touched its pages after an arming, in pages: presence, not counts.
    pub touched: Vec<u64>,
    /// Homes of its pages when it was first armed, in pages.
    pub homes: Vec<u64>,
    /// Pages moved.
    pub moved: u64,
    /// Pages moved back to a node that they had been moved away from.
    pub ping_pongs: u64,
}

/// Pages of a block whose home is kept as one: as many as come along with a touch.
pub const HOME_PAGES: u64 = 16;

/// Where a block is and was; the home of its first page that was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BlockHome {
    now: Option<NodeId>,
    first: Option<NodeId>,
    came_from: Option<NodeId>,
}

impl Object {
    /// Whether it was armed, or pages of it moved.
    pub fn took_part(&self) -> bool {
        self.armed || self.moved > 0
    }

    fn block(&self, page: PageNo) -> usize {
        (page.0.saturating_sub(self.pages.first.0) / HOME_PAGES) as usize
    }

    /// Where the block of `page` is, as far as homenode knows.
    pub fn home(&self, page: PageNo) -> Option<NodeId> {
        self.blocks.get(self.block(page)).and_then(|b| b.now)
    }

    /// The block of `page` is at `node` now.
    pub fn set_home(&mut self, page: PageNo, node: NodeId) {
        let i = self.block(page);
        if let Some(b) = self.blocks.get_mut(i) {
            b.now = Some(node);
        }
    }

    /// `count` pages from `page` on moved to `node`. How many of them had come from there.
    pub fn note_move(&mut self, page: PageNo, count: u64, node: NodeId) -> u64 {
        let i = self.block(page);
        let Some(b) = self.blocks.get_mut(i) else { return 0 };
        let back = b.came_from == Some(node);
        b.came_from = b.now;
        b.now = Some(node);
        let back = if back { count } else { 0 };
        self.ping_pongs += back;
        back
    }

    /// Whether the block of the page at `address` is no longer where it was first seen.
    pub fn has_moved(&self, address: usize) -> bool {
        let page =
            PageNo(self.pages.first.0 + (address.saturating_sub(self.whole_pages().start) / PAGE) as u64);
        self.blocks.get(self.block(page)).is_some_and(|b| b.now != b.first)
    }

    /// Blocks that are not where they were first seen, with that home.
    pub fn moved_ranges(&self) -> impl Iterator<Item = (PageRange, NodeId)> {
        let pages = self.pages;
        (0u64..).zip(&self.blocks).filter(|(_, b)| b.now != b.first).filter_map(move |(i, b)| {
            let first = PageNo(pages.first.0 + i * HOME_PAGES);
            Some((PageRange { first, count: HOME_PAGES.min(pages.count - i * HOME_PAGES) }, b.first?))
        })
    }

    /// First address of its whole pages and one past their end.
    pub fn whole_pages(&self) -> std::ops::Range<usize> {
        whole_pages(self.address, self.bytes)
    }

    /// Notes that `node` touched `pages` pages.
    pub fn touch(&mut self, node: NodeId, pages: u64) {
        add(&mut self.touched, node, pages);
    }

    /// Notes where page `index` of the object was at the first arming.
    pub fn was_at(&mut self, node: NodeId, index: u64) {
        if self.blocks.is_empty() {
            self.blocks.resize(self.pages.count.div_ceil(HOME_PAGES) as usize, BlockHome::default());
        }
        add(&mut self.homes, node, 1);
        if let Some(b) = self.blocks.get_mut((index / HOME_PAGES) as usize) {
            b.now.get_or_insert(node);
            b.first.get_or_insert(node);
        }
    }
}

fn add(list: &mut Vec<u64>, node: NodeId, n: u64) {
    if list.len() <= node.index() {
        list.resize(node.index() + 1, 0);
    }
    list[node.index()] += n;
}

/// The pages that lie wholly inside a range, as addresses; empty if there is none.
pub fn whole_pages(address: usize, bytes: usize) -> std::ops::Range<usize> {
    let end = address.saturating_add(bytes) & !(PAGE - 1);
    let start = address.checked_next_multiple_of(PAGE).unwrap_or(end);
    start..end.max(start)
}

/// The live objects by address, and what is left of the dead ones: their origin and counts, joined by origin.
#[derive(Debug, Default)]
pub struct Objects {
    live: BTreeMap<usize, Object>,
    past: Vec<Object>,
    /// Addresses of objects that have not been armed and may yet be.
    unseen: Vec<usize>,
    numbers: PageNumbers,
    next: u32,
}

/// Objects that may wait for their first arming; further ones are never armed unasked.
const UNSEEN: usize = 4096;
/// Dead objects that are remembered one by one for the report; others are joined with one of the same origin.
const PAST: usize = 1024;

impl Objects {
    /// An object comes to life. What was known of its memory before is void.
    pub fn born(&mut self, address: usize, bytes: usize, origin: Origin) -> &Object {
        self.overlapped(address, bytes);
        let id = ObjectId(self.next);
        self.next = self.next.wrapping_add(1);
        let whole = whole_pages(address, bytes);
        let pages = self.numbers.give(whole.start, (whole.len() / PAGE) as u64);
        let object = Object {
            id,
            address,
            bytes,
            origin,
            pages,
            armed: false,
            looks: 0,
            blocks: Vec::new(),
            touched: Vec::new(),
            homes: Vec::new(),
            moved: 0,
            ping_pongs: 0,
        };
        if object.pages.count > 0 && self.unseen.len() < UNSEEN {
            self.unseen.push(address);
        }
        self.live.entry(address).insert_entry(object).into_mut()
    }

    fn overlapped(&mut self, address: usize, bytes: usize) {
        let end = address.saturating_add(bytes);
        while let Some((&at, _)) =
            self.live.range(..end).next_back().filter(|(_, o)| o.address + o.bytes > address)
        {
            self.dies(at);
        }
    }

    /// The object that starts at `address` ends.
    pub fn dies(&mut self, address: usize) -> Option<(ObjectId, PageRange)> {
        let object = self.live.remove(&address)?;
        if !object.armed {
            self.unseen.retain(|a| *a != address);
        }
        self.numbers.take_back(object.pages);
        let told = (object.id, object.pages);
        if object.took_part() {
            self.bury(object);
        }
        Some(told)
    }

    fn bury(&mut self, object: Object) {
        match self.past.iter().position(|p| p.origin == object.origin) {
            Some(i) => {
                let p = &mut self.past[i];
                p.bytes = p.bytes.max(object.bytes);
                p.moved += object.moved;
                p.ping_pongs += object.ping_pongs;
                for (list, more) in [(&mut p.touched, &object.touched), (&mut p.homes, &object.homes)] {
                    (0u16..).zip(more).for_each(|(n, pages)| add(list, NodeId(n), *pages));
                }
            }
            None if self.past.len() < PAST => self.past.push(object),
            None => {}
        }
    }

    /// How many objects wait for their first arming.
    pub fn unseen(&self) -> usize {
        self.unseen.len()
    }

    /// These objects: address and pages. One that is returned `looks` times without being [`Objects::seen`] is not
    /// returned again.
    pub fn take_unseen(&mut self, looks: u8) -> Vec<(usize, PageRange)> {
        let live = &mut self.live;
        let mut taken = Vec::with_capacity(self.unseen.len());
        self.unseen.retain(|a| {
            let Some(o) = live.get_mut(a) else { return false };
            taken.push((*a, o.pages));
            o.looks += 1;
            o.looks < looks
        });
        taken
    }

    /// The object at `address` has been armed.
    pub fn seen(&mut self, address: usize) {
        self.unseen.retain(|a| *a != address);
    }

    /// The object that holds `address`.
    pub fn at(&mut self, address: usize) -> Option<&mut Object> {
        let (_, object) = self.live.range_mut(..=address).next_back()?;
        (address - object.address < object.bytes).then_some(object)
    }

    /// The live objects, by address.
    pub fn live(&self) -> impl Iterator<Item = &Object> {
        self.live.values()
    }

    /// The live objects, by address.
    pub fn live_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.live.values_mut()
    }

    /// Objects that took part and are gone, joined by origin.
    pub fn past(&self) -> &[Object] {
        &self.past
    }

    /// Page numbers.
    pub fn numbers(&self) -> &PageNumbers {
        &self.numbers
    }

    /// How many are live.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether none is live.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(pc: usize) -> Origin {
        Origin::Allocated([pc, 0, 0, 0, 0, 0])
    }

    #[test]
    fn whole_pages_lie_inside() {
        assert_eq!(whole_pages(0x1001, 0x3000), 0x2000..0x4000);
        assert_eq!(whole_pages(0x1000, 0x1000), 0x1000..0x2000);
        assert!(whole_pages(0x1001, 0x1000).is_empty());
        assert!(whole_pages(usize::MAX - 10, 100).is_empty());
    }

    #[test]
    fn an_address_belongs_to_the_object_around_it() {
        let mut all = Objects::default();
        all.born(0x10000, 0x20000, site(1));
        let second = all.born(0x40000, 0x10000, site(2)).id;
        assert_eq!(all.at(0x4ffff).unwrap().id, second);
        assert!(all.at(0x50000).is_none() && all.at(0xffff).is_none());
        assert!(all.dies(0x40000).is_some() && all.dies(0x40000).is_none());
        assert!(all.at(0x40000).is_none());
    }

    #[test]
    fn memory_that_is_used_again_is_a_new_object() {
        let mut all = Objects::default();
        all.born(0x10000, 0x20000, site(1));
        all.born(0x40000, 0x20000, site(1));
        let third = all.born(0x20000, 0x30000, site(2)).id;
        assert_eq!(all.len(), 1);
        assert_eq!(all.at(0x21000).unwrap().id, third);
    }

    #[test]
    fn what_took_part_is_remembered_by_origin() {
        let mut all = Objects::default();
        for _ in 0..3 {
            all.born(0x10000, 0x20000, site(1));
            let object = all.at(0x10000).unwrap();
            object.armed = true;
            object.touch(NodeId(1), 4);
            all.dies(0x10000);
        }
        assert_eq!(all.past().len(), 1);
        assert_eq!(all.past()[0].touched, [0, 12]);
    }
}
