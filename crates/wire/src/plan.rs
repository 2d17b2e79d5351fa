//! A plan of an earlier run, as the library in the program needs it.
//!
//! The launcher has found out which addresses of the program's file mean which place of the source.
//! The library looks nothing up: it compares return addresses.

use std::ops::Range;

use homenode_model::{Bytes, NodeId};
use serde::{Deserialize, Serialize};

use crate::bounded::{list, text};
use crate::frame::{Conversation, Message};

/// The name of the plan's file in the folder of the run.
pub const FILE: &str = "plan";
/// Threads that a plan is for.
pub const THREADS: usize = 1 << 16;
/// Places in the source.
pub const SITES: usize = 1 << 16;
/// Ranges of instructions of a place.
pub const RANGES: usize = 1 << 14;
/// Objects.
pub const OBJECTS: usize = 1 << 20;
/// Stretches of an object with a home each.
pub const HOMES: usize = 1 << 20;

/// Addresses in the program's file.
pub type Addresses = Range<u64>;

/// A place in the source where objects are allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its instructions.
    #[serde(serialize_with = "list::write::<RANGES, _, _>", deserialize_with = "list::read::<RANGES, _, _>")]
    pub own: Vec<Addresses>,
    /// Instructions of the calls that lead to it; empty: any.
    #[serde(serialize_with = "list::write::<RANGES, _, _>", deserialize_with = "list::read::<RANGES, _, _>")]
    pub callers: Vec<Addresses>,
}

/// How an object is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recognition {
    /// By its address in the program's file.
    Static {
        /// The address.
        address: u64,
    },
    /// By the place in the source that allocates it.
    Site {
        /// Index into [`HomePlan::sites`].
        site: u32,
        /// Index of its first allocation among those of the place.
        first: u32,
        /// How many allocations from there on.
        count: u32,
    },
    /// By its size.
    Size {
        /// Index of its first allocation among those of the same size.
        first: u32,
        /// How many allocations from there on.
        count: u32,
    },
}

/// A stretch of an object and its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Where it begins, from the object's first byte.
    pub offset: Bytes,
    /// Its length.
    pub bytes: Bytes,
    /// The node.
    pub node: NodeId,
}

/// A planned object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPlan {
    /// How it is recognised.
    pub how: Recognition,
    /// Its size.
    pub bytes: Bytes,
    /// Where its pages go, by offset.
    #[serde(serialize_with = "list::write::<HOMES, _, _>", deserialize_with = "list::read::<HOMES, _, _>")]
    pub homes: Vec<Home>,
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomePlan {
    /// Threads that the launcher expects.
    pub threads: u32,
    /// Nodes of the threads that the plan is for.
    #[serde(serialize_with = "list::write::<THREADS, _, _>")]
    #[serde(deserialize_with = "list::read::<THREADS, _, _>")]
    pub nodes: Vec<NodeId>,
    /// The program's file, to which addresses belong.
    #[serde(with = "text")]
    pub path: String,
    /// Places in the source.
    #[serde(serialize_with = "list::write::<SITES, _, _>", deserialize_with = "list::read::<SITES, _, _>")]
    pub sites: Vec<Site>,
    /// Objects.
    #[serde(serialize_with = "list::write::<OBJECTS, _, _>")]
    #[serde(deserialize_with = "list::read::<OBJECTS, _, _>")]
    pub objects: Vec<ObjectPlan>,
}

impl Message for HomePlan {
    const KIND: Conversation = Conversation::Plan;
    const VERSION: u16 = 1;
    const MOST: usize = 64 << 20;
}
