//! The driver: what happens when a region begins or ends, a round of the iteration ends, memory comes or goes.

use homenode_model::{Bytes, DecisionBuf, Event, Ns, PageRange};
use homenode_policy::{Policy, Step};
use homenode_sys::Span;

use super::mover::{Counters, Mover, Touch};
use super::placed::Placed;
use super::plan::Table;
use super::settings::{Arming, Settings};
use crate::guard::{HoldBack, RegionGuard, Verdict};
use crate::regions::{RegionId, RegionKey, RegionTable, Round, Rounds};
use crate::watch::numbers::PAGE;
use crate::watch::{Objects, Origin};

/// Rounds whose times are kept, before and after the pages moved.
const TIMES: usize = 4096;
/// At most so many times everything is armed unasked: at the first region, and when a level of the iteration is found.
const UNASKED: u32 = 3;
/// Events of shorter rounds are joined for the policy.
const SHORTEST_ROUND: Ns = Ns(1_000_000);

/// What is known of a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionStats {
    /// Outlined function and caller.
    pub key: Option<RegionKey>,
    /// How often it ran.
    pub runs: u64,
    /// Time from fork to join, summed.
    pub time: Ns,
    /// Whether arming at its start pays.
    pub guard: RegionGuard,
}

/// Times of rounds.
#[derive(Clone, Debug, Default)]
pub struct RoundTimes {
    /// Ended before anything was armed.
    pub before: Vec<Ns>,
    /// Ended with nothing moved in them, after the last arming.
    pub after: Vec<Ns>,
    /// Rounds seen of the level.
    pub rounds: u64,
}

/// See the module.
pub struct Driver {
    pub(super) settings: Settings,
    pub(super) policy: Box<dyn Policy>,
    pub(super) decisions: DecisionBuf,
    pub(super) mover: Box<dyn Mover>,
    pub(super) objects: Objects,
    pub(super) placed: Placed,
    pub(super) hold: HoldBack,
    pub(super) notes: Vec<String>,
    pub(super) own: Ns,
    pub(super) started: Ns,
    pub(super) touches: Vec<Touch>,
    pub(super) moved_now: u64,
    pub(super) ping_pongs_now: u64,
    table: RegionTable,
    regions: Vec<RegionStats>,
    rounds: Rounds,
    current: Option<(RegionId, Ns, bool)>,
    times: RoundTimes,
    unasked: u32,
    last_round_told: Ns,
    moved_in_round: u64,
    pub(super) stopped: Option<String>,
    pub(super) plan: Option<Table>,
    pub(super) clock: fn() -> Ns,
}

impl Driver {
    /// A driver that starts now.
    ///
    /// # Errors
    /// The policy cannot be built.
    pub fn new(settings: Settings, mover: Box<dyn Mover>, clock: fn() -> Ns) -> Result<Self, String> {
        let context = settings.machine.context(Bytes(PAGE as u64));
        let policy = homenode_policy::build(&settings.policy, &context).map_err(|e| e.to_string())?;
        let hold = HoldBack::new(settings.force);
        let interest = policy.interest();
        let mut notes = Vec::new();
        if interest.counts_by_iteration || interest.counts_by_region {
            notes.push(format!(
                "the policy {} wants counts of accesses; this machine offers only presence, so it decides on touches alone",
                settings.policy
            ));
        }
        Ok(Self {
            settings,
            policy,
            decisions: DecisionBuf::new(),
            mover,
            objects: Objects::default(),
            placed: Placed::default(),
            hold,
            notes,
            own: Ns::ZERO,
            started: clock(),
            touches: Vec::new(),
            moved_now: 0,
            ping_pongs_now: 0,
            table: RegionTable::new(),
            regions: Vec::with_capacity(256),
            rounds: Rounds::new(),
            current: None,
            times: RoundTimes::default(),
            unasked: 0,
            last_round_told: Ns::ZERO,
            moved_in_round: 0,
            stopped: None,
            plan: None,
            clock,
        })
    }

    fn timed<R>(&mut self, f: impl FnOnce(&mut Self, Ns) -> R) -> R {
        let now = (self.clock)();
        let result = f(self, now);
        self.own += (self.clock)() - now;
        result
    }

