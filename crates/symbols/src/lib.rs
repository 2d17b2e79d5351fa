//! Names for the addresses of a recording: static objects, and the places in the source that
//! allocations and regions come from.
//!
//! Done right after the run, while the program's own files are still those that ran. What cannot be
//! found out is left out: a place without a name is shown as an address.

#![forbid(unsafe_code)]

mod allocation;
mod avx512;
mod binary;
mod commons;
mod dwarf;
mod flow;
mod image;
mod names;
mod naming;
mod places;
mod resolver;
mod site;
mod statics;
mod text;
mod variable;
mod variables;

pub use avx512::has_avx512;
pub use binary::build_id;
pub use commons::{Common, commons_of};
pub use places::{AddressList, LineOf, PlacesFound, addresses_of, resolve};
pub use resolver::Resolver;
pub use statics::statics_of;
pub use variable::{Dimension, ElementOrder, FoundBy, StaticVariable, StructField, Variable, VariableScope};
pub use variables::add_variables;
