//! Moving by `Mechanism::Protect` with this machine's nodes, in a process in which something can
//! pin memory.

use homenode_runtime::moving::Mechanism;

#[path = "moving/pinned.rs"]
mod pinned;

const MECHANISM: Mechanism = Mechanism::Protect;
