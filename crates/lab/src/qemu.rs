//! Finds QEMU, and makes its command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use homenode_model::Bytes;

use crate::carry::on_path;
use crate::error::{Error, Result};
use crate::kernel::GuestKernel;
use crate::machine::VirtualMachine;

/// The emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// Where it is.
    pub path: PathBuf,
    /// Its version.
    pub version: (u32, u32),
}

const NAME: &str = "qemu-system-x86_64";
/// The oldest version that is known to work.
const OLDEST: (u32, u32) = (6, 0);

/// The first version that gives a plug-in the wrong CPUs if one host thread executes all.
const ONE_FOR_ALL: (u32, u32) = (10, 0);

/// How the guest's instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// Emulated, a host thread for each CPU.
    Tcg,
    /// Emulated on one host thread. Instructions count the time, and nothing depends on the host's
    /// time: the disk is memory, and the ports are silent until the program has ended. Two runs do
    /// the same in the same order.
    Deterministic,
    /// By the host's processor.
    Kvm,
}

impl Accel {
    /// The word for reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcg => "emulated",
            Self::Deterministic => "emulated, time in instructions",
            Self::Kvm => "KVM",
        }
    }

    /// Whether all CPUs but the first should come up late.
    ///
    /// With counted instructions, a boot with all CPUs hangs. In QEMU 7.2, a CPU that translates
    /// code while another one patches it may keep a breakpoint that is gone from memory. Late in
    /// its boot, Linux 6.12 patches code that every tick executes (`sched_clock_stable`): one boot
    /// of 30 on a busy host ended there. Of 90 boots of Linux 6.1 none did.
    pub fn wants_late_cpus(self, kernel: &GuestKernel) -> bool {
        match self {
            Self::Deterministic => true,
            Self::Tcg => kernel.is_recent(),
            Self::Kvm => false,
        }
    }
}

impl Qemu {
    /// Finds QEMU, or takes the named one.
    ///
    /// # Errors
    /// There is none, or it is too old.
    pub fn find(named: Option<&Path>) -> Result<Self> {
        let missing =
            || Error::failed("the lab needs QEMU").hint("install qemu-system-x86, or name it: --qemu PATH");
        let path = match named {
            Some(path) => path.to_owned(),
            None => {
                on_path(NAME.as_ref()).ok_or_else(|| missing().tried(format!("look for {NAME} in PATH")))?
            }
        };
        let out = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
        let tell = |why: &str| missing().tried(format!("{} --version: {why}", path.display()));
        let out = out.map_err(|e| tell(&e.to_string()))?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let version = version(&text).ok_or_else(|| tell(text.lines().next().unwrap_or("no answer")))?;
        if version < OLDEST {
            return Err(tell(&format!(
                "{}.{} is older than {}.{}",
                version.0, version.1, OLDEST.0, OLDEST.1
            )));
        }
        Ok(Self { path, version })
    }

    /// Checks that a plug-in learns which CPU makes an access if one host thread executes all.
    ///
    /// # Errors
    /// It does not: since QEMU 10.0 it gets the CPU for which an instruction was translated
    /// (`gen_cpu_index` in `accel/tcg/plugin-gen.c`). Under 10.0.2 the monitor found all accesses
    /// on one CPU.
    pub fn tells_cpus_apart(&self) -> Result<()> {
        if self.version < ONE_FOR_ALL {
            return Ok(());
        }
        let (major, minor) = self.version;
        Err(Error::failed("this QEMU cannot count CPU by CPU and repeat itself to the byte")
            .tried(format!(
                "{} is QEMU {major}.{minor}: where one thread executes all CPUs it names the wrong ones",
                self.path.display()
            ))
            .hint("leave out --deterministic, or name a QEMU before 10.0: --qemu PATH"))
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let rest = text.strip_prefix("QEMU emulator version ")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What a boot needs.
#[derive(Debug)]
pub struct Boot<'a> {
    /// The machine.
    pub machine: &'a VirtualMachine,
    /// How its instructions are executed.
    pub accel: Accel,
    /// Whether all CPUs but the first stay off until the start script puts them on line.
    pub late_cpus: bool,
    /// The kernel.
    pub kernel: &'a Path,
    /// The first file system.
    pub initramfs: &'a Path,
    /// The disk.
    pub disk: Option<Disk<'a>>,
    /// The target of the console.
    pub console: Console<'a>,
    /// Ports: names, and file descriptors that QEMU inherits.
    pub ports: &'a [(&'a str, i32)],
    /// Memory of the nodes: file descriptors that QEMU inherits. Empty: QEMU makes the memory.
    pub memory: &'a [i32],
    /// A plug-in with its arguments.
    pub plugin: Option<OsString>,
}

