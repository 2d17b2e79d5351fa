//! The processor's own samples of loads and stores, with their addresses: the only source that
//! counts.
//!
//! The processor reports one access in a period, so a page's samples times the period estimate its
//! accesses. While samples take more than their share of the time, this source pauses
//! ([`crate::duty`]). It leaves out accesses that hit a core's own caches, if the processor says
//! so, because a page's home does not matter to them. It does not filter by latency, because loops
//! that a prefetcher serves would vanish.

use std::path::Path;

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sys::perf::{Sample, record::DataOrigin};
use homenode_sys::{Result, Span, call};

use crate::duty::Duty;
use crate::encoding::{self, DEVICES, Encoding, SampleWriter};
use crate::rings::Rings;
use crate::source::{AddressTouch, AnswerKind, Cpus, Source};
use crate::spans::Spans;
use crate::spe::{ProcessorModel, access::CPUS};
use crate::traces::Traces;

/// See the module.
#[derive(Debug)]
pub struct Pmu {
    writer: Samples,
    /// Time of a sample that is not measured here.
    interrupt: Ns,
    cpus: Cpus,
    watched: Spans,
    period: u64,
    duty: Duty,
    reading: Ns,
    samples: u64,
}

/// Where the samples come from.
#[derive(Debug)]
enum Samples {
    /// Rings that the kernel writes to.
    Kernel(Rings),
    /// Buffers that the processor writes to.
    Processor(Traces),
}

impl Samples {
    fn open(writer: &SampleWriter, cpus: &Cpus) -> Result<Self> {
        match writer {
            SampleWriter::Kernel { specs, leader } => {
                Rings::open(specs, leader.as_ref(), cpus.all()).map(Self::Kernel)
            }
            SampleWriter::Processor(traces) => {
                let model = |cpu| ProcessorModel::of(Path::new(CPUS), cpu);
                Traces::open(traces, cpus.all(), model).map(Self::Processor)
            }
        }
    }

    fn enable(&mut self) -> Result<()> {
        match self {
            Self::Kernel(rings) => rings.enable(),
            Self::Processor(traces) => traces.enable(),
        }
    }

