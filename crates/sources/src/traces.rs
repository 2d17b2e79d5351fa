//! One event, one ring and one AUX buffer a CPU, which the processor writes by itself, for all
//! existing threads and for those that the calling thread starts from now on.
//!
//! Existing threads have events of their own, which write to the same buffer. The kernel allows
//! that for events of one CPU, of which only one runs at a time. The ring reports each stretch of
//! the buffer with its thread; the CPU is the ring's. A stretch is decoded once it is reported: at
//! the latest when its thread leaves the CPU, when the event is turned off, or when a page of the
//! buffer is full.
//!
//! The kernel turns off events that find no room in the buffer. They are turned on again when there
//! is room.

use homenode_model::Ns;
use homenode_sys::Result;
use homenode_sys::counter::Counter;
use homenode_sys::perf::{AuxSpan, CounterSpec, EventTarget, PerfEvent, PerfRecord, Ring, Sample};

use crate::encoding::TraceEvent;
use crate::rings::{NO_CPU, has_ended, threads};
use crate::spe::{Decoder, ProcessorModel};

/// Pages of one ring: some 580 stretches.
const PAGES: usize = 8;
/// Pages of one AUX buffer: 4096 records of 64 bytes. With the ring that is little more than half
/// of what a plain user may lock a CPU (`perf_event_mlock_kb`, 516 KiB).
const AUX_PAGES: usize = 64;
/// Bytes of a record on most processors, for converting lost bytes into samples.
const RECORD: u64 = 64;

/// See the module.
#[derive(Debug)]
pub struct Traces {
    all: Vec<One>,
    process: u32,
    on: bool,
    buffers: Buffers,
}

#[derive(Debug)]
struct One {
    /// The first event has the ring.
    events: Vec<PerfEvent>,
    ring: Ring,
    reader: Reader,
}

/// Buffers that all rings share.
#[derive(Debug, Default)]
struct Buffers {
    told: Vec<AuxSpan>,
    bytes: Vec<u8>,
}

impl Traces {
    /// Opens the matching event on each of `cpus`, and leaves out CPUs without one. `model` says
    /// which processor's data sources they have.
    ///
    /// # Errors
    /// The first refusal of the kernel; `ENODEV` if no CPU has an event.
    pub fn open(
        traces: &[TraceEvent],
        cpus: impl Iterator<Item = u32>,
        model: impl Fn(u32) -> ProcessorModel,
    ) -> Result<Self> {
        let mut all = Vec::new();
        let threads = threads();
        for cpu in cpus {
            if let Some(trace) = traces.iter().find(|t| t.cpus.contains(&cpu)) {
                all.push(One::open(&trace.spec, cpu, &threads, model(cpu))?);
            }
        }
        if all.is_empty() {
            return Err(NO_CPU);
        }
        Ok(Self { all, process: std::process::id(), on: false, buffers: Buffers::default() })
    }

    /// Turns the events on.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn enable(&mut self) -> Result<()> {
        self.on = true;
        self.events().try_for_each(PerfEvent::enable)
    }

    /// Turns the events off. What was written by then can still be drained.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn disable(&mut self) -> Result<()> {
        self.on = false;
        self.events().try_for_each(PerfEvent::disable)
    }

    fn events(&self) -> impl Iterator<Item = &PerfEvent> {
        self.all.iter().flat_map(|o| &o.events)
    }

    /// Reports the samples of this process, CPU by CPU.
    pub fn drain(&mut self, mut tell: impl FnMut(&Sample)) {
        let counter = Counter::now();
        for one in &mut self.all {
            let off = one.reader.drain(&mut one.ring, self.process, counter, &mut self.buffers, &mut tell);
            if off && self.on {
                // Events that are on stay on. An event that cannot be turned on reports nothing
                // more.
                let _ = one.events.iter().try_for_each(PerfEvent::enable);
            }
        }
    }

    /// Known number of lost samples: damaged, without room, or due while the one before was under
    /// way.
    pub fn lost(&self) -> u64 {
        self.all.iter().map(|o| o.reader.lost()).sum()
    }

    /// Bytes of address space.
    pub fn bytes(&self) -> usize {
        self.all.iter().map(|o| o.ring.bytes()).sum::<usize>() + self.buffers.bytes.capacity()
    }
}

