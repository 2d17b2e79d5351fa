//! Clock and budget: what homenode has spent of its own time, and what it may still spend.
//!
//! # Terms
//!
//! - *Own time*: CPU time that homenode spends in all threads of the process. The mover and the
//!   source of samples measure a part of it themselves; callers pass this part as `elsewhere`.
//! - *Serial time*: the part of own time for which the team or the caller waits.
//! - *Light work* is measured by the wall clock, because reading the thread's CPU time would take
//!   longer than the work. *Heavy work* is measured by the thread's CPU time: on a busy machine,
//!   wall time contains the work of others.
//!
//! # Properties
//!
//! Own time is at most the budget's share of the process's CPU time, and serial time at most the
//! same share of elapsed time. On trial ([`super::pilots`]) the lower [`trial_allows`] holds
//! besides.

use homenode_model::Ns;
use homenode_wire::facts::Budget;

use crate::driver::clocks::Clocks;

/// Longest wall time that is believed for light work. If it took longer, another process had the
/// CPU.
const LIGHT: Ns = Ns(20_000);
/// Allowance of a trial in thousandths of the process's CPU time, and of elapsed time.
const PERMILLE: u64 = 25;
/// The least allowance of a trial.
const FIXED: Ns = Ns(40_000_000);

/// The allowance of a trial for `of`: CPU time of the process, or elapsed time.
pub fn trial_allows(of: Ns) -> Ns {
    Ns(of.0 / 1000).times(PERMILLE).max(FIXED)
}

/// Light work that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Light {
    /// Wall time at its begin.
    pub begin: Ns,
    /// Wall time of heavy work up to its begin.
    heavy: Ns,
}

/// Heavy work that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Heavy {
    wall: Ns,
    cpu: Ns,
}

/// See the module.
#[derive(Debug)]
pub struct Account {
    clocks: Clocks,
    budget: Budget,
    started: Ns,
    started_cpu: Ns,
    own: Ns,
    /// The part for first touches and homes of a recording.
    recording: Ns,
    serial: Ns,
    /// Whether homenode's own thread is at work, beside the program's.
    beside: bool,
    /// Wall time of heavy work so far. It is subtracted from wall time measured around it.
    heavy: Ns,
    /// The thread's CPU time when the current heavy work began.
    since: Option<Ns>,
    stopped: Option<String>,
    /// Set if more was spent than the budget allows now: the text for the report.
    overdrawn: Option<String>,
}

impl Account {
    /// An account that starts now, with nothing spent.
    pub fn new(clocks: Clocks, budget: Budget) -> Self {
        Self {
            clocks,
            budget,
            started: (clocks.wall)(),
            started_cpu: (clocks.process)(),
            own: Ns::ZERO,
            recording: Ns::ZERO,
            serial: Ns::ZERO,
            beside: false,
            heavy: Ns::ZERO,
            since: None,
            stopped: None,
            overdrawn: None,
        }
    }

    /// Wall time.
    pub fn now(&self) -> Ns {
        (self.clocks.wall)()
    }

    /// CPU time of the calling thread.
    pub fn thread_time(&self) -> Ns {
        (self.clocks.thread)()
    }

