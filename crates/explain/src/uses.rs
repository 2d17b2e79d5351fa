//! The regions that use objects.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_dataset::tables::RegionNo;
use homenode_report::Amount;

use crate::explanation::Use;
use crate::place::{Place, function};
use crate::usage::{ObjectUse, Usage};

/// The place of a region.
fn region(usage: &Usage, number: Option<RegionNo>) -> Place {
    let Some(region) = number.and_then(|n| usage.regions.get(&n)) else { return Place::default() };
    Place {
        file: region.file.clone(),
        line: region.line,
        function: region.function.as_deref().map(function).map(str::to_owned),
    }
}

/// The regions that use objects, most accesses first.
pub(crate) fn uses(usage: &Usage, members: &[&ObjectUse]) -> Vec<Use> {
    let mut all: BTreeMap<Option<RegionNo>, (Amount, u64)> = BTreeMap::new();
    for (number, amount) in members.iter().flat_map(|m| &m.regions) {
        let units = amount.units().1;
        let (largest, sum) = all.entry(*number).or_insert((*amount, 0));
        if units > largest.units().1 {
            *largest = *amount;
        }
        *sum = sum.saturating_add(units);
    }
    let mut all: Vec<(u64, Use)> = all
        .into_iter()
        .map(|(number, (amount, sum))| (sum, Use { place: region(usage, number), accesses: amount }))
        .collect();
    all.sort_by_key(|(sum, _)| Reverse(*sum));
    all.into_iter().map(|(_, one)| one).collect()
}