impl One {
    fn open(spec: &CounterSpec, cpu: u32, threads: &[i32], model: ProcessorModel) -> Result<Self> {
        let target = |thread| EventTarget { thread, cpu: Some(cpu), inherit: true };
        let first = PerfEvent::open(spec, target(0), None)?;
        let mut ring = Ring::map(&first, PAGES)?;
        ring.map_aux(&first, AUX_PAGES)?;
        let mut events = vec![first];
        for thread in threads.iter().filter(|t| **t != 0) {
            match PerfEvent::open(spec, target(*thread), None) {
                Ok(event) => {
                    event.write_to(&events[0])?;
                    events.push(event);
                }
                Err(e) if has_ended(*thread, e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Self { events, ring, reader: Reader::new(cpu, model) })
    }
}

/// Reads one ring and its AUX buffer.
#[derive(Debug)]
struct Reader {
    cpu: u32,
    model: ProcessorModel,
    decoder: Decoder,
    /// Lost bytes that never came to be decoded.
    lost: u64,
}

impl Reader {
    fn new(cpu: u32, model: ProcessorModel) -> Self {
        Self { cpu, model, decoder: Decoder::default(), lost: 0 }
    }

    const fn lost(&self) -> u64 {
        self.lost + self.decoder.lost()
    }

    /// Reports the samples of `process` since the last call, and makes room. Returns whether the
    /// kernel may have turned the events off.
    fn drain(
        &mut self,
        ring: &mut Ring,
        process: u32,
        counter: Option<Counter>,
        buffers: &mut Buffers,
        tell: &mut impl FnMut(&Sample),
    ) -> bool {
        // The ring has reported everything before this head, and is read after it.
        let head = ring.aux_head();
        let full = head.wrapping_sub(ring.aux_tail()) >= ring.aux_bytes() / 2;
        let untold = ring.lost();
        buffers.told.clear();
        let whole = ring.drain(|record| {
            if let PerfRecord::Aux(stretch) = record {
                buffers.told.push(stretch);
            }
        });
        let mut off = full;
        let mut passed_over = 0;
        for stretch in &buffers.told {
            off |= stretch.is(AuxSpan::TRUNCATED);
            self.lost += u64::from(stretch.is(AuxSpan::COLLISION));
            let before = stretch.offset.wrapping_sub(ring.aux_tail());
            if !ring.read_aux(stretch.offset, stretch.bytes, &mut buffers.bytes) {
                self.lost += stretch.bytes.min(ring.aux_bytes()).div_ceil(RECORD);
                continue;
            }
            passed_over += before;
            if stretch.process == process {
                self.decode(stretch, &buffers.bytes, counter, tell);
            }
            ring.release_aux(stretch.offset.wrapping_add(stretch.bytes));
        }
        // Bytes without a record are padding, or their record found no room in the ring.
        let lossy = ring.lost() > untold || whole.is_err();
        let left = head.wrapping_sub(ring.aux_tail());
        if left <= ring.aux_bytes() && (full || lossy) {
            passed_over += left;
            ring.release_aux(head);
        }
        if lossy {
            self.lost += passed_over.div_ceil(RECORD);
        }
        off
    }

    fn decode(
        &mut self,
        stretch: &AuxSpan,
        bytes: &[u8],
        counter: Option<Counter>,
        tell: &mut impl FnMut(&Sample),
    ) {
        let (cpu, model) = (self.cpu, self.model);
        let time = |stamp: Option<u64>| -> Ns {
            match (stamp, counter) {
                (Some(stamp), Some(counter)) => counter.time(stamp),
                // Without a time stamp, the end of the stretch is the time.
                _ => stretch.time,
            }
        };
        self.decoder.decode(bytes, stretch.offset, |record| {
            if let Some(sample) = record.sample(model, time) {
                tell(&Sample { process: stretch.process, thread: stretch.thread, cpu, ..sample });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::perf::{Pretend, Rate, SampleFields};
    use proptest::prelude::*;

    /// A load of 64 bytes, as a Neoverse N1 writes it.
    fn load(address: u64, stamp: u64) -> Vec<u8> {
        let mut one = vec![0xb0, 0x34, 0x12, 0x40, 0, 0, 0, 0, 0x80];
        one.extend([0; 10]);
        one.extend([0x49, 0, 0x52, 0x1e, 0x03, 0x99, 0x51, 0x01, 0x98, 0xf5, 0x01, 0xb2]);
        one.extend(address.to_le_bytes());
        one.extend([0x9a, 1, 0]);
        one.extend([0; 9]);
        one.extend([0x43, 0x0e, 0, 0, 0x71]);
        one.extend(stamp.to_le_bytes());
        assert_eq!(one.len(), 64);
        one
    }

    const ME: u32 = 77;
    const COUNTER: Counter = Counter { ticks: 1_000, time: Ns(9_000_000), hertz: 1_000_000 };

    struct Machine {
        kernel: Pretend,
        reader: Reader,
        buffers: Buffers,
    }

    impl Machine {
        fn new(pages: usize, aux: usize) -> Self {
            Self {
                kernel: Pretend::new(SampleFields::TRACE, pages, aux).unwrap(),
                reader: Reader::new(5, ProcessorModel::Neoverse),
                buffers: Buffers::default(),
            }
        }

        fn drain(&mut self) -> (Vec<Sample>, bool) {
            let mut seen = Vec::new();
            let Self { kernel, reader, buffers } = self;
            let off = reader.drain(kernel.ring(), ME, Some(COUNTER), buffers, &mut |s| seen.push(*s));
            (seen, off)
        }
    }

    #[test]
    fn a_stretch_becomes_samples_with_the_rings_cpu() {
        let mut m = Machine::new(1, 2);
        assert_eq!(m.drain(), (vec![], false));
        assert!(m.kernel.trace(&[load(0x7f00_1000, 900), load(0x7f00_2000, 950)].concat(), 0, ME));
        let (seen, off) = m.drain();
        assert!(!off);
        let [a, b] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((a.address, a.ip, a.weight), (0x7f00_1000, 0x0040_1234, 501));
        assert_eq!((a.cpu, a.process, a.thread), (5, ME, ME));
        // 100 ticks of a microsecond before.
        assert_eq!((a.time, b.time), (Ns(8_900_000), Ns(8_950_000)));
        assert_eq!(a.source.kind(), Some(homenode_model::AccessKind::Read));
        assert_eq!(a.source.level(), homenode_sys::perf::record::DataOrigin::LocalMemory);
        assert_eq!((m.drain(), m.reader.lost()), ((vec![], false), 0));
    }

    #[test]
    fn records_lie_round_the_end_of_the_buffer() {
        let mut m = Machine::new(1, 2);
        let mut number = 0;
        for round in 0..40 {
            // 27 records and a border within one: 8192 is no multiple of 64 × 27 + 9.
            let many: Vec<u64> = (0..27).map(|i| 0x10_0000 + (round * 27 + i) * 0x1000).collect();
            let mut bytes: Vec<u8> = many.iter().flat_map(|a| load(*a, 1_000)).collect();
            bytes.extend([0; 9]);
            assert!(m.kernel.trace(&bytes, 0, ME), "room in round {round}");
            let seen: Vec<u64> = m.drain().0.iter().map(|s| s.address).collect();
            assert_eq!(seen, many, "round {round}");
            number += seen.len();
        }
        assert_eq!((number, m.reader.lost()), (40 * 27, 0));
    }

    #[test]
    fn other_processes_are_passed_over() {
        let mut m = Machine::new(1, 2);
        assert!(m.kernel.trace(&load(0x1000, 1), 0, 78) && m.kernel.trace(&load(0x2000, 1), 0, ME));
        let seen = m.drain().0;
        assert_eq!((seen.len(), seen[0].address, m.reader.lost()), (1, 0x2000, 0));
    }

    #[test]
    fn what_was_cut_off_and_what_collided_is_counted_and_the_event_wanted_on_again() {
        let mut m = Machine::new(1, 2);
        let cut = [load(0x1000, 1), load(0x2000, 1)[..40].to_vec()].concat();
        assert!(m.kernel.trace(&cut, AuxSpan::TRUNCATED | AuxSpan::PARTIAL, ME));
        let (seen, off) = m.drain();
        assert_eq!((seen.len(), off, m.reader.lost()), (1, true, 1));
        assert!(m.kernel.trace(&load(0x3000, 1), AuxSpan::COLLISION, ME));
        let (seen, off) = m.drain();
        assert_eq!((seen.len(), off, m.reader.lost()), (1, false, 2));
        // Flags alone.
        assert!(m.kernel.trace(&[], AuxSpan::TRUNCATED, ME));
        assert_eq!((m.drain(), m.reader.lost()), ((vec![], true), 2));
    }

    #[test]
    fn a_full_buffer_is_emptied_and_the_event_wanted_on_again() {
        let mut m = Machine::new(1, 2);
        assert!(m.kernel.trace(&load(0x1000, 1).repeat(127), 0, ME));
        assert!(!m.kernel.trace(&load(0x1000, 1).repeat(2), 0, ME), "no room");
        let (seen, off) = m.drain();
        assert_eq!((seen.len(), off), (127, true));
        assert!(m.kernel.trace(&load(0x1000, 1).repeat(127), 0, ME), "room again");
    }

    #[test]
    fn stretches_that_the_ring_lost_are_given_back_and_counted() {
        let mut m = Machine::new(1, 4);
        // 73 records of stretches fill a page.
        let told = (0..100).filter(|_| m.kernel.trace(&load(0x1000, 1), 0, ME)).count();
        assert_eq!(told, 73, "56 bytes each");
        let (seen, _) = m.drain();
        assert_eq!((seen.len(), m.reader.lost()), (told, 0), "the kernel has not told yet");
        // `PERF_RECORD_LOST` of 27 records, and one more stretch.
        assert!(m.kernel.record(2, &[1, 27, 0, 0, 0]) && m.kernel.trace(&load(0x2000, 1), 0, ME));
        assert_eq!((m.drain().0.len(), m.reader.lost()), (1, 27));
        let ring = m.kernel.ring();
        assert_eq!((ring.aux_tail(), ring.aux_head()), (101 * 64, 101 * 64));
    }

    #[test]
    fn padding_that_is_not_told_is_given_back() {
        let mut m = Machine::new(1, 2);
        assert!(m.kernel.trace(&load(0x1000, 1), 0, ME));
        m.kernel.skip(100);
        assert_eq!(m.drain().0.len(), 1);
        assert!(m.kernel.trace(&load(0x1000, 1), 0, ME));
        assert_eq!((m.drain().0.len(), m.kernel.ring().aux_tail()), (1, 228));
        // As much as a buffer, when it came too close to its end.
        m.kernel.skip(8000);
        assert_eq!(m.drain(), (vec![], true));
        assert_eq!((m.kernel.ring().aux_tail(), m.reader.lost()), (8228, 0));
    }

    #[test]
    fn without_a_counter_the_time_is_the_stretchs() {
        let mut m = Machine::new(1, 2);
        assert!(m.kernel.trace(&load(0x1000, 1), 0, ME));
        let mut times = Vec::new();
        let Machine { kernel, reader, buffers } = &mut m;
        reader.drain(kernel.ring(), ME, None, buffers, &mut |s| times.push(s.time));
        assert_eq!(times, [Ns(1)]);
    }

    #[test]
    fn the_kernel_says_why_it_does_not_trace() {
        // An event that writes no trace: opened and mapped, then refused.
        let spec =
            CounterSpec { fields: SampleFields::TRACE, rate: Rate::Period(1), ..CounterSpec::page_faults() };
        let trace = TraceEvent { spec, cpus: vec![0] };
        let e = Traces::open(std::slice::from_ref(&trace), 0..1, |_| ProcessorModel::Other).unwrap_err();
        match e.call {
            "mmap(perf AUX buffer)" => assert_eq!(e.errno.0, 95, "EOPNOTSUPP"),
            _ => println!("skipped: {e}"),
        }
        let e = Traces::open(&[trace], 1..4, |_| ProcessorModel::Other).unwrap_err();
        assert_eq!(e, NO_CPU);
    }

    proptest! {
        /// Whatever the processor and the kernel write: no panic, an end, and at least half of the
        /// buffer is free.
        #[test]
        fn any_buffer_is_emptied(
            stretches in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..3000), any::<u64>()), 0..20),
            lies in proptest::collection::vec(any::<[u64; 6]>(), 0..4),
        ) {
            let mut m = Machine::new(1, 2);
            for (bytes, flags) in &stretches {
                if !m.kernel.trace(bytes, *flags, ME) {
                    m.drain();
                    prop_assert!(m.kernel.trace(bytes, *flags, ME));
                }
            }
            for lie in &lies {
                m.kernel.record(11, lie);
            }
            m.drain();
            let ring = m.kernel.ring();
            let (head, tail) = (ring.aux_head(), ring.aux_tail());
            let near = if tail >= head { tail - head <= ring.aux_bytes() } else { head - tail < ring.aux_bytes() / 2 };
            prop_assert!(near, "{tail} is read of {head}");
        }
    }
}
