//! Rows of an array on pages of their own: an array as it would be with padding.

use std::collections::BTreeMap;

use homenode_model::ObjectId;

/// The rows of an object, and how far apart they would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayRows {
    /// Bytes of a row.
    pub bytes: u64,
    /// Bytes from one row to the next, a multiple of a page. The first row begins on a page.
    pub padded: u64,
}

/// Objects whose rows lie on pages of their own. An object's number is the same whenever its
/// recording is read.
pub type Padding = BTreeMap<ObjectId, ArrayRows>;

impl ArrayRows {
    /// Rows at most: each takes an entry of the address space's table.
    pub const MOST: u64 = 1 << 16;

    /// Bytes that an object takes; `None` where it cannot be padded.
    pub fn total(&self, bytes: u64) -> Option<u64> {
        let rows =
            bytes.checked_div(self.bytes)?.checked_add(u64::from(!bytes.is_multiple_of(self.bytes)))?;
        let holds = self.padded >= self.bytes && rows <= Self::MOST;
        holds.then(|| rows.checked_mul(self.padded)).flatten()
    }
}
