//! The processor's own samples of loads and stores, with their addresses: the only source here that counts.
//!
//! One in so many accesses is told, so a page's samples times that are an estimate of its accesses. The period follows what a
//! sample costs: it doubles while samples take more than their share of the time, and is halved while they take much less.
//! Accesses that hit a core's own caches are left out where the processor says so: a page's home is nothing to them. Nothing is
//! filtered by latency: loops that a prefetcher serves would vanish.

use std::path::Path;

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sys::perf::{Sample, record::Level};
use homenode_sys::{Span, call};

use crate::encoding::{self, DEVICES, Encoding};
use crate::rings::Rings;
use crate::source::{Cpus, Says, Source, Touch};

/// Interrupt and record of a sample: 1 to 2 µs are reported for precise sampling; nothing in a process can measure it. Assumed.
const INTERRUPT: Ns = Ns(2_000);
/// Thousandths of one CPU's time that samples may take, on each CPU.
const SHARE: u64 = 10;
/// Shortest and longest period.
const PERIODS: (u64, u64) = (2_003, 1 << 26);

/// See the module.
#[derive(Debug)]
pub struct Pmu {
    rings: Rings,
    cpus: Cpus,
    watched: Vec<Span>,
    rate: Pace,
    reading: Ns,
    samples: u64,
}

impl Pmu {
    /// For all threads that the caller starts from now on.
    ///
    /// # Errors
    /// Why the processor or the kernel does not do it, in words.
    pub fn open(cpus: Cpus) -> Result<Self, String> {
        let encoding = encoding::find(Path::new(DEVICES))?;
        Self::with(&encoding, cpus)
    }

    fn with(encoding: &Encoding, cpus: Cpus) -> Result<Self, String> {
        let refused = |e: homenode_sys::Error| format!("{}: {e}", encoding.name);
        let rings = Rings::open(&encoding.specs, encoding.leader.as_ref(), cpus.all()).map_err(refused)?;
        rings.enable().map_err(refused)?;
        let many = cpus.all().count() as u64;
        let rate = Pace::new(encoding::PERIOD, many, call::now());
        Ok(Self { rings, cpus, watched: Vec::new(), rate, reading: Ns::ZERO, samples: 0 })
    }
}

/// What a sample says of who touched what; `None`: nothing that matters here.
fn touch(sample: &Sample, cpus: &Cpus) -> Option<Touch> {
    let cached = sample.source.level() == Level::Cache;
    let node = cpus.node(sample.cpu).filter(|_| sample.address != 0 && !cached)?;
    Some(Touch { address: sample.address as usize, node, time: sample.time, kind: sample.source.kind() })
}

impl Source for Pmu {
    fn name(&self) -> &'static str {
        "the processor's samples of loads and stores (perf)"
    }

    fn says(&self) -> Says {
        Says::Sampled { one_in: self.rate.period }
    }

    fn watch(&mut self, span: Span, _: NodeId) {
        let at = self.watched.partition_point(|s| s.start < span.start);
        self.watched.insert(at, span);
    }

    fn leave(&mut self, span: Span) {
        self.watched.retain(|s| !s.overlaps(span));
    }

    fn ask(&mut self, _: &[usize]) -> usize {
        // It tells of what it likes.
        0
    }

    fn drain(&mut self, tell: &mut dyn FnMut(Touch)) {
        let begin = call::thread_time();
        let Self { rings, cpus, watched, samples, .. } = self;
        let mut new = 0;
        rings.drain(|_, s| {
            new += 1;
            let Some(t) = touch(s, cpus) else { return };
            let after = watched.partition_point(|w| w.start <= t.address);
            if after > 0 && watched[after - 1].contains(t.address) {
                tell(Touch { kind: t.kind.or(Some(AccessKind::Read)), ..t });
            }
        });
        *samples += new;
        self.reading += call::thread_time() - begin;
        let cost = self.cost();
        if let Some(period) = self.rate.after(new, cost, call::now()) {
            // As it was, if the kernel will not.
            let _ = self.rings.set_period(period);
        }
    }

    fn stop(&mut self) {
        let _ = self.rings.disable();
        self.watched.clear();
    }

    fn cost(&self) -> Ns {
        INTERRUPT + Ns(self.reading.0 / self.samples.max(1))
    }

    fn lost(&self) -> u64 {
        self.rings.lost()
    }

    fn state_bytes(&self) -> usize {
        self.rings.bytes() + self.watched.capacity() * size_of::<Span>()
    }
}

/// The period that keeps samples within their share.
#[derive(Clone, Copy, Debug)]
struct Pace {
    period: u64,
    cpus: u64,
    since: Ns,
    samples: u64,
}

