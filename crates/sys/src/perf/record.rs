//! Records of a ring, decoded from their bytes.

use homenode_model::{AccessKind, Ns};

use super::event::{STACK_WORDS, SampleFields};

/// `PERF_RECORD_LOST`, `_THROTTLE`, `_UNTHROTTLE`, `_SAMPLE`, `_AUX`, `_LOST_SAMPLES`.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const SAMPLE: u32 = 9;
const AUX: u32 = 11;
const LOST_SAMPLES: u32 = 13;

/// Bytes of a record's head: kind (4), two bytes of flags, length (2).
pub const HEAD: usize = 8;

/// A record of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfRecord {
    /// A counted event.
    Sample(Sample),
    /// This many records found no room in the ring, or no time.
    Lost(u64),
    /// The kernel takes no samples for a while (`true`), because there were too many, or takes them
    /// again.
    Throttle(bool),
    /// A stretch of a processor's own trace is ready in the AUX buffer.
    Aux(AuxSpan),
    /// Something else, by the kernel's number.
    Other(u32),
}

/// A sample. Fields that were not asked for are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The instruction.
    pub ip: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The time, by the monotonic clock.
    pub time: Ns,
    /// The data's address; 0 if the processor did not report it.
    pub address: u64,
    /// The CPU.
    pub cpu: u32,
    /// The top of the thread's stack: what lies at its stack pointer, and above.
    pub stack: [u64; STACK_WORDS],
    /// The duration, in the processor's own units.
    pub weight: u64,
    /// The kind and the origin of the access.
    pub source: DataSource,
}

/// A stretch of the AUX buffer (`PERF_RECORD_AUX`), with the fields of a record that is no sample,
/// as far as they were asked for (`struct sample_id`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxSpan {
    /// First byte, counted from the first byte ever written; its place in the buffer is this modulo
    /// the buffer's size.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// `PERF_AUX_FLAG_*`.
    pub flags: u64,
    /// The process; 0 if it was not asked for.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Its end, by the monotonic clock.
    pub time: Ns,
    /// The CPU.
    pub cpu: u32,
}

impl AuxSpan {
    /// Some of the trace found no room, and the event was turned off (`PERF_AUX_FLAG_TRUNCATED`).
    pub const TRUNCATED: u64 = 1 << 0;
    /// The last record is incomplete (`PERF_AUX_FLAG_PARTIAL`).
    pub const PARTIAL: u64 = 1 << 2;
    /// A sample was due during the one before, and was not taken (`PERF_AUX_FLAG_COLLISION`).
    pub const COLLISION: u64 = 1 << 3;

    /// Whether one of `flags` is set.
    pub const fn is(&self, flags: u64) -> bool {
        self.flags & flags != 0
    }
}

/// `union perf_mem_data_src`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSource(pub u64);

/// The origin of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOrigin {
    /// One of the core's or the socket's caches, or another core's of the same node.
    Cache,
    /// Memory of the same node.
    LocalMemory,
    /// Memory or a cache of another node.
    Remote,
    /// The processor does not say.
    Unknown,
}

impl DataSource {
    const LOAD: u64 = 1 << 1;
    const STORE: u64 = 1 << 2;
    /// `PERF_MEM_LVL_*`, from bit 5 on.
    const LEVEL: u32 = 5;
    const HIT: u64 = 1 << 1;
    const CACHES: u64 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6;
    const LOCAL: u64 = 1 << 7;
    const REMOTE: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;
    /// `PERF_MEM_REMOTE_REMOTE`.
    const IS_REMOTE: u64 = 1 << 37;
    /// `PERF_MEM_LVLNUM_*`, from bit 33 on, and the numbers of plain memory and of lines that are
    /// on their way to the second cache already, which Intel's newer cores tell by nothing else
    /// (`L2_MHB`).
    const NUMBER: u32 = 33;
    const RAM: u64 = 0xd;
    const ON_ITS_WAY: u64 = 5;
    /// `PERF_MEM_HOPS_*`, from bit 43 on, and the number of another core of the same node.
    const HOPS: u32 = 43;
    const SAME_NODE: u64 = 1;

    /// Makes the kernel's form, for processors whose samples the kernel does not decode.
    pub const fn new(kind: Option<AccessKind>, level: DataOrigin) -> Self {
        let operation = match kind {
            Some(AccessKind::Read) => Self::LOAD,
            Some(AccessKind::Write) => Self::STORE,
            None => 0,
        };
        // A cache without a number counts as the third.
        let level = match level {
            DataOrigin::Cache => (Self::HIT | 1 << 6) << Self::LEVEL,
            DataOrigin::LocalMemory => (Self::HIT | Self::LOCAL) << Self::LEVEL | Self::RAM << Self::NUMBER,
            DataOrigin::Remote => (Self::HIT | 1 << 8) << Self::LEVEL | Self::IS_REMOTE,
            DataOrigin::Unknown => 0,
        };
        Self(operation | level)
    }

