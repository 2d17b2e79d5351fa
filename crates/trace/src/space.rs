//! The canonical address space: where objects lie when nobody randomises.
//!
//! Large allocations that the C library maps on their own, modules and stacks move as a whole to
//! the next free page of the canonical space in the order of their birth, which is the program's.
//! The rest (the heap of the program break, unknown mappings) moves in pieces of 1 MiB in the order
//! of first use, each around the page that is used first: where it lies on a grid of the process is
//! the kernel's choice. The low 12 bits never change, neighbours in an object stay neighbours, and
//! objects are as little aligned to larger pages as they are in the process. Freed ranges serve the
//! next allocation of the same size from the same place in the source.
//!
//! Two allocations of one place that live at the same time are two objects. A new one takes the
//! smallest slot that is free at its place, so that an array which is freed and allocated again in
//! every round stays one object.
//!
//! It starts at page 1 and is compact, so that tables by page or line are dense.

use std::collections::{BTreeMap, HashMap};

use homenode_dataset::identity::Slots;
use homenode_model::{LineNo, ObjectId, ThreadId};

use crate::padding::{ArrayRows, Padding};
use crate::step::ByteRange;

const PAGE: u64 = 4096;
const PIECE: u64 = 1 << 20;
const LINE: u64 = 1 << LineNo::SHIFT;
/// How far from its start an address counts as the heap's: mappings of the kernel's choice are
/// further off.
const HEAP: u64 = 1 << 40;
/// Most bytes of a stack that get a place; deeper ones are pieces.
const STACK: u64 = 64 << 20;

/// A static object known by name, for [`AddressSpace::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticObject {
    /// Module, as in `modules.txt`.
    pub module: u64,
    /// Address relative to the module's base.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// Name in the symbol table.
    pub name: String,
}

/// Where an object comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectSource {
    /// A variable.
    Static {
        /// Its module, as in `modules.txt`.
        module: u64,
        /// Its name.
        name: String,
    },
    /// Allocations of one call, of which no two live at the same time.
    Site {
        /// Return address of the call; 0: unknown.
        pc: u64,
        /// Return address of the function with that call; 0: unknown.
        caller: u64,
        /// Tells apart those that live at the same time ([`homenode_dataset::identity`]). The last
        /// slot is shared.
        slot: u32,
    },
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedObject {
    /// What it is.
    pub kind: ObjectSource,
    /// Bytes at its largest.
    pub bytes: u64,
    /// How often it was allocated.
    pub allocations: u64,
    live: u64,
}

/// The segments a thread used last, by address, so that most look-ups are a few comparisons.
#[derive(Clone, Debug, Default)]
pub struct SegmentCache([Place; 16]);

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u64,
    end: u64,
    shift: u64,
    version: u64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    end: u64,
    /// Canonical minus process address, wrapping.
    shift: u64,
}

/// An allocation of an object, or a static variable that came with its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The object.
    pub object: ObjectId,
    /// Length.
    pub bytes: u64,
    /// Where it lies: canonical pieces, in the order of its addresses.
    pub ranges: Vec<ByteRange>,
}

/// Births that are kept: a program that allocates for ever must not fill the memory.
const BIRTHS: usize = 1 << 16;

#[derive(Clone, Debug)]
struct Live {
    object: ObjectId,
    site: (u64, u64),
    slot: u32,
    bytes: u64,
    /// Canonical pieces.
    ranges: Vec<ByteRange>,
    /// Whether it is a segment of its own.
    own: bool,
    /// Bytes that it takes with its rows on pages of their own; 0: it is not padded.
    padded: u64,
}

/// The canonical address space.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    segments: BTreeMap<u64, Segment>,
    version: u64,
    next: u64,
    heap: u64,
    statics: Vec<StaticObject>,
    objects: Vec<TracedObject>,
    slots: Slots<(u64, u64)>,
    sites: HashMap<(u64, u64, u32), ObjectId>,
    live: HashMap<u64, Live>,
    free: HashMap<(ObjectId, u64), Vec<u64>>,
    ranges: Vec<(ByteRange, ObjectId)>,
    births: Vec<Birth>,
    stacks: Vec<(ThreadId, ByteRange)>,
    padding: Padding,
}

impl AddressSpace {
    /// Empty; `statics` become objects when their modules are told.
    pub fn new(statics: Vec<StaticObject>) -> Self {
        Self { statics, next: PAGE, version: 1, ..Self::default() }
    }

