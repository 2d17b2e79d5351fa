//! Runs a program in the lab, from the host.

mod host;
mod ready;
mod request;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use homenode_model::Bytes;

use crate::carry::Carry;
use crate::error::{self, Error, FailureKind, Result};
use crate::initramfs::{self, GuestSettings, Then};
use crate::kernel::{self, GuestKernel};
use crate::machine;
use crate::qemu::{Accel, Console, Qemu};
use crate::wire::{GuestJob, JOB, STREAMS, User};
use crate::{disk, trial};
use homenode_scratch::Scratch;
use ready::{Emulator, Ready};
pub use request::{AccelChoice, Lab, Marks, Monitoring, Program, RunOutcome, StreamTargets, Supervision};

/// Where the processes write their marks in the guest.
const MARKS: &str = "/.homenode/marks";

/// Largest working directory. A larger one is probably a mistake.
pub const LARGEST_CWD: Bytes = Bytes::mib(512);
/// Most files of a working directory.
pub const MOST_FILES: usize = 20_000;

/// Runs `program` in the lab.
///
/// # Errors
/// The program cannot run there ([`FailureKind::CannotRun`]), the lab failed, the guest panicked,
/// or the time is over. Nothing is left behind in any case.
pub fn run(
    lab: &Lab,
    program: &Program,
    streams: StreamTargets,
    watch: &mut Supervision,
) -> Result<RunOutcome> {
    let mut streams = streams;
    let input = match (lab.deterministic, streams.stdin.take()) {
        (false, stdin) => {
            streams.stdin = stdin;
            Vec::new()
        }
        (true, None) => Vec::new(),
        (true, Some(mut stdin)) => {
            let mut all = Vec::new();
            stdin
                .read_to_end(&mut all)
                .map_err(|e| error::of_file("read", Path::new("standard input"), &e))?;
            all
        }
    };
    let ready = prepare(lab, watch.say, Some(program), input, Then::Run)?;
    let mut outcome = host::run(lab, &ready, program, streams, watch)?;
    outcome.left = ready.left;
    Ok(outcome)
}

/// Runs a shell on the guest's console, on this terminal. Returns when the shell ends.
///
/// # Errors
/// The lab failed.
pub fn shell(lab: &Lab, program: Option<&Program>, say: &mut dyn FnMut(&str)) -> Result<()> {
    let ready = prepare(lab, say, program, Vec::new(), Then::Shell)?;
    let boot = ready.boot(lab, Console::Terminal, &[], &[], None);
    let status = ready.qemu.command(&boot).status();
    let status = status.map_err(|e| error::of_file("start", &ready.qemu.qemu.path, &e))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::failed("the lab's shell did not end well")
            .tried(format!("{} ended with {status}", ready.qemu.qemu.path.display()))
            .hint("QEMU's messages stand above; 'homenode doctor' says whether the lab works here"))
    }
}

fn prepare(
    lab: &Lab,
    say: &mut dyn FnMut(&str),
    program: Option<&Program>,
    input: Vec<u8>,
    then: Then,
) -> Result<Ready> {
    lab.machine.fits(machine::available())?;
    let qemu = Qemu::find(lab.qemu.as_deref())?;
    if lab.deterministic && lab.monitor.is_some() {
        qemu.tells_cpus_apart()?;
    }
    let busybox = initramfs::busybox()?;
    // The program first, so that problems with it show at once.
    let mut carry = load(lab, program, &busybox)?;
    if lab.deterministic {
        let [stdin, _, _] = STREAMS;
        carry.make(stdin, input, 0o644);
    }
    let mut kernel = kernel::get(&lab.kernel, say)?;
    let scratch = Scratch::inside(&lab.scratch, "lab")?;
    let accel = accel(lab, &qemu, &kernel, &busybox, scratch.path(), say)?;
    let late_cpus = accel.wants_late_cpus(&kernel);
    let settings = GuestSettings {
        numa_balancing: lab.numa_balancing,
        thp: lab.thp,
        late_cpus: if late_cpus { lab.machine.cpus() - 1 } else { 0 },
        disk: if accel == Accel::Deterministic { "pmem0" } else { "vda" },
    };
    if accel == Accel::Deterministic {
        kernel.also(&kernel::MEMORY_DISK)?;
    }
    let initramfs = scratch.path().join("initramfs");
    fs::write(&initramfs, initramfs::make(&kernel, &busybox, &settings, then)?)
        .map_err(|e| error::of_file("write", &initramfs, &e))?;
    let disk = disk::make(&carry, lab.spare, scratch.path())?;
    let disk_size = Bytes(fs::metadata(&disk).map_err(|e| error::of_file("read", &disk, &e))?.len());
    let setpriv = crate::carry::on_path("setpriv".as_ref()).filter(|p| has_pdeathsig(p));
    let qemu = Emulator { qemu, setpriv };
    Ok(Ready { qemu, kernel, accel, late_cpus, initramfs, disk, disk_size, left: carry.left, scratch })
}