    /// Load or store, if it is one.
    pub const fn kind(self) -> Option<AccessKind> {
        if self.0 & Self::STORE != 0 {
            Some(AccessKind::Write)
        } else if self.0 & Self::LOAD != 0 {
            Some(AccessKind::Read)
        } else {
            None
        }
    }

    /// The origin of the data.
    pub const fn level(self) -> DataOrigin {
        let level = self.0 >> Self::LEVEL & 0x3fff;
        let number = self.0 >> Self::NUMBER & 0xf;
        if self.0 >> Self::HOPS & 7 == Self::SAME_NODE {
            // Before the others: what the kernel tells of AMD's caches of the same node has bits of
            // a remote cache, too. (Kernels that tell no hops have no `swfilt` either.)
            DataOrigin::Cache
        } else if self.0 & Self::IS_REMOTE != 0 || level & Self::REMOTE != 0 {
            DataOrigin::Remote
        } else if level & Self::LOCAL != 0 || number == Self::RAM {
            DataOrigin::LocalMemory
        } else if level & Self::HIT != 0 && (level & Self::CACHES != 0 || number == Self::ON_ITS_WAY) {
            DataOrigin::Cache
        } else {
            DataOrigin::Unknown
        }
    }
}

/// Reads 8 bytes at a time.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
    fn pair(&mut self) -> Option<(u32, u32)> {
        let (a, rest) = self.0.split_first_chunk()?;
        let (b, rest) = rest.split_first_chunk()?;
        self.0 = rest;
        Some((u32::from_ne_bytes(*a), u32::from_ne_bytes(*b)))
    }
}

/// Length of the record that begins with these bytes; `None` if they make no sense.
pub fn length(head: [u8; HEAD]) -> Option<usize> {
    let length = usize::from(u16::from_ne_bytes([head[6], head[7]]));
    (length >= HEAD && length.is_multiple_of(8)).then_some(length)
}

/// Decodes a whole record of an event whose samples have `fields`; `None` if it is too short for
/// its kind.
pub fn decode(bytes: &[u8], fields: SampleFields) -> Option<PerfRecord> {
    let (kind, rest) = bytes.split_first_chunk()?;
    let mut words = Words(rest.get(4..)?);
    Some(match u32::from_ne_bytes(*kind) {
        SAMPLE => PerfRecord::Sample(sample(&mut words, fields)?),
        LOST => {
            words.next()?;
            PerfRecord::Lost(words.next()?)
        }
        LOST_SAMPLES => PerfRecord::Lost(words.next()?),
        THROTTLE => PerfRecord::Throttle(true),
        UNTHROTTLE => PerfRecord::Throttle(false),
        AUX => PerfRecord::Aux(stretch(&mut words, fields)?),
        other => PerfRecord::Other(other),
    })
}

/// The kernel's order of the fields is that of perf_output_sample (kernel/events/core.c).
fn sample(words: &mut Words<'_>, fields: SampleFields) -> Option<Sample> {
    let mut s = Sample::default();
    if fields.has(SampleFields::IP) {
        s.ip = words.next()?;
    }
    if fields.has(SampleFields::THREAD) {
        (s.process, s.thread) = words.pair()?;
    }
    if fields.has(SampleFields::TIME) {
        s.time = Ns(words.next()?);
    }
    if fields.has(SampleFields::ADDRESS) {
        s.address = words.next()?;
    }
    if fields.has(SampleFields::CPU) {
        s.cpu = words.pair()?.0;
    }
    if fields.has(SampleFields::STACK) {
        s.stack = stack(words)?;
    }
    if fields.has(SampleFields::WEIGHT) {
        s.weight = words.next()?;
    }
    if fields.has(SampleFields::SOURCE) {
        s.source = DataSource(words.next()?);
    }
    Some(s)
}

/// The number of bytes, as many bytes, and, if there are some, how many of them the kernel read.
fn stack(words: &mut Words<'_>) -> Option<[u64; STACK_WORDS]> {
    let mut stack = [0; STACK_WORDS];
    let bytes = words.next()?;
    if bytes == 0 {
        return Some(stack);
    }
    if bytes != size_of_val(&stack) as u64 {
        return None;
    }
    for word in &mut stack {
        *word = words.next()?;
    }
    let read = usize::try_from(words.next()?).ok()? / size_of::<u64>();
    stack.iter_mut().skip(read).for_each(|word| *word = 0);
    Some(stack)
}

