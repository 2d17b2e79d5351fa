//! The processor's own samples of loads and stores, with their addresses: the only source here that counts.
//!
//! One in so many accesses is told, so a page's samples times that are an estimate of its accesses. The period follows what a
//! sample costs: it doubles while samples take more than their share of the time, and is halved while they take much less.
//! Accesses that hit a core's own caches are left out where the processor says so: a page's home is nothing to them. Nothing is
//! filtered by latency: loops that a prefetcher serves would vanish.

use std::path::Path;

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sys::perf::{Sample, record::Level};
use homenode_sys::{Result, Span, call};

use crate::encoding::{self, DEVICES, Encoding, Periods, Writer};
use crate::rings::Rings;
use crate::source::{Cpus, Says, Source, Touch};
use crate::spe::{Model, access::CPUS};
use crate::traces::Traces;

/// Thousandths of one CPU's time that samples may take, on each CPU.
const SHARE: u64 = 10;
/// See the module.
#[derive(Debug)]
pub struct Pmu {
    writer: Samples,
    /// What a sample takes that is not measured here.
    interrupt: Ns,
    cpus: Cpus,
    watched: Vec<Span>,
    rate: Pace,
    reading: Ns,
    samples: u64,
}

/// Where samples come from.
#[derive(Debug)]
enum Samples {
    /// Rings that the kernel writes to.
    Kernel(Rings),
    /// Buffers that the processor writes to.
    Processor(Traces),
}

impl Samples {
    fn open(writer: &Writer, cpus: &Cpus) -> Result<Self> {
        match writer {
            Writer::Kernel { specs, leader } => {
                let rings = Rings::open(specs, leader.as_ref(), cpus.all())?;
                rings.enable()?;
                Ok(Self::Kernel(rings))
            }
            Writer::Processor(traces) => {
                let model = |cpu| Model::of(Path::new(CPUS), cpu);
                let mut traces = Traces::open(traces, cpus.all(), model)?;
                traces.enable()?;
                Ok(Self::Processor(traces))
            }
        }
    }

    fn drain(&mut self, mut tell: impl FnMut(&Sample)) {
        match self {
            Self::Kernel(rings) => rings.drain(|_, s| tell(s)),
            Self::Processor(traces) => traces.drain(tell),
        }
    }

    fn set_period(&self, period: u64) -> Result<()> {
        match self {
            Self::Kernel(rings) => rings.set_period(period),
            Self::Processor(traces) => traces.set_period(period),
        }
    }

    fn disable(&mut self) -> Result<()> {
        match self {
            Self::Kernel(rings) => rings.disable(),
            Self::Processor(traces) => traces.disable(),
        }
    }

    fn lost(&self) -> u64 {
        match self {
            Self::Kernel(rings) => rings.lost(),
            Self::Processor(traces) => traces.lost(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Kernel(rings) => rings.bytes(),
            Self::Processor(traces) => traces.bytes(),
        }
    }
}

impl Pmu {
    /// For all threads that the caller starts from now on.
    ///
    /// # Errors
    /// Why the processor or the kernel does not do it, in words.
    pub fn open(cpus: Cpus) -> std::result::Result<Self, String> {
        let encoding = encoding::find(Path::new(DEVICES))?;
        Self::with(&encoding, cpus)
    }

