//! The encoding of a processor's address samples: reads `/sys/bus/event_source/devices` and fills
//! in the fields of an event.
//!
//! For each PMU the kernel lists a number (`type`), events as named fields (`events/mem-loads`
//! holds `event=0xcd,umask=0x1,ldlat=3`), and the place of each field in the event's three words
//! (`format/ldlat` holds `config1:0-15`;
//! Documentation/ABI/testing/sysfs-bus-event_source-devices-format). So this module contains no
//! processor's numbers.
//!
//! Arm's SPE has no events. It has a PMU for each kind of core (`arm_spe_0`, `arm_spe_1` if there
//! are large and small ones), the CPUs of that kind (`cpumask`), and a shortest interval
//! (`caps/min_interval`; drivers/perf/arm_spe_pmu.c).

use std::fs;
use std::path::Path;

use homenode_model::Ns;
use homenode_sys::PAGE;
use homenode_sys::perf::{CounterSpec, EventKind, Rate, SampleFields};

/// Where the kernel lists its PMUs.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// How to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// PMU and event, for a person.
    pub name: String,
    /// Who writes the samples, and what to open for it.
    pub writer: SampleWriter,
    /// Accesses between two samples.
    pub period: u64,
    /// Assumed time that kernel and processor take for a sample. A process cannot measure it.
    pub interrupt: Ns,
}

/// Who writes samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleWriter {
    /// The kernel writes each sample as a record of a ring.
    Kernel {
        /// What to open on each CPU.
        specs: Vec<CounterSpec>,
        /// The group's leader, on processors that sample loads only beside another event.
        leader: Option<CounterSpec>,
    },
    /// The processor writes to a buffer of its own.
    Processor(Vec<TraceEvent>),
}

impl SampleWriter {
    /// The first of `cpus` that nothing samples. Counts without that CPU would be no counts.
    pub fn leaves_out(&self, mut cpus: impl Iterator<Item = u32>) -> Option<u32> {
        match self {
            Self::Kernel { .. } => None,
            Self::Processor(traces) => cpus.find(|cpu| !traces.iter().any(|t| t.cpus.contains(cpu))),
        }
    }
}

/// An event to open on some CPUs, for a processor that writes its samples itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// The event.
    pub spec: CounterSpec,
    /// The CPUs, ascending.
    pub cpus: Vec<u32>,
}

/// Accesses between two samples. The number is odd, so that it has no common period with a loop of
/// the program.
const PERIOD: u64 = 20_011;
/// Longest period of any PMU.
const LONGEST: u64 = 1 << 26;

/// The next multiple of `unit` below that period, or at least `least`.
const fn multiple(unit: u64, least: u64) -> u64 {
    let near = PERIOD & !(unit - 1);
    if near < least { least.next_multiple_of(unit) } else { near }
}

/// Time of a record that the kernel writes: 1 to 2 µs are reported for the interrupt of precise
/// sampling.
const BY_KERNEL: Ns = Ns(2_000);
/// Time of a record that the processor writes: 64 bytes beside the program, and an interrupt for
/// each page.
const BY_PROCESSOR: Ns = Ns(500);

/// The best encoding that the devices of a folder offer.
///
/// # Errors
/// Why there is none, for a person.
pub fn find(devices: &Path) -> Result<Encoding, String> {
    for pmu in ["cpu", "cpu_core"] {
        if devices.join(pmu).join("events/mem-loads").exists() {
            return intel(&Pmu::read(devices, pmu)?);
        }
    }
    if devices.join("ibs_op").exists() {
        return amd(&Pmu::read(devices, "ibs_op")?);
    }
    let spe = spe_devices(devices);
    if !spe.is_empty() {
        return arm(devices, &spe);
    }
    Err(format!("no PMU that samples addresses (no mem-loads, ibs_op or arm_spe_0 in {})", devices.display()))
}

fn intel(pmu: &Pmu<'_>) -> Result<Encoding, String> {
    let leader = pmu.has_event("mem-loads-aux").then(|| pmu.event("mem-loads-aux")).transpose()?;
    let mut specs = vec![pmu.event("mem-loads")?];
    if pmu.has_event("mem-stores") {
        specs.push(pmu.event("mem-stores")?);
    }
    for spec in &mut specs {
        // Precise event-based sampling needs this for an address.
        spec.precise = 2;
    }
    Ok(Encoding {
        name: format!("{}/mem-loads,mem-stores", pmu.name),
        writer: SampleWriter::Kernel { specs, leader },
        period: PERIOD,
        interrupt: BY_KERNEL,
    })
}

