//! The driver: what it does when a region begins or ends, when a round of the iteration ends, and
//! when memory is allocated or freed.

use homenode_model::{Bytes, DecisionBuf, Event, Ns};
use homenode_policy::{MOST_POLLS, Policy, Step, live_spec};
use homenode_sources::AnswerKind;
use homenode_sys::Span;
use homenode_wire::facts::{Arming, MoverCounters, Settled};

use super::clocks::Clocks;
use super::journal::journalled;
use super::mover::{Mover, Touch};
use super::settings::DriverSettings;
use super::state::account::{Account, Review};
use super::state::arming::ArmingWork;
use super::state::evidence::MovingEvidence;
use super::state::marks::{During, EndedRegion, ProgramMarks, RegionStats, RoundTimes};
use super::state::memory::ProgramMemory;
use super::state::moves::PageMoves;
use super::state::overlap::Overlap;
use super::state::plan::PlanTable;
use super::state::recording::RunRecording;
use super::state::watching::SourceWatch;
use crate::guard::{HoldBack, Verdict};
use crate::regions::{RegionId, RegionKey, Round};
use crate::stream::Stream;
use crate::stream::threads::SeenOn;
use crate::watch::numbers::PAGE;
use crate::watch::{ChosenSource, Origin, WatchedObjects};

/// Lists that keep their memory from one use to the next.
#[derive(Default)]
pub(super) struct Buffers {
    pub decisions: DecisionBuf,
    pub touches: Vec<Touch>,
}

/// See the module.
pub struct Driver {
    pub(super) settings: DriverSettings,
    pub(super) policy: Box<dyn Policy>,
    pub(super) mover: Box<dyn Mover>,
    pub(super) account: Account,
    pub(super) marks: ProgramMarks,
    pub(super) memory: ProgramMemory,
    pub(super) arming: ArmingWork,
    pub(super) moves: PageMoves,
    pub(super) watching: Option<SourceWatch>,
    pub(super) evidence: MovingEvidence,
    pub(super) plan: Option<PlanTable>,
    pub(super) recording: RunRecording,
    pub(super) notes: Vec<String>,
    pub(super) buffers: Buffers,
}

impl Driver {
    /// A driver that starts now. `eyes`: the source that tells who touches what, if the policy
    /// needs one.
    ///
    /// # Errors
    /// The policy cannot be built.
    pub fn new(
        settings: DriverSettings,
        mover: Box<dyn Mover>,
        eyes: Option<ChosenSource>,
        clocks: Clocks,
    ) -> Result<Self, String> {
        let context = settings.machine.context(Bytes(PAGE as u64));
        let draws = |says: AnswerKind| !says.counts();
        let spec = match &eyes {
            Some(chosen) => live_spec(&settings.policy, chosen.eyes.says().is_some_and(draws)),
            None => settings.policy.clone(),
        };
        let policy = homenode_policy::build(&spec, &context).map_err(|e| e.to_string())?;
        let hold = HoldBack::new(settings.force || settings.arming == Arming::Asked);
        let interest = policy.interest();
        let mut notes = Vec::new();
        let watching = eyes.map(|eyes| SourceWatch::new(eyes, interest, &settings, &mut notes));
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
        let account = Account::new(clocks, settings.budget);
        let stream = settings
            .stream
            .as_ref()
            .and_then(|folder| Stream::create(folder, account.started()).map_err(|why| notes.push(why)).ok());
        let overlap = Overlap::new(settings.move_while, mover.moves_in_use());
        let mut driver = Self {
            settings,
            policy,
            mover,
            account,
            marks: ProgramMarks::default(),
            memory: ProgramMemory::default(),
            arming: ArmingWork::default(),
            moves: PageMoves { overlap, ..PageMoves::default() },
            watching,
            evidence: MovingEvidence { hold, ..MovingEvidence::default() },
            plan: None,
            recording: RunRecording { stream, ..RunRecording::default() },
            notes,
            buffers: Buffers::default(),
        };
        if driver.is_on_trial() {
            driver.memory.objects.judge_by_life();
        }
        driver.begin_stream();
        driver.begin_first_touches();
        Ok(driver)
    }

    /// Does light work, which is measured by the wall clock. `f` gets the time.
    pub(super) fn timed<R>(&mut self, f: impl FnOnce(&mut Self, Ns) -> R) -> R {
        let work = self.account.begin_light();
        let result = f(self, work.begin);
        self.account.end_light(work);
        result
    }

