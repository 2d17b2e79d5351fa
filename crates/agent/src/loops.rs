//! Loops whose iterations homenode hands out: teams, their loops under way, and what each thread is
//! at. The front ends are [`crate::loops_gomp`] and [`crate::loops_kmpc`]; who gets what is decided
//! in [`homenode_schedule`].
//!
//! All threads of a team meet the same loops in the same order. So a loop under way is known by its
//! team and by how many the thread has met there. The first thread that starts a loop has the book
//! decide ([`Book::decide`]); the others find the decision in the team. A decision is never changed
//! while the loop is under way.
//!
//! The program's own run-time sees every loop: an empty one where homenode hands out the
//! iterations. Barriers, cancellation and nesting are its own business that way, and a call that
//! homenode does not know of finds nothing left to do.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use homenode_model::NodeId;
use homenode_runtime::driver::{Clocks, DriverSettings};
use homenode_runtime::moving;
use homenode_schedule::book::Promise;
use homenode_schedule::file::{self, Imported};
use homenode_schedule::{
    Batch, Book, Cursor, Deal, LoopOutcome, Run, ScheduleCandidate, Shape, Space, StealOrder, ThreadExecution,
};
use homenode_wire::facts::Facts;
use homenode_wire::schedule::{self, Schedules};

use crate::loops_code::{self as code, NAMED};
use crate::loops_prepared::{self, Prepared};
use crate::loops_static::{LoopTurn, Statics};
use crate::loops_touched::Touched;
use crate::state;

/// The run asks for it, in this process: front ends look.
static ASKED: AtomicBool = AtomicBool::new(false);
/// Loops that start now are decided. Off after an error of homenode's own.
static ON: AtomicBool = AtomicBool::new(false);
/// Static loops are looked at.
static FOLLOWS: AtomicBool = AtomicBool::new(false);
/// This is a forked child: the other threads of its teams are the parent's.
static FORKED: AtomicBool = AtomicBool::new(false);
static BOOK: Mutex<Option<Book>> = Mutex::new(None);
static MACHINE: OnceLock<Machine> = OnceLock::new();

/// What is known before the first loop.
struct Machine {
    order: StealOrder,
    cpus: Vec<Option<NodeId>>,
    folder: PathBuf,
    settings: DriverSettings,
    to: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the run asks homenode to hand out iterations, or to record who got which.
#[inline]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Whether the ranges of static loops may be exchanged.
#[inline]
pub fn static_asked() -> bool {
    FOLLOWS.load(Ordering::Relaxed)
}

/// Whether loops that start now are decided; no more after the report.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Takes the run's settings, before the program's first loop.
pub fn start(settings: &DriverSettings) {
    let Some(asked) = settings.schedule else { return };
    let nodes = settings.machine.nodes();
    let mut book = Book::new(asked.mode, u16::try_from(nodes).unwrap_or(u16::MAX));
    if asked.from {
        match import(&settings.folder.join(schedule::FROM)) {
            Ok(from) => book.import(from),
            // Nothing fits a file without loops: the program's own schedules run.
            Err(why) => {
                book.import(Imported::default());
                book.refuse(why);
            }
        }
    }
    let machine = Machine {
        order: StealOrder::of(settings.machine.distances()),
        cpus: settings.machine.cpu_table().to_vec(),
        folder: settings.folder.clone(),
        settings: settings.clone(),
        to: asked.to,
    };
    let wants_touches = book.wants_touches();
    if MACHINE.set(machine).is_ok() {
        if wants_touches {
            moving::listen(touched);
        }
        *locked(&BOOK) = Some(book);
        ASKED.store(true, Ordering::Relaxed);
        FOLLOWS.store(Book::follows_data(asked.mode), Ordering::Relaxed);
        ON.store(true, Ordering::Release);
    }
}

fn import(path: &Path) -> Result<Imported, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut file = std::fs::File::open(path).map_err(|e| failed(&e))?;
    let file: Schedules = homenode_wire::read(&mut file).map_err(|e| failed(&e))?;
    Imported::new(file, &code::codes())
}

/// In a forked child loops that start are the program's own.
pub fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
    ON.store(false, Ordering::Relaxed);
}

