//! What is known of each loop, and what follows for its next execution.
//!
//! The front ends ask [`Book::decide`] when the first thread of a team starts a loop, and tell
//! [`Book::ended`] when the last thread has left it. Whatever the book does not understand stays
//! with the program's own run-time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homenode_wire::schedule::{Dealt, KEPT, Kept, Mode, REFUSED};

use crate::auto::{Auto, ScheduleCandidate};
use crate::deal::Deal;
use crate::exchange;
use crate::file::Imported;
use crate::homes::ValueHomes;
use crate::owners::Owners;
use crate::queues::{NodeChunks, Queues};
use crate::shape::{SHAPES, Shape};
use crate::space::{LoopChunks, Run, Space};
use crate::table::{self, IterationTable};
use crate::touches::{ChunkTouch, Touches};

/// Attempts at recording a loop, each with four times the memory of the one before.
const ATTEMPTS: u32 = 4;
/// Chunks that a thread gets where the program's schedule has no chunks of one size (`guided`,
/// `auto`).
const SHARES: u64 = 16;

/// What the program's own schedule promises besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Chunks are of several sizes (`guided`, `auto`).
    pub uneven: bool,
    /// Each thread gets chunks in ascending order (`monotonic`).
    pub monotonic: bool,
}

/// How a loop is executed this time.
#[derive(Debug)]
pub struct LoopExecution {
    /// Who hands out the iterations; `None`: the program's own run-time.
    pub deal: Option<Deal>,
    /// Runs that each thread records; `None`: nothing is recorded.
    pub record: Option<usize>,
    /// What is timed.
    pub candidate: Option<ScheduleCandidate>,
}

/// What one thread executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadExecution {
    /// Its number.
    pub thread: u32,
    /// The node that it ran on.
    pub node: Option<u16>,
    /// The iterations.
    pub runs: Vec<Run>,
}

/// How a static loop is executed this time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticDecision {
    /// The number of the range that each thread gets; `None`: the program's own schedule.
    pub ranges: Option<Arc<[u32]>>,
    /// The ranges that the program's own schedule gives are wanted.
    pub record: bool,
}

/// What an execution came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopOutcome {
    /// What was timed.
    pub candidate: Option<ScheduleCandidate>,
    /// Nanoseconds from the first thread's start to the last one's end.
    pub time: u64,
    /// Chunks that homenode handed out, or saw handed out.
    pub chunks: u64,
    /// homenode handed them out.
    pub taken: bool,
    /// It handed them out as recorded.
    pub replayed: bool,
    /// What was recorded; `None`: there was to be no recording.
    pub rows: Option<Vec<ThreadExecution>>,
    /// A thread had more runs than it could record.
    pub overflowed: bool,
    /// Every thread went on to the end of its iterations.
    pub complete: bool,
}

/// A shape's own state.
#[derive(Debug, Default)]
struct Known {
    table: Option<Arc<IterationTable>>,
    nodes: Vec<Option<u16>>,
    lists: Option<Arc<NodeChunks>>,
    /// [`Site::version`] of these lists.
    version: u64,
    attempts: u32,
}

/// What a loop's iterations touch, and the owners of its values that follow.
#[derive(Debug, Default)]
struct Site {
    touches: Touches,
    /// Owners by executions, overlaid by the homes of touched pages.
    homes: Option<Arc<ValueHomes>>,
    /// Grows when the homes change.
    version: u64,
}

/// A static loop's exchange of ranges, and what it was made for.
#[derive(Debug)]
struct Exchange {
    owners: Vec<Option<u16>>,
    ranges: Option<Arc<[u32]>>,
}

/// The loops of a program.
#[derive(Debug)]
pub struct Book {
    mode: Mode,
    nodes: u16,
    shapes: BTreeMap<Shape, Known>,
    /// By site, threads and power of two of the trip count.
    autos: BTreeMap<(usize, u32, u32), Auto>,
    /// The nodes of a team's threads as they were seen last, by the number of threads.
    thread_nodes: BTreeMap<u32, Vec<Option<u16>>>,
    /// By site, values and threads.
    exchanges: BTreeMap<(usize, Space, u32), Exchange>,
    /// Of loops whose touches were seen.
    touched: BTreeMap<usize, Site>,
    owners: Owners,
    from: Option<Imported>,
    sites: BTreeSet<usize>,
    refused: BTreeSet<String>,
    totals: Totals,
}

