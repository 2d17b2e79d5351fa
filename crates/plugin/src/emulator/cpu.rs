//! An emulated thread: the check of the filter, and what needs more.

use homenode_log::Mark;
use homenode_recorder::filter::LINE_SHIFT;
use homenode_recorder::{FastPath, Recorder, state};

use super::code::{AddressMap, AddressPiece};
use crate::word::{self, WRITE};

/// In place of the most bytes of an access: each is looked at closely.
pub const ALWAYS: u64 = 0;

/// A thread. Used by its own call-backs only. Its size is a power of two, so that it is found by a
/// shift.
#[repr(C, align(256))]
#[derive(Debug)]
pub struct EmulatedThread {
    pub(super) block: FastPath,
    stack: (u64, u64),
    last: AddressPiece,
    /// Lines that a library loaded from and stored to last.
    library: [u64; 2],
    /// A system call that fills memory: where, until it returns.
    pub filling: Option<u64>,
    /// The system call under way asks for the program break.
    pub breaking: bool,
}

impl EmulatedThread {
    /// A thread that is not recorded (yet).
    pub const fn new() -> Self {
        Self {
            block: FastPath::idle(),
            stack: (0, 0),
            last: AddressPiece::NONE,
            library: [u64::MAX; 2],
            filling: None,
            breaking: false,
        }
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        // SAFETY: null, or this thread's own, which lives for ever.
        unsafe { self.block.recorder.as_mut() }
    }

    /// The thread is recorded from here on.
    pub fn start(&mut self, id: u64, stack_low: u64, stack_high: u64) {
        if !state::recording() || !self.block.recorder.is_null() {
            return;
        }
        self.stack = (stack_low, stack_high);
        self.block = FastPath { id, ..FastPath::idle() };
        let Some(recorder) = Recorder::start(&raw mut self.block) else { return };
        // SAFETY: the thread itself; the recorder is new.
        unsafe {
            Recorder::attach(recorder);
            (*recorder).mark(&Mark::ThreadStart { id, stack_low, stack_high });
        }
    }

    /// The thread ends.
    pub fn end(&mut self) {
        if !self.block.recorder.is_null() {
            // SAFETY: the thread itself.
            unsafe { Recorder::end(self.block.recorder) };
        }
    }

    /// A mark.
    pub fn mark(&mut self, mark: &Mark) {
        if state::recording()
            && let Some(recorder) = self.recorder()
        {
            recorder.mark(mark);
        }
    }

    /// Empties the filter, in this barrier interval or the one before.
    pub fn synchronise(&mut self, interval: Option<u64>) {
        if state::recording()
            && let Some(recorder) = self.recorder()
        {
            let interval = interval.unwrap_or(recorder.interval());
            recorder.synchronise(interval);
        }
        self.library = [u64::MAX; 2];
    }

    /// An access of at most `MOST` bytes. Few instructions when the filter has seen the line, which
    /// is nearly always: an access near the end of its line, whatever its size, is looked at more
    /// closely.
    ///
    /// One comparison tells both: the place is that of the last byte's line, where the first byte's
    /// line is only if they are the same. In a filter of one line there is one place: then `MOST`
    /// is [`ALWAYS`].
    #[inline(always)]
    pub fn access<const MOST: u64>(&mut self, what: u32, address: u64, pc: u64) {
        let (line, last) = (address >> LINE_SHIFT, (address + MOST.wrapping_sub(1)) >> LINE_SHIFT);
        self.block.clock += 1;
        let table = if what & WRITE != 0 { self.block.written } else { self.block.used };
        // SAFETY: `mask` is below the tables' length.
        if MOST == ALWAYS || unsafe { *table.add((last & self.block.mask) as usize) } != line {
            Self::passed(self, what, address, pc);
        }
    }

    /// A line that the filter has not seen. A C function, because nothing unwinds out of these: so
    /// a call-back need not keep a frame for it, but ends by jumping here.
    #[inline(never)]
    pub(super) extern "C" fn new_line<const WRITES: bool>(&mut self, line: u64, pc: u64) {
        // SAFETY: null, or this thread's own. No handler of the emulated program's signals
        // interrupts a call-back: QEMU runs them as it runs everything else of the program.
        if let Some(recorder) = unsafe { self.block.recorder.as_mut() } {
            recorder.access_undisturbed(line, WRITES, pc);
        }
    }

    /// An access of a library that works on the program's objects. In what pieces `memset` does it
    /// is the library's own affair, and may be bytes: a line counts once, as it does where the call
    /// is recorded ([`FastPath::range`]).
    #[inline]
    pub fn library_access<const MOST: u64>(&mut self, what: u32, address: u64, pc: u64) {
        let line = address >> LINE_SHIFT;
        let last = &mut self.library[usize::from(what & WRITE != 0)];
        if *last != line {
            *last = line;
            self.access::<MOST>(what, address, pc);
        }
    }

    /// What the filter may not have seen.
    #[inline(never)]
    pub(super) extern "C" fn passed(&mut self, what: u32, address: u64, pc: u64) {
        let (write, bytes) = word::read(what);
        let (line, last) = (address >> LINE_SHIFT, (address + bytes - 1) >> LINE_SHIFT);
        for line in line..=last {
            match write {
                false if !self.block.seen(line, false) => Self::new_line::<false>(self, line, pc),
                true if !self.block.seen(line, true) => Self::new_line::<true>(self, line, pc),
                _ => {}
            }
        }
    }

    /// Whether an address is of the thread's stack.
    #[inline]
    pub fn in_stack(&self, address: u64) -> bool {
        (self.stack.0..self.stack.1).contains(&address)
    }

    /// Whether an address is of one of the program's objects.
    #[inline]
    pub fn in_object(&mut self, code: &AddressMap, address: u64) -> bool {
        code.in_object(address, &mut self.last)
    }

    /// An atomic operation of the program. Never filtered; told once, at its store.
    pub fn atomic(&mut self, what: u32, address: u64) {
        if what & WRITE == 0 || !state::recording() {
            return;
        }
        if let Some(recorder) = self.recorder() {
            recorder.count_one();
            recorder.mark(&Mark::Atomic { address, write: 1, order: state::order() });
            let interval = recorder.interval();
            recorder.synchronise(interval);
        }
    }

    /// The kernel has written there for the thread.
    pub fn filled(&mut self, address: u64, bytes: u64) {
        if state::recording() && !self.block.recorder.is_null() {
            // SAFETY: this thread's block, with a recorder.
            unsafe { FastPath::range(&raw mut self.block, address, bytes, true, 0) };
        }
    }
}

impl Default for EmulatedThread {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::READ;

    #[test]
    fn a_library_counts_lines_whatever_its_pieces() {
        let mut cpu = EmulatedThread::new();
        for byte in 0..256 {
            cpu.library_access::<8>(READ, 4096 + byte, 0);
            cpu.library_access::<8>(WRITE, 8192 + byte, 0);
        }
        assert_eq!(cpu.block.clock, 8);
        cpu.synchronise(None);
        cpu.library_access::<8>(READ, 4096 + 255, 0);
        assert_eq!(cpu.block.clock, 9);
    }
}
