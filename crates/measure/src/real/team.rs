//! Threads that are bound to CPUs and go in step.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use homenode_sys::affinity::CpuSet;
use homenode_sys::{affinity, numa};

use crate::axes::CpuNumber;

/// A barrier that spins, for sleeping threads would measure how they wake up.
#[derive(Debug)]
pub(super) struct Step {
    members: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    failed: AtomicBool,
}

/// Turns of the wait after which the CPU is offered to others, in case they are what is waited for.
const PATIENCE: u32 = 1 << 12;

impl Step {
    pub fn new(members: usize) -> Self {
        Self {
            members,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Waits for all.
    pub fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut turns = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            turns += 1;
            if turns >= PATIENCE {
                std::thread::yield_now();
                turns = 0;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Binds the caller to `cpu` and waits for all; the CPU that it then runs on, if every member
    /// could be bound.
    pub fn join(&self, cpu: CpuNumber) -> Result<CpuNumber, String> {
        let bound = pin(cpu);
        if bound.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        self.wait();
        bound.map_err(|e| format!("binding a thread to {cpu}: {e}"))?;
        if self.failed.load(Ordering::Acquire) {
            return Err("another thread could not be bound".into());
        }
        Ok(here())
    }
}

/// Binds the caller to a CPU.
pub(super) fn pin(cpu: CpuNumber) -> homenode_sys::Result<()> {
    affinity::set(&CpuSet::of([cpu.0]))
}

/// The CPU that runs the caller.
pub(super) fn here() -> CpuNumber {
    CpuNumber(numa::here().0)
}
