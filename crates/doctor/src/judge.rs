//! What follows from what was found. A pure function: fixtures stand for machines that nobody here
//! has.

use super::probe::Probes;

/// How well something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Works,
    /// Less well than it might.
    Less,
    /// Not at all.
    No,
}

impl Health {
    /// As a word of the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Less => "less well",
            Self::No => "no",
        }
    }
}

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What it is about.
    pub topic: &'static str,
    /// How well it works.
    pub state: Health,
    /// What was found, and what follows.
    pub text: String,
    /// What to change: the exact command, where there is one. Empty: nothing.
    pub remedy: String,
}

impl Judgement {
    /// Something.
    pub fn new(
        topic: &'static str,
        state: Health,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { topic, state, text: text.into(), remedy: remedy.into() }
    }

    /// Something that needs no change.
    pub fn works(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Health::Works, text, "")
    }
}

/// All findings of a machine, what matters most first.
pub fn findings(p: &Probes) -> Vec<Judgement> {
    let mut all = vec![Judgement::works("kernel", format!("Linux {} on {}", p.kernel, p.architecture))];
    if p.architecture != "x86_64" {
        let text = format!("the live runtime is written for x86_64, not {}", p.architecture);
        all.push(Judgement::new("architecture", Health::No, text, "simulate instead: homenode compare"));
    }
    all.push(nodes(p));
    all.extend(p.hidden.iter().map(|h| {
        Judgement::new(
            "cpuset",
            Health::Less,
            h.clone(),
            "start it with more: numactl --all, or a wider cpuset",
        )
    }));
    all.push(library(p));
    all.push(moves(p));
    all.push(next_touch(p));
    all.push(userfaultfd(p));
    all.push(huge_pages(p));
    all.push(balancing(p));
    all.push(sampling(p));
    all.push(faults(p));
    all.push(mappings(p));
    all.push(openmp(p));
    all.extend(wheels(p));
    all.push(under(p));
    all.extend(lab(p));
    all
}

/// Nodes that can hold pages.
fn with_memory(p: &Probes) -> usize {
    p.nodes.iter().filter(|n| n.mib > 0).count()
}

fn nodes(p: &Probes) -> Judgement {
    let list: Vec<String> = p
        .nodes
        .iter()
        .map(|n| format!("{}: {} CPUs, {} MiB, {} free", n.number, n.cpus, n.mib, n.free_mib))
        .collect();
    let list = list.join("; ");
    match with_memory(p) {
        0 | 1 => Judgement::new(
            "nodes",
            Health::Less,
            format!("one node with memory ({list}): there is nowhere to move pages to"),
            "try everything out: homenode run --pretend-nodes 2 -- APP, or homenode lab run -- APP",
        ),
        n => Judgement::works("nodes", format!("{n} nodes with memory ({list})")),
    }
}

fn library(p: &Probes) -> Judgement {
    match &p.library {
        Ok(path) => Judgement::works("library", path.clone()),
        Err(why) => {
            Judgement::new("library", Health::No, why.clone(), "cargo build --release, or make install")
        }
    }
}

/// What homenode run said of something, for a sentence.
fn reason<'a>(p: &'a Probes, begin: &str) -> &'a str {
    p.reasons.iter().find(|r| r.starts_with(begin)).map_or("", String::as_str)
}

fn moves(p: &Probes) -> Judgement {
    let (moves, policies) = ("pages cannot be moved", "policies of memory cannot be set");
    let forbidden: Vec<&str> =
        [moves, policies].iter().map(|b| reason(p, b)).filter(|r| !r.is_empty()).collect();
    if forbidden.is_empty() {
        return Judgement::works("move_pages, mbind", "the kernel moves pages and takes policies of memory");
    }
    Judgement::new(
        "move_pages, mbind",
        Health::Less,
        forbidden.join("; "),
        "a container: docker run --cap-add SYS_NICE --security-opt seccomp=unconfined …",
    )
}

/// Blocks would be copied where a person says that the program is one for it.
fn copies_if_asked(p: &Probes) -> bool {
    !reason(p, "blocks were not copied").is_empty()
}

