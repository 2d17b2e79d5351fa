//! After the run: what the recording holds, names for its addresses, how it ended.

use std::collections::BTreeMap;
use std::path::Path;

use homenode_log::check::check;
use homenode_log::file::LogReader;
use homenode_log::mark::BYPASS_CAP;
use homenode_log::recording::{RecordedEnd, Recording};
use homenode_log::{LogError, Mark};
use homenode_symbols::{self as symbols, AddressList};

/// Places of accesses that are named: of them some touch pages first.
const CODE: usize = 1 << 16;

/// What is in a recording.
#[derive(Clone, Debug, Default)]
pub struct RecordingContents {
    /// Threads, by log.
    pub threads: u64,
    /// Threads whose log has no end.
    pub cut_off: u64,
    /// Accesses executed; of threads without an end, those up to the last one recorded.
    pub accesses: u64,
    /// Accesses recorded.
    pub recorded: u64,
    /// Marks recorded.
    pub marks: u64,
    /// Events dropped in signal handlers.
    pub dropped: u64,
    /// Bytes of all logs.
    pub bytes: u64,
    /// Instances of regions.
    pub regions: u64,
    /// Rounds that the program marked (`hn_iteration`).
    pub iterations: u64,
    /// Lines that one thread writes and another uses between two barriers.
    pub shared_lines: u64,
    /// Fences and task waits: synchronisation whose partner the recorder does not know.
    pub fences: u64,
    /// Threads that met the cap on events of such lines.
    pub capped: u64,
    /// Damaged logs, each with what is wrong and where.
    pub damage: Vec<String>,
    /// What wants names.
    pub addresses: AddressList,
    /// Bytes of the largest allocation by (return address of the allocating call, that of its
    /// function).
    pub allocations: BTreeMap<(u64, u64), u64>,
}

impl RecordingContents {
    /// Reads all logs; of whole ones only the marks, and which code accesses memory.
    pub fn of(recording: &Recording) -> Self {
        let mut summary = Self { bytes: recording.log_bytes().unwrap_or(0), ..Self::default() };
        match recording.logs() {
            Ok(logs) => logs.iter().for_each(|log| summary.log(log)),
            Err(e) => summary.damage.push(e.to_string()),
        }
        summary
    }

    /// Accesses and marks recorded.
    pub const fn events(&self) -> u64 {
        self.recorded.saturating_add(self.marks)
    }

    /// Why a recording does not cover all of its program; `None` when it does.
    pub fn why_incomplete(&self, recording: &Recording) -> Option<String> {
        if let Some(why) = recording.stopped() {
            return Some(why);
        }
        if let Some(damage) = &recording.damage {
            return Some(damage.clone());
        }
        if self.threads == 0 {
            return Some("nothing was recorded".into());
        }
        if self.cut_off > 0 {
            let how = match recording.meta.ended {
                Some(RecordedEnd { signal: Some(signal), .. }) => {
                    format!("signal {signal} ended the program")
                }
                Some(_) => "the program ended without telling the recorder".into(),
                None => "the program was still running, or the machine went down".into(),
            };
            return Some(format!("{how}; {} of {} threads have no end", self.cut_off, self.threads));
        }
        (!self.damage.is_empty()).then(|| "some logs are damaged".into())
    }

    fn log(&mut self, path: &Path) {
        self.threads += 1;
        let mut totals = None;
        let mut ended = false;
        let (mut marks, mut lines, mut fences) = (0, 0, 0);
        let accesses = &mut self.addresses.accesses;
        let pc = |pc| {
            if accesses.len() < CODE {
                accesses.insert(pc);
            }
        };
        let damage = scan(path, pc, |mark| {
            marks += 1;
            match mark {
                Mark::Totals { accesses, passed, bypassed, dropped } => {
                    totals = Some((accesses, passed, bypassed, dropped));
                }
                Mark::ThreadEnd { .. } => ended = true,
                Mark::Alloc { site, caller, bytes, .. } => {
                    if let Some(largest) = entry_of(&mut self.allocations, (site, caller)) {
                        *largest = bytes.max(*largest);
                    }
                    self.addresses.sites.insert(site);
                    self.addresses.callers.insert(caller);
                }
                Mark::RegionFork { pc, .. } => {
                    self.regions += 1;
                    self.addresses.regions.insert(pc);
                }
                Mark::Iteration { .. } => self.iterations += 1,
                Mark::Bypass { lines: now } => lines = now,
                Mark::Flush {} => fences += 1,
                _ => {}
            }
        })
        .err();
        self.shared_lines = self.shared_lines.max(lines);
        self.fences = self.fences.saturating_add(fences);
        if let (Some((accesses, passed, bypassed, dropped)), true, None) = (totals, ended, &damage) {
            self.accesses = self.accesses.saturating_add(accesses);
            self.recorded = self.recorded.saturating_add(passed);
            self.marks = self.marks.saturating_add(marks);
            self.dropped = self.dropped.saturating_add(dropped);
            self.capped += u64::from(bypassed >= BYPASS_CAP);
            return;
        }
        // Nobody added up: count.
        self.cut_off += 1;
        match LogReader::open(path).map(|mut log| check(&mut log)) {
            Ok((report, damage)) => {
                self.accesses = self.accesses.saturating_add(report.ticks);
                self.recorded = self.recorded.saturating_add(report.accesses);
                self.marks = self.marks.saturating_add(report.marks);
                self.damage.extend(damage.map(|d| d.to_string()));
            }
            Err(e) => self.damage.push(e.to_string()),
        }
    }
}

/// Allocating calls that are remembered.
const CALLS: usize = 1 << 12;

/// The entry of a call; none once there are too many.
fn entry_of(all: &mut BTreeMap<(u64, u64), u64>, call: (u64, u64)) -> Option<&mut u64> {
    (all.len() < CALLS || all.contains_key(&call)).then(|| all.entry(call).or_default())
}

fn scan(path: &Path, pc: impl FnMut(u64), mark: impl FnMut(Mark)) -> Result<(), LogError> {
    LogReader::open(path)?.scan(mark, pc)
}

/// Counts, names, and writes down how the program ended. The second value is what went wrong
/// meanwhile.
pub fn finish(recording: &mut Recording, ended: RecordedEnd) -> (RecordingContents, Vec<String>) {
    recording.meta.ended = Some(ended);
    let mut trouble = Vec::new();
    // First what is short: a full disk may have room for it.
    if let Err(e) = recording.save_meta() {
        trouble.push(format!("how the program ended is not in the recording: {e}"));
    }
    let summary = RecordingContents::of(recording);
    if summary.threads > 0 {
        let mut found = symbols::resolve(&recording.modules(), &summary.addresses);
        trouble.append(&mut found.trouble);
        symbols::add_variables(&mut found.symbols, &recording.modules(), &summary.allocations);
        found.symbols.places.extend(recording.python());
        if let Err(e) = recording.save_symbols(&found.symbols) {
            trouble.push(format!("objects and regions have no names in the recording: {e}"));
        }
    }
    (summary, trouble)
}
