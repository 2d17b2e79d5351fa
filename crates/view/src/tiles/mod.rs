//! Pictures of a data set at several resolutions, small enough for a screen.
//!
//! | module | what |
//! |---|---|
//! | [`axis`] | intervals as columns, pages as bands |
//! | [`grid`] | pages × time of one object: homes, who touches, moves |
//! | [`nodes`] | nodes by index |
//! | [`plane`] | numbers of cells, packed |
//! | [`pyramid`] | sums at many resolutions on disk: any window is drawn in milliseconds |
//! | [`moves`] | moves by interval, route and cause; the moves that are told one by one |
//! | [`traffic`] | accesses from node to node, by object, time and region |
//! | [`rounds`] | times of the outer loop's iterations |
//! | [`build`](mod@build) | one pass over the tables fills them all |
//!
//! Everything here follows from the tables and the [`build::PyramidBudget`] alone: the same data
//! set gives the same bytes. Memory is bounded by the budget, not by rows.

pub mod axis;
pub mod build;
pub mod grid;
pub mod moves;
pub mod nodes;
pub mod plane;
pub mod pyramid;
pub mod rounds;
pub mod traffic;
