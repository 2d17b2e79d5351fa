//! Who was seen at which page, for a recording: how often a source told of it, by page, node, home and kind.
//!
//! State: a row for each node that was seen at a page, some 30 bytes; 8 MiB a GiB of memory that one node uses, 16 MiB where two do.
//! It is bounded by [`ROWS`], 8 MiB: when they are full, neighbouring pages are joined, two by two, up to 2 MiB. Objects that are gone
//! keep their rows, and what comes to the same place with the same size from the same call goes on with them.

use std::collections::BTreeMap;

use homenode_model::{AccessKind, NodeId, ObjectId, PageNo};

use super::draws::{LOOKS, PAGES, mix};
use super::objects::{Object, Origin};

/// Rows that are kept.
const ROWS: usize = 1 << 18;
/// Objects that are kept; of further ones it is only counted how often they were told of.
const OBJECTS: usize = 1 << 14;
/// Pages are joined at most so many doublings: to 2 MiB.
const COARSEST: u32 = 9;

/// An object that was told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// First byte.
    pub address: usize,
    /// Its length.
    pub bytes: usize,
    /// Where it comes from.
    pub origin: Origin,
    /// The Python code that allocated it.
    pub python: Option<Box<str>>,
}

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The object, by its place in [`Sightings::objects`].
    pub object: u32,
    /// The first page of what is told of together, counted from the object's first whole page.
    pub page: u32,
    /// Where the page is.
    pub home: NodeId,
    /// Who touched it.
    pub node: NodeId,
    /// How, if that is known.
    pub kind: Option<AccessKind>,
}

/// See the module.
#[derive(Debug)]
pub struct Sightings {
    objects: Vec<Seen>,
    by_id: BTreeMap<ObjectId, u32>,
    by_place: BTreeMap<(usize, usize), u32>,
    rows: BTreeMap<Row, u32>,
    doublings: u32,
    most: usize,
    lost: u64,
}

impl Default for Sightings {
    fn default() -> Self {
        Self::new(ROWS)
    }
}

impl Sightings {
    fn new(most: usize) -> Self {
        Self {
            objects: Vec::new(),
            by_id: BTreeMap::new(),
            by_place: BTreeMap::new(),
            rows: BTreeMap::new(),
            doublings: 0,
            most,
            lost: 0,
        }
    }

    /// `node` was seen at page `page` of the object, which is at `home`.
    pub fn add(&mut self, object: &Object, page: u64, home: NodeId, node: NodeId, kind: Option<AccessKind>) {
        let (Some(of), Ok(page)) = (self.number(object), u32::try_from(page)) else {
            self.lost += 1;
            return;
        };
        let mut row = Row { object: of, page: self.first(page), home, node, kind };
        if !self.rows.contains_key(&row) {
            while self.rows.len() >= self.most && self.doublings < COARSEST {
                self.join();
            }
            if self.rows.len() >= self.most {
                self.lost += 1;
                return;
            }
            row.page = self.first(row.page);
        }
        let told = self.rows.entry(row).or_default();
        *told = told.saturating_add(1);
    }

    /// The first page of those that `page` is joined with.
    const fn first(&self, page: u32) -> u32 {
        page >> self.doublings << self.doublings
    }

    fn join(&mut self) {
        self.doublings += 1;
        for (row, n) in std::mem::take(&mut self.rows) {
            let told = self.rows.entry(Row { page: self.first(row.page), ..row }).or_default();
            *told = told.saturating_add(n);
        }
    }

    fn number(&mut self, object: &Object) -> Option<u32> {
        if let Some(number) = self.by_id.get(&object.id) {
            return Some(*number);
        }
        let place = (object.address, object.bytes);
        let same = |number: &&u32| {
            self.objects
                .get(**number as usize)
                .is_some_and(|s| s.origin == object.origin && s.python == object.python)
        };
        let number = match self.by_place.get(&place).filter(same) {
            Some(number) => *number,
            None if self.objects.len() < OBJECTS => {
                self.objects.push(Seen {
                    address: object.address,
                    bytes: object.bytes,
                    origin: object.origin.clone(),
                    python: object.python.clone(),
                });
                self.objects.len() as u32 - 1
            }
            None => return None,
        };
        if self.by_id.len() >= OBJECTS {
            // Those that are gone are never asked for again, the others are found by their places.
            self.by_id.clear();
        }
        self.by_place.insert(place, number);
        self.by_id.insert(object.id, number);
        Some(number)
    }

    /// The objects.
    pub fn objects(&self) -> &[Seen] {
        &self.objects
    }

    /// The rows in order, with how often each was told of.
    pub fn rows(&self) -> impl Iterator<Item = (&Row, u32)> {
        self.rows.iter().map(|(row, n)| (row, *n))
    }

    /// Pages that are told of together.
    pub const fn pages(&self) -> u32 {
        1 << self.doublings
    }

