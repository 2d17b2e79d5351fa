//! Reads a recording again and again while a program writes it.
//!
//! The program writes its recording as without anybody who looks. What was appended is read every
//! [`LOOK`]; the tables, from their beginning, with at most a quarter of one CPU. The page of
//! `homenode view --live` does the same.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use homenode_dataset::Dataset;
use homenode_dataset::layout::META;
use homenode_model::Ns;
use homenode_view::live::{self, LOOK, SOONEST, Tail};

use crate::alive;
use crate::glance::{Glance, Now, State};

/// Reading the tables takes at most one part in this number of the time.
const PART: u32 = 4;
/// How long *lately* is.
const LATELY: Duration = Duration::from_secs(2);
/// After its program is gone, a recording has this long to get its end.
const FINISHING: Duration = Duration::from_secs(5);

/// What is shown, shared between whoever reads and whoever draws.
#[derive(Clone, Debug, Default)]
pub struct SharedPicture(Arc<Mutex<Arc<Glance>>>);

impl SharedPicture {
    /// The latest.
    pub fn get(&self) -> Arc<Glance> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces it.
    pub fn set(&self, glance: Glance) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(glance);
    }
}

/// The sums at a moment.
#[derive(Clone, Copy, Debug)]
struct Sums {
    at: Instant,
    moved: u64,
    sightings: u64,
    remote: u64,
}

/// The sums of the last [`LATELY`].
#[derive(Clone, Debug, Default)]
struct Lately(VecDeque<Sums>);

impl Lately {
    fn add(&mut self, at: Instant, pulse: &live::Pulse) -> Now {
        self.0.push_back(Sums { at, moved: pulse.moved, sightings: pulse.sightings, remote: pulse.remote });
        // The newest of those that are old enough is what the others are compared with.
        while self.0.get(1).is_some_and(|next| at.duration_since(next.at) >= LATELY) {
            self.0.pop_front();
        }
        let Some(first) = self.0.front() else { return Now::default() };
        Now {
            over: Ns(u64::try_from(at.duration_since(first.at).as_nanos()).unwrap_or(u64::MAX)),
            moved: pulse.moved.saturating_sub(first.moved),
            sightings: pulse.sightings.saturating_sub(first.sightings),
            remote: pulse.remote.saturating_sub(first.remote),
        }
    }
}

/// A recording that is looked at while it grows.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The recording.
    pub recording: PathBuf,
    /// The program as a person types it; empty: as the recording says.
    pub command: String,
    /// What a reader should know of the run.
    pub notes: Vec<String>,
    /// The process that was named, whose end ends the recording; `None`: whoever writes it ends it.
    pub process: Option<u32>,
}

impl Watch {
    /// Keeps `shown` up to date until the recording has its end, its program is gone, or `stop`
    /// says so.
    pub fn run(&self, shown: &SharedPicture, stop: &dyn Fn() -> bool) {
        let mut tail = Tail::default();
        let mut lately = Lately::default();
        let (command, notes) = (self.command.clone(), self.notes.clone());
        let mut glance = Glance { command, notes, ..Glance::default() };
        let (mut news, mut next, mut gone) = (true, Instant::now(), None::<Instant>);
        let mut known = false;
        while !stop() {
            // Looked at before the rest: what is written afterwards is news for the next time.
            let ended = live::ended(&self.recording);
            news |= tail.read(&self.recording);
            let at = Instant::now();
            if self.process.is_some_and(|pid| !alive::lives(pid)) || (known && !self.exists()) {
                gone.get_or_insert(at);
            }
            let late = gone.is_some_and(|gone| at.duration_since(gone) > FINISHING || !self.exists());
            if ended || late || (news && at >= next) {
                if let Ok(set) = Dataset::open(&self.recording).and_then(homenode_observed::adopt) {
                    if glance.command.is_empty() {
                        glance.command = set.meta().command.join(" ");
                    }
                    glance.read(&set);
                    let more = self.notes.iter().filter(|n| !glance.notes.contains(n)).cloned();
                    glance.notes = more.chain(glance.notes.iter().cloned()).collect();
                    (news, known) = (false, true);
                }
                next = Instant::now() + (at.elapsed() * (PART - 1)).max(SOONEST);
            }
            let pulse = tail.pulse();
            glance.state = match () {
                () if ended => State::Ended,
                () if late => State::Gone,
                () if pulse.processes > 0 => State::Runs,
                () => State::Waiting,
            };
            if pulse.processes > 0 {
                glance.now = (!ended && !late).then(|| lately.add(at, pulse));
                glance.pulse = Some(pulse.clone());
            } else {
                lately.add(at, pulse);
            }
            let mut whole = glance.clone();
            whole.see(tail.traffic());
            shown.set(whole);
            if ended || late {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn exists(&self) -> bool {
        self.recording.join(META).exists()
    }
}

/// What a recording says when it has its end.
pub fn last(recording: &Path, before: &Glance) -> Glance {
    let mut glance = Glance { now: None, state: State::Ended, ..before.clone() };
    if let Ok(set) = Dataset::open(recording) {
        glance.read(&set);
    }
    glance
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_view::live::Pulse;

    #[test]
    fn lately_is_what_came_in_the_last_two_seconds() {
        let begun = Instant::now();
        let mut lately = Lately::default();
        let mut at = |ms: u64, moved: u64, sightings: u64, remote: u64| {
            let pulse = Pulse { moved, sightings, remote, ..Pulse::default() };
            lately.add(begun + Duration::from_millis(ms), &pulse)
        };
        assert_eq!(at(0, 0, 0, 0), Now::default());
        let now = at(1000, 100, 10, 9);
        assert_eq!((now.over, now.moved, now.sightings, now.remote), (Ns(1_000_000_000), 100, 10, 9));
        let now = at(3000, 150, 40, 9);
        assert_eq!((now.over, now.moved, now.sightings, now.remote), (Ns(2_000_000_000), 50, 30, 0));
        let now = at(9000, 150, 40, 9);
        assert_eq!((now.over, now.moved, now.sightings), (Ns(6_000_000_000), 0, 0));
    }
}
