//! A recorded thread: its block, which instrumented code uses, and its recorder.
//!
//! The block points at the recorder, and the recorder at the block.

use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use homenode_log::encode::{MARK_WORDS, MAX_CHUNK_WORDS, MAX_DELTA, SKIP, access_words, mark_words};
use homenode_log::file::{Framer, LogHeader};
use homenode_log::mark::BYPASS_CAP;
use homenode_log::{Mark, VERSION};

use crate::bypass::{self, Bypass, IntervalThread};
use crate::filter::{LINE_SHIFT, LineFilter};
use crate::registry::Registry;
use crate::{io, memory, process, state, unrecorded};

/// The recorders of all threads.
static THREADS: Registry<Recorder> = Registry::new();

/// A thread's fields of the fast path, at fixed offsets. Rewritten code knows the offsets, too
/// (`homenode_compilers::rewrite`).
///
/// The filter is two tables of the same length: the line last used at each place, and that line
/// again if it was written. So an access asks one table one question: is this entry its line? An
/// empty table is all zeros, because line 0 holds no data of any program.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct FastPath {
    /// Table of used lines.
    pub used: *mut u64,
    /// Table of written lines: at each place 0, or the entry of `used`.
    pub written: *mut u64,
    /// Number of executed accesses.
    pub clock: u64,
    /// Number of the filter's lines minus one.
    pub mask: u64,
    /// The thread's recorder, or null.
    pub recorder: *mut Recorder,
    /// Whether nothing is recorded for this thread any more.
    pub closed: bool,
    /// Whether the thread is being set up. Events of the set-up itself are not recorded.
    pub starting: bool,
    /// The number that the thread's creator gave it.
    pub id: u64,
}

const _: () = assert!(size_of::<FastPath>() == 64);

impl FastPath {
    /// The block of a thread that is not recorded.
    pub const fn idle() -> Self {
        Self {
            used: unrecorded::EMPTY.as_ptr(),
            written: unrecorded::EMPTY.as_ptr(),
            clock: 0,
            mask: 0,
            recorder: null_mut(),
            closed: false,
            starting: false,
            id: 0,
        }
    }

    /// Records nothing for this thread any more. Its accesses fill a filter of their own, so that
    /// most of them stay on the fast path.
    pub fn forget(&mut self) {
        self.recorder = null_mut();
        if unrecorded::is_table(self.used) {
            return;
        }
        let filter = unrecorded::next_table();
        self.closed = true;
        // A signal handler of this thread never finds a table with the mask of a larger one.
        self.mask = 0;
        compiler_fence(Ordering::SeqCst);
        self.used = filter;
        self.written = filter;
        compiler_fence(Ordering::SeqCst);
        self.mask = unrecorded::LINES as u64 - 1;
    }

    /// Records all the bytes `address .. address + bytes`, one access a line. The clock counts 64
    /// bytes as one access, however they lie: stacks are aligned to 16 bytes, so the lines that
    /// they share with other data differ from run to run.
    ///
    /// # Safety
    /// `block` is the calling thread's, and has a recorder.
    pub unsafe fn range(block: *mut Self, address: u64, bytes: u64, write: bool, pc: u64) {
        if bytes == 0 {
            return;
        }
        let (first, last) = (address >> LINE_SHIFT, (address + bytes - 1) >> LINE_SHIFT);
        let ticks = bytes.div_ceil(1 << LINE_SHIFT);
        for line in first..=last {
            // SAFETY: the caller's promise.
            unsafe {
                (*block).clock += u64::from(line - first < ticks);
                if !(*block).seen(line, write) && !(*block).recorder.is_null() {
                    (*(*block).recorder).access(line, write, pc);
                }
            }
        }
    }

    /// Whether the filter has seen this access.
    #[inline(always)]
    pub fn seen(&self, line: u64, write: bool) -> bool {
        let table = if write { self.written } else { self.used };
        // SAFETY: `mask` is below the tables' length.
        unsafe { *table.add((line & self.mask) as usize) == line }
    }
}

