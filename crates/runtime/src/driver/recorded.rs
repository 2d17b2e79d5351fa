//! What the driver writes into a recording.

use homenode_model::{Bytes, NodeId, Ns, PageNo};
use homenode_wire::bounded::line;
use homenode_wire::facts::LoadedFile;
use homenode_wire::live::{LiveRecord, MoveOrigin, SourceAnswers, Watched};

use super::run::Driver;
use super::state::watching::{SourceTotals, SourceWatch};
use crate::guard::holdback::Group;
use crate::regions::Round;
use crate::stream::Stream;
use crate::watch::numbers::PAGE;

/// Least time between two looks for new objects.
const NEW: Ns = Ns(20_000_000);
/// The time is also at least this many times as long as a look takes.
const RARELY: u64 = 100;

impl Driver {
    /// While recording, new objects are watched whether regions begin or not.
    pub(super) fn watch_for_recording(&mut self) {
        let now = self.account.now();
        if !self.settings.record || self.watching.as_ref().is_none_or(|w| now < w.look_new) {
            return;
        }
        let begin = self.account.thread_time();
        self.watch_new(true);
        // Memory that does not exist yet is looked at again and again.
        let gap = (self.account.thread_time() - begin).times(RARELY).max(NEW);
        if let Some(watching) = &mut self.watching {
            watching.look_new = now + gap;
        }
    }

    /// Whether the run is recorded.
    pub const fn records(&self) -> bool {
        self.recording.stream.is_some()
    }

    /// The bytes that a recording of a test has written.
    pub fn recorded_bytes(&self) -> &[u8] {
        self.recording.stream.as_ref().map_or(&[], Stream::bytes)
    }

    /// Keeps a recording in memory, for tests.
    pub fn record_in_memory(&mut self) {
        self.recording.stream = Some(Stream::kept(self.account.started()));
        self.begin_stream();
    }

    /// Writes the machine and the source.
    pub(super) fn begin_stream(&mut self) {
        let Some(stream) = &mut self.recording.stream else { return };
        let machine = &self.settings.machine;
        stream.put(LiveRecord::Start {
            clock: self.account.started(),
            pid: std::process::id(),
            nodes: machine.nodes() as u16,
            pretended: self.settings.pretend,
            page: Bytes(PAGE as u64),
            policy: line(&self.settings.policy),
        });
        machine.nodes_for_stream().into_iter().for_each(|node| stream.put(node));
        stream.know_cpus(machine.cpu_table().to_vec());
        let (name, says) = match &self.watching {
            Some(w) => (w.seen.name, answers(&w.seen)),
            None => ("page faults of armed pages", SourceAnswers::Presence),
        };
        stream.put(LiveRecord::Source { name: line(name), says });
    }

    /// Writes a page's home at the first look. `address`: an address in its object.
    pub(super) fn record_home(&mut self, address: usize, page: PageNo, home: NodeId) {
        self.recording.home(self.memory.objects.at(address), page, home);
    }

    /// Writes a sample: the guard compared this touch with the home of its group.
    pub(super) fn record_sample(&mut self, address: usize, compared: (Group, NodeId), node: NodeId) {
        let now = self.account.now();
        self.recording.sample(self.memory.objects.at(address), address, compared, node, now);
    }

    /// The cause of moves whose outcome no policy wants to know.
    pub(super) const fn cause_of_moves(&self) -> MoveOrigin {
        if self.moves.later.is_undoing() {
            MoveOrigin::Undo
        } else if self.plan.is_some() {
            MoveOrigin::Plan
        } else {
            MoveOrigin::Policy
        }
    }

    /// Writes the end of a round of the iteration.
    pub(super) fn record_round(&mut self, round: Round, now: Ns) {
        let told = self.marks.program_marks_rounds();
        let Some(stream) = &mut self.recording.stream else { return };
        if round.new_level {
            stream.new_level();
        }
        stream.round(round.number, told, now);
        self.end_interval_if_due(now, true);
    }

    /// Ends the interval if it is long enough, and writes data that has waited long enough.
    pub(super) fn end_interval_if_due(&mut self, now: Ns, round_ends: bool) {
        let Some(stream) = &self.recording.stream else { return };
        if stream.is_interval_due(now, round_ends) {
            self.heavy(|d| d.end_interval(now));
        } else if stream.is_flush_due(now) {
            self.heavy(|d| d.recording.stream.iter_mut().for_each(|s| s.flush(now)));
        }
    }

    fn end_interval(&mut self, now: Ns) {
        let (own, cpu) = (self.own_time(), self.cpu_time());
        let Some(stream) = &mut self.recording.stream else { return };
        if let Some(SourceWatch { seen, .. }) = &self.watching {
            stream.put(LiveRecord::Watched(Watched {
                told: seen.told,
                asked: seen.asked,
                lost: seen.lost + stream.sightings_lost(),
                state: Bytes(seen.state.0),
                watched: Bytes(seen.state.1),
            }));
        }
        stream.end_interval(own, cpu, now);
        if stream.is_flush_due(now) {
            stream.flush(now);
        }
    }

    /// Ends the last interval: the program ends.
    pub(super) fn last_interval(&mut self) {
        let now = self.account.now();
        self.end_interval(now);
    }

    /// Writes where the program's code and data lie, for looking up names.
    pub fn record_modules(&mut self, modules: &[LoadedFile]) {
        if let Some(stream) = &mut self.recording.stream {
            stream.know_modules(modules);
        }
    }

    /// The recording ends with the program.
    pub fn end_recording(&mut self) {
        let now = self.account.now();
        let stopped = self.stopped().map(line);
        let notes: Vec<String> = self.notes().iter().map(|n| line(n)).chain(stopped).collect();
        if let Some(stream) = &mut self.recording.stream {
            notes.into_iter().for_each(|text| stream.put(LiveRecord::Note { text }));
            stream.end(true, now);
        }
    }
}

/// The basis of a source's answers.
fn answers(seen: &SourceTotals) -> SourceAnswers {
    match (seen.one_in, seen.writers_only) {
        (Some(one_in), _) => SourceAnswers::Sampled { one_in },
        (None, true) => SourceAnswers::Writers,
        (None, false) if seen.says == "nothing" => SourceAnswers::Nothing,
        (None, false) => SourceAnswers::Presence,
    }
}