/// The guest's disk.
#[derive(Clone, Copy, Debug)]
pub enum Disk<'a> {
    /// An image that the host reads at times of its own.
    Image(&'a Path),
    /// An image of this size, mapped as the guest's memory: reads are complete at once.
    Memory(&'a Path, Bytes),
}

impl Disk<'_> {
    /// The device's name in the guest.
    pub const fn device(&self) -> &'static str {
        match self {
            Self::Image(_) => "vda",
            Self::Memory(..) => "pmem0",
        }
    }
}

/// Unit of the size of disks in memory.
pub const MEMORY_DISK_UNIT: Bytes = Bytes::mib(2);

/// The target of the guest's console.
#[derive(Clone, Copy, Debug)]
pub enum Console<'a> {
    /// A file, for error messages.
    File(&'a Path),
    /// The terminal, as the user asked.
    Terminal,
}

/// Parameters for every kernel. None of them changes how the program sees memory. All save time
/// under emulation: no mitigations of faults that an emulator does not have, no self-tests, no
/// probing for devices that do not exist.
const PARAMETERS: &str = "console=ttyS0 panic=-1 quiet loglevel=2 mitigations=off nokaslr cryptomgr.notests \
                          tsc=reliable no_timer_check rcupdate.rcu_expedited=1 audit=0 nmi_watchdog=0 nowatchdog \
                          8250.nr_uarts=1 i8042.noaux i8042.nokbd i8042.nopnp apparmor=0 selinux=0 ima=off \
                          ipv6.disable=1 random.trust_cpu=on";

/// More parameters for an emulated processor. Its loops need not be measured, and the kernel does
/// not use CMPXCHG16B (feature 4 * 32 + 13, for itself only): QEMU 7.2 takes the flags after it
/// from the wrong operands. An interrupt at that point returns with bits of an address as flags,
/// which ended two of 30 boots of Linux 6.12. Linux 6.1 tests the result at once, so the error has
/// no effect.
const EMULATED: &str = "lpj=4000000 clearcpuid=141";

