//! Faults by group of variables.

use std::collections::BTreeMap;

use homenode_error::{Error, Result};
use homenode_model::ObjectId;
use homenode_schemes::padding::{self, PaddingAdvice};
use homenode_simulated::places::ObjectMap;

use super::run::ExactRun;
use crate::group::{self, Group};
use crate::lines::{self, LineUse};
use crate::pattern;
use crate::usage::{Class, ObjectUse};

/// Faults by group of variables, most remote accesses first, and what is to be padded.
pub(super) fn groups<'a>(run: &ExactRun<'a>) -> Result<(Vec<Group<'a>>, Vec<PaddingAdvice>)> {
    let lines = shared_lines(run)?;
    let padding = match lines.is_empty() {
        true => Vec::new(),
        false => padding::find(&run.pass, run.machine(), &run.today.binding, run.request.page)?,
    };
    Ok((group::groups(run.usage, &lines, &padding, run.request.page.0), padding))
}

/// Lines of the objects with shared pages, by the object's number.
fn shared_lines(run: &ExactRun<'_>) -> Result<BTreeMap<usize, LineUse>> {
    let wanted: Vec<usize> = (0..run.usage.objects.len())
        .filter(|i| {
            let remote = pattern::remote_by_class(&run.usage.objects[*i]);
            remote[3] > 0 && remote.iter().all(|r| *r <= remote[3])
        })
        .collect();
    let Some(collected) = run.outcome.collected.as_ref().filter(|_| !wanted.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    let places = ObjectMap::new(&collected.extents, run.trace, run.request.page);
    let number: BTreeMap<ObjectId, (u16, &ObjectUse)> = (1u16..)
        .zip(&wanted)
        .map(|(n, i)| (run.usage.objects[*i].object.object, (n, &run.usage.objects[*i])))
        .collect();
    let mut object = vec![0u16; run.outcome.histogram.pages()];
    for (page, _) in run.outcome.histogram.rows() {
        let placed = places.page(page.0);
        let Some((n, it)) = placed.object.and_then(|o| number.get(&o)) else { continue };
        let block = it.pages.range(..=placed.page).next_back();
        let within = block.filter(|(first, b)| **first + b.pages > placed.page);
        if within.is_some_and(|(_, b)| b.class() == Class::Shared) {
            object[page.index()] = *n;
        }
    }
    let scope = lines::PageScope {
        object,
        objects: wanted.len(),
        page_lines: (run.request.page.0 / 64).max(1).trailing_zeros(),
        marks: run.trace.iterations.map(|_| run.outcome.marks.len()),
        regions: !run.trace.region_pcs.is_empty(),
    };
    let recording = &run.loaded.recording;
    let cannot = |e: &dyn std::fmt::Display| {
        Error::failed(format!("cannot read {} once more", recording.path.display())).tried(e)
    };
    let logs = recording.logs().map_err(|e| cannot(&e))?;
    let order = homenode_order::open(&logs, run.loaded.known()).map_err(|e| cannot(&e))?;
    let go_on = || !run.task.stop_asked();
    let uses = lines::read(order, run.machine(), &run.today.binding, &scope, go_on)
        .ok_or_else(Error::interrupted)?;
    Ok(wanted.into_iter().zip(uses).collect())
}