fn next_touch(p: &Probes) -> Judgement {
    let lacking = reason(p, "no user-space page faults");
    match p.mechanism.as_str() {
        "userfaultfd" => Judgement::works("next touch", "by userfaultfd"),
        "none" if copies_if_asked(p) => Judgement::new(
            "next touch",
            Health::Less,
            format!("by copied blocks, and only where 'homenode run --copy-unseen' allows it; {lacking}"),
            "a container: docker run --security-opt seccomp=unconfined …",
        ),
        "none" => Judgement::new(
            "next touch",
            Health::No,
            format!("there is no mechanism: {}", p.reasons.join("; ")),
            "a container: docker run --security-opt seccomp=unconfined …",
        ),
        other => Judgement::new(
            "next touch",
            Health::Less,
            format!("by {other}, which bring 2 MiB at a time; {lacking}"),
            "sudo sysctl vm.unprivileged_userfaultfd=1; a container: --security-opt seccomp=unconfined",
        ),
    }
}

fn userfaultfd(p: &Probes) -> Judgement {
    let features = match &p.userfaultfd {
        Ok(features) => features,
        Err(why) => {
            return Judgement::new(
                "userfaultfd",
                Health::Less,
                why.clone(),
                "sudo sysctl vm.unprivileged_userfaultfd=1; a container: --security-opt seccomp=unconfined",
            );
        }
    };
    let has = |f: &str| features.iter().any(|x| x == f);
    let text = features.join(", ");
    let lacking: Vec<&str> = [
        ("SIGBUS", "SIGBUS: next touch cannot use it"),
        ("MOVE", "MOVE (Linux 6.8): untouched pages go back by mremap"),
        ("WP_ASYNC", "WP_ASYNC (Linux 6.7): writers are not watched that way"),
    ]
    .into_iter()
    .filter(|(f, _)| !has(f))
    .map(|(_, why)| why)
    .collect();
    match lacking.is_empty() {
        true => Judgement::works("userfaultfd", text),
        false => Judgement::new(
            "userfaultfd",
            Health::Less,
            format!("{text}; without {}", lacking.join(", without ")),
            "a kernel from 6.8 on",
        ),
    }
}

