//! Whether recordings and journals can be trusted, as tables of results.
//!
//! | what | where |
//! |---|---|
//! | whether a recording is whole | [`whole`] |
//! | whether two recordings of one program agree | [`agree`] |
//! | whether a policy decides again what its journal says | [`journal`] |

#![forbid(unsafe_code)]

pub mod agree;
pub mod journal;
pub mod whole;