/// What became of it, and the recorded schedules left for the launcher; `None`: nothing was asked.
pub fn finish(leave: impl FnOnce(&Path, &str, &Schedules)) -> Option<schedule::Dealt> {
    if !ON.swap(false, Ordering::AcqRel) {
        return None;
    }
    let machine = MACHINE.get()?;
    let mut book = locked(&BOOK).take()?;
    if machine.to {
        let (codes, places) = (code::codes(), code::Places::now());
        let (file, left_out) = file::export(book.tables(), codes, |site| places.index(site));
        if left_out > 0 {
            book.refuse(format!(
                "{left_out} recorded loops were left out of the file: it has no room for more"
            ));
        }
        leave(&machine.folder, &Schedules::file_name(std::process::id()), &file);
    }
    Some(book.dealt_so_far())
}

/// The report of a process in which nothing else of homenode runs.
pub fn facts_alone() -> Option<(PathBuf, Facts)> {
    let machine = MACHINE.get()?;
    let settings = &machine.settings;
    let facts = Facts {
        pid: std::process::id(),
        budget: settings.budget,
        policy: settings.policy.clone(),
        arming: settings.arming,
        nodes: settings.machine.nodes() as u64,
        pretended: settings.pretend,
        ..Facts::default()
    };
    Some((machine.folder.clone(), facts))
}

/// A loop as a thread starts it.
#[derive(Clone, Copy, Debug)]
pub struct StartedLoop {
    /// The return address of the call.
    pub site: usize,
    /// Its iterations.
    pub space: Space,
    /// The program's chunk size.
    pub chunk: u64,
    /// What its schedule promises.
    pub promise: Promise,
    /// Chunks are told by their first and last value; else by their first value and their bound.
    pub including: bool,
}

/// A loop under way.
struct Execution {
    shape: Shape,
    including: bool,
    deal: Option<Deal>,
    /// Runs that each thread may record.
    record: Option<usize>,
    candidate: Option<ScheduleCandidate>,
    began: u64,
    /// Threads that have not left the loop.
    left: AtomicU32,
    chunks: AtomicU64,
    /// A thread left before its last iteration.
    broken: AtomicBool,
    /// Pages that chunks touched; `None`: that is of no use, or nothing was armed.
    touched: Option<Touched>,
    rows: Mutex<Vec<Recorded>>,
}

/// What a thread recorded: first values and bounds.
struct Recorded {
    thread: u32,
    node: Option<u16>,
    runs: Vec<(u64, u64)>,
    overflowed: bool,
}

/// The run-time's functions for a thread's number and the number of threads.
#[derive(Clone, Copy)]
pub struct Numbers {
    /// `omp_get_thread_num`.
    pub thread: extern "C" fn() -> i32,
    /// `omp_get_num_threads`.
    pub threads: extern "C" fn() -> i32,
}

/// How a team's threads are told apart.
#[derive(Clone, Copy)]
pub enum Known {
    /// They are asked.
    Asked(Numbers),
    /// This number of threads; each level has its number ([`Level::numbered`]).
    Told(u32),
}

/// The loops of a team that not all of its threads have started.
pub struct Team {
    known: Known,
    open: Mutex<Vec<Open>>,
    statics: Statics,
}

struct Open {
    number: u64,
    execution: Option<Arc<Execution>>,
    to_come: u32,
}