fn has_pdeathsig(setpriv: &Path) -> bool {
    let out = Command::new(setpriv).arg("--help").stdin(Stdio::null()).output();
    out.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("--pdeathsig"))
}

fn accel(
    lab: &Lab,
    qemu: &Qemu,
    kernel: &GuestKernel,
    busybox: &Path,
    scratch: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Accel> {
    if lab.deterministic {
        return Ok(Accel::Deterministic);
    }
    if lab.monitor.is_some() || lab.accel == AccelChoice::Tcg {
        return Ok(Accel::Tcg);
    }
    if Path::new("/dev/kvm").exists() {
        say("trying KVM");
    }
    match (trial::kvm_works(qemu, kernel, busybox, scratch)?, lab.accel) {
        (true, _) => Ok(Accel::Kvm),
        (false, AccelChoice::Kvm) => Err(Error::failed("KVM does not work here")
            .tried(
                "boot the kernel with -accel kvm: it did not come up, or /dev/kvm is not open to this user",
            )
            .hint("leave --accel out: the lab then emulates")),
        (false, _) => Ok(Accel::Tcg),
    }
}

/// The links of busybox in the guest, for commands that are not brought along.
const APPLETS: &str = "/.homenode/bin";

/// Collects everything that travels.
fn load(lab: &Lab, program: Option<&Program>, busybox: &Path) -> Result<Carry> {
    let mut carry = Carry::new(lab.env.get(OsStr::new("LD_LIBRARY_PATH")).map(OsString::as_os_str));
    for folder in ["/dev", "/proc", "/sys", "/run", "/etc", "/.homenode", "/var/tmp"] {
        carry.folder(Path::new(folder), 0o755);
    }
    carry.folder(Path::new("/tmp"), 0o1777);
    if let Some(program) = program {
        carry.program(&program.path)?;
        // The user means files on the command line, even without the rest of the folder.
        for word in program.args.iter().filter(|w| Path::new(w).is_file()) {
            carry.add(&lab.cwd.join(word))?;
        }
    }
    // Programs call the shell by this name (system(3)).
    carry.program(Path::new("/bin/sh"))?;
    carry.program(&lab.guest).map_err(|e| e.kind(FailureKind::Failed))?;
    for path in &lab.with {
        carry.add_all(path)?;
    }
    if let Some(marks) = &lab.marks {
        carry.add_all(&marks.library)?;
        carry.folder(Path::new(MARKS), 0o755);
    }
    if lab.carry_cwd {
        check_size(&lab.cwd)?;
        carry.add_all(&lab.cwd)?;
    } else {
        carry.add(&lab.cwd)?;
    }
    if let Some(home) = lab.env.get(OsStr::new("HOME")) {
        let _ = carry.add(Path::new(home));
    }
    let user = user(lab);
    let job = homenode_wire::encode(&job(lab, program, user)).map_err(|e| {
        Error::failed("the program cannot be started in the lab").tried(format!("write its job: {e}"))
    })?;
    carry.make(JOB, job, 0o600);
    carry.make("/.homenode/guest", guest_script(&lab.guest), 0o755);
    carry.make("/.homenode/shell", shell_script(lab), 0o755);
    let shell = fs::read(busybox).map_err(|e| error::of_file("read", busybox, &e))?;
    carry.make("/.homenode/busybox", shell, 0o755);
    carry.folder(Path::new(APPLETS), 0o755);
    let User { user: uid, group: gid } = user;
    let own = if uid == 0 { String::new() } else { format!("user:x:{uid}:{gid}::/:/bin/sh\n") };
    carry.make("/etc/passwd", format!("root:x:0:0:root:/root:/bin/sh\n{own}"), 0o644);
    let own = if gid == 0 { String::new() } else { format!("user:x:{gid}:\n") };
    carry.make("/etc/group", format!("root:x:0:\n{own}"), 0o644);
    carry.make("/etc/hosts", "127.0.0.1 localhost lab\n", 0o644);
    carry.make("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n", 0o644);
    Ok(carry)
}

fn check_size(folder: &Path) -> Result<()> {
    let (mut bytes, mut files) = (0, 0);
    measure(folder, &mut bytes, &mut files);
    if bytes <= LARGEST_CWD.0 && files <= MOST_FILES {
        return Ok(());
    }
    let much = if files > MOST_FILES {
        format!("more than {MOST_FILES} files")
    } else {
        format!("more than {} MiB", LARGEST_CWD.0 >> 20)
    };
    Err(Error::failed(format!("the working directory {} has {much}", folder.display())).hint(
        "--no-cwd leaves its files here, --with PATH takes along what the program needs; or start in another folder",
    ))
}

fn measure(folder: &Path, bytes: &mut u64, files: &mut usize) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *bytes > LARGEST_CWD.0 || *files > MOST_FILES {
            return;
        }
        let Ok(about) = entry.metadata() else { continue };
        *files += 1;
        if about.is_dir() {
            measure(&entry.path(), bytes, files);
        } else if about.is_file() {
            *bytes += about.len();
        }
    }
}

