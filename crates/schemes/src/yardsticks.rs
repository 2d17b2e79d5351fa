//! What the schemes of a comparison are measured against: floor, bound, each page by itself, and
//! the best placement found.

use std::sync::Arc;

use homenode_model::{Placement, Ps};
use homenode_sim::memory::{MemoryOptions, Outcome};
use homenode_sim::run::{self, Job};
use homenode_sim::yardsticks::Yardsticks;
use homenode_sim::yardsticks::path::HomePath;

/// Which yardsticks a comparison is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YardstickSet {
    /// None.
    None,
    /// Floor and bound: what one pass over the recording yields.
    Bound,
    /// Oracle and best placement found, too: a second pass.
    All,
}

/// What the schemes of one machine, recording and layout are measured against.
#[derive(Clone, Debug)]
pub struct Measures {
    /// Every access local, nothing queues, nothing moves.
    pub floor: Ps,
    /// No policy without replication is faster.
    pub bound: Ps,
    /// Each page's own cheapest way, simulated; or why not.
    pub oracle: Result<Box<Outcome>, String>,
    /// The best placement found, simulated; or why not.
    pub best: Result<Best, String>,
    /// Accesses that are counted an iteration off; see [`Yardsticks::approximate`].
    pub approximate: u64,
}

/// The best that anybody found.
#[derive(Clone, Debug)]
pub struct Best {
    /// How.
    pub from: String,
    /// Its simulation.
    pub outcome: Box<Outcome>,
}

impl Measures {
    /// Floor and bound alone.
    pub fn of(yardsticks: &Yardsticks) -> Self {
        let one_pass =
            || "is sought for threads that are spread, unless --yardsticks says otherwise".to_owned();
        Self {
            floor: yardsticks.floor,
            bound: yardsticks.bound,
            oracle: Err(one_pass()),
            best: Err(one_pass()),
            approximate: yardsticks.approximate,
        }
    }
}

/// The time that a scheme is judged by: that of the timed part.
pub const fn time(outcome: &Outcome) -> Ps {
    outcome.timed
}

/// What is tried in the second pass.
struct Candidate {
    name: String,
    way: HomePath,
}

fn placed(name: &str, first: Placement) -> Candidate {
    Candidate { name: name.to_owned(), way: HomePath { first, moves: Vec::new() } }
}

/// Placements at first use: by each page's own cheapest home, by local search from there, from the
/// schemes' best and as that one left its pages.
fn candidates(yardsticks: &Yardsticks, schemes: &[(&str, &Outcome)]) -> Vec<Candidate> {
    let cheapest = yardsticks.search.cheapest();
    let level = yardsticks.search.improve(&cheapest);
    let mut all = vec![placed("cheapest home of each page", cheapest), placed("local search", level)];
    let best = schemes.iter().enumerate().min_by_key(|(i, (_, o))| (time(o), *i));
    if let Some((_, (name, outcome))) = best {
        let improved = yardsticks.search.improve(&outcome.placement);
        all.push(placed(&format!("local search from where {name} ends"), improved));
        all.push(placed(&format!("where {name} ends, from the start"), outcome.placement.clone()));
    }
    all
}

/// A group of schemes that share machine, recording and layout.
pub struct SchemeGroup<'a> {
    /// A job of the group; its policy does not matter.
    pub job: &'a Job,
    /// What the first pass found.
    pub yardsticks: &'a Yardsticks,
    /// Its schemes' results.
    pub schemes: Vec<(&'a str, &'a Outcome)>,
}

/// The second pass for several groups at once; `simulate` runs jobs over the recording they share.
///
/// # Errors
/// Those of the simulation as a whole.
pub fn second_pass<E>(
    groups: &[SchemeGroup<'_>],
    simulate: impl FnOnce(&[Job]) -> Result<run::Results, E>,
) -> Result<Vec<Measures>, E> {
    let tried: Vec<(Option<HomePath>, Vec<Candidate>)> =
        groups.iter().map(|g| (g.yardsticks.way.clone(), candidates(g.yardsticks, &g.schemes))).collect();
    let mut jobs = Vec::new();
    for (group, (way, candidates)) in groups.iter().zip(&tried) {
        let ways = way.iter().chain(candidates.iter().map(|c| &c.way));
        let options = MemoryOptions { journal: false, collect: None, ..group.job.options.clone() };
        jobs.extend(ways.map(|w| Job {
            way: Some(Arc::new(w.clone())),
            options: options.clone(),
            ..group.job.clone()
        }));
    }
    let mut outcomes = simulate(&jobs)?.outcomes.into_iter();
    let mut next = || match outcomes.next() {
        Some(Ok(outcome)) => Ok(Box::new(outcome)),
        Some(Err(e)) => Err(e.to_string()),
        None => Err("was not simulated".to_owned()),
    };
    let mut all = Vec::new();
    for (group, (way, candidates)) in groups.iter().zip(tried) {
        let mut measures = Measures::of(group.yardsticks);
        measures.oracle = match way {
            Some(_) => next(),
            None => Err("too many pages times iterations to keep each page's way".to_owned()),
        };
        measures.best = Err("no placement could be simulated".to_owned());
        let schemes = group.schemes.iter().map(|(name, o)| ((*name).to_owned(), Ok(Box::new((*o).clone()))));
        let oracle = measures.oracle.clone().ok().map(|o| ("each page's own cheapest way".to_owned(), Ok(o)));
        let found: Vec<_> = candidates.into_iter().map(|c| (c.name, next())).collect();
        for (from, outcome) in schemes.chain(oracle).chain(found) {
            let Ok(outcome) = outcome else { continue };
            if measures.best.as_ref().map_or(true, |b| time(&outcome) < time(&b.outcome)) {
                measures.best = Ok(Best { from, outcome });
            }
        }
        all.push(measures);
    }
    Ok(all)
}