impl Team {
    /// A team that has met no loop.
    pub const fn new(known: Known) -> Self {
        Self { known, open: Mutex::new(Vec::new()), statics: Statics::new() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// In no loop that homenode knows.
    Nothing,
    /// In a loop that homenode hands out.
    Dealt,
    /// In a loop that homenode watches.
    Watched,
    /// At the end of a loop that homenode has handed out, or watched.
    End,
}

/// What a thread is at in a team.
#[derive(Clone, Copy)]
pub struct Level {
    team: *const Team,
    /// Loops that the thread has met in the team.
    met: u64,
    /// Teams that began in this one by calls that do not tell of their threads, and have not ended.
    foreign: u32,
    /// The thread's number, where the team does not ask for it.
    number: u32,
    /// The loop that the team began with, if the thread has not started it.
    first: *const StartedLoop,
    at: At,
    execution: *const Execution,
    record: *mut Recorded,
    cursor: Cursor,
    /// Chunks that the program's own run-time handed out.
    seen: u64,
    /// The chunk that the thread executes: its first and one past its last index, or values and
    /// bounds if the program's own run-time handed it out. Of a batch, the first chunk.
    chunk: (u64, u64),
    /// The batch that the thread executes. It lives as long as the execution.
    batch: Batch<'static>,
    /// The thread's prepared chunks here, while it is in another team.
    prepared: Prepared,
}

impl Level {
    /// In no team.
    pub const NONE: Self = Self {
        team: std::ptr::null(),
        met: 0,
        foreign: 0,
        number: 0,
        first: std::ptr::null(),
        at: At::Nothing,
        execution: std::ptr::null(),
        record: std::ptr::null_mut(),
        cursor: Cursor::new(0, 0, 0),
        seen: 0,
        chunk: (0, 0),
        batch: NO_BATCH,
        prepared: Prepared::NONE,
    };

    /// At the beginning of a team, which `first` may be a loop of.
    pub const fn of(team: *const Team, first: *const StartedLoop) -> Self {
        Self { team, first, ..Self::NONE }
    }

    /// At the beginning of a team, as the thread of that number.
    pub const fn numbered(team: *const Team, number: u32) -> Self {
        Self { team, number, ..Self::NONE }
    }
}

const NO_BATCH: Batch<'static> = Batch::one(Run { begin: 0, end: 0 });

/// The name of the next team's first loop: its number and [`NAMED`]; 0: it has none.
static NEXT_TEAMS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The name of the thread's next loop in its team, as [`NEXT_TEAMS`].
    static NEXT: Cell<usize> = const { Cell::new(0) };
    static LEVEL: Cell<Level> = const { Cell::new(Level::NONE) };
}

/// The calling thread's own.
#[inline]
fn level() -> &'static mut Level {
    // SAFETY: only this thread has a reference, one at a time: no function here calls the program,
    // nor another one here while it uses the first reference.
    unsafe { &mut *LEVEL.with(Cell::as_ptr) }
}

/// The thread enters a team, or another level again. Returns where the thread was.
pub fn enter(new: Level) -> Level {
    let mut outer = LEVEL.replace(new);
    outer.prepared = loops_prepared::replace(new.prepared);
    outer
}

/// The thread leaves its team, and is again where it was.
///
/// # Safety
/// The team lives.
pub unsafe fn leave(outer: Level) {
    leave_loop(level(), false);
    LEVEL.set(outer);
    loops_prepared::replace(outer.prepared);
}

/// A team begins (`true`) or ends that homenode does not know more of: until it ends, the thread's
/// loops are none of the team that it was in.
pub fn foreign(begins: bool) {
    if !asked() {
        return;
    }
    let level = level();
    match (begins, level.foreign) {
        (true, 0) => level.prepared = loops_prepared::replace(Prepared::NONE),
        (false, 1) => drop(loops_prepared::replace(level.prepared)),
        _ => {}
    }
    level.foreign = if begins { level.foreign + 1 } else { level.foreign.saturating_sub(1) };
}

/// Names the calling thread's next loop. `false`: homenode hands out no loops.
pub fn name_next(id: u32) -> bool {
    if !asked() || !is_on() {
        return false;
    }
    let name = NAMED | id as usize;
    if level().team.is_null() {
        NEXT_TEAMS.store(name, Ordering::Relaxed)
    } else {
        NEXT.set(name)
    }
    true
}

/// Whose a thread's next iterations are.
pub enum Next {
    /// The program's own run-time's.
    Theirs,
    /// The program's own run-time's; homenode wants to know them ([`seen`]).
    Watched,
    /// These.
    Run(&'static Space, Run),
    /// There are no more, and homenode has handed them out.
    End,
}

/// Who hands out a loop that a thread starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The program's own run-time.
    Theirs,
    /// The program's own run-time; homenode wants to know its chunks ([`seen`]).
    Watched,
    /// homenode: the program's own run-time gets an empty loop.
    Dealt,
}