    fn with(encoding: &Encoding, cpus: Cpus) -> std::result::Result<Self, String> {
        let refused = |e: homenode_sys::Error| format!("{}: {e}", encoding.name);
        if let Some(cpu) = encoding.writer.leaves_out(cpus.all()) {
            return Err(format!("{} is not for all CPUs: CPU {cpu} has none", encoding.name));
        }
        let writer = Samples::open(&encoding.writer, &cpus).map_err(refused)?;
        let many = cpus.all().count() as u64;
        let rate = Pace::new(encoding.periods, many, call::now());
        let (watched, interrupt) = (Vec::new(), encoding.interrupt);
        Ok(Self { writer, interrupt, cpus, watched, rate, reading: Ns::ZERO, samples: 0 })
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
        match self.writer {
            Samples::Kernel(_) => "the processor's samples of loads and stores (perf)",
            Samples::Processor(_) => "the processor's samples of loads and stores (perf, Arm's SPE)",
        }
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
        let Self { writer, cpus, watched, samples, .. } = self;
        let mut new = 0;
        writer.drain(|s| {
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
            let _ = self.writer.set_period(period);
        }
    }

    fn stop(&mut self) {
        let _ = self.writer.disable();
        self.watched.clear();
    }

    fn cost(&self) -> Ns {
        self.interrupt + Ns(self.reading.0 / self.samples.max(1))
    }

    fn lost(&self) -> u64 {
        self.writer.lost()
    }

    fn state_bytes(&self) -> usize {
        self.writer.bytes() + self.watched.capacity() * size_of::<Span>()
    }
}

/// The period that keeps samples within their share.
#[derive(Clone, Copy, Debug)]
struct Pace {
    period: u64,
    periods: Periods,
    cpus: u64,
    since: Ns,
    samples: u64,
}

impl Pace {
    /// How long samples are counted before the period changes.
    const WINDOW: Ns = Ns(200_000_000);

    const fn new(periods: Periods, cpus: u64, now: Ns) -> Self {
        Self { period: periods.first, periods, cpus, since: now, samples: 0 }
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
            self.period = self.periods.nearest(before * 2);
        } else if spent < share / 4 {
            self.period = self.periods.nearest(before / 2);
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
        let periods = Periods { first: 10_000, shortest: 2_003, longest: 1 << 26, unit: 1 };
        let mut pace = Pace::new(periods, 2, Ns(0));
        assert_eq!(pace.after(1, Ns(2_000), Ns(1_000)), None, "too early");
        // 1 % of two CPUs over 0.2 s are 4 ms: 2000 samples of 2 µs.
        assert_eq!(pace.after(3_000, Ns(2_000), Ns(200_000_000)), Some(20_000));
        assert_eq!(pace.after(1_500, Ns(2_000), Ns(400_000_000)), None, "about right");
        assert_eq!(pace.after(100, Ns(2_000), Ns(600_000_000)), Some(10_000));
        let mut pace = Pace::new(Periods { first: 2_003, ..periods }, 1, Ns(0));
        assert_eq!(pace.after(0, Ns(1), Ns(1_000_000_000)), None, "not below the shortest");
        // What the processor does not take is not asked for.
        let multiples = Periods { first: 20_224, shortest: 2_048, unit: 256, ..periods };
        let mut pace = Pace::new(multiples, 1, Ns(0));
        assert_eq!(pace.after(0, Ns(1), Ns(1_000_000_000)), Some(9_984));
        assert_eq!(pace.after(0, Ns(1), Ns(2_000_000_000)), Some(4_864));
        assert_eq!(pace.after(0, Ns(1), Ns(3_000_000_000)), Some(2_304));
        assert_eq!(pace.after(0, Ns(1), Ns(4_000_000_000)), Some(2_048));
    }

    #[test]
    fn processors_that_sample_on_some_cpus_alone_are_refused() {
        let encoding = Encoding {
            name: "arm_spe_0".into(),
            writer: Writer::Processor(vec![encoding::Trace { spec: Spec::page_faults(), cpus: vec![0, 2] }]),
            periods: Periods { first: 1, shortest: 1, longest: 1, unit: 1 },
            interrupt: Ns(500),
        };
        let why = Pmu::with(&encoding, cpus()).unwrap_err();
        assert_eq!(why, "arm_spe_0 is not for all CPUs: CPU 1 has none");
    }

    /// What this machine has: the kernel's own events through the same rings and the same rules.
    #[test]
    fn software_events_go_the_same_way() {
        let spec = Spec { fields: Fields::ACCESS, ..Spec::page_faults() };
        let periods = Periods { first: 1, shortest: 1, longest: 1, unit: 1 };
        let writer = Writer::Kernel { specs: vec![spec], leader: None };
        let encoding = Encoding { name: "page-faults".into(), writer, periods, interrupt: Ns(2_000) };
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
        assert!(pmu.cost() > Ns(2_000) && pmu.says().counts());
    }
}
