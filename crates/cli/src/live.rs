//! Running a program under the live runtime: `homenode run`.
//!
//! | step | where |
//! |---|---|
//! | whether the library can be loaded into the program, and why not |
//! [`homenode_launch::loadable`] | | the policies | [`policies`] | | the nodes that the library in
//! the program works with | [`homenode_runtime::nodes`] | | the closing report, from the facts that
//! the library left | [`homenode_verdict`] | | the data set of `--record` | [`recording`] | | the
//! folder to which the library reports | [`run_folder`] |

pub mod policies;
pub mod recording;
pub mod run_folder;