    fn drain(&mut self, mut tell: impl FnMut(&Sample)) {
        match self {
            Self::Kernel(rings) => rings.drain(|_, s| tell(s)),
            Self::Processor(traces) => traces.drain(tell),
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

    fn cannot(&self) -> Vec<String> {
        match self {
            Self::Kernel(rings) => rings.cannot().collect(),
            Self::Processor(_) => Vec::new(),
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
    /// Samples all threads that the caller starts from now on.
    ///
    /// # Errors
    /// Why the processor or the kernel cannot do it, for a person.
    pub fn open(cpus: Cpus) -> std::result::Result<Self, String> {
        let encoding = encoding::find(Path::new(DEVICES))?;
        Self::with(&encoding, cpus)
    }

    fn with(encoding: &Encoding, cpus: Cpus) -> std::result::Result<Self, String> {
        let refused = |e: homenode_sys::Error| format!("{}: {e}", encoding.name);
        if let Some(cpu) = encoding.writer.leaves_out(cpus.all()) {
            return Err(format!("{} is not for all CPUs: CPU {cpu} has none", encoding.name));
        }
        let mut writer = Samples::open(&encoding.writer, &cpus).map_err(refused)?;
        writer.enable().map_err(refused)?;
        let many = cpus.all().count() as u64;
        let (duty, period) = (Duty::new(many, call::now()), encoding.period);
        let (watched, interrupt) = (Spans::new(), encoding.interrupt);
        Ok(Self { writer, interrupt, cpus, watched, period, duty, reading: Ns::ZERO, samples: 0 })
    }
}

/// The touch in a sample; `None` if the sample does not matter here.
fn touch(sample: &Sample, cpus: &Cpus) -> Option<AddressTouch> {
    let cached = sample.source.level() == DataOrigin::Cache;
    let node = cpus.node(sample.cpu).filter(|_| sample.address != 0 && !cached)?;
    Some(AddressTouch {
        address: sample.address as usize,
        node,
        time: sample.time,
        kind: sample.source.kind(),
    })
}

impl Source for Pmu {
    fn name(&self) -> &'static str {
        match self.writer {
            Samples::Kernel(_) => "the processor's samples of loads and stores (perf)",
            Samples::Processor(_) => "the processor's samples of loads and stores (perf, Arm's SPE)",
        }
    }

    fn says(&self) -> AnswerKind {
        AnswerKind::Sampled { one_in: self.duty.one_in(self.period) }
    }

    fn watch(&mut self, span: Span, _: NodeId) {
        self.watched.cut(span);
        self.watched.add(span);
    }

    fn leave(&mut self, span: Span) {
        self.watched.cut(span);
    }

    fn ask(&mut self, _: &[usize]) -> usize {
        // The processor chooses what to sample.
        0
    }

    fn drain(&mut self, tell: &mut dyn FnMut(AddressTouch)) {
        let begin = call::thread_time();
        let Self { writer, cpus, watched, samples, .. } = self;
        let mut new = 0;
        writer.drain(|s| {
            new += 1;
            let Some(t) = touch(s, cpus) else { return };
            if watched.has(t.address) {
                tell(AddressTouch { kind: t.kind.or(Some(AccessKind::Read)), ..t });
            }
        });
        *samples += new;
        self.reading += call::thread_time() - begin;
        let cost = self.cost();
        // Unchanged if the kernel refuses.
        let _ = match self.duty.after(new, cost, call::now()) {
            Some(true) => self.writer.enable(),
            Some(false) => self.writer.disable(),
            None => Ok(()),
        };
    }

    fn stop(&mut self) {
        let _ = self.writer.disable();
        self.watched = Spans::new();
    }

    fn cost(&self) -> Ns {
        self.interrupt + Ns(self.reading.0 / self.samples.max(1))
    }

    fn cannot(&self) -> Vec<String> {
        self.writer.cannot()
    }

    fn lost(&self) -> u64 {
        self.writer.lost()
    }

    fn state_bytes(&self) -> usize {
        self.writer.bytes() + self.watched.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::perf::{CounterSpec, DataSource, PerfRecord, SampleFields, record::decode};

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
            if let Some(PerfRecord::Sample(s)) = decode(&bytes[at..at + length], SampleFields::ACCESS) {
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
        let told: Vec<AddressTouch> = samples.iter().filter_map(|s| touch(s, &cpus())).collect();
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
    fn processors_that_sample_on_some_cpus_alone_are_refused() {
        let encoding = Encoding {
            name: "arm_spe_0".into(),
            writer: SampleWriter::Processor(vec![encoding::TraceEvent {
                spec: CounterSpec::page_faults(),
                cpus: vec![0, 2],
            }]),
            period: 1,
            interrupt: Ns(500),
        };
        let why = Pmu::with(&encoding, cpus()).unwrap_err();
        assert_eq!(why, "arm_spe_0 is not for all CPUs: CPU 1 has none");
    }

    /// What this machine has: the kernel's own events through the same rings and the same rules.
    #[test]
    fn software_events_go_the_same_way() {
        let spec = CounterSpec { fields: SampleFields::ACCESS, ..CounterSpec::page_faults() };
        let writer = SampleWriter::Kernel { specs: vec![spec], leader: None };
        let encoding = Encoding { name: "page-faults".into(), writer, period: 1, interrupt: Ns(2_000) };
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse::<u16>().ok()).unwrap_or(0);
        let all = Cpus::new((0..=last).map(|c| Some(NodeId(c % 2))).collect());
        let _one = crate::rings::tests::one_at_a_time();
        let mut pmu = match Pmu::with(&encoding, all) {
            Ok(pmu) => pmu,
            Err(why) => return println!("skipped: {why}"),
        };
        let scratch = homenode_sys::memory::ScratchMemory::new(32 * homenode_sys::PAGE).unwrap();
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