    /// Memory of at least [`crate::watch::objects::SMALLEST`] bytes was allocated.
    pub fn born(&mut self, address: usize, bytes: usize, origin: Origin) {
        self.timed(|d, _| {
            let object = d.objects.born(address, bytes, origin);
            let event = Event::Alloc { object: object.id, pages: object.pages };
            d.policy.observe(&event);
            d.plan_born(address);
        });
    }

    /// The object at `address` is about to be freed.
    pub fn dies(&mut self, address: usize) {
        self.timed(|d, _| {
            d.plan_dies(address);
            if let Some(bytes) =
                d.objects.at(address).filter(|o| o.armed && o.address == address).map(|o| o.bytes)
            {
                d.mover.leave(address, bytes);
            }
            if let Some(bytes) = d.objects.at(address).filter(|o| o.address == address).map(|o| o.bytes) {
                d.placed.remove(Span::new(address, bytes));
            }
            if let Some((object, pages)) = d.objects.dies(address) {
                d.policy.observe(&Event::Free { object, pages });
            }
        });
    }

    /// The program's main thread starts a team.
    pub fn region_begin(&mut self, key: RegionKey) {
        self.timed(|d, now| {
            let id = d.table.id(key);
            if d.regions.len() <= id.0 as usize {
                d.regions.resize(id.0 as usize + 1, RegionStats::default());
            }
            d.regions[id.0 as usize].key = Some(key);
            if let Some(round) = d.rounds.push(id.0, now) {
                d.round(round, now);
            }
            d.tell(Event::RegionBegin { region: id.0 });
            if d.plan.is_some() && d.within_budget(now) {
                d.plan_region();
            }
            let armed = d.arm_at_region(id, now);
            (d.moved_now, d.ping_pongs_now) = (0, 0);
            d.current = Some((id, now, armed));
        });
    }

    /// The team has joined.
    pub fn region_end(&mut self) {
        self.timed(|d, now| {
            let Some((id, since, armed)) = d.current.take() else { return };
            d.take_touches();
            d.tell(Event::RegionEnd { region: id.0 });
            let stats = &mut d.regions[id.0 as usize];
            stats.runs += 1;
            stats.time += now - since;
            if armed && d.settings.arming == Arming::Region {
                stats.guard.armed(d.moved_now, d.ping_pongs_now);
            }
            d.moved_in_round += d.moved_now;
            if d.moved_now > 0 {
                d.mover.settle();
            }
        });
    }

    /// The main thread leaves a barrier of its team.
    pub fn barrier(&mut self, caller: usize) {
        self.timed(|d, now| {
            let id = d.table.id(RegionKey { function: 1, caller });
            if let Some(round) = d.rounds.push(id.0, now) {
                d.round(round, now);
            }
        });
    }

    /// The program says that round `number` begins.
    pub fn iteration(&mut self, number: u32) {
        self.timed(|d, now| {
            let round = d.rounds.tell(number.into(), now);
            d.round(round, now);
        });
    }

    /// The program asks for its pages to follow the next touch. Whether any page was armed.
    pub fn next_touch(&mut self, address: usize, bytes: usize) -> bool {
        self.placed.remove(Span::new(address, bytes));
        self.timed(|d, now| d.within_budget(now) && d.request(address, bytes) > 0)
    }

    /// The program has placed the pages of `span` itself (`by_program`), or leaves them to first touch and homenode again.
    pub fn placed(&mut self, span: Span, by_program: bool) {
        if by_program {
            self.placed.add(span);
        } else {
            self.placed.remove(span);
        }
    }

    fn round(&mut self, round: Round, now: Ns) {
        self.take_touches();
        if round.new_level {
            self.times.rounds = 0;
            self.times.after.clear();
        }
        self.times.rounds += 1;
        if let Some(took) = round.took {
            let quiet = self.moved_in_round == 0 && !self.hold.is_sampling();
            let list = match self.unasked {
                0 => Some(&mut self.times.before),
                _ if quiet => Some(&mut self.times.after),
                _ => None,
            };
            if let Some(list) = list.filter(|l| l.len() < TIMES) {
                list.push(took);
            }
        }
        self.moved_in_round = 0;
        if now - self.last_round_told >= SHORTEST_ROUND {
            self.last_round_told = now;
            self.tell(Event::Iteration { number: u32::try_from(round.number).unwrap_or(u32::MAX) });
            self.judge(now);
        }
        let found = round.new_level && self.settings.arming == Arming::First;
        if found && self.unasked > 0 && self.unasked < UNASKED && self.within_budget(now) {
            self.unasked += 1;
            self.request_all();
        }
    }

