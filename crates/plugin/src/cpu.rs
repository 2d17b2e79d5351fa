//! What the call-backs of one virtual CPU use. A CPU executes on one thread at a time.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use homenode_cache::Line;
use homenode_model::LineNo;
use homenode_wire::monitor::ExecutedCode;

use crate::calls::Calls;
use crate::front::{Front, KnownLine, Met};
use crate::monitor::KERNEL;
use crate::pending::{Pending, PendingAccess};
use crate::process::MOST;
use crate::translate::{PAGE_SHIFT, Translations};
use crate::word::{self, WRITE};

/// Process that has to be found out.
const UNKNOWN: u16 = u16::MAX;

/// Accesses by number of the process.
type Counters = [AtomicU64; MOST];

/// All that an access needs that is a hit in the first level, in a line of the host's cache.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Desk {
    known: *const KnownLine,
    /// Times of use by place.
    used: *const AtomicU64,
    /// The last of them. Written by the CPU.
    time: AtomicU64,
    kernel: *const AtomicU64,
    /// The counter of the process that the CPU executes.
    running: AtomicPtr<AtomicU64>,
    /// The calls that the program is in. The call-backs of this CPU alone use them.
    calls: Box<UnsafeCell<Calls>>,
}

// SAFETY: what it points to is atomic and lives as long as the plug-in, except for `calls`, which
// the call-backs of one CPU use. QEMU never runs these at the same time.
unsafe impl Sync for Desk {}
// SAFETY: as above.
unsafe impl Send for Desk {}

impl Desk {
    /// Of a CPU that has this.
    pub fn of(shared: &'static Shared) -> Self {
        Self {
            known: shared.front.known(),
            used: shared.front.used().as_ptr(),
            time: AtomicU64::new(0),
            kernel: &raw const shared.accesses[usize::from(KERNEL)],
            running: AtomicPtr::new((&raw const shared.accesses[usize::from(KERNEL)]).cast_mut()),
            calls: Box::default(),
        }
    }

    /// Stands for the process that the CPU executes.
    fn whose(&self) -> usize {
        self.running.load(Ordering::Relaxed) as usize
    }

    /// A call stored the return address `back` at `slot`.
    ///
    /// # Safety
    /// In a call-back of this CPU.
    #[inline(always)]
    pub unsafe fn enter(&self, slot: u64, back: u64) {
        // SAFETY: nobody else uses it meanwhile, by the caller's promise.
        unsafe { (*self.calls.get()).enter(slot, back, self.whose()) }
    }

    /// A return loaded its address from `slot`.
    ///
    /// # Safety
    /// In a call-back of this CPU.
    #[inline(always)]
    pub unsafe fn leave(&self, slot: u64) {
        // SAFETY: nobody else uses it meanwhile, by the caller's promise.
        unsafe { (*self.calls.get()).leave(slot) }
    }

    /// What the program executes; `at` is the instruction's address, 0 in the kernel.
    ///
    /// # Safety
    /// In a call-back of this CPU.
    pub unsafe fn code(&self, at: u64) -> ExecutedCode {
        // SAFETY: nobody else uses it meanwhile, by the caller's promise.
        ExecutedCode { at, calls: unsafe { (*self.calls.get()).innermost(self.whose()) } }
    }

    /// Counts an access of at most `bytes`, of the kernel's or the program's code, if it lies in
    /// one line that is known.
    #[inline(always)]
    pub fn answers(&self, bytes: u64, what: u32, address: u64, kernel: bool) -> bool {
        let line = address >> LineNo::SHIFT;
        // SAFETY: it lives as long as the plug-in.
        let known = unsafe { &*self.known };
        if address.wrapping_add(bytes - 1) >> LineNo::SHIFT != line {
            return false;
        }
        let Some(place) = known.hit(line, what & WRITE != 0) else { return false };
        // SAFETY: the table leads to places of the same front alone.
        unsafe { &*self.used.add(place as usize) }.store(self.tick(), Ordering::Relaxed);
        let counter = if kernel { self.kernel } else { self.running.load(Ordering::Relaxed) };
        // SAFETY: one of the CPU's counters.
        count(unsafe { &*counter });
        true
    }

    /// The time of a use.
    #[inline(always)]
    fn tick(&self) -> u64 {
        count(&self.time)
    }
}

/// One more. One writer: no need for a locked addition.
#[inline(always)]
fn count(counter: &AtomicU64) -> u64 {
    let now = counter.load(Ordering::Relaxed) + 1;
    counter.store(now, Ordering::Relaxed);
    now
}