/// The thread starts a loop.
pub fn start_loop(ask: &StartedLoop) -> Start {
    let level = level();
    if level.foreign > 0 {
        return Start::Theirs;
    }
    // What a cancelled loop has left.
    leave_loop(level, false);
    level.at = At::Nothing;
    let Some((team, thread, threads)) = place(level) else { return Start::Theirs };
    let number = level.met;
    level.met += 1;
    let named = NEXT.take();
    let execution = {
        let mut open = locked(&team.open);
        match open.iter().position(|o| o.number == number) {
            Some(at) => {
                open[at].to_come -= 1;
                if open[at].to_come == 0 {
                    open.swap_remove(at).execution
                } else {
                    open[at].execution.clone()
                }
            }
            None => {
                let of_team = || if number == 0 { NEXT_TEAMS.swap(0, Ordering::Relaxed) } else { 0 };
                let named = if named == 0 { of_team() } else { named };
                let execution =
                    decide(&StartedLoop { site: if named == 0 { ask.site } else { named }, ..*ask }, threads);
                open.push(Open { number, execution: execution.clone(), to_come: threads - 1 });
                execution
            }
        }
    };
    let Some(execution) = execution else { return Start::Theirs };
    level.cursor = Cursor::new(thread, threads, node().unwrap_or(0));
    (level.seen, level.chunk, level.batch) = (0, (0, 0), NO_BATCH);
    if let Some(room) = execution.record {
        let recorded = Recorded { thread, node: node(), runs: Vec::with_capacity(room), overflowed: false };
        level.record = Box::into_raw(Box::new(recorded));
    }
    level.at = if execution.deal.is_some() { At::Dealt } else { At::Watched };
    level.execution = Arc::into_raw(execution);
    if level.at == At::Dealt { Start::Dealt } else { Start::Watched }
}

/// The team of a level, the thread's number and the number of threads; `None`: homenode leaves the
/// loops there alone.
fn place(level: &Level) -> Option<(&'static Team, u32, u32)> {
    if level.team.is_null() || level.foreign > 0 || FORKED.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: who entered the team keeps it until all threads have left it, and no caller keeps the
    // reference beyond one call of the run-time's.
    let team = unsafe { &*level.team };
    let (thread, threads) = match team.known {
        Known::Told(threads) => (level.number, threads),
        Known::Asked(numbers) => ((numbers.thread)() as u32, (numbers.threads)() as u32),
    };
    (threads >= 2 && thread < threads).then_some((team, thread, threads))
}

/// The thread starts a static loop, in which each thread gets one range. `theirs` asks the
/// program's own run-time for the thread's range. Returns the range that the thread is to execute,
/// if it is another one.
pub fn start_static(site: usize, space: Space, theirs: impl FnOnce() -> Run) -> Option<Run> {
    let Some((team, thread, threads)) = place(level()) else {
        theirs();
        return None;
    };
    let shape = Shape { site, space, chunk: 0, team: threads };
    let LoopTurn { range, row } = team.statics.begin(&shape, thread, || {
        if !ON.load(Ordering::Acquire) || state::inside() {
            return None;
        }
        let decided = state::guarded(|| Some(locked(&BOOK).as_mut()?.decide_static(&shape)));
        if decided.is_none() {
            ON.store(false, Ordering::Relaxed);
        }
        decided.flatten()
    });
    let own = theirs();
    if let Some(record) = row {
        let runs = if record { vec![own] } else { Vec::new() };
        let all = team.statics.tell(&shape, ThreadExecution { thread, node: node(), runs });
        if let Some((shape, rows, taken)) = all {
            state::guarded(|| {
                if let Some(book) = locked(&BOOK).as_mut() {
                    book.began_static(&shape, rows, taken);
                }
            });
        }
    }
    range
}

/// The node that the thread runs on.
fn node() -> Option<u16> {
    // SAFETY: asks the kernel's page.
    let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).ok()?;
    MACHINE.get()?.cpus.get(cpu).copied().flatten().map(|n| n.0)
}

fn now() -> u64 {
    (Clocks::KERNEL.wall)().0
}

