//! A time that no policy without replication can beat.
//!
//! # Problem
//!
//! How good could *any* placement be that moves pages as it likes, with all knowledge of the
//! future?
//!
//! # Approach
//!
//! In an epoch each of these is at most the epoch's length T: a thread's computing and waiting, a
//! controller's work, all links' work one by one. So is any weighted mean of them: weights that sum
//! to one are a *certificate*. A mean is a sum over pages, each page adding what its home and its
//! moves cost, whatever the others do: the least of the sum is the sum of the least, and a page's
//! least is the shortest path through its homes over the epochs. Several weightings (*lanes*) are
//! computed side by side and the largest result counts.
//!
//! A controller or a link may still be at work on its last line when the thread that waited for it
//! goes on (the line's first words count, and a stream's latency may be hidden): an epoch's work
//! may outlast it by one line each, which is taken off. Nobody waits for lines that are written
//! back: they are left out.
//!
//! # Terms
//!
//! *Weight*: parts of [`ONE`]. *Cost* c(h): what the accesses of an epoch to a page add with the
//! page at home h. *Way*: the homes of a page over time. *Contested*: accessed by several nodes in
//! an epoch.
//!
//! # Algorithm
//!
//! Per lane and page a value V(h), the least cost of all ways that end at h. At the end of an
//! epoch, for each page that was accessed in it, with m the least weighted cost of a move:
//!
//! 1. relax: V(h) ← min(V(h), min V + m): moves before the epoch;
//! 2. stay: V(h) + c(h);
//! 3. one move within the epoch, from g to h: V(g) + m + Σ over nodes of the lesser of their costs
//!    at g and at h, whatever the order of accesses is; beyond [`MAX_PAIRS`] homes the sum of their
//!    least costs anywhere instead;
//! 4. more moves: min V + 2 m + the sum of the nodes' least costs anywhere;
//! 5. V(h) ← the least of 2 to 4. A page that was freed meanwhile may start anew anywhere: V(h) ←
//!    min V + the sum of the nodes' least costs.
//!
//! A thread with one access under way at a time computes *and* waits: the sum is at most T. With
//! more, each is: waiting divided by their number (accesses × latency are never more than time ×
//! places in the window), computing as it is; the lane takes the greater kind, by its floor.
//!
//! # Properties
//!
//! - `no_policy_is_below_the_bound` (in `yardsticks::tests`)
//! - `an_uncontested_program_meets_its_bound` (likewise)

use homenode_model::Rows;

use super::costs::{Costs, Counts};
use super::epoch::Epoch;

/// The sum of all weights.
const ONE: u64 = 4096;

/// Up to this number of homes, one move within an epoch is priced pair by pair.
const MAX_PAIRS: usize = 8;

/// What gets the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// All threads that did anything, alike.
    Threads,
    /// Those threads whose floor is within a tenth of the slowest's.
    Slowest,
    /// Controllers where these are busier than the mean thread, else as `Threads`.
    Controllers,
    /// Half the threads, a quarter the controllers, a quarter the links.
    Mixed,
}

const LANES: [Lane; 4] = [Lane::Threads, Lane::Slowest, Lane::Controllers, Lane::Mixed];

/// The weights of one epoch.
#[derive(Clone, Debug)]
struct Weights {
    /// Of each thread's waiting.
    waiting: Vec<u64>,
    /// Of each thread's computing; with one access under way the same.
    computing: Vec<u64>,
    /// Of each controller.
    controller: u64,
    /// Of each link.
    link: u64,
}