impl Pace {
    /// How long samples are counted before the period changes.
    const WINDOW: Ns = Ns(200_000_000);

    const fn new(period: u64, cpus: u64, now: Ns) -> Self {
        Self { period, cpus, since: now, samples: 0 }
    }

    /// Another period, if so many more samples of that cost call for it.
    fn after(&mut self, samples: u64, cost: Ns, now: Ns) -> Option<u64> {
        self.samples += samples;
        let passed = now.0.saturating_sub(self.since.0);
        if passed < Self::WINDOW.0 {
            return None;
        }
        let (spent, share) = (self.samples * cost.0, passed / 1000 * SHARE * self.cpus);
        (self.samples, self.since) = (0, now);
        let before = self.period;
        if spent > share {
            self.period = (before * 2).min(PERIODS.1);
        } else if spent < share / 4 {
            self.period = (before / 2).max(PERIODS.0);
        }
        (self.period != before).then_some(self.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::perf::{DataSource, Fields, Record, Spec, record::decode};

    fn cpus() -> Cpus {
        Cpus::new(vec![Some(NodeId(0)), Some(NodeId(1))])
    }

    /// Records as they stand in a ring, one after the other.
    fn recorded(name: &str) -> Vec<Sample> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pmu").join(name);
        let bytes = std::fs::read(file).unwrap();
        let (mut at, mut samples) = (0, Vec::new());
        while at < bytes.len() {
            let length = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
            if let Some(Record::Sample(s)) = decode(&bytes[at..at + length], Fields::ACCESS) {
                samples.push(s);
            }
            at += length;
        }
        samples
    }

    #[test]
    fn recorded_samples_are_touches_but_for_those_that_hit_a_cache() {
        if cfg!(target_endian = "big") {
            return println!("skipped: the bytes are of a little-endian machine");
        }
        let samples = recorded("samples.bin");
        let told: Vec<Touch> = samples.iter().filter_map(|s| touch(s, &cpus())).collect();
        assert_eq!((samples.len(), told.len()), (5, 3));
        assert_eq!((told[0].node, told[0].kind), (NodeId(1), Some(AccessKind::Read)));
        assert_eq!((told[1].node, told[1].kind), (NodeId(0), Some(AccessKind::Write)));
        assert_eq!(told[2].kind, None, "a processor that does not say");
    }

    #[test]
    fn samples_of_foreign_cpus_and_without_address_are_nothing() {
        let s = Sample { address: 0x1000, cpu: 7, source: DataSource(1 << 1), ..Sample::default() };
        assert_eq!(touch(&s, &cpus()), None);
        assert_eq!(touch(&Sample { address: 0, cpu: 0, ..s }, &cpus()), None);
        assert!(touch(&Sample { cpu: 0, ..s }, &cpus()).is_some());
    }

    #[test]
    fn the_period_follows_the_cost() {
        let mut pace = Pace::new(10_000, 2, Ns(0));
        assert_eq!(pace.after(1, Ns(2_000), Ns(1_000)), None, "too early");
        // 1 % of two CPUs over 0.2 s are 4 ms: 2000 samples of 2 µs.
        assert_eq!(pace.after(3_000, Ns(2_000), Ns(200_000_000)), Some(20_000));
        assert_eq!(pace.after(1_500, Ns(2_000), Ns(400_000_000)), None, "about right");
        assert_eq!(pace.after(100, Ns(2_000), Ns(600_000_000)), Some(10_000));
        let mut pace = Pace::new(PERIODS.0, 1, Ns(0));
        assert_eq!(pace.after(0, Ns(1), Ns(1_000_000_000)), None, "not below the shortest");
    }

    /// What this machine has: the kernel's own events through the same rings and the same rules.
    #[test]
    fn software_events_go_the_same_way() {
        let spec = Spec { fields: Fields::ACCESS, ..Spec::page_faults() };
        let encoding = Encoding { name: "page-faults".into(), specs: vec![spec], leader: None };
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<u16>().ok()).unwrap_or(0);
        let all = Cpus::new((0..=last).map(|c| Some(NodeId(c % 2))).collect());
        let mut pmu = match Pmu::with(&encoding, all) {
            Ok(pmu) => pmu,
            Err(why) => return println!("skipped: {why}"),
        };
        let scratch = homenode_sys::memory::Scratch::new(32 * homenode_sys::PAGE).unwrap();
        pmu.watch(scratch.span(), NodeId(0));
        scratch.touch();
        let mut seen = 0;
        pmu.drain(&mut |t| {
            assert!(scratch.span().contains(t.address));
            seen += 1;
        });
        assert_eq!((seen, pmu.lost()), (32, 0));
        assert!(pmu.cost() > INTERRUPT && pmu.says().counts());
    }
}