    /// Wall time of the start.
    pub const fn started(&self) -> Ns {
        self.started
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Ns {
        self.now() - self.started
    }

    /// CPU time of the process since the start.
    pub fn cpu_time(&self) -> Ns {
        (self.clocks.process)() - self.started_cpu
    }

    /// The start is over. It began when the process had used `began` of CPU time. All CPU time
    /// since then was homenode's, and the program waited for it. Returns that time.
    pub fn started_up(&mut self, began: Ns) -> Ns {
        self.started_cpu = began;
        let took = self.cpu_time();
        (self.own, self.serial) = (took, took);
        took
    }

    /// Adds CPU time of the process that homenode spent.
    pub fn spent(&mut self, time: Ns) {
        self.own += time;
        self.serial += if self.beside { Ns::ZERO } else { time };
    }

    /// Adds CPU time that the program's threads spent for homenode while they ran.
    pub fn spent_by_program(&mut self, time: Ns) {
        self.own += time;
    }

    /// Says that this part of own time was for a recording.
    pub fn was_for_recording(&mut self, time: Ns) {
        self.recording += time;
    }

    /// Own time for a recording.
    pub const fn recording(&self) -> Ns {
        self.recording
    }

    /// From now on nobody waits for homenode's work (`true`), or the program does.
    pub const fn set_beside(&mut self, beside: bool) {
        self.beside = beside;
    }

    /// Light work begins.
    pub fn begin_light(&self) -> Light {
        Light { begin: self.now(), heavy: self.heavy }
    }

    /// Light work has ended. Heavy work within it has been counted already.
    pub fn end_light(&mut self, work: Light) {
        let light = (self.now() - work.begin).0.saturating_sub((self.heavy - work.heavy).0);
        self.spent(Ns(light).min(LIGHT));
    }

    /// Heavy work begins. `None` within other heavy work, which is measured as a whole.
    pub fn begin_heavy(&mut self) -> Option<Heavy> {
        if self.since.is_some() {
            return None;
        }
        let (wall, cpu) = (self.now(), self.thread_time());
        self.since = Some(cpu);
        Some(Heavy { wall, cpu })
    }

    /// Heavy work has ended.
    pub fn end_heavy(&mut self, work: Option<Heavy>) {
        let Some(Heavy { wall, cpu }) = work else { return };
        self.since = None;
        self.spent(self.thread_time() - cpu);
        self.heavy += self.now() - wall;
    }

    /// CPU time of the current heavy work so far.
    fn going_on(&self) -> Ns {
        self.since.map_or(Ns::ZERO, |since| self.thread_time() - since)
    }

    /// Own time so far.
    pub fn own_time(&self, elsewhere: Ns) -> Ns {
        self.own + self.going_on() + elsewhere
    }

    /// Serial time so far. Time that a busy machine gives to others does not count.
    pub fn serial_time(&self) -> Ns {
        self.serial + if self.beside { Ns::ZERO } else { self.going_on() }
    }

    /// What may still be spent: own time, and serial time. `on_trial`: the allowance of a trial
    /// holds, too. `kept` says how much of each part stays in reserve. `None`: more was spent than
    /// allowed.
    pub fn spare(&self, elsewhere: Ns, on_trial: bool, kept: impl Fn(Ns) -> Ns) -> [Option<Ns>; 2] {
        let own = (self.cpu_time(), self.own_time(elsewhere));
        [own, (self.elapsed(), self.serial_time())].map(|(of, spent)| {
            let allowed = self.budget.allows(of);
            // A recording that the user asks for takes nothing from the trial.
            let trial = trial_allows(of) + self.recording;
            let allowed = if on_trial { allowed.min(trial) } else { allowed };
            (allowed.0 - kept(allowed).0).checked_sub(spent.0).map(Ns)
        })
    }

    /// Compares what was spent with the budget.
    pub fn review(&mut self, elsewhere: Ns, on_trial: bool) -> Review {
        let [own, serial] = self.spare(elsewhere, on_trial, |_| Ns::ZERO);
        if own.is_some() && serial.is_some() {
            self.overdrawn = None;
            return Review::Within;
        }
        if self.overdrawn.is_some() {
            return Review::StillOverdrawn;
        }
        let text = self.why_overdrawn(elsewhere, on_trial, own.is_none());
        self.overdrawn = Some(text.clone());
        Review::RunOut(text)
    }

    /// Why arming pauses. `own`: own time is spent, not serial time.
    fn why_overdrawn(&self, elsewhere: Ns, on_trial: bool, own: bool) -> String {
        let seconds = |time: Ns| time.0 as f64 * 1e-9;
        let (own_time, cpu) = (seconds(self.own_time(elsewhere)), seconds(self.cpu_time()));
        let of = format!("{own_time:.3} s of homenode's own CPU time of the process's {cpu:.3} s");
        if on_trial {
            return format!("nothing gained so far for {of}: it pauses (--budget gives more)");
        }
        if own {
            return format!("the budget ran out: {of}");
        }
        let (serial, all) = (seconds(self.serial_time()), seconds(self.elapsed()));
        format!("the budget ran out: {serial:.3} s of homenode's own that the team waited for in {all:.3} s")
    }

    /// Nothing is armed any more, for this reason.
    pub fn stop(&mut self, why: String) {
        self.stopped = Some(why);
    }

    /// Whether nothing is armed any more.
    pub const fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Why nothing is armed any more, or not at the moment.
    pub fn why_stopped(&self) -> Option<&str> {
        self.stopped.as_deref().or(self.overdrawn.as_deref())
    }
}

/// The result of [`Account::review`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Review {
    /// There is budget left.
    Within,
    /// The budget has just run out: the reason, for a person.
    RunOut(String),
    /// The budget had run out before, and there is none again yet.
    StillOverdrawn,
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static WALL: Cell<u64> = const { Cell::new(0) };
        static THREAD: Cell<u64> = const { Cell::new(0) };
        static PROCESS: Cell<u64> = const { Cell::new(0) };
    }

    fn pass(wall: u64, thread: u64, process: u64) {
        for (clock, time) in [(&WALL, wall), (&THREAD, thread), (&PROCESS, process)] {
            clock.set(clock.get() + time);
        }
    }

    /// An account with a budget of this many thousandths and nothing else.
    fn account(permille: u64) -> Account {
        let clocks =
            Clocks { wall: || Ns(WALL.get()), thread: || Ns(THREAD.get()), process: || Ns(PROCESS.get()) };
        Account::new(clocks, Budget { permille, fixed: Ns::ZERO })
    }

    #[test]
    fn the_allowance_of_a_trial_is_below_three_per_cent_or_fifty_milliseconds() {
        assert_eq!([0, 1_000_000_000].map(|t| trial_allows(Ns(t))), [Ns(40_000_000); 2]);
        assert_eq!(trial_allows(Ns(10_000_000_000)), Ns(250_000_000));
    }

    #[test]
    fn heavy_work_counts_once_and_by_the_threads_cpu_time() {
        let mut a = account(10);
        let light = a.begin_light();
        pass(300, 0, 0);
        let outer = a.begin_heavy();
        let inner = a.begin_heavy();
        assert!(outer.is_some() && inner.is_none());
        pass(900_000, 50_000, 50_000);
        assert_eq!(a.own_time(Ns::ZERO), Ns(50_000), "the work that goes on counts");
        a.end_heavy(inner);
        assert_eq!(a.own_time(Ns::ZERO), Ns(50_000));
        a.end_heavy(outer);
        a.end_light(light);
        assert_eq!(a.own_time(Ns(7)), Ns(50_307), "wall time of light work, and what others measured");
        let light = a.begin_light();
        pass(5_000_000, 0, 0);
        a.end_light(light);
        assert_eq!(a.own_time(Ns::ZERO), Ns(50_300 + LIGHT.0), "another process had the CPU");
    }

    #[test]
    fn nobody_waits_for_work_beside_the_program() {
        let mut a = account(10);
        a.set_beside(true);
        let work = a.begin_heavy();
        pass(10, 10, 10);
        assert_eq!((a.own_time(Ns::ZERO), a.serial_time()), (Ns(10), Ns::ZERO));
        a.end_heavy(work);
        a.set_beside(false);
        a.spent(Ns(5));
        a.spent_by_program(Ns(3));
        assert_eq!((a.own_time(Ns::ZERO), a.serial_time()), (Ns(18), Ns(5)));
    }

    #[test]
    fn each_limit_alone_overdraws_and_time_heals() {
        let mut a = account(10);
        pass(1_000_000, 0, 4_000_000);
        a.spent(Ns(9_000));
        assert_eq!(a.spare(Ns::ZERO, false, |_| Ns::ZERO), [Some(Ns(31_000)), Some(Ns(1_000))]);
        assert_eq!(a.spare(Ns::ZERO, false, |of| Ns(of.0 / 2)), [Some(Ns(11_000)), None], "half is kept");
        assert_eq!(a.review(Ns::ZERO, false), Review::Within);
        a.spent(Ns(2_000));
        let Review::RunOut(why) = a.review(Ns::ZERO, false) else { panic!("serial time is over") };
        assert!(why.contains("that the team waited for in 0.001 s"), "{why}");
        assert_eq!((a.review(Ns::ZERO, false), a.why_stopped()), (Review::StillOverdrawn, Some(&*why)));
        pass(1_000_000, 0, 0);
        assert_eq!((a.review(Ns::ZERO, false), a.why_stopped()), (Review::Within, None));
        let Review::RunOut(why) = a.review(Ns(50_000), false) else { panic!("own time is over") };
        assert!(why.starts_with("the budget ran out: 0.000 s of homenode's own CPU time"), "{why}");
    }

    #[test]
    fn a_trial_allows_less_but_a_recording_takes_nothing_from_it() {
        let mut a = account(500);
        pass(1_000_000_000, 0, 1_000_000_000);
        a.spent(FIXED + Ns(1));
        assert_eq!(a.spare(Ns::ZERO, true, |_| Ns::ZERO), [None; 2]);
        assert!(a.spare(Ns::ZERO, false, |_| Ns::ZERO).iter().all(Option::is_some));
        a.was_for_recording(Ns(1));
        assert_eq!(a.spare(Ns::ZERO, true, |_| Ns::ZERO), [Some(Ns::ZERO); 2]);
    }

    #[test]
    fn the_start_is_homenodes_own() {
        let mut a = account(10);
        pass(10, 10, 70);
        assert_eq!(a.started_up(Ns(PROCESS.get() - 60)), Ns(60));
        assert_eq!((a.own_time(Ns::ZERO), a.serial_time(), a.cpu_time()), (Ns(60), Ns(60), Ns(60)));
    }
}