impl Weights {
    fn new(lane: Lane, costs: &Costs, epoch: &Epoch) -> Self {
        let floors: Vec<u64> = epoch.floors(costs.outstanding).collect();
        let slowest = floors.iter().copied().max().unwrap_or(0);
        let chosen: Vec<bool> = match lane {
            Lane::Slowest => floors.iter().map(|f| *f > 0 && *f >= slowest - slowest / 10).collect(),
            _ => epoch.active.clone(),
        };
        let threads = chosen.iter().filter(|c| **c).count().max(1) as u64;
        let homes = costs.homes.len().max(1) as u64;
        let links = (homes * (costs.nodes as u64).saturating_sub(1)).max(1);
        let mean = chosen_sum(&floors, &chosen) / threads;
        let (thread, controller, link) = match lane {
            Lane::Threads | Lane::Slowest => (ONE, 0, 0),
            Lane::Controllers if epoch.served / homes > mean => (0, ONE, 0),
            Lane::Controllers => (ONE, 0, 0),
            Lane::Mixed => (ONE / 2, ONE / 4, ONE / 4),
        };
        let each = |wanted: bool| -> Vec<u64> {
            chosen.iter().map(|c| if *c && wanted { thread / threads } else { 0 }).collect()
        };
        // Where waiting and computing overlap, each alone is at most T: the kind with the greater
        // floor gets the weight.
        let busier = chosen_sum(&epoch.busy, &chosen) > chosen_sum(&epoch.least, &chosen) / costs.outstanding;
        let together = costs.outstanding == 1;
        Self {
            waiting: each(together || !busier),
            computing: each(together || busier),
            controller: controller / homes,
            link: link / links,
        }
    }
    /// Of a move, whoever among those at work carries it out.
    fn moving(&self, epoch: &Epoch) -> u64 {
        let of = |t: usize| self.waiting[t].max(self.computing[t]);
        (0..epoch.active.len()).filter(|t| epoch.active[*t]).map(of).min().unwrap_or(0)
    }
}

fn chosen_sum(values: &[u64], chosen: &[bool]) -> u64 {
    values.iter().zip(chosen).filter(|(_, c)| **c).fold(0, |sum: u64, (v, _)| sum.saturating_add(*v))
}

/// One lane's values.
#[derive(Clone, Debug)]
struct Values {
    lane: Lane,
    /// V(h) by page and home, times [`ONE`].
    pages: Rows<u64>,
    /// What does not depend on placement, times [`ONE`].
    fixed: u128,
    /// The least that a move has cost in any epoch so far, times [`ONE`].
    moving: u64,
    /// What controllers and links may have done after the ends of epochs, times [`ONE`].
    late: u128,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    lanes: Vec<Values>,
    scratch: Scratch,
}

/// What a page's accesses cost, by node and home.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// Nodes that accessed it.
    nodes: Vec<usize>,
    /// Cost of node `nodes[i]` at home h: `[i * homes + h]`.
    costs: Vec<u64>,
    next: Vec<u64>,
}

impl Bound {
    pub(super) fn new(costs: &Costs) -> Self {
        let homes = costs.homes.len();
        let lane = |lane: &Lane| Values {
            lane: *lane,
            pages: Rows::new(homes, 0),
            fixed: 0,
            moving: u64::MAX,
            late: 0,
        };
        Self { lanes: LANES.iter().map(lane).collect(), scratch: Scratch::default() }
    }
    /// The epoch's counts go in.
    pub(super) fn close(&mut self, costs: &Costs, epoch: &Epoch) {
        for values in &mut self.lanes {
            let weights = Weights::new(values.lane, costs, epoch);
            let computed = epoch.busy.iter().zip(&weights.computing);
            values.fixed += computed.map(|(b, w)| u128::from(*b) * u128::from(*w)).sum::<u128>();
            let (controllers, links) = costs.last_lines();
            values.late += u128::from(controllers) * u128::from(weights.controller)
                + u128::from(links) * u128::from(weights.link);
            values.moving = values.moving.min(costs.moving.0.saturating_mul(weights.moving(epoch)));
            for page in epoch.pages().iter().copied() {
                self.scratch.fill(costs, epoch.row(page), &weights);
                let row = values.pages.row_mut(page.index());
                self.scratch.pass(row, values.moving, epoch.was_freed(page));
            }
            // Pages that were freed and not accessed start anew, too.
            for page in epoch.freed().iter().filter(|p| epoch.row(**p).iter().all(|c| *c == Counts::NONE)) {
                let row = values.pages.row_mut(page.index());
                let least = row.iter().copied().min().unwrap_or(0);
                row.fill(least);
            }
        }
    }
    /// The bound, in picoseconds.
    pub(super) fn total(&self) -> u64 {
        let least = |row: &[u64]| u128::from(row.iter().copied().min().unwrap_or(0));
        let pages = |v: &Values| v.pages.iter().map(|(_, row)| least(row)).sum::<u128>();
        let of = |v: &Values| (v.fixed + pages(v)).saturating_sub(v.late);
        let best = self.lanes.iter().map(of).max().unwrap_or(0);
        u64::try_from(best / u128::from(ONE)).unwrap_or(u64::MAX)
    }
}

