//! What an allocation is assigned to.

/// A target of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As the source writes it, without an index's value: `u`, `g->cells`, `rows[]`.
    pub name: String,
    /// The variable at its root.
    pub root: String,
    /// The function that is called, or `new`; empty for Fortran's `allocate`.
    pub call: String,
    /// The line of the target.
    pub line: u32,
}
