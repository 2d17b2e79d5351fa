//! What the call-backs of one virtual CPU use. A CPU executes on one thread at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use homenode_cache::Line;

use crate::front::Front;
use crate::monitor::KERNEL;
use crate::pending::{Access, Pending};
use crate::process::MOST;
use crate::translate::{PAGE_SHIFT, Translations};
use crate::word;

/// Process that has to be found out.
const UNKNOWN: u16 = u16::MAX;

/// Read by other CPUs' threads, too.
#[derive(Debug)]
pub struct Shared {
    /// Lines that need no look at anything else.
    pub front: Front,
    /// Accesses that the model has not heard of.
    pub pending: Pending,
    /// Accesses counted, by number of the process. Written by this CPU.
    pub accesses: Box<[AtomicU64; MOST]>,
}

impl Shared {
    /// Nothing known, nothing counted.
    pub fn new(sets: u64) -> Self {
        Self {
            front: Front::new(sets),
            pending: Pending::default(),
            accesses: Box::new([const { AtomicU64::new(0) }; MOST]),
        }
    }

    /// One more. One writer: no need for a locked addition.
    #[inline(always)]
    fn count(&self, process: u16) {
        // All processes are below; the compiler cannot know.
        let counter = &self.accesses[usize::from(process) % MOST];
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The CPU's own.
#[derive(Debug)]
pub struct Cpu {
    translations: Translations,
    process: u16,
}

impl Default for Cpu {
    fn default() -> Self {
        Self { translations: Translations::default(), process: UNKNOWN }
    }
}

/// What an access needs of the rest of the plug-in.
pub trait Behind {
    /// log2 of the line size.
    fn line_shift(&self) -> u32;
    /// Place in the guest's memory of the access that QEMU reports now; `None` for devices.
    fn translate(&self, what: u32, address: u64) -> Option<u64>;
    /// The process that a CPU executes.
    fn process(&self, cpu: usize) -> u16;
    /// The CPU's pending accesses are for the model.
    fn flush(&self, cpu: usize);
}

impl Cpu {
    /// An access of this CPU.
    #[inline(always)]
    pub fn access(
        &mut self,
        shared: &Shared,
        behind: &impl Behind,
        cpu: usize,
        what: u32,
        address: u64,
        kernel: bool,
    ) {
        let (write, bytes) = word::read(what);
        let shift = behind.line_shift();
        let (first, last) = (address >> shift, (address + bytes - 1) >> shift);
        if first == last && shared.front.hit(first, write) {
            // Lines are known only after the process is.
            return shared.count(if kernel { KERNEL } else { self.process });
        }
        self.behind_the_front(shared, behind, cpu, (what, address, bytes), write, kernel);
    }

    #[inline(never)]
    fn behind_the_front(
        &mut self,
        shared: &Shared,
        behind: &impl Behind,
        cpu: usize,
        (what, address, bytes): (u32, u64, u64),
        write: bool,
        kernel: bool,
    ) {
        let process = match (kernel, self.process) {
            (true, _) => KERNEL,
            (false, UNKNOWN) => {
                self.process = behind.process(cpu);
                self.process
            }
            (false, known) => known,
        };
        shared.count(process);
        let place = match self.translations.get(address) {
            Some(place) => place,
            None => match behind.translate(what, address) {
                Some(place) => {
                    self.translations.put(address, place);
                    place
                }
                None => return,
            },
        };
        let shift = behind.line_shift();
        let page = address >> PAGE_SHIFT;
        let one = |line: u64, virtual_line: u64| {
            if shared.front.hit(virtual_line, write) {
                return;
            }
            shared.front.enter(virtual_line, Line(line), write);
            if shared.pending.add(Access { line, write, page, process }) {
                behind.flush(cpu);
            }
        };
        one(place >> shift, address >> shift);
        // The part of an unaligned access that lies in the next line; in the next page it is left out.
        let end = place + bytes - 1;
        if end >> shift != place >> shift && end >> PAGE_SHIFT == place >> PAGE_SHIFT {
            one(end >> shift, (address + bytes - 1) >> shift);
        }
    }

    /// Virtual addresses may mean something else from now on, and another process may run.
    pub fn forget(&mut self, shared: &Shared) {
        self.translations.forget();
        self.process = UNKNOWN;
        shared.front.forget();
    }
}
