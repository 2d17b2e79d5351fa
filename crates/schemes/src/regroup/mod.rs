//! A recording as it would be under another schedule.
//!
//! # Problem
//!
//! A recording has a dynamic loop's chunks where the threads happened to take them. The question is
//! what another schedule would have done to the same chunks.
//!
//! # Approach
//!
//! The recording is copied. Outside of dynamic loops each thread's records stay where they are.
//! Inside, the chunks of all threads of the team are dealt anew ([`deal`]), and each thread's log
//! gets the records of its chunks. So everything that reads recordings reads the copy.
//!
//! # What moves along
//!
//! - Accesses, and the time between them.
//! - Lines of a thread's own stack that no other thread uses in the loop: they become the same
//!   lines of the new thread's stack.
//! - Locks and atomic accesses. Their numbers are dealt anew in the order of the new schedule, so
//!   that nobody waits for a later chunk of its own.
//!
//! # What it does not model
//!
//! Chunks have the size that was recorded. A loop whose iterations allocate memory or start teams
//! stays as it was recorded, and [`RegroupSummary`] counts it.

pub mod deal;
mod owners;
mod reader;
mod writer;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use homenode_error::{Context, Error, Result};
use homenode_log::file::LogReader;
use homenode_log::recording::Recording;
use homenode_model::LineNo;
use homenode_task::Task;

pub use deal::Schedule;
use deal::{DealtChunk, ThreadChunks, loads};
use owners::{Owners, PAGE_SHIFT};
use reader::{LoopKey, LoopPosition, LoopShare, Passed, RecordedChunk, ThreadLog, UnchangedReason};
use writer::{Records, RegroupedLog};

/// Words that the chunks of one execution may take: 1 GiB.
const ROOM: usize = 1 << 27;

/// What became of the loops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegroupSummary {
    /// Executions of dynamic loops that were dealt anew.
    pub executions: u64,
    /// Their chunks.
    pub chunks: u64,
    /// Chunks that another thread executed when the program was recorded.
    pub moved: u64,
    /// Executions that stay as they were recorded, by reason.
    left: BTreeMap<UnchangedReason, u64>,
    /// Time of the busiest thread, and the mean, summed over executions.
    busiest: u64,
    mean: u64,
}

impl RegroupSummary {
    /// Percent that the busiest thread has more to do than the mean, over all executions.
    pub fn imbalance(&self) -> f64 {
        (self.busiest as f64 / (self.mean as f64).max(1.0) - 1.0) * 100.0
    }

    /// Executions that stay as they were recorded.
    pub fn left(&self) -> u64 {
        self.left.values().sum()
    }

    /// A sentence for a person.
    pub fn describe(&self, schedule: Schedule) -> String {
        let mut text = format!(
            "schedule {}: {} executions of dynamic loops dealt anew, {} of {} chunks to another thread; \
             imbalance {:.1} %",
            schedule.as_str(),
            self.executions,
            self.moved,
            self.chunks,
            self.imbalance()
        );
        for (why, n) in &self.left {
            text.push_str(&format!("; {n} executions stay as recorded: {}", why.why()));
        }
        text
    }
}

