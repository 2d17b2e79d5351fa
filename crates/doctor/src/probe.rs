//! What there is, as plain data. System calls are tried, on own memory: what a container says it
//! forbids is seldom what it forbids. Probing stands in front of signals and opens descriptors, so
//! it happens in a process of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use homenode_runtime::moving::{self, MovingOptions};
use homenode_runtime::nodes::Nodes;
use homenode_sys::uffd::{Features, Uffd};
use serde::{Deserialize, Serialize};

use homenode_error::{Context, Error, Result};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// Kernel release.
    pub kernel: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// `vendor_id` of the CPU, or its implementer.
    pub vendor: String,
    /// Nodes that may be used.
    pub nodes: Vec<ProbedNode>,
    /// What is hidden of the nodes, a sentence each.
    pub hidden: Vec<String>,
    /// The chosen word of `transparent_hugepage/enabled`.
    pub huge_pages: Option<String>,
    /// `kernel.numa_balancing`.
    pub numa_balancing: Option<i64>,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Option<i64>,
    /// `vm.max_map_count`.
    pub max_map_count: Option<i64>,
    /// Names of PMUs in `/sys/bus/event_source/devices`, those that sample addresses.
    pub address_sampling: Vec<String>,
    /// What opening an event of the PMU said; absent: it opened.
    pub cycles: Option<String>,
    /// What opening an event of the kernel said; absent: it opened.
    pub page_faults: Option<String>,
    /// What userfaultfd offers, in words; or what the system said.
    pub userfaultfd: std::result::Result<Vec<String>, String>,
    /// How `homenode run` would do next touch.
    pub mechanism: String,
    /// What better mechanisms lack, as `homenode run` found it.
    pub reasons: Vec<String>,
    /// The kernel moves pages for this process.
    pub kernel_moves: bool,
    /// Huge pages can be brought back.
    pub collapse: bool,
    /// Where the live library is.
    pub library: std::result::Result<String, String>,
    /// OpenMP libraries of the system.
    pub openmp: Vec<String>,
    /// OpenMP libraries in Python packages.
    pub wheels: Vec<String>,
    /// The launcher of jobs that this runs under.
    pub under: Option<String>,
    /// QEMU's version.
    pub qemu: std::result::Result<String, String>,
    /// The lab's kernel, if one is here already.
    pub guest_kernel: Option<String>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedNode {
    /// The kernel's number.
    pub number: u16,
    /// CPUs that may be used.
    pub cpus: usize,
    /// MiB of memory that may be used.
    pub mib: u64,
    /// MiB of it that are free.
    pub free_mib: u64,
}

/// Probes in a process of its own: `homenode doctor --probe`, of the command at this path.
///
/// # Errors
/// It cannot be started, or died.
pub fn in_child(homenode: &Path) -> Result<Probes> {
    let failed = || "cannot probe this machine".to_owned();
    let mut child = Command::new(homenode);
    child.args(["doctor", "--probe"]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = child.output().context(failed)?;
    if !output.status.success() {
        return Err(Error::failed(failed())
            .tried(format!("homenode doctor --probe: {}", output.status))
            .hint("please report this: probing is meant to harm nothing"));
    }
    serde_json::from_slice(&output.stdout).context(failed)
}

/// Probes here. Afterwards this process is good for nothing else.
pub fn here() -> Probes {
    let nodes = Nodes::here();
    let number = |path: &str| read(path)?.parse().ok();
    // The very function that the library in the program calls.
    let started = moving::start(&MovingOptions::default());
    let refused = |what| homenode_sys::probe::perf(what).err().map(|e| e.to_string());
    Probes {
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        vendor: vendor(&read("/proc/cpuinfo").unwrap_or_default()),
        nodes: nodes
            .usable()
            .into_iter()
            .map(|n| ProbedNode {
                number: n.0,
                cpus: nodes.cpus(n).len(),
                mib: nodes.memory(n).0 >> 20,
                free_mib: nodes.free(n).0 >> 20,
            })
            .collect(),
        hidden: nodes.hidden.clone(),
        huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|t| chosen(&t)),
        numa_balancing: number("/proc/sys/kernel/numa_balancing"),
        paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
        max_map_count: number("/proc/sys/vm/max_map_count"),
        address_sampling: address_sampling(Path::new("/sys/bus/event_source/devices")),
        cycles: refused(homenode_sys::probe::Counted::Cycles),
        page_faults: refused(homenode_sys::probe::Counted::PageFaults),
        userfaultfd: userfaultfd(),
        mechanism: started.mechanism.name().to_owned(),
        reasons: started.reasons,
        kernel_moves: started.kernel_moves,
        collapse: moving::can_make_huge_pages(),
        library: homenode_launch::places::live_library()
            .map(|p| p.display().to_string())
            .map_err(|e| e.to_string().replace('\n', ";")),
        openmp: openmp(),
        wheels: super::wheels::copies(&super::wheels::folders(None)),
        under: super::launcher::under(&|name| std::env::var(name).ok()),
        qemu: homenode_lab::qemu::Qemu::find(None)
            .map(|q| format!("{}.{}", q.version.0, q.version.1))
            .map_err(|e| e.message),
        guest_kernel: homenode_lab::kernel::present().map(|p| p.display().to_string()),
    }
}