/// A thread's recorder, made at the thread's first event. Its large memory is freed when the thread
/// ends. The rest and the filter stay for ever, because another thread may be looking at them.
pub struct Recorder {
    block: *mut FastPath,
    filter: LineFilter,
    index: u32,
    buffer: Buffer,
    /// Whether the recorder is at work. Nothing that a signal handler does meanwhile is recorded.
    busy: AtomicBool,
    output: Output,
    last_tick: u64,
    /// Number of the barrier interval; equal in all threads of a team between two barriers.
    interval: u64,
    /// This thread in this interval.
    who: IntervalThread,
    shared: bool,
    special: bool,
    /// See [`Recorder::be_careful`].
    careful: bool,
    totals: Totals,
}

/// Words that are not encoded yet.
struct Buffer {
    words: *mut u64,
    /// Words in the buffer. They are published after they are written, so that the exiting thread
    /// can write them out. With [`APPENDING`] while the fast path appends an access.
    used: AtomicUsize,
    /// Words up to which a usual access may be appended directly: [`OPEN`]. 0 if accesses need more
    /// than the filter (there are other threads, or no filter), and while the recorder is at work.
    gate: AtomicUsize,
    /// Words up to which [`Recorder::access_undisturbed`] may append: [`OPEN`]; 0 without a filter.
    room: usize,
    /// Position at the last emptying of the filter; [`UNKNOWN`] if the buffer was encoded since
    /// then.
    emptied_at: usize,
}

/// A thread's log.
struct Output {
    /// `None` after the thread has ended.
    framer: Option<Framer>,
    fd: i32,
    last_flush: i64,
    /// Held while the buffer is encoded; kept for good when the log is closed.
    flushing: AtomicBool,
    /// Whether the log is closed or about to be.
    closed: AtomicBool,
    /// Whether the log has its end.
    ended: AtomicBool,
}

/// What the log says about itself at its end.
#[derive(Default)]
struct Totals {
    /// Number of encoded words, and number of all words so far that are no accesses. Half of the
    /// difference is the number of passed accesses.
    encoded: u64,
    other: u64,
    bypassed: u64,
    dropped: u64,
    /// Bypassing lines that the log has told.
    told_lines: u64,
}

impl Recorder {
    /// Makes the recorder of the thread with this block, and its log. The recorder lives for ever.
    /// `None`: the recording has been switched off.
    pub fn start(block: *mut FastPath) -> Option<*mut Self> {
        let lines = state::filter_lines().max(1) as usize;
        let (filter, buffer): (*mut u64, *mut u64) =
            (memory::map(2 * lines * 8).cast(), memory::map(BUFFER_WORDS * 8).cast());
        if filter.is_null() || buffer.is_null() {
            state::switch_off("stopped: no memory for another thread's buffer");
            return None;
        }
        let thread = Box::into_raw(Box::new(Self {
            block,
            // SAFETY: just mapped for two tables, and kept for ever; a power of two.
            filter: unsafe { LineFilter::new(filter, lines) },
            index: 0,
            buffer: Buffer {
                words: buffer,
                used: AtomicUsize::new(0),
                gate: AtomicUsize::new(0),
                room: if state::filter_lines() > 0 { OPEN } else { 0 },
                emptied_at: 0,
            },
            busy: AtomicBool::new(false),
            output: Output {
                framer: Some(Framer::new()),
                fd: -1,
                last_flush: process::seconds(),
                flushing: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                ended: AtomicBool::new(false),
            },
            last_tick: 0,
            interval: 0,
            who: IntervalThread::default(),
            shared: false,
            special: true,
            careful: false,
            totals: Totals::default(),
        }));
        let index = THREADS.number()?;
        // SAFETY: just made; nobody else knows it before it is registered, and then only its
        // atomics and its filter.
        unsafe {
            (*thread).index = index;
            (*thread).who = IntervalThread::new(index, 0);
            (*thread).output.fd = open_log(index);
            if (*thread).output.fd < 0 {
                state::switch_off("stopped: cannot create a thread's log");
                return None;
            }
            THREADS.add(index, thread);
            (*thread).look_around();
        }
        Some(thread)
    }