/// Executions and chunks so far.
#[derive(Debug, Default)]
struct Totals {
    /// Executions that homenode handed out.
    taken: u64,
    /// Executions that the program's own run-time handed out.
    own: u64,
    /// Chunks that homenode handed out.
    chunks: u64,
    /// Chunks of those that went as recorded.
    replayed: u64,
    /// Chunks that were recorded.
    recorded: u64,
}

impl Book {
    /// An empty book for a machine with `nodes` nodes.
    pub fn new(mode: Mode, nodes: u16) -> Self {
        Self {
            mode,
            nodes,
            shapes: BTreeMap::new(),
            autos: BTreeMap::new(),
            thread_nodes: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            touched: BTreeMap::new(),
            owners: Owners::default(),
            from: None,
            sites: BTreeSet::new(),
            refused: BTreeSet::new(),
            totals: Totals::default(),
        }
    }

    /// Replays the tables of an earlier run.
    pub fn import(&mut self, from: Imported) {
        self.from = Some(from);
    }

    /// Notes why something is not done. At most [`REFUSED`] sentences are kept.
    pub fn refuse(&mut self, why: String) {
        if self.refused.len() < REFUSED {
            self.refused.insert(why);
        }
    }

    /// How the next execution of a loop goes; `None`: homenode has nothing to do with it. `place`
    /// tells in which file a site is, and where there; `nodes_of` tells the node of each page.
    pub fn decide(
        &mut self,
        shape: &Shape,
        promise: Promise,
        place: impl Fn(usize) -> Option<(u64, u64)>,
        nodes_of: impl Fn(&[usize]) -> Vec<Option<u16>>,
    ) -> Option<LoopExecution> {
        if shape.space.count() == 0 || shape.team < 2 {
            return None;
        }
        let is_known = self.shapes.contains_key(shape);
        let has_room = is_known || self.shapes.len() < SHAPES;
        if !is_known && has_room {
            let mut known = Known::default();
            if let Some(from) = &self.from {
                match from.find(shape, place(shape.site)) {
                    Ok((table, nodes)) => {
                        self.learn(shape, &table, &nodes);
                        (known.table, known.nodes) = (Some(table), nodes);
                    }
                    // The report has named a file that was refused as a whole.
                    Err(_) if from.is_empty() => {}
                    Err(why) => self.refuse(why),
                }
            }
            self.shapes.insert(*shape, known);
        }
        if matches!(self.mode, Mode::Affinity | Mode::Auto) {
            self.owners.adopt(shape);
        }
        self.ask_for_homes(shape, nodes_of);
        let decision = match self.mode {
            Mode::Record => self.own(shape, None),
            Mode::Block => self.dealt(shape, promise, ScheduleCandidate::Block),
            Mode::Cyclic => self.dealt(shape, promise, ScheduleCandidate::Cyclic),
            Mode::Replay => {
                self.dealt(shape, promise, ScheduleCandidate::Replay).or_else(|| self.own(shape, None))
            }
            Mode::Affinity => {
                self.dealt(shape, promise, ScheduleCandidate::Affinity).or_else(|| self.own(shape, None))
            }
            Mode::Auto => self.tried(shape, promise),
        };
        match &decision {
            Some(_) => drop(self.sites.insert(shape.site)),
            None => self.totals.own += 1,
        }
        decision
    }

    /// The program's own schedule: recorded where that is of use and was not done; timed for
    /// `auto`.
    fn own(&mut self, shape: &Shape, candidate: Option<ScheduleCandidate>) -> Option<LoopExecution> {
        let of_use = match self.mode {
            // What was asked to be replayed is the file's, or nothing.
            Mode::Replay | Mode::Affinity => self.from.is_none(),
            _ => true,
        };
        let known = self.shapes.get_mut(shape);
        let record = known.filter(|k| of_use && k.table.is_none() && k.attempts < ATTEMPTS).map(|known| {
            let all = shape.space.count().div_ceil(shape.chunk.max(1));
            let fair = (all / u64::from(shape.team)).saturating_mul(2).saturating_add(64);
            let room = fair.min(1 << 16).max(all.min(1 << 12)) << (2 * known.attempts);
            known.attempts += 1;
            usize::try_from(room).unwrap_or(table::MOST).min(table::MOST)
        });
        if record.is_none() && candidate.is_none() {
            return None;
        }
        Some(LoopExecution { deal: None, record, candidate })
    }

