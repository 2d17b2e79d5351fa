//! The node of each page of a distributed array.
//!
//! A page goes to the node that owns most of its bytes, the lower number of equals. The other
//! nodes' bytes of the page are *stray*: rounding to pages put them elsewhere.

use crate::distribution::{DIMENSIONS, DistributedArray};
use crate::space::Run;

/// Neighbouring pages of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedPages {
    /// Pages, numbered from the page that has the array's first byte.
    pub pages: Run,
    /// Their node, as `node_of` numbers nodes.
    pub node: u16,
    /// Bytes in these pages that belong to other nodes.
    pub stray: u64,
}

/// Calls `tell` with the runs of pages of an array, in the order of memory. The array begins
/// `offset` bytes behind a page border. `node_of` tells the node of a part. Rows' padding belongs
/// to the end of the row.
pub fn each(
    array: &DistributedArray,
    offset: u64,
    page: u64,
    node_of: impl Fn(u64) -> u16,
    tell: impl FnMut(OwnedPages),
) {
    let mut walk = Walk { page, shares: Vec::new(), page_of_shares: 0, run: None, tell };
    let mut same: Option<(u64, u64, u16)> = None;
    segments(array, |begin, end, part| {
        let node = node_of(part);
        same = Some(match same {
            Some((first, last, n)) if n == node && last == begin => (first, end, n),
            Some((first, last, n)) => {
                walk.feed(offset + first, offset + last, n);
                (begin, end, node)
            }
            None => (begin, end, node),
        });
    });
    if let Some((first, last, node)) = same {
        walk.feed(offset + first, offset + last, node);
    }
    walk.end();
}

/// Bytes of the array with one owner and no gap, in the order of memory.
fn segments(array: &DistributedArray, mut tell: impl FnMut(u64, u64, u64)) {
    let dims = array.dims();
    // Inside of this dimension all elements of an index have one owner.
    let finest = dims.iter().rposition(|d| d.parts() > 1).unwrap_or(0);
    let stride = array.stride(finest);
    let row = if finest + 1 == dims.len() && dims.len() > 1 {
        array.leading() * array.element()
    } else {
        dims[finest].extent() * stride
    };
    let mut at = [0u64; DIMENSIONS];
    let mut base = 0;
    loop {
        let outer = dims[..finest].iter().zip(at).fold(0, |part, (d, i)| part * d.parts() + d.owner(i));
        let mut index = 0;
        while index < dims[finest].extent() {
            let end = dims[finest].same_owner_until(index);
            let part = outer * dims[finest].parts() + dims[finest].owner(index);
            let inner: u64 = dims[finest + 1..].iter().map(|d| d.parts()).product();
            let last = if end == dims[finest].extent() { row } else { end * stride };
            tell(base + index * stride, base + last, part * inner);
            index = end;
        }
        base += row;
        // The next tuple of the outer dimensions.
        let Some(dim) = (0..finest).rev().find(|d| at[*d] + 1 < dims[*d].extent()) else { return };
        at[dim] += 1;
        at[dim + 1..finest].fill(0);
    }
}

struct Walk<F> {
    page: u64,
    /// Bytes of each node in the page that is not complete.
    shares: Vec<(u16, u64)>,
    page_of_shares: u64,
    run: Option<OwnedPages>,
    tell: F,
}

impl<F: FnMut(OwnedPages)> Walk<F> {
    fn feed(&mut self, mut begin: u64, end: u64, node: u16) {
        while begin < end {
            let number = begin / self.page;
            if begin.is_multiple_of(self.page) && end - begin >= self.page {
                let pages = Run { begin: number, end: end / self.page };
                self.add(OwnedPages { pages, node, stray: 0 });
                begin = pages.end * self.page;
                continue;
            }
            let stop = end.min((number + 1) * self.page);
            self.page_of_shares = number;
            match self.shares.iter_mut().find(|s| s.0 == node) {
                Some(share) => share.1 += stop - begin,
                None => self.shares.push((node, stop - begin)),
            }
            begin = stop;
            if begin.is_multiple_of(self.page) {
                self.close();
            }
        }
    }

