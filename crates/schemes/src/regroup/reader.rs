//! Reads a thread's log loop by loop.

use homenode_log::file::LogReader;
use homenode_log::{LogError, Mark, Record, RecordKind};
use homenode_model::LineNo;

use super::deal::DealtChunk;
use super::owners::PAGE_SHIFT;
use super::writer::Records;

/// A loop's execution: the team, and which of the team's dynamic loops it is.
pub type LoopKey = (u64, u64);

/// Why a loop stays as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnchangedReason {
    /// The recording does not say where the loop ends: it is older, or the loop was cancelled.
    NoEnd,
    /// Its iterations allocate memory, or start teams or threads.
    Works,
    /// Its accesses do not fit in memory.
    TooLong,
    /// Not all of the team's threads are in the recording.
    Team,
}

impl UnchangedReason {
    /// A reason for a person.
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoEnd => {
                "the recording has no end of the loop (recorded by an older homenode, or cancelled)"
            }
            Self::Works => "its iterations allocate memory, or start teams or threads",
            Self::TooLong => "its accesses do not fit in a gigabyte",
            Self::Team => "threads of the team are not in the recording",
        }
    }
}

/// A chunk as it was recorded.
#[derive(Debug, Default)]
pub struct RecordedChunk {
    /// First iteration.
    pub first: i64,
    /// One past the last, in the loop's direction.
    pub end: i64,
    /// Its mark, its accesses and what else happened in it.
    pub records: Records,
    /// Accesses that it executed, and its pages.
    pub work: DealtChunk,
}

/// A team that the thread is in.
#[derive(Clone, Copy, Debug)]
struct Team {
    instance: u64,
    number: u64,
    size: u64,
    /// Dynamic loops that the thread came to.
    loops: u64,
    /// The thread is in a loop that stays as it was recorded.
    passing: bool,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopPosition {
    /// Not in a loop that anybody waits for.
    Outside,
    /// At the first piece of a loop.
    Loop(LoopKey),
    /// Its log is read.
    End,
}

/// What happens outside of loops that are dealt anew.
#[derive(Debug)]
pub enum Passed {
    /// An access.
    Access { line: LineNo, write: bool, pc: u64, delta: u64, team: Option<u64> },
    /// A mark.
    Mark { mark: Mark, delta: u64 },
}

/// A thread's log.
pub struct ThreadLog {
    log: LogReader,
    held: Option<Record>,
    tick: u64,
    teams: Vec<Team>,
    /// Where it is.
    pub at: LoopPosition,
    /// Its stack: lowest address, one past the highest.
    pub stack: (u64, u64),
}

/// A thread's share of a loop.
#[derive(Default)]
pub struct LoopShare {
    /// The chunks that it got.
    pub chunks: Vec<RecordedChunk>,
    /// The clock between the record before the loop and the first piece.
    pub before: u64,
    /// Why the loop must stay as it is.
    pub left: Option<UnchangedReason>,
}

impl ThreadLog {
    /// At the beginning of a log.
    pub fn new(log: LogReader) -> Self {
        Self { log, held: None, tick: 0, teams: Vec::new(), at: LoopPosition::Outside, stack: (0, 0) }
    }

    /// The thread's number in its innermost team, and the team's size.
    pub fn number(&self) -> (u64, u64) {
        self.teams.last().map_or((0, 1), |team| (team.number, team.size))
    }

    fn next(&mut self) -> Result<Option<Record>, LogError> {
        match self.held.take() {
            Some(record) => Ok(Some(record)),
            None => self.log.next_record(),
        }
    }

    /// The clock since the record before; the record is passed.
    fn delta(&mut self, record: &Record) -> u64 {
        let delta = record.tick.0.saturating_sub(self.tick);
        self.tick = record.tick.0.max(self.tick);
        delta
    }

    /// Passes on what comes before the next loop.
    pub fn pass(
        &mut self,
        mut each: impl FnMut(Passed) -> std::io::Result<()>,
    ) -> Result<std::io::Result<()>, LogError> {
        loop {
            let Some(record) = self.next()? else {
                self.at = LoopPosition::End;
                return Ok(Ok(()));
            };
            if let RecordKind::Mark(Mark::LoopPiece { .. }) = record.what
                && let Some(team) = self.teams.last_mut().filter(|team| !team.passing && team.size > 1)
            {
                self.at = LoopPosition::Loop((team.instance, team.loops));
                team.loops += 1;
                self.held = Some(record);
                return Ok(Ok(()));
            }
            let delta = self.delta(&record);
            let passed = match record.what {
                RecordKind::Access { line, write, pc } => {
                    let team = self.teams.last().map(|team| team.number);
                    Passed::Access { line, write, pc, delta, team }
                }
                RecordKind::Mark(mark) => {
                    self.follow(&mark);
                    Passed::Mark { mark, delta }
                }
            };
            if let Err(e) = each(passed) {
                return Ok(Err(e));
            }
        }
    }

