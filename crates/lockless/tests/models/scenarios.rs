//! Scenarios on the atomic types of the parent module.

use loom::sync::Arc;
use loom::thread;

use super::changes::Changes;
use super::claims::Claims;
use super::flights::Flights;
use super::ring::{TouchRing, VALID};
use crate::memory::Memory;

/// Waits for another thread.
fn pause(_: &mut ()) {
    thread::yield_now();
}

/// Runs both in threads of their own, to their ends.
fn both<T: Send + Sync + 'static>(shared: T, first: fn(&T), second: fn(&T)) -> Arc<T> {
    let shared = Arc::new(shared);
    let other = shared.clone();
    let thread = thread::spawn(move || first(&other));
    second(&shared);
    thread.join().unwrap();
    shared
}

struct Blocks {
    claims: Claims<2, 3>,
    memory: [Memory; 3],
}

impl Blocks {
    fn new() -> Self {
        Self { claims: Claims::new(), memory: [Memory::new(), Memory::new(), Memory::new()] }
    }
}

/// Two threads claim a block, and each adds 1 to its state.
pub fn two_claim_one_block() {
    let add = |b: &Blocks| {
        b.claims.claim(0, pause);
        b.memory[0].write();
        b.claims.release(0, b.claims.state(0) + 1);
    };
    let blocks = both(Blocks::new(), add, add);
    assert_eq!(blocks.claims.state(0), 2, "an owner's state is lost");
}

/// A thread claims two blocks of two groups. Another one claims the second, if it is free.
pub fn one_claims_many() {
    let many = |b: &Blocks| {
        b.claims.claim_all(63..65, pause);
        b.memory.iter().take(2).for_each(Memory::write);
        b.claims.release_all(63..65);
    };
    let one = |b: &Blocks| {
        if b.claims.try_claim(64) {
            b.memory[1].write();
            b.claims.release_all(64..65);
        }
    };
    both(Blocks::new(), many, one);
}

/// Two owners of neighbours want each other's blocks.
pub fn two_want_the_others() {
    let first = |b: &Blocks| {
        b.claims.claim(0, pause);
        b.claims.with_others(0, 0..2, || b.memory[1].write());
        b.memory[0].write();
        b.claims.release(0, 1);
    };
    let second = |b: &Blocks| {
        b.claims.claim(1, pause);
        b.claims.with_others(1, 0..2, || b.memory[0].write());
        b.memory[1].write();
        b.claims.release(1, 1);
    };
    both(Blocks::new(), first, second);
}

/// A thread that sees a released block reads the state that its owner has left.
pub fn the_state_of_a_released_block() {
    let blocks = Blocks::new();
    assert!(blocks.claims.try_claim(0));
    let owner = |b: &Blocks| b.claims.release(0, 7);
    let other = |b: &Blocks| assert!(b.claims.is_owned(0) || b.claims.state(0) == 7, "the state is old");
    both(blocks, owner, other);
}

/// One block, which is armed in state 1.
struct Process<const SLOTS: usize> {
    flights: Flights<SLOTS>,
    claims: Claims<1, 1>,
    memory: Memory,
}

impl<const SLOTS: usize> Process<SLOTS> {
    fn new() -> Self {
        Self { flights: Flights::new(), claims: Claims::new(), memory: Memory::new() }
    }

    /// As the runtime's `fault::bring`.
    fn bring(&self) {
        loop {
            if self.claims.is_owned(0) {
                pause(&mut ());
            } else if self.claims.state(0) == 0 {
                return;
            } else if self.claims.try_claim(0) {
                if self.claims.state(0) == 1 {
                    self.memory.write();
                }
                self.claims.release(0, 0);
            }
        }
    }

    /// A front end, and the kernel that uses the memory.
    fn system_call(&self, buffers: &[(usize, usize)]) {
        let flight = self.flights.publish(buffers.iter().copied(), 0);
        self.bring();
        self.memory.read();
        self.flights.retire(flight, &Changes::<1>::new());
    }

    /// Arms the block, unless the kernel uses its memory.
    fn arm(&self) {
        self.flights.choosing(1, || {
            self.claims.claim(0, pause);
            let mut state = 1;
            if !self.flights.each(|start, end| state = if start < 150 && 100 < end { 0 } else { state }) {
                state = 0;
            }
            if state == 1 {
                self.memory.write();
            }
            self.claims.release(0, state);
        });
    }
}

/// A thread arms what another one gives to the kernel.
pub fn arming_and_a_system_call() {
    both(Process::<1>::new(), Process::arm, |p| p.system_call(&[(100, 200)]));
}

/// The same, where there is no slot for one of the call's two buffers.
pub fn arming_and_more_buffers_than_slots() {
    both(Process::<1>::new(), Process::arm, |p| p.system_call(&[(300, 400), (100, 200)]));
}

