//! A thread as its marks describe it: the teams that it is a member of. Its filter and its log are
//! a [`Recorder`]: here, or in the emulator's plug-in if the program is emulated.

use std::ffi::c_void;
use std::ptr::null_mut;

use homenode_log::Mark;
use homenode_recorder::channel::ProgramMessage;
use homenode_recorder::process::{errno, set_errno};
use homenode_recorder::{FastPath, Recorder, state};

use crate::tls::tls;
use crate::{cancel, emulator, process, tls};

/// The team membership that barriers belong to.
#[derive(Clone, Copy, Default)]
struct Task {
    instance: u64,
    generation: u64,
}

/// Depth of nested teams that are distinguished. Deeper ones share the last place.
const MAX_DEPTH: usize = 16;
/// Accesses between two fences of a waiting thread, at most.
const LOOKS: u64 = 4;
/// Number of such fences in a row after which a thread counts as waiting.
const AGAIN: u32 = 3;

/// A thread. Made at its first event; lives as long as the process.
pub struct TracedThread {
    /// Null if the emulator's plug-in records.
    recorder: *mut Recorder,
    tasks: [Task; MAX_DEPTH],
    depth: usize,
    serial: u64,
    /// The last atomic load: address, value, clock after it.
    spin: (u64, u64, u64),
    /// The last fence: the clock then, and the number of fences in a row with hardly any access
    /// before them.
    fence: (u64, u32),
}

/// Where the calling thread keeps what its marks describe, or null.
fn member() -> *mut *mut TracedThread {
    tls::member().cast()
}

/// The slow path of an access; the clock has been advanced.
#[inline(never)]
pub fn access(line: u64, write: bool, pc: u64) {
    // SAFETY: the recorder is used by this thread alone.
    cancel::deferred(|| unsafe {
        let tls = tls();
        if (*tls).recorder.is_null() && !first_access(tls) {
            return;
        }
        (*(*tls).recorder).access(line, write, pc);
    });
}

/// The calling thread may be cancelled at any instruction from now on.
pub fn be_careful() {
    with(|t| t.recorder().into_iter().for_each(Recorder::be_careful));
}

/// Gives a thread without a recorder one, if the thread should be recorded. If it never will be,
/// none of its accesses comes here again.
#[cold]
fn first_access(tls: *mut FastPath) -> bool {
    // SAFETY: this thread's block.
    unsafe {
        if state::off() || (*tls).closed {
            (*tls).forget();
            return false;
        }
        if !state::recording() || (*tls).starting {
            return false;
        }
        start();
        (*tls).clock = 1;
        !(*tls).recorder.is_null()
    }
}

/// All the bytes `address .. address + bytes`; see [`FastPath::range`].
pub fn range(address: usize, bytes: usize, write: bool, pc: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: as in `access`.
    cancel::deferred(|| unsafe {
        let tls = tls();
        if !(*tls).recorder.is_null() || first_access(tls) {
            FastPath::range(tls, address as u64, bytes as u64, write, pc as u64);
        }
    });
}

/// Writes a mark, if the thread is recorded. `make` is called only then.
pub fn mark(make: impl FnOnce() -> Mark) {
    with(|t| t.mark(&make()));
}

/// The thread, started if need be.
pub fn with<R>(f: impl FnOnce(&mut TracedThread) -> R) -> Option<R> {
    if !state::recording() {
        return None;
    }
    // SAFETY: both belong to this thread; nested use of the recorder is kept out by itself.
    unsafe {
        let (tls, member) = (tls(), member());
        if (*member).is_null() && !(*tls).closed && !(*tls).starting {
            start();
        }
        if (*tls).closed { None } else { (*member).as_mut().map(f) }
    }
}

/// Empties the filter, so that the following accesses pass again.
pub fn synchronise() {
    with(TracedThread::synchronise);
}

/// Starts the calling thread.
pub fn start() {
    let errno = errno();
    let tls = tls();
    // SAFETY: this thread's block.
    unsafe { (*tls).starting = true };
    let made = if emulator::active() {
        Some(null_mut())
    } else {
        std::panic::catch_unwind(|| Recorder::start(tls)).unwrap_or(None)
    };
    // These may call the program's own malloc, which must not be recorded before the thread's
    // start.
    let (stack_low, stack_high) = process::stack();
    process::at_thread_exit(end);
    // SAFETY: as above; the recorder lives for ever.
    unsafe {
        let id = (*tls).id;
        (*tls).starting = false;
        match made {
            Some(recorder) => {
                let thread = TracedThread {
                    recorder,
                    tasks: [Task::default(); MAX_DEPTH],
                    depth: 0,
                    serial: id << 32,
                    spin: (0, 0, 0),
                    fence: (0, 0),
                };
                *member() = Box::into_raw(Box::new(thread));
                if recorder.is_null() {
                    *tls = FastPath { id, ..FastPath::idle() };
                    emulator::tell(&ProgramMessage::Start { id, stack_low, stack_high });
                } else {
                    Recorder::attach(recorder);
                    (*recorder).mark(&Mark::ThreadStart { id, stack_low, stack_high });
                    if emulator::marks_alone() {
                        (*recorder).mark(&process::clock());
                    }
                }
            }
            None => (*tls).forget(),
        }
    }
    set_errno(errno);
}