    /// Arms what is to be armed at the start of a region.
    fn arm_at_region(&mut self, id: RegionId, now: Ns) -> bool {
        let lets = match self.settings.arming {
            Arming::Asked => return false,
            Arming::First => self.has_new_objects(),
            Arming::Region => self.regions[id.0 as usize].guard.lets(),
        };
        if !lets || !self.within_budget(now) {
            return false;
        }
        match self.settings.arming {
            Arming::Region => self.request_all() > 0,
            _ => {
                let armed = self.request_new() > 0;
                self.unasked = self.unasked.max(u32::from(armed));
                armed
            }
        }
    }

    /// Time spent by homenode so far, over all threads.
    pub fn own_time(&self) -> Ns {
        self.own + Ns(self.mover.counters().own_ns)
    }

    /// Whether there is budget left; when it has run out, everything is disarmed for good.
    pub(super) fn within_budget(&mut self, now: Ns) -> bool {
        if self.stopped.is_some() {
            return false;
        }
        let (own, allowed) = (self.own_time(), self.settings.budget.allows(now - self.started));
        if own <= allowed {
            return true;
        }
        self.mover.disarm();
        self.stopped = Some(format!(
            "the budget ran out: {:.3} s of homenode's own time after {:.3} s of the program's",
            own.0 as f64 * 1e-9,
            (now - self.started).0 as f64 * 1e-9
        ));
        false
    }

    /// Tells the policy and carries out what it decides.
    pub(super) fn tell(&mut self, event: Event) {
        self.policy.observe(&event);
        self.poll();
    }

    pub(super) fn poll(&mut self) -> u64 {
        let now = (self.clock)() - self.started;
        let mut decisions = std::mem::take(&mut self.decisions);
        decisions.clear();
        let mut armed = 0;
        if self.policy.poll(now, &mut decisions) == Step::Act {
            armed = self.carry_out(&decisions);
        }
        self.decisions = decisions;
        armed
    }

    /// Pages of a range as the policy numbers them, object by object.
    pub(super) fn ranges(&self, address: usize, bytes: usize) -> Vec<PageRange> {
        let asked = crate::watch::objects::whole_pages(address, bytes);
        let part = |o: &crate::watch::Object| {
            let own = o.whole_pages();
            let (from, to) = (own.start.max(asked.start), own.end.min(asked.end));
            (from < to).then(|| PageRange {
                first: homenode_model::PageNo(o.pages.first.0 + ((from - own.start) / PAGE) as u64),
                count: ((to - from) / PAGE) as u64,
            })
        };
        self.objects.live().filter_map(part).collect()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// Regions by number.
    pub fn regions(&self) -> &[RegionStats] {
        &self.regions
    }
    /// Times of rounds.
    pub fn times(&self) -> &RoundTimes {
        &self.times
    }
    /// The objects.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }
    /// What the mover did.
    pub fn counters(&self) -> Counters {
        self.mover.counters()
    }
    /// What could not be done, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Adds to [`Driver::notes`].
    pub fn note(&mut self, text: String) {
        if self.notes.len() < 64 && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
    /// Why nothing is armed any more.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }
    /// What holding back has shown.
    pub fn hold_back(&self) -> (&HoldBack, Verdict) {
        (&self.hold, self.hold.verdict())
    }
    /// Since when it runs.
    pub fn elapsed(&self) -> Ns {
        (self.clock)() - self.started
    }
    /// The program ends: nothing is armed any more, and the last touches are counted.
    pub fn end(&mut self) {
        self.timed(|d, _| {
            d.take_touches();
            d.mover.disarm();
            d.plan_end();
            for note in d.mover.cannot() {
                d.note(note);
            }
        });
    }
}
