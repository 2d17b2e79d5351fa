//! Running a program under the live runtime: `homenode run`.
//!
//! | step | where |
//! |---|---|
//! | what can be loaded into the program, what stands in the way | [`program`] |
//! | the policies that it takes | [`policies`] |
//! | the nodes that the library in the program is told of | [`homenode_runtime::nodes`] |
//! | what that library left behind | [`facts`] |
//! | and for a recording, who was seen where | [`touched`] |
//! | the closing report on it | [`report`], [`advice`] |

pub mod advice;
pub mod facts;
pub mod policies;
pub mod program;
pub mod report;
pub mod touched;
