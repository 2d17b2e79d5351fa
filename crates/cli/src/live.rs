//! Running a program under the live runtime: `homenode run`.
//!
//! | step | where |
//! |---|---|
//! | whether the library can be loaded into the program | [`homenode_launch::loadable`] |
//! | the policies | [`policies`] |
//! | the nodes that the library works with | [`homenode_runtime::nodes`] |
//! | the closing report, from the facts that the library left | [`homenode_verdict`] |
//! | the data set of `--record` | [`recording`] |
//! | the folder to which the library reports | [`homenode_scratch`] |

pub mod policies;
pub mod recording;
