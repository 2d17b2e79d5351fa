//! Converts an SPE record into a sample of the common form.
//!
//! SPE tells in two ways where the data came from. The events are the architecture's: whether the
//! access hit or missed the first cache, the second (in some processors since Armv8.7's version of
//! SPE), the last, and whether it went to another chip. The data source is a number of the
//! processor's own, and more exact. This module uses the data source for loads, on processors whose
//! numbers are known.

use std::fs;
use std::path::Path;

use homenode_model::{AccessKind, Ns};
use homenode_sys::perf::record::DataOrigin;
use homenode_sys::perf::{DataSource, Sample};

use super::record::SpeRecord;

/// Where the kernel lists its CPUs.
pub const CPUS: &str = "/sys/devices/system/cpu";

/// Whose numbers a CPU's data sources are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessorModel {
    /// Arm's own server cores.
    Neoverse,
    /// Nothing is known: the events have to do.
    #[default]
    Other,
}

/// Arm's implementer code, and the parts whose numbers are those of [`ProcessorModel::Neoverse`]:
/// N1, V1, N2, V2 (the cores' Technical Reference Manuals; tools/perf/util/arm-spe.c goes by the
/// same).
const ARM: u64 = 0x41;
const PARTS: [u64; 4] = [0xd0c, 0xd40, 0xd49, 0xd4f];

impl ProcessorModel {
    /// From a CPU's `regs/identification/midr_el1`.
    pub fn of(cpus: &Path, cpu: u32) -> Self {
        let file = cpus.join(format!("cpu{cpu}/regs/identification/midr_el1"));
        fs::read_to_string(file).map_or(Self::Other, |text| Self::from_midr(&text))
    }

    /// From the main ID register, as text.
    fn from_midr(text: &str) -> Self {
        let digits = text.trim();
        let midr = u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).unwrap_or(0);
        let known = midr >> 24 & 0xff == ARM && PARTS.contains(&(midr >> 4 & 0xfff));
        if known { Self::Neoverse } else { Self::Other }
    }

    /// What a load's data source means.
    const fn level(self, source: u64) -> Option<DataOrigin> {
        match (self, source) {
            // The core's first and second cache; a core beside it, its cluster, the chip's cache,
            // another cluster.
            (Self::Neoverse, 0x0 | 0x8 | 0x9 | 0xa | 0xb | 0xc) => Some(DataOrigin::Cache),
            (Self::Neoverse, 0xd) => Some(DataOrigin::Remote),
            (Self::Neoverse, 0xe) => Some(DataOrigin::LocalMemory),
            _ => None,
        }
    }
}

/// Bits of the events packet: the operation was not taken back; accesses and refills of the first,
/// the last and the second cache.
const RETIRED: u64 = 1 << 1;
const FIRST: (u64, u64) = (1 << 2, 1 << 3);
const LAST: (u64, u64) = (1 << 8, 1 << 9);
const REMOTE: u64 = 1 << 10;
const SECOND: (u64, u64) = (1 << 19, 1 << 20);

/// Where the events say that the data came from: a cache that was accessed and did not have to be
/// refilled had it.
fn level(events: u64) -> DataOrigin {
    let hit = |(access, refill): (u64, u64)| events & access != 0 && events & refill == 0;
    if events & REMOTE != 0 {
        DataOrigin::Remote
    } else if [FIRST, SECOND, LAST].into_iter().any(hit) {
        DataOrigin::Cache
    } else {
        // A last cache that was missed does not say whether the memory is this node's.
        DataOrigin::Unknown
    }
}

/// Operations of class 1: bit 0 tells a store; an atomic one (bit 1 of no vector's, bit 2) stores,
/// too.
const ACCESS: u8 = 1;
const STORE: u8 = 1 << 0;
const EXTENDED: (u8, u8) = (0b1110_0010, 0b0000_0010);
const ATOMIC: u8 = 1 << 2;

/// Load or store; `None`: the operation is no access.
const fn kind(operation: (u8, u8)) -> Option<AccessKind> {
    let (class, subclass) = operation;
    let atomic = subclass & EXTENDED.0 == EXTENDED.1 && subclass & ATOMIC != 0;
    if class != ACCESS {
        None
    } else if subclass & STORE != 0 || atomic {
        Some(AccessKind::Write)
    } else {
        Some(AccessKind::Read)
    }
}

/// An address without what stands above it: of an instruction its state (bit 63: not secure; 62 and
/// 61: the exception level), of data the tag of the pointer. The kernel's half of the addresses has
/// bit 55 set.
const fn plain(address: u64) -> u64 {
    const ABOVE: u64 = 0xff << 56;
    if address >> 55 & 1 == 0 { address & !ABOVE } else { address | ABOVE }
}