/// The trailer has the kernel's order in __perf_event__output_id_sample.
fn stretch(words: &mut Words<'_>, fields: SampleFields) -> Option<AuxSpan> {
    let mut s =
        AuxSpan { offset: words.next()?, bytes: words.next()?, flags: words.next()?, ..AuxSpan::default() };
    if fields.has(SampleFields::THREAD) {
        (s.process, s.thread) = words.pair()?;
    }
    if fields.has(SampleFields::TIME) {
        s.time = Ns(words.next()?);
    }
    if fields.has(SampleFields::CPU) {
        s.cpu = words.pair()?.0;
    }
    Some(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let length = (HEAD + 8 * words.len()) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(length.to_ne_bytes());
        words.iter().for_each(|w| bytes.extend(w.to_ne_bytes()));
        bytes
    }

    const fn pair(a: u32, b: u32) -> u64 {
        // As two halves of a word lie in memory.
        if cfg!(target_endian = "little") { a as u64 | (b as u64) << 32 } else { (a as u64) << 32 | b as u64 }
    }

    #[test]
    fn a_load_from_a_remote_node_is_read() {
        // As a Xeon writes it: a load that missed to remote memory, 412 cycles.
        let source = 1 << 1 | (1 << 1 | 1 << 8) << 5 | 1 << 37 | 0xd << 33;
        let words = [0x40_1234, pair(77, 78), 5_000, 0x7f00_1000, pair(3, 0), 412, source];
        let bytes = record(SAMPLE, &words);
        let Some(PerfRecord::Sample(s)) = decode(&bytes, SampleFields::ACCESS) else { panic!("no sample") };
        assert_eq!((s.ip, s.process, s.thread, s.time), (0x40_1234, 77, 78, Ns(5_000)));
        assert_eq!((s.address, s.cpu, s.weight), (0x7f00_1000, 3, 412));
        assert_eq!((s.source.kind(), s.source.level()), (Some(AccessKind::Read), DataOrigin::Remote));
        for cut in HEAD..bytes.len() {
            assert_eq!(decode(&bytes[..cut], SampleFields::ACCESS), None, "cut at {cut}");
        }
    }

    #[test]
    fn the_top_of_the_stack_is_read_as_far_as_the_kernel_could() {
        let fields = SampleFields(SampleFields::IP.0 | SampleFields::STACK.0 | SampleFields::WEIGHT.0);
        let words = [0x40_1234, 64, 1, 2, 3, 4, 5, 6, 7, 8, 24, 412];
        let bytes = record(SAMPLE, &words);
        let Some(PerfRecord::Sample(s)) = decode(&bytes, fields) else { panic!("no sample") };
        assert_eq!((s.ip, s.stack, s.weight), (0x40_1234, [1, 2, 3, 0, 0, 0, 0, 0], 412));
        for cut in HEAD..bytes.len() {
            assert_eq!(decode(&bytes[..cut], fields), None, "cut at {cut}");
        }
        let kernels = decode(&record(SAMPLE, &[0x40_1234, 0, 412]), fields);
        let Some(PerfRecord::Sample(s)) = kernels else { panic!("no sample") };
        assert_eq!((s.stack, s.weight), ([0; STACK_WORDS], 412), "a thread of the kernel has no stack");
        assert_eq!(decode(&record(SAMPLE, &[0x40_1234, 1 << 60, 412]), fields), None);
    }

    #[test]
    fn sources_are_told_apart() {
        let source = |op: u64, level: u64| DataSource(1 << op | level << 5);
        assert_eq!(source(2, 1 << 1 | 1 << 3).kind(), Some(AccessKind::Write));
        assert_eq!(source(1, 1 << 1 | 1 << 3).level(), DataOrigin::Cache);
        assert_eq!(source(1, 1 << 1 | 1 << 7).level(), DataOrigin::LocalMemory);
        assert_eq!(source(1, 1 << 1 | 1 << 11).level(), DataOrigin::Remote);
        assert_eq!((DataSource(1).kind(), DataSource(1).level()), (None, DataOrigin::Unknown));
    }

    /// Every source that the kernel's tables have (arch/x86/events/intel/ds.c,
    /// arch/x86/events/amd/ibs.c), of each kind one.
    #[test]
    fn sources_of_intel_and_amd_are_told_apart() {
        const HIT: u64 = 1 << 1;
        const MISS: u64 = 1 << 2;
        const L1: u64 = 1 << 3;
        const L3: u64 = 1 << 6;
        const LOCAL_RAM: u64 = 1 << 7;
        const REMOTE_RAM: u64 = 1 << 8;
        const NEAR: u64 = 1 << 10;
        const FAR: u64 = 1 << 11;
        const REMOTE: u64 = 1 << 37;
        // The level's bits, the level's number, the rest.
        let level =
            |bits: u64, number: u64, rest: u64| DataSource(1 << 1 | bits << 5 | number << 33 | rest).level();
        let hops = |n: u64| (n + 1) << 43;

        assert_eq!(level(HIT | L3, 3, 0), DataOrigin::Cache, "L3 of either");
        assert_eq!(level(HIT, 5, 0), DataOrigin::Cache, "Lion Cove, on its way to L2");
        assert_eq!(level(MISS, 3, 0), DataOrigin::Unknown, "Lion Cove, missed L3");
        assert_eq!(level(MISS | L1, 0, 0), DataOrigin::Unknown, "Skylake, a store that missed");
        assert_eq!(level(HIT | NEAR, 3, REMOTE), DataOrigin::Remote, "Skylake, L3 of another socket");
        assert_eq!(level(HIT, 0xb, REMOTE), DataOrigin::Remote, "Skylake, some cache of another socket");
        assert_eq!(level(HIT | L3 | NEAR, 3, 0), DataOrigin::Remote, "Diamond Rapids, L3 of another die");
        assert_eq!(level(HIT, 0xd, REMOTE), DataOrigin::Remote, "Skylake, memory of another socket");
        assert_eq!(level(HIT, 0xe, 0), DataOrigin::Unknown, "Skylake, persistent memory");

        assert_eq!(level(HIT | L3 | NEAR, 0xb, hops(0)), DataOrigin::Cache, "Zen 2, a cache of the node");
        assert_eq!(
            level(HIT | FAR, 0xb, REMOTE | hops(1)),
            DataOrigin::Remote,
            "Zen 2, a cache of another node"
        );
        assert_eq!(
            level(HIT | NEAR, 0xb, REMOTE | hops(0)),
            DataOrigin::Cache,
            "Zen 4, another core of the node"
        );
        assert_eq!(
            level(HIT | FAR, 0xb, REMOTE | hops(1)),
            DataOrigin::Remote,
            "Zen 4, a cache of another node"
        );
        assert_eq!(level(HIT | LOCAL_RAM, 0xd, 0), DataOrigin::LocalMemory);
        assert_eq!(level(HIT | REMOTE_RAM, 0xd, REMOTE | hops(1)), DataOrigin::Remote);
        assert_eq!(level(0, 9, REMOTE | hops(1)), DataOrigin::Remote, "Zen 4, CXL of another node");
    }

    #[test]
    fn what_is_said_in_the_kernels_form_is_read_from_it() {
        for kind in [None, Some(AccessKind::Read), Some(AccessKind::Write)] {
            for level in [DataOrigin::Cache, DataOrigin::LocalMemory, DataOrigin::Remote, DataOrigin::Unknown]
            {
                let source = DataSource::new(kind, level);
                assert_eq!((source.kind(), source.level()), (kind, level));
            }
        }
    }

    #[test]
    fn other_records_are_read() {
        assert_eq!(decode(&record(LOST, &[9, 44]), SampleFields::TOUCH), Some(PerfRecord::Lost(44)));
        assert_eq!(decode(&record(LOST_SAMPLES, &[7]), SampleFields::TOUCH), Some(PerfRecord::Lost(7)));
        assert_eq!(
            decode(&record(THROTTLE, &[1, 2, 3]), SampleFields::TOUCH),
            Some(PerfRecord::Throttle(true))
        );
        let bare = AuxSpan { offset: 64, bytes: 128, flags: AuxSpan::TRUNCATED, ..AuxSpan::default() };
        assert_eq!(decode(&record(AUX, &[64, 128, 1]), SampleFields(0)), Some(PerfRecord::Aux(bare)));
        let words = [64, 128, 1, pair(77, 78), 5_000, pair(3, 0)];
        let whose = AuxSpan { process: 77, thread: 78, time: Ns(5_000), cpu: 3, ..bare };
        assert_eq!(decode(&record(AUX, &words), SampleFields::TRACE), Some(PerfRecord::Aux(whose)));
        assert_eq!(decode(&record(AUX, &words[..5]), SampleFields::TRACE), None, "cut off");
        assert_eq!(decode(&record(3, &[0; 4]), SampleFields::TOUCH), Some(PerfRecord::Other(3)));
    }

    #[test]
    fn lengths_that_make_no_sense_are_refused() {
        let head = |bytes: u16| {
            let mut head = [0; HEAD];
            head[6..].copy_from_slice(&bytes.to_ne_bytes());
            length(head)
        };
        assert_eq!([head(0), head(7), head(12), head(64)], [None, None, None, Some(64)]);
    }
}