    /// Makes the thread's block use this recorder's filter from here on. Earlier accesses were not
    /// recorded.
    ///
    /// # Safety
    /// The thread itself calls it, or it is called before the thread runs.
    pub unsafe fn attach(recorder: *mut Self) {
        // SAFETY: the caller's promise; the recorder lives for ever.
        unsafe {
            let block = (*recorder).block;
            (*block).clock = 0;
            (*block).mask = (*recorder).filter.mask as u64;
            (*block).recorder = recorder;
            (*block).used = (*recorder).filter.used;
            (*block).written = (*recorder).filter.written;
        }
    }

    /// Ends a thread: resets its block, closes its log, frees its large memory.
    ///
    /// # Safety
    /// The thread itself calls it.
    pub unsafe fn end(recorder: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe {
            (*(*recorder).block).forget(); // a signal handler must not find what is being given back
            let closed = Self::close(recorder, 0);
            // The recorder itself stays: others may be looking at its filter.
            THREADS.remove((*recorder).index);
            if closed {
                (*recorder).release();
            }
        }
    }

    /// Frees the large memory. The log is closed, so nobody else uses that memory.
    fn release(&mut self) {
        self.output.framer = None;
        memory::unmap(self.buffer.words.cast(), BUFFER_WORDS * 8);
        io::close(self.output.fd);
    }

    #[inline]
    fn clock(&self) -> u64 {
        // SAFETY: the block lives as long as its thread; a closing thread may read a clock that
        // still advances.
        unsafe { (*self.block).clock }
    }

