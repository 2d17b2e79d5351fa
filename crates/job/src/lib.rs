//! One summary for a job of several ranks, as `mpirun homenode run -- ./app` starts them.
//!
//! Each rank leaves a part at its end. The rank that leaves the last part puts all of them into the
//! summary. If a rank never leaves a part, `homenode rec merge` makes a summary of the others.
//!
//! | what | where |
//! |---|---|
//! | a rank's part | [`part`] |
//! | the CPUs and nodes that a rank may use | [`place`] |
//! | the folder where the parts of a job meet | [`meeting`] |
//! | slow ranks | [`slow`] |
//! | ranks that share memory or CPUs | [`sharing`] |
//! | the summary as a table and as JSON | [`summary`] |

#![forbid(unsafe_code)]

pub mod meeting;
pub mod part;
pub mod place;
pub mod sharing;
pub mod slow;
pub mod summary;