/// Ends the calling thread's recording. The C library calls this when the thread returns.
extern "C" fn end(_: *mut c_void) {
    // SAFETY: this thread's block and recorder. The few bytes of the thread stay: a signal handler
    // may just use them.
    unsafe {
        let recorder = (*tls()).recorder;
        if !recorder.is_null() {
            if emulator::marks_alone() {
                (*recorder).mark(&process::clock());
            }
            Recorder::end(recorder);
        } else if emulator::active() && !(*member()).is_null() && state::recording() {
            (*tls()).closed = true;
            emulator::tell(&ProgramMessage::End);
        }
        (*tls()).forget();
    }
}

impl TracedThread {
    fn recorder(&mut self) -> Option<&mut Recorder> {
        // SAFETY: null, or this thread's own, which lives for ever.
        unsafe { self.recorder.as_mut() }
    }

    /// Writes a mark.
    pub fn mark(&mut self, mark: &Mark) {
        match self.recorder() {
            Some(recorder) => {
                if process::is_timed(mark) {
                    recorder.mark(&process::clock());
                }
                recorder.mark(mark);
            }
            None => emulator::mark(mark),
        }
    }

    /// Empties the filter.
    pub fn synchronise(&mut self) {
        let task = &self.tasks[self.depth.min(MAX_DEPTH - 1)];
        let interval = if self.depth == 0 { self.serial } else { task.instance << 20 ^ task.generation };
        match self.recorder() {
            Some(recorder) => recorder.synchronise(interval),
            None => emulator::tell(&ProgramMessage::Synchronise { interval }),
        }
    }

    /// Advances the clock by one access that does not come through the fast path.
    pub fn count_one(&mut self) {
        if let Some(recorder) = self.recorder() {
            recorder.count_one();
        }
    }

    /// At a fence (`flush`): whether the thread looks at a few places again and again, with a fence
    /// after each look, as programs do that wait for another thread's flag. Such a thread lets
    /// others run, and only its first fences count, because waiting is simulated, not recorded.
    pub fn waits_at_fence(&mut self) -> bool {
        // SAFETY: this thread's own block.
        let now = unsafe { (*tls()).clock };
        let (last, row) = self.fence;
        self.fence = (now, if now - last <= LOOKS { row.saturating_add(1) } else { 0 });
        self.fence.1 >= AGAIN
    }

    /// Whether this load repeats the last one with nothing in between.
    pub fn spinning(&mut self, address: u64, value: u64) -> bool {
        // SAFETY: this thread's own block.
        let now = (address, value, unsafe { (*tls()).clock });
        let again = self.spin == now;
        self.spin = (address, value, now.2 + 1);
        if again {
            self.spin.2 = now.2;
        }
        again
    }

    /// The thread becomes a member of a team.
    pub fn task_begin(&mut self, instance: u64, number: u64, team: u64) {
        self.mark(&Mark::TaskBegin { instance, number, team });
        self.depth += 1;
        self.tasks[self.depth.min(MAX_DEPTH - 1)] = Task { instance, generation: 0 };
        self.synchronise();
    }

    /// The thread has done its part of the innermost team's work.
    pub fn task_end(&mut self) {
        if let Some(instance) = self.instance() {
            self.mark(&Mark::TaskEnd { instance });
            self.depth -= 1;
            self.serial += 1;
            self.synchronise();
        }
    }

    /// The innermost team, if there is one.
    pub fn instance(&self) -> Option<u64> {
        (self.depth > 0).then(|| self.tasks[self.depth.min(MAX_DEPTH - 1)].instance)
    }

    /// The thread arrives at a barrier of the innermost team.
    pub fn barrier(&mut self) {
        if self.depth == 0 {
            return;
        }
        let task = &mut self.tasks[self.depth.min(MAX_DEPTH - 1)];
        let Task { instance, generation } = *task;
        task.generation += 1;
        self.mark(&Mark::Barrier { instance, generation });
    }
}
