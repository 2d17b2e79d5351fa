//! Running a program under the live runtime: `homenode run`.
//!
//! | step | where |
//! |---|---|
//! | what can be loaded into the program, what stands in the way | [`homenode_launch::loadable`] |
//! | the policies that it takes | [`policies`] |
//! | the nodes that the library in the program is told of | [`homenode_runtime::nodes`] |
//! | what that library left behind, and the closing report on it | [`homenode_verdict`] |
//! | a data set of what happened | [`recording`] |

pub mod policies;
pub mod recording;