    /// Puts the rows of these objects on pages of their own.
    #[must_use]
    pub fn with_padding(mut self, padding: Padding) -> Self {
        self.padding = padding;
        self
    }

    /// All objects, by id.
    pub fn objects(&self) -> &[TracedObject] {
        &self.objects
    }
    /// Every canonical range an object ever had, in order of birth.
    pub fn object_ranges(&self) -> &[(ByteRange, ObjectId)] {
        &self.ranges
    }
    /// The first allocations and all static variables, in order of birth.
    pub fn births(&self) -> &[Birth] {
        &self.births
    }
    /// The threads' stacks, in the order in which the threads began.
    pub fn stacks(&self) -> &[(ThreadId, ByteRange)] {
        &self.stacks
    }
    /// One past the highest canonical address in use.
    pub const fn end(&self) -> u64 {
        self.next
    }

    /// The canonical line of a line.
    #[inline]
    pub fn line(&mut self, line: LineNo, places: &mut SegmentCache) -> LineNo {
        let address = line.0 << LineNo::SHIFT;
        // Loops walk through several arrays at once; most arrays lie in megabytes of their own.
        let place = &mut places.0[(address / PIECE % 16) as usize];
        let hit = address >= place.start && address < place.end && place.version == self.version;
        if !hit {
            *place = self.find(address);
        }
        LineNo(address.wrapping_add(place.shift) >> LineNo::SHIFT)
    }

    #[cold]
    fn find(&mut self, address: u64) -> Place {
        if let Some((start, s)) = self.segments.range(..=address).next_back()
            && address < s.end
        {
            return Place { start: *start, end: s.end, shift: s.shift, version: self.version };
        }
        self.piece(address);
        self.find(address)
    }

    /// Gives the piece of 1 MiB around an address without a known object, cut where its
    /// neighbours begin. Above the heap's start pieces begin at multiples of 1 MiB from there;
    /// elsewhere the address is in the middle.
    fn piece(&mut self, address: u64) {
        let start = if self.heap != 0 && address >= self.heap && address - self.heap < HEAP {
            address - (address - self.heap) % PIECE
        } else {
            (address & !(PAGE - 1)).saturating_sub(PIECE / 2)
        };
        let before = self.segments.range(..=address).next_back().map_or(0, |(_, s)| s.end);
        let after = self.segments.range(address..).next().map_or(u64::MAX, |(start, _)| *start);
        // The whole piece takes its room whatever is cut off: where neighbours lie must not show in
        // other addresses.
        let to = self.reserve(start, start.saturating_add(PIECE));
        let (first, end) = (start.max(before), start.saturating_add(PIECE).min(after));
        self.put(first, end, to + (first - start));
    }

    /// Gives `start .. end` (process addresses) the next canonical pages.
    fn reserve(&mut self, start: u64, end: u64) -> u64 {
        let to = self.next + start % PAGE;
        self.next = (to + (end - start)).next_multiple_of(PAGE);
        to
    }

    fn put(&mut self, start: u64, end: u64, to: u64) {
        self.cut(start, end);
        self.segments.insert(start, Segment { end, shift: to.wrapping_sub(start) });
        self.version += 1;
    }

    fn cut(&mut self, start: u64, end: u64) {
        let overlapping: Vec<u64> =
            self.segments.range(..end).rev().take_while(|(_, s)| s.end > start).map(|(a, _)| *a).collect();
        for a in overlapping {
            let Some(s) = self.segments.remove(&a) else { continue };
            if a < start {
                self.segments.insert(a, Segment { end: start, ..s });
            }
            if s.end > end {
                self.segments.insert(end, s);
            }
        }
        self.version += 1;
    }

    /// A thread's stack. It keeps its place relative to its end: how many pages the system counts
    /// as its lower end differs from run to run.
    pub fn stack(&mut self, thread: ThreadId, low: u64, high: u64) {
        if low < high && high <= u64::MAX - STACK {
            let low = low.max(high.saturating_sub(STACK)) & !(PAGE - 1);
            let to = self.reserve(0, (high - low).next_multiple_of(PIECE)) + (low.wrapping_sub(high) % PIECE);
            self.put(low, high, to);
            self.stacks.push((thread, ByteRange { first: to, bytes: high - low }));
        }
    }

    /// Where the program break's segment starts.
    pub const fn heap(&mut self, address: u64) {
        self.heap = address;
    }

