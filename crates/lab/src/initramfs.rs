//! The kernel's first file system: a busybox, the drivers, and a script that mounts the disk and
//! starts the guest's side.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::carry::on_path;
use crate::cpio::Archive;
use crate::error::{self, Error, Result};
use crate::kernel::GuestKernel;

/// Settings of the guest's kernel that are made before the program starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestSettings {
    /// Linux's NUMA balancing; `None`: the kernel's default.
    pub numa_balancing: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`; `None`: the kernel's default.
    pub thp: Option<Thp>,
    /// Number of CPUs that are off until the script puts them on line, all but the first: see
    /// [`crate::qemu`].
    pub late_cpus: u32,
    /// The disk's name below `/dev`.
    pub disk: &'static str,
}

/// When the kernel uses transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thp {
    /// Wherever possible.
    Always,
    /// If a program asks for them.
    Madvise,
    /// Not at all.
    Never,
}

impl Thp {
    /// The kernel's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Madvise => "madvise",
            Self::Never => "never",
        }
    }
}

/// What runs once the disk is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The guest's side of a run.
    Run,
    /// A shell on the console.
    Shell,
    /// Nothing: a trial.
    Nothing,
}

/// `busybox`, linked statically.
///
/// # Errors
/// It is not installed, or it is linked to libraries.
pub fn busybox() -> Result<PathBuf> {
    let missing = || Error::failed("there is no busybox for the guest").hint("install busybox-static");
    let path = on_path("busybox".as_ref()).ok_or_else(|| missing().tried("look for busybox in PATH"))?;
    let elf = crate::carry::elf::read(&path)?;
    if elf.interpreter.is_some() {
        return Err(missing().tried(format!("look at {}: it is not linked statically", path.display())));
    }
    Ok(path)
}

/// The archive.
///
/// # Errors
/// `busybox` cannot be read.
pub fn make(kernel: &GuestKernel, busybox: &Path, settings: &GuestSettings, then: Then) -> Result<Vec<u8>> {
    let shell = fs::read(busybox).map_err(|e| error::of_file("read", busybox, &e))?;
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "m", "r"] {
        archive.folder(folder);
    }
    archive.device("dev/console", 5, 1);
    archive.file("bin/busybox", 0o755, &shell);
    archive.link("bin/sh", "busybox");
    for module in &kernel.modules {
        archive.file(&format!("m/{}.ko", module.name), 0o644, &module.bytes);
    }
    archive.file("init", 0o755, script(kernel, settings, then).as_bytes());
    Ok(archive.finish())
}

/// The word that the trial prints before it ends.
pub const TRIAL_WORD: &str = "homenode-lab: alive";

fn script(kernel: &GuestKernel, settings: &GuestSettings, then: Then) -> String {
    let mut s = String::from(
        "#!/bin/busybox sh\n\
         b=/bin/busybox\n\
         fail() { echo \"homenode-lab: $1\" >/dev/console; $b sleep 1; $b poweroff -n -f; }\n\
         $b mount -t devtmpfs -o mode=755 dev /dev\n\
         $b mount -t proc proc /proc\n\
         $b mount -t sysfs sys /sys\n",
    );
    if then == Then::Nothing {
        let _ = writeln!(s, "echo '{TRIAL_WORD}' >/dev/console\n$b poweroff -n -f\n$b sleep 100");
        return s;
    }
    for module in &kernel.modules {
        let _ = writeln!(s, "$b insmod /m/{0}.ko || fail 'cannot load the driver {0}'", module.name);
    }
    for cpu in 1..=settings.late_cpus {
        let _ =
            writeln!(s, "echo 1 >/sys/devices/system/cpu/cpu{cpu}/online || fail 'cannot start CPU {cpu}'");
    }
    let disk = settings.disk;
    let _ = writeln!(
        s,
        "i=0; while [ ! -b /dev/{disk} ] && [ $i -lt 100 ]; do $b sleep 0.05; i=$((i+1)); done\n\
         $b mount -t ext4 -o noatime,noinit_itable /dev/{disk} /r || fail 'cannot mount the disk'"
    );
    s.push_str(
        "for d in dev proc sys; do $b mount -o move /$d /r/$d; done\n\
         $b mkdir -p /r/dev/shm /r/dev/pts\n\
         $b mount -t tmpfs -o mode=1777 shm /r/dev/shm\n\
         $b mount -t devpts -o ptmxmode=666 pts /r/dev/pts\n\
         $b ln -s /proc/self/fd /r/dev/fd; $b ln -s fd/0 /r/dev/stdin; $b ln -s fd/1 /r/dev/stdout; \
         $b ln -s fd/2 /r/dev/stderr\n\
         $b ifconfig lo up 2>/r/dev/null\n\
         $b hostname lab\n\
         cd /r/proc/sys/kernel\n\
         echo 1 >perf_event_paranoid; echo 0 >kptr_restrict; echo 0 >nmi_watchdog 2>/r/dev/null\n\
         echo 1 >/r/proc/sys/vm/unprivileged_userfaultfd 2>/r/dev/null\n",
    );
    if let Some(on) = settings.numa_balancing {
        let _ = writeln!(
            s,
            "echo {} >numa_balancing 2>/r/dev/null || [ ! -e /r/sys/devices/system/node/node1 ] || \
             fail 'this kernel has no NUMA balancing'",
            u8::from(on)
        );
    }
    if let Some(thp) = settings.thp {
        let _ = writeln!(
            s,
            "echo {} >/r/sys/kernel/mm/transparent_hugepage/enabled || fail 'this kernel has no huge pages'",
            thp.word()
        );
    }
    s.push_str("cd /\n");
    s.push_str(match then {
        Then::Run => {
            "$b chroot /r /.homenode/guest || echo 'homenode-lab: the guest side failed' >/r/dev/console\n"
        }
        Then::Shell => "$b chroot /r /.homenode/busybox sh /.homenode/shell\n",
        Then::Nothing => "",
    });
    s.push_str("$b poweroff -n -f\n$b sleep 100\n");
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_says_what_was_asked_for() {
        let kernel = GuestKernel::default();
        let settings =
            GuestSettings { numa_balancing: Some(false), thp: Some(Thp::Never), late_cpus: 3, disk: "pmem0" };
        let text = script(&kernel, &settings, Then::Run);
        assert!(text.contains("echo 0 >numa_balancing") && text.contains("echo never >"), "{text}");
        assert!(text.contains("cpu3/online") && !text.contains("cpu4/online"));
        assert!(text.contains("ext4 -o noatime,noinit_itable /dev/pmem0 /r"), "{text}");
        let plain = script(&kernel, &GuestSettings::default(), Then::Run);
        assert!(!plain.contains("numa_balancing") && !plain.contains("hugepage"));
    }
}