    /// Marks the recorder as at work, which keeps signal handlers out.
    #[inline]
    fn enter(&mut self) {
        self.busy.store(true, Ordering::Relaxed);
        self.buffer.gate.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Ends [`Self::enter`].
    #[inline]
    fn leave(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
        self.buffer.gate.store(if self.special { 0 } else { OPEN }, Ordering::Relaxed);
    }

    /// Whether this is a signal handler that has interrupted the recorder.
    #[inline]
    fn at_work(&self) -> bool {
        self.busy.load(Ordering::Relaxed) || self.buffer.used.load(Ordering::Relaxed) & APPENDING != 0
    }

    /// Records an access that passed the filter. The clock has been advanced.
    #[inline]
    pub fn access(&mut self, line: u64, write: bool, pc: u64) {
        if self.at_work() {
            self.totals.dropped += 1;
            return;
        }
        self.enter();
        self.access_undisturbed(line, write, pc);
        self.leave();
    }

    /// As [`Recorder::access`], if no signal handler can interrupt the recorder and come back to
    /// it.
    ///
    /// The usual case needs no frame. Everything else is a C function in tail position, because
    /// nothing unwinds out of these functions.
    #[inline(always)]
    pub fn access_undisturbed(&mut self, line: u64, write: bool, pc: u64) {
        if self.shared && !bypass::usual(line, write, self.who) {
            return Self::access_of_any_kind(self, line, write, pc);
        }
        let tick = self.clock();
        let delta = tick - self.last_tick;
        let used = self.buffer.used.load(Ordering::Relaxed);
        if delta > MAX_DELTA || used >= self.buffer.room {
            return Self::access_of_any_kind(self, line, write, pc);
        }
        self.filter.enter(line, write, line);
        self.last_tick = tick;
        let [first, second] = access_words(line, write, pc, delta);
        // SAFETY: within the buffer, which only this thread writes.
        unsafe {
            self.buffer.words.add(used).write(first);
            self.buffer.words.add(used + 1).write(second);
        }
        self.buffer.used.store(used + 2, Ordering::Release);
        if used + 2 > BUFFER_WORDS - ROOM {
            Self::flush_usual(self);
        }
    }

    #[cold]
    #[inline(never)]
    extern "C" fn flush_usual(&mut self) {
        self.flush(false);
    }

    #[cold]
    #[inline(never)]
    extern "C" fn access_of_any_kind(&mut self, line: u64, write: bool, pc: u64) {
        if state::filter_lines() > 0 {
            self.install(line, write);
        }
        let tick = self.clock();
        let mut delta = tick - self.last_tick;
        self.last_tick = tick;
        if delta > MAX_DELTA {
            self.push(&[SKIP, delta]);
            self.totals.other += 2;
            delta = 0;
        }
        self.push(&access_words(line, write, pc, delta));
        if self.buffer.used.load(Ordering::Relaxed) > BUFFER_WORDS - ROOM {
            self.flush(false);
        }
    }

    /// Enters the line into the filter, unless the line bypasses it.
    fn install(&mut self, line: u64, write: bool) {
        let mut entry = line;
        if self.shared {
            match bypass::look(line, write, self.who) {
                Bypass::No => {}
                Bypass::Yes if self.totals.bypassed < BYPASS_CAP => {
                    self.totals.bypassed += 1;
                    entry = 0;
                }
                Bypass::Yes => {}
                Bypass::New => {
                    self.totals.bypassed += 1;
                    entry = 0;
                    forget_everywhere(line);
                }
            }
        }
        self.filter.enter(line, write, entry);
    }

    #[inline]
    fn push(&mut self, words: &[u64]) {
        let used = self.buffer.used.load(Ordering::Relaxed);
        if used + words.len() > BUFFER_WORDS {
            self.totals.dropped += 1; // the log was closed by another thread that exits
            return;
        }
        // SAFETY: within the buffer, which only this thread writes.
        unsafe { self.buffer.words.add(used).copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        self.buffer.used.store(used + words.len(), Ordering::Release);
    }

    /// Writes a mark.
    pub fn mark(&mut self, mark: &Mark) {
        if self.at_work() {
            self.totals.dropped += 1;
            return;
        }
        self.enter();
        let tick = self.clock();
        let mut words = [0; MARK_WORDS];
        let n = mark_words(mark, tick - self.last_tick, &mut words);
        self.last_tick = tick;
        self.push(&words[..n]);
        self.totals.other += n as u64;
        let now = process::seconds();
        if self.buffer.used.load(Ordering::Relaxed) > BUFFER_WORDS - ROOM || now != self.output.last_flush {
            self.flush(now != self.output.last_flush);
        }
        self.leave();
    }

    fn look_around(&mut self) {
        self.shared = THREADS.several();
        self.special = self.shared || self.careful || state::filter_lines() == 0;
        self.buffer.gate.store(if self.special { 0 } else { OPEN }, Ordering::Relaxed);
    }

    /// From now on every access that passes the filter takes the long way. Its caller can make sure
    /// that it is not left half way.
    pub fn be_careful(&mut self) {
        self.careful = true;
        self.look_around();
    }

    /// Empties the filter, in this barrier interval.
    pub fn synchronise(&mut self, interval: u64) {
        self.empty();
        self.look_around();
        self.interval = interval;
        self.who = IntervalThread::new(self.index, interval);
        let lines = bypass::lines();
        if lines != self.totals.told_lines {
            self.totals.told_lines = lines;
            self.mark(&Mark::Bypass { lines });
        }
    }

    /// Empties the filter. If the buffer has few lines since the last emptying, only these are
    /// removed.
    fn empty(&mut self) {
        let used = self.buffer.used.load(Ordering::Relaxed) & !APPENDING;
        let since = std::mem::replace(&mut self.buffer.emptied_at, used);
        if since > used || used - since > self.filter.lines() / 2 {
            self.filter.clear();
            return;
        }
        // SAFETY: `used` words were written.
        self.filter.clear_accesses(unsafe {
            std::slice::from_raw_parts(self.buffer.words.add(since), used - since)
        });
    }

    /// The barrier interval of the last [`Recorder::synchronise`].
    pub const fn interval(&self) -> u64 {
        self.interval
    }

    /// Advances the clock by one access that does not come through the fast path.
    pub fn count_one(&mut self) {
        // SAFETY: this thread's own block.
        unsafe { (*self.block).clock += 1 };
    }

    /// Encodes the buffer. Writes the chunk if it is full, or with `all`. `busy` is set.
    #[cold]
    #[inline(never)]
    fn flush(&mut self, all: bool) {
        if self.output.flushing.swap(true, Ordering::Acquire) {
            return; // closed: `push` drops what no longer fits
        }
        let errno = process::errno();
        let n = self.buffer.used.load(Ordering::Acquire);
        let encoded = self.output.framer.as_ref().map_or(0, Framer::words);
        if all || encoded + n + BUFFER_WORDS > MAX_CHUNK_WORDS {
            self.write_out(n, &[]);
            self.output.last_flush = process::seconds();
        } else if let (Some(framer), false) = (&mut self.output.framer, state::count_only()) {
            // SAFETY: `n` words were written before `used` was published.
            let words = unsafe { std::slice::from_raw_parts(self.buffer.words, n) };
            let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| framer.add(words)));
            if added.is_err() {
                self.stop_encoding();
            }
        }
        self.totals.encoded += n as u64;
        self.buffer.emptied_at = UNKNOWN;
        self.buffer.used.store(0, Ordering::Release);
        self.output.flushing.store(false, Ordering::Release);
        process::set_errno(errno);
    }