    /// Counts CPU time of the process that homenode spent outside of the driver.
    pub fn spent(&mut self, time: Ns) {
        self.account.spent(time);
    }

    /// The start is over. It began when the process had used `began` of CPU time. All CPU time
    /// since then was homenode's, and the program waited for it.
    pub fn started_up(&mut self, began: Ns) {
        let took = self.account.started_up(began);
        // The settled part of the run begins after the start.
        self.marks.was_busy(took, took);
    }

    /// Does work that nobody waits for.
    pub(super) fn beside<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.account.set_beside(true);
        let result = f(self);
        self.account.set_beside(false);
        result
    }

    /// Does heavy work, which is measured by the thread's CPU time.
    pub(super) fn heavy<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let work = self.account.begin_heavy();
        let result = f(self);
        self.account.end_heavy(work);
        result
    }

    /// Looks through files for static objects. This takes longer for larger files, and counts as
    /// homenode's own time.
    pub fn look_up<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.timed(|d, _| d.heavy(f))
    }

    /// Memory of at least [`crate::watch::objects::SMALLEST`] bytes was allocated.
    pub fn born(&mut self, address: usize, bytes: usize, origin: Origin) {
        self.timed(|d, now| {
            d.first_touches_in_time(now);
            d.memory.objects.clock(now);
            d.memory.objects.born(address, bytes, origin);
            let Some(object) = d.memory.objects.at(address) else { return };
            let (id, pages) = (object.id, object.pages);
            // The end of the memory's former owner may have gone unseen.
            d.memory.ruled.remove(Span::new(address, bytes));
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
        if let Some(object) = self.memory.objects.at(address).filter(|o| o.address == address) {
            object.python.get_or_insert_with(|| frames.into());
        }
    }

    /// The object at `address` is about to be freed. The front end that frees it disarms it.
    pub fn dies(&mut self, address: usize) {
        self.timed(|d, now| {
            d.first_touches_in_time(now);
            d.memory.objects.clock(now);
            if d.plan.is_some() {
                d.heavy(|d| d.plan_dies(address));
            }
            let it = d.memory.objects.at(address).filter(|o| o.address == address);
            if it.is_some_and(|o| o.treatment.watched) {
                d.heavy(|d| d.unwatch(address));
            }
            if let Some(bytes) =
                d.memory.objects.at(address).filter(|o| o.address == address).map(|o| o.bytes)
            {
                d.memory.forget(Span::new(address, bytes));
            }
            let it = d.memory.objects.at(address).filter(|o| o.address == address);
            if let (Some(stream), Some(object)) = (&mut d.recording.stream, it) {
                stream.gone(object, now);
            }
            if let Some((object, pages)) = d.memory.objects.dies(address) {
                d.arming.waiting.forget(address, pages.count);
                d.evidence.forget(address);
                d.moves.later.dies(pages);
                d.policy.observe(&Event::Free { object, pages });
            }
        });
    }

    /// The program's main thread starts a team.
    pub fn region_begin(&mut self, key: RegionKey) {
        self.timed(|d, now| {
            let (id, round) = d.marks.region(key, now);
            if let Some(round) = round {
                d.round(round, now);
            }
            if let Some(stream) = &mut d.recording.stream {
                stream.region_begins(id.0, key.function as u64, key.caller as u64);
            }
            d.mover.team_starts();
            d.first_touches_in_time(now);
            d.moves.overlap.begins(id, d.moves.later.waits());
            d.tell(Event::RegionBegin { region: id.0 });
            if d.is_move_due(now) {
                d.heavy(Self::move_later);
            }
            if d.plan.is_some() && d.within_budget() {
                d.heavy(Self::plan_region);
            }
            if d.arming.takes_seams() && d.within_budget() {
                d.heavy(Self::arm_seams);
            }
            let armed = d.arm_at_region(id, now);
            d.moves.counts.region_begins();
            d.marks.runs(id, now, armed);
            if d.moves.overlap.is_watching(d.moves.later.waits()) {
                let starts = d.account.now();
                d.moves.overlap.runs(id, d.moves.later.waits(), starts);
            }
        });
    }

    /// The team has joined.
    pub fn region_end(&mut self) {
        self.timed(|d, now| {
            let Some(EndedRegion { id, took, armed }) = d.marks.joined(now) else { return };
            d.moves.overlap.ends(now);
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
            if let Some(stream) = &mut d.recording.stream {
                stream.region_ends(took);
            }
            if armed && d.settings.arming == Arming::Region {
                d.marks.guard(id).armed(d.moves.counts.now, d.moves.counts.ping_pongs);
            }
            d.moves.counts.region_ends();
            if d.moves.counts.now > 0 && armed && d.settings.arming == Arming::First {
                d.arming.moved_in_region();
            }
            if d.arming.takes_unsettled() {
                d.heavy(|d| d.mover.settle());
                d.note_busy();
            } else if d.arming.split {
                d.restore_huge_pages();
                d.note_busy();
            }
            if d.evidence.seen_on.is_due(now) {
                d.heavy(|d| d.look_at_threads(now));
            }
            d.end_interval_if_due(now, false);
        });
    }

    fn note_busy(&mut self) {
        self.marks.was_busy(self.own_time(), self.cpu_time());
    }

    /// Own time since the last touch of armed memory, up to the program's end.
    pub const fn settled(&self) -> Option<Settled> {
        self.marks.settled()
    }

    /// Restores huge pages that arming has split, a few at a time, if nothing is about to split
    /// them again and the budget has room.
    fn restore_huge_pages(&mut self) {
        const CAP: Ns = Ns(10_000_000);
        let room = || self.spare(|_| Ns::ZERO).iter().all(|s| s.is_some_and(|s| s >= CAP));
        // Nothing is split any more once moved pages have gone back.
        let goes_on = !self.account.is_stopped() || self.moves.later.is_undone();
        if !self.evidence.hold.is_sampling() && goes_on && room() {
            self.arming.split = self.heavy(|d| d.mover.restore_huge_pages(CAP));
        }
    }

    /// The main thread leaves a barrier of its team. `depth`: bytes of its stack since the team
    /// began. They differ if the waiting routine was called from several places.
    pub fn barrier(&mut self, caller: usize, depth: usize) {
        self.timed(|d, now| {
            if let Some(round) = d.marks.barrier(caller, depth, now) {
                d.round(round, now);
            }
        });
    }

    /// The program says that round `number` begins.
    pub fn iteration(&mut self, number: u32) {
        self.timed(|d, now| {
            let round = d.marks.iteration(number, now);
            d.round(round, now);
        });
    }

    /// The program asks that its pages follow the next touch. Returns whether any page was armed.
    pub fn next_touch(&mut self, address: usize, bytes: usize) -> bool {
        self.arming.asked = true;
        let armed = self.timed(|d, _| {
            d.memory.placed.remove(Span::new(address, bytes));
            d.within_budget() && d.heavy(|d| d.request(address, bytes) > 0)
        });
        self.arming.asked = false;
        armed
    }

    /// The program has placed the pages of `span` itself (`by_program`), or leaves them to first
    /// touch and homenode again.
    pub fn placed(&mut self, span: Span, by_program: bool) {
        if by_program {
            for pages in self.memory.ranges(span.start, span.len()) {
                self.moves.later.forget(pages);
            }
            self.memory.placed.add(span);
            self.memory.ruled.add(span);
        } else {
            self.memory.forget(span);
        }
    }

    fn round(&mut self, round: Round, now: Ns) {
        self.take_touches();
        self.arming.round_ends(self.settings.arming == Arming::First);
        let quiet = self.moves.counts.in_round == 0 && !self.evidence.hold.is_sampling();
        let during = match self.arming.is_untried() {
            true if !self.moves.counts.ever => During::Before,
            _ if quiet => During::After,
            _ => During::Moving,
        };
        let is_told = self.marks.round(round, during, now);
        self.moves.counts.in_round = 0;
        self.record_round(round, now);
        if is_told {
            self.heavy(|d| {
                d.look(true);
                d.tell(Event::Iteration { number: u32::try_from(round.number).unwrap_or(u32::MAX) });
            });
        }
        let found = round.new_level && self.settings.arming == Arming::First;
        let found = found && self.arming.may_arm_again() && self.within_budget();
        if found {
            self.arming.arms_again();
        }
        if is_told && self.count_pilots() && self.within_budget() {
            self.heavy(Self::take_turns);
        }
        if !self.correct(found) && is_told {
            self.heavy(Self::judge);
        }
    }

    /// Arms objects at the start of a region, or has them watched.
    fn arm_at_region(&mut self, id: RegionId, now: Ns) -> bool {
        self.memory.objects.clock(now);
        let tells = self.count_pilots();
        let (news, lets) = match self.settings.arming {
            Arming::Asked => return false,
            Arming::First | Arming::Watch => {
                let news = self.memory.objects.region_starts();
                let rested = self.wait_rested(now);
                (news, news || tells || rested || self.arming.waiting.is_due(now))
            }
            Arming::Region => {
                let lets = self.marks.guard(id).lets();
                (lets && self.memory.objects.region_starts(), lets)
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
            if armed && d.settings.arming == Arming::First {
                d.arming.has_armed();
            }
            armed
        })
    }

    /// CPU time that homenode has spent so far in all threads, including the faults of samples,
    /// which the program's threads take.
    pub fn own_time(&self) -> Ns {
        self.account.own_time(self.spent_elsewhere())
    }

    /// The part of own time at the marks of regions and in the program's calls, for which the team
    /// or the caller waited.
    pub fn serial_time(&self) -> Ns {
        self.account.serial_time()
    }

    /// Own time that the mover and the source of samples measure themselves.
    fn spent_elsewhere(&self) -> Ns {
        let samples = self.watching.as_ref().map_or(Ns::ZERO, SourceWatch::paid);
        self.mover.counters().own + samples
    }

    /// CPU time of the process since homenode started.
    pub fn cpu_time(&self) -> Ns {
        self.account.cpu_time()
    }

    /// What the budget still allows, as [`Account::spare`] says.
    pub(super) fn spare(&self, kept: impl Fn(Ns) -> Ns) -> [Option<Ns>; 2] {
        self.account.spare(self.spent_elsewhere(), self.is_on_trial(), kept)
    }

    /// Whether there is budget left. If not, everything is disarmed and watching ends. Arming goes
    /// on when the process has used enough CPU time that there is budget again.
    pub(super) fn within_budget(&mut self) -> bool {
        // The program gets what it asks for, even if homenode itself has given up.
        if self.account.is_stopped() && !(self.arming.asked && self.moves.later.is_undoing()) {
            return false;
        }
        let review = self.account.review(self.spent_elsewhere(), self.is_on_trial());
        if let Review::RunOut(why) = &review {
            self.heavy(|d| d.mover.disarm());
            self.evidence.disarmed(self.account.now());
            if self.watches() {
                self.stop_watching();
                self.account.stop(why.clone());
            }
        }
        review == Review::Within
    }

    /// Gives the policy an event and carries out its decisions.
    pub(super) fn tell(&mut self, event: Event) {
        self.policy.observe(&event);
        self.poll();
    }

    /// Polls the policy until it has nothing more to decide, and carries its decisions out. Returns
    /// the number of armed pages.
    pub(super) fn poll(&mut self) -> u64 {
        let mut decisions = std::mem::take(&mut self.buffers.decisions);
        let mut armed = 0;
        // A policy that acts says afterwards when it wants to be woken.
        let rests = (0..MOST_POLLS).any(|_| {
            decisions.clear();
            match self.policy.poll(self.account.elapsed(), &mut decisions) {
                // Most marks of regions have no decisions. Decisions may move all memory.
                Step::Act => {
                    armed += self.heavy(|d| d.carry_out(&decisions));
                    false
                }
                step => {
                    self.wake_at(step);
                    true
                }
            }
        });
        self.buffers.decisions = decisions;
        if !rests {
            let policy = &self.settings.policy;
            self.note(format!("the policy {policy} still decided after {MOST_POLLS} polls at one moment"));
        }
        armed
    }

    /// The settings.
    pub fn settings(&self) -> &DriverSettings {
        &self.settings
    }
    /// Regions by number.
    pub fn regions(&self) -> &[RegionStats] {
        self.marks.regions()
    }
    /// Barriers in regions.
    pub fn barriers(&self) -> u64 {
        self.marks.barriers()
    }
    /// The nodes on which the program's threads were seen.
    pub fn seen_on(&self) -> &SeenOn {
        &self.evidence.seen_on
    }
    /// Times of rounds.
    pub fn times(&self) -> &RoundTimes {
        self.marks.times()
    }
    /// The objects.
    pub fn objects(&self) -> &WatchedObjects {
        &self.memory.objects
    }
    /// The mover's totals.
    pub fn counters(&self) -> MoverCounters {
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
        self.account.why_stopped()
    }
    /// The guard and its verdict.
    pub fn hold_back(&self) -> (&HoldBack, Verdict) {
        (&self.evidence.hold, self.evidence.hold.verdict())
    }
    /// Time since the start.
    pub fn elapsed(&self) -> Ns {
        self.account.elapsed()
    }
    /// The program ends: disarms everything and counts the last touches.
    pub fn end(&mut self) {
        self.marks.end(self.own_time(), self.cpu_time());
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