/// Has the book decide. What it cannot decide is the program's own.
fn decide(ask: &StartedLoop, threads: u32) -> Option<Arc<Execution>> {
    if !ON.load(Ordering::Acquire) || state::inside() {
        return None;
    }
    let shape = Shape { site: ask.site, space: ask.space, chunk: ask.chunk, team: threads };
    let decided = state::guarded(|| {
        let mut book = locked(&BOOK);
        let book = book.as_mut()?;
        let decision = book.decide(&shape, ask.promise, code::place, nodes_of)?;
        Some(Arc::new(Execution {
            shape,
            including: ask.including,
            deal: decision.deal,
            record: decision.record,
            candidate: decision.candidate,
            began: now(),
            left: AtomicU32::new(threads),
            chunks: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            touched: (book.wants_touches() && moving::may_be_armed()).then(Touched::new),
            rows: Mutex::new(Vec::new()),
        }))
    });
    if decided.is_none() {
        ON.store(false, Ordering::Relaxed);
    }
    decided.flatten()
}

/// Whether a thread may get further chunks before it asks for them ([`crate::loops_prepared`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOut {
    /// It gets one at a time.
    OneByOne,
    /// The stub of its front end hands out prepared ones.
    Prepared,
}

/// The thread's next iterations.
#[inline]
pub fn next(by: HandOut) -> Next {
    let at = level();
    if at.foreign > 0 {
        return Next::Theirs;
    }
    match at.at {
        At::Dealt => {
            // SAFETY: the thread holds the execution until it leaves the loop; the program looks at
            // the space no longer than that.
            let execution = unsafe { &*at.execution };
            let clock = (by == HandOut::Prepared).then_some(now as fn() -> u64);
            let order = MACHINE.get().map(|m| &m.order);
            let batch = execution.deal.as_ref().zip(order);
            match batch.and_then(|(deal, order)| deal.next(&mut at.cursor, order, clock)) {
                Some(batch) => {
                    prepare(at, &execution.shape.space, &batch);
                    Next::Run(&execution.shape.space, batch.run)
                }
                None => {
                    leave_loop(at, true);
                    Next::End
                }
            }
        }
        At::Watched => Next::Watched,
        At::End => Next::End,
        At::Nothing if at.first.is_null() => Next::Theirs,
        At::Nothing => begin_first(by),
    }
}

/// Keeps the chunks of a batch behind the first one, which the thread begins with.
#[inline]
fn prepare(level: &mut Level, space: &Space, batch: &Batch<'static>) {
    level.chunk = (batch.run.begin, batch.run.end);
    level.batch = *batch;
    if !batch.behind.is_empty() {
        let step = space.parts().1 as u64;
        loops_prepared::replace(Prepared {
            next: batch.behind.as_ptr_range().start,
            end: batch.behind.as_ptr_range().end,
            base: space.value(batch.base),
            apart: batch.apart.wrapping_mul(step),
            length: batch.run.len().wrapping_mul(step),
        });
    }
}

/// The thread starts the loop that its team began with.
#[cold]
fn begin_first(by: HandOut) -> Next {
    let first = std::mem::replace(&mut level().first, std::ptr::null());
    // SAFETY: who entered the team keeps it as long as the team.
    match start_loop(unsafe { &*first }) {
        Start::Theirs => Next::Theirs,
        Start::Watched => Next::Watched,
        Start::Dealt => next(by),
    }
}

/// The program's own run-time handed out a chunk of a watched loop, or had no more.
#[inline]
pub fn seen(chunk: Option<(u64, u64)>) {
    let level = level();
    let Some((begin, end)) = chunk else { return leave_loop(level, true) };
    level.seen += 1;
    // SAFETY: the thread holds the execution until it leaves the loop.
    let execution = unsafe { &*level.execution };
    let (_, step, _) = execution.shape.space.parts();
    // A last value becomes the bound that the next chunk may begin with.
    let end = if execution.including { end.wrapping_add(step as u64) } else { end };
    level.chunk = (begin, end);
    if level.record.is_null() {
        return;
    }
    // SAFETY: this thread's own, until it leaves the loop.
    let record = unsafe { &mut *level.record };
    let has_room = record.runs.len() < record.runs.capacity();
    match record.runs.last_mut() {
        // Neighbours, where the bound of one is the first value of the other.
        Some(last) if last.1 == begin => last.1 = end,
        _ if has_room => record.runs.push((begin, end)),
        _ => record.overflowed = true,
    }
}