impl Boot<'_> {
    /// The kernel's command line.
    pub fn parameters(&self) -> String {
        let late = if self.late_cpus { " maxcpus=1" } else { "" };
        match self.accel {
            Accel::Tcg => format!("{PARAMETERS} {EMULATED}{late}"),
            Accel::Deterministic => {
                let settled = PARAMETERS.replace("trust_cpu=on", "trust_cpu=off");
                // The disk lies above all memory. That would make the kernel reserve memory for
                // devices with short addresses.
                format!("{settled} {EMULATED}{late} swiotlb=noforce")
            }
            Accel::Kvm => PARAMETERS.into(),
        }
    }

    /// QEMU's arguments.
    pub fn args(&self) -> Vec<OsString> {
        let mut a = Args::default();
        a.flags("-no-user-config -nodefaults -display none -no-reboot");
        let more = if let Some(Disk::Memory(..)) = self.disk { ",nvdimm=on" } else { "" };
        a.two("-machine", format!("pc,hpet=off,usb=off,vmport=off{more}"));
        match self.accel {
            Accel::Tcg => a.flags("-accel tcg,thread=multi -cpu max"),
            Accel::Deterministic => a.flags(
                "-accel tcg,thread=single -icount shift=3,sleep=off -rtc base=2026-01-01,clock=vm -seed 1 \
                 -cpu max,-rdrand,-rdseed",
            ),
            Accel::Kvm => a.flags("-accel kvm -cpu host"),
        }
        self.nodes(&mut a);
        a.two("-kernel", self.kernel);
        a.two("-initrd", self.initramfs);
        a.two("-append", self.parameters());
        if let Some(Disk::Image(disk)) = self.disk {
            let mut drive = OsString::from("if=none,id=disk,format=raw,cache=unsafe,discard=unmap,file=");
            drive.push(escaped(disk));
            a.two("-drive", drive);
            a.two("-device", "virtio-blk-pci,drive=disk");
        }
        match self.console {
            Console::File(path) => {
                let mut file = OsString::from("file,id=console,path=");
                file.push(escaped(path));
                a.two("-chardev", file);
            }
            // Ctrl-C is for the guest.
            Console::Terminal => a.two("-chardev", "stdio,id=console,signal=off"),
        }
        a.two("-serial", "chardev:console");
        if !self.ports.is_empty() {
            // Otherwise another thread of the host answers, at a time of its own.
            let at_once = if self.accel == Accel::Deterministic { ",ioeventfd=off" } else { "" };
            a.two("-device", format!("virtio-serial-pci,max_ports={}{at_once}", self.ports.len() + 1));
        }
        for (name, fd) in self.ports {
            a.two("-chardev", format!("socket,id=port-{name},fd={fd}"));
            a.two("-device", format!("virtserialport,chardev=port-{name},name={name}"));
        }
        if let Some(plugin) = &self.plugin {
            a.two("-plugin", plugin);
        }
        a.0
    }

    fn nodes(&self, a: &mut Args) {
        let m = self.machine;
        match self.disk {
            // Before the nodes: the monitor relies on that order.
            Some(Disk::Memory(path, size)) => {
                let all = m.memory().0 + size.0;
                a.two("-m", format!("{}M,slots=1,maxmem={}M", mib(m.memory()), (all >> 20) + 1024));
                let mut object =
                    OsString::from(format!("memory-backend-file,id=disk,size={},share=on,mem-path=", size.0));
                object.push(escaped(path));
                a.two("-object", object);
                a.two("-device", "nvdimm,memdev=disk");
            }
            _ => a.two("-m", format!("{}M", mib(m.memory()))),
        }
        let cpus = m.cpus();
        // One socket a CPU: no kernel accepts caches that are shared across nodes.
        a.two("-smp", format!("{cpus},sockets={cpus},cores=1,threads=1"));
        let mut next = 0;
        for (i, node) in m.nodes.iter().enumerate() {
            let mut text = format!("node,nodeid={i}");
            if node.memory > Bytes::ZERO {
                let size = mib(node.memory);
                a.two(
                    "-object",
                    match self.memory.get(i) {
                        None => format!("memory-backend-ram,id=ram{i},size={size}M"),
                        Some(fd) => {
                            let path = format!("/proc/self/fd/{fd}");
                            format!("memory-backend-file,id=ram{i},size={size}M,mem-path={path},share=on")
                        }
                    },
                );
                text += &format!(",memdev=ram{i}");
            }
            if node.cpus > 0 {
                text += &format!(",cpus={next}-{}", next + node.cpus - 1);
                next += node.cpus;
            }
            a.two("-numa", text);
        }
        for (i, row) in m.distances.iter().enumerate() {
            for (j, distance) in row.iter().enumerate().filter(|(j, _)| *j != i) {
                a.two("-numa", format!("dist,src={i},dst={j},val={distance}"));
            }
        }
    }
}

const fn mib(bytes: Bytes) -> u64 {
    bytes.0 >> 20
}

/// Doubles commas: a single one would end an option's value.
pub fn escaped(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut out = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        out.push(*byte);
        if *byte == b',' {
            out.push(b',');
        }
    }
    OsString::from_vec(out)
}