    /// What was told and there was no room for.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes of memory that it takes now, about: nodes of a tree are two thirds full.
    pub fn bytes(&self) -> usize {
        self.rows.len() * (size_of::<Row>() + size_of::<u32>()) * 3 / 2
            + self.objects.capacity() * size_of::<Seen>()
            + (self.by_id.len() + self.by_place.len()) * 32
    }
}

/// The order in which pages are asked for: each block once a pass, another page of it each time, and any part of a pass is spread over all of
/// the memory. What is asked for in the order of addresses and never comes to the end tells of the first thread alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    next: u64,
    pass: u64,
}

impl Turns {
    /// Pages of at most `wanted` blocks of those below `end`.
    pub fn choose(&mut self, wanted: usize, end: u64, out: &mut Vec<PageNo>) {
        let blocks = end.div_ceil(PAGES);
        let places = blocks.next_power_of_two();
        for _ in 0..places.min(LOOKS) {
            if out.len() >= wanted {
                return;
            }
            if self.next >= places {
                (self.next, self.pass) = (0, self.pass + 1);
            }
            // By halves, quarters, and so on.
            let block = self.next.reverse_bits().checked_shr(64 - places.trailing_zeros()).unwrap_or(0);
            self.next += 1;
            if block < blocks {
                out.push(PageNo(block * PAGES + mix(block ^ self.pass << 32) % PAGES));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Objects;

    const PAGE: usize = 4096;

    #[test]
    fn each_block_has_its_turn_and_a_part_of_a_pass_is_of_all_memory() {
        let blocks = 300;
        let (mut turns, mut pages) = (Turns::default(), Vec::new());
        while pages.len() < blocks {
            turns.choose(pages.len() + 7, blocks as u64 * PAGES, &mut pages);
        }
        let of = |pages: &[PageNo]| pages.iter().map(|p| p.0 / PAGES).collect::<Vec<_>>();
        let mut first = of(&pages[..blocks]);
        assert!(first[..75].iter().filter(|b| **b < 150).count().abs_diff(37) < 4, "{first:?}");
        first.sort_unstable();
        assert_eq!(first, (0..blocks as u64).collect::<Vec<_>>());
        // Every page comes, in time.
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..400 {
            let mut pages = Vec::new();
            turns.choose(10, 10 * PAGES, &mut pages);
            seen.extend(pages);
        }
        assert_eq!(seen.len() as u64, 10 * PAGES);
    }

    fn born(all: &mut Objects, address: usize, pages: usize, pc: usize) -> Object {
        all.born(address, pages * PAGE, Origin::Allocated([pc, 0, 0, 0, 0, 0])).clone()
    }

    fn told(s: &Sightings) -> Vec<(u32, u32, u16, u32)> {
        s.rows().map(|(r, n)| (r.object, r.page, r.node.0, n)).collect()
    }

    #[test]
    fn nodes_are_told_apart_by_page() {
        let (mut all, mut s) = (Objects::default(), Sightings::default());
        let a = born(&mut all, 0x10000, 32, 1);
        for (page, node) in [(3, 1), (3, 1), (3, 0), (4, 1)] {
            s.add(&a, page, NodeId(0), NodeId(node), None);
        }
        assert_eq!(told(&s), [(0, 3, 0, 1), (0, 3, 1, 2), (0, 4, 1, 1)]);
        s.add(&a, 4, NodeId(0), NodeId(1), Some(AccessKind::Write));
        assert_eq!(told(&s).len(), 4, "and by kind");
    }

    #[test]
    fn what_comes_to_the_same_place_again_is_the_same() {
        let (mut all, mut s) = (Objects::default(), Sightings::default());
        for (pc, pages) in [(1, 16), (1, 16), (2, 16), (1, 17)] {
            let a = born(&mut all, 0x10000, pages, pc);
            s.add(&a, 0, NodeId(0), NodeId(0), None);
            all.dies(0x10000);
        }
        assert_eq!(told(&s), [(0, 0, 0, 2), (1, 0, 0, 1), (2, 0, 0, 1)]);
    }

    #[test]
    fn full_rows_are_joined_and_nothing_is_lost_of_them() {
        let (mut all, mut s) = (Objects::default(), Sightings::new(16));
        let a = born(&mut all, 0x10000, 64, 1);
        (0..64).for_each(|page| s.add(&a, page, NodeId(0), NodeId((page / 32) as u16), None));
        assert_eq!((s.pages(), s.lost()), (4, 0));
        assert!(s.rows().all(|(r, n)| n == 4 && u32::from(r.node.0) == r.page / 32), "{:?}", told(&s));
        // Objects cannot be joined.
        for i in 0..40 {
            let b = born(&mut all, 0x1000000 + i * 0x100000, 16, 1);
            s.add(&b, 0, NodeId(0), NodeId(0), None);
        }
        assert!(s.rows().count() == 16 && s.lost() > 0 && s.bytes() > 0);
    }
}
