//! From a plan to what the library in the program needs: which addresses of the program's file mean
//! which place of the source, and where the objects' pages go. The library looks nothing up; the
//! launcher does it here, before the program starts.
//!
//! A place is found again by file name and line, which holds for another build of the same source.
//! Where program or plan lack line numbers, an allocation is found by its size and how many of that
//! size came before.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use homenode_log::recording::Static;
use homenode_model::{Bytes, NodeId};
use homenode_symbols::{self as symbols, LineOf};
use homenode_wire::plan::{self as wire, Home, Recognition};

use super::file::{PlanFile, PlanObject, PlanSite};

/// The plan, and what a person should know of it.
#[derive(Debug, Default)]
pub struct Applied {
    /// For the library.
    pub table: wire::HomePlan,
    /// What cannot be found again, a sentence each.
    pub notes: Vec<String>,
}

fn line_of(place: &PlanSite) -> Option<LineOf> {
    let file = place.file.as_ref()?.rsplit('/').next()?.to_owned();
    Some(LineOf { file, line: place.line? })
}

/// The table of `plan` for a run of `threads` of the program at `path`, whose static objects are
/// `statics`.
pub fn table(plan: &PlanFile, threads: usize, path: &Path, statics: &[Static]) -> Applied {
    let places = plan.objects.iter().flat_map(|o| o.site.iter().chain(&o.caller));
    let mut wanted: Vec<LineOf> = places.filter_map(line_of).collect();
    wanted.sort();
    wanted.dedup();
    let found = symbols::addresses_of(path, &wanted);
    let ranges = |place: &Option<PlanSite>| -> Option<&Vec<Range<u64>>> {
        found.get(&line_of(place.as_ref()?)?).filter(|r| !r.is_empty())
    };
    let mut table = wire::HomePlan {
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        nodes: plan.threads.iter().map(|n| NodeId(*n)).collect(),
        path: path.display().to_string(),
        ..wire::HomePlan::default()
    };
    let (mut by_line, mut missing) = (0, 0);
    let mut sites: BTreeMap<(&Option<PlanSite>, &Option<PlanSite>), u32> = BTreeMap::new();
    for object in &plan.objects {
        let count = object.count;
        let how = match &object.variable {
            Some(name) => match statics.iter().find(|s| s.name == *name) {
                Some(s) => Recognition::Static { address: s.address },
                None => {
                    missing += 1;
                    continue;
                }
            },
            None => match ranges(&object.site) {
                Some(site) => {
                    by_line += 1;
                    let next = sites.len() as u32;
                    let site = *sites.entry((&object.site, &object.caller)).or_insert_with(|| {
                        let callers = ranges(&object.caller).cloned().unwrap_or_default();
                        table.sites.push(wire::Site { own: site.clone(), callers });
                        next
                    });
                    Recognition::Site { site, first: object.instance, count }
                }
                None => Recognition::Size { first: object.order, count },
            },
        };
        table.objects.push(wire::ObjectPlan { how, bytes: Bytes(object.bytes), homes: homes(object) });
    }
    let mut notes = Vec::new();
    let allocated = plan.objects.iter().filter(|o| o.variable.is_none()).count();
    if by_line < allocated {
        notes.push(format!(
            "{} of {allocated} planned allocations are found again by size and order, for the program or the recording lacks line \
             numbers there (build with -g)",
            allocated - by_line
        ));
    }
    if missing > 0 {
        notes.push(format!("{missing} static variables of the plan are not in this program"));
    }
    Applied { table, notes }
}

fn homes(object: &PlanObject) -> Vec<Home> {
    let home = |(offset, bytes, node): &(u64, u64, u16)| Home {
        offset: Bytes(*offset),
        bytes: Bytes(*bytes),
        node: NodeId(*node),
    };
    object.homes.iter().map(home).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::plan;
    use homenode_log::recording::Elements;

    #[test]
    fn what_has_no_lines_is_found_by_size_and_order() {
        let applied = table(&plan(), 4, Path::new("/no/program"), &[]);
        let home = |offset, node| Home { offset: Bytes(offset), bytes: Bytes(1 << 19), node: NodeId(node) };
        let object = wire::ObjectPlan {
            how: Recognition::Size { first: 0, count: 1 },
            bytes: Bytes::mib(1),
            homes: vec![home(0, 0), home(1 << 19, 1)],
        };
        let want = wire::HomePlan {
            threads: 4,
            nodes: vec![NodeId(0), NodeId(1)],
            path: "/no/program".into(),
            sites: vec![],
            objects: vec![object],
        };
        assert_eq!(applied.table, want);
        assert!(applied.notes[0].starts_with("1 of 1 planned allocations"), "{:?}", applied.notes);
    }

    #[test]
    fn statics_are_found_by_name() {
        let mut plan = plan();
        let o = &mut plan.objects[0];
        (o.variable, o.site) = (Some("grid".into()), None);
        let with = |names: &[&str]| {
            let statics = (16..).zip(names).map(|(address, name)| Static {
                module: 0,
                address,
                bytes: 65536,
                name: (*name).to_owned(),
                variable: None,
                elements: Elements::default(),
            });
            table(&plan, 2, Path::new("/x"), &statics.collect::<Vec<_>>())
        };
        assert_eq!(with(&["other", "grid"]).table.objects[0].how, Recognition::Static { address: 17 });
        let without = with(&["other"]);
        assert!(without.table.objects.is_empty() && without.notes[0].starts_with("1 static"), "{without:?}");
    }
}
