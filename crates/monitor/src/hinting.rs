//! The kernel's own NUMA-hinting faults, read from a perf ring.
//!
//! `mbind(MPOL_BIND | MPOL_F_NUMA_BALANCING, home)` has the kernel take the pages' mappings away from time to time to see who
//! comes for them, as its NUMA balancing does, and leaves them where they are: the toucher's node is not one that the
//! policy allows, unless it is their home (mpol_misplaced, mm/mempolicy.c). The software event `page-faults` tells of each such fault
//! with address, CPU and thread. No signal, no failing system call; it needs `numa_balancing` on and `perf_event_paranoid`
//! of at most 2. When pages are armed is the kernel's affair (its scan period is a second and more), which has nothing to do
//! with the program's phases.

use std::fs;
use std::path::Path;

use homenode_model::{NodeId, Ns};
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::perf::Spec;
use homenode_sys::{Errno, Error, PAGE, Result, Span};

use crate::rings::Rings;
use crate::source::{Cpus, Says, Source, Touch};

/// Spans that are watched at a time, each of one home.
const SPANS: usize = 4096;
/// What a hinting fault costs the program: reported as 1–3 µs for a minor fault; not measured here, for the kernel alone
/// can arm one. Assumed.
const COST: Ns = Ns(2_000);
/// Where the kernel says whether it balances.
const SWITCH: &str = "/proc/sys/kernel/numa_balancing";

/// See the module.
#[derive(Debug)]
pub struct Hinting {
    rings: Rings,
    cpus: Cpus,
    /// By first address; they do not overlap. With the policy that the memory had before.
    spans: Vec<Watched>,
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
        let rings = Rings::open(&[Spec::page_faults()], None, cpus.all())?;
        rings.enable()?;
        Ok(Self { rings, cpus, spans: Vec::new() })
    }
}

/// Whether the policy can be set at all: containers forbid `mbind`, kernels before 5.12 do not know the flag.
fn try_out() -> Result<()> {
    let scratch = homenode_sys::memory::Scratch::new(PAGE)?;
    scratch.touch();
    let mut status = [numa::Status::UNKNOWN];
    numa::query(&[scratch.span().start], &mut status)?;
    numa::set_policy(scratch.span(), &MemoryPolicy::bind_and_sample(status[0].node().unwrap_or(NodeId(0))))
}

impl Source for Hinting {
    fn name(&self) -> &'static str {
        "the kernel's NUMA hinting faults (mbind and perf)"
    }

    fn says(&self) -> Says {
        Says::Presence { writers_only: false }
    }

    fn by_home(&self) -> bool {
        true
    }

    fn watch(&mut self, span: Span, home: NodeId) {
        let span = span.inner(PAGE);
        if span.is_empty() || self.spans.len() >= SPANS || self.spans.iter().any(|w| w.span.overlaps(span)) {
            return;
        }
        let before = numa::policy_of(span.start).ok();
        if numa::set_policy(span, &MemoryPolicy::bind_and_sample(home)).is_ok() {
            let at = self.spans.partition_point(|w| w.span.start < span.start);
            self.spans.insert(at, Watched { span, before });
        }
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
    }

    fn ask(&mut self, pages: &[usize]) -> usize {
        // The kernel arms them when it likes.
        pages.len()
    }

    fn drain(&mut self, tell: &mut dyn FnMut(Touch)) {
        let Self { rings, cpus, spans } = self;
        rings.drain(|_, s| {
            let address = s.address as usize;
            let after = spans.partition_point(|w| w.span.start <= address);
            let ours = after > 0 && spans[after - 1].span.contains(address);
            if let (true, Some(node)) = (ours, cpus.node(s.cpu)) {
                tell(Touch { address, node, time: s.time, kind: None });
            }
        });
    }

    fn stop(&mut self) {
        let _ = self.rings.disable();
        for w in std::mem::take(&mut self.spans) {
            let _ = numa::set_policy(w.span, &w.before.unwrap_or(MemoryPolicy::DEFAULT));
        }
    }

    fn cost(&self) -> Ns {
        COST
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

    #[test]
    fn without_balancing_it_says_why() {
        if balancing(Path::new(SWITCH)) {
            return println!("skipped: the kernel balances here");
        }
        let e = Hinting::open(Cpus::new(vec![Some(NodeId(0))])).unwrap_err();
        assert!(e.to_string().contains("kernel.numa_balancing is off"), "{e}");
    }
}
