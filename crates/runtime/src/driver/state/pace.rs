//! The pace of asking: how many pages a source may be asked for now, and when it is asked next.
//!
//! Requests come at exponentially distributed random times, so that samples have no period in
//! common with the program. Each request asks for as many pages as the budget of samples allows at
//! the measured cost of one.

use homenode_model::Ns;
use homenode_sources::budget::{SampleBudget, lately};
use homenode_wire::facts;

/// Average time between two requests for pages.
const GAP: Ns = Ns(5_000_000);
/// How often that time is doubled, at most, while nothing is open.
const LAZIEST: u32 = 6;
/// Pages that make a batch worthwhile. A batch of fewer pages costs more in wake-ups than it yields
/// in samples, so the driver asks half as often.
const WORTH: usize = 16;
/// How often the rate is halved for that reason, at most.
const RAREST: u32 = 3;
/// Pages of a batch, at most.
pub const AT_ONCE: usize = 256;
/// Pages of the first batch, before the cost of one in the running program is known.
const FIRST: usize = 16;
/// Thousandths of the CPUs' time that samples may take with the default budget: half of its share.
const SHARE: u64 = 5;
/// Thousandths of elapsed time that homenode's own thread may take for samples with the default
/// budget. On a full machine, one of the team's threads loses that time, and all others wait for it
/// at the next barrier.
const SHARE_OF_ONE: u64 = 20;
/// The same two limits for a recording.
const SHARE_RECORDED: u64 = 30;
const SHARE_OF_ONE_RECORDED: u64 = 60;
/// The highest limit of either kind, whatever the budget.
const MOST: u64 = 500;
/// Highest cost that a sample counts with: a quarter of what homenode's own thread may save up.
const DEAREST: Ns = Ns(5_000_000);
/// Assumed cost of taking a page away and of the fault afterwards, until it is measured.
const ARMED_COST: Ns = Ns(12_000);

/// See the module.
#[derive(Debug)]
pub struct Pace {
    budget: SampleBudget,
    /// Budget of homenode's own thread.
    own: SampleBudget,
    /// Cost of a sample for the program.
    cost: Ns,
    /// Cost of a sample for homenode's own thread.
    own_cost: Ns,
    /// Number of pages asked for.
    asked: u64,
    /// Average own work for handling a sample.
    handling: Ns,
    /// Total time spent on asking.
    asking: Ns,
    /// Requests in a row that found nothing to ask for.
    idle: u32,
    /// How often the time between two requests was doubled because the budget allowed few pages.
    rare: u32,
    /// Number of requests.
    number: u64,
}

impl Pace {
    /// A pace that starts at `now`, on a machine of `cpus` CPUs, with a budget of `permille`
    /// thousandths. `record`: samples are for a recording.
    pub fn new(cpus: u64, record: bool, permille: u64, now: Ns) -> Self {
        let limits = match record {
            true => [SHARE_RECORDED, SHARE_OF_ONE_RECORDED],
            false => [SHARE, SHARE_OF_ONE],
        };
        let default = facts::Budget::DEFAULT.permille;
        let [share, of_one] = limits.map(|limit| (limit * permille / default).clamp(1, MOST.max(limit)));
        Self {
            budget: SampleBudget::new(share * cpus, now),
            own: SampleBudget::new(of_one, now),
            cost: ARMED_COST,
            own_cost: ARMED_COST,
            asked: 0,
            handling: Ns::ZERO,
            asking: Ns::ZERO,
            idle: 0,
            rare: 0,
            number: 0,
        }
    }

    /// Cost of a sample for the program.
    pub const fn cost(&self) -> Ns {
        self.cost
    }

    /// Number of pages asked for.
    pub const fn asked(&self) -> u64 {
        self.asked
    }

    /// Total time spent on asking.
    pub const fn asking(&self) -> Ns {
        self.asking
    }

    /// Notes the time of handling a sample. Sometimes pages moved in between and others had the
    /// CPU's caches; one such time must not stop the asking.
    pub fn handled(&mut self, took: Ns) {
        let most = self.handling.max(Ns(1_000)).times(4);
        self.handling = Ns((self.handling.0 * 7 + took.min(most).0) / 8);
    }

    /// How many of `wanted` pages may be asked for now.
    pub fn room(&mut self, wanted: usize, now: Ns) -> usize {
        let most = if self.asked == 0 { FIRST } else { AT_ONCE };
        // One sample with an exceptional cost must not end the asking for good.
        let (cost, own) = (self.cost.min(DEAREST), self.own_cost.min(DEAREST));
        wanted.min(most).min(self.budget.room(cost, now)).min(self.own.room(own, now))
    }

