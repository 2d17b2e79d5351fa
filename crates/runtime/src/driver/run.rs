//! The driver: what it does when a region begins or ends, when a round of the iteration ends, and
//! when memory is allocated or freed.

use homenode_model::{Bytes, DecisionBuf, Event, Ns, PageRange};
use homenode_policy::{Policy, Step};
use homenode_sources::first_touches::{Fault, FirstTouches};
use homenode_sys::Span;
use homenode_wire::facts::{Arming, Counters, Settled};

use super::areas::Areas;
use super::arming::Wanted;
use super::clocks::Clocks;
use super::journal::journalled;
use super::later::Later;
use super::mover::{Mover, Touch};
use super::plan::Table;
use super::probing::Probing;
use super::settings::Settings;
use super::told::spec_for;
use super::trial::{self, Trial};
use super::waiting::Waiting;
use super::watching::Watching;
use crate::guard::{HoldBack, RegionGuard, Verdict};
use crate::regions::{RegionId, RegionKey, RegionTable, Round, Rounds};
use crate::stream::Stream;
use crate::stream::threads::SeenOn;
use crate::watch::numbers::PAGE;
use crate::watch::{Chosen, Objects, Origin};

/// Rounds whose times are kept, before and after pages moved.
const TIMES: usize = 4096;
/// How often everything is armed without a request: at the first region, and when a level of the
/// iteration is found.
const UNASKED: u32 = 3;
/// Shortest round that is an event of its own for the policy. Shorter rounds are joined.
const SHORTEST_ROUND: Ns = Ns(1_000_000);
/// Longest wall time that is believed for the light work at the start and the end of a region. If
/// it took longer, another process had the CPU.
const LIGHT: Ns = Ns(20_000);
/// How often a policy that goes on deciding is polled at one event. The next poll is at the next
/// event.
const MOST_POLLS: usize = 4;
/// Bits of an address of the program's code, at most.
const DEPTH_BITS: u32 = 47;

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
    /// Rounds that ended before anything was armed.
    pub before: Vec<Ns>,
    /// Rounds after the last arming in which nothing moved.
    pub after: Vec<Ns>,
    /// Rounds of this level so far.
    pub rounds: u64,
}

/// See the module.
pub struct Driver {
    pub(super) settings: Settings,
    pub(super) policy: Box<dyn Policy>,
    pub(super) decisions: DecisionBuf,
    pub(super) mover: Box<dyn Mover>,
    pub(super) objects: Objects,
    /// Memory that the program has placed itself. The driver neither arms nor moves it by a policy,
    /// until the program asks for next touch there, leaves it to first touch, or frees it.
    pub(super) placed: Areas,
    /// Memory that the program has ruled on: placed memory, and memory with a request for next
    /// touch. The guard neither judges it nor moves it back.
    pub(super) ruled: Areas,
    pub(super) hold: HoldBack,
    pub(super) notes: Vec<String>,
    pub(super) own: Ns,
    /// The part for first touches and homes of a recording.
    pub(super) recording: Ns,
    /// The part of own time for which the program waited: all but the work of homenode's own
    /// thread.
    serial: Ns,
    /// Whether homenode's own thread is at work, beside the program's.
    beside: bool,
    /// Wall time of heavy work so far. It is subtracted from wall time measured around it.
    heavy: Ns,
    /// The thread's CPU time when the current heavy work began.
    since: Option<Ns>,
    pub(super) started: Ns,
    started_cpu: Ns,
    pub(super) touches: Vec<Touch>,
    pub(super) moves: Vec<Wanted>,
    /// Pages that did not exist when an object was last looked at.
    pub(super) missing: Vec<Span>,
    /// Pages that are already where the policy places them, among those that it decides on now.
    pub(super) stays: Vec<Wanted>,
    pub(super) moved_now: u64,
    pub(super) ping_pongs_now: u64,
    table: RegionTable,
    regions: Vec<RegionStats>,
    rounds: Rounds,
    current: Option<(RegionId, Ns, bool)>,
    times: RoundTimes,
    unasked: u32,
    last_round_told: Ns,
    pub(super) moved_in_round: u64,
    /// Whether pages have moved.
    pub(super) has_moved: bool,
    pub(super) stopped: Option<String>,
    /// Set if more was spent than the budget allows now: the text for the report.
    overdrawn: Option<String>,
    pub(super) plan: Option<Table>,
    pub(super) watching: Option<Watching>,
    pub(super) waiting: Waiting,
    pub(super) probing: Probing,
    pub(super) trial: Trial,
    pub(super) later: Later,
    /// Whether seams should be looked at page by page.
    seams: bool,
    /// Whether everything was armed in this round.
    pub(super) armed_all: bool,
    /// Whether the current work is a request of the program.
    pub(super) asked: bool,
    /// Whether something armed was touched since the last tidying up, moved or not.
    pub(super) unsettled: bool,
    /// Whether there may be huge pages to restore.
    split: bool,
    /// Number of regions that have ended.
    region_ends: u64,
    /// Number of barriers in regions.
    barriers: u64,
    /// When there was last something to do: own time, the process's CPU time, number of regions.
    busy: (Ns, Ns, u64),
    settled: Option<Settled>,
    /// The nodes on which the program's threads were seen.
    pub(super) seen_on: SeenOn,
    /// The stream of a recording.
    pub(super) stream: Option<Stream>,
    /// Who touches pages first, for the recording.
    pub(super) firsts: Option<FirstTouches>,
    pub(super) faults: Vec<Fault>,
    pub(super) clocks: Clocks,
}