    /// A module, and the static objects in it. It takes whole pieces. So the size of a library,
    /// homenode's own above all, does not decide on which node round robin begins an array.
    pub fn module(&mut self, index: u64, base: u64, low: u64, high: u64) -> Vec<(ObjectId, ByteRange)> {
        let (Some(start), Some(end)) = (base.checked_add(low), base.checked_add(high)) else { return vec![] };
        if start >= end || end - start > 1 << 40 {
            return vec![];
        }
        let first = start & !(PAGE - 1);
        let page = self.reserve(0, (end - first).next_multiple_of(PIECE));
        self.put(first, end, page);
        let to = page + start % PAGE;
        let mut out = Vec::new();
        for s in self.statics.clone().iter().filter(|s| s.module == index) {
            if s.address < low || s.address.saturating_add(s.bytes) > high {
                continue;
            }
            let object = self.new_object(ObjectSource::Static { module: s.module, name: s.name.clone() });
            let range = self
                .pad(object, start + (s.address - low), s.bytes)
                .unwrap_or(ByteRange { first: to + (s.address - low), bytes: s.bytes });
            self.grow(object, s.bytes);
            self.ranges.push((range, object));
            self.births.push(Birth { object, bytes: s.bytes, ranges: vec![range] });
            out.push((object, range));
        }
        out
    }

    fn new_object(&mut self, kind: ObjectSource) -> ObjectId {
        self.objects.push(TracedObject { kind, bytes: 0, allocations: 0, live: 0 });
        ObjectId(self.objects.len() as u32 - 1)
    }

    fn grow(&mut self, object: ObjectId, bytes: u64) {
        let o = &mut self.objects[object.index()];
        o.allocations += 1;
        o.live = o.live.saturating_add(bytes);
        o.bytes = o.bytes.max(o.live);
    }

    /// An allocation; its object and canonical pieces.
    pub fn allocate(&mut self, address: u64, bytes: u64, site: (u64, u64)) -> Vec<(ObjectId, ByteRange)> {
        if bytes == 0 || bytes > 1 << 44 || address.checked_add(bytes).is_none_or(|e| e > u64::MAX - PAGE) {
            return vec![];
        }
        self.free(address);
        let slot = self.slots.take(site);
        let (pc, caller) = site;
        let object = match self.sites.get(&(pc, caller, slot)) {
            Some(o) => *o,
            None => {
                let o = self.new_object(ObjectSource::Site { pc, caller, slot });
                self.sites.insert((pc, caller, slot), o);
                o
            }
        };
        // glibc puts 16 bytes of its own before an allocation that it maps separately.
        let own = matches!(address % PAGE, 0 | 16);
        let padded = self.pad(object, address, bytes);
        if own && padded.is_none() {
            let (start, end) = (address & !(PAGE - 1), (address + bytes).next_multiple_of(PAGE));
            let to = match self.free.get_mut(&(object, end - start)).and_then(Vec::pop) {
                Some(to) => to,
                None => self.reserve(start, end),
            };
            self.put(start, end, to);
        }
        let ranges = padded.map_or_else(|| self.ranges(address, bytes), |range| vec![range]);
        let padded = padded.map_or(0, |range| range.bytes);
        self.grow(object, bytes);
        self.ranges.extend(ranges.iter().map(|r| (*r, object)));
        if self.births.len() < BIRTHS {
            self.births.push(Birth { object, bytes, ranges: ranges.clone() });
        }
        let out = ranges.iter().map(|r| (object, *r)).collect();
        self.live.insert(address, Live { object, site, slot, bytes, ranges, own, padded });
        out
    }

    /// Puts the rows of an object on pages of their own, if it is one of those that have it; where
    /// it lies. A line that belongs to two rows goes with the one that has more of it.
    fn pad(&mut self, object: ObjectId, address: u64, bytes: u64) -> Option<ByteRange> {
        let rows = *self.padding.get(&object)?;
        let total = rows.total(bytes)?;
        let to = match self.free.get_mut(&(object, total)).and_then(Vec::pop) {
            Some(to) => to,
            None => self.reserve(0, total),
        };
        let ArrayRows { bytes: row, padded } = rows;
        let border = |n: u64| match n.checked_mul(row) {
            Some(0) => address & !(LINE - 1),
            Some(offset) if offset < bytes => (address + offset + LINE / 2) & !(LINE - 1),
            _ => (address + bytes).next_multiple_of(LINE),
        };
        for n in 0..total / padded {
            let (start, end) = (border(n), border(n + 1));
            if start < end {
                self.put(start, end, to + n * padded);
            }
        }
        Some(ByteRange { first: to, bytes: total })
    }