    /// The chunks in which homenode hands a loop out.
    fn chunks(&self, shape: &Shape, promise: Promise) -> LoopChunks {
        let count = shape.space.count();
        let share = count.div_ceil(SHARES * u64::from(shape.team.max(1)));
        LoopChunks::new(count, if promise.uneven { shape.chunk.max(share) } else { shape.chunk })
    }

    fn dealt(
        &mut self,
        shape: &Shape,
        promise: Promise,
        candidate: ScheduleCandidate,
    ) -> Option<LoopExecution> {
        let chunks = self.chunks(shape, promise);
        let deal = match candidate {
            ScheduleCandidate::Own => return None,
            ScheduleCandidate::Block => Deal::Block(chunks),
            ScheduleCandidate::Cyclic => Deal::Cyclic(chunks),
            ScheduleCandidate::Replay => Deal::Replay(Arc::clone(self.shapes.get(shape)?.table.as_ref()?)),
            ScheduleCandidate::Affinity if promise.monotonic => return None,
            ScheduleCandidate::Affinity => {
                let lists = self.lists(shape, chunks)?;
                let queues = Queues::new(&lists);
                Deal::Affinity(lists, queues)
            }
        };
        Some(LoopExecution { deal: Some(deal), record: None, candidate: Some(candidate) })
    }

    /// The chunks of each node, as the first recorded execution tells: of the loop itself, or of
    /// one with the same values.
    fn lists(&mut self, shape: &Shape, chunks: LoopChunks) -> Option<Arc<NodeChunks>> {
        if self.nodes < 2 {
            return None;
        }
        let (homes, version) = match self.touched.get(&shape.site) {
            Some(Site { homes: Some(homes), version, .. }) => (homes, *version),
            _ => (self.owners.of(shape)?, 0),
        };
        if let Some(known) = self.shapes.get(shape).filter(|k| k.version == version)
            && let Some(lists) = known.lists.as_ref()
        {
            return Some(Arc::clone(lists));
        }
        let lists = Arc::new(NodeChunks::new(&shape.space, chunks, homes, self.nodes)?);
        if let Some(known) = self.shapes.get_mut(shape) {
            (known.lists, known.version) = (Some(Arc::clone(&lists)), version);
        }
        Some(lists)
    }

    /// Whether touches of pages are of use ([`Book::touched`]).
    pub const fn wants_touches(&self) -> bool {
        matches!(self.mode, Mode::Affinity | Mode::Auto) && self.nodes > 1
    }

    /// A loop at a site was seen to touch pages.
    pub fn touched(&mut self, site: usize, touches: impl IntoIterator<Item = ChunkTouch>) {
        if self.touched.contains_key(&site) || self.touched.len() < SHAPES {
            self.touched.entry(site).or_default().touches.add(touches);
        }
    }

    /// Finds the nodes of the pages that a loop touches, if it is time to.
    fn ask_for_homes(&mut self, shape: &Shape, nodes_of: impl Fn(&[usize]) -> Vec<Option<u16>>) {
        let Some(site) = self.touched.get_mut(&shape.site) else { return };
        if !site.touches.is_due() {
            return;
        }
        let by_execution = self.owners.of(shape);
        let nodes = site.touches.nodes(nodes_of);
        let homes = by_execution.map_or(&ValueHomes::default(), |homes| &**homes).overlaid(nodes);
        if site.homes.as_deref() != Some(&homes) {
            site.homes = Some(Arc::new(homes));
            site.version += 1;
        }
    }

    fn tried(&mut self, shape: &Shape, promise: Promise) -> Option<LoopExecution> {
        let key = auto_key(shape);
        if !self.autos.contains_key(&key) && self.autos.len() >= SHAPES {
            return None;
        }
        let mut auto = self.autos.remove(&key).unwrap_or_default();
        let size = self.chunks(shape, promise);
        let replay = self.shapes.get(shape).is_some_and(|k| k.table.is_some());
        let affinity = !promise.monotonic && self.lists(shape, size).is_some();
        let chosen = auto.choose(|c| match c {
            ScheduleCandidate::Own | ScheduleCandidate::Block | ScheduleCandidate::Cyclic => true,
            ScheduleCandidate::Replay => replay,
            ScheduleCandidate::Affinity => affinity,
        });
        self.autos.insert(key, auto);
        self.dealt(shape, promise, chosen).or_else(|| self.own(shape, Some(ScheduleCandidate::Own)))
    }

