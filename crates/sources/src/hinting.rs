//! The kernel's NUMA hinting faults, read from a perf ring.
//!
//! `mbind(MPOL_BIND | MPOL_F_NUMA_BALANCING, home)` makes the kernel unmap pages from time to time
//! to see who touches them, as its NUMA balancing does. The pages stay where they are, because the
//! policy allows no node but their home (mpol_misplaced, mm/mempolicy.c). The software event
//! `page-faults` reports each such fault with address, CPU and thread. No signal is raised, and no
//! system call fails. This source needs `numa_balancing` on, and `perf_event_paranoid` of at most
//! 2. The kernel chooses when it unmaps pages (its scan period is a second and more), independently
//! of the program's phases.
//!
//! The event reports every fault of the program. So it is on only while something is watched. It is
//! off for a while when the reports have taken more than their share ([`crate::duty`]), as in an
//! initialisation. Unlike other sources, this one asks for no pages, so it cannot wait for a lull.

use std::fs;
use std::path::Path;

use homenode_model::{NodeId, Ns};
use homenode_sys::memory::ScratchMemory;
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::perf::CounterSpec;
use homenode_sys::{Errno, Error, PAGE, Result, Span, call};

use crate::duty::Duty;
use crate::fault::{self, Fault};
use crate::rings::Rings;
use crate::source::{AddressTouch, AnswerKind, Cpus, Source};
use crate::unwatched::Unwatched;

/// Most watched spans, each of one home.
const SPANS: usize = 4096;
/// The kernel's switch for NUMA balancing.
const SWITCH: &str = "/proc/sys/kernel/numa_balancing";

/// See the module.
#[derive(Debug)]
pub struct Hinting {
    rings: Rings,
    cpus: Cpus,
    /// By first address, without overlaps; with the memory's policy before.
    spans: Vec<Watched>,
    /// What a fault costs the program. The kernel alone can arm a page as it does; measured are
    /// first touches, for which it has to clear a page besides, so that no hinting fault costs as
    /// much.
    fault: Fault,
    duty: Duty,
    /// When faults were last counted, and for how long they were too many.
    last: Ns,
    paused: Ns,
    /// What was to be watched and is not.
    unwatched: Unwatched,
}

#[derive(Clone, Copy)]
struct Watched {
    span: Span,
    before: Option<MemoryPolicy>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.span.fmt(f)
    }
}

/// Whether the kernel's switch says that it balances (1, or with tiers 3).
fn balancing(switch: &Path) -> bool {
    let text = fs::read_to_string(switch).unwrap_or_default();
    text.trim().parse::<u32>().is_ok_and(|n| n & 1 != 0)
}

impl Hinting {
    /// For all threads that the caller starts from now on.
    ///
    /// # Errors
    /// What the kernel refuses first; `ENODEV` where its NUMA balancing is off.
    pub fn open(cpus: Cpus) -> Result<Self> {
        if !balancing(Path::new(SWITCH)) {
            let call = "NUMA hinting faults (kernel.numa_balancing is off)";
            return Err(Error { call, on: Span::EMPTY, errno: Errno(19) });
        }
        try_out()?;
        Self::with(cpus)
    }

    fn with(cpus: Cpus) -> Result<Self> {
        let mut rings = Rings::open(&[CounterSpec::page_faults()], None, cpus.all())?;
        let fault = fault::measure(&mut rings, fault::fresh)?;
        let last = call::now();
        let duty = Duty::new(cpus.all().count() as u64, last);
        let unwatched = Unwatched::default();
        Ok(Self { rings, cpus, spans: Vec::new(), fault, duty, last, paused: Ns::ZERO, unwatched })
    }

    /// Has the event on while something is watched, but not while telling has taken too much.
    fn turn(&mut self) {
        self.rings.turn(self.duty.is_on() && !self.spans.is_empty());
    }

    /// The event has reported `faults` more, ours or not.
    fn count(&mut self, faults: u64, now: Ns) {
        if !self.spans.is_empty() && !self.duty.is_on() {
            self.paused += Ns(now.0.saturating_sub(self.last.0));
        }
        self.last = now;
        if self.duty.after(faults, self.fault.telling, now).is_some() {
            self.turn();
        }
    }
}