fn huge_pages(p: &Probes) -> Judgement {
    match p.huge_pages.as_deref() {
        Some("never") | None => Judgement::new(
            "huge pages",
            Health::Less,
            "transparent huge pages are off: more page-table walks, more pages to move",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(word) if p.collapse => {
            Judgement::works("huge pages", format!("{word}, and brought back after moves"))
        }
        Some(word) => Judgement::new(
            "huge pages",
            Health::Less,
            format!(
                "{word}, but what next touch splits is not put together again (MADV_COLLAPSE, Linux 6.1)"
            ),
            "a newer kernel, or one with free huge pages",
        ),
    }
}

fn balancing(p: &Probes) -> Judgement {
    match p.numa_balancing {
        Some(0) | None => {
            Judgement::works("numa_balancing", "off: the kernel moves no pages behind homenode's back")
        }
        Some(_) => Judgement::new(
            "numa_balancing",
            Health::Less,
            "on: the kernel moves pages, too, and samples by faults of its own",
            "sudo sysctl kernel.numa_balancing=0",
        ),
    }
}

fn sampling(p: &Probes) -> Judgement {
    let paranoid = p.paranoid.map_or_else(|| "not known".into(), |n| n.to_string());
    let (means, remedy) = sampler(&p.vendor);
    if p.address_sampling.is_empty() {
        let why =
            p.cycles.clone().unwrap_or_else(|| "the PMU counts, but names no event with addresses".into());
        return Judgement::new(
            "address sampling",
            Health::Less,
            format!("{means} of this processor ({}) is not there: {why}", p.vendor),
            remedy,
        );
    }
    let events = format!("{means}: {}", p.address_sampling.join(", "));
    match &p.cycles {
        None => Judgement::works("address sampling", format!("{events}, perf_event_paranoid {paranoid}")),
        Some(why) => Judgement::new(
            "address sampling",
            Health::Less,
            format!("{events} is there and not allowed, perf_event_paranoid {paranoid}: {why}"),
            "sudo sysctl kernel.perf_event_paranoid=2",
        ),
    }
}

/// How a vendor's processors sample addresses, and what to do where that is not offered.
fn sampler(vendor: &str) -> (&'static str, &'static str) {
    if vendor.contains("Intel") {
        (
            "Intel's PEBS (mem-loads)",
            "on a virtual machine nothing but a host that passes the PMU on; else a kernel of this processor's age",
        )
    } else if vendor.contains("AMD") || vendor.contains("Hygon") {
        (
            "AMD's IBS (ibs_op)",
            "IBS is not passed on to virtual machines; else enable it in the firmware's settings of the CPU",
        )
    } else if vendor.starts_with("Arm") {
        (
            "Arm's SPE (arm_spe_0)",
            "sudo modprobe arm_spe_pmu; it takes firmware that gives SPE to the kernel, and kpti=off on the kernel's line",
        )
    } else {
        ("a PMU with addresses", "nothing is known of this vendor")
    }
}

fn faults(p: &Probes) -> Judgement {
    match &p.page_faults {
        None => Judgement::works("perf_event_open", "events of the kernel can be opened"),
        Some(why) => Judgement::new(
            "perf_event_open",
            Health::Less,
            format!("events of the kernel cannot be opened: {why}"),
            "sudo sysctl kernel.perf_event_paranoid=2; a container: docker run --cap-add PERFMON …",
        ),
    }
}

/// Mappings that a process may have on a stock kernel.
const STOCK_MAPPINGS: i64 = 65_530;

fn mappings(p: &Probes) -> Judgement {
    match p.max_map_count {
        // userfaultfd splits no mappings.
        Some(n) if n < STOCK_MAPPINGS && p.mechanism != "userfaultfd" => Judgement::new(
            "max_map_count",
            Health::Less,
            format!("{n}: protected blocks split mappings, two a block"),
            format!("sudo sysctl vm.max_map_count={STOCK_MAPPINGS}"),
        ),
        Some(n) => Judgement::works("max_map_count", n.to_string()),
        None => Judgement::new("max_map_count", Health::Less, "not readable", "mount /proc"),
    }
}

fn openmp(p: &Probes) -> Judgement {
    if p.openmp.is_empty() {
        let text = "no OpenMP library in the system's folders: programs bring their own, or have none";
        return Judgement::new("OpenMP", Health::Less, text, "sudo apt-get install libgomp1 libomp5");
    }
    Judgement::works("OpenMP", p.openmp.join(", "))
}

/// Copies that Python packages bring along.
fn wheels(p: &Probes) -> Option<Judgement> {
    let text = match &p.wheels[..] {
        [] => return None,
        [one] => format!("{one}: a copy of a Python package's own, seen at its entries like the system's"),
        many => format!(
            "{} copies of Python packages' own: {}; each library's calls go on to the copy that it was linked with",
            many.len(),
            many.join(", ")
        ),
    };
    Some(Judgement::works("OpenMP of Python", text))
}

/// What launched this.
fn under(p: &Probes) -> Judgement {
    let text = match &p.under {
        Some(under) => format!("{under}: each rank has a homenode of its own"),
        None => "by no launcher of jobs".into(),
    };
    Judgement::works("launched", text)
}

fn lab(p: &Probes) -> [Judgement; 2] {
    let qemu = match &p.qemu {
        Ok(version) => Judgement::works("lab: QEMU", version.clone()),
        Err(why) => {
            Judgement::new("lab: QEMU", Health::Less, why.clone(), "sudo apt-get install qemu-system-x86")
        }
    };
    let kernel = match &p.guest_kernel {
        Some(path) => Judgement::works("lab: kernel", path.clone()),
        None => Judgement::new(
            "lab: kernel",
            Health::Less,
            "none here yet: the first 'homenode lab run' fetches one",
            "homenode lab run -- true",
        ),
    };
    [qemu, kernel]
}

/// What `homenode run` would use, in a sentence, and whether it can do its job.
pub fn run(p: &Probes, of_app: &[Judgement]) -> (String, bool) {
    let stops: Vec<&str> =
        findings(p).iter().chain(of_app).filter(|f| f.state == Health::No).map(|f| f.topic).collect();
    if !stops.is_empty() {
        return (
            format!("'homenode run' would run the program as it is; what stops it: {}", stops.join(", ")),
            false,
        );
    }
    if with_memory(p) < 2 {
        return ("'homenode run' would run the program as it is: one node, nothing to move".into(), false);
    }
    if p.mechanism == "none" && !p.kernel_moves {
        return (
            "'homenode run' would run the program as it is, unless --copy-unseen lets it copy blocks".into(),
            false,
        );
    }
    let moves = if p.kernel_moves { "known places by move_pages" } else { "no moves by the kernel" };
    (format!("'homenode run' would move pages by next touch ({}) and {moves}", p.mechanism), true)
}

#[cfg(test)]
mod tests {
    use super::super::probe::ProbedNode;
    use super::*;

    /// A two-socket machine on which everything is allowed.
    fn server(vendor: &str, sampling: &str) -> Probes {
        let node = |number| ProbedNode { number, cpus: 64, mib: 256 << 10, free_mib: 200 << 10 };
        Probes {
            kernel: "6.12.0".into(),
            architecture: "x86_64".into(),
            vendor: vendor.into(),
            nodes: vec![node(0), node(1)],
            huge_pages: Some("madvise".into()),
            numa_balancing: Some(0),
            paranoid: Some(2),
            max_map_count: Some(65_530),
            address_sampling: vec![sampling.into()],
            userfaultfd: Ok(["SIGBUS", "EVENT_REMAP", "EVENT_REMOVE", "EVENT_UNMAP", "WP_ASYNC", "MOVE"]
                .map(str::to_owned)
                .into()),
            wheels: Vec::new(),
            under: None,
            mechanism: "userfaultfd".into(),
            kernel_moves: true,
            collapse: true,
            library: Ok("/usr/lib/homenode/libhomenode.so".into()),
            openmp: vec!["/usr/lib/libgomp.so.1".into()],
            qemu: Ok("7.2".into()),
            guest_kernel: Some("/boot/vmlinuz-6.1".into()),
            hidden: Vec::new(),
            cycles: None,
            page_faults: None,
            reasons: Vec::new(),
        }
    }

    fn of<'a>(all: &'a [Judgement], topic: &str) -> &'a Judgement {
        all.iter().find(|f| f.topic == topic).unwrap_or_else(|| panic!("no {topic} in {all:?}"))
    }

    #[test]
    fn a_server_with_everything_needs_nothing() {
        for (vendor, sampling) in [("GenuineIntel", "cpu/mem-loads"), ("AuthenticAMD", "ibs_op")] {
            let p = server(vendor, sampling);
            let all = findings(&p);
            assert!(all.iter().all(|f| f.state == Health::Works && f.remedy.is_empty()), "{all:?}");
            assert!(of(&all, "address sampling").text.contains(sampling), "{all:?}");
            let (text, does) = run(&p, &[]);
            assert!(does);
            assert!(text.contains("next touch (userfaultfd) and known places by move_pages"), "{text}");
        }
    }

    #[test]
    fn each_vendor_samples_in_its_own_way() {
        for (vendor, means, remedy) in [
            ("GenuineIntel", "Intel's PEBS", "virtual machine"),
            ("AuthenticAMD", "AMD's IBS", "firmware"),
            ("Arm 0x41", "Arm's SPE", "modprobe arm_spe_pmu"),
            ("Centaur", "a PMU", "nothing"),
        ] {
            let mut p = server(vendor, "x");
            assert!(of(&findings(&p), "address sampling").text.starts_with(means));
            p.address_sampling.clear();
            let all = findings(&p);
            let f = of(&all, "address sampling");
            assert!(f.state == Health::Less && f.remedy.contains(remedy), "{f:?}");
        }
    }

    #[test]
    fn what_userfaultfd_lacks_is_named() {
        let mut p = server("GenuineIntel", "x");
        p.userfaultfd = Ok(vec!["SIGBUS".into(), "EVENT_REMAP".into()]);
        let all = findings(&p);
        let f = of(&all, "userfaultfd");
        assert!(f.state == Health::Less && f.text.contains("without MOVE (Linux 6.8)"), "{f:?}");
        p.userfaultfd = Err("userfaultfd: not permitted (EPERM)".into());
        let all = findings(&p);
        let f = of(&all, "userfaultfd");
        assert!(f.text.contains("EPERM") && f.remedy.contains("unprivileged_userfaultfd=1"), "{f:?}");
    }

    #[test]
    fn copies_of_wheels_and_the_launcher_are_told() {
        let mut p = server("GenuineIntel", "x");
        assert!(!findings(&p).iter().any(|f| f.topic == "OpenMP of Python"));
        p.wheels = vec!["a.libs/libgomp-1.so".into(), "b.libs/libgomp-2.so".into()];
        p.under = Some("rank 2 of 4 of Open MPI".into());
        let all = findings(&p);
        assert!(of(&all, "OpenMP of Python").text.starts_with("2 copies"));
        assert!(of(&all, "launched").text.starts_with("rank 2 of 4 of Open MPI"));
    }

    #[test]
    fn arm_has_sampling_and_no_live_runtime() {
        let p = Probes { architecture: "aarch64".into(), ..server("Arm 0x41", "arm_spe_0") };
        let all = findings(&p);
        assert_eq!(of(&all, "address sampling").state, Health::Works);
        assert_eq!(of(&all, "architecture").state, Health::No);
        assert!(!run(&p, &[]).1);
    }

    #[test]
    fn a_container_that_forbids_node_calls_copies_when_asked() {
        let forbidden = "not permitted (EPERM)";
        let p = Probes {
            mechanism: "none".into(),
            kernel_moves: false,
            reasons: vec![
                format!("pages cannot be moved by the kernel: move_pages (query): {forbidden}"),
                format!("policies of memory cannot be set: mbind of 0x0-0x1000: {forbidden}"),
                format!("no user-space page faults: userfaultfd: {forbidden}"),
                "blocks were not copied: nothing tells of a munmap (--copy-unseen, …)".into(),
            ],
            cycles: Some(format!("perf_event_open: {forbidden}")),
            page_faults: Some(format!("perf_event_open: {forbidden}")),
            ..server("GenuineIntel", "cpu/mem-loads")
        };
        let all = findings(&p);
        for topic in ["move_pages, mbind", "next touch", "address sampling", "perf_event_open"] {
            assert_eq!(of(&all, topic).state, Health::Less, "{topic}");
        }
        assert!(of(&all, "move_pages, mbind").remedy.contains("--cap-add SYS_NICE"));
        assert!(of(&all, "next touch").text.contains("userfaultfd: not permitted"));
        let (text, does) = run(&p, &[]);
        assert_eq!((does, text.contains("--copy-unseen")), (false, true), "{text}");
    }

    #[test]
    fn one_node_no_pmu_no_qemu_and_no_library_are_told_with_remedies() {
        let mut p = server("GenuineIntel", "x");
        p.nodes.truncate(1);
        p.address_sampling.clear();
        p.cycles = Some("perf_event_open: no such thing (ENOENT)".into());
        p.qemu = Err("the lab needs QEMU".into());
        p.numa_balancing = Some(1);
        p.huge_pages = Some("never".into());
        let all = findings(&p);
        for topic in ["nodes", "address sampling", "lab: QEMU", "numa_balancing", "huge pages"] {
            let f = of(&all, topic);
            assert!(f.state == Health::Less && !f.remedy.is_empty(), "{f:?}");
        }
        assert!(!run(&p, &[]).1);
        p = server("GenuineIntel", "x");
        p.library = Err("cannot find the live runtime".into());
        let (text, does) = run(&p, &[]);
        assert_eq!((does, text.ends_with("library")), (false, true), "{text}");
    }

    #[test]
    fn what_stops_a_program_stops_run() {
        let p = server("AuthenticAMD", "ibs_op");
        let finding = Judgement::new("loading", Health::No, "app is static", "");
        assert!(!run(&p, &[finding]).1);
    }

    /// The page for administrators names what doctor tells its users to do.
    #[test]
    fn the_page_of_permissions_has_every_remedy_for_an_administrator() {
        let page = include_str!("../../../docs/permissions.md");
        let forbidden = || "not permitted (EPERM)".to_owned();
        let bare = |vendor: &str| Probes {
            mechanism: "none".into(),
            kernel_moves: false,
            reasons: ["pages cannot be moved: x", "policies of memory cannot be set: x"]
                .map(Into::into)
                .into(),
            numa_balancing: Some(1),
            huge_pages: Some("never".into()),
            max_map_count: Some(1000),
            address_sampling: Vec::new(),
            userfaultfd: Err(forbidden()),
            cycles: Some(forbidden()),
            page_faults: Some(forbidden()),
            openmp: Vec::new(),
            qemu: Err("the lab needs QEMU".into()),
            ..server(vendor, "x")
        };
        let sampled = Probes { address_sampling: vec!["ibs_op".into()], ..bare("AuthenticAMD") };
        let mut remedies = 0;
        for p in [bare("GenuineIntel"), bare("Arm 0x41"), sampled] {
            // A remedy is commands, with a container's behind the host's.
            for finding in findings(&p) {
                for part in finding.remedy.split("; ").map(|r| r.trim_start_matches("a container: ")) {
                    let command = part.trim_end_matches('…').trim();
                    let of_administrator =
                        ["sudo", "echo", "docker", "--"].iter().any(|word| command.starts_with(word));
                    let is_there =
                        command.split(" --").all(|words| page.contains(words.trim_start_matches("--")));
                    assert!(
                        !of_administrator || is_there,
                        "{}: '{command}' is not in the page",
                        finding.topic
                    );
                    remedies += usize::from(of_administrator);
                }
            }
        }
        assert!(remedies > 15, "{remedies}");
    }
}