    /// Whether static loops follow data in a mode.
    pub const fn follows_data(mode: Mode) -> bool {
        matches!(mode, Mode::Affinity | Mode::Replay)
    }

    /// How the next execution of a static loop goes, in which each thread gets one range. The
    /// shape's chunk size does not matter.
    pub fn decide_static(&mut self, shape: &Shape) -> StaticDecision {
        let is_useful = match self.mode {
            Mode::Affinity => self.nodes > 1,
            mode => Self::follows_data(mode),
        };
        if shape.space.count() == 0 || shape.team < 2 || !is_useful {
            return StaticDecision::default();
        }
        let homes = self.owners.of(shape);
        let Some(homes) = homes else {
            return StaticDecision { ranges: None, record: self.mode == Mode::Affinity };
        };
        let owners = match self.mode {
            Mode::Replay => (0..shape.team).map(|t| u16::try_from(t).ok()).collect(),
            _ => match self.thread_nodes.get(&shape.team) {
                Some(nodes) => nodes.clone(),
                None => return StaticDecision { ranges: None, record: true },
            },
        };
        let key = (shape.site, shape.space, shape.team);
        let has_room = self.exchanges.len() < SHAPES;
        let ranges = match self.exchanges.get(&key) {
            Some(known) if known.owners == owners => known.ranges.clone(),
            None if !has_room => None,
            _ => {
                let ranges = exchange::exchanged(&shape.space, homes, &owners).map(Arc::from);
                self.exchanges.insert(key, Exchange { owners, ranges: ranges.clone() });
                ranges
            }
        };
        StaticDecision { ranges, record: false }
    }

    /// All threads of a team have started a static loop. `taken`: their ranges were exchanged. Else
    /// a row has what the program's own schedule gave, if that was wanted.
    pub fn began_static(&mut self, shape: &Shape, rows: Vec<ThreadExecution>, taken: bool) {
        if taken {
            self.sites.insert(shape.site);
            self.totals.taken += 1;
            self.totals.chunks += u64::from(shape.team);
        }
        let (threads, nodes) = self.by_thread(shape.team, rows);
        if taken || threads.iter().all(Vec::is_empty) {
            return;
        }
        match IterationTable::new(shape.space.count(), threads) {
            Ok(table) => self.learn(shape, &table, &nodes),
            Err(why) => self.refuse(format!("the recording of a static loop makes no sense: {why}")),
        }
    }

    /// What each thread executed and its node, by its number.
    fn by_thread(&mut self, team: u32, rows: Vec<ThreadExecution>) -> (Vec<Vec<Run>>, Vec<Option<u16>>) {
        let mut threads = vec![Vec::new(); team as usize];
        let mut nodes = vec![None; team as usize];
        for row in rows {
            if let (Some(runs), Some(node)) =
                (threads.get_mut(row.thread as usize), nodes.get_mut(row.thread as usize))
            {
                (*runs, *node) = (row.runs, row.node);
            }
        }
        if self.thread_nodes.contains_key(&team) || self.thread_nodes.len() < SHAPES {
            self.thread_nodes.insert(team, nodes.clone());
        }
        (threads, nodes)
    }