fn amd(pmu: &Pmu<'_>) -> Result<Encoding, String> {
    // Counts instructions and not cycles, if there is a choice; and only the user's, if the kernel
    // can leave out its own.
    let mut spec = pmu.spec();
    if pmu.has_format("cnt_ctl") {
        pmu.set(&mut spec, "cnt_ctl", 1)?;
    }
    if !pmu.has_format("swfilt") {
        return Err(
            "ibs_op samples the kernel, too, which plain users may not (no format/swfilt: Linux 6.14 has it)"
                .into(),
        );
    }
    pmu.set(&mut spec, "swfilt", 1)?;
    // The hardware counts in units of sixteen.
    let period = multiple(16, 0);
    spec.rate = Rate::Period(period);
    let writer = SampleWriter::Kernel { specs: vec![spec], leader: None };
    Ok(Encoding { name: pmu.name.to_owned(), writer, period, interrupt: BY_KERNEL })
}

/// The names of SPE's PMUs, by number.
fn spe_devices(devices: &Path) -> Vec<String> {
    let listed = fs::read_dir(devices).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        listed.filter_map(|e| e.file_name().to_str()?.strip_prefix("arm_spe_")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.iter().map(|n| format!("arm_spe_{n}")).collect()
}

/// The interval's low byte is the processor's (`PMSIRR_EL1.INTERVAL`). Without `caps`, the longest
/// shortest interval that the driver knows is assumed.
const SPE_UNIT: u64 = 256;
const SPE_LEAST: u64 = 4096;

fn arm(devices: &Path, names: &[String]) -> Result<Encoding, String> {
    let pmus: Vec<Pmu<'_>> = names.iter().map(|n| Pmu::read(devices, n)).collect::<Result<_, _>>()?;
    let least = pmus.iter().map(Pmu::min_interval).collect::<Result<Vec<_>, _>>()?;
    let period = multiple(SPE_UNIT, least.into_iter().max().unwrap_or(SPE_LEAST));
    let traces = pmus.iter().map(|pmu| spe(pmu, period)).collect::<Result<_, _>>()?;
    let name = format!("{}/load_filter,store_filter", names.join(","));
    Ok(Encoding { name, writer: SampleWriter::Processor(traces), period, interrupt: BY_PROCESSOR })
}

fn spe(pmu: &Pmu<'_>, period: u64) -> Result<TraceEvent, String> {
    let mut spec = pmu.spec();
    // No branches, and no physical addresses, which ordinary users do not get.
    for field in ["load_filter", "store_filter"] {
        pmu.set(&mut spec, field, 1)?;
    }
    // Time stamps, and random intervals without a common period with a loop of the program.
    for field in ["ts_enable", "jitter"] {
        if pmu.has_format(field) {
            pmu.set(&mut spec, field, 1)?;
        }
    }
    spec.rate = Rate::Period(period);
    spec.fields = SampleFields::TRACE;
    // The driver stops at the next page border.
    spec.watermark = PAGE as u32;
    Ok(TraceEvent { spec, cpus: pmu.cpus()? })
}

/// More CPUs than any kernel supports.
const MOST_CPUS: u32 = 1 << 16;

/// A PMU's folder.
struct Pmu<'a> {
    name: &'a str,
    folder: std::path::PathBuf,
    number: u32,
}

impl<'a> Pmu<'a> {
    fn read(devices: &Path, name: &'a str) -> Result<Self, String> {
        let folder = devices.join(name);
        let number = text(&folder.join("type"))?;
        let number = number.parse().map_err(|_| format!("{name}/type is `{number}`, which is no number"))?;
        Ok(Self { name, folder, number })
    }

    fn spec(&self) -> CounterSpec {
        CounterSpec {
            kind: EventKind(self.number),
            config: 0,
            config1: 0,
            config2: 0,
            rate: Rate::Period(PERIOD),
            precise: 0,
            fields: SampleFields::ACCESS,
            user_only: true,
            watermark: 0,
        }
    }

    /// The shortest supported interval.
    fn min_interval(&self) -> Result<u64, String> {
        let file = self.folder.join("caps/min_interval");
        if !file.exists() {
            return Ok(SPE_LEAST);
        }
        let n = text(&file)?;
        let short = n.parse().ok().filter(|n| *n <= LONGEST);
        short.ok_or_else(|| format!("{}/caps/min_interval is `{n}`, which is no interval", self.name))
    }

