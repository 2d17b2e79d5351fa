//! One event and one ring a CPU, for all existing threads, and for those that the calling thread
//! starts from now on.

use std::sync::atomic::{AtomicU64, Ordering};

use homenode_model::Bytes;
use homenode_sys::maps;
use homenode_sys::perf::{CounterSpec, EventTarget, PerfEvent, PerfRecord, Ring, Sample};
use homenode_sys::{Errno, Error, PAGE, Result};

/// Bytes of living rings that the kernel counts as the process's pinned memory.
static PINNED: AtomicU64 = AtomicU64::new(0);

/// Memory of rings that the kernel counts as pinned (`VmPin`): what the user's allowance for perf
/// has no room for. Nothing else uses that memory.
pub fn pinned() -> Bytes {
    Bytes(PINNED.load(Ordering::Acquire))
}

fn pinned_by_process() -> u64 {
    maps::fixed().map_or(0, |fixed| fixed.pinned.0)
}

/// Pages of one ring: 1 600 samples of 40 bytes. An ordinary user may lock eight times as much.
const PAGES: usize = 16;
/// Existing threads that get events of their own; more are not seen.
const THREADS: usize = 64;

/// The rings.
#[derive(Debug)]
pub struct Rings {
    /// Members of a group come after their leader, with the index of the event.
    all: Vec<One>,
    process: u32,
    /// Their part of [`PINNED`].
    pinned: u64,
    /// The last value of [`Rings::turn`].
    on: bool,
    lost: u64,
    throttled: u64,
}

#[derive(Debug)]
struct One {
    event: PerfEvent,
    ring: Option<Ring>,
    which: usize,
}

impl Drop for Rings {
    fn drop(&mut self) {
        self.all.clear();
        PINNED.fetch_sub(self.pinned, Ordering::AcqRel);
    }
}

impl Rings {
    /// Opens `specs` on each of `cpus`. With `leader`, that event comes first on each CPU and has
    /// no ring: some processors sample loads only beside it.
    ///
    /// # Errors
    /// The first refusal of the kernel.
    pub fn open(
        specs: &[CounterSpec],
        leader: Option<&CounterSpec>,
        cpus: impl Iterator<Item = u32>,
    ) -> Result<Self> {
        Self::open_with(PAGES, specs, leader, cpus)
    }

    /// As [`Rings::open`], with rings of `pages` pages.
    ///
    /// # Errors
    /// The first refusal of the kernel.
    pub fn open_with(
        pages: usize,
        specs: &[CounterSpec],
        leader: Option<&CounterSpec>,
        cpus: impl Iterator<Item = u32>,
    ) -> Result<Self> {
        let mut rings = Self {
            all: Vec::new(),
            process: std::process::id(),
            pinned: 0,
            on: false,
            lost: 0,
            throttled: 0,
        };
        let before = pinned_by_process();
        let threads = threads();
        for cpu in cpus {
            for thread in &threads {
                // A thread that has ended meanwhile does not count.
                match rings.add(pages, specs, leader, (*thread, cpu)) {
                    Err(e) if has_ended(*thread, e) => {}
                    done => done?,
                }
            }
        }
        if rings.all.is_empty() {
            return Err(NO_CPU);
        }
        rings.pinned = pinned_by_process().saturating_sub(before);
        PINNED.fetch_add(rings.pinned, Ordering::AcqRel);
        Ok(rings)
    }

    fn add(
        &mut self,
        pages: usize,
        specs: &[CounterSpec],
        leader: Option<&CounterSpec>,
        (thread, cpu): (i32, u32),
    ) -> Result<()> {
        let target = EventTarget { thread, cpu: Some(cpu), inherit: true };
        for (which, spec) in specs.iter().enumerate() {
            let first = leader.map(|l| PerfEvent::open(l, target, None)).transpose()?;
            let event = PerfEvent::open(spec, target, first.as_ref())?;
            let ring = Some(Ring::map(&event, pages)?);
            if let Some(event) = first {
                self.all.push(One { event, ring: None, which });
            }
            self.all.push(One { event, ring, which });
        }
        Ok(())
    }

