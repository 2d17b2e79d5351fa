//! One sum, and how it becomes one of a coarser resolution.

use super::SumKind;

/// Bits of an object's place.
pub const OBJECT_BITS: u32 = 16;
/// Bits of a page, and of a number of pages.
pub const PAGE_BITS: u32 = 38;
/// Bits of a column.
pub const COLUMN_BITS: u32 = 24;
/// Bits of a node's index.
pub const NODE_BITS: u32 = 11;

/// Where a sum belongs. Keys are ordered by object, page, column, node, and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumCell {
    /// Place of the object.
    pub object: u32,
    /// First page.
    pub page: u64,
    /// Position of the first interval, divided by the intervals of a cell.
    pub column: u32,
    /// Index of the node.
    pub node: u32,
    /// Pages: those of a cell, or more where a row stays whole.
    pub pages: u64,
}

/// A cell as one number, for sorting: object, page and column, then node and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SumKey(u128);

impl SumKey {
    /// The key of a cell whose numbers have room.
    pub fn of(cell: &SumCell) -> Self {
        let mut key = u128::from(cell.object);
        key = key << PAGE_BITS | u128::from(cell.page);
        key = key << COLUMN_BITS | u128::from(cell.column);
        key = key << NODE_BITS | u128::from(cell.node);
        Self(key << PAGE_BITS | u128::from(cell.pages))
    }

    /// The cell of a key.
    pub const fn cell(self) -> SumCell {
        const fn low(key: u128, bits: u32) -> u64 {
            (key & ((1 << bits) - 1)) as u64
        }
        let key = self.0;
        let pages = low(key, PAGE_BITS);
        let key = key >> PAGE_BITS;
        let node = low(key, NODE_BITS) as u32;
        let key = key >> NODE_BITS;
        let column = low(key, COLUMN_BITS) as u32;
        let key = key >> COLUMN_BITS;
        let page = low(key, PAGE_BITS);
        SumCell { object: low(key >> PAGE_BITS, OBJECT_BITS) as u32, page, column, node, pages }
    }
}

const _: () = assert!(OBJECT_BITS + 2 * PAGE_BITS + COLUMN_BITS + NODE_BITS <= 128);

/// Two numbers of a cell. Those of homes are signed, in two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The cell.
    pub key: SumKey,
    /// See [`super`].
    pub first: u64,
    /// See [`super`].
    pub second: u64,
}

impl Sum {
    /// Adds the numbers of another sum of the same cell.
    #[inline]
    pub const fn add(&mut self, other: &Self, kind: SumKind) {
        match kind {
            SumKind::Homes => {
                self.first = self.first.wrapping_add(other.first);
                self.second = self.second.wrapping_add(other.second);
            }
            SumKind::Touches | SumKind::Moves => {
                self.first = self.first.saturating_add(other.first);
                self.second = self.second.saturating_add(other.second);
            }
        }
    }

    /// The sum for cells of `1 << shift` pages. A run of pages that fits no such cell stays as it
    /// is.
    #[must_use]
    pub fn wider(&self, shift: u32) -> Self {
        let mut cell = self.key.cell();
        let last = (cell.page + cell.pages.max(1) - 1) >> shift;
        if cell.page >> shift != last {
            return *self;
        }
        cell.page = last << shift;
        cell.pages = 1 << shift;
        Self { key: SumKey::of(&cell), ..*self }
    }

    /// The sum for cells of `1 << to` intervals, of one for cells of `1 << from`.
    #[must_use]
    pub fn longer(&self, from: u32, to: u32, kind: SumKind) -> Self {
        let mut cell = self.key.cell();
        let coarse = cell.column >> (to - from);
        let mut second = self.second;
        if kind == SumKind::Homes {
            let later = u64::from(cell.column - (coarse << (to - from))) << from;
            second = second.wrapping_add(self.first.wrapping_mul(later));
        }
        cell.column = coarse;
        Self { key: SumKey::of(&cell), second, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: SumCell = SumCell { object: 3, page: 20, column: 5, node: 2, pages: 4 };

    #[test]
    fn a_key_holds_a_cell_and_orders_by_page_first() {
        let most = |bits: u32| (1_u64 << bits) - 1;
        let large = SumCell {
            object: most(OBJECT_BITS) as u32,
            page: most(PAGE_BITS),
            column: most(COLUMN_BITS) as u32,
            node: most(NODE_BITS) as u32,
            pages: most(PAGE_BITS),
        };
        for cell in [CELL, large, SumCell { object: 0, page: 0, column: 0, node: 0, pages: 0 }] {
            assert_eq!(SumKey::of(&cell).cell(), cell);
        }
        assert!(SumKey::of(&CELL) < SumKey::of(&SumCell { page: 21, column: 0, ..CELL }));
        assert!(SumKey::of(&CELL) < SumKey::of(&SumCell { column: 6, node: 0, ..CELL }));
    }

    #[test]
    fn a_run_that_crosses_cells_stays_whole() {
        let sum = Sum { key: SumKey::of(&CELL), first: 7, second: 1 };
        assert_eq!(sum.wider(3).key.cell(), SumCell { page: 16, pages: 8, ..CELL });
        let across = Sum { key: SumKey::of(&SumCell { page: 22, ..CELL }), ..sum };
        assert_eq!(across.wider(3), across, "pages 22 to 25 lie in two cells of eight");
        assert_eq!(across.wider(4).key.cell(), SumCell { page: 16, pages: 16, ..CELL });
    }

    #[test]
    fn homes_keep_their_page_intervals_when_cells_become_longer() {
        // Four pages came one interval after column 5 of four intervals began: 21 of 0 to 31.
        let sum = Sum { key: SumKey::of(&CELL), first: 4, second: 4 };
        let longer = sum.longer(2, 4, SumKind::Homes);
        assert_eq!(longer.key.cell().column, 1);
        assert_eq!((longer.first, longer.second), (4, 4 * 5), "five intervals after 16");
        let other = sum.longer(2, 4, SumKind::Touches);
        assert_eq!((other.first, other.second), (4, 4));
    }
}