/// Two threads publish buffers, and look for a slot at the same place.
pub fn two_publish() {
    let flights = Arc::new(Flights::<2>::new());
    let other = flights.clone();
    let thread = thread::spawn(move || _ = other.publish([(100, 200)].into_iter(), 0));
    let _ = flights.publish([(300, 400)].into_iter(), 0);
    thread.join().unwrap();
    let mut seen = Vec::new();
    assert!(flights.each(|start, end| seen.push((start, end))), "there is room for both");
    seen.sort_unstable();
    assert_eq!(seen, [(100, 200), (300, 400)], "a buffer is not published");
}

/// Memory that is not armed stays so while a thread has asked for quiet.
pub fn arming_and_quiet() {
    let quiet = |p: &Process<1>| {
        p.flights.begin_quiet(1, pause);
        p.memory.read();
        p.flights.end_quiet();
    };
    both(Process::<1>::new(), Process::arm, quiet);
}

/// Mappings that a thread changes while another one arms what it has seen of them.
struct Mapped {
    process: Process<1>,
    changes: Changes<4>,
    /// How often they have changed.
    mappings: loom::sync::Mutex<usize>,
}

impl Mapped {
    fn new() -> Self {
        let mappings = loom::sync::Mutex::new(0);
        Self { process: Process::new(), changes: Changes::new(), mappings }
    }

    /// A front end of a call that changes the mappings.
    fn change(&self, noted_afterwards: bool) {
        let flight = self.process.flights.publish([(100, 200)].into_iter(), 0);
        let flight = if noted_afterwards { flight.of_change() } else { flight };
        self.changes.note(100, 200);
        self.process.bring();
        *self.mappings.lock().unwrap() += 1;
        self.process.flights.retire(flight, &self.changes);
    }

    /// Arms the block, unless its mappings may be others by now.
    fn arm(&self) {
        let before = self.changes.count();
        let seen = *self.mappings.lock().unwrap();
        let Process { flights, claims, .. } = &self.process;
        flights.choosing(1, || {
            claims.claim(0, pause);
            let is_it = |start, end| start < 150 && 100 < end;
            let mut used = false;
            let allowed = flights.each(|start, end| used |= is_it(start, end));
            let may = allowed && !used && !self.changes.any_since(before, is_it);
            assert!(!may || seen == *self.mappings.lock().unwrap(), "armed by an old look");
            claims.release(0, 0);
        });
    }
}

/// A thread arms what another one changes.
pub fn arming_and_a_change() {
    both(Mapped::new(), Mapped::arm, |m| m.change(true));
}

/// The same, where the change is noted only before it is made.
pub fn arming_and_a_change_noted_before() {
    both(Mapped::new(), Mapped::arm, |m| m.change(false));
}

/// More looks than the writers have steps: the reader misses no entry that is about to be written.
const PATIENCE: usize = 20;

/// Entries that threads write to a ring of two places, each with memory that it tells of.
struct Touches {
    ring: TouchRing<2, PATIENCE>,
    memory: [Memory; 3],
    /// Whether each entry was written.
    kept: [std::sync::atomic::AtomicBool; 3],
    /// How often each entry was told.
    told: [std::sync::atomic::AtomicUsize; 3],
}

impl Touches {
    fn new() -> Self {
        let memory = [Memory::new(), Memory::new(), Memory::new()];
        Self { ring: TouchRing::new(), memory, kept: Default::default(), told: Default::default() }
    }

    fn write(&self, n: usize) {
        self.memory[n].write();
        self.kept[n].store(self.ring.write(VALID | n as u64), std::sync::atomic::Ordering::SeqCst);
    }

    fn drain(&self) {
        self.ring.drain(thread::yield_now, |entry| {
            let n = (entry & !VALID) as usize;
            self.memory[n].read();
            self.told[n].fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        });
    }

    /// All threads have ended: each entry was told once, or its writer knows that it is lost.
    fn end(&self) {
        self.drain();
        for (kept, told) in self.kept.iter().zip(&self.told) {
            let kept = usize::from(kept.load(std::sync::atomic::Ordering::SeqCst));
            assert_eq!(
                told.load(std::sync::atomic::Ordering::SeqCst),
                kept,
                "an entry is lost or told twice"
            );
        }
    }
}

/// Two threads write an entry each while the reader reads.
pub fn two_write_one_reads() {
    let touches = Arc::new(Touches::new());
    let threads = [0, 1].map(|n| {
        let touches = touches.clone();
        thread::spawn(move || touches.write(n))
    });
    touches.drain();
    threads.into_iter().for_each(|t| t.join().unwrap());
    touches.end();
}

/// A thread writes more entries than there are places while the reader reads.
pub fn the_ring_is_full() {
    let write = |t: &Touches| (0..3).for_each(|n| t.write(n));
    let touches = both(Touches::new(), write, Touches::drain);
    touches.end();
}
