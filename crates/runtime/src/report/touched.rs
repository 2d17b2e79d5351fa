//! Who was seen where, as the program's process leaves it for a recording: lines as those of the report. It is written anew from time to
//! time, for a program that a signal ends leaves no report; the last line is `end`, and says whether the program had come to its end.

use std::fmt::Write;

use homenode_model::AccessKind;

use super::{Module, file, modules, one_line, origin};
use crate::driver::Driver;

/// The first line: name and version of the format.
pub const FIRST: &str = "homenode-touched 1";

/// The text; `None`: nothing is kept. `whole`: the program has come to its end.
pub fn text(driver: &Driver, loaded: &[Module], whole: bool) -> Option<String> {
    let mut out = String::with_capacity(64 << 10);
    // Writing to a string does not fail.
    let _ = facts(&mut out, driver)?;
    modules(&mut out, loaded);
    let _ = writeln!(out, "end {}", if whole { "whole" } else { "early" });
    Some(out)
}

fn facts(out: &mut String, d: &Driver) -> Option<std::fmt::Result> {
    let (kept, seen) = (d.sightings()?, d.watched()?);
    let mut write = || {
        writeln!(out, "{FIRST}")?;
        writeln!(out, "elapsed {}", d.elapsed().0)?;
        writeln!(out, "own {} {}", d.own_time().0, d.cpu_time().0)?;
        writeln!(out, "nodes {}", d.settings().machine.nodes())?;
        let says = match (seen.one_in, seen.writers_only) {
            (Some(one_in), _) => format!("sampled {one_in}"),
            (None, true) => "writers 0".into(),
            (None, false) if seen.says == "nothing" => "nothing 0".into(),
            (None, false) => "presence 0".into(),
        };
        writeln!(out, "source {says} {}", seen.name)?;
        let (state, program) = seen.state;
        writeln!(out, "told {} {} {}", seen.told, seen.asked, seen.lost + kept.lost())?;
        writeln!(out, "state {state} {program}")?;
        writeln!(out, "together {}", kept.pages())?;
        for o in kept.objects() {
            writeln!(out, "object {} {:#x} {}", origin(&o.origin), o.address, o.bytes)?;
            file(out, &o.origin)?;
            if let Some(frames) = &o.python {
                writeln!(out, "python {}", one_line(frames))?;
            }
        }
        for (r, n) in kept.rows() {
            let kind = match r.kind {
                Some(AccessKind::Read) => "load",
                Some(AccessKind::Write) => "store",
                None => "-",
            };
            writeln!(out, "seen {} {} {} {} {kind} {n}", r.object, r.page, r.home.0, r.node.0)?;
        }
        for note in d.notes() {
            writeln!(out, "note {}", one_line(note))?;
        }
        d.stopped().map_or(Ok(()), |why| writeln!(out, "note {}", one_line(why)))
    };
    Some(write())
}