    /// What a mark says of teams.
    fn follow(&mut self, mark: &Mark) {
        match *mark {
            Mark::ThreadStart { stack_low, stack_high, .. } => self.stack = (stack_low, stack_high),
            Mark::TaskBegin { instance, number, team } => {
                self.teams.push(Team { instance, number, size: team, loops: 0, passing: false });
            }
            Mark::TaskEnd { .. } => {
                self.teams.pop();
            }
            Mark::Barrier { .. } => {
                if let Some(team) = self.teams.last_mut() {
                    team.passing = false;
                }
            }
            Mark::LoopPiece { first, end } => {
                if let Some(team) = self.teams.last_mut() {
                    // Every piece of such a loop passes, up to the empty one.
                    team.passing = first != end && team.size > 1;
                }
            }
            _ => {}
        }
    }

    /// Passes the loop that the thread stands at without a change.
    pub fn let_pass(&mut self) {
        if let Some(team) = self.teams.last_mut() {
            team.passing = true;
        }
        self.at = LoopPosition::Outside;
    }

    /// Reads the thread's share of the loop that it stands at, at most `room` words. The empty
    /// piece at its end comes next.
    pub fn share(&mut self, room: usize) -> Result<LoopShare, LogError> {
        let mut share = LoopShare::default();
        let mut words = 0;
        self.at = LoopPosition::Outside;
        loop {
            let Some(record) = self.next()? else {
                share.left = Some(UnchangedReason::NoEnd);
                return Ok(share);
            };
            match record.what {
                RecordKind::Mark(Mark::LoopPiece { first, end }) => {
                    let gap = self.delta(&record);
                    match share.chunks.last_mut() {
                        // What was executed since the last record belongs to the chunk before.
                        Some(chunk) => chunk.records.skip(gap),
                        None => share.before = gap,
                    }
                    if first == end {
                        // The clock stands here already.
                        self.held = Some(record);
                        if let Some(team) = self.teams.last_mut() {
                            team.passing = true;
                        }
                        return Ok(share);
                    }
                    let mut chunk =
                        RecordedChunk { first: first as i64, end: end as i64, ..RecordedChunk::default() };
                    chunk.records.mark(&Mark::LoopPiece { first, end }, 0);
                    share.chunks.push(chunk);
                }
                RecordKind::Access { line, write, pc } => {
                    let delta = self.delta(&record);
                    let Some(chunk) = share.chunks.last_mut() else { continue };
                    chunk.records.access(line, write, pc, delta);
                    let page = line.0 >> (PAGE_SHIFT - LineNo::SHIFT);
                    match chunk.work.pages.last_mut() {
                        Some((last, n)) if *last == page => *n = n.saturating_add(1),
                        _ => chunk.work.pages.push((page, 1)),
                    }
                }
                RecordKind::Mark(mark) if may_move(&mark) => {
                    let delta = self.delta(&record);
                    if let Some(chunk) = share.chunks.last_mut() {
                        chunk.records.mark(&mark, delta);
                    }
                }
                RecordKind::Mark(mark) => {
                    self.held = Some(record);
                    self.let_pass();
                    let is_end =
                        matches!(mark, Mark::Barrier { .. } | Mark::TaskEnd { .. } | Mark::ThreadEnd { .. });
                    share.left = Some(if is_end { UnchangedReason::NoEnd } else { UnchangedReason::Works });
                    return Ok(share);
                }
            }
            words += 2;
            if words > room {
                self.let_pass();
                share.left = Some(UnchangedReason::TooLong);
                return Ok(share);
            }
        }
    }
}

impl RecordedChunk {
    /// To be called when the chunk is complete.
    pub fn complete(&mut self) {
        self.work.ticks = self.records.ticks();
        let pages = &mut self.work.pages;
        pages.sort_unstable();
        pages.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.saturating_add(later.1);
            }
            same
        });
    }
}

/// Whether another thread may do what a mark tells: locks, atomic accesses, fences, and what the
/// recorder tells of itself.
const fn may_move(mark: &Mark) -> bool {
    matches!(
        mark,
        Mark::Acquire { .. }
            | Mark::Release { .. }
            | Mark::Atomic { .. }
            | Mark::Flush {}
            | Mark::Bypass { .. }
            | Mark::Clock { .. }
    )
}
