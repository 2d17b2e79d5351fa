//! The live runtime: what homenode does inside a running program.
//!
//! | what | where |
//! |---|---|
//! | which region runs, and which of them make an iteration | [`regions`] |
//! | which node touches what | [`watch`] |
//! | pages to their nodes: next touch, kernel moves, pretended nodes | [`moving`] |
//! | events to the policy, its decisions to [`moving`] | [`driver`] |
//! | the budget of own time, and whether moving pays | [`guard`] |
//! | what is said at the end | [`report`] |
//! | the nodes that this process may use | [`nodes`] |
//! | threads of homenode's own | [`own_thread`] |
//! | what happens, for a recording | [`stream`] |
//! | what the program places itself, by the C API | [`placing`] |
//!
//! It lives in somebody else's process. Nothing here panics across the program's border or
//! allocates in a signal handler, `errno` is kept, and a failure turns homenode off, never the
//! program.

pub mod driver;
pub mod guard;
pub mod moving;
pub mod nodes;
pub mod own_thread;
pub mod placing;
pub mod regions;
pub mod report;
pub mod stream;
pub mod watch;