/// Copies a recording to `to` with its dynamic loops under another schedule.
///
/// # Errors
/// The recording cannot be read or the copy not written; no loop can be dealt anew; `task` asks to
/// stop.
pub fn regroup(
    from: &Recording,
    schedule: Schedule,
    to: &Path,
    task: &dyn Task,
) -> Result<(Recording, RegroupSummary)> {
    let recording =
        Recording::create(to, from.meta.clone()).context(|| "cannot copy the recording".into())?;
    for name in ["modules.txt", "python.txt", "symbols.json", "status"] {
        let (old, new) = (from.path.join(name), to.join(name));
        if old.is_file() {
            std::fs::copy(&old, &new).context(|| format!("cannot copy {}", old.display()))?;
        }
    }
    let logs = from.logs().context(|| format!("cannot read {}", from.path.display()))?;
    let mut copy = Copy::open(&logs, &to.join("threads"), schedule)?;
    let what = format!("dealing the loops of {} ({})", from.path.display(), schedule.as_str());
    let mut progress = task.progress(&what, None);
    while copy.step()? {
        progress.advance(1);
        if task.stop_asked() {
            return Err(Error::interrupted());
        }
    }
    progress.finish();
    let summary = copy.finish()?;
    if summary.executions == 0 {
        let program = from.meta.command.join(" ");
        let why = summary.left.keys().next().map_or("it has no chunk of a loop", |why| why.why());
        return Err(Error::usage(format!("'{program}' has no dynamic loop that can be dealt anew"))
            .tried(format!("read {}: {why}", from.path.display()))
            .hint(
            "loops with schedule(dynamic), (guided) or (runtime) are recorded chunk by chunk; static ones are not: \
             build the loop with schedule(runtime) and record with OMP_SCHEDULE=dynamic,N",
        ));
    }
    Ok((recording, summary))
}

/// A copy under way.
struct Copy {
    threads: Vec<ThreadLog>,
    writers: Vec<RegroupedLog>,
    paths: Vec<PathBuf>,
    schedule: Schedule,
    owners: Owners,
    summary: RegroupSummary,
}

impl Copy {
    fn open(logs: &[PathBuf], folder: &Path, schedule: Schedule) -> Result<Self> {
        let (mut threads, mut writers) = (Vec::new(), Vec::new());
        for path in logs {
            let log = LogReader::open(path).context(|| format!("cannot read {}", path.display()))?;
            let name = path.file_name().unwrap_or(path.as_os_str());
            let new = folder.join(name);
            writers.push(
                RegroupedLog::create(&new, log.header())
                    .context(|| format!("cannot write {}", new.display()))?,
            );
            threads.push(ThreadLog::new(log));
        }
        let (owners, summary) = (Owners::default(), RegroupSummary::default());
        Ok(Self { threads, writers, paths: logs.to_vec(), schedule, owners, summary })
    }

    /// Passes on what threads did up to their next loops, or deals one loop; false: all is read.
    fn step(&mut self) -> Result<bool> {
        if let Some(t) = self.threads.iter().position(|t| t.at == LoopPosition::Outside) {
            self.pass(t)?;
            return Ok(true);
        }
        let mut waiting: BTreeMap<LoopKey, Vec<usize>> = BTreeMap::new();
        for (t, thread) in self.threads.iter().enumerate() {
            if let LoopPosition::Loop(key) = thread.at {
                waiting.entry(key).or_default().push(t);
            }
        }
        let complete = waiting.values().find(|team| team.len() as u64 == self.threads[team[0]].number().1);
        if let Some(team) = complete {
            let mut team = team.clone();
            team.sort_by_key(|t| self.threads[*t].number());
            self.deal(&team)?;
            return Ok(true);
        }
        // The others of the team ended early.
        let Some(first) = waiting.values().next() else { return Ok(false) };
        *self.summary.left.entry(UnchangedReason::Team).or_default() += 1;
        first.iter().for_each(|t| self.threads[*t].let_pass());
        Ok(true)
    }

    fn pass(&mut self, t: usize) -> Result<()> {
        let Self { threads, writers, owners, paths, .. } = self;
        let writer = &mut writers[t];
        let mut one = Records::default();
        let passed = threads[t].pass(|passed| {
            one.clear();
            match passed {
                Passed::Access { line, write, pc, delta, team } => {
                    if let Some(number) = team {
                        owners.take(line.0 >> (PAGE_SHIFT - LineNo::SHIFT), number as usize);
                    }
                    one.access(line, write, pc, delta);
                }
                Passed::Mark { mark, delta } => one.mark(&mark, delta),
            }
            writer.records(&one)
        });
        passed
            .context(|| format!("cannot read {}", paths[t].display()))?
            .context(|| "cannot write the copy of a recording".into())
    }

