//! Which machines a recording's filter suits.
//!
//! # Problem
//! The recorder drops accesses that hit in a direct-mapped filter (per thread, emptied at every
//! synchronisation). A machine must not be able to see the difference.
//!
//! # Why it is exact
//! Let the first level have the filter's line size and at least as many sets (both are powers of
//! two), and belong to one CPU with one thread. All lines of a cache set then share one filter set.
//! A filter hit on X says that this thread's last access to that filter set was to X; so was its
//! last one to X's cache set, and X is the most recently used line there: a hit that changes no
//! order. It is a store only if an earlier one since the last synchronisation passed; without a
//! race nobody else has touched the line in between, so the thread owns it still and the store
//! changes no state. The levels behind see the first level's misses alone (they are NINE), which
//! are the same. Test `a_filter_changes_nothing`.

use homenode_model::{CacheScope, LineNo, Topology};

/// How a machine and a recorder's filter go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterFit {
    /// Race-free programs give the same memory stream as unfiltered.
    Exact,
    /// The first level is large against the filter, but hits that the filter hid may have kept
    /// lines from eviction. Why.
    Approximate(String),
    /// Results would be wrong. Why, and what to do.
    Refused(String),
}

/// How `machine` goes with a direct-mapped filter of `filter_sets` lines of `filter_line` bytes; 0
/// sets are no filter.
///
/// Holds for one thread per CPU; with several on one CPU exact becomes approximate.
pub fn filter_fit(machine: &Topology, filter_sets: u64, filter_line: u64) -> FilterFit {
    if filter_sets == 0 {
        return FilterFit::Exact;
    }
    let name = &machine.name;
    if !machine.remote_cacheable {
        return FilterFit::Refused(format!(
            "machine {name} does not cache remote memory, so every access counts: record with --filter none"
        ));
    }
    if machine.counts_references {
        return FilterFit::Refused(format!(
            "the monitor of machine {name} counts every reference: record with --filter none"
        ));
    }
    let Some(first) = machine.caches.first() else {
        return FilterFit::Refused(format!("machine {name} has no cache level: record with --filter none"));
    };
    let filter = filter_sets.saturating_mul(filter_line);
    let what = format!(
        "the recorder's filter of {filter_sets} lines of {filter_line} B does not fit the L{} of machine {name}, which",
        first.level
    );
    let sets = format!("{} sets of {} × {}", first.sets(), first.ways, first.line);
    let alone = matches!(first.scope, CacheScope::Cpu | CacheScope::Group(1));
    if first.line.0 == filter_line && first.sets() >= filter_sets && alone {
        return FilterFit::Exact;
    }
    let grouped = filter_line != 0 && first.line.0.is_multiple_of(filter_line);
    if grouped && first.size.0 / 2 >= filter {
        let why = if first.line.0 != filter_line {
            format!("has longer lines ({})", first.line)
        } else if !alone {
            "is shared by several CPUs".into()
        } else {
            format!("has fewer sets ({sets})")
        };
        return FilterFit::Approximate(format!("{what} {why}"));
    }
    let largest = if first.line.0 == filter_line { first.sets() } else { first.size.0 / 2 / LineNo::BYTES };
    match largest.checked_ilog2() {
        Some(log) if grouped => {
            FilterFit::Refused(format!("{what} has {sets}: record with --filter {} or less", 1u64 << log))
        }
        _ => FilterFit::Refused(format!("{what} has {sets}: record with --filter none")),
    }
}