impl Driver {
    /// A driver that starts now. `eyes`: the source that tells who touches what, if the policy
    /// needs one.
    ///
    /// # Errors
    /// The policy cannot be built.
    pub fn new(
        settings: Settings,
        mover: Box<dyn Mover>,
        eyes: Option<Chosen>,
        clocks: Clocks,
    ) -> Result<Self, String> {
        let context = settings.machine.context(Bytes(PAGE as u64));
        let spec = spec_for(&settings.policy, eyes.as_ref());
        let policy = homenode_policy::build(&spec, &context).map_err(|e| e.to_string())?;
        let hold = HoldBack::new(settings.force || settings.arming == Arming::Asked);
        let interest = policy.interest();
        let mut notes = Vec::new();
        let watching = eyes.map(|eyes| Watching::new(eyes, interest, &settings, &mut notes));
        if interest.counts() && watching.is_none() {
            notes.push(format!(
                "the policy {} wants to be told of accesses, and nothing tells",
                settings.policy
            ));
        }
        let policy = match &settings.journal {
            None => policy,
            Some(folder) => journalled(policy, &spec, &context, folder).unwrap_or_else(|(policy, why)| {
                notes.push(why);
                policy
            }),
        };
        let started = (clocks.wall)();
        let stream = settings
            .stream
            .as_ref()
            .and_then(|folder| Stream::create(folder, started).map_err(|why| notes.push(why)).ok());
        let mut driver = Self {
            settings,
            policy,
            decisions: DecisionBuf::new(),
            mover,
            objects: Objects::default(),
            placed: Areas::default(),
            ruled: Areas::default(),
            hold,
            notes,
            own: Ns::ZERO,
            recording: Ns::ZERO,
            serial: Ns::ZERO,
            beside: false,
            heavy: Ns::ZERO,
            since: None,
            started,
            started_cpu: (clocks.process)(),
            touches: Vec::new(),
            moves: Vec::new(),
            missing: Vec::new(),
            stays: Vec::new(),
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
            has_moved: false,
            stopped: None,
            overdrawn: None,
            plan: None,
            watching,
            waiting: Waiting::default(),
            probing: Probing::default(),
            trial: Trial::default(),
            later: Later::default(),
            seams: false,
            armed_all: false,
            asked: false,
            unsettled: false,
            split: false,
            region_ends: 0,
            barriers: 0,
            busy: (Ns::ZERO, Ns::ZERO, 0),
            settled: None,
            seen_on: SeenOn::default(),
            stream,
            firsts: None,
            faults: Vec::new(),
            clocks,
        };
        if driver.is_on_trial() {
            driver.objects.judge_by_life();
        }
        driver.begin_stream();
        driver.begin_first_touches();
        Ok(driver)
    }

