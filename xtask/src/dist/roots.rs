//! Clean roots of other distributions, in which an ordinary user tries each result without network.
//!
//! mmdebstrap makes a root: the base system, and what explaining a kernel takes. Roots of Ubuntu
//! need the keys of Ubuntu. Debian 13 has them as a package, so its root comes first.
//!
//! A root costs half a minute and 400 MB. With `HOMENODE_DIST_ROOTS=FOLDER`, roots are kept there
//! and used again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::base::{CommandResult, fresh, must, present, program, read};
use crate::testing;

/// The longest that a user waits for the first answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Length of a tick of the kernel's CPU times.
const MILLISECONDS: u64 = 10;
/// An ordinary user's numbers: Debian's nobody and nogroup.
pub const NOBODY: &str = "65534:65534";
/// Where the ordinary user's files lie in a root.
pub const HOME: &str = "/var/tmp/user";
/// The variable that names a folder for roots.
const KEPT: &str = "HOMENODE_DIST_ROOTS";
/// Keys of Ubuntu, on this machine or in a root.
const UBUNTU_KEYS: &str = "usr/share/keyrings/ubuntu-archive-keyring.gpg";
/// What `explain kernel:heat` takes.
const TOOLS: &str = "gcc,libc6-dev,cmake,make";

/// A distribution.
pub struct LinuxDistribution {
    /// mmdebstrap's name of it.
    suite: &'static str,
    /// A person's.
    name: &'static str,
    /// Packages beside the tools, each with a comma before it.
    more: &'static str,
    /// What can be installed there.
    takes: &'static [Artefact],
}

/// What is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artefact {
    /// The binary tarball.
    Tarball,
    /// The Debian package.
    Deb,
    /// The wheel.
    Wheel,
}

const ALL: &[Artefact] = &[Artefact::Tarball, Artefact::Deb, Artefact::Wheel];

/// The distribution with the oldest glibc.
const OLDEST: &str = "bionic";

/// The oldest comes last.
const DISTRIBUTIONS: &[LinuxDistribution] = &[
    LinuxDistribution {
        suite: "trixie",
        name: "Debian 13",
        more: ",python3-venv,ubuntu-keyring",
        takes: ALL,
    },
    LinuxDistribution { suite: "bookworm", name: "Debian 12", more: ",python3-venv", takes: ALL },
    LinuxDistribution { suite: "noble", name: "Ubuntu 24.04", more: ",python3-venv", takes: ALL },
    LinuxDistribution { suite: "jammy", name: "Ubuntu 22.04", more: ",python3-venv", takes: ALL },
    // It has glibc 2.27, Python 3.6, no package libgcc-s1, and a gcc that homenode-cc cannot use.
    LinuxDistribution { suite: "bionic", name: "Ubuntu 18.04", more: "", takes: &[Artefact::Tarball] },
];

impl LinuxDistribution {
    fn is_ubuntu(&self) -> bool {
        self.name.starts_with("Ubuntu")
    }
}

/// What is tried.
pub struct ReleaseFiles {
    /// The binary tarball.
    pub tarball: PathBuf,
    /// The Debian package.
    pub deb: PathBuf,
    /// The wheel.
    pub wheel: PathBuf,
    /// Words behind the command.
    pub words: &'static [&'static str],
    /// What the answer holds.
    pub answer: &'static str,
}