    /// Deals the loop that all threads of a team stand at. `team`: in the order of their numbers.
    fn deal(&mut self, team: &[usize]) -> Result<()> {
        let mut shares = Vec::new();
        let mut room = ROOM;
        for t in team {
            let share = self.threads[*t]
                .share(room)
                .context(|| format!("cannot read {}", self.paths[*t].display()))?;
            room = room.saturating_sub(share.chunks.iter().map(|c| c.records.len()).sum());
            shares.push(share);
        }
        let written = match shares.iter().find_map(|s| s.left) {
            Some(why) => {
                *self.summary.left.entry(why).or_default() += 1;
                self.write_as_recorded(team, &shares)
            }
            None => {
                let stacks: Vec<(u64, u64)> = team.iter().map(|t| self.threads[*t].stack).collect();
                let before: Vec<u64> = shares.iter().map(|s| s.before).collect();
                let (chunks, lists, stacks) = self.dealt(shares, &stacks);
                self.write_dealt(team, &before, chunks, &lists, &stacks)
            }
        };
        written.context(|| "cannot write the copy of a recording".into())
    }

    fn write_as_recorded(&mut self, team: &[usize], shares: &[LoopShare]) -> std::io::Result<()> {
        for (t, share) in team.iter().zip(shares) {
            let mut before = Records::default();
            before.skip(share.before);
            self.writers[*t].records(&before)?;
            for chunk in &share.chunks {
                self.writers[*t].records(&chunk.records)?;
            }
        }
        Ok(())
    }

    /// The chunks in the order of iterations, each with the thread that executed it, and the new
    /// lists.
    fn dealt(
        &mut self,
        shares: Vec<LoopShare>,
        stacks: &[(u64, u64)],
    ) -> (Vec<(usize, RecordedChunk)>, ThreadChunks, Stacks) {
        let threads = shares.len();
        let stacks = Stacks::of(&shares, stacks);
        let mut chunks: Vec<(usize, RecordedChunk)> = Vec::new();
        for (member, share) in shares.into_iter().enumerate() {
            chunks.extend(share.chunks.into_iter().map(|c| (member, c)));
        }
        let down = chunks.iter().any(|(_, c)| c.end < c.first);
        chunks.sort_by_key(|(_, c)| if down { -i128::from(c.first) } else { i128::from(c.first) });
        let works: Vec<DealtChunk> = chunks
            .iter_mut()
            .map(|(_, c)| {
                c.complete();
                std::mem::take(&mut c.work)
            })
            .collect();
        let lists = deal::deal(self.schedule, &works, threads, self.summary.executions, &self.owners);
        let mut to = vec![0; chunks.len()];
        for (thread, list) in lists.iter().enumerate() {
            list.iter().for_each(|k| to[*k] = thread);
        }
        for (work, thread) in works.iter().zip(&to) {
            work.pages.iter().for_each(|(page, _)| self.owners.take(*page, *thread));
        }
        let times = loads(&works, &lists);
        self.summary.executions += 1;
        self.summary.chunks += chunks.len() as u64;
        self.summary.moved += chunks.iter().zip(&to).filter(|((was, _), is)| was != *is).count() as u64;
        self.summary.busiest += times.iter().max().copied().unwrap_or(0);
        self.summary.mean += times.iter().sum::<u64>() / threads as u64;
        number_orders(&mut chunks, &lists);
        (chunks, lists, stacks)
    }

