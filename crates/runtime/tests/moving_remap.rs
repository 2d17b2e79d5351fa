//! Moving by `Mechanism::CopyRemap`, with two pretended nodes.

use homenode_runtime::moving::Mechanism;

#[path = "moving/cases.rs"]
mod cases;

const MECHANISM: Mechanism = Mechanism::CopyRemap;
