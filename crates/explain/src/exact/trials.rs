//! Fixes of the groups as simulations, and what they bring.

use std::collections::BTreeMap;

use homenode_error::Result;
use homenode_model::{NodeId, ObjectId, Placement};
use homenode_schemes::padding::{self, PaddingAdvice};
use homenode_schemes::scheme::Layout;
use homenode_schemes::{self as schemes, LoadedRecording, Pass};
use homenode_sim::memory::{MemoryError, Outcome};
use homenode_sim::run::Job;
use homenode_simulated::places::ObjectMap;

use super::run::ExactRun;
use crate::effect::{self, TODAY, all_local, best, dealt, planned, under};
use crate::explanation::{Effect, EffectBasis};
use crate::group::Group;
use crate::jobs::Jobs;
use crate::pattern::Pattern;
use crate::remedy::{self, FixKind, FixSimulation, Remedy};
use crate::{changed, distribution};

/// Accesses of a recording beyond which effects have no range: it would take three times as long.
const LONG: u64 = 20_000_000;

/// Simulations of fixes, before they are made. Methods that add one return its number.
pub(super) struct Trials<'r, 'a> {
    run: &'r ExactRun<'a>,
    places: ObjectMap<'r>,
    jobs: Jobs,
    /// Number of the further ways to hide latency under today's placement.
    variants: usize,
    /// Number of the program with local accesses alone, once a fix needs it.
    local: Option<usize>,
    /// Objects of each number that is simulated apart, because its arrays lie at other addresses.
    apart: Vec<(usize, Vec<ObjectId>)>,
}

impl<'r, 'a> Trials<'r, 'a> {
    /// Without a fix. `places` tells the objects of the simulation's pages.
    pub(super) fn new(run: &'r ExactRun<'a>, places: ObjectMap<'r>) -> Self {
        let mut jobs = Jobs { all: Vec::new(), ranges: Vec::new(), vary: run.trace.accesses <= LONG };
        let variants = jobs.variants(&run.today);
        Self { run, places, jobs, variants, local: None, apart: Vec::new() }
    }

    /// Adds a fix of the whole program.
    pub(super) fn whole_program(&mut self, job: Job) -> usize {
        self.jobs.plain(job)
    }

    /// Adds the fixes of a group, and first of all the distribution that serves it to the fixes.
    pub(super) fn group(&mut self, group: &mut Group<'a>) -> Vec<usize> {
        let objects = group.objects();
        let (remedy, plan) = distribution(self.run, group, &self.places).unzip();
        group.remedies.extend(remedy);
        let mut numbers = Vec::new();
        for remedy in &group.remedies {
            let number = match numbers.first() {
                // The call places pages as the first fix does.
                Some(first) if remedy.kind == FixKind::HnPlace => *first,
                _ => self.remedy(remedy.how, group, &objects, plan.as_ref()),
            };
            numbers.push(number);
        }
        numbers
    }

    /// Adds one fix of a group with these objects. `distributed` is the placement of its
    /// distribution.
    fn remedy(
        &mut self,
        how: FixSimulation,
        group: &Group<'a>,
        objects: &[ObjectId],
        distributed: Option<&Placement>,
    ) -> usize {
        let run = self.run;
        let best = || planned(&run.today, best(run.machine(), run.outcome, &self.places, objects));
        let job = match how {
            FixSimulation::Best => best(),
            FixSimulation::WithoutCopies => {
                changed::without_copies(best(), run.outcome, &self.places, objects)
            }
            FixSimulation::Deal => {
                planned(&run.today, dealt(run.machine(), run.outcome, &self.places, objects))
            }
            FixSimulation::Follow => {
                under(&run.today, format!("next-touch:at=region,objects={}", ids(objects)))
            }
            FixSimulation::FirstTouch => under(&run.today, TODAY),
            FixSimulation::Padded => {
                let number = self.jobs.elsewhere();
                self.apart.push((number, objects.to_vec()));
                return number;
            }
            FixSimulation::Distribute => {
                return self.jobs.plain(planned(&run.today, distributed.cloned().unwrap_or_default()));
            }
            FixSimulation::InOrder => match changed::in_order(&run.today, run.outcome, &self.places, group) {
                Some(job) => job,
                None => return self.all_local(),
            },
            FixSimulation::Bound => return self.all_local(),
        };
        self.jobs.varied(&job)
    }

    fn all_local(&mut self) -> usize {
        let (jobs, today) = (&mut self.jobs, &self.run.today);
        *self.local.get_or_insert_with(|| jobs.varied(&all_local(today)))
    }

