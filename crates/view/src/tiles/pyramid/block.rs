//! Sums of one object in the order of their keys, as bytes.
//!
//! A byte of flags and a node, then numbers of seven bits a byte: the distance in pages to the sum
//! before (absent: the same page), pages (absent: as before), column (its distance on the same
//! page), first number, second number (absent: zero, or the first). Numbers of homes are signed.

use super::SumKind;
use super::sums::{COLUMN_BITS, NODE_BITS, OBJECT_BITS, PAGE_BITS, Sum, SumCell};

/// Most sums of a block.
pub const MOST: usize = 4096;

const SAME_PAGE: u8 = 1;
const SAME_PAGES: u8 = 2;
const SECOND_IS_ZERO: u8 = 4;
const SECOND_IS_FIRST: u8 = 8;
/// Nodes below this one lie in the flags' upper half.
const FAR: u32 = 15;

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Numbers of seven bits a byte, the lowest first.
pub(super) struct Numbers<'a>(pub &'a [u8]);

impl Numbers<'_> {
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number; none where the bytes end or it is longer than 64 bits.
    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

const fn zigzag(n: u64) -> u64 {
    (n << 1) ^ ((n as i64) >> 63) as u64
}

const fn unzigzag(n: u64) -> u64 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

/// Writes sums of one object, which are in the order of their keys.
pub fn encode(sums: &[Sum], kind: SumKind, out: &mut Vec<u8>) {
    let mut last = SumCell { object: 0, page: 0, column: 0, node: 0, pages: 0 };
    for sum in sums {
        let cell = sum.key.cell();
        let mut flags = (cell.node.min(FAR) as u8) << 4;
        flags |= if cell.page == last.page { SAME_PAGE } else { 0 };
        flags |= if cell.pages == last.pages { SAME_PAGES } else { 0 };
        flags |= match sum.second {
            0 => SECOND_IS_ZERO,
            n if n == sum.first => SECOND_IS_FIRST,
            _ => 0,
        };
        out.push(flags);
        if cell.node >= FAR {
            put(out, u64::from(cell.node));
        }
        if cell.page != last.page {
            put(out, cell.page - last.page);
            last.column = 0;
        }
        if cell.pages != last.pages {
            put(out, cell.pages);
        }
        put(out, u64::from(cell.column - last.column));
        let number = if kind == SumKind::Homes { zigzag } else { |n| n };
        put(out, number(sum.first));
        if flags & (SECOND_IS_ZERO | SECOND_IS_FIRST) == 0 {
            put(out, number(sum.second));
        }
        last = cell;
    }
}

/// Reads the sums of a block, one by one. False: the bytes are no such block.
pub fn decode(bytes: &[u8], object: u32, kind: SumKind, mut each: impl FnMut(&SumCell, u64, u64)) -> bool {
    let mut bytes = Numbers(bytes);
    let mut cell = SumCell { object, page: 0, column: 0, node: 0, pages: 0 };
    let mut one = |bytes: &mut Numbers<'_>| {
        let flags = bytes.byte()?;
        cell.node = u32::from(flags >> 4);
        if cell.node == FAR {
            cell.node = u32::try_from(bytes.next()?).ok().filter(|n| n >> NODE_BITS == 0)?;
        }
        if flags & SAME_PAGE == 0 {
            cell.page = cell.page.checked_add(bytes.next()?)?;
            cell.column = 0;
        }
        if flags & SAME_PAGES == 0 {
            cell.pages = bytes.next()?;
        }
        cell.column = u32::try_from(u64::from(cell.column).checked_add(bytes.next()?)?).ok()?;
        let fits = cell.page >> PAGE_BITS == 0 && cell.pages >> PAGE_BITS == 0;
        if !fits || cell.column >> COLUMN_BITS != 0 {
            return None;
        }
        let number = if kind == SumKind::Homes { unzigzag } else { |n| n };
        let first = number(bytes.next()?);
        let second = match flags & (SECOND_IS_ZERO | SECOND_IS_FIRST) {
            0 => number(bytes.next()?),
            SECOND_IS_ZERO => 0,
            _ => first,
        };
        each(&cell, first, second);
        Some(())
    };
    while !bytes.0.is_empty() {
        if one(&mut bytes).is_none() {
            return false;
        }
    }
    true
}

