//! What a run under the live runtime brought, from the facts that the library in the program left:
//! plain data and text, no terminal.
//!
//! | what | where |
//! |---|---|
//! | the reports of a run's processes, read back | [`facts`] |
//! | names from the source, and what to change there | [`advice`] |
//! | whether moving pages paid | [`worked`](mod@worked) |
//! | the answer in three lines | [`answer`] |
//! | loops whose iterations homenode hands out | [`schedule`] |
//! | the closing report, as text and as JSON | [`report`] |
//! | times, shares and lines | [`text`] |

#![forbid(unsafe_code)]

pub mod advice;
pub mod answer;
pub mod facts;
pub mod report;
pub mod schedule;
pub mod text;
pub mod worked;
