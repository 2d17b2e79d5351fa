//! Whether KVM works here. Some machines have `/dev/kvm`, but no stock kernel boots on them.
//!
//! One short boot answers. The answer is kept until the machine is booted again, or kernel or QEMU
//! change.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use homenode_model::Bytes;

use crate::error::Result;
use crate::initramfs::{self, GuestSettings, Then};
use crate::kernel::{self, GuestKernel};
use crate::machine::VirtualMachine;
use crate::qemu::{Accel, Boot, Console, Qemu};
use homenode_scratch::Scratch;

/// Longest trial. On a real processor a kernel boots in one second.
const LONG_ENOUGH: Duration = Duration::from_secs(4);

/// Whether a kernel boots with KVM.
///
/// # Errors
/// The trial could not be set up. A trial that fails is an answer.
pub fn kvm_works(qemu: &Qemu, kernel: &GuestKernel, busybox: &Path, scratch: &Path) -> Result<bool> {
    if fs::File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (major, minor) = qemu.version;
    let key = format!("{} {} {major}.{minor} {}", boot_id.trim(), kernel.version, qemu.path.display());
    let kept = kernel::cache()?.join("kvm-trial");
    let known = fs::read_to_string(&kept).unwrap_or_default();
    if let Some(answer) = known.strip_prefix(&key) {
        return Ok(answer.trim() == "works");
    }
    let scratch = Scratch::inside(scratch, "lab")?;
    let works = boots(qemu, kernel, busybox, scratch.path())?;
    // If the answer cannot be kept, the next run tries again.
    let _ = fs::write(&kept, format!("{key} {}\n", if works { "works" } else { "fails" }));
    Ok(works)
}

fn boots(qemu: &Qemu, kernel: &GuestKernel, busybox: &Path, scratch: &Path) -> Result<bool> {
    let archive = initramfs::make(kernel, busybox, &GuestSettings::default(), Then::Nothing)?;
    let (initramfs, console) = (scratch.join("initramfs"), scratch.join("console"));
    fs::write(&initramfs, archive).map_err(|e| crate::error::of_file("write", &initramfs, &e))?;
    let machine = VirtualMachine::even(1, 1, Bytes::mib(256), 20)?;
    let boot = Boot {
        machine: &machine,
        accel: Accel::Kvm,
        late_cpus: false,
        kernel: &kernel.image,
        initramfs: &initramfs,
        disk: None,
        console: Console::File(&console),
        ports: &[],
        memory: &[],
        plugin: None,
    };
    let mut command = Command::new(&qemu.path);
    command
        .args(boot.args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let Ok(mut child) = command.spawn() else { return Ok(false) };
    let ended = ends_in_time(&mut child);
    let text = fs::read(&console).unwrap_or_default();
    Ok(ended && String::from_utf8_lossy(&text).contains(initramfs::TRIAL_WORD))
}

fn ends_in_time(child: &mut Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < LONG_ENOUGH {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}
