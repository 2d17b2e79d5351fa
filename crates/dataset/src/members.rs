//! A merged data set: members that read as one.
//!
//! Merging copies; nothing is written anew. Each member keeps its tables, and `dataset.json` says
//! what a reader adds to its numbers. So an object of one member and one of another never share a
//! number, and the tables of all members read as one table.
//!
//! | number | in the merged data set |
//! |---|---|
//! | object, region, interval, thread, process | a range for each member |
//! | node | a range for each machine: members of one host and machine share it |
//! | page, CPU, iteration | as in the member |
//!
//! The tables `nodes` and `links` come from the first member of each machine alone.

use serde::{Deserialize, Serialize};

use crate::column::Chunk;
use crate::schema::ColumnInfo;

/// The folder of the members; each has a number of four digits as its name.
pub const MEMBERS: &str = "members";
/// Most members.
pub const MOST: usize = 1 << 16;

/// What a reader adds to a member's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bases {
    /// Added to the numbers of objects.
    pub object: u64,
    /// Added to the numbers of regions.
    pub region: u64,
    /// Added to the numbers of intervals.
    pub interval: u64,
    /// Added to the numbers of threads.
    pub thread: u64,
    /// Added to the numbers of processes.
    pub process: u64,
    /// Added to the numbers of nodes.
    pub node: u64,
    /// Whether its tables `nodes` and `links` count: it is the first member of its machine.
    pub machine: bool,
}

impl Bases {
    /// What is added to the numbers of a column.
    pub(crate) fn of(&self, column: &str) -> u64 {
        match column {
            "object" => self.object,
            "region" => self.region,
            "interval" | "until" => self.interval,
            "thread" => self.thread,
            "process" => self.process,
            "node" | "home" | "from_node" | "to_node" => self.node,
            _ => 0,
        }
    }

    /// Whether the table of this member counts.
    pub(crate) fn has(&self, table: &str) -> bool {
        self.machine || !matches!(table, "nodes" | "links")
    }

    pub(crate) fn add_to(&self, chunk: &mut Chunk, columns: &[ColumnInfo]) {
        for (column, info) in chunk.columns.iter_mut().zip(columns) {
            column.add(self.of(info.name));
        }
    }
}

/// The name of a member's folder.
pub fn folder(number: usize) -> String {
    format!("{number:04}")
}