/// The thread touches an armed page. In a handler.
fn touched(address: usize) {
    let level = LEVEL.with(Cell::as_ptr);
    // SAFETY: this thread's own. The handler may have interrupted a function of this file, which
    // then has a reference; it touches no armed memory in between, so the fault is the program's.
    let (execution, chunk, batch) = unsafe { ((*level).execution, (*level).chunk, (*level).batch) };
    // Of a batch, the thread executes the chunk before those that are left.
    let begun = batch.behind.len().saturating_sub(loops_prepared::left());
    let chunk = match begun.checked_sub(1).and_then(|at| batch.behind.get(at)) {
        Some(number) => (batch.chunk(*number).begin, batch.chunk(*number).end),
        None => chunk,
    };
    // SAFETY: the thread holds the execution until it leaves the loop.
    if let Some(execution) = unsafe { execution.as_ref() }
        && let Some(touched) = &execution.touched
    {
        touched.note(chunk, address);
    }
}

/// The nodes of pages, as far as they are known.
fn nodes_of(pages: &[usize]) -> Vec<Option<u16>> {
    let mut homes = vec![None; pages.len()];
    // Without an answer every page stays unknown.
    let _ = moving::homes(pages, &mut homes);
    homes.into_iter().map(|home| home.map(|node| node.0)).collect()
}

/// The thread has left its loop, perhaps by cancellation.
#[inline]
pub fn end_loop() {
    let level = level();
    if level.foreign == 0 {
        leave_loop(level, false);
        level.at = At::Nothing;
    }
}

/// The thread is through with its loop; `complete`: it has executed all that it was to.
fn leave_loop(level: &mut Level, complete: bool) {
    if level.execution.is_null() {
        return;
    }
    let was = std::mem::replace(&mut level.at, At::End);
    // SAFETY: from `Arc::into_raw` and `Box::into_raw` when the thread started the loop, once each.
    let (execution, record) = unsafe {
        let record = std::mem::replace(&mut level.record, std::ptr::null_mut());
        let record = (!record.is_null()).then(|| Box::from_raw(record));
        (Arc::from_raw(std::mem::replace(&mut level.execution, std::ptr::null())), record)
    };
    if FORKED.load(Ordering::Relaxed) {
        // Locks may be held for ever.
        std::mem::forget(execution);
        return;
    }
    let never_begun = loops_prepared::replace(Prepared::NONE).left() as u64;
    let chunks = if was == At::Dealt { level.cursor.at - never_begun } else { level.seen };
    execution.chunks.fetch_add(chunks, Ordering::Relaxed);
    if !complete {
        execution.broken.store(true, Ordering::Relaxed);
    }
    if let Some(record) = record {
        locked(&execution.rows).push(*record);
    }
    if execution.left.fetch_sub(1, Ordering::AcqRel) == 1 {
        ended(&execution);
    }
}

/// All threads have left a loop.
#[cold]
fn ended(execution: &Execution) {
    let time = now().saturating_sub(execution.began);
    state::guarded(|| {
        let space = execution.shape.space;
        let mut overflowed = false;
        let run = |(begin, end): (u64, u64)| Run {
            begin: space.index(begin),
            end: if execution.including { space.index(end) } else { space.end(end) },
        };
        let row = |recorded: &Recorded| ThreadExecution {
            thread: recorded.thread,
            node: recorded.node,
            runs: recorded.runs.iter().copied().map(run).collect(),
        };
        let rows = execution.record.map(|_| {
            let rows = locked(&execution.rows);
            overflowed = rows.iter().any(|r| r.overflowed);
            rows.iter().map(row).collect()
        });
        let outcome = LoopOutcome {
            candidate: execution.candidate,
            time,
            chunks: execution.chunks.load(Ordering::Relaxed),
            taken: execution.deal.is_some(),
            replayed: matches!(execution.deal, Some(Deal::Replay(_))),
            rows,
            overflowed,
            complete: !execution.broken.load(Ordering::Relaxed),
        };
        let values = |((begin, end), page): ((u64, u64), usize)| {
            let run = if outcome.taken { Run { begin, end } } else { run((begin, end)) };
            let (low, high) = space.place(run);
            (low, high, page)
        };
        let touches: Vec<_> = execution.touched.iter().flat_map(Touched::all).map(values).collect();
        if let Some(book) = locked(&BOOK).as_mut() {
            book.touched(execution.shape.site, touches);
            book.ended(&execution.shape, outcome);
        }
    });
}
