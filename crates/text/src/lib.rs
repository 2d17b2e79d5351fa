//! Reports as lines and tables for a terminal of a given width; and as rows for `--csv` and
//! `--fail-if`.
//!
//! | module | what |
//! |---|---|
//! | [`human`] | numbers, sizes, times and shares as people read them |
//! | [`layout`] | tables that break no word |
//! | [`table`] | a table of results in that form |
//! | [`answer`] | the first lines on a recording, and the notes below its tables |
//! | [`objects`] | its tables: a row an object |
//! | [`touchers`] | who touched an object's pages first |
//! | [`page`] | all of that together |
//! | [`map`] | the residency picture |
//! | [`measured`] | what memory costs: matrices and rows |
//! | [`explained`] | what to change in the source, as text and as Markdown |
//! | [`planned`] | a plan, and what it is expected to bring |
//! | [`compared`] | placement schemes and yardsticks of one recording |
//! | [`changes`] | what changed from one recording to another |
//!
//! Nothing here knows a terminal: widths and colours come in as arguments, text goes out.

#![forbid(unsafe_code)]

pub mod answer;
pub mod changes;
pub mod compared;
pub mod explained;
pub mod human;
pub mod layout;
pub mod map;
pub mod measured;
pub mod objects;
pub mod page;
pub mod planned;
pub mod table;
pub mod touchers;