    /// Measures quick work by the wall clock. Reading the thread's CPU time would take longer than
    /// the work.
    pub(super) fn timed<R>(&mut self, f: impl FnOnce(&mut Self, Ns) -> R) -> R {
        let (now, heavy) = ((self.clocks.wall)(), self.heavy);
        let result = f(self, now);
        let light = ((self.clocks.wall)() - now).0.saturating_sub((self.heavy - heavy).0);
        self.spent(Ns(light).min(LIGHT));
        result
    }

    /// Counts CPU time of the process that homenode spent, here or outside of the driver.
    pub fn spent(&mut self, time: Ns) {
        self.own += time;
        self.serial += if self.beside { Ns::ZERO } else { time };
    }

    /// The start is over. It began when the process had used `began` of CPU time. All CPU time
    /// since then was homenode's, and the program waited for it.
    pub fn started_up(&mut self, began: Ns) {
        self.started_cpu = began;
        let took = self.cpu_time();
        (self.own, self.serial) = (took, took);
        // The settled part of the run begins after the start.
        self.busy = (took, took, 0);
    }

    /// Does work that nobody waits for.
    pub(super) fn beside<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.beside = true;
        let result = f(self);
        self.beside = false;
        result
    }

    /// Measures heavy work by the thread's CPU time. On a busy machine, wall time contains the work
    /// of others.
    pub(super) fn heavy<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        if self.since.is_some() {
            return f(self);
        }
        let (wall, cpu) = ((self.clocks.wall)(), (self.clocks.thread)());
        self.since = Some(cpu);
        let result = f(self);
        self.since = None;
        self.spent((self.clocks.thread)() - cpu);
        self.heavy += (self.clocks.wall)() - wall;
        result
    }

    /// Memory of at least [`crate::watch::objects::SMALLEST`] bytes was allocated.
    pub fn born(&mut self, address: usize, bytes: usize, origin: Origin) {
        self.timed(|d, now| {
            d.first_touches_in_time(now);
            d.objects.clock(now);
            d.objects.born(address, bytes, origin);
            let Some(object) = d.objects.at(address) else { return };
            let (id, pages) = (object.id, object.pages);
            // The end of the memory's former owner may have gone unseen.
            d.ruled.remove(Span::new(address, bytes));
            let event = Event::Alloc { object: id, pages };
            d.policy.observe(&event);
            if d.plan.is_some() {
                d.heavy(|d| d.plan_born(address));
            }
        });
    }

    /// Python code has allocated the object at `address`. `frames`: file, line and function of its
    /// frames, innermost first.
    pub fn by_python(&mut self, address: usize, frames: &str) {
        if let Some(object) = self.objects.at(address).filter(|o| o.address == address) {
            object.python.get_or_insert_with(|| frames.into());
        }
    }

    /// The object at `address` is about to be freed.
    pub fn dies(&mut self, address: usize) {
        self.timed(|d, now| {
            d.first_touches_in_time(now);
            d.objects.clock(now);
            if d.plan.is_some() {
                d.heavy(|d| d.plan_dies(address));
            }
            let it = d.objects.at(address).filter(|o| o.address == address);
            if let Some((bytes, watched)) =
                it.filter(|o| o.armed || o.watched || o.awaited).map(|o| (o.bytes, o.watched))
            {
                d.heavy(|d| {
                    d.mover.leave(address, bytes);
                    if watched {
                        d.unwatch(address);
                    }
                });
            }
            if let Some(bytes) = d.objects.at(address).filter(|o| o.address == address).map(|o| o.bytes) {
                d.placed.remove(Span::new(address, bytes));
                d.ruled.remove(Span::new(address, bytes));
            }
            let it = d.objects.at(address).filter(|o| o.address == address);
            if let (Some(stream), Some(object)) = (&mut d.stream, it) {
                stream.gone(object, now);
            }
            if let Some((object, pages)) = d.objects.dies(address) {
                d.waiting.forget(address, pages.count);
                d.probing.forget(address);
                d.trial.forget(address);
                d.later.dies(pages);
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
            if let Some(stream) = &mut d.stream {
                stream.region_begins(id.0, key.function as u64, key.caller as u64);
            }
            d.mover.team_starts();
            d.first_touches_in_time(now);
            d.tell(Event::RegionBegin { region: id.0 });
            if d.is_move_due(now) {
                d.heavy(Self::move_later);
            }
            if d.plan.is_some() && d.within_budget() {
                d.heavy(Self::plan_region);
            }
            if d.seams && d.within_budget() {
                d.heavy(Self::arm_seams);
            }
            d.seams = false;
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
            let end = Event::RegionEnd { region: id.0 };
            if d.is_look_due(now) {
                // There are decisions to carry out, which may take long.
                d.heavy(|d| {
                    d.look(false);
                    d.tell(end);
                });
            } else {
                d.tell(end);
            }
            let stats = &mut d.regions[id.0 as usize];
            stats.runs += 1;
            stats.time += now - since;
            if let Some(stream) = &mut d.stream {
                stream.region_ends(now - since);
            }
            if armed && d.settings.arming == Arming::Region {
                stats.guard.armed(d.moved_now, d.ping_pongs_now);
            }
            d.moved_in_round += d.moved_now;
            if d.moved_now > 0 {
                // A touch brought whole blocks, so at the seams some pages are on the wrong node.
                d.seams |= armed && d.settings.arming == Arming::First && d.waiting.is_empty();
            }
            if std::mem::take(&mut d.unsettled) {
                d.heavy(|d| d.mover.settle());
                d.split = true;
                d.note_busy();
            } else if d.split {
                d.restore_huge_pages();
                d.note_busy();
            }
            d.region_ends += 1;
            if d.seen_on.is_due(now) {
                d.heavy(|d| d.look_at_threads(now));
            }
            d.end_interval_if_due(now, false);
        });
    }

    fn note_busy(&mut self) {
        self.busy = (self.own_time(), self.cpu_time(), self.region_ends + 1);
    }

    /// Own time since the last touch of armed memory, up to the program's end.
    pub const fn settled(&self) -> Option<Settled> {
        self.settled
    }

    /// Restores huge pages that arming has split, a few at a time, if nothing is about to split
    /// them again and the budget has room.
    fn restore_huge_pages(&mut self) {
        const CAP: Ns = Ns(10_000_000);
        let room = || self.spare(|_| Ns::ZERO).iter().all(|s| s.is_some_and(|s| s >= CAP));
        // Nothing is split any more once moved pages have gone back.
        let goes_on = self.stopped.is_none() || self.later.is_undone();
        if !self.hold.is_sampling() && goes_on && room() {
            self.split = self.heavy(|d| d.mover.restore_huge_pages(CAP));
        }
    }

    /// The main thread leaves a barrier of its team. `depth`: bytes of its stack since the team
    /// began. They differ if the waiting routine was called from several places.
    pub fn barrier(&mut self, caller: usize, depth: usize) {
        self.timed(|d, now| {
            d.barriers += 1;
            // Several regions may call one routine with a barrier in it. Each region gets a barrier
            // of its own there, so that none looks like a part of another one. No code lies at
            // addresses as low as these numbers.
            let region = d.current.map_or(0, |(id, ..)| id.0 as usize + 1);
            // Some programs have one routine that waits, and call it after every operation. Only
            // its caller tells what has ended. No return address has these bits.
            let caller = caller ^ (depth << DEPTH_BITS);
            let id = d.table.id(RegionKey { function: 1 + region, caller });
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

    /// The program asks that its pages follow the next touch. Returns whether any page was armed.
    pub fn next_touch(&mut self, address: usize, bytes: usize) -> bool {
        self.asked = true;
        let armed = self.timed(|d, _| {
            d.placed.remove(Span::new(address, bytes));
            d.within_budget() && d.heavy(|d| d.request(address, bytes) > 0)
        });
        self.asked = false;
        armed
    }

    /// The program has placed the pages of `span` itself (`by_program`), or leaves them to first
    /// touch and homenode again.
    pub fn placed(&mut self, span: Span, by_program: bool) {
        if by_program {
            for pages in self.ranges(span.start, span.len()) {
                self.later.forget(pages);
            }
            self.placed.add(span);
            self.ruled.add(span);
        } else {
            self.placed.remove(span);
            self.ruled.remove(span);
        }
    }

    fn round(&mut self, round: Round, now: Ns) {
        self.take_touches();
        if self.waiting.is_empty() {
            // By now, every page that is used at all has been touched.
            self.seams |= std::mem::take(&mut self.armed_all) && self.settings.arming == Arming::First;
        }
        if round.new_level {
            // These times belong to another loop.
            self.times = RoundTimes::default();
        }
        // Before the first round that the program marks, no round has ended.
        self.times.rounds += u64::from(!(round.new_level && self.rounds.told()));
        if let Some(took) = round.took {
            let quiet = self.moved_in_round == 0 && !self.hold.is_sampling();
            let list = match self.unasked {
                0 if !self.has_moved => Some(&mut self.times.before),
                _ if quiet => Some(&mut self.times.after),
                _ => None,
            };
            if let Some(list) = list.filter(|l| l.len() < TIMES) {
                list.push(took);
            }
        }
        self.moved_in_round = 0;
        self.record_round(round, now);
        let is_told = now - self.last_round_told >= SHORTEST_ROUND;
        if is_told {
            self.last_round_told = now;
            self.heavy(|d| {
                d.look(true);
                d.tell(Event::Iteration { number: u32::try_from(round.number).unwrap_or(u32::MAX) });
            });
        }
        let found = round.new_level && self.settings.arming == Arming::First;
        let found = found && self.unasked > 0 && self.unasked < UNASKED && self.within_budget();
        self.unasked += u32::from(found);
        if is_told && self.count_pilots() && self.within_budget() {
            self.heavy(Self::take_turns);
        }
        if !self.correct(found) && is_told {
            self.heavy(Self::judge);
        }
    }

    /// Whether the program marks its rounds itself.
    pub(super) fn tells_rounds(&self) -> bool {
        self.rounds.told()
    }

    /// Whether the policy has got the event of a round.
    pub(super) fn knows_iteration(&self) -> bool {
        self.last_round_told > Ns::ZERO
    }

    /// Arms objects at the start of a region, or has them watched.
    fn arm_at_region(&mut self, id: RegionId, now: Ns) -> bool {
        self.objects.clock(now);
        let tells = self.count_pilots();
        let (news, lets) = match self.settings.arming {
            Arming::Asked => return false,
            Arming::First | Arming::Watch => {
                let news = self.objects.region_starts();
                let rested = self.wait_rested(now);
                (news, news || tells || rested || self.waiting.is_due(now))
            }
            Arming::Region => {
                let lets = self.regions[id.0 as usize].guard.lets();
                (lets && self.objects.region_starts(), lets)
            }
        };
        if !lets || !self.within_budget() {
            return false;
        }
        self.heavy(|d| {
            d.first_touches();
            if d.watches() {
                d.watch_new(false);
                return false;
            }
            if news {
                d.wait_new(false);
            }
            if d.settings.arming == Arming::Region {
                d.wait_again();
            }
            let armed = d.take_turns() > 0;
            d.unasked = d.unasked.max(u32::from(armed && d.settings.arming == Arming::First));
            armed
        })
    }

    /// CPU time that homenode has spent so far in all threads, including the faults of samples,
    /// which the program's threads take.
    pub fn own_time(&self) -> Ns {
        let samples = self.watching.as_ref().map_or(Ns::ZERO, Watching::paid);
        self.own + self.going_on() + self.mover.counters().own + samples
    }

    /// The part of own time at the marks of regions and in the program's calls, for which the team
    /// or the caller waited. It is CPU time, so time that a busy machine gives to others does not
    /// count.
    pub fn serial_time(&self) -> Ns {
        self.serial + if self.beside { Ns::ZERO } else { self.going_on() }
    }

    /// CPU time of the current heavy work so far.
    fn going_on(&self) -> Ns {
        self.since.map_or(Ns::ZERO, |since| (self.clocks.thread)() - since)
    }

    /// CPU time of the process since homenode started.
    pub fn cpu_time(&self) -> Ns {
        (self.clocks.process)() - self.started_cpu
    }

    /// What the budget still allows, for all threads together and for time that the team waits.
    /// `kept` says how much of each part stays in reserve. `None`: more was spent than allowed.
    pub(super) fn spare(&self, kept: impl Fn(Ns) -> Ns) -> [Option<Ns>; 2] {
        let (budget, on_trial) = (&self.settings.budget, self.is_on_trial());
        [(self.cpu_time(), self.own_time()), (self.elapsed(), self.serial_time())].map(|(of, spent)| {
            let allowed = budget.allows(of);
            // A recording that the user asks for takes nothing from the trial.
            let trial = trial::allows(of) + self.recording;
            let allowed = if on_trial { allowed.min(trial) } else { allowed };
            (allowed.0 - kept(allowed).0).checked_sub(spent.0).map(Ns)
        })
    }

    /// Whether there is budget left. If not, everything is disarmed and watching ends. Arming goes
    /// on when the process has used enough CPU time that there is budget again.
    pub(super) fn within_budget(&mut self) -> bool {
        // The program gets what it asks for, even if homenode itself has given up.
        if self.stopped.is_some() && !(self.asked && self.later.is_undoing()) {
            return false;
        }
        let [own, serial] = self.spare(|_| Ns::ZERO);
        let is_within = own.is_some() && serial.is_some();
        if is_within {
            self.overdrawn = None;
        } else if self.overdrawn.is_none() {
            let text = self.why_overdrawn(own.is_none());
            self.heavy(|d| d.mover.disarm());
            self.probing.disarmed();
            self.trial.disarmed((self.clocks.wall)());
            if self.watches() {
                self.stop_watching();
                self.stopped = Some(text.clone());
            }
            self.overdrawn = Some(text);
        }
        is_within
    }

    /// Gives the policy an event and carries out its decisions.
    pub(super) fn tell(&mut self, event: Event) {
        self.policy.observe(&event);
        self.poll();
    }

    pub(super) fn poll(&mut self) -> u64 {
        let mut decisions = std::mem::take(&mut self.decisions);
        let mut armed = 0;
        // A policy that acts says afterwards when it wants to be woken.
        for _ in 0..MOST_POLLS {
            decisions.clear();
            let now = (self.clocks.wall)() - self.started;
            match self.policy.poll(now, &mut decisions) {
                // Most marks of regions have no decisions. Decisions may move all memory.
                Step::Act => armed += self.heavy(|d| d.carry_out(&decisions)),
                step => {
                    self.wake_at(step);
                    break;
                }
            }
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
    /// Barriers in regions.
    pub fn barriers(&self) -> u64 {
        self.barriers
    }
    /// The nodes on which the program's threads were seen.
    pub fn seen_on(&self) -> &SeenOn {
        &self.seen_on
    }
    /// Times of rounds.
    pub fn times(&self) -> &RoundTimes {
        &self.times
    }
    /// The objects.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }
    /// The mover's totals.
    pub fn counters(&self) -> Counters {
        self.mover.counters()
    }
    /// What could not be done, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Adds to [`Driver::notes`].
    pub fn note(&mut self, text: String) {
        if self.notes.len() < 64 && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
    /// Why nothing is armed any more, or not at the moment.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref().or(self.overdrawn.as_deref())
    }
    /// The guard and its verdict.
    pub fn hold_back(&self) -> (&HoldBack, Verdict) {
        (&self.hold, self.hold.verdict())
    }
    /// Time since the start.
    pub fn elapsed(&self) -> Ns {
        (self.clocks.wall)() - self.started
    }
    /// The program ends: disarms everything and counts the last touches.
    pub fn end(&mut self) {
        let (own, cpu, regions) = self.busy;
        self.settled = (self.region_ends > regions).then(|| Settled {
            own: self.own_time() - own,
            cpu: self.cpu_time() - cpu,
            regions: self.region_ends - regions,
        });
        self.timed(|d, _| {
            d.take_touches();
            d.heavy(|d| {
                d.end_first_touches();
                d.look(true);
                d.end_watching();
                d.mover.disarm();
                d.plan_end();
            });
            d.note_waiting();
            d.note_strays();
            d.last_interval();
            for note in d.mover.cannot() {
                d.note(note);
            }
            // The policy writes the rest of its journal when it is dropped.
            d.policy =
                Box::new(homenode_policy::FirstTouch::new(&d.settings.machine.context(Bytes(PAGE as u64))));
        });
    }
}
