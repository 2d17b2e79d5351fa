//! A checker for any log: invariants that every recorder keeps.

use std::io::Read;

use crate::error::LogError;
use crate::file::LogReader;
use crate::{Mark, Record, RecordKind};

/// What was found in one thread's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadReport {
    /// Records read.
    pub records: u64,
    /// Of these, accesses.
    pub accesses: u64,
    /// Of these, marks.
    pub marks: u64,
    /// The last clock.
    pub ticks: u64,
    /// Chunks read.
    pub chunks: u64,
    /// Whether the log ends with `ThreadEnd`; if not, the program was killed or the disk was full.
    pub complete: bool,
    /// What the recorder counted, if the log is complete: accesses, passed, bypassed, dropped.
    pub totals: Option<[u64; 4]>,
    /// Lines in the bypass table, last told.
    pub bypass_lines: u64,
    /// Contradictions, at most [`MAX_PROBLEMS`].
    pub problems: Vec<String>,
}

/// Most contradictions that are kept.
pub const MAX_PROBLEMS: usize = 20;

#[derive(Default)]
struct Checker {
    report: ThreadReport,
    order: u64,
    teams: Vec<(u64, u64)>,
    held: Vec<u64>,
    ended: bool,
}

/// Reads a log to its end or its damage.
pub fn check<R: Read>(reader: &mut LogReader<R>) -> (ThreadReport, Option<LogError>) {
    let mut c = Checker::default();
    let damage = loop {
        match reader.next_record() {
            Ok(Some(r)) => c.record(&r),
            Ok(None) => break None,
            Err(e) => break Some(e),
        }
    };
    c.report.chunks = reader.chunks();
    c.report.complete = c.ended && damage.is_none();
    if let (Some([accesses, ..]), true) = (c.report.totals, c.report.complete) {
        let ticks = c.report.ticks;
        if accesses != ticks {
            c.problem(format!("the clock ends at {ticks}, but {accesses} accesses were counted"));
        }
    }
    (c.report, damage)
}

impl Checker {
    fn problem(&mut self, text: String) {
        if self.report.problems.len() < MAX_PROBLEMS {
            self.report.problems.push(format!("record {}: {text}", self.report.records));
        }
    }

    fn record(&mut self, r: &Record) {
        self.report.records += 1;
        if self.ended {
            self.problem("a record after ThreadEnd".into());
        }
        self.report.ticks = r.tick.0;
        match r.what {
            RecordKind::Access { .. } => self.report.accesses += 1,
            RecordKind::Mark(m) => {
                self.report.marks += 1;
                self.mark(m);
            }
        }
    }

    fn grows(&mut self, order: u64) {
        if order <= self.order {
            self.problem(format!("order {order} after order {}", self.order));
        }
        self.order = order;
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::ThreadStart { .. } if self.report.records != 1 => {
                self.problem("ThreadStart is not the first record".into());
            }
            Mark::ThreadEnd { .. } => self.ended = true,
            Mark::TaskBegin { instance, number, team } => {
                if number >= team {
                    self.problem(format!("member {number} of a team of {team}"));
                }
                self.teams.push((instance, 0));
            }
            Mark::TaskEnd { instance } => match self.teams.pop() {
                Some((top, _)) if top == instance => {}
                top => self.problem(format!("TaskEnd of region {instance} inside of {top:?}")),
            },
            Mark::Barrier { instance, generation } => match self.teams.last_mut() {
                Some((top, next)) if *top == instance && *next == generation => *next += 1,
                top => {
                    let top = top.copied();
                    self.problem(format!("barrier {generation} of region {instance} where {top:?} is next"));
                }
            },
            Mark::Acquire { lock, order } => {
                self.grows(order);
                self.held.push(lock);
            }
            Mark::Release { lock, order } => {
                self.grows(order);
                match self.held.iter().rposition(|l| *l == lock) {
                    Some(at) => {
                        self.held.remove(at);
                    }
                    None => self.problem(format!("release of lock {lock:#x}, which is not held")),
                }
            }
            Mark::Atomic { order, .. }
            | Mark::Alloc { order, .. }
            | Mark::Free { order, .. }
            | Mark::Iteration { order, .. }
            | Mark::NextTouch { order, .. } => self.grows(order),
            Mark::Bypass { lines } => self.report.bypass_lines = lines,
            Mark::Totals { accesses, passed, bypassed, dropped } => {
                self.report.totals = Some([accesses, passed, bypassed, dropped]);
            }
            _ => {}
        }
    }
}