    /// Adds the placements of all groups' first fixes at once; `None` if that is one or none.
    pub(super) fn together(&mut self, groups: &[Group<'a>]) -> Option<usize> {
        let run = self.run;
        let is_placed = |g: &&Group<'_>| g.remedies.first().is_some_and(places_pages);
        let placed: Vec<&Group<'_>> = groups.iter().filter(is_placed).collect();
        (placed.len() > 1).then(|| {
            let objects: Vec<ObjectId> = placed.iter().flat_map(|g| g.objects()).collect();
            let plan = best(run.machine(), run.outcome, &self.places, &objects);
            self.jobs.plain(planned(&run.today, plan))
        })
    }

    /// Adds the program with all threads on one node, if they fit there. Where a placement makes
    /// accesses local, that is no better.
    pub(super) fn packed(&mut self, groups: &[Group<'a>]) -> Option<usize> {
        let today = &self.run.today;
        let mends = |r: &Remedy| {
            places_pages(r) || matches!(r.how, FixSimulation::FirstTouch | FixSimulation::InOrder)
        };
        if groups.iter().filter_map(|g| g.remedies.first()).any(mends) {
            return None;
        }
        let binding = schemes::binding(self.run.machine(), Layout::Packed, today.binding.len()).ok()?;
        Some(self.jobs.plain(Job { binding, policy: TODAY.into(), ..today.clone() }))
    }

    /// Makes the simulations. `padding` is what arrays need so that nodes share no page of them.
    ///
    /// # Errors
    /// The recording cannot be read, or the task was stopped.
    pub(super) fn simulate(self, padding: &[PaddingAdvice]) -> Result<Effects<'r>> {
        let outcomes = self.run.pass.simulate_until(&self.jobs.all, self.run.enough)?.outcomes;
        let mut apart = BTreeMap::new();
        for (number, objects) in self.apart {
            apart.insert(number, padded(self.run, padding, &objects, self.jobs.vary)?);
        }
        let Self { run, jobs, variants, local, .. } = self;
        Ok(Effects { today: run.outcome, more: run.more, jobs, outcomes, apart, variants, local })
    }
}

type Outcomes = Vec<std::result::Result<Outcome, MemoryError>>;

/// Simulations of fixes, by number.
pub(super) struct Effects<'r> {
    today: &'r Outcome,
    /// Rounds that were not simulated.
    more: u64,
    jobs: Jobs,
    outcomes: Outcomes,
    apart: BTreeMap<usize, Outcomes>,
    variants: usize,
    local: Option<usize>,
}

impl Effects<'_> {
    fn outcomes(&self, number: usize) -> impl Iterator<Item = Option<&Outcome>> {
        let here = || {
            let range = self.jobs.ranges.get(number).cloned().unwrap_or_default();
            self.outcomes.get(range).unwrap_or(&[])
        };
        self.apart.get(&number).map_or_else(here, Vec::as_slice).iter().map(|o| o.as_ref().ok())
    }

    /// What the fix of a number brings; `None` where its simulation failed.
    pub(super) fn of(&self, number: usize) -> Option<Effect> {
        let basis = if Some(number) == self.local { EffectBasis::Bound } else { EffectBasis::Simulated };
        let today: Vec<_> = std::iter::once(Some(self.today)).chain(self.outcomes(self.variants)).collect();
        effect::effect(basis, &today, &self.outcomes(number).collect::<Vec<_>>(), self.more)
    }
}

/// Numbers of objects as an option of a policy.
fn ids(objects: &[ObjectId]) -> String {
    objects.iter().map(|o| o.0.to_string()).collect::<Vec<_>>().join("/")
}

/// Whether a fix puts each page where its users wait least.
const fn places_pages(fix: &Remedy) -> bool {
    matches!(fix.how, FixSimulation::Best | FixSimulation::WithoutCopies)
}

/// Today's program with some objects padded, each of their pages with its user, and variants.
fn padded(
    run: &ExactRun<'_>,
    padding: &[PaddingAdvice],
    objects: &[ObjectId],
    vary: bool,
) -> Result<Vec<std::result::Result<Outcome, MemoryError>>> {
    let wanted: Vec<PaddingAdvice> =
        padding.iter().filter(|a| objects.contains(&a.object)).cloned().collect();
    let loaded = LoadedRecording { padding: padding::padding(&wanted), ..run.loaded.clone() };
    let pass = Pass { loaded: &loaded, workers: run.request.workers, task: run.task };
    let job = under(&run.today, format!("next-touch:at=first-region,objects={}", ids(objects)));
    let mut all = vec![job.clone()];
    if vary {
        all.extend(effect::variants(&job));
    }
    Ok(pass.simulate_until(&all, run.enough)?.outcomes)
}

/// The distribution that serves a group's users best, where the first fix places each page by
/// itrun.
fn distribution(
    run: &ExactRun<'_>,
    group: &Group<'_>,
    places: &ObjectMap<'_>,
) -> Option<(Remedy, Placement)> {
    let machine = run.machine();
    let mut nodes: Vec<NodeId> = run.today.binding.iter().map(|cpu| machine.node_of(*cpu)).collect();
    nodes.retain(|n| machine.nodes_with_memory().contains(n));
    nodes.sort();
    nodes.dedup();
    if group.found.pattern == Pattern::RegionsDisagree || group.remedies.first()?.how != FixSimulation::Best {
        return None;
    }
    let (distribution, plan) = distribution::best(machine, run.outcome, places, &group.objects(), &nodes)?;
    let name = &group.members.first()?.object.name;
    Some((remedy::distribute(&group.found, name, &distribution.words(run.request.page.0))?, plan))
}