    /// Writes a frame: the encoded words, the first `n` words of the buffer, and `last`.
    fn write_out(&mut self, n: usize, last: &[u64]) {
        let Some(framer) = &mut self.output.framer else { return };
        if framer.words() + n + last.len() == 0 || state::count_only() {
            return;
        }
        // SAFETY: `n` words were written before `used` was published.
        let words = unsafe { std::slice::from_raw_parts(self.buffer.words, n) };
        let fd = self.output.fd;
        let wrote = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            framer.add(words);
            io::write_all(fd, framer.frame(last))
        }));
        match wrote {
            Ok(Ok(())) => {}
            Ok(Err(e)) => {
                state::switch_off(&format!(
                    "stopped: cannot append to the log of thread {}: {e}; the program goes on unrecorded",
                    self.index
                ));
            }
            Err(_) => self.stop_encoding(),
        }
        self.leave_if_off();
    }

    #[cold]
    fn stop_encoding(&mut self) {
        state::switch_off("stopped: internal error while encoding; the program goes on unrecorded");
        self.leave_if_off();
    }

    fn leave_if_off(&self) {
        if !state::recording() {
            // SAFETY: this thread's block, or a parked or ending one's: the slow path finds no
            // recorder.
            unsafe { (*self.block).forget() };
        }
    }

    /// Writes out the rest and the closing marks. The thread itself calls it, or a thread that
    /// exits the process while this one may still run. The first caller does it, and gets true.
    /// Other callers wait for it, because the process may end when they go on.
    ///
    /// # Safety
    /// `thread` is registered.
    pub unsafe fn close(thread: *mut Self, reason: u64) -> bool {
        // SAFETY: only atomics are used before the lock is held; with the lock, the framer is ours.
        // The owner may append to the buffer behind `n`, which is not read.
        unsafe {
            if (*thread).output.closed.swap(true, Ordering::AcqRel) {
                process::wait_until(|| (*thread).output.ended.load(Ordering::Acquire));
                return false;
            }
            // The lock is never released.
            if !process::wait_until(|| !(*thread).output.flushing.swap(true, Ordering::Acquire)) {
                (*thread).output.closed.store(false, Ordering::Release);
                return false;
            }
            let errno = process::errno();
            let n = (*thread).buffer.used.load(Ordering::Acquire) & !APPENDING;
            (*thread).write_out(n, &[]);
            let tick = (*thread).output.framer.as_ref().map_or(0, Framer::tick);
            let clock = (*thread).clock().max(tick);
            let mut words = [0; 3 * MARK_WORDS];
            let mut end = [0; MARK_WORDS];
            let totals = Mark::Totals {
                accesses: clock,
                passed: ((*thread).totals.encoded + n as u64 - (*thread).totals.other) / 2,
                bypassed: (*thread).totals.bypassed,
                dropped: (*thread).totals.dropped,
            };
            let n = mark_words(&totals, clock - tick, &mut end);
            words[..n].copy_from_slice(&end[..n]);
            let m = mark_words(&Mark::ThreadEnd { reason }, 0, &mut end);
            words[n..n + m].copy_from_slice(&end[..m]);
            (*thread).write_out(0, &words[..n + m]);
            (*thread).output.ended.store(true, Ordering::Release);
            process::set_errno(errno);
            true
        }
    }
}