/// Read by other CPUs' threads, too.
#[derive(Debug)]
pub struct Shared {
    /// Lines that need no look at anything else.
    pub front: Front,
    /// Accesses that the model has not heard of.
    pub pending: Pending,
    /// All accesses. Written by this CPU.
    pub accesses: Box<Counters>,
}

impl Shared {
    /// Nothing counted.
    pub fn new(front: Front) -> Self {
        Self { front, pending: Pending::default(), accesses: Box::new([const { AtomicU64::new(0) }; MOST]) }
    }
}

/// The CPU's own.
#[derive(Debug)]
pub struct VirtualCpu {
    translations: Translations,
    process: u16,
}

impl Default for VirtualCpu {
    fn default() -> Self {
        Self { translations: Translations::default(), process: UNKNOWN }
    }
}

/// What an access needs of the rest of the plug-in.
pub trait Backend {
    /// log2 of the line size.
    fn line_shift(&self) -> u32;
    /// Place in the guest's memory of the access that QEMU reports now; `None` for devices.
    fn translate(&self, what: u32, address: u64) -> Option<u64>;
    /// The process that a CPU executes.
    fn process(&self, cpu: usize) -> u16;
    /// The instruction at `at` stores to a page of a process: a first store of this CPU's. The
    /// pages are virtual and physical.
    fn stores(&self, cpu: usize, process: u16, pages: (u64, u64), at: u64);
    /// The CPU's pending accesses are for the model.
    fn flush(&self, cpu: usize);
}

impl VirtualCpu {
    /// An access of this CPU that its desk does not answer.
    #[inline]
    pub fn access(
        &mut self,
        (shared, desk): (&Shared, &Desk),
        behind: &impl Backend,
        cpu: usize,
        (what, address): (u32, u64),
        at: u64,
    ) {
        let kernel = at >> 63 != 0;
        let (write, bytes) = word::read(what);
        // The desk was asked for the largest access that there may be.
        if desk.answers(bytes, what, address, kernel) {
            return;
        }
        let process = match (kernel, self.process) {
            (true, _) => KERNEL,
            (false, UNKNOWN) => {
                self.process = behind.process(cpu);
                let counter = &shared.accesses[usize::from(self.process) % MOST];
                desk.running.store(std::ptr::from_ref(counter).cast_mut(), Ordering::Relaxed);
                self.process
            }
            (false, known) => known,
        };
        // All processes are below; the compiler cannot know.
        count(&shared.accesses[usize::from(process) % MOST]);
        let (place, mut stored) = match self.translations.get(address) {
            Some(found) => found,
            None => match behind.translate(what, address) {
                Some(place) => {
                    // The kernel's own pages are not asked for.
                    let stored = address >> 63 != 0;
                    self.translations.put(address, place, stored);
                    (place, stored)
                }
                None => return,
            },
        };
        if write && !stored {
            let (owner, at) = if kernel { (behind.process(cpu), 0) } else { (process, at) };
            behind.stores(cpu, owner, (address >> PAGE_SHIFT, place >> PAGE_SHIFT), at);
            self.translations.put(address, place, true);
            stored = true;
        }
        let shift = behind.line_shift();
        let page = address >> PAGE_SHIFT;
        // A program's access that its desk answers needs its process: it is not known when only the
        // kernel has been there.
        let keep = self.process != UNKNOWN || address >> 63 != 0;
        let one = |line: u64, virtual_line: u64| {
            let (place, met) = shared.front.access(Line(line), write, desk.tick(), shared.pending.next());
            if keep {
                shared.front.know(virtual_line, place, stored);
            }
            if let Met::Model(room) = met
                && shared.pending.add(PendingAccess { line, write, page, process, room })
            {
                behind.flush(cpu);
            }
        };
        one(place >> shift, address >> LineNo::SHIFT);
        // The part of an unaligned access that lies in the next line; in the next page it is left
        // out.
        let end = place + bytes - 1;
        if end >> shift != place >> shift && end >> PAGE_SHIFT == place >> PAGE_SHIFT {
            one(end >> shift, (address + bytes - 1) >> LineNo::SHIFT);
        }
    }

    /// Virtual addresses may mean something else from now on, and another process may run.
    pub fn forget(&mut self, shared: &Shared) {
        self.translations.forget();
        self.process = UNKNOWN;
        shared.front.forget();
    }
}