impl Scratch {
    fn fill(&mut self, costs: &Costs, row: &[Counts], weights: &Weights) {
        let homes = costs.homes.len();
        self.nodes.clear();
        self.costs.clear();
        for (t, counts) in row.iter().enumerate().filter(|(_, c)| **c != Counts::NONE) {
            let node = costs.threads[t].index();
            let at = self.nodes.iter().position(|n| *n == node).unwrap_or_else(|| {
                self.nodes.push(node);
                self.costs.resize(self.nodes.len() * homes, 0);
                self.nodes.len() - 1
            });
            for (h, cost) in self.costs[at * homes..][..homes].iter_mut().enumerate() {
                let waiting = costs.waiting(*counts, node, h) / costs.outstanding;
                let serving = costs.serving(Counts { write_backs: 0, ..*counts }, node, h);
                let carrying = costs.carrying(*counts, node, h);
                let weighted = waiting
                    .saturating_mul(weights.waiting[t])
                    .saturating_add(serving.saturating_mul(weights.controller))
                    .saturating_add(carrying.saturating_mul(weights.link));
                *cost = cost.saturating_add(weighted);
            }
        }
    }
    /// Steps 1 to 5 of the algorithm.
    fn pass(&mut self, row: &mut [u64], moving: u64, freed: bool) {
        let homes = row.len();
        let best = row.iter().copied().min().unwrap_or(0);
        let anywhere = self.anywhere(homes);
        if freed {
            row.fill(best.saturating_add(anywhere));
            return;
        }
        for value in row.iter_mut() {
            *value = (*value).min(best.saturating_add(moving));
        }
        let contested = self.nodes.len() > 1;
        let twice = best.saturating_add(moving.saturating_mul(2)).saturating_add(anywhere);
        self.next.clear();
        for h in 0..homes {
            let mut least = row[h].saturating_add(self.at(h, h, homes));
            if contested {
                least = least.min(twice);
                if homes <= MAX_PAIRS {
                    for (g, from) in row.iter().enumerate() {
                        let one = from.saturating_add(moving).saturating_add(self.at(g, h, homes));
                        least = least.min(one);
                    }
                } else {
                    least = least.min(best.saturating_add(moving).saturating_add(anywhere));
                }
            }
            self.next.push(least);
        }
        row.copy_from_slice(&self.next);
    }
    /// Σ over nodes of the lesser of their costs at `g` and at `h`.
    fn at(&self, g: usize, h: usize, homes: usize) -> u64 {
        let rows = self.costs.chunks_exact(homes.max(1));
        rows.fold(0, |sum: u64, row| sum.saturating_add(row[g].min(row[h])))
    }
    /// Σ over nodes of their least costs.
    fn anywhere(&self, homes: usize) -> u64 {
        let rows = self.costs.chunks_exact(homes.max(1));
        rows.fold(0, |sum: u64, row| sum.saturating_add(row.iter().copied().min().unwrap_or(0)))
    }
}