/// Words of the buffer. They are encoded while they are in the first-level cache.
const BUFFER_WORDS: usize = 1024;

/// Words kept free so that a record always fits.
const ROOM: usize = 2 * MARK_WORDS + 4;
/// The open gate: with this many words, a usual access finds the buffer full.
const OPEN: usize = BUFFER_WORDS - ROOM + 1;

/// Not a position in the buffer.
const UNKNOWN: usize = usize::MAX;

/// Set in [`Buffer::used`] while an access is appended: its highest byte.
const APPENDING: usize = 1 << 63;

/// Offsets of the fields for assembly.
pub mod offsets {
    use super::Recorder;
    use std::mem::offset_of;

    /// [`super::Buffer::used`].
    pub const USED: usize = offset_of!(Recorder, buffer.used);
    /// [`super::Buffer::gate`].
    pub const GATE: usize = offset_of!(Recorder, buffer.gate);
    /// [`Recorder::last_tick`].
    pub const LAST_TICK: usize = offset_of!(Recorder, last_tick);
    /// [`super::Buffer::words`].
    pub const BUFFER: usize = offset_of!(Recorder, buffer.words);
    /// [`super::LineFilter::mask`].
    pub const MASK: usize = offset_of!(Recorder, filter.mask);
    /// [`super::LineFilter::used`].
    pub const USED_LINES: usize = offset_of!(Recorder, filter.used);
    /// [`super::LineFilter::written`].
    pub const WRITTEN_LINES: usize = offset_of!(Recorder, filter.written);
}

/// Makes every thread's filter forget a line that has just started to bypass it.
#[cold]
fn forget_everywhere(line: u64) {
    for thread in THREADS.threads() {
        // SAFETY: recorders are never freed, and their filters' fields never change.
        let filter = unsafe { (*thread).filter };
        filter.forget(line);
    }
}

/// Writes out what all threads have, including those that still run. Nothing is recorded
/// afterwards.
pub fn stop() {
    if !state::records_here() {
        return;
    }
    THREADS.close();
    for thread in THREADS.threads() {
        // SAFETY: registered recorders are never freed.
        unsafe { Recorder::close(thread, 1) };
    }
    state::stay_off();
}

fn open_log(index: u32) -> i32 {
    if state::count_only() {
        return i32::MAX;
    }
    let Ok(name) = CString::new(format!("threads/{index:05}.hnlog")) else { return -1 };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
    let fd = state::high(io::open_at(state::dir(), &name, flags));
    let header = LogHeader { version: VERSION, filter_lines: state::filter_lines(), line_shift: LINE_SHIFT };
    if fd < 0 || io::write_all(fd, &header.bytes()).is_err() {
        return -1;
    }
    fd
}
