//! How a processor's address samples are asked for: what `/sys/bus/event_source/devices` says, as fields of an event.
//!
//! The kernel writes down for each PMU its number (`type`), its events as named fields (`events/mem-loads` holds
//! `event=0xcd,umask=0x1,ldlat=3`), and where in the event's three words each field goes (`format/ldlat` holds `config1:0-15`;
//! Documentation/ABI/testing/sysfs-bus-event_source-devices-format). So no processor's numbers are known here.

use std::fs;
use std::path::Path;

use homenode_sys::perf::{Fields, Kind, Rate, Spec};

/// Where the kernel lists its PMUs.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// How to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Which PMU and event, in words.
    pub name: String,
    /// What to open on each CPU.
    pub specs: Vec<Spec>,
    /// What has to lead the group, on processors that sample loads only beside it.
    pub leader: Option<Spec>,
}

/// Accesses from one sample to the next, before it is known what a sample costs; odd, so that it has no period with a loop of
/// the program's.
pub const PERIOD: u64 = 20_011;

/// The best that the devices of a folder offer.
///
/// # Errors
/// Why there is none, in words.
pub fn find(devices: &Path) -> Result<Encoding, String> {
    for pmu in ["cpu", "cpu_core"] {
        if devices.join(pmu).join("events/mem-loads").exists() {
            return intel(&Pmu::read(devices, pmu)?);
        }
    }
    if devices.join("ibs_op").exists() {
        return amd(&Pmu::read(devices, "ibs_op")?);
    }
    if devices.join("arm_spe_0").exists() {
        return Err("arm_spe_0 writes its samples to an AUX buffer, which this version does not read".into());
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
        // What precise event-based sampling needs for an address.
        spec.precise = 2;
    }
    Ok(Encoding { name: format!("{}/mem-loads,mem-stores", pmu.name), specs, leader })
}

fn amd(pmu: &Pmu<'_>) -> Result<Encoding, String> {
    // Instructions and not cycles are counted, where that can be chosen; the user's alone, where the kernel can leave out its own.
    let mut spec = pmu.spec();
    if pmu.has_format("cnt_ctl") {
        pmu.set(&mut spec, "cnt_ctl", 1)?;
    }
    if !pmu.has_format("swfilt") {
        return Err(
            "ibs_op samples the kernel, too, which plain users may not (no format/swfilt: Linux 6.13 has it)"
                .into(),
        );
    }
    pmu.set(&mut spec, "swfilt", 1)?;
    // The hardware counts in sixteens.
    spec.rate = Rate::Period(PERIOD & !15);
    Ok(Encoding { name: pmu.name.to_owned(), specs: vec![spec], leader: None })
}

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

    fn spec(&self) -> Spec {
        Spec {
            kind: Kind(self.number),
            config: 0,
            config1: 0,
            config2: 0,
            rate: Rate::Period(PERIOD),
            precise: 0,
            fields: Fields::ACCESS,
            user_only: true,
        }
    }

    fn has_event(&self, event: &str) -> bool {
        self.folder.join("events").join(event).exists()
    }

    fn has_format(&self, field: &str) -> bool {
        self.folder.join("format").join(field).exists()
    }

    /// An event by its name.
    fn event(&self, event: &str) -> Result<Spec, String> {
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

    /// Puts a field's value where the kernel says: `config1:0-15`, or several ranges, the value's low bits first.
    fn set(&self, spec: &mut Spec, field: &str, value: u64) -> Result<(), String> {
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

    #[test]
    fn loads_and_stores_of_an_older_xeon() {
        let e = find(&recorded("intel-skylake")).unwrap();
        assert_eq!((e.name.as_str(), e.leader), ("cpu/mem-loads,mem-stores", None));
        let [loads, stores] = &e.specs[..] else { panic!("{:?}", e.specs) };
        assert_eq!((loads.kind, loads.config, loads.config1), (Kind(4), 0x1cd, 3));
        assert_eq!((stores.config, stores.config1, stores.precise), (0x82d0, 0, 2));
    }

    #[test]
    fn later_xeons_want_another_event_to_lead() {
        let e = find(&recorded("intel-sapphire-rapids")).unwrap();
        assert_eq!(e.leader.map(|l| (l.config, l.precise)), Some((0x8203, 0)));
        assert_eq!((e.specs[0].config, e.specs[1].config), (0x1cd, 0x2cd));
    }

    #[test]
    fn the_large_cores_of_a_hybrid_processor_are_taken() {
        let e = find(&recorded("intel-hybrid")).unwrap();
        assert!(e.name.starts_with("cpu_core/"));
        assert_eq!(e.specs[0].kind, Kind(4));
    }

    #[test]
    fn amd_samples_for_plain_users_where_the_kernel_filters() {
        let e = find(&recorded("amd-zen4")).unwrap();
        let spec = e.specs[0];
        assert_eq!((spec.kind, spec.config, spec.config2), (Kind(11), 1 << 19, 1));
        assert_eq!(spec.rate, Rate::Period(20_000));
        let why = find(&recorded("amd-zen2")).unwrap_err();
        assert!(why.contains("swfilt"), "{why}");
    }

    #[test]
    fn what_is_not_there_or_makes_no_sense_is_said() {
        assert!(find(&recorded("arm-neoverse")).unwrap_err().contains("AUX buffer"));
        assert!(find(&recorded("none")).unwrap_err().starts_with("no PMU that samples addresses"));
        let why = find(&recorded("damaged")).unwrap_err();
        assert!(why.contains("config9:0-7") && why.contains("no place"), "{why}");
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
