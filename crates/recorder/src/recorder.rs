//! A thread's filter, buffer and log.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use homenode_log::encode::{
    MARK_TAG, MARK_WORDS, MAX_CHUNK_WORDS, MAX_DELTA, SKIP, access_words, mark_words,
};
use homenode_log::file::{Framer, LogHeader};
use homenode_log::mark::BYPASS_CAP;
use homenode_log::{Mark, VERSION};

use crate::block::{FastPath, LINE_SHIFT};
use crate::bypass::{self, Bypass, IntervalThread};
use crate::{io, memory, process, state};

/// A thread's recorder, made at the thread's first event. Its large memory is freed when the thread
/// ends. The rest and the filter stay for ever, because another thread may be looking at them.
pub struct Recorder {
    block: *mut FastPath,
    /// The filter: two tables of `lines` entries, the lines used and the lines written.
    used_lines: *mut u64,
    written_lines: *mut u64,
    lines: usize,
    /// Number of lines minus one.
    mask: usize,
    index: u32,
    buffer: *mut u64,
    /// Words in the buffer. They are published after they are written, so that the exiting thread
    /// can write them out. With [`APPENDING`] while the fast path appends an access.
    used: AtomicUsize,
    /// Whether the recorder is at work. Nothing that a signal handler does meanwhile is recorded.
    busy: AtomicBool,
    /// Held while the buffer is encoded; kept for good when the log is closed.
    flushing: AtomicBool,
    /// Whether the log is closed or about to be.
    closed: AtomicBool,
    /// Whether the log has its end.
    ended: AtomicBool,
    /// `None` after the thread has ended.
    framer: Option<Framer>,
    fd: i32,
    last_tick: u64,
    last_flush: i64,
    /// Position in the buffer at the last emptying of the filter; [`UNKNOWN`] if the buffer was
    /// encoded since then.
    emptied_at: usize,
    /// Number of the barrier interval; equal in all threads of a team between two barriers.
    interval: u64,
    /// This thread in this interval.
    who: IntervalThread,
    shared: bool,
    /// Words up to which a usual access may be appended directly: [`OPEN`]. 0 if accesses need more
    /// than the filter (there are other threads, or no filter), and while the recorder is at work.
    gate: AtomicUsize,
    special: bool,
    /// See [`Recorder::be_careful`].
    careful: bool,
    /// Words up to which [`Recorder::access_undisturbed`] may append: [`OPEN`]; 0 without a filter.
    room: usize,
    /// Number of encoded words, and number of all words so far that are no accesses. Half of the
    /// difference is the number of passed accesses.
    encoded: u64,
    other: u64,
    bypassed: u64,
    dropped: u64,
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
            used_lines: filter,
            written_lines: filter.wrapping_add(lines),
            lines,
            mask: lines - 1,
            index: 0,
            buffer,
            used: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            gate: AtomicUsize::new(0),
            flushing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            framer: Some(Framer::new()),
            fd: -1,
            last_tick: 0,
            last_flush: process::seconds(),
            emptied_at: 0,
            interval: 0,
            who: IntervalThread::default(),
            shared: false,
            room: if state::filter_lines() > 0 { OPEN } else { 0 },
            special: true,
            careful: false,
            encoded: 0,
            other: 0,
            bypassed: 0,
            dropped: 0,
            told_lines: 0,
        }));
        let index = state::number()?;
        // SAFETY: just made; nobody else knows it before it is registered, and then only its
        // atomics and its filter.
        unsafe {
            (*thread).index = index;
            (*thread).who = IntervalThread::new(index, 0);
            (*thread).fd = open_log(index);
            if (*thread).fd < 0 {
                state::switch_off("stopped: cannot create a thread's log");
                return None;
            }
            state::register(index, thread);
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
            (*block).mask = (*recorder).mask as u64;
            (*block).recorder = recorder;
            (*block).used = (*recorder).used_lines;
            (*block).written = (*recorder).written_lines;
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
            state::unregister((*recorder).index);
            if closed {
                (*recorder).release();
            }
        }
    }

    /// Frees the large memory. The log is closed, so nobody else uses that memory.
    fn release(&mut self) {
        self.framer = None;
        memory::unmap(self.buffer.cast(), BUFFER_WORDS * 8);
        io::close(self.fd);
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
        self.gate.store(0, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Ends [`Self::enter`].
    #[inline]
    fn leave(&mut self) {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
        self.gate.store(if self.special { 0 } else { OPEN }, Ordering::Relaxed);
    }

    /// Whether this is a signal handler that has interrupted the recorder.
    #[inline]
    fn at_work(&self) -> bool {
        self.busy.load(Ordering::Relaxed) || self.used.load(Ordering::Relaxed) & APPENDING != 0
    }

    /// Records an access that passed the filter. The clock has been advanced.
    #[inline]
    pub fn access(&mut self, line: u64, write: bool, pc: u64) {
        if self.at_work() {
            self.dropped += 1;
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
        let used = self.used.load(Ordering::Relaxed);
        if delta > MAX_DELTA || used >= self.room {
            return Self::access_of_any_kind(self, line, write, pc);
        }
        self.enter_line(line, write, line);
        self.last_tick = tick;
        let [first, second] = access_words(line, write, pc, delta);
        // SAFETY: within the buffer, which only this thread writes.
        unsafe {
            self.buffer.add(used).write(first);
            self.buffer.add(used + 1).write(second);
        }
        self.used.store(used + 2, Ordering::Release);
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
            self.other += 2;
            delta = 0;
        }
        self.push(&access_words(line, write, pc, delta));
        if self.used.load(Ordering::Relaxed) > BUFFER_WORDS - ROOM {
            self.flush(false);
        }
    }

    /// Enters the line into the filter, unless the line bypasses it.
    fn install(&mut self, line: u64, write: bool) {
        let mut entry = line;
        if self.shared {
            match bypass::look(line, write, self.who) {
                Bypass::No => {}
                Bypass::Yes if self.bypassed < BYPASS_CAP => {
                    self.bypassed += 1;
                    entry = 0;
                }
                Bypass::Yes => {}
                Bypass::New => {
                    self.bypassed += 1;
                    entry = 0;
                    forget_everywhere(line);
                }
            }
        }
        self.enter_line(line, write, entry);
    }

    /// Writes an entry at the line's place: the line, or 0.
    #[inline(always)]
    fn enter_line(&mut self, line: u64, write: bool, entry: u64) {
        let at = line as usize & self.mask;
        // SAFETY: `at` is below the tables' length.
        unsafe {
            self.used_lines.add(at).write(entry);
            self.written_lines.add(at).write(if write { entry } else { 0 });
        }
    }

    #[inline]
    fn push(&mut self, words: &[u64]) {
        let used = self.used.load(Ordering::Relaxed);
        if used + words.len() > BUFFER_WORDS {
            self.dropped += 1; // the log was closed by another thread that exits
            return;
        }
        // SAFETY: within the buffer, which only this thread writes.
        unsafe { self.buffer.add(used).copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        self.used.store(used + words.len(), Ordering::Release);
    }

    /// Writes a mark.
    pub fn mark(&mut self, mark: &Mark) {
        if self.at_work() {
            self.dropped += 1;
            return;
        }
        self.enter();
        let tick = self.clock();
        let mut words = [0; MARK_WORDS];
        let n = mark_words(mark, tick - self.last_tick, &mut words);
        self.last_tick = tick;
        self.push(&words[..n]);
        self.other += n as u64;
        let now = process::seconds();
        if self.used.load(Ordering::Relaxed) > BUFFER_WORDS - ROOM || now != self.last_flush {
            self.flush(now != self.last_flush);
        }
        self.leave();
    }

    fn look_around(&mut self) {
        self.shared = state::several();
        self.special = self.shared || self.careful || state::filter_lines() == 0;
        self.gate.store(if self.special { 0 } else { OPEN }, Ordering::Relaxed);
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
        if lines != self.told_lines {
            self.told_lines = lines;
            self.mark(&Mark::Bypass { lines });
        }
    }

    /// Empties the filter. If the buffer has few lines since the last emptying, only these are
    /// removed.
    fn empty(&mut self) {
        let used = self.used.load(Ordering::Relaxed) & !APPENDING;
        let since = std::mem::replace(&mut self.emptied_at, used);
        if since > used || used - since > self.lines / 2 {
            // SAFETY: the whole filter.
            unsafe { self.used_lines.write_bytes(0, 2 * self.lines) };
            return;
        }
        // SAFETY: `used` words were written; the places are below the tables' length.
        unsafe {
            let words = std::slice::from_raw_parts(self.buffer.add(since), used - since);
            let mut at = 0;
            while let Some(&word) = words.get(at) {
                at += 2;
                if word & MARK_TAG == MARK_TAG {
                    at += (word >> 16) as usize;
                } else if word != SKIP {
                    let place = (word >> 8) as usize & self.mask;
                    self.used_lines.add(place).write(0);
                    self.written_lines.add(place).write(0);
                }
            }
        }
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
        if self.flushing.swap(true, Ordering::Acquire) {
            return; // closed: `push` drops what no longer fits
        }
        let errno = process::errno();
        let n = self.used.load(Ordering::Acquire);
        let encoded = self.framer.as_ref().map_or(0, Framer::words);
        if all || encoded + n + BUFFER_WORDS > MAX_CHUNK_WORDS {
            self.write_out(n, &[]);
            self.last_flush = process::seconds();
        } else if let (Some(framer), false) = (&mut self.framer, state::count_only()) {
            // SAFETY: `n` words were written before `used` was published.
            let words = unsafe { std::slice::from_raw_parts(self.buffer, n) };
            let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| framer.add(words)));
            if added.is_err() {
                self.stop_encoding();
            }
        }
        self.encoded += n as u64;
        self.emptied_at = UNKNOWN;
        self.used.store(0, Ordering::Release);
        self.flushing.store(false, Ordering::Release);
        process::set_errno(errno);
    }

    /// Writes a frame: the encoded words, the first `n` words of the buffer, and `last`.
    fn write_out(&mut self, n: usize, last: &[u64]) {
        let Some(framer) = &mut self.framer else { return };
        if framer.words() + n + last.len() == 0 || state::count_only() {
            return;
        }
        // SAFETY: `n` words were written before `used` was published.
        let words = unsafe { std::slice::from_raw_parts(self.buffer, n) };
        let fd = self.fd;
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
            if (*thread).closed.swap(true, Ordering::AcqRel) {
                state::wait_until(|| (*thread).ended.load(Ordering::Acquire));
                return false;
            }
            // The lock is never released.
            if !state::wait_until(|| !(*thread).flushing.swap(true, Ordering::Acquire)) {
                (*thread).closed.store(false, Ordering::Release);
                return false;
            }
            let errno = process::errno();
            let n = (*thread).used.load(Ordering::Acquire) & !APPENDING;
            (*thread).write_out(n, &[]);
            let tick = (*thread).framer.as_ref().map_or(0, Framer::tick);
            let clock = (*thread).clock().max(tick);
            let mut words = [0; 3 * MARK_WORDS];
            let mut end = [0; MARK_WORDS];
            let totals = Mark::Totals {
                accesses: clock,
                passed: ((*thread).encoded + n as u64 - (*thread).other) / 2,
                bypassed: (*thread).bypassed,
                dropped: (*thread).dropped,
            };
            let n = mark_words(&totals, clock - tick, &mut end);
            words[..n].copy_from_slice(&end[..n]);
            let m = mark_words(&Mark::ThreadEnd { reason }, 0, &mut end);
            words[n..n + m].copy_from_slice(&end[..m]);
            (*thread).write_out(0, &words[..n + m]);
            (*thread).ended.store(true, Ordering::Release);
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

/// Set in [`Recorder::used`] while an access is appended: its highest byte.
const APPENDING: usize = 1 << 63;

/// Offsets of the fields for assembly.
pub mod offsets {
    use super::Recorder;
    use std::mem::offset_of;

    /// [`Recorder::used`].
    pub const USED: usize = offset_of!(Recorder, used);
    /// [`Recorder::gate`].
    pub const GATE: usize = offset_of!(Recorder, gate);
    /// [`Recorder::last_tick`].
    pub const LAST_TICK: usize = offset_of!(Recorder, last_tick);
    /// [`Recorder::buffer`].
    pub const BUFFER: usize = offset_of!(Recorder, buffer);
    /// [`Recorder::mask`].
    pub const MASK: usize = offset_of!(Recorder, mask);
    /// [`Recorder::used_lines`].
    pub const USED_LINES: usize = offset_of!(Recorder, used_lines);
    /// [`Recorder::written_lines`].
    pub const WRITTEN_LINES: usize = offset_of!(Recorder, written_lines);
}

/// Makes every thread's filter forget a line that has just started to bypass it.
#[cold]
fn forget_everywhere(line: u64) {
    for thread in state::threads() {
        // SAFETY: recorders and filters are never freed. The owner may write the same word at the
        // same time; then one more access is missed, which the next synchronisation ends.
        unsafe {
            let at = line as usize & ((*thread).lines - 1);
            for entry in [(*thread).used_lines.add(at), (*thread).written_lines.add(at)] {
                if entry.read_volatile() == line {
                    entry.write_volatile(0);
                }
            }
        }
    }
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
