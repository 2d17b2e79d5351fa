//! Writes to pages that this source has write-protected.
//!
//! The kernel removes such a protection at the first store, without a signal and without stopping
//! any thread (WP_ASYNC, Linux 6.7). The store causes a minor fault, and the software event
//! `page-faults` in a perf ring reports it with address and CPU. This source sees writers, not
//! readers. It needs neither privileges nor a PMU.
//!
//! The event reports every fault of the program, and a report makes a fault half as expensive
//! again. So the event is on only from the first page that is asked for, and no page is asked for
//! while the program has many faults of its own ([`crate::lull`]), as initialisations do. Pages
//! that were asked for before are then given up, and count as lost. Faults of other pages are no
//! answers.
//!
//! Protecting a page costs most: the kernel interrupts each CPU that runs the program, and waits
//! for it. The time depends on the machine and its load, so it is measured at each request.

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_statistics::Sorted;
use homenode_sys::memory::ScratchMemory;
use homenode_sys::perf::CounterSpec;
use homenode_sys::uffd::WriteWatch;
use homenode_sys::{PAGE, Result, Span, call};

use crate::asked::PageBits;
use crate::budget::lately;
use crate::fault::{self, Fault};
use crate::lull::Lull;
use crate::rings::Rings;
use crate::source::{AddressTouch, AnswerKind, Cpus, Source};
use crate::spans::Spans;
use crate::unwatched::Unwatched;

/// Most watched spans.
const SPANS: usize = 4096;
/// Freed memory of at least this size is unmapped (glibc's `DEFAULT_MMAP_THRESHOLD_MAX`), and the
/// kernel unregisters it then. Letting go of it before would take 0.1 s a GiB.
const LARGE: usize = 32 << 20;

/// See the module.
#[derive(Debug)]
pub struct WriteFaults {
    watch: WriteWatch,
    rings: Rings,
    cpus: Cpus,
    spans: Spans,
    asked: PageBits,
    /// Answers that have not been reported yet.
    answers: Vec<AddressTouch>,
    toll: Toll,
    lull: Lull,
    /// Returns the process's faults so far.
    faults: fn() -> u64,
    /// Number of answers so far.
    told: u64,
    /// Number of pages that were asked for and given up.
    given_up: u64,
    /// Memory that the kernel refuses: shared, file-backed, or another process's.
    unwatched: Unwatched,
}

/// The cost of a page.
#[derive(Clone, Copy, Debug, Default)]
struct Toll {
    fault: Fault,
    /// Protecting it while no other thread runs.
    alone: Ns,
    /// Protecting it, recently.
    now: Ns,
}

impl Toll {
    /// Notes that protecting `pages` pages took `took`.
    fn protected(&mut self, pages: u64, took: Ns) {
        self.now = lately(self.now, took, pages);
    }

    /// The cost for interrupted threads: half of the time that the protecting thread waits for them
    /// (7 of 13 µs on a virtual machine of two CPUs).
    fn interruption(self) -> Ns {
        Ns(self.now.0.saturating_sub(self.alone.0) / 2)
    }
}

impl WriteFaults {
    /// Watches all threads that the caller starts from now on.
    ///
    /// # Errors
    /// The first refusal of the kernel.
    pub fn open(cpus: Cpus) -> Result<Self> {
        let watch = WriteWatch::open()?;
        let mut rings = Rings::open(&[CounterSpec::page_faults()], None, cpus.all())?;
        let toll = measure(&watch, &mut rings)?;
        let lull = Lull::new(cpus.all().count() as u64, call::minor_faults(), call::now());
        Ok(Self {
            watch,
            rings,
            cpus,
            spans: Spans::new(),
            asked: PageBits::new(),
            answers: Vec::new(),
            toll,
            lull,
            faults: call::minor_faults,
            told: 0,
            given_up: 0,
            unwatched: Unwatched::default(),
        })
    }

    /// Finds the answers among the faults reported so far.
    fn read(&mut self) {
        let Self { rings, cpus, asked, answers, told, .. } = self;
        rings.drain(|_, s| {
            let address = s.address as usize;
            if let (true, Some(node)) = (asked.take(address), cpus.node(s.cpu)) {
                *told += 1;
                answers.push(AddressTouch { address, node, time: s.time, kind: Some(AccessKind::Write) });
            }
        });
    }

