//! Which object a page belongs to, and which page of the object it is.

use std::collections::BTreeMap;

use homenode_model::{Bytes, ObjectId, Ps};

use homenode_order::step::ByteRange;

/// Extents before a page that are looked at: those of the small heap overlap.
const NEAR: usize = 64;

/// Bytes that an object had once or several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where.
    pub range: ByteRange,
    /// The object.
    pub object: ObjectId,
    /// Number that its first page has within the object.
    pub base: u64,
}

/// When an object lived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// When it was first allocated.
    pub birth: Ps,
    /// When it was last freed; `None`: it lived at the end.
    pub death: Option<Ps>,
    /// Parts of it that live.
    live: u32,
    /// One past the last page of the parts that live.
    end: u64,
}

/// All extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents {
    page: Bytes,
    all: Vec<Extent>,
    /// By first page.
    by_page: BTreeMap<u64, Vec<u32>>,
    lives: BTreeMap<ObjectId, Life>,
}

impl Extents {
    pub(super) const fn new(page: Bytes) -> Self {
        Self { page, all: Vec::new(), by_page: BTreeMap::new(), lives: BTreeMap::new() }
    }

    fn first(&self, range: ByteRange) -> u64 {
        range.first / self.page.0
    }

    fn count(&self, range: ByteRange) -> u64 {
        range.first.saturating_add(range.bytes).div_ceil(self.page.0) - self.first(range)
    }

    /// An object gets bytes.
    pub(super) fn allocated(&mut self, object: ObjectId, range: ByteRange, now: Ps) {
        let (first, count) = (self.first(range), self.count(range));
        let life = self.lives.entry(object).or_insert(Life { birth: now, ..Life::default() });
        life.live += 1;
        life.death = None;
        let here = self.by_page.entry(first).or_default();
        let known =
            here.iter().map(|i| &self.all[*i as usize]).find(|e| (e.object, e.range) == (object, range));
        let base = known.map_or(life.end, |e| e.base);
        life.end = life.end.max(base + count);
        if known.is_none() {
            here.push(self.all.len() as u32);
            self.all.push(Extent { range, object, base });
        }
    }

    /// An object loses bytes.
    pub(super) fn freed(&mut self, object: ObjectId, now: Ps) {
        if let Some(life) = self.lives.get_mut(&object) {
            life.live = life.live.saturating_sub(1);
            if life.live == 0 {
                (life.death, life.end) = (Some(now), 0);
            }
        }
    }

    /// The extent that a page belongs to: that with most bytes in it, the older one of equals.
    pub fn owner(&self, page: u64) -> Option<&Extent> {
        let (start, end) = (page * self.page.0, (page + 1) * self.page.0);
        let mut best: Option<(u64, std::cmp::Reverse<u32>)> = None;
        for i in self.by_page.range(..=page).rev().take(NEAR).flat_map(|(_, here)| here) {
            let range = self.all[*i as usize].range;
            let bytes =
                range.first.saturating_add(range.bytes).min(end).saturating_sub(range.first.max(start));
            if bytes > 0 {
                best = best.max(Some((bytes, std::cmp::Reverse(*i))));
            }
            if bytes == self.page.0 {
                break;
            }
        }
        best.map(|(_, i)| &self.all[i.0 as usize])
    }

    /// The first page of the block of `pages` pages, counted from the extent's first page, that a
    /// page lies in.
    pub fn block(&self, extent: &Extent, page: u64, pages: u64) -> u64 {
        let first = self.first(extent.range);
        first + (page - first) / pages * pages
    }

    /// The first page of that block that belongs to the extent: its very first page may be
    /// another's.
    pub(super) fn block_owned(&self, extent: &Extent, page: u64, pages: u64) -> u64 {
        let block = self.block(extent, page, pages);
        let first = block == self.first(extent.range) && block < page;
        let others =
            first && self.owner(block).is_none_or(|o| (o.object, o.range) != (extent.object, extent.range));
        block + u64::from(others)
    }

    /// Pages from `page` to the end of its extent.
    pub fn rest(&self, extent: &Extent, page: u64) -> u64 {
        (self.first(extent.range) + self.count(extent.range)).saturating_sub(page)
    }

    /// The number of a page within the extent's object.
    pub fn within(&self, extent: &Extent, page: u64) -> u64 {
        extent.base + (page - self.first(extent.range))
    }

    /// The extents in order of birth.
    pub fn all(&self) -> &[Extent] {
        &self.all
    }

    /// When an object lived.
    pub fn life(&self, object: ObjectId) -> Option<Life> {
        self.lives.get(&object).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ObjectId = ObjectId(0);
    const B: ObjectId = ObjectId(1);

    fn range(first: u64, bytes: u64) -> ByteRange {
        ByteRange { first, bytes }
    }

    #[test]
    fn a_page_belongs_to_whom_most_of_it_belongs() {
        let mut e = Extents::new(Bytes(4096));
        e.allocated(A, range(4096, 4096 + 100), Ps(0));
        e.allocated(B, range(8192 + 100, 4 * 4096 - 100), Ps(0));
        let owner = |page| e.owner(page).map(|e| e.object);
        assert_eq!([0, 1, 2, 3, 5, 6].map(owner), [None, Some(A), Some(B), Some(B), Some(B), None]);
        let b = e.owner(4).unwrap();
        assert_eq!((e.within(b, 4), e.block(b, 5, 2), e.rest(b, 4)), (2, 4, 2));
    }

    #[test]
    fn an_object_that_is_allocated_again_elsewhere_has_the_same_pages() {
        let mut e = Extents::new(Bytes(4096));
        e.allocated(A, range(4096, 8192), Ps(3));
        e.freed(A, Ps(5));
        e.allocated(A, range(40960, 12288), Ps(7));
        let (old, new) = (*e.owner(2).unwrap(), *e.owner(11).unwrap());
        assert_eq!((e.within(&old, 2), e.within(&new, 11)), (1, 1));
        let life = e.life(A).unwrap();
        assert_eq!((life.birth, life.death), (Ps(3), None));
        e.freed(A, Ps(9));
        assert_eq!(e.life(A).unwrap().death, Some(Ps(9)));
    }

    #[test]
    fn pieces_and_sharers_of_a_slot_follow_one_another() {
        let mut e = Extents::new(Bytes(4096));
        e.allocated(A, range(4096, 8192), Ps(0));
        e.allocated(A, range(40960, 4096), Ps(0));
        let second = *e.owner(10).unwrap();
        assert_eq!(e.within(&second, 10), 2);
        e.allocated(A, range(4096, 8192), Ps(0));
        assert_eq!(e.all().len(), 2);
    }
}
