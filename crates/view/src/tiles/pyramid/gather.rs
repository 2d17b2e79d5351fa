//! Fills a pyramid from the tables alone, where the pictures are there already.

use std::collections::BTreeMap;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Access, Migration, MigrationOutcome, Residency};
use homenode_model::ObjectId;
use homenode_report::Unit;
use homenode_report::time::Timeline;

use super::PyramidError;
use super::write::{BUFFERED, PyramidRun, PyramidWriter, Recipe};
use crate::tiles::build::{Begin, Positions, grain, weight};
use crate::tiles::nodes::RecordedNodes;

/// Reads the tables once. `objects`: numbers, pages and units of those that are wanted. `more` gets
/// the number of rows of accesses that were read, and says whether to go on; nothing if it says no.
///
/// # Errors
/// The pyramid cannot be begun.
pub fn gather(
    set: &Dataset,
    timeline: &Timeline,
    nodes: &RecordedNodes,
    objects: &[(ObjectId, u64, Unit)],
    begin: Begin<'_>,
    more: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<PyramidWriter>, PyramidError> {
    let places: BTreeMap<Option<ObjectId>, usize> =
        objects.iter().enumerate().map(|(place, (object, ..))| (Some(*object), place)).collect();
    let recipe = Recipe {
        objects: objects.iter().map(|(object, pages, _)| (*object, *pages)).collect(),
        intervals: timeline.intervals().len().max(1),
        nodes: nodes.count(),
        grain: grain(set, |o| places.contains_key(&o)),
        buffered: BUFFERED,
    };
    let mut pyramid = begin(recipe)?;
    for r in set.rows::<Residency>() {
        let Some(object) = places.get(&r.object).copied() else { continue };
        let first = timeline.position(r.interval);
        let last = timeline.position(r.until).max(first);
        let run = PyramidRun { object, page: r.page, pages: r.pages };
        pyramid.lives(run, first, last, nodes.index(r.home));
    }
    for m in set.rows::<Migration>().filter(|m| m.outcome != MigrationOutcome::Refused) {
        let Some(object) = places.get(&m.object).copied() else { continue };
        let run = PyramidRun { object, page: m.page, pages: m.pages };
        pyramid.moved(run, timeline.position(m.interval), m.outcome == MigrationOutcome::PingPong);
    }
    let mut positions = Positions::new(timeline);
    for (a, row) in set.rows::<Access>().zip(1_u64..) {
        if row.is_multiple_of(1 << 16) && (pyramid.failure().is_some() || !more(row)) {
            break;
        }
        let Some(object) = places.get(&a.object).copied() else { continue };
        let weight = weight(objects[object].2, a.tally.seen(), a.tally.count().map_or(0, |c| c.parts().0));
        let run = PyramidRun { object, page: a.page, pages: a.pages };
        pyramid.touched(run, positions.of(a.interval), nodes.index(a.node), weight, a.node != a.home);
    }
    let stopped = pyramid.failure().is_none() && !more(u64::MAX);
    Ok((!stopped).then_some(pyramid))
}