    /// An execution has ended.
    pub fn ended(&mut self, shape: &Shape, outcome: LoopOutcome) {
        match outcome.taken {
            true => self.totals.taken += 1,
            false => self.totals.own += 1,
        }
        if outcome.replayed {
            // A table joins neighbours: the program's chunks are counted.
            let chunks = LoopChunks::new(shape.space.count(), shape.chunk).number();
            let chunks = if outcome.complete { chunks } else { outcome.chunks };
            self.totals.chunks += chunks;
            self.totals.replayed += chunks;
        } else if outcome.taken {
            self.totals.chunks += outcome.chunks;
        }
        if !outcome.complete {
            return;
        }
        if let (Mode::Auto, Some(candidate)) = (self.mode, outcome.candidate)
            && let Some(auto) = self.autos.get_mut(&auto_key(shape))
        {
            let each = u128::from(outcome.time) * 1000 / u128::from(shape.space.count().max(1));
            auto.took(candidate, u64::try_from(each).unwrap_or(u64::MAX));
        }
        let Some(rows) = outcome.rows else { return };
        let too_many = format!(
            "a loop of {} iterations was not recorded: it has too many chunks of {}",
            shape.space.count(),
            shape.chunk
        );
        if outcome.overflowed {
            self.refuse(too_many);
            return;
        }
        // An earlier execution had no room; this one has.
        self.refused.remove(&too_many);
        self.totals.recorded += outcome.chunks;
        let (threads, nodes) = self.by_thread(shape.team, rows);
        match IterationTable::new(shape.space.count(), threads) {
            Ok(table) => {
                let table = Arc::new(table);
                self.learn(shape, &table, &nodes);
                if let Some(known) = self.shapes.get_mut(shape) {
                    (known.table, known.nodes) = (Some(table), nodes);
                }
            }
            Err(why) => self.refuse(format!("the recording of a loop makes no sense: {why}")),
        }
    }

    fn learn(&mut self, shape: &Shape, table: &IterationTable, nodes: &[Option<u16>]) {
        if self.owners.knows(shape) {
            return;
        }
        let homes = ValueHomes::of(&shape.space, table, |t| match self.mode {
            Mode::Replay => u16::try_from(t).ok(),
            _ => nodes.get(t).copied().flatten(),
        });
        self.owners.learn(shape, homes);
    }

    /// The recorded tables, with the nodes of their threads.
    pub fn tables(&self) -> impl Iterator<Item = (&Shape, &IterationTable, &[Option<u16>])> {
        self.shapes.iter().filter_map(|(shape, k)| Some((shape, &**k.table.as_ref()?, &k.nodes[..])))
    }

    /// What became of it.
    pub fn dealt_so_far(&self) -> Dealt {
        let mut kept: BTreeMap<ScheduleCandidate, u64> = BTreeMap::new();
        for candidate in self.autos.values().filter_map(Auto::kept) {
            *kept.entry(candidate).or_default() += 1;
        }
        let kept: Vec<Kept> = kept
            .into_iter()
            .take(KEPT)
            .map(|(candidate, loops)| Kept { name: candidate.name().into(), loops })
            .collect();
        Dealt {
            mode: self.mode,
            loops: self.sites.len() as u64,
            taken: self.totals.taken,
            own: self.totals.own,
            chunks: self.totals.chunks,
            replayed: self.totals.replayed,
            recorded: self.totals.recorded,
            kept,
            trying: self.autos.values().filter(|a| a.kept().is_none()).count() as u64,
            tables: self.tables().count() as u64,
            refused: self.refused.iter().cloned().collect(),
        }
    }
}

