//! From a plan to what the library in the program needs: which addresses of the program's file mean which place of the source,
//! and where the objects' pages go. The library looks nothing up; the launcher does it here, before the program starts.
//!
//! A place is found again by file name and line, which holds for another build of the same source. Where program or plan lack
//! line numbers, an allocation is found by its size and how many of that size came before.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use homenode_log::recording::Static;
use homenode_runtime::driver::plan::FIRST;

use super::file::{Object, Place, Plan};
use crate::symbols::{self, LineOf};

/// The table, and what a person should know of it.
#[derive(Debug, Default)]
pub struct Applied {
    /// For the library.
    pub table: String,
    /// What cannot be found again, a sentence each.
    pub notes: Vec<String>,
}

fn line_of(place: &Place) -> Option<LineOf> {
    let file = place.file.as_ref()?.rsplit('/').next()?.to_owned();
    Some(LineOf { file, line: place.line? })
}

/// The table of `plan` for a run of `threads` of the program at `path`, whose static objects are `statics`.
pub fn table(plan: &Plan, threads: usize, path: &Path, statics: &[Static]) -> Applied {
    let places = plan.objects.iter().flat_map(|o| o.site.iter().chain(&o.caller));
    let mut wanted: Vec<LineOf> = places.filter_map(line_of).collect();
    wanted.sort();
    wanted.dedup();
    let found = symbols::addresses_of(path, &wanted);
    let ranges = |place: &Option<Place>| -> Option<&Vec<Range<u64>>> {
        found.get(&line_of(place.as_ref()?)?).filter(|r| !r.is_empty())
    };
    let mut applied = Applied {
        table: format!("{FIRST}\nthreads {threads} {}\npath {}\n", nodes(plan), path.display()),
        notes: Vec::new(),
    };
    let (mut by_line, mut missing) = (0, 0);
    let mut sites: BTreeMap<(&Option<Place>, &Option<Place>), usize> = BTreeMap::new();
    for (number, object) in plan.objects.iter().enumerate() {
        let out = &mut applied.table;
        let how = match &object.variable {
            Some(name) => match statics.iter().find(|s| s.name == *name) {
                Some(s) => format!("static {:x} 0 0", s.address),
                None => {
                    missing += 1;
                    continue;
                }
            },
            None => match ranges(&object.site) {
                Some(site) => {
                    by_line += 1;
                    let next = sites.len();
                    let key = *sites.entry((&object.site, &object.caller)).or_insert_with(|| {
                        let _ = writeln!(
                            out,
                            "site {next} {} {}",
                            list(site),
                            ranges(&object.caller).map_or("-".into(), |c| list(c))
                        );
                        next
                    });
                    format!("site {key} {} {}", object.instance, object.count)
                }
                None => format!("size {} {} {}", object.bytes, object.order, object.count),
            },
        };
        let _ = writeln!(out, "object {number} {how} {} {}", object.bytes, homes(object));
    }
    let allocated = plan.objects.iter().filter(|o| o.variable.is_none()).count();
    if by_line < allocated {
        applied.notes.push(format!(
            "{} of {allocated} planned allocations are found again by size and order, for the program or the recording lacks line \
             numbers there (build with -g)",
            allocated - by_line
        ));
    }
    if missing > 0 {
        applied.notes.push(format!("{missing} static variables of the plan are not in this program"));
    }
    applied.table.push_str("end\n");
    applied
}

/// Nodes by thread.
fn nodes(plan: &Plan) -> String {
    plan.threads.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
}

fn list(ranges: &[Range<u64>]) -> String {
    ranges.iter().map(|r| format!("{:x}-{:x}", r.start, r.end)).collect::<Vec<_>>().join(",")
}

fn homes(object: &Object) -> String {
    object.homes.iter().map(|(o, b, n)| format!("{o:x}+{b:x}@{n}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::file::tests::plan;

    #[test]
    fn what_has_no_lines_is_found_by_size_and_order() {
        let applied = table(&plan(), 4, Path::new("/no/program"), &[]);
        let want = format!(
            "{FIRST}\nthreads 4 0,1\npath /no/program\nobject 0 size 1048576 0 1 1048576 0+80000@0,80000+80000@1\nend\n"
        );
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
            });
            table(&plan, 2, Path::new("/x"), &statics.collect::<Vec<_>>())
        };
        assert!(with(&["other", "grid"]).table.contains("object 0 static 11 0 0 "));
        let without = with(&["other"]);
        assert!(!without.table.contains("object") && without.notes[0].starts_with("1 static"), "{without:?}");
    }
}