/// Why no clean root can be made here, if none can.
pub fn impossible() -> Option<&'static str> {
    let can = present("mmdebstrap") && read(program("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    (!can).then_some("clean roots take root's rights and the package mmdebstrap")
}

/// The folder for roots: the one that the user names, or one for this run.
pub fn place(folder: &Path) -> PathBuf {
    std::env::var_os(KEPT).map_or_else(|| folder.with_file_name("roots"), PathBuf::from)
}

/// Tries everything in the root of one distribution; a root that cannot be made is skipped, and the
/// reason is told.
pub fn part(suite: &str, folder: &Path, results: &ReleaseFiles) -> CommandResult {
    let distribution = DISTRIBUTIONS.iter().find(|d| d.suite == suite).ok_or("there is no such root")?;
    if let Some(why) = impossible() {
        testing::skipped("dist", why);
        return Ok(());
    }
    let roots = place(folder);
    let root = roots.join(distribution.suite);
    if let Err(why) = make(distribution, &root, &roots) {
        testing::skipped("dist", &format!("no clean {}: {why}", distribution.name));
        return Ok(());
    }
    for artefact in distribution.takes {
        try_one(distribution, &root, *artefact, results)?;
    }
    if std::env::var_os(KEPT).is_none() && !distribution.more.contains("ubuntu-keyring") {
        must(program("rm").args(["--recursive", "--one-file-system"]).arg(&root))?;
    }
    Ok(())
}

/// Makes a root, if it is not there.
fn make(distribution: &LinuxDistribution, root: &Path, roots: &Path) -> CommandResult {
    if root.join("usr/bin/gcc").exists() {
        return Ok(());
    }
    fs::create_dir_all(roots).map_err(|e| format!("{}: {e}", roots.display()))?;
    let mut words = program("mmdebstrap");
    let include = format!("--include={TOOLS}{}", distribution.more);
    words.args(["--quiet", "--variant=minbase", &include]);
    if distribution.is_ubuntu() {
        let places = [Path::new("/").join(UBUNTU_KEYS), roots.join("trixie").join(UBUNTU_KEYS)];
        let keys =
            places.iter().find(|p| p.is_file()).ok_or("its keys are not here: package ubuntu-keyring")?;
        words.arg("--components=main,universe").arg(format!("--keyring={}", keys.display()));
    }
    must(words.arg(distribution.suite).arg(root)).inspect_err(|_| {
        let _ = fs::remove_dir_all(root);
    })
}

/// A command in a root, without network, of root or of an ordinary user.
pub fn inside(root: &Path, user: Option<&str>) -> Command {
    let mut chroot = program("unshare");
    chroot.args(["--mount", "--net"]);
    entered(chroot, root, user)
}

/// The same with the network of this machine.
pub fn with_network(root: &Path) -> Command {
    let mut chroot = program("unshare");
    chroot.arg("--mount");
    entered(chroot, root, None)
}

fn entered(mut chroot: Command, root: &Path, user: Option<&str>) -> Command {
    // A command finds its files by /proc; the mount goes with the process.
    let mount = "mount -t proc proc \"$0/proc\" && mount -t sysfs sys \"$0/sys\" && exec chroot \"$@\"";
    chroot.args(["sh", "-c", mount]).arg(root);
    if let Some(user) = user {
        chroot.arg(format!("--userspec={user}"));
    }
    chroot.arg(root).args([
        "/usr/bin/env",
        "-i",
        &format!("HOME={HOME}"),
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    ]);
    chroot
}

/// Installs one result, and has it explain a kernel within [`PATIENCE`].
fn try_one(
    distribution: &LinuxDistribution,
    root: &Path,
    artefact: Artefact,
    results: &ReleaseFiles,
) -> CommandResult {
    let home = root.join(HOME.trim_start_matches('/'));
    fresh(&home)?;
    let package = match artefact {
        Artefact::Tarball => &results.tarball,
        Artefact::Deb => &results.deb,
        Artefact::Wheel => &results.wheel,
    };
    must(program("cp").arg(package).arg(&home))?;
    must(program("chown").args(["--recursive", NOBODY]).arg(&home))?;
    let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let package = format!("{HOME}/{name}");
    let (start, before) = (Instant::now(), cpu_of_children());
    let command = match artefact {
        Artefact::Tarball => {
            // Unpacked from outside: a minimal Ubuntu has no xz.
            must(program("tar").arg("--extract").arg("--file").arg(&results.tarball).arg("-C").arg(&home))?;
            format!("{HOME}/{}/bin/homenode", name.trim_end_matches(".tar.xz"))
        }
        Artefact::Deb => {
            must(
                inside(root, None).args(["dpkg", "--install", &package]).stdout(std::process::Stdio::null()),
            )?;
            "homenode".to_owned()
        }
        Artefact::Wheel => {
            let venv = format!("{HOME}/venv");
            must(inside(root, Some(NOBODY)).args(["python3", "-m", "venv", &venv]))?;
            let python = format!("{venv}/bin/python");
            let words = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", &package];
            must(inside(root, Some(NOBODY)).arg(&python).args(words))?;
            format!("{venv}/bin/homenode")
        }
    };
    if distribution.suite == OLDEST {
        return runs(distribution, root, &command);
    }
    let told = read(inside(root, Some(NOBODY)).arg(&command).args(results.words))?;
    holds(distribution, &format!("{artefact:?}"), &told, results.answer)?;
    let (took, cpu) = (start.elapsed(), cpu_of_children().saturating_sub(before));
    println!(
        "{}, {artefact:?}: installed and explained in {:.1} s, {:.1} s of CPU time",
        distribution.name,
        took.as_secs_f64(),
        cpu.as_secs_f64()
    );
    // Where other programs have the CPUs, the elapsed time says nothing of homenode.
    if took > PATIENCE && cpu * 2 > PATIENCE {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let promise = format!("{PATIENCE:?} is promised, at a load of {}", load.trim());
        return Err(format!("{}, {artefact:?}: {promise}", distribution.name));
    }
    if artefact == Artefact::Wheel {
        let asked = "import homenode; print(homenode.explain('kernel:heat', class_='S', machine='2s-xeon'))";
        let python = format!("{HOME}/venv/bin/python");
        let told = read(inside(root, Some(NOBODY)).args([&python, "-c", asked]))?;
        holds(distribution, "wheel in Python", &told, results.answer)?;
    }
    Ok(())
}

/// CPU time of the ended children of this process; nothing where `/proc` does not say.
fn cpu_of_children() -> Duration {
    let ticks = |stat: &str| {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_millis(ticks(&stat).unwrap_or(0) * MILLISECONDS)
}

/// Where gcc is too old to record with: the command and the library that it loads into a program
/// work with that glibc.
fn runs(distribution: &LinuxDistribution, root: &Path, command: &str) -> CommandResult {
    let machines = read(inside(root, Some(NOBODY)).args([command, "machine", "list"]))?;
    holds(distribution, "machine list", &machines, "epyc-nps4")?;
    let words = [command, "run", "--pretend-nodes", "2", "--", "/bin/echo", "it runs"];
    holds(distribution, "run", &read(inside(root, Some(NOBODY)).args(words))?, "it runs")?;
    println!("{}: runs a program under homenode", distribution.name);
    Ok(())
}

fn holds(distribution: &LinuxDistribution, what: &str, told: &str, answer: &str) -> CommandResult {
    if told.contains(answer) {
        return Ok(());
    }
    Err(format!("{}, {what}: the answer lacks '{answer}': {told}", distribution.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_with_ubuntus_keys_is_made_before_the_first_ubuntu() {
        let keys = DISTRIBUTIONS.iter().position(|d| d.more.contains("ubuntu-keyring"));
        let first = DISTRIBUTIONS.iter().position(LinuxDistribution::is_ubuntu);
        assert!(keys.is_some() && keys < first);
        assert!(DISTRIBUTIONS.iter().all(|d| d.takes.contains(&Artefact::Tarball)));
    }
}
