//! Everything that a boot needs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use homenode_model::Bytes;
use homenode_scratch::Scratch;

use super::request::Lab;
use crate::kernel::GuestKernel;
use crate::qemu::{Accel, Boot, Console, Disk, Qemu};

/// Everything that a boot needs.
pub(super) struct Ready {
    pub(super) qemu: Emulator,
    pub(super) kernel: GuestKernel,
    pub(super) accel: Accel,
    pub(super) late_cpus: bool,
    pub(super) initramfs: PathBuf,
    pub(super) disk: PathBuf,
    pub(super) disk_size: Bytes,
    pub(super) left: Vec<String>,
    pub(super) scratch: Scratch,
}

impl Ready {
    pub(super) fn disk(&self) -> Disk<'_> {
        match self.accel {
            Accel::Deterministic => Disk::Memory(&self.disk, self.disk_size),
            _ => Disk::Image(&self.disk),
        }
    }

    pub(super) fn boot<'a>(
        &'a self,
        lab: &'a Lab,
        console: Console<'a>,
        ports: &'a [(&'a str, i32)],
        memory: &'a [i32],
        plugin: Option<OsString>,
    ) -> Boot<'a> {
        Boot {
            machine: &lab.machine,
            accel: self.accel,
            late_cpus: self.late_cpus,
            kernel: &self.kernel.image,
            initramfs: &self.initramfs,
            disk: Some(self.disk()),
            console,
            ports,
            memory,
            plugin,
        }
    }
}

/// QEMU, and the means to end it with this process.
pub(super) struct Emulator {
    pub(super) qemu: Qemu,
    pub(super) setpriv: Option<PathBuf>,
}

impl Emulator {
    pub(super) fn command(&self, boot: &Boot) -> Command {
        // However this process ends, even by SIGKILL, QEMU must end, too: util-linux tells the
        // kernel so.
        let mut command = match &self.setpriv {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL", "--"]).arg(&self.qemu.path);
                command
            }
            None => Command::new(&self.qemu.path),
        };
        command.args(boot.args());
        command
    }
}