fn user(lab: &Lab) -> User {
    if lab.root {
        return User::default();
    }
    User { user: rustix::process::getuid().as_raw(), group: rustix::process::getgid().as_raw() }
}

fn job(lab: &Lab, program: Option<&Program>, user: User) -> GuestJob {
    let mut env = lab.env.clone();
    let path = env.entry("PATH".into()).or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(APPLETS);
    if let Some(marks) = &lab.marks {
        let others = env.remove(OsStr::new("LD_PRELOAD")).filter(|o| !o.is_empty());
        let mut all = marks.library.clone().into_os_string();
        if let Some(others) = others {
            all.push(":");
            all.push(others);
        }
        env.insert("LD_PRELOAD".into(), all);
        env.insert(marks.variable.into(), MARKS.into());
    }
    let absolute = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned());
    GuestJob {
        program: program.map(|p| absolute(&p.path)).unwrap_or_default(),
        name: program.map(|p| p.name.clone()).unwrap_or_default(),
        args: program.map(|p| p.args.clone()).unwrap_or_default(),
        env,
        cwd: lab.cwd.clone(),
        sync: lab.sync.then(|| lab.cwd.clone()),
        user,
        apart: lab.deterministic,
        marks: lab.marks.as_ref().map(|_| MARKS.into()),
    }
}

/// Makes links for the commands of busybox, then starts the guest's side.
fn guest_script(guest: &Path) -> String {
    let guest = std::path::absolute(guest).unwrap_or_else(|_| guest.to_owned());
    format!("#!/.homenode/busybox sh\n/.homenode/busybox --install -s {APPLETS}\nexec {}\n", quoted(&guest))
}

fn shell_script(lab: &Lab) -> String {
    let mut s = format!(
        "/.homenode/busybox --install -s {APPLETS}\nexport PATH=/usr/bin:/bin:/usr/sbin:/sbin:{APPLETS}\n"
    );
    for (name, value) in &lab.env {
        let name = name.to_string_lossy();
        if name != "PATH" && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            s += &format!("export {name}={}\n", quoted(Path::new(value)));
        }
    }
    s += &format!("cd {}\nexport PS1='lab:\\w# '\n", quoted(&lab.cwd));
    s += "exec setsid cttyhack /.homenode/busybox sh\n";
    s
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