/// Loops of one site whose trip counts have the same power of two share a choice: a triangular loop
/// has another trip count each time.
fn auto_key(shape: &Shape) -> (usize, u32, u32) {
    (shape.site, shape.team, u64::BITS - shape.space.count().leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::StealOrder;

    fn shape(count: i128, team: u32) -> Shape {
        Shape { site: 0x1000, space: Space::excluding(0, count, 1).unwrap(), chunk: 10, team }
    }

    fn nothing(pages: &[usize]) -> Vec<Option<u16>> {
        vec![None; pages.len()]
    }

    fn decide(book: &mut Book, shape: &Shape) -> Option<LoopExecution> {
        book.decide(shape, Promise::default(), |_| None, nothing)
    }

    fn recorded(count: u64, split: u64) -> LoopOutcome {
        let row = |thread, begin, end| ThreadExecution {
            thread,
            node: Some(thread as u16),
            runs: vec![Run { begin, end }],
        };
        let rows = vec![row(1, split, count), row(0, 0, split)];
        LoopOutcome { rows: Some(rows), chunks: 2, complete: true, ..LoopOutcome::default() }
    }

    #[test]
    fn what_was_recorded_once_is_replayed() {
        let mut book = Book::new(Mode::Replay, 2);
        let shape = shape(100, 2);
        let first = decide(&mut book, &shape).unwrap();
        assert!(first.deal.is_none() && first.record.is_some_and(|n| n >= 10));
        book.ended(&shape, recorded(100, 30));
        let Some(LoopExecution { deal: Some(Deal::Replay(table)), record: None, .. }) =
            decide(&mut book, &shape)
        else {
            panic!("it is replayed")
        };
        assert_eq!(table.runs(1), [Run { begin: 30, end: 100 }]);
        // Another team, another trip count: recorded anew.
        for other in [self::shape(100, 3), self::shape(101, 2)] {
            assert!(decide(&mut book, &other).unwrap().deal.is_none());
        }
        book.ended(&shape, LoopOutcome { taken: true, replayed: true, chunks: 5, ..LoopOutcome::default() });
        let dealt = book.dealt_so_far();
        assert_eq!((dealt.loops, dealt.taken, dealt.own, dealt.replayed, dealt.recorded), (1, 1, 1, 5, 2));
        assert_eq!(dealt.tables, 1);
    }

    #[test]
    fn a_team_of_one_and_a_loop_of_none_are_left_alone() {
        let mut book = Book::new(Mode::Block, 2);
        assert!(decide(&mut book, &shape(100, 1)).is_none());
        assert!(decide(&mut book, &shape(0, 4)).is_none());
        assert!(decide(&mut book, &shape(100, 4)).is_some());
    }

    #[test]
    fn recording_ends_after_a_few_attempts() {
        let mut book = Book::new(Mode::Record, 1);
        let shape = shape(1_000_000, 2);
        let mut room = Vec::new();
        while let Some(decision) = decide(&mut book, &shape) {
            room.push(decision.record.unwrap());
            let outcome = LoopOutcome { overflowed: true, ..recorded(1_000_000, 5) };
            book.ended(&shape, outcome);
        }
        assert!(room.is_sorted() && room.len() == ATTEMPTS as usize, "{room:?}");
        assert!(book.dealt_so_far().refused[0].contains("too many chunks"));
    }

    #[test]
    fn affinity_takes_the_nodes_of_a_loop_with_the_same_values() {
        let mut book = Book::new(Mode::Affinity, 2);
        let first = shape(100, 2);
        assert!(decide(&mut book, &first).unwrap().deal.is_none());
        book.ended(&first, recorded(100, 30));
        let second = Shape { site: 0x2000, ..first };
        for known in [first, second] {
            let deal = decide(&mut book, &known).unwrap().deal;
            assert!(matches!(deal, Some(Deal::Affinity(..))), "{deal:?}");
        }
        // Ascending order is promised: only the program's own schedule keeps the promise.
        let promise = Promise { monotonic: true, ..Promise::default() };
        assert!(book.decide(&first, promise, |_| None, nothing).is_none());
        let mut one_node = Book::new(Mode::Affinity, 1);
        decide(&mut one_node, &first);
        one_node.ended(&first, recorded(100, 30));
        assert!(decide(&mut one_node, &first).is_none());
    }

    #[test]
    fn chunks_follow_their_pages() {
        let mut book = Book::new(Mode::Affinity, 2);
        let shape = shape(100, 2);
        let own = |book: &mut Book, at: u16| {
            let nodes_of = |pages: &[usize]| pages.iter().map(|p| Some((*p as u16 + at) % 2)).collect();
            let deal = book.decide(&shape, Promise::default(), |_| None, nodes_of)?.deal;
            let Some(Deal::Affinity(lists, queues)) = deal else { return None };
            Some(queues.next(&lists, &StealOrder::flat(2), (1, 2), 1)?.run.begin)
        };
        assert_eq!(own(&mut book, 0), None);
        book.ended(&shape, recorded(100, 30));
        assert_eq!(own(&mut book, 0), Some(30), "node 1 executed these first");
        // Pages of even numbers lie on node 0.
        book.touched(shape.site, [(0, 30, 1), (30, 100, 2)]);
        assert_eq!([own(&mut book, 0), own(&mut book, 0)], [Some(0); 2]);
        // Pages moved. Homes are asked for in executions 1, 2, 4 and 8.
        let begins: Vec<_> = (0..3).map(|_| own(&mut book, 1).unwrap()).collect();
        assert_eq!(begins, [0, 30, 30]);
        // New touches: two of the three pages of these values are on node 1.
        book.touched(shape.site, [(0, 10, 8), (0, 10, 10)]);
        assert_eq!(own(&mut book, 1), Some(0));
    }

    #[test]
    fn static_loops_follow_the_first_loop_over_their_values() {
        let row = |thread: u32, runs: &[(u64, u64)]| ThreadExecution {
            thread,
            node: Some(thread as u16),
            runs: runs.iter().map(|(begin, end)| Run { begin: *begin, end: *end }).collect(),
        };
        let swapped = Some(Arc::from(vec![1, 0]));
        for mode in [Mode::Affinity, Mode::Replay] {
            let mut book = Book::new(mode, 2);
            let (first, loop_) = (shape(100, 2), Shape { site: 0x2000, chunk: 0, ..shape(100, 2) });
            assert!(decide(&mut book, &first).unwrap().record.is_some());
            let rows = vec![row(0, &[(60, 100)]), row(1, &[(0, 60)])];
            let outcome = LoopOutcome { rows: Some(rows), complete: true, ..LoopOutcome::default() };
            book.ended(&first, outcome);
            let decision = book.decide_static(&loop_);
            assert_eq!(decision, StaticDecision { ranges: swapped.clone(), record: false }, "{mode}");
            book.began_static(&loop_, vec![row(0, &[]), row(1, &[])], true);
            assert_eq!((book.dealt_so_far().taken, book.dealt_so_far().loops), (1, 2));
            // Where the threads run by now decides, not where they ran.
            let moved = vec![
                ThreadExecution { node: Some(1), ..row(0, &[]) },
                ThreadExecution { node: Some(0), ..row(1, &[]) },
            ];
            book.began_static(&loop_, moved, true);
            let now = if mode == Mode::Affinity { None } else { swapped.clone() };
            assert_eq!(book.decide_static(&loop_).ranges, now, "{mode}");
            let other = Shape { site: 0x3000, ..shape(99, 2) };
            assert_eq!(book.decide_static(&other).ranges, None, "other values");
        }
        for mode in [Mode::Block, Mode::Cyclic, Mode::Record, Mode::Auto] {
            assert_eq!(Book::new(mode, 2).decide_static(&shape(100, 2)), StaticDecision::default());
        }
    }

    #[test]
    fn a_static_loop_teaches_the_nodes_of_its_values() {
        let mut book = Book::new(Mode::Affinity, 2);
        let (loop_, dynamic) = (Shape { chunk: 0, ..shape(100, 2) }, Shape { site: 0x2000, ..shape(100, 2) });
        assert_eq!(book.decide_static(&loop_), StaticDecision { ranges: None, record: true });
        book.began_static(&loop_, recorded(100, 50).rows.unwrap(), false);
        assert_eq!(book.decide_static(&loop_), StaticDecision::default(), "its own order is the best");
        assert!(matches!(decide(&mut book, &dynamic).unwrap().deal, Some(Deal::Affinity(..))));
        // A thread that never came: nothing is learned.
        let mut book = Book::new(Mode::Affinity, 2);
        book.began_static(&loop_, recorded(100, 50).rows.unwrap()[..1].to_vec(), false);
        assert!(decide(&mut book, &dynamic).unwrap().deal.is_none());
    }

    #[test]
    fn auto_tries_and_keeps_the_fastest() {
        let mut book = Book::new(Mode::Auto, 2);
        let shape = shape(1000, 2);
        for _ in 0..100 {
            let LoopExecution { deal, record, candidate } = decide(&mut book, &shape).unwrap();
            let time = if matches!(deal, Some(Deal::Cyclic(_))) { 1_000 } else { 2_000 };
            let rows = record.and_then(|_| recorded(1000, 500).rows);
            let outcome = LoopOutcome {
                candidate,
                time,
                taken: deal.is_some(),
                rows,
                complete: true,
                ..LoopOutcome::default()
            };
            book.ended(&shape, outcome);
        }
        let dealt = book.dealt_so_far();
        assert_eq!(dealt.kept, [Kept { name: "cyclic".into(), loops: 1 }]);
        assert_eq!(dealt.trying, 0);
        assert!(dealt.taken > 80, "{dealt:?}");
    }

    #[test]
    fn guided_loops_are_dealt_in_shares() {
        let mut book = Book::new(Mode::Cyclic, 1);
        let shape = Shape { chunk: 1, ..shape(1 << 40, 4) };
        let promise = Promise { uneven: true, ..Promise::default() };
        let Some(LoopExecution { deal: Some(Deal::Cyclic(chunks)), .. }) =
            book.decide(&shape, promise, |_| None, nothing)
        else {
            panic!("it is dealt")
        };
        assert_eq!(chunks.number(), 64);
    }
}