    /// Turns the events on.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn enable(&self) -> Result<()> {
        self.all.iter().try_for_each(|o| o.event.enable())
    }

    /// Turns the events off.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn disable(&self) -> Result<()> {
        self.all.iter().try_for_each(|o| o.event.disable())
    }

    /// Turns the events on or off, and remembers it. Returns whether that succeeded; if not, they
    /// count as off.
    pub fn turn(&mut self, on: bool) -> bool {
        if self.on != on {
            let done = if on { self.enable() } else { self.disable() };
            if done.is_err() {
                let _ = self.disable();
            }
            self.on = on && done.is_ok();
        }
        self.on == on
    }

    /// Whether the events are on, by the last [`Rings::turn`].
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Reports the samples of this process, CPU by CPU, with the index of their event.
    pub fn drain(&mut self, mut tell: impl FnMut(usize, &Sample)) {
        for one in &mut self.all {
            let Some(ring) = &mut one.ring else { continue };
            let which = one.which;
            let (process, throttled) = (self.process, &mut self.throttled);
            let before = ring.lost();
            // A damaged ring was emptied, and its contents are lost.
            let whole = ring.drain(|record| match record {
                PerfRecord::Sample(s) if s.process == process => tell(which, &s),
                PerfRecord::Throttle(true) => *throttled += 1,
                _ => {}
            });
            self.lost += ring.lost() - before + u64::from(whole.is_err());
        }
    }

    /// Samples that found no room.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// What could not be done so far, one sentence each.
    pub fn cannot(&self) -> impl Iterator<Item = String> {
        let times = self.throttled;
        (times > 0)
            .then(|| {
                format!("the kernel stopped sampling for a while, {times} times: it took too long for it")
            })
            .into_iter()
    }

    /// Bytes of address space.
    pub fn bytes(&self) -> usize {
        self.all.iter().filter_map(|o| o.ring.as_ref()).map(Ring::bytes).sum()
    }

    /// Bytes of one ring.
    pub const fn bytes_each() -> usize {
        (PAGES + 1) * PAGE
    }
}

/// `ENODEV`.
pub(crate) const NO_CPU: Error =
    Error { call: "perf_event_open (no CPU)", on: homenode_sys::Span::EMPTY, errno: Errno(19) };

/// Whether a call failed because the thread has ended (`ESRCH`).
pub(crate) fn has_ended(thread: i32, e: Error) -> bool {
    e.errno.0 == 3 && thread != 0
}

/// The threads of this process; the first is 0, the caller.
pub(crate) fn threads() -> Vec<i32> {
    let me = homenode_sys::call::thread_id();
    let listed = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let others = listed.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(|t| *t != me);
    std::iter::once(0).chain(others.take(THREADS)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use homenode_sys::memory::ScratchMemory;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Rings are of all threads of the process, so of other tests' too: their faults would leave no
    /// room in the rings of this one.
    pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
        static ONE: Mutex<()> = Mutex::new(());
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn faults_of_threads_started_later_are_told_with_their_cpu() {
        let _one = one_at_a_time();
        let mut rings = match Rings::open(&[CounterSpec::page_faults()], None, 0..cpus()) {
            Ok(rings) => rings,
            Err(e) => return println!("skipped: {e}"),
        };
        rings.enable().unwrap();
        let scratch = std::sync::Arc::new(ScratchMemory::new(64 * PAGE).unwrap());
        let memory = scratch.span();
        let theirs = scratch.clone();
        let thread = std::thread::spawn(move || {
            theirs.touch();
            homenode_sys::call::thread_id()
        });
        let id = thread.join().unwrap();
        rings.disable().unwrap();
        let mut seen = Vec::new();
        rings.drain(|_, s| {
            if memory.contains(s.address as usize) {
                assert_eq!(s.thread, id as u32);
                assert!(s.cpu < cpus());
                seen.push(s.address as usize & !(PAGE - 1));
            }
        });
        seen.sort_unstable();
        assert_eq!(seen, memory.pieces(PAGE).map(|p| p.start).collect::<Vec<_>>());
        assert_eq!(rings.lost(), 0);
    }

    /// What [`crate::duty`] stands on.
    #[test]
    fn on_and_off_reach_threads_that_run_already_and_those_started_meanwhile() {
        use std::sync::mpsc::{Receiver, Sender, channel};
        /// Touches fresh memory when told to, and answers with where it lies; keeps it.
        fn worker(orders: Receiver<()>, answers: Sender<homenode_sys::Span>) {
            let mut kept = Vec::new();
            for () in orders {
                let scratch = ScratchMemory::new(16 * PAGE).unwrap();
                scratch.touch();
                answers.send(scratch.span()).unwrap();
                kept.push(scratch);
            }
        }
        let _one = one_at_a_time();
        let mut rings = match Rings::open(&[CounterSpec::page_faults()], None, 0..cpus()) {
            Ok(rings) => rings,
            Err(e) => return println!("skipped: {e}"),
        };
        let start = || {
            let ((order, orders), (answer, answers)) = (channel(), channel());
            (order, answers, std::thread::spawn(move || worker(orders, answer)))
        };
        rings.enable().unwrap();
        let mut threads = vec![start()];
        for (on, want) in [(true, 16), (false, 0), (true, 16)] {
            if on { rings.enable() } else { rings.disable() }.unwrap();
            for (order, answers, _) in &threads {
                order.send(()).unwrap();
                let (memory, mut seen) = (answers.recv().unwrap(), 0);
                rings.drain(|_, s| seen += u32::from(memory.contains(s.address as usize)));
                assert_eq!(seen, want, "on: {on}");
            }
            threads.push(start());
        }
        for (order, _, thread) in threads {
            drop(order);
            thread.join().unwrap();
        }
    }

    /// Numbers of CPUs below which all are.
    fn cpus() -> u32 {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<u32>().ok()).map_or(1, |n| n + 1)
    }
}