    /// The page that had several segments is complete.
    fn close(&mut self) {
        let all: u64 = self.shares.iter().map(|s| s.1).sum();
        let most = self.shares.iter().max_by_key(|s| (s.1, std::cmp::Reverse(s.0))).copied();
        self.shares.clear();
        if let Some((node, bytes)) = most {
            let pages = Run { begin: self.page_of_shares, end: self.page_of_shares + 1 };
            self.add(OwnedPages { pages, node, stray: all - bytes });
        }
    }

    fn add(&mut self, new: OwnedPages) {
        match &mut self.run {
            Some(run) if run.node == new.node => {
                run.pages.end = new.pages.end;
                run.stray += new.stray;
            }
            _ => {
                if let Some(run) = self.run.replace(new) {
                    (self.tell)(run);
                }
            }
        }
    }

    fn end(mut self) {
        self.close();
        if let Some(run) = self.run {
            (self.tell)(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::DimensionFormat;
    use crate::distribution::tests::{any_array, every_index};
    use proptest::prelude::*;

    fn runs(array: &DistributedArray, offset: u64, page: u64) -> Vec<OwnedPages> {
        let mut runs = Vec::new();
        each(array, offset, page, |part| part as u16, |run| runs.push(run));
        runs
    }

    #[test]
    fn a_border_inside_of_a_page_is_stray() {
        // Two blocks of 768 bytes in pages of 1 KiB.
        let array = DistributedArray::new(&[192], &[DimensionFormat::Block], 8, 2).unwrap();
        assert_eq!(
            runs(&array, 0, 1024),
            [
                OwnedPages { pages: Run { begin: 0, end: 1 }, node: 0, stray: 256 },
                OwnedPages { pages: Run { begin: 1, end: 2 }, node: 1, stray: 0 },
            ]
        );
        let cyclic =
            DistributedArray::new(&[4, 128], &[DimensionFormat::Cyclic(1), DimensionFormat::Star], 8, 2)
                .unwrap();
        assert_eq!(runs(&cyclic, 0, 1024).iter().map(|r| r.node).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(runs(&cyclic, 512, 1024).iter().map(|r| r.stray).sum::<u64>(), 3 * 512);
    }

    proptest! {
        #[test]
        fn pages_follow_the_owners_of_their_elements(
            (extents, specs) in any_array(), parts in 1u64..7, offset in 0u64..8,
        ) {
            let (element, page) = (8, 64);
            let array = DistributedArray::new(&extents, &specs, element, parts).unwrap();
            let mut bytes = std::collections::BTreeMap::<u64, Vec<u64>>::new();
            for (n, indices) in every_index(&extents).iter().enumerate() {
                let number = (offset * element + n as u64 * element) / page;
                let owners = bytes.entry(number).or_insert_with(|| vec![0; parts as usize]);
                owners[array.owner(indices) as usize] += element;
            }
            let mut expected = Vec::new();
            let mut stray = 0;
            for (number, owners) in &bytes {
                let most = *owners.iter().max().unwrap();
                expected.push((*number, owners.iter().position(|b| *b == most).unwrap() as u16));
                stray += owners.iter().sum::<u64>() - most;
            }
            let runs = runs(&array, offset * element, page);
            let found: Vec<(u64, u16)> =
                runs.iter().flat_map(|r| (r.pages.begin..r.pages.end).map(|p| (p, r.node))).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(runs.iter().map(|r| r.stray).sum::<u64>(), stray);
        }

        #[test]
        fn padded_arrays_have_no_stray_bytes(
            (extents, specs) in any_array(), parts in 1u64..7, scale in 1u64..40,
        ) {
            let extents: Vec<u64> = extents.iter().map(|e| e * scale).collect();
            // An innermost cyclic dimension has chunks of whole pages, or is refused.
            let Ok(array) = DistributedArray::padded(&extents, &specs, 8, parts, 64) else {
                let last = specs.last().copied();
                prop_assert!(matches!(last, Some(DimensionFormat::Cyclic(size)) if size % 8 != 0));
                return Ok(());
            };
            prop_assert_eq!(runs(&array, 0, 64).iter().map(|r| r.stray).sum::<u64>(), 0);
            let pages: u64 = runs(&array, 0, 64).iter().map(|r| r.pages.len()).sum();
            prop_assert_eq!(pages, array.bytes().div_ceil(64));
        }
    }
}