    fn write_dealt(
        &mut self,
        team: &[usize],
        before: &[u64],
        mut chunks: Vec<(usize, RecordedChunk)>,
        lists: &ThreadChunks,
        stacks: &Stacks,
    ) -> std::io::Result<()> {
        for (member, (t, list)) in team.iter().zip(lists).enumerate() {
            // The time before the first chunk passes for the thread that spent it.
            let mut gap = Records::default();
            gap.skip(before[member]);
            self.writers[*t].records(&gap)?;
            for k in list {
                let (was, chunk) = &mut chunks[*k];
                if *was != member {
                    let was = *was;
                    chunk.records.map_lines(|line| stacks.moved(line, was, member));
                }
                self.writers[*t].records(&chunk.records)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<RegroupSummary> {
        for writer in self.writers {
            writer.finish().context(|| "cannot write the copy of a recording".into())?;
        }
        Ok(self.summary)
    }
}

/// Gives the locks and atomic accesses of a loop the numbers that they have together, in the order
/// in which the new schedule comes to them.
fn number_orders(chunks: &mut [(usize, RecordedChunk)], lists: &ThreadChunks) {
    // (time, thread, chunk, index within the chunk), and all numbers.
    let (mut events, mut numbers) = (Vec::new(), Vec::new());
    for (thread, list) in lists.iter().enumerate() {
        let mut begin = 0u64;
        for k in list {
            let records = &mut chunks[*k].1.records;
            let mut of_chunk = 0;
            records.map_orders(|clock, order| {
                events.push((begin.saturating_add(clock), thread, *k, of_chunk));
                numbers.push(order);
                of_chunk += 1;
                order
            });
            begin = begin.saturating_add(records.ticks());
        }
    }
    if events.is_empty() {
        return;
    }
    // The sort is stable: what one thread does at one time stays in its order.
    events.sort_by_key(|(time, thread, ..)| (*time, *thread));
    numbers.sort_unstable();
    let mut new: HashMap<(usize, usize), u64> = HashMap::new();
    for ((_, _, chunk, of_chunk), number) in events.into_iter().zip(numbers) {
        new.insert((chunk, of_chunk), number);
    }
    for (k, (_, chunk)) in chunks.iter_mut().enumerate() {
        let mut of_chunk = 0;
        chunk.records.map_orders(|_, order| {
            of_chunk += 1;
            new.get(&(k, of_chunk - 1)).copied().unwrap_or(order)
        });
    }
}

/// The private lines of the threads' stacks in a loop.
struct Stacks {
    /// By member of the team: first line and one past the last.
    bounds: Vec<(u64, u64)>,
    /// Lines of the member's stack that another one uses, too.
    shared: Vec<BTreeSet<u64>>,
    /// The deepest private line that the member used.
    deepest: Vec<Option<u64>>,
}

impl Stacks {
    fn of(shares: &[LoopShare], stacks: &[(u64, u64)]) -> Self {
        let bounds: Vec<(u64, u64)> = stacks
            .iter()
            .map(|(low, high)| (low >> LineNo::SHIFT, high.div_ceil(1 << LineNo::SHIFT)))
            .collect();
        let mut shared = vec![BTreeSet::new(); bounds.len()];
        let mut own = vec![BTreeSet::new(); bounds.len()];
        for (member, chunk) in
            shares.iter().enumerate().flat_map(|(m, s)| s.chunks.iter().map(move |c| (m, c)))
        {
            let _ = chunk.records.each(|words| {
                let line = words[0] >> 8;
                if words[0] & 0xff <= 1
                    && let Some(of) = bounds.iter().position(|(low, high)| (*low..*high).contains(&line))
                {
                    if of == member {
                        own[of].insert(line)
                    } else {
                        shared[of].insert(line)
                    };
                }
                Ok(())
            });
        }
        let deepest = own.iter().zip(&shared).map(|(own, shared)| own.difference(shared).next().copied());
        Self { deepest: deepest.collect(), bounds, shared }
    }

    /// A line of a chunk that goes from one member to another.
    fn moved(&self, line: u64, from: usize, to: usize) -> u64 {
        let (low, high) = self.bounds[from];
        if !(low..high).contains(&line) || self.shared[from].contains(&line) {
            return line;
        }
        let new = match (self.deepest[from], self.deepest[to]) {
            (Some(was), Some(is)) => line.wrapping_sub(was).wrapping_add(is),
            // The new thread got nothing when the program was recorded: threads of a team begin
            // alike.
            _ => self.bounds[to].1.wrapping_sub(high - line),
        };
        if (self.bounds[to].0..self.bounds[to].1).contains(&new) { new } else { line }
    }
}

#[cfg(test)]
mod tests;