    /// The end of an allocation; its object and canonical pieces.
    pub fn free(&mut self, address: u64) -> Vec<(ObjectId, ByteRange)> {
        let Some(live) = self.live.remove(&address) else { return vec![] };
        self.slots.give_back(&live.site, live.slot);
        let o = &mut self.objects[live.object.index()];
        o.live = o.live.saturating_sub(live.bytes);
        let to = live.ranges.first().map(|r| r.first & !(PAGE - 1));
        let unit = if live.padded > 0 { LINE } else { PAGE };
        let (start, end) = (address & !(unit - 1), (address + live.bytes).next_multiple_of(unit));
        if live.own || live.padded > 0 {
            self.cut(start, end);
            let size = if live.padded > 0 { live.padded } else { end - start };
            if let Some(to) = to {
                self.free.entry((live.object, size)).or_default().push(to);
            }
        }
        live.ranges.into_iter().map(|r| (live.object, r)).collect()
    }

    /// The canonical pieces of a range of process addresses.
    pub fn ranges(&mut self, address: u64, bytes: u64) -> Vec<ByteRange> {
        let Some(end) = address.checked_add(bytes).filter(|_| bytes <= 1 << 44) else { return vec![] };
        let mut out: Vec<ByteRange> = Vec::new();
        let mut at = address;
        while at < end {
            let place = self.find(at);
            let stop = place.end.min(end);
            let first = at.wrapping_add(place.shift);
            match out.last_mut() {
                Some(r) if r.first + r.bytes == first => r.bytes += stop - at,
                _ => out.push(ByteRange { first, bytes: stop - at }),
            }
            at = stop;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(s: &mut AddressSpace, address: u64) -> u64 {
        s.line(LineNo(address >> 6), &mut SegmentCache::default()).0 << 6
    }

    #[test]
    fn randomised_bases_give_the_same_canonical_addresses() {
        let walk = |base: u64, heap: u64, stack: u64| {
            let mut s = AddressSpace::new(vec![]);
            s.stack(ThreadId(0), stack - (8 << 20), stack);
            s.heap(heap);
            let mut out =
                vec![line(&mut s, stack - 64), line(&mut s, heap + 640), line(&mut s, heap + (3 << 20))];
            let a = s.allocate(base + 16, 1 << 20, (0x1234, 1));
            out.push(a[0].1.first);
            out.push(line(&mut s, base + 4096));
            s.free(base + 16);
            let b = s.allocate(base + (7 << 20) + 16, 1 << 20, (0x1234, 1));
            assert_eq!(a, b, "the freed range serves the same site again");
            out.push(line(&mut s, base + (7 << 20) + 4096));
            out
        };
        let one = walk(0x7f00_0000_0000, 0x5555_0000_3000, 0x7ffd_0000_0000);
        let two = walk(0x7e12_3456_7000, 0x5666_1234_5000, 0x7ffc_1234_5000);
        assert_eq!(one, two);
    }

    #[test]
    fn objects_keep_their_inner_distances_and_low_bits() {
        let mut s = AddressSpace::new(vec![]);
        let r = s.allocate(0x7000_0000_0010, 10 << 20, (1, 1));
        assert_eq!(r.len(), 1);
        assert_eq!(r[0].1.first % 4096, 0x10);
        assert_eq!(line(&mut s, 0x7000_0000_0040 + (5 << 20)) - (r[0].1.first - 0x10), 0x40 + (5 << 20));
    }

    #[test]
    fn an_object_in_the_heap_may_lie_in_pieces_that_are_told() {
        let mut s = AddressSpace::new(vec![]);
        s.heap(0x5000_0000);
        line(&mut s, 0x5000_0000 + (2 << 20)); // the third piece is used first
        let r = s.allocate(0x5000_0000 + 0x100, 3 << 20, (1, 1));
        assert!(r.len() > 1);
        assert_eq!(r.iter().map(|(_, r)| r.bytes).sum::<u64>(), 3 << 20);
    }

    #[test]
    fn allocations_that_live_together_are_objects_of_their_own() {
        let mut s = AddressSpace::new(vec![]);
        let (a, b) = (0x7000_0000_0010, 0x7100_0000_0010);
        let mut both = || [a, b].map(|at| s.allocate(at, 1 << 20, (1, 1))[0]);
        let first = both();
        assert_ne!(first[0].0, first[1].0);
        // In whatever order they go, each comes back as itself and to its own place.
        s.free(a);
        s.free(b);
        let mut both = || [b, a].map(|at| s.allocate(at, 1 << 20, (1, 1))[0]);
        assert_eq!(both(), first);
        let kinds: Vec<_> = s.objects().iter().map(|o| o.kind.clone()).collect();
        assert_eq!(kinds, [0, 1].map(|slot| ObjectSource::Site { pc: 1, caller: 1, slot }));
        for many in 0..1000 {
            s.allocate(0x6000_0000_0010 + (many << 21), 1 << 20, (1, 1));
        }
        assert_eq!(s.objects().len(), homenode_dataset::identity::MOST_SLOTS as usize);
    }

    #[test]
    fn births_are_told_in_order_with_their_lengths() {
        let mut s = AddressSpace::new(vec![]);
        for _ in 0..2 {
            s.allocate(0x7000_0000_0010, 1 << 20, (1, 1));
            s.free(0x7000_0000_0010);
        }
        let [first, second] = s.births() else { panic!("{:?}", s.births()) };
        assert_eq!((first, first.bytes, first.ranges.len()), (second, 1 << 20, 1));
    }

    #[test]
    fn statics_get_their_place_in_the_module() {
        let s = StaticObject { module: 0, address: 0x4000, bytes: 8192, name: "a".into() };
        let mut space = AddressSpace::new(vec![s]);
        let out = space.module(0, 0x5555_5555_4000, 0x0, 0x9000);
        assert_eq!(out.len(), 1);
        assert_eq!(line(&mut space, 0x5555_5555_4000 + 0x4000), out[0].1.first);
    }

    #[test]
    fn the_size_of_a_library_does_not_show_in_what_follows() {
        let after = |bytes| {
            let mut s = AddressSpace::new(vec![]);
            s.module(0, 0x7f00_0000_0000, 0, bytes);
            s.allocate(0x7100_0000_0010, 1 << 20, (1, 1))[0].1.first
        };
        assert_eq!(after(0x7d_1fd0), after(0x7d_2b10));
        assert_eq!(after(0x7d_1fd0) % PIECE, after(0x1542) % PIECE);
    }

    #[test]
    fn padded_rows_begin_on_pages() {
        let rows = ArrayRows { bytes: 11200, padded: 12288 };
        let padding = |object| Padding::from([(ObjectId(object), rows)]);
        let mut s = AddressSpace::new(vec![]).with_padding(padding(1));
        s.allocate(0x7000_0000_0010, 1 << 20, (1, 1));
        let base = 0x7100_0000_0010;
        let a = s.allocate(base, 10 * 11200, (2, 1));
        let [(ObjectId(1), range)] = a[..] else { panic!("{a:?}") };
        assert_eq!((range.first % 4096, range.bytes), (0, 10 * 12288));
        for n in 0..10 {
            // The first line of a row that is the row's for the most part, and the last one.
            let first = (base + n * 11200 + 32) & !63;
            assert_eq!(line(&mut s, first), range.first + n * 12288, "row {n}");
            assert_eq!(line(&mut s, first + 11200 - 128), range.first + n * 12288 + 11200 - 128);
        }
        s.free(base);
        assert_eq!(s.allocate(base + (1 << 30), 10 * 11200, (2, 1)), a, "the same place again");
        // A variable in the middle of a page.
        let v = StaticObject { module: 0, address: 0x4100, bytes: 3 * 11200, name: "v".into() };
        let mut s = AddressSpace::new(vec![v]).with_padding(padding(0));
        let out = s.module(0, 0x5555_5555_4000, 0x0, 0x4_0000);
        assert_eq!(line(&mut s, 0x5555_5555_4000 + 0x4100 + 11200), out[0].1.first + 12288);
        let other = line(&mut s, 0x5555_5555_4000 + 0x4100 - 64);
        assert!(!(out[0].1.first..out[0].1.first + out[0].1.bytes).contains(&other));
        // Too many rows, or none.
        assert_eq!(ArrayRows { bytes: 8, padded: 4096 }.total(1 << 30), None);
        assert_eq!(ArrayRows { bytes: 0, padded: 4096 }.total(1 << 30), None);
    }

    #[test]
    fn hostile_ranges_are_ignored() {
        let mut s = AddressSpace::new(vec![]);
        assert!(s.allocate(u64::MAX - 10, 100, (0, 0)).is_empty());
        assert!(s.allocate(4096, u64::MAX, (0, 0)).is_empty());
        assert!(s.module(0, u64::MAX, 10, 20).is_empty());
        assert!(s.ranges(5, u64::MAX).is_empty());
    }
}