/// Whether the policy can be set at all: containers forbid `mbind`, kernels before 5.12 do not know
/// the flag.
fn try_out() -> Result<()> {
    let scratch = ScratchMemory::new(PAGE)?;
    scratch.touch();
    let mut status = [numa::PageStatus::UNKNOWN];
    numa::query(&[scratch.span().start], &mut status)?;
    numa::set_policy(scratch.span(), &MemoryPolicy::bind_and_sample(status[0].node().unwrap_or(NodeId(0))))
}

impl Source for Hinting {
    fn name(&self) -> &'static str {
        "the kernel's NUMA hinting faults (mbind and perf)"
    }

    fn says(&self) -> AnswerKind {
        AnswerKind::Presence { writers_only: false }
    }

    fn by_home(&self) -> bool {
        true
    }

    fn watch(&mut self, span: Span, home: NodeId) {
        let span = span.inner(PAGE);
        if span.is_empty() || self.spans.iter().any(|w| w.span.overlaps(span)) {
            return;
        }
        if self.spans.len() >= SPANS {
            return self.unwatched.no_room(span);
        }
        let before = numa::policy_of(span.start).ok();
        if numa::set_policy(span, &MemoryPolicy::bind_and_sample(home)).is_err() {
            return self.unwatched.refused(span);
        }
        let at = self.spans.partition_point(|w| w.span.start < span.start);
        self.spans.insert(at, Watched { span, before });
        self.turn();
    }

    fn leave(&mut self, span: Span) {
        let span = span.outer(PAGE);
        let mut rest = Vec::new();
        self.spans.retain(|w| {
            let inside = w.span.cut(span);
            if inside.is_empty() {
                return true;
            }
            // Memory that is gone has no policy.
            let _ = numa::set_policy(inside, &w.before.unwrap_or(MemoryPolicy::DEFAULT));
            let parts = [
                Span { start: w.span.start, end: inside.start },
                Span { start: inside.end, end: w.span.end },
            ];
            rest.extend(parts.map(|span| Watched { span, ..*w }));
            false
        });
        self.spans.extend(rest.into_iter().filter(|w| !w.span.is_empty()));
        self.spans.sort_unstable_by_key(|w| w.span.start);
        self.turn();
    }

    fn ask(&mut self, _: &[usize]) -> usize {
        // The kernel arms what it likes, and when.
        0
    }

    fn drain(&mut self, tell: &mut dyn FnMut(AddressTouch)) {
        let Self { rings, cpus, spans, .. } = self;
        let (mut faults, lost) = (0, rings.lost());
        rings.drain(|_, s| {
            faults += 1;
            let address = s.address as usize;
            let after = spans.partition_point(|w| w.span.start <= address);
            let ours = after > 0 && spans[after - 1].span.contains(address);
            if let (true, Some(node)) = (ours, cpus.node(s.cpu)) {
                tell(AddressTouch { address, node, time: s.time, kind: None });
            }
        });
        // The kernel made those for which there was no room, too.
        faults += rings.lost() - lost;
        self.count(faults, call::now());
    }

    fn stop(&mut self) {
        self.rings.turn(false);
        for w in std::mem::take(&mut self.spans) {
            let _ = numa::set_policy(w.span, &w.before.unwrap_or(MemoryPolicy::DEFAULT));
        }
    }

    fn cost(&self) -> Ns {
        self.fault.whole
    }

    fn paused(&self) -> Ns {
        self.paused
    }

    fn cannot(&self) -> Vec<String> {
        self.unwatched.sentences(SPANS).chain(self.rings.cannot()).collect()
    }

    fn lost(&self) -> u64 {
        self.rings.lost()
    }

    fn state_bytes(&self) -> usize {
        self.rings.bytes() + self.spans.capacity() * size_of::<Watched>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rings::tests::one_at_a_time;

    #[test]
    fn the_kernels_switch_is_read() {
        let file = std::env::temp_dir().join(format!("homenode-balancing-{}", std::process::id()));
        for (text, on) in [("0\n", false), ("1\n", true), ("2\n", false), ("3\n", true), ("x", false)] {
            fs::write(&file, text).unwrap();
            assert_eq!(balancing(&file), on, "{text}");
        }
        fs::remove_file(&file).unwrap();
        assert!(!balancing(&file));
    }

    /// The event and the policy go the same way whether the kernel balances or not; first touches
    /// stand for hinting faults.
    fn opened() -> Option<Hinting> {
        let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let cpus = Cpus::new((0..=last).map(|cpu: u16| Some(NodeId(cpu % 2))).collect());
        match try_out().and_then(|()| Hinting::with(cpus)) {
            Ok(hinting) => Some(hinting),
            Err(e) => {
                println!("skipped: {e}");
                None
            }
        }
    }

    fn told(hinting: &mut Hinting) -> Vec<usize> {
        let mut all = Vec::new();
        hinting.drain(&mut |t| all.push(t.address & !(PAGE - 1)));
        all.sort_unstable();
        all
    }

    fn pages(span: Span) -> Vec<usize> {
        span.pieces(PAGE).map(|p| p.start).collect()
    }

    #[test]
    fn faults_are_told_of_while_something_is_watched_and_cost_what_was_measured() {
        let _one = one_at_a_time();
        let Some(mut hinting) = opened() else { return };
        assert!(
            hinting.fault.whole >= hinting.fault.telling && hinting.cost() > Ns::ZERO,
            "{:?}",
            hinting.fault
        );
        let [before, during, after] = [0; 3].map(|_| ScratchMemory::new(8 * PAGE).unwrap());
        before.touch();
        let mut events = 0;
        hinting.rings.drain(|_, s| events += usize::from(before.span().contains(s.address as usize)));
        assert_eq!(events, 0, "nothing is watched yet");
        hinting.watch(during.span(), NodeId(0));
        during.touch();
        assert_eq!(told(&mut hinting), pages(during.span()));
        hinting.leave(during.span());
        assert!(!hinting.rings.is_on());
        after.touch();
        assert_eq!((told(&mut hinting), hinting.paused()), (vec![], Ns::ZERO));
    }

    #[test]
    fn when_telling_takes_too_much_nothing_is_told_until_that_is_made_up_for() {
        let _one = one_at_a_time();
        let Some(mut hinting) = opened() else { return };
        let scratch = ScratchMemory::new(8 * PAGE).unwrap();
        hinting.watch(scratch.span(), NodeId(0));
        let begin = hinting.last;
        let at = |ms: u64| Ns(begin.0 + ms * 1_000_000);
        hinting.fault.telling = Ns(1_000_000);
        // A thousand at a millisecond each: a second, of which 1 % of the CPUs may be.
        hinting.count(1_000, at(10));
        assert!(!hinting.rings.is_on());
        scratch.touch();
        assert_eq!(told(&mut hinting), [0; 0]);
        hinting.last = at(10);
        hinting.count(0, at(60));
        assert!(hinting.paused() >= Ns(50_000_000));
        hinting.count(0, at(1_000_000));
        assert!(hinting.rings.is_on());
        let fresh = ScratchMemory::new(8 * PAGE).unwrap();
        hinting.watch(fresh.span(), NodeId(0));
        fresh.touch();
        assert_eq!(told(&mut hinting), pages(fresh.span()));
    }

    #[test]
    fn what_the_kernel_refuses_and_what_finds_no_room_is_said() {
        let _one = one_at_a_time();
        let Some(mut hinting) = opened() else { return };
        let scratch = ScratchMemory::new(2 * PAGE).unwrap();
        // No such node.
        hinting.watch(Span::new(scratch.span().start, PAGE), NodeId(900));
        let elsewhere = Watched { span: Span::EMPTY, before: None };
        hinting.spans = vec![elsewhere; SPANS];
        hinting.watch(scratch.span(), NodeId(0));
        hinting.spans.clear();
        let all = hinting.cannot();
        assert!(
            all.len() == 2 && all[0].contains("4096 are watched") && all[1].contains("refused"),
            "{all:?}"
        );
    }

    #[test]
    fn without_balancing_it_says_why() {
        if balancing(Path::new(SWITCH)) {
            return println!("skipped: the kernel balances here");
        }
        let e = Hinting::open(Cpus::new(vec![Some(NodeId(0))])).unwrap_err();
        assert!(e.to_string().contains("kernel.numa_balancing is off"), "{e}");
    }
}