    /// How many pages may be asked for at this request. The next requests are rarer if that is few.
    pub fn room_of_request(&mut self, now: Ns) -> usize {
        let allowed = self.room(AT_ONCE, now);
        self.rare = if allowed < WORTH { RAREST.min(self.rare + 1) } else { self.rare.saturating_sub(1) };
        allowed
    }

    /// The request that allowed `allowed` pages found this many to ask for.
    pub const fn found(&mut self, pages: usize, allowed: usize) {
        self.idle = if pages == 0 && allowed > 0 { self.idle + 1 } else { 0 };
    }

    /// A source was asked for this many pages, which took `took`. `own`: the source's recent price
    /// of asking for a page. `fault`: the program's price of a page.
    pub fn asked_source(&mut self, pages: u64, took: Ns, own: Ns, fault: Ns) {
        self.count(pages, took, own + self.handling, fault);
    }

    /// The mover armed this many pages, which took `took`. `fault`: the program's price of a page.
    pub fn asked_mover(&mut self, pages: u64, took: Ns, fault: Ns) {
        let own = lately(self.own_cost, took + self.handling.times(pages), pages);
        self.count(pages, took, own, fault);
    }

    fn count(&mut self, pages: u64, took: Ns, own: Ns, fault: Ns) {
        (self.own_cost, self.cost) = (own, own + fault);
        self.asked += pages;
        self.asking += took;
        let took = took + self.handling.times(pages);
        self.own.spend(took);
        self.budget.spend(took + fault.times(pages));
    }

    /// Time until the next request.
    pub fn gap(&mut self) -> Ns {
        self.number += 1;
        let x = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        // Exponentially distributed: -ln u, u in (0, 1].
        let u = ((x >> 40) + 1) as f64 / (1_u64 << 24) as f64;
        Ns(((GAP.0 << self.idle.min(LAZIEST).max(self.rare)) as f64 * -u.ln()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_gap(pace: &mut Pace) -> u64 {
        (0..10_000).map(|_| pace.gap().0).sum::<u64>() / 10_000
    }

    #[test]
    fn one_long_time_does_not_make_a_sample_dear_and_many_do() {
        let mut p = Pace::new(1, false, 10, Ns::ZERO);
        (0..50).for_each(|_| p.handled(Ns(2_000)));
        p.handled(Ns(65_000_000));
        assert!(p.handling < Ns(3_000), "{:?}", p.handling);
        (0..100).for_each(|_| p.handled(Ns(65_000_000)));
        assert!(p.handling > Ns(60_000_000), "{:?}", p.handling);
    }

    #[test]
    fn gaps_are_of_the_mean_and_longer_while_nothing_is_to_be_asked_for() {
        let mut p = Pace::new(1, false, 10, Ns::ZERO);
        let near = |is: u64, should: u64| is.abs_diff(should) < should / 20;
        assert!(near(mean_gap(&mut p), GAP.0));
        (0..20).for_each(|_| p.found(0, 8));
        assert!(near(mean_gap(&mut p), GAP.0 << LAZIEST));
        p.found(1, 8);
        assert!(near(mean_gap(&mut p), GAP.0));
        p.found(0, 0);
        assert!(near(mean_gap(&mut p), GAP.0), "there was no room to find any");
    }

    #[test]
    fn small_batches_are_rarer() {
        let mut p = Pace::new(1, false, 10, Ns::ZERO);
        (0..9).for_each(|_| assert_eq!(p.room_of_request(Ns::ZERO), 0, "no time has passed"));
        assert_eq!(p.rare, RAREST);
        assert_eq!(p.room_of_request(Ns(10_000_000_000)), FIRST);
        assert_eq!(p.rare, RAREST - 1);
    }

    #[test]
    fn samples_take_their_share_of_the_budget_and_no_more() {
        let seconds = 20;
        let spends = |permille: u64| {
            let mut p = Pace::new(4, false, permille, Ns::ZERO);
            let mut spent = 0;
            for ms in 1..=1000 * seconds {
                let pages = p.room(AT_ONCE, Ns(ms * 1_000_000)) as u64;
                p.asked_source(pages, Ns(2_000).times(pages), Ns(2_000), Ns(10_000));
                spent += 12_000 * pages;
            }
            (p, spent)
        };
        for (permille, share) in [(10, SHARE), (20, 2 * SHARE), (2, 1)] {
            let (_, spent) = spends(permille);
            let allowed = share * 4 * seconds * 1_000_000;
            assert!(spent <= allowed && spent > allowed / 2, "{permille}: {spent} of {allowed}");
        }
        let (p, _) = spends(10);
        assert_eq!((p.cost(), p.asking()), (Ns(12_000), Ns(2_000).times(p.asked())));
    }
}