impl SpeRecord {
    /// The sample; `None`: it is no access, without an address, or was never to be (processors
    /// follow operations behind branches that are then not taken; others' samples have none of
    /// these). Process, thread and CPU are not in it; `time` is what the timestamp means, or that
    /// there is none.
    pub fn sample(&self, model: ProcessorModel, time: impl FnOnce(Option<u64>) -> Ns) -> Option<Sample> {
        let kind = kind(self.operation?)?;
        if self.events.is_some_and(|e| e & RETIRED == 0) {
            return None;
        }
        let by_source = self.source.filter(|_| kind == AccessKind::Read).and_then(|s| model.level(s));
        let level = by_source.unwrap_or_else(|| level(self.events.unwrap_or(0)));
        Some(Sample {
            ip: self.instruction.map_or(0, plain),
            address: plain(self.data?),
            time: time(self.timestamp),
            weight: u64::from(self.latency.unwrap_or(0)),
            source: DataSource::new(Some(kind), level),
            ..Sample::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{ALTRA, CONTEXTS, bytes, decoded};
    use super::*;

    fn any(_: Option<u64>) -> Ns {
        Ns(1)
    }

    #[test]
    fn an_altras_load_is_a_sample_like_the_others() {
        let (told, _) = decoded(&bytes(ALTRA));
        let sample = told[0].sample(ProcessorModel::Neoverse, |t| Ns(t.unwrap() * 40)).unwrap();
        assert_eq!(
            (sample.ip, sample.address),
            (0xffff_d422_8fcb_b688, 0xffff_403e_f1d7_9e50),
            "the kernel's"
        );
        assert_eq!((sample.time, sample.weight), (Ns(7_966_055_570_099 * 40), 501));
        // Another cluster's cache, by the processor's number; the events say that the last cache
        // was missed.
        assert_eq!(
            (sample.source.kind(), sample.source.level()),
            (Some(AccessKind::Read), DataOrigin::Cache)
        );
        let by_events = told[0].sample(ProcessorModel::Other, any).unwrap();
        assert_eq!(by_events.source.level(), DataOrigin::Unknown);
    }

    #[test]
    fn branches_and_what_has_no_address_are_no_samples() {
        let (told, _) = decoded(&bytes(CONTEXTS));
        assert!(told[0].sample(ProcessorModel::Other, any).is_some());
        assert_eq!(told[1].sample(ProcessorModel::Other, any), None);
        assert_eq!(SpeRecord { data: None, ..told[0] }.sample(ProcessorModel::Other, any), None);
        assert_eq!(SpeRecord { operation: None, ..told[0] }.sample(ProcessorModel::Other, any), None);
        // The same load, behind a branch that was not taken.
        assert_eq!(SpeRecord { events: Some(0x14), ..told[0] }.sample(ProcessorModel::Other, any), None);
        assert!(SpeRecord { events: None, ..told[0] }.sample(ProcessorModel::Other, any).is_some());
    }

    #[test]
    fn tags_and_states_are_stripped() {
        // Not secure, exception level 0; a pointer with a tag.
        assert_eq!(plain(0x8000_aaaa_bbbb_cccc), 0xaaaa_bbbb_cccc);
        assert_eq!(plain(0x8b00_ffff_9000_1238), 0xffff_9000_1238);
        // Addresses of 52 bits.
        assert_eq!(plain(0x000f_ffff_ffff_f000), 0x000f_ffff_ffff_f000);
        assert_eq!(plain(0xa0ff_8000_1029_d3f4), 0xffff_8000_1029_d3f4);
    }

    #[test]
    fn loads_stores_and_atomics_are_told_apart() {
        let read = [0x00, 0x04, 0x10, 0x0a, 0x12, 0x20];
        let write = [0x01, 0x05, 0x11, 0x0b, 0x06, 0x07, 0x16, 0x25];
        for (subclasses, want) in [(&read[..], AccessKind::Read), (&write[..], AccessKind::Write)] {
            for subclass in subclasses {
                assert_eq!(kind((1, *subclass)), Some(want), "{subclass:#x}");
            }
        }
        assert_eq!([kind((0, 1)), kind((2, 1)), kind((3, 1))], [None; 3]);
    }

    #[test]
    fn the_events_say_which_cache_had_it() {
        for (events, want) in [
            (0x16, DataOrigin::Cache),
            (0x1e, DataOrigin::Unknown),
            (0x1e | 1 << 8, DataOrigin::Cache),
            (0x31e, DataOrigin::Unknown),
            (0x71e, DataOrigin::Remote),
            (0x1e | 1 << 19, DataOrigin::Cache),
            (0x1e | 1 << 19 | 1 << 20, DataOrigin::Unknown),
            (0x02, DataOrigin::Unknown),
        ] {
            assert_eq!(level(events), want, "{events:#x}");
        }
    }

    #[test]
    fn a_known_processors_number_is_believed_for_loads_alone() {
        let load = SpeRecord {
            operation: Some((1, 0)),
            data: Some(0x1000),
            events: Some(0x31e),
            source: Some(0xd),
            ..SpeRecord::default()
        };
        let level = |r: SpeRecord, model| r.sample(model, any).unwrap().source.level();
        assert_eq!(level(load, ProcessorModel::Neoverse), DataOrigin::Remote);
        assert_eq!(
            level(SpeRecord { source: Some(0xe), ..load }, ProcessorModel::Neoverse),
            DataOrigin::LocalMemory
        );
        assert_eq!(
            level(SpeRecord { source: Some(0x8), ..load }, ProcessorModel::Neoverse),
            DataOrigin::Cache
        );
        assert_eq!(
            level(SpeRecord { source: Some(0x77), ..load }, ProcessorModel::Neoverse),
            DataOrigin::Unknown
        );
        assert_eq!(level(load, ProcessorModel::Other), DataOrigin::Unknown);
        assert_eq!(
            level(SpeRecord { operation: Some((1, 1)), ..load }, ProcessorModel::Neoverse),
            DataOrigin::Unknown
        );
    }

    #[test]
    fn processors_are_known_by_their_register() {
        for (text, want) in [
            ("0x00000000413fd0c1\n", ProcessorModel::Neoverse),
            ("0x00000000410fd4f0", ProcessorModel::Neoverse),
            ("0x00000000481fd010", ProcessorModel::Other),
            ("0x00000000c00fac30", ProcessorModel::Other),
            ("", ProcessorModel::Other),
            ("nothing", ProcessorModel::Other),
        ] {
            assert_eq!(ProcessorModel::from_midr(text), want, "{text}");
        }
        assert_eq!(ProcessorModel::of(Path::new("/nowhere"), 3), ProcessorModel::Other);
    }
}
