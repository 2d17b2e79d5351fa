//! The machines of the papers and of today, embedded machine files from `presets/`.

use std::sync::OnceLock;

use crate::{Machine, MachineOrigin};

/// The papers' machines in the order of the papers, then today's.
const FILES: [(&str, &str); 9] = [
    ("sf15k", include_str!("../presets/sf15k.toml")),
    ("wildfire", include_str!("../presets/wildfire.toml")),
    ("origin2000", include_str!("../presets/origin2000.toml")),
    ("origin3000", include_str!("../presets/origin3000.toml")),
    ("smile", include_str!("../presets/smile.toml")),
    ("2s-xeon", include_str!("../presets/2s-xeon.toml")),
    ("epyc-nps4", include_str!("../presets/epyc-nps4.toml")),
    ("spr-snc4", include_str!("../presets/spr-snc4.toml")),
    ("cxl", include_str!("../presets/cxl.toml")),
];

/// A line of `machine list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetInfo {
    /// What to type.
    pub name: &'static str,
    /// One sentence.
    pub about: String,
    /// Nodes.
    pub nodes: usize,
    /// CPUs.
    pub cpus: usize,
}

/// All presets.
pub fn list() -> &'static [PresetInfo] {
    static LIST: OnceLock<Vec<PresetInfo>> = OnceLock::new();
    LIST.get_or_init(|| {
        FILES
            .iter()
            .filter_map(|(name, _)| {
                let m = preset(name)?;
                Some(PresetInfo {
                    name,
                    about: m.about,
                    nodes: m.topology.nodes.len(),
                    cpus: m.topology.cpus.len(),
                })
            })
            .collect()
    })
}

/// The preset called `name`, or `None`.
pub fn preset(name: &str) -> Option<Machine> {
    let (name, text) = FILES.iter().find(|(n, _)| *n == name)?;
    // A test reads every one, so a preset that ships is readable.
    Machine::from_toml(text, MachineOrigin::Preset(name)).ok()
}
