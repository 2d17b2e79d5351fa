//! From canonical pages to pages of objects.

use homenode_model::{Bytes, ObjectId};
use homenode_order::Trace;
use homenode_sim::collect::{Extents, NOBODYS};

/// A page, or the first one of a block, by its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// The object; `None`: nobody knows it.
    pub object: Option<ObjectId>,
    /// The page, counted from the object's first byte; without an object by canonical address.
    pub page: u64,
    /// Pages from here to the end of its stretch of the object.
    pub rest: u64,
}

/// The objects of a simulation. Stacks follow those of the trace.
#[derive(Debug)]
pub struct ObjectMap<'a> {
    extents: &'a Extents,
    /// First page and end of each stack, with its object.
    stacks: Vec<(u64, u64, ObjectId)>,
}

impl<'a> ObjectMap<'a> {
    /// With pages of `page` bytes.
    pub fn new(extents: &'a Extents, trace: &Trace, page: Bytes) -> Self {
        let objects = trace.objects.len() as u32;
        let stack = |(number, (_, range)): (u32, &(_, homenode_order::step::ByteRange))| {
            let end = range.first.saturating_add(range.bytes).div_ceil(page.0);
            (range.first / page.0, end, ObjectId(objects + number))
        };
        Self { extents, stacks: (0u32..).zip(&trace.stacks).map(stack).collect() }
    }

    /// Where a canonical page is.
    pub fn page(&self, page: u64) -> Placed {
        if let Some(extent) = self.extents.owner(page) {
            return Placed {
                object: Some(extent.object),
                page: self.extents.within(extent, page),
                rest: self.extents.rest(extent, page),
            };
        }
        self.beside(page)
    }

    /// Where a page is that no allocation or variable owns.
    fn beside(&self, page: u64) -> Placed {
        match self.stacks.iter().find(|(first, end, _)| (*first..*end).contains(&page)) {
            Some((first, end, object)) => {
                Placed { object: Some(*object), page: page - first, rest: end - page }
            }
            None => Placed { object: None, page, rest: u64::MAX },
        }
    }

    /// Where a cell's block of `pages` pages is.
    pub fn block(&self, page: u32, pages: u64) -> Placed {
        let canonical = u64::from(page & !NOBODYS);
        if page & NOBODYS != 0 {
            return self.beside(canonical);
        }
        match self.extents.owner(canonical) {
            Some(extent) => {
                let first = self.extents.block(extent, canonical, pages);
                Placed {
                    object: Some(extent.object),
                    page: self.extents.within(extent, first),
                    rest: self.extents.rest(extent, first),
                }
            }
            None => self.beside(canonical),
        }
    }
}
