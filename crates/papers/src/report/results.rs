//! What all tables and figures yielded.

use serde_json::Value;

use crate::catalogue::Entry;

/// What a table or figure yielded.
#[derive(Clone, Debug)]
pub struct Done {
    /// Which.
    pub entry: &'static Entry,
    /// The table's JSON with `verdicts`, `lacks`, `seconds` and `command`; or `error`.
    pub result: Value,
}

/// All tables and figures that were asked for.
#[derive(Clone, Debug)]
pub struct Report {
    /// In the order of the catalogue.
    pub done: Vec<Done>,
    /// Somebody asked to stop before all were done, or one failed.
    pub partial: bool,
    pub(super) small: bool,
}
