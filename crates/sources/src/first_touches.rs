//! Who touches a page of the program first: the software event `page-faults`, read from perf rings.
//!
//! The first touch of a fresh page faults, and the event tells address, instruction, thread, CPU
//! and time. In place of an instruction in a run-time library, [`PageFault`] has the program's call
//! of it. The event needs `perf_event_paranoid` of at most 2. It does not tell first touches by the
//! kernel, as in a `read` into fresh memory. One fault may bring a whole huge page.
//!
//! # Bounds
//!
//! The event reports every fault of the program, also those that are no first touch. All reports
//! together may cost [`BURST`], and then one part in [`SHARE`] of the elapsed time. The event is
//! off while they have cost more. [`FirstTouches::missed`] says for how long.

use homenode_model::{NodeId, Ns};
use homenode_sys::perf::CounterSpec;
use homenode_sys::{Result, call};

use crate::callers::Code;
use crate::fault;
use crate::rings::Rings;
use crate::source::Cpus;

/// CPU time that reports may cost at once.
const BURST: Ns = Ns(10_000_000);
/// Reports may cost one part in this many of the elapsed time.
const SHARE: u64 = 200;
/// Pages of all rings together: 4 MiB.
const PAGES: usize = 1024;
/// Pages of one ring. A page has room for 32 reports. An ordinary user may lock 128 pages a CPU
/// (`perf_event_mlock_kb`).
const EACH: std::ops::RangeInclusive<usize> = 16..=128;

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    /// The address that was touched.
    pub address: usize,
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The CPU.
    pub cpu: u32,
    /// The node of the CPU.
    pub node: NodeId,
    /// When, by the monotonic clock.
    pub time: Ns,
    /// Address of the program's instruction: of a call if a run-time library touched the page.
    pub pc: u64,
}

/// CPU time that may still be spent.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    left: Ns,
    last: Ns,
}

impl Allowance {
    const fn new(now: Ns) -> Self {
        Self { left: BURST, last: now }
    }

    /// Takes `cost` at the moment `now`. Returns whether reports may go on, or begin again.
    fn take(&mut self, cost: Ns, now: Ns, on: bool) -> bool {
        let earned = now.0.saturating_sub(self.last.0) / SHARE;
        self.last = now;
        self.left = Ns((self.left.0 + earned).min(BURST.0).saturating_sub(cost.0));
        // Off, it waits until half is earned back, so that it does not flicker.
        self.left.0 > if on { 0 } else { BURST.0 / 2 }
    }
}

/// See the module.
#[derive(Debug)]
pub struct FirstTouches {
    rings: Rings,
    cpus: Cpus,
    code: Code,
    /// Cost of one report, for the program's thread and for reading it.
    each: Ns,
    allowance: Allowance,
    /// When the reports were last read.
    last: Ns,
    paused: Ns,
}

impl FirstTouches {
    /// For the threads that the caller starts from now on, and for the existing ones.
    ///
    /// # Errors
    /// The kernel refuses the event or its rings.
    pub fn open(cpus: Cpus) -> Result<Self> {
        let pages = (PAGES / cpus.all().count().max(1)).clamp(*EACH.start(), *EACH.end());
        let open = |pages: usize| {
            Rings::open_with(pages, &[CounterSpec::page_faults_with_stack()], None, cpus.all())
        };
        // Other rings of the user may have taken the memory that the user may lock.
        let mut rings = open(pages).or_else(|_| open(*EACH.start()))?;
        let each = fault::measure(&mut rings, fault::fresh)?.telling;
        rings.turn(true);
        let now = call::now();
        Ok(Self {
            rings,
            cpus,
            code: Code::default(),
            each,
            allowance: Allowance::new(now),
            last: now,
            paused: Ns::ZERO,
        })
    }

    /// Reports the faults since the last call, CPU by CPU, and in the order of time for each CPU.
    /// Returns what they have cost the program's threads.
    pub fn drain(&mut self, now: Ns, tell: &mut dyn FnMut(PageFault)) -> Ns {
        let (mut faults, lost) = (0, self.rings.lost());
        let Self { rings, cpus, code, .. } = self;
        rings.drain(|_, s| {
            faults += 1;
            if let Some(node) = cpus.node(s.cpu) {
                let (address, thread, cpu) = (s.address as usize, s.thread, s.cpu);
                let pc = code.program(s.ip, &s.stack, now);
                tell(PageFault { address, thread, cpu, node, time: s.time, pc });
            }
        });
        // The program paid for those without room, too.
        faults += self.rings.lost() - lost;
        let on = self.rings.is_on();
        if !on {
            self.paused += Ns(now.0.saturating_sub(self.last.0));
        }
        self.last = now;
        let cost = self.each.times(faults);
        let goes_on = self.allowance.take(cost, now, on);
        self.rings.turn(goes_on);
        cost
    }

    /// When the faults were last read.
    pub const fn last(&self) -> Ns {
        self.last
    }

    /// Stops for good.
    pub fn stop(&mut self) {
        self.rings.turn(false);
    }

