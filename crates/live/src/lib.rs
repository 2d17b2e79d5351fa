//! Running a program under the live runtime, for `homenode run` and `homenode record --on live`.
//!
//! | step | where |
//! |---|---|
//! | whether the library can be loaded into the program | [`homenode_launch::loadable`] |
//! | the policies, and a policy with its time of arming | [`policies`], [`policy`] |
//! | the CPU time that homenode may spend | [`budget`] |
//! | a plan that the run follows | [`planned`] |
//! | environment, settings and plan for the library; its report | [`prepare`] |
//! | the data set that the library's streams become | [`recording`] |

#![forbid(unsafe_code)]

pub mod budget;
pub mod planned;
pub mod policies;
pub mod policy;
pub mod prepare;
pub mod recording;