    /// The CPUs of the PMU: `0-3,8`.
    fn cpus(&self) -> Result<Vec<u32>, String> {
        let list = text(&self.folder.join("cpumask"))?;
        let bad = || format!("{}/cpumask is `{list}`, which is no list of CPUs", self.name);
        let mut cpus = Vec::new();
        for part in list.split(',').filter(|p| !p.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) =
                (first.parse().map_err(|_| bad())?, last.parse().map_err(|_| bad())?);
            if first > last || last > MOST_CPUS {
                return Err(bad());
            }
            cpus.extend(first..=last);
        }
        if cpus.is_empty() { Err(format!("{}/cpumask has no CPU", self.name)) } else { Ok(cpus) }
    }

    fn has_event(&self, event: &str) -> bool {
        self.folder.join("events").join(event).exists()
    }

    fn has_format(&self, field: &str) -> bool {
        self.folder.join("format").join(field).exists()
    }

    /// An event by its name.
    fn event(&self, event: &str) -> Result<CounterSpec, String> {
        let mut spec = self.spec();
        let terms = text(&self.folder.join("events").join(event))?;
        for term in terms.split(',') {
            let (field, value) = term.split_once('=').unwrap_or((term, "1"));
            let number = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => value.parse(),
            };
            let bad = |_| format!("{}/events/{event} has `{term}`, which is no number", self.name);
            self.set(&mut spec, field, number.map_err(bad)?)?;
        }
        Ok(spec)
    }

    /// Sets a field at the kernel's place for it: `config1:0-15`, or several ranges, the value's
    /// low bits first.
    fn set(&self, spec: &mut CounterSpec, field: &str, value: u64) -> Result<(), String> {
        let format = match field {
            // Whole words need no format.
            "config" | "config1" | "config2" => format!("{field}:0-63"),
            _ => text(&self.folder.join("format").join(field))?,
        };
        let bad = || format!("{}/format/{field} is `{format}`, which is no place for a value", self.name);
        let (word, ranges) = format.split_once(':').ok_or_else(bad)?;
        let word = match word {
            "config" => &mut spec.config,
            "config1" => &mut spec.config1,
            "config2" => &mut spec.config2,
            _ => return Err(bad()),
        };
        let mut left = value;
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high): (u32, u32) = (low.parse().map_err(|_| bad())?, high.parse().map_err(|_| bad())?);
            if low > high || high > 63 {
                return Err(bad());
            }
            let mask = u64::MAX >> (63 - (high - low));
            *word |= (left & mask) << low;
            left = left.checked_shr(high - low + 1).unwrap_or(0);
        }
        if left != 0 {
            return Err(format!("{field}={value:#x} does not fit {}/format/{field}, {format}", self.name));
        }
        Ok(())
    }
}

fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file)
        .map(|t| t.trim().to_owned())
        .map_err(|e| format!("reading {}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn recorded(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pmu").join(name)
    }

    fn by_kernel(e: &Encoding) -> (&[CounterSpec], Option<&CounterSpec>) {
        match &e.writer {
            SampleWriter::Kernel { specs, leader } => (specs, leader.as_ref()),
            SampleWriter::Processor(traces) => panic!("{traces:?}"),
        }
    }

    #[test]
    fn loads_and_stores_of_an_older_xeon() {
        let e = find(&recorded("intel-skylake")).unwrap();
        let (specs, leader) = by_kernel(&e);
        assert_eq!((e.name.as_str(), leader), ("cpu/mem-loads,mem-stores", None));
        let [loads, stores] = specs else { panic!("{specs:?}") };
        assert_eq!((loads.kind, loads.config, loads.config1), (EventKind(4), 0x1cd, 3));
        assert_eq!((stores.config, stores.config1, stores.precise), (0x82d0, 0, 2));
    }

    #[test]
    fn later_xeons_want_another_event_to_lead() {
        let e = find(&recorded("intel-sapphire-rapids")).unwrap();
        let (specs, leader) = by_kernel(&e);
        assert_eq!(leader.map(|l| (l.config, l.precise)), Some((0x8203, 0)));
        assert_eq!((specs[0].config, specs[1].config), (0x1cd, 0x2cd));
    }

    #[test]
    fn the_large_cores_of_a_hybrid_processor_are_taken() {
        let e = find(&recorded("intel-hybrid")).unwrap();
        assert!(e.name.starts_with("cpu_core/"));
        assert_eq!(by_kernel(&e).0[0].kind, EventKind(4));
    }

    #[test]
    fn amd_samples_for_plain_users_where_the_kernel_filters() {
        let e = find(&recorded("amd-zen4")).unwrap();
        let spec = by_kernel(&e).0[0];
        assert_eq!((spec.kind, spec.config, spec.config2), (EventKind(11), 1 << 19, 1));
        assert_eq!(spec.rate, Rate::Period(20_000));
        assert_eq!(e.period, 20_000);
        let why = find(&recorded("amd-zen2")).unwrap_err();
        assert!(why.contains("swfilt"), "{why}");
    }

    #[test]
    fn arms_loads_and_stores_are_filtered_by_the_processor() {
        let e = find(&recorded("arm-neoverse")).unwrap();
        let SampleWriter::Processor(traces) = &e.writer else { panic!("{e:?}") };
        let [TraceEvent { spec, cpus }] = &traces[..] else { panic!("{traces:?}") };
        assert_eq!((e.name.as_str(), spec.kind), ("arm_spe_0/load_filter,store_filter", EventKind(8)));
        // Timestamps, jitter, loads, stores; no physical address (bit 1), no other counter (2), no
        // branch (32).
        assert_eq!(spec.config, 1 | 1 << 16 | 1 << 33 | 1 << 34);
        assert_eq!((spec.config1, spec.config2, spec.precise, spec.user_only), (0, 0, 0, true));
        assert_eq!((spec.fields, spec.watermark), (SampleFields::TRACE, 4096));
        assert_eq!((spec.rate, cpus), (Rate::Period(19_968), &(0..80).collect::<Vec<_>>()));
        assert_eq!(e.period, 19_968);
    }

    #[test]
    fn large_and_small_cores_have_an_spe_each() {
        let e = find(&recorded("arm-big-little")).unwrap();
        let SampleWriter::Processor(traces) = &e.writer else { panic!("{e:?}") };
        let all: Vec<_> = traces.iter().map(|t| (t.spec.kind, t.cpus.as_slice())).collect();
        assert_eq!(all, [(EventKind(9), &[0, 1, 2, 3, 8][..]), (EventKind(12), &[4, 5, 6, 7][..])]);
        assert_eq!(e.period, 19_968);
        assert!(e.name.starts_with("arm_spe_0,arm_spe_10/"));
        assert_eq!((e.writer.leaves_out(0..9), e.writer.leaves_out(0..12)), (None, Some(9)));
    }

    #[test]
    fn what_is_not_there_or_makes_no_sense_is_said() {
        assert!(find(&recorded("none")).unwrap_err().starts_with("no PMU that samples addresses"));
        let why = find(&recorded("damaged")).unwrap_err();
        assert!(why.contains("config9:0-7") && why.contains("no place"), "{why}");
    }

    #[test]
    fn cpus_that_are_no_list_are_refused() {
        let why = find(&recorded("arm-damaged")).unwrap_err();
        assert!(why.contains("arm_spe_0/cpumask") && why.contains("3-1"), "{why}");
    }

    #[test]
    fn intervals_that_make_no_sense_are_refused() {
        let folder = std::env::temp_dir().join(format!("homenode-spe-{}", std::process::id()));
        fs::create_dir_all(folder.join("caps")).unwrap();
        let pmu = Pmu { name: "arm_spe_0", folder: folder.clone(), number: 8 };
        assert_eq!(pmu.min_interval(), Ok(4096), "not said");
        for (text, want) in [("1536\n", Some(1536)), ("67108865", None), ("-1", None), ("", None)] {
            fs::write(folder.join("caps/min_interval"), text).unwrap();
            assert_eq!(pmu.min_interval().ok(), want, "{text}");
        }
        assert_eq!([0, 30_000, LONGEST].map(|least| multiple(256, least)), [19_968, 30_208, LONGEST]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_field_may_lie_in_two_places() {
        let folder = recorded("intel-skylake").join("cpu");
        let pmu = Pmu { name: "cpu", folder, number: 4 };
        let mut spec = pmu.spec();
        pmu.set(&mut spec, "split", 0x1ff).unwrap();
        assert_eq!(spec.config, 0xff | 1 << 32);
        assert!(pmu.set(&mut spec, "split", 0x400).unwrap_err().contains("does not fit"));
    }
}