#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn flags(&mut self, words: &str) {
        self.0.extend(words.split_whitespace().map(OsString::from));
    }

    fn two(&mut self, option: &str, value: impl Into<OsString>) {
        self.0.extend([option.into(), value.into()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_become_options() {
        let mut machine = VirtualMachine::even(2, 2, Bytes::mib(512), 21).unwrap();
        machine.nodes[1].cpus = 0;
        let boot = Boot {
            machine: &machine,
            accel: Accel::Tcg,
            late_cpus: false,
            kernel: Path::new("k"),
            initramfs: Path::new("i"),
            disk: Some(Disk::Image(Path::new("/a,b"))),
            console: Console::File(Path::new("c")),
            ports: &[("control", 7)],
            memory: &[],
            plugin: None,
        };
        let line: Vec<String> = boot.args().iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let line = line.join(" ");
        for part in [
            "-m 1024M -smp 2,sockets=2",
            "-numa node,nodeid=0,memdev=ram0,cpus=0-1",
            "-numa node,nodeid=1,memdev=ram1 ",
            "-numa dist,src=1,dst=0,val=21",
            "file=/a,,b",
            "socket,id=port-control,fd=7",
        ] {
            assert!(line.contains(part), "'{part}' in\n{line}");
        }
    }

    #[test]
    fn a_disk_that_is_memory_comes_before_the_nodes() {
        let machine = VirtualMachine::even(1, 1, Bytes::mib(512), 21).unwrap();
        let boot = Boot {
            machine: &machine,
            accel: Accel::Deterministic,
            late_cpus: true,
            kernel: Path::new("k"),
            initramfs: Path::new("i"),
            disk: Some(Disk::Memory(Path::new("d"), Bytes::mib(64))),
            console: Console::File(Path::new("c")),
            ports: &[("control", 7)],
            memory: &[],
            plugin: None,
        };
        let line: Vec<String> = boot.args().iter().map(|a| a.to_string_lossy().into_owned()).collect();
        let line = line.join(" ");
        let place = |part: &str| line.find(part).unwrap_or_else(|| panic!("'{part}' in\n{line}"));
        assert!(place("id=disk,size=67108864") < place("id=ram0"));
        assert!(place("-m 512M,slots=1,maxmem=1600M") > 0 && place(",nvdimm=on") > 0);
        assert!(place("virtio-serial-pci,max_ports=2,ioeventfd=off") > 0 && !line.contains("virtio-blk"));
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version("QEMU emulator version 7.2.22 (Debian 1:7.2)\n"), Some((7, 2)));
        assert_eq!(version("QEMU emulator version 10.0.2"), Some((10, 0)));
        assert_eq!(version("bash 5"), None);
    }

    #[test]
    fn cpus_come_late_where_code_is_patched_under_them() {
        let late = |accel: Accel, linux: &str| {
            accel.wants_late_cpus(&GuestKernel { version: linux.into(), ..GuestKernel::default() })
        };
        assert!(late(Accel::Tcg, "6.12.1-cloud-amd64") && !late(Accel::Tcg, "6.1.0-13-cloud-amd64"));
        assert!(late(Accel::Deterministic, "6.1.0") && !late(Accel::Kvm, "6.12.1"));
    }

    #[test]
    fn a_qemu_that_names_the_wrong_cpus_is_refused_with_the_remedy() {
        let of = |version| Qemu { path: "/q".into(), version };
        assert_eq!(of((9, 2)).tells_cpus_apart(), Ok(()));
        let e = of((10, 1)).tells_cpus_apart().unwrap_err().to_string();
        assert!(e.contains("/q is QEMU 10.1") && e.contains("--qemu PATH"), "{e}");
    }

    #[test]
    fn no_qemu_is_told_with_the_remedy() {
        let e = Qemu::find(Some(Path::new("/no/such/qemu"))).unwrap_err().to_string();
        assert!(e.contains("/no/such/qemu --version") && e.contains("install qemu-system-x86"), "{e}");
    }
}
