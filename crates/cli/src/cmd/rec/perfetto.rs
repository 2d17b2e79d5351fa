//! `homenode rec export --perfetto`.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use homenode_dataset::{TableRow as _, tables};
use homenode_error::{Context as _, Error, FailureKind, Result};
use homenode_export::perfetto;
use homenode_task::Task as _;

use crate::exit::Exit;
use crate::open::{Simulation, open};
use crate::output::{say, to_stdout};
use crate::task::Terminal;

pub(super) fn run(recording: &Path, to: &Path, force: bool, quiet: bool) -> Result<Exit> {
    let cannot = || format!("cannot export to {}", to.display());
    let known = fs::symlink_metadata(to);
    if known.as_ref().is_ok_and(|m| !m.is_file()) {
        let error = Error::failed(cannot()).tried("it is there, and is no file");
        return Err(error.hint("-o names another place").kind(FailureKind::Usage));
    }
    if known.is_ok() && !force {
        let error = Error::failed(cannot()).tried("it is there already");
        return Err(error.hint("--force replaces it; -o names another place").kind(FailureKind::Usage));
    }
    let name = to.file_name().ok_or_else(|| {
        Error::usage(format!("{} names no file", to.display())).hint("-o names a file, such as -o trace.json")
    })?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = to.with_file_name(beside);
    let task = Terminal::watching(quiet)?;
    let set = open(recording, &Simulation::default(), &task)?;
    let rows = set.meta().rows.get(tables::Access::NAME).copied();
    let mut progress = task.progress(&format!("exporting {}", recording.display()), rows);
    let written = File::create_new(&beside).map(BufWriter::new).and_then(|mut file| {
        let written = perfetto::write(&set, &mut file, &mut |more| {
            progress.advance(more);
            !task.stop_asked()
        })?;
        file.flush().map(|()| written)
    });
    progress.finish();
    let kept = written.and_then(|written| match written.stopped {
        true => fs::remove_file(&beside).map(|()| written),
        false => fs::rename(&beside, to).map(|()| written),
    });
    if kept.is_err() {
        let _ = fs::remove_file(&beside);
    }
    let hint = "name a place where you may write and where there is room: -o FILE";
    let written = kept.context(cannot).map_err(|e| e.hint(hint))?;
    if written.stopped {
        return Err(Error::interrupted());
    }
    let missing = set.missing();
    missing.iter().for_each(|m| say(format_args!("{} is partial: {m}", recording.display())));
    written.coarsened.iter().for_each(|c| say(format_args!("{}: {c}", to.display())));
    let (to, events) = (to.display(), written.events);
    to_stdout(&format!("{to}: {events} events; open it in https://ui.perfetto.dev\n"))?;
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Partial })
}