    /// Whether the program has few faults now, not counting those that were asked for.
    fn is_lull(&mut self) -> bool {
        let others = (self.faults)().saturating_sub(self.told);
        self.lull.look(others, self.toll.fault.telling, call::now())
    }

    fn forget(&mut self, span: Span) {
        self.spans.cut(span);
        self.asked.cut(span);
        if self.spans.is_empty() {
            self.rings.turn(false);
        }
    }
}

/// Measures the cost of a page on homenode's own memory: the medians of a few rounds.
fn measure(watch: &WriteWatch, rings: &mut Rings) -> Result<Toll> {
    let scratch = ScratchMemory::new(fault::PAGES * PAGE)?;
    scratch.touch();
    watch.add(scratch.span())?;
    let mut alone = Vec::new();
    let fault = fault::measure(rings, || {
        let begin = call::now();
        for page in scratch.span().pieces(PAGE) {
            watch.protect(page)?;
        }
        let protected = call::now();
        alone.push((protected - begin).0 / fault::PAGES as u64);
        scratch.touch();
        Ok(call::now() - protected)
    })?;
    watch.remove(scratch.span())?;
    let alone = Ns(Sorted::of(alone).upper_median().unwrap_or_default());
    Ok(Toll { fault, alone, now: alone })
}

impl Source for WriteFaults {
    fn name(&self) -> &'static str {
        "writes to write-protected pages (WP_ASYNC and perf)"
    }

    fn says(&self) -> AnswerKind {
        AnswerKind::Presence { writers_only: true }
    }

    fn watch(&mut self, span: Span, _: NodeId) {
        let span = span.inner(PAGE);
        if span.is_empty() {
            return;
        }
        if self.spans.len() >= SPANS {
            return self.unwatched.no_room(span);
        }
        if self.spans.is_empty() {
            self.is_lull();
            self.lull.forget();
        }
        // The former contents are gone.
        self.forget(span);
        match self.watch.add(span) {
            Ok(()) => drop(self.spans.add(span)),
            Err(_) => self.unwatched.refused(span),
        }
    }

    fn leave(&mut self, span: Span) {
        let span = span.outer(PAGE);
        // Freed memory is not registered any more.
        let _ = self.watch.remove(span);
        self.forget(span);
    }

    fn gone(&mut self, span: Span) {
        if span.len() < LARGE {
            return self.leave(span);
        }
        // If the program keeps the memory, stores to it work as before, except for a fault at pages
        // that are still protected.
        self.forget(span.outer(PAGE));
    }

    fn ask(&mut self, pages: &[usize]) -> usize {
        // Earlier faults are no answers.
        self.read();
        if !pages.iter().any(|p| self.spans.has(*p)) || !self.is_lull() || !self.rings.turn(true) {
            return 0;
        }
        let (begin, mut count) = (call::thread_time(), 0);
        for page in pages.iter().filter(|p| self.spans.has(**p)) {
            if self.watch.protect(Span::new(*page, PAGE)).is_ok() {
                self.asked.add(*page);
                count += 1;
            }
        }
        self.toll.protected(count, call::thread_time() - begin);
        count as usize
    }

    fn drain(&mut self, tell: &mut dyn FnMut(AddressTouch)) {
        self.read();
        self.answers.drain(..).for_each(tell);
        if self.rings.is_on() && !self.is_lull() {
            self.rings.turn(false);
            self.given_up += std::mem::take(&mut self.asked).count();
        }
    }

    fn stop(&mut self) {
        self.rings.turn(false);
        self.asked = PageBits::new();
        for span in std::mem::take(&mut self.spans).iter() {
            let _ = self.watch.remove(span);
        }
    }

    fn end(&mut self) {
        // The kernel makes protected pages writable by itself. Letting go of a GiB takes 0.1 s.
        self.rings.turn(false);
        (self.spans, self.asked) = (Spans::new(), PageBits::new());
    }

    fn cost(&self) -> Ns {
        self.toll.fault.whole + self.toll.interruption()
    }

    fn asking(&self) -> Ns {
        self.toll.now
    }

    fn paused(&self) -> Ns {
        self.lull.many()
    }

    fn cannot(&self) -> Vec<String> {
        self.unwatched.sentences(SPANS).chain(self.rings.cannot()).collect()
    }

    fn lost(&self) -> u64 {
        self.rings.lost() + self.given_up
    }

    fn state_bytes(&self) -> usize {
        self.rings.bytes() + self.spans.bytes() + self.asked.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rings::tests::one_at_a_time;
    use std::cell::Cell;
    use std::sync::mpsc::{Sender, channel};

    thread_local! {
        /// What the kernel would count: other tests of this process have faults, too.
        static FAULTS: Cell<u64> = const { Cell::new(0) };
    }

    fn opened() -> Option<WriteFaults> {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let node = |cpu: u16| Some(NodeId(cpu % 2));
        match WriteFaults::open(Cpus::new((0..=last).map(node).collect())) {
            Ok(mut writes) => {
                writes.faults = || FAULTS.get();
                writes.lull = Lull::new(2, 0, call::now());
                Some(writes)
            }
            Err(e) => {
                println!("skipped: {e}");
                None
            }
        }
    }

    fn pages(span: Span) -> Vec<usize> {
        span.pieces(PAGE).map(|p| p.start).collect()
    }

    /// Numbers of the pages of `span` that are told.
    fn told(writes: &mut WriteFaults, span: Span) -> Vec<usize> {
        let mut seen = Vec::new();
        writes.drain(&mut |t| {
            assert_eq!(t.kind, Some(AccessKind::Write));
            seen.push((t.address - span.start) / PAGE);
        });
        // Of each CPU by itself.
        seen.sort_unstable();
        seen
    }

    /// Counts `more` faults, at a time of their own.
    fn faults(more: u64) {
        FAULTS.set(FAULTS.get() + more);
        std::thread::sleep(std::time::Duration::from_millis(3));
    }

    #[test]
    fn each_asked_page_is_told_once() {
        let _one = one_at_a_time();
        let Some(mut writes) = opened() else { return };
        let scratch = ScratchMemory::new(16 * PAGE).unwrap();
        scratch.touch();
        let (all, pages) = (scratch.span(), pages(scratch.span()));
        assert_eq!(writes.ask(&pages), 0, "not watched yet");
        writes.watch(all, NodeId(0));
        assert_eq!(writes.ask(&pages[..8]), 8);
        scratch.touch();
        scratch.touch();
        assert_eq!(told(&mut writes, all), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(told(&mut writes, all), [0; 0]);
        assert!(writes.cost() > Ns::ZERO && writes.asking() > Ns::ZERO);
    }

    #[test]
    fn what_is_left_is_told_no_more_and_the_rest_still_is() {
        let _one = one_at_a_time();
        let Some(mut writes) = opened() else { return };
        let scratch = ScratchMemory::new(8 * PAGE).unwrap();
        scratch.touch();
        let (all, pages) = (scratch.span(), pages(scratch.span()));
        writes.watch(all, NodeId(0));
        assert_eq!(writes.ask(&pages), 8);
        let part = Span::new(pages[2], 3 * PAGE);
        writes.leave(part);
        scratch.touch();
        assert_eq!(told(&mut writes, all), [0, 1, 5, 6, 7]);
        // For the time of a move.
        writes.watch(part, NodeId(0));
        assert_eq!(writes.spans.iter().collect::<Vec<_>>(), [all]);
        assert_eq!(writes.ask(&pages), 8);
        scratch.touch();
        assert_eq!(told(&mut writes, all).len(), 8);
        writes.stop();
        assert_eq!(writes.ask(&pages), 0);
    }

    /// Memory to touch, and who is told when that is done.
    type Order = (std::sync::Arc<ScratchMemory>, Sender<()>);

    fn worker() -> (Sender<Order>, std::thread::JoinHandle<()>) {
        let (order, orders) = channel::<Order>();
        let run = move || {
            for (scratch, done) in orders {
                scratch.touch();
                done.send(()).unwrap();
            }
        };
        (order, std::thread::spawn(run))
    }

    #[test]
    fn no_fault_is_told_of_before_the_first_asking_and_those_of_all_threads_are_after_it() {
        // More than the rings have room for.
        const FRESH: usize = 4096;
        let _one = one_at_a_time();
        let Some(mut writes) = opened() else { return };
        let (early, early_thread) = worker();
        let touch = |who: &Sender<_>, scratch: &std::sync::Arc<ScratchMemory>| {
            let (done, is_done) = channel();
            who.send((scratch.clone(), done)).unwrap();
            is_done.recv().unwrap();
        };
        let scratch = std::sync::Arc::new(ScratchMemory::new(FRESH * PAGE).unwrap());
        let all = scratch.span();
        writes.watch(all, NodeId(0));
        touch(&early, &scratch);
        let mut events = 0;
        writes.rings.drain(|_, s| events += usize::from(all.contains(s.address as usize)));
        assert_eq!((events, writes.lost()), (0, 0), "the event was on for the initialisation");
        let (late, late_thread) = worker();
        for who in [&early, &late] {
            assert_eq!(writes.ask(&pages(all)[..8]), 8);
            touch(who, &scratch);
            assert_eq!(told(&mut writes, all), [0, 1, 2, 3, 4, 5, 6, 7]);
        }
        let (last, last_thread) = worker();
        assert_eq!(writes.ask(&pages(all)[..8]), 8);
        touch(&last, &scratch);
        assert_eq!(told(&mut writes, all).len(), 8, "made after it was on");
        drop((early, late, last));
        for thread in [early_thread, late_thread, last_thread] {
            thread.join().unwrap();
        }
    }

    #[test]
    fn fresh_pages_of_watched_memory_are_no_answers() {
        let _one = one_at_a_time();
        let Some(mut writes) = opened() else { return };
        let (there, fresh) = (ScratchMemory::new(4 * PAGE).unwrap(), ScratchMemory::new(4 * PAGE).unwrap());
        there.touch();
        writes.watch(there.span(), NodeId(0));
        writes.watch(fresh.span(), NodeId(0));
        assert_eq!(writes.ask(&pages(there.span())[..1]), 1);
        fresh.touch();
        there.touch();
        assert_eq!(told(&mut writes, there.span()), [0]);
    }

    #[test]
    fn while_the_program_has_many_faults_nothing_is_asked_for_and_what_was_is_lost() {
        let _one = one_at_a_time();
        let Some(mut writes) = opened() else { return };
        let scratch = ScratchMemory::new(8 * PAGE).unwrap();
        scratch.touch();
        let (all, pages) = (scratch.span(), pages(scratch.span()));
        writes.watch(all, NodeId(0));
        // Those that were asked for do not count: 8 in 3 ms would be many at 10 µs.
        writes.toll.fault.telling = Ns(10_000);
        assert_eq!(writes.ask(&pages), 8);
        scratch.touch();
        faults(8);
        assert_eq!(told(&mut writes, all).len(), 8);
        assert!(writes.rings.is_on() && writes.paused() == Ns::ZERO);
        assert_eq!(writes.ask(&pages[..4]), 4);
        faults(1_000_000);
        assert_eq!(told(&mut writes, all), [0; 0]);
        assert!(!writes.rings.is_on() && writes.paused() > Ns::ZERO);
        assert_eq!(writes.lost(), 4);
        scratch.touch();
        faults(1_000_000);
        assert_eq!((writes.ask(&pages), told(&mut writes, all)), (0, vec![]));
        faults(0);
        assert_eq!(writes.ask(&pages), 8);
        scratch.touch();
        assert_eq!(told(&mut writes, all).len(), 8);
        assert_eq!(writes.lost(), 4);
    }

    #[test]
    fn what_goes_is_told_no_more_whether_the_kernel_lets_go_of_it_or_not() {
        for bytes in [16 * PAGE, LARGE] {
            let _one = one_at_a_time();
            let Some(mut writes) = opened() else { return };
            let scratch = ScratchMemory::new(bytes).unwrap();
            scratch.touch();
            let (all, pages) = (scratch.span(), pages(scratch.span()));
            writes.watch(all, NodeId(0));
            assert_eq!(writes.ask(&pages[..4]), 4);
            writes.gone(all);
            assert!(!writes.rings.is_on(), "nothing is watched");
            scratch.touch();
            assert_eq!(told(&mut writes, all), [0; 0]);
            // The allocator gives it out again.
            writes.watch(Span::new(pages[1], 8 * PAGE), NodeId(0));
            assert_eq!(writes.ask(&pages[..4]), 3);
            scratch.touch();
            assert_eq!(told(&mut writes, all), [1, 2, 3]);
        }
    }
}
