//! Older versions of the format, brought to the newest while they are read.
//!
//! A change of the format is five things, in one commit: a higher [`VERSION`], a step here, a line
//! in the table, a fixture of the version before in `fixtures/dataset`, and a note in
//! `CHANGELOG.md`. A new column that may lack values, or a new table, needs none of them: older
//! tables read as if they had the column without values.
//!
//! | version | what changed |
//! |---|---|
//! | 1 | the first |

use serde_json::Value;

use crate::meta::VERSION;

/// The step from version `i + 1` to `i + 2` of `dataset.json`.
const STEPS: [fn(Value) -> Value; VERSION as usize - 1] = [];

/// `dataset.json` of version `from` as one of the newest version.
pub(crate) fn meta(value: Value, from: u32) -> Value {
    STEPS.iter().skip(from.saturating_sub(1) as usize).fold(value, |value, step| step(value))
}