    /// What was missed, a sentence each.
    pub fn missed(&self) -> Vec<String> {
        /// Pauses that are worth telling.
        const WORTH: Ns = Ns(1_000_000);
        let mut all = Vec::new();
        if self.rings.lost() > 0 {
            all.push(format!(
                "{} page faults were not seen, so who touched their pages first is not known: \
                 there were more at once than the rings have room for",
                self.rings.lost()
            ));
        }
        if self.paused > WORTH {
            all.push(format!(
                "for {:.1} s nobody looked at who touches pages first: to be told of each page \
                 fault would have cost too much",
                self.paused.0 as f64 * 1e-9
            ));
        }
        all.extend(self.rings.cannot());
        all
    }

    /// Bytes of address space.
    pub fn state_bytes(&self) -> usize {
        self.rings.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rings::tests::one_at_a_time;
    use homenode_sys::memory::ScratchMemory;
    use homenode_sys::{PAGE, Span};

    fn opened() -> Option<FirstTouches> {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let cpus = Cpus::new((0..=last).map(|cpu: u16| Some(NodeId(cpu % 2))).collect());
        FirstTouches::open(cpus).map_err(|e| println!("skipped: {e}")).ok()
    }

    #[test]
    fn each_page_is_told_with_its_thread_its_instruction_and_the_time() {
        let _one = one_at_a_time();
        let Some(mut firsts) = opened() else { return };
        let scratch = std::sync::Arc::new(ScratchMemory::new(32 * PAGE).unwrap());
        let (span, theirs, begin) = (scratch.span(), scratch.clone(), call::now());
        let thread = std::thread::spawn(move || {
            theirs.touch();
            call::thread_id()
        });
        let id = thread.join().unwrap();
        let end = call::now();
        let mut told = Vec::new();
        let cost = firsts.drain(end, &mut |f| told.extend(span.contains(f.address).then_some(f)));
        assert!(cost >= Ns(32 * 200), "{cost:?}");
        let mut pages: Vec<usize> = told.iter().map(|f| f.address & !(PAGE - 1)).collect();
        pages.sort_unstable();
        assert_eq!(pages, span.pieces(PAGE).map(|p| p.start).collect::<Vec<_>>());
        for f in &told {
            assert!(f.thread == id as u32 && f.node == NodeId(f.cpu as u16 % 2), "{f:?}");
            assert!((begin..=end).contains(&f.time) && f.pc != 0, "{f:?} {begin:?} {end:?}");
        }
        firsts.stop();
        assert!(firsts.missed().is_empty(), "{:?}", firsts.missed());
    }

    #[test]
    fn memory_that_the_c_library_fills_is_touched_by_its_caller() {
        let _one = one_at_a_time();
        let Some(mut firsts) = opened() else { return };
        // So much memory is fresh, and the compiler calls the library for a length that it does
        // not know.
        let filled = vec![7_u8; std::hint::black_box(4 << 20)];
        let span = Span::new(filled.as_ptr() as usize, filled.len());
        let mut told = Vec::new();
        firsts.drain(call::now(), &mut |f| told.extend(span.contains(f.address).then_some(f.pc)));
        assert!(!told.is_empty());
        let program = homenode_sys::maps::each(|m| {
            let is_mine = m.execute && m.span.contains(opened as *const () as usize);
            assert!(!is_mine || told.iter().all(|pc| m.span.contains(*pc as usize)), "{told:x?} {m:?}");
            true
        });
        program.unwrap();
    }

    #[test]
    fn more_faults_than_the_rings_have_room_for_are_said() {
        let _one = one_at_a_time();
        let Some(mut firsts) = opened() else { return };
        ScratchMemory::new(40_000 * PAGE).unwrap().touch();
        let mut told = 0;
        firsts.drain(call::now(), &mut |_| told += 1);
        // The kernel tells of the lost ones with the next fault that finds room.
        for _ in 0..100 {
            firsts.rings.turn(true);
            ScratchMemory::new(8 * PAGE).unwrap().touch();
            firsts.drain(call::now(), &mut |_| ());
        }
        let missed = firsts.missed();
        assert!(told > 1000 && missed[0].contains("page faults were not seen"), "{told} {missed:?}");
    }

    #[test]
    fn reports_pause_beyond_their_share_until_half_is_earned_back() {
        let ms = |n: u64| Ns(n * 1_000_000);
        let mut a = Allowance::new(Ns::ZERO);
        assert!(a.take(ms(9), ms(1), true));
        assert!(!a.take(ms(9), ms(2), true), "18 of 10 ms");
        assert!(!a.take(Ns::ZERO, ms(500), false));
        assert!(!a.take(Ns::ZERO, ms(1000), false), "half of 10 ms takes a second");
        assert!(a.take(Ns::ZERO, ms(1010), false));
        // An hour's rest earns no more than the first burst.
        assert!(a.take(ms(9), ms(3_600_000), true) && !a.take(ms(2), ms(3_600_001), true));
    }
}