/// Features that homenode has a use for, by the kernel's names.
const FEATURES: [(Features, &str); 6] = [
    (Features::SIGBUS, "SIGBUS"),
    (Features::EVENT_REMAP, "EVENT_REMAP"),
    (Features::EVENT_REMOVE, "EVENT_REMOVE"),
    (Features::EVENT_UNMAP, "EVENT_UNMAP"),
    (Features::WP_ASYNC, "WP_ASYNC"),
    (Features::MOVE, "MOVE"),
];

fn userfaultfd() -> std::result::Result<Vec<String>, String> {
    let offered = Uffd::offered().map_err(|e| e.to_string())?;
    Ok(FEATURES.iter().filter(|(f, _)| offered.has(*f)).map(|(_, name)| (*name).to_owned()).collect())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|t| t.trim().to_owned())
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn vendor(cpuinfo: &str) -> String {
    let value = |key: &str| {
        cpuinfo.lines().find_map(|l| {
            let (k, v) = l.split_once(':')?;
            (k.trim() == key).then(|| v.trim().to_owned())
        })
    };
    value("vendor_id").or_else(|| value("CPU implementer").map(|i| format!("Arm {i}"))).unwrap_or_default()
}

/// PMUs that sample addresses: Intel's `mem-loads`, AMD's IBS, Arm's SPE.
fn address_sampling(devices: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in fs::read_dir(devices).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let intel = (name == "cpu" || name == "cpu_core") && entry.path().join("events/mem-loads").exists();
        let has = |file: &str| entry.path().join(file).exists();
        if intel {
            // Since Sapphire Rapids loads are sampled in a group behind a leader.
            let leader = if has("events/mem-loads-aux") { " (behind mem-loads-aux)" } else { "" };
            found.push(format!("{name}/mem-loads{leader}"));
        } else if name == "ibs_op" {
            // Plain users may sample their own programs where the kernel filters.
            found.push(if has("format/swfilt") { "ibs_op (swfilt)".into() } else { name });
        } else if name.starts_with("arm_spe_") {
            // One for each kind of core.
            let cpus = fs::read_to_string(entry.path().join("cpumask")).unwrap_or_default();
            found.push(match cpus.trim() {
                "" => name,
                cpus => format!("{name} (CPUs {cpus})"),
            });
        }
    }
    found.sort();
    found
}

/// OpenMP libraries that the loader knows.
fn openmp() -> Vec<String> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib"];
    let mut found: Vec<String> = Vec::new();
    for folder in folders {
        for name in ["libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"] {
            let path = Path::new(folder).join(name);
            if path.exists() {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_vendors_are_read() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("always"), None);
        assert_eq!(vendor("processor\t: 0\nvendor_id\t: AuthenticAMD\n"), "AuthenticAMD");
        assert_eq!(vendor("CPU implementer\t: 0x41\n"), "Arm 0x41");
    }

    #[test]
    fn address_sampling_is_found_by_name() {
        let dir = std::env::temp_dir().join(format!("homenode-pmus-{}", std::process::id()));
        for name in ["cpu/events/mem-loads", "ibs_op", "ibs_fetch", "software", "arm_spe_0"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        assert_eq!(address_sampling(&dir), ["arm_spe_0", "cpu/mem-loads", "ibs_op"]);
        for name in ["cpu/events/mem-loads-aux", "ibs_op/format/swfilt"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        fs::write(dir.join("arm_spe_0/cpumask"), "0-3,8\n").unwrap();
        let now = address_sampling(&dir);
        let want = ["arm_spe_0 (CPUs 0-3,8)", "cpu/mem-loads (behind mem-loads-aux)", "ibs_op (swfilt)"];
        assert_eq!(now, want);
        fs::remove_dir_all(dir).unwrap();
    }
}