/// What the index says of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockEntry {
    /// What it sums.
    pub kind: SumKind,
    /// Index of its resolution.
    pub resolution: u32,
    /// Place of its object.
    pub object: u32,
    /// First page.
    pub page: u64,
    /// The page behind the last one.
    pub end: u64,
    /// First column.
    pub first: u32,
    /// Last column.
    pub last: u32,
    /// Byte of the file at which it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Their checksum.
    pub sum: u32,
}

impl BlockEntry {
    /// Writes what the index says, behind the entry before.
    pub fn encode(&self, offset: u64, out: &mut Vec<u8>) {
        let numbers = [
            self.kind as u64,
            self.resolution.into(),
            self.object.into(),
            self.page,
            self.end - self.page,
            self.first.into(),
            (self.last - self.first).into(),
            self.offset - offset,
            self.bytes.into(),
            self.sum.into(),
        ];
        numbers.into_iter().for_each(|n| put(out, n));
    }

    /// Reads what [`BlockEntry::encode`] wrote.
    pub(super) fn decode(bytes: &mut Numbers<'_>, offset: u64) -> Option<Self> {
        let mut small = |bits: u32| bytes.next().filter(|n| n >> bits == 0);
        let kind = *SumKind::ALL.get(small(2)? as usize)?;
        let (resolution, object) = (small(16)? as u32, small(OBJECT_BITS)? as u32);
        let page = small(PAGE_BITS)?;
        let end = page + small(PAGE_BITS + 1)?;
        let first = small(COLUMN_BITS)? as u32;
        let last = first + small(COLUMN_BITS)? as u32;
        let offset = offset.checked_add(small(60)?)?;
        let (bytes, sum) = (small(32)? as u32, small(32)? as u32);
        Some(Self { kind, resolution, object, page, end, first, last, offset, bytes, sum })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sums::SumKey;
    use super::*;

    fn sums() -> Vec<Sum> {
        let cell = SumCell { object: 9, page: 1, column: 100, node: 0, pages: 16 };
        let of = |cell: SumCell, first: i64, second: i64| Sum {
            key: SumKey::of(&cell),
            first: first as u64,
            second: second as u64,
        };
        vec![
            of(cell, 5, 0),
            of(SumCell { node: 3, ..cell }, 5, 5),
            of(SumCell { node: 14, column: 101, ..cell }, 1 << 60, 3),
            of(SumCell { node: 15, column: 101, ..cell }, 0, 0),
            of(SumCell { node: 1024, column: 1 << 23, ..cell }, 1, 2),
            of(SumCell { page: 1 << 37, pages: 1, column: 0, ..cell }, 300, 299),
        ]
    }

    #[test]
    fn a_block_gives_back_its_sums() {
        for kind in SumKind::ALL {
            let mut sums = sums();
            if kind == SumKind::Homes {
                sums.iter_mut().for_each(|s| s.first = s.first.wrapping_neg());
            }
            let mut bytes = Vec::new();
            encode(&sums, kind, &mut bytes);
            let mut back = Vec::new();
            let whole = decode(&bytes, 9, kind, |cell, first, second| {
                back.push(Sum { key: SumKey::of(cell), first, second });
            });
            assert!(whole);
            assert_eq!(back, sums);
            for cut in 1..bytes.len() {
                // A block that ends behind a sum is a shorter block: the index has its checksum.
                decode(&bytes[..cut], 9, kind, |_, _, _| {});
            }
        }
    }

    #[test]
    fn numbers_that_have_no_room_are_refused() {
        let mut bytes = vec![0];
        [1 << PAGE_BITS, 1, 0, 1, 0].into_iter().for_each(|n| put(&mut bytes, n));
        assert!(!decode(&bytes, 0, SumKind::Touches, |_, _, _| panic!("a page out of range")));
        assert!(!decode(&[0, 0xff, 0xff], 0, SumKind::Touches, |_, _, _| {}), "cut off");
        assert!(!decode(&[0xf0, 0xff, 0xff, 0xff, 0x7f], 0, SumKind::Touches, |_, _, _| {}), "a node");
    }

    #[test]
    fn an_entry_of_the_index_comes_back() {
        let entry = BlockEntry {
            kind: SumKind::Moves,
            resolution: 7,
            object: 12,
            page: 40,
            end: 90,
            first: 3,
            last: 8,
            offset: 1000,
            bytes: 77,
            sum: 0xffff_ffff,
        };
        let mut bytes = Vec::new();
        entry.encode(900, &mut bytes);
        assert_eq!(BlockEntry::decode(&mut Numbers(&bytes), 900), Some(entry));
        assert_eq!(BlockEntry::decode(&mut Numbers(&bytes[..5]), 900), None);
    }
}
