//! The host's side of a run: QEMU as a child, ports, time limits, signals, the end.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use homenode_model::Bytes;
use rustix::process::{Pid, Signal, kill_process};

use super::ready::Ready;
use super::request::{Lab, Monitoring, Program, RunOutcome, StreamTargets, Supervision};
use crate::bring::{self, Brought};
use crate::console;
use crate::error::{self, Error, FailureKind, Result};
use crate::kernel::layout;
use crate::monitor::{self, MonitorAnswer, MonitorReport};
use crate::qemu::{Accel, Console, Disk, escaped};
use crate::relay::{self, ByteCount};
use crate::wire::{GuestCommand, GuestMessage, PORTS, ProgramEnd, WrittenBytes, say};

/// Time between two looks at signals and time limits.
const LOOK: Duration = Duration::from_millis(20);
/// Longest boot. A loaded machine may take ten times as long as usual.
const BOOT: Duration = Duration::from_secs(180);
/// Time that a program has after the time limit's signal, and QEMU after the request to end.
const GRACE: Duration = Duration::from_secs(10);

/// QEMU, ended when dropped.
struct Guest {
    child: Child,
    console: PathBuf,
}

impl Guest {
    /// Asks QEMU to end, so that a plug-in can write its results.
    fn end(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < GRACE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// An error with the last lines of the console.
    fn failed(&self, message: &str) -> Error {
        let lines = console::last(&self.console);
        let why = console::diagnosis(&lines);
        let mut error = Error::failed(why.map_or_else(|| message.to_owned(), str::to_owned));
        if why.is_some() {
            error = error.tried(message);
        }
        if lines.is_empty() {
            error = error.tried("read the guest's console: it said nothing");
        } else {
            error = error
                .tried(format!("read the guest's console, its last lines:\n    {}", lines.join("\n    ")));
        }
        match why {
            Some(w) if w.contains("memory") => error.hint("give the nodes more memory: --mem"),
            _ => error,
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The events in the guest, in order.
enum Event {
    Said(GuestMessage),
    /// The control port is closed: QEMU has ended.
    Lost,
}

pub fn run(
    lab: &Lab,
    ready: &Ready,
    program: &Program,
    streams: StreamTargets,
    watch: &mut Supervision,
) -> Result<RunOutcome> {
    (watch.say)("booting");
    let start = Instant::now();
    let (mut guest, ports, counter) = boot(lab, ready)?;
    let [control, stdin, stdout, stderr, files] = ports;
    let written = [relay::out_of(stdout, streams.stdout), relay::out_of(stderr, streams.stderr)];
    let stdin_kept =
        stdin.try_clone().map_err(|e| error::of_file("keep", Path::new("the input port"), &e))?;
    // For a program that runs apart, not even the end of its input may come at the host's time.
    if !lab.deterministic {
        relay::into(stdin, streams.stdin);
    }
    let files =
        receive(files, lab.sync.then(|| lab.cwd.clone()), lab.marks.as_ref().map(|m| m.folder.clone()));
    let events = listen(&control).map_err(|e| error::of_file("read", Path::new("the control port"), &e))?;
    let mut run =
        Run { guest: &mut guest, control, events, watch, start, deadline: None, started: false, signals: 0 };

    run.until("the guest did not come up", |s| matches!(s, GuestMessage::Ready), Some(BOOT))?;
    let begun = run.until("the guest ended before the program started", begins, Some(BOOT))?;
    if let GuestMessage::CannotRun(errno) = begun {
        return Err(cannot_run(program, errno));
    }
    let boot = start.elapsed();
    run.started = true;
    (run.watch.say)("running");
    let begin = Instant::now();
    run.deadline = run.watch.timeout.map(|t| begin + t);
    let ended = run.until("the guest ended before the program did", ends, None)?;
    let late = run.deadline.is_some_and(|d| Instant::now() >= d);
    let (status, total, out_of_memory, elapsed) = match ended {
        GuestMessage::Ended { status, written, out_of_memory, took } => {
            (status, written, out_of_memory, Duration::from_nanos(took.0))
        }
        // For a program that runs apart, this is known only now.
        GuestMessage::CannotRun(errno) => return Err(cannot_run(program, errno)),
        _ => return Err(run.guest.failed("the guest made no sense")),
    };
    run.deadline = None;
    let found = counter.map(Counter::end).transpose()?;
    run.drain(&written, total)?;
    run.until("the guest ended before all files were back", |s| *s == GuestMessage::Bye, None)?;
    let brought = if lab.sync || lab.marks.is_some() { collect(files)? } else { Brought::default() };
    guest.end();
    drop(stdin_kept);
    if late {
        return Err(timed_out(watch.timeout, status));
    }
    let (kernel, accel) = (ready.kernel.version.clone(), ready.accel);
    Ok(RunOutcome { status, boot, elapsed, out_of_memory, brought, left: Vec::new(), found, kernel, accel })
}

const fn begins(said: &GuestMessage) -> bool {
    matches!(said, GuestMessage::Started | GuestMessage::CannotRun(_))
}

const fn ends(said: &GuestMessage) -> bool {
    matches!(said, GuestMessage::Ended { .. } | GuestMessage::CannotRun(_))
}

fn cannot_run(program: &Program, errno: i32) -> Error {
    let why = io::Error::from_raw_os_error(errno);
    Error::failed(format!("cannot run {} in the guest", program.path.display()))
        .tried(format!("start {}: {why}", program.path.display()))
        .kind(if errno == 2 { FailureKind::NotFound } else { FailureKind::CannotRun })
}

fn timed_out(limit: Option<Duration>, status: ProgramEnd) -> Error {
    let seconds = limit.unwrap_or_default().as_secs_f64();
    let how = match status {
        ProgramEnd::Exit(n) => format!("it then ended with status {n}"),
        ProgramEnd::Signal(n) => format!("it was ended by signal {n}"),
    };
    Error::failed(format!("the program took longer than {seconds} s"))
        .tried(format!("send it SIGTERM: {how}"))
        .hint("give it more time: --timeout")
}

/// Starts QEMU and returns this side of the ports, in the order of [`PORTS`].
fn boot(lab: &Lab, ready: &Ready) -> Result<(Guest, [UnixStream; 5], Option<Counter>)> {
    let console = ready.scratch.path().join("console");
    let failed = |e: io::Error| Error::failed("cannot make the guest's ports").tried(e.to_string());
    let mut mine = Vec::new();
    let mut theirs: Vec<OwnedFd> = Vec::new();
    for _ in PORTS {
        let (a, b) = pair().map_err(failed)?;
        mine.push(a);
        theirs.push(b);
    }
    let (mut counter, mut plugin, mut memory) = (None, None, Vec::new());
    if let Some(monitoring) = &lab.monitor {
        for (i, node) in lab.machine.nodes.iter().enumerate() {
            memory.push(shared(i, node.memory).map_err(failed)?);
        }
        let (own, its) = pair().map_err(failed)?;
        let (started, words) = Counter::start(monitoring, ready, own, its.as_raw_fd())?;
        (counter, plugin) = (Some(started), Some(words));
        theirs.push(its);
    }
    let ports: Vec<(&str, i32)> = PORTS.iter().zip(&theirs).map(|(n, fd)| (*n, fd.as_raw_fd())).collect();
    let memory_fds: Vec<i32> = memory.iter().map(AsRawFd::as_raw_fd).collect();
    let boot = ready.boot(lab, Console::File(&console), &ports, &memory_fds, plugin);
    let errors = ready.scratch.path().join("qemu");
    let file = fs::File::create(&errors).map_err(|e| error::of_file("create", &errors, &e))?;
    let mut command = ready.qemu.command(&boot);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    // Ctrl-C in the terminal is for the program in the guest, not for QEMU.
    command.process_group(0);
    let path = &ready.qemu.qemu.path;
    let child = command.spawn().map_err(|e| error::of_file("start", path, &e))?;
    let mut guest = Guest { child, console };
    drop((theirs, memory));
    // QEMU reports its errors at once.
    thread::sleep(Duration::from_millis(50));
    if let Ok(Some(status)) = guest.child.try_wait() {
        let text = fs::read_to_string(&errors).unwrap_or_default();
        let mut error = Error::failed(format!("QEMU does not start: {status}"));
        for line in text.lines().take(5) {
            error = error.tried(line.trim().to_owned());
        }
        if ready.accel == Accel::Kvm {
            error = error.hint("--accel tcg does without KVM");
        }
        return Err(error);
    }
    let mine: [UnixStream; 5] =
        mine.try_into().map_err(|_| Error::failed("cannot make the guest's ports"))?;
    Ok((guest, mine, counter))
}

/// Two ends of a stream: one for this process, one for a child to inherit.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (mine, its) = UnixStream::pair()?;
    let its = OwnedFd::from(its);
    rustix::io::fcntl_setfd(&its, rustix::io::FdFlags::empty())?;
    Ok((mine, its))
}

/// A node's memory, with a name by which the monitor finds it.
fn shared(node: usize, bytes: Bytes) -> io::Result<OwnedFd> {
    let name = format!("{}{node}", monitor::MEMORY);
    // It stays open when QEMU starts.
    let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::empty())?;
    rustix::fs::ftruncate(&fd, bytes.0)?;
    Ok(fd)
}

/// The monitor, seen from the host.
struct Counter {
    control: UnixStream,
    output: PathBuf,
}

impl Counter {
    /// Starts it. Returns it, and its argument for QEMU.
    fn start(monitoring: &Monitoring, ready: &Ready, own: UnixStream, its: i32) -> Result<(Self, OsString)> {
        let scratch = ready.scratch.path();
        let (output, file) = (scratch.join("counts"), scratch.join("monitor"));
        let layout = layout::of(&ready.kernel.image);
        let version = ready.qemu.qemu.version;
        let disk = if let Disk::Memory(_, size) = ready.disk() { size } else { Bytes::ZERO };
        let config = monitor::configuration(&monitoring.machine, version, layout, disk, its, &output);
        let config = homenode_wire::encode(&config)
            .map_err(|e| Error::failed("the monitor cannot be told of this machine").tried(e.to_string()))?;
        fs::write(&file, config).map_err(|e| error::of_file("write", &file, &e))?;
        let mut words = escaped(&monitoring.library);
        words.push(",config=");
        words.push(escaped(&file));
        Ok((Self { control: own, output }, words))
    }

    /// Makes it end, waits for that, and reads its results.
    fn end(mut self) -> Result<MonitorReport> {
        let failed =
            |why: String| Error::failed("the monitor in QEMU failed").tried(format!("tell it to end: {why}"));
        say(&mut self.control, &monitor::MonitorCommand::End).map_err(|e| failed(e.to_string()))?;
        let answer: MonitorAnswer =
            homenode_wire::read(&mut self.control).map_err(|e| failed(e.to_string()))?;
        match answer.failed {
            None => monitor::read(&self.output),
            Some(why) => Err(failed(why)),
        }
    }
}

fn listen(control: &UnixStream) -> io::Result<Receiver<Event>> {
    let mut from = BufReader::new(control.try_clone()?);
    let (tell, events) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(said) = homenode_wire::read(&mut from) {
            if tell.send(Event::Said(said)).is_err() {
                return;
            }
        }
        let _ = tell.send(Event::Lost);
    });
    Ok(events)
}

/// Writes files as they come, so that the guest never waits: the program's own first, then the
/// marks. For marks, only failures are reported.
fn receive(
    files: UnixStream,
    folder: Option<PathBuf>,
    marks: Option<PathBuf>,
) -> JoinHandle<io::Result<Brought>> {
    thread::spawn(move || {
        let mut files = BufReader::with_capacity(64 << 10, files);
        let mut brought = match folder {
            Some(folder) => bring::back(&mut files, &folder)?,
            None => Brought::default(),
        };
        if let Some(folder) = marks {
            brought.failed.extend(bring::back(&mut files, &folder)?.failed);
        }
        Ok(brought)
    })
}

fn collect(files: JoinHandle<io::Result<Brought>>) -> Result<Brought> {
    let failed = || Error::failed("the files that the program wrote did not all come back");
    match files.join() {
        Ok(Ok(brought)) => Ok(brought),
        Ok(Err(e)) => Err(failed().tried(e.to_string())),
        Err(_) => Err(failed()),
    }
}

struct Run<'a, 'b> {
    guest: &'a mut Guest,
    control: UnixStream,
    events: Receiver<Event>,
    watch: &'a mut Supervision<'b>,
    start: Instant,
    deadline: Option<Instant>,
    started: bool,
    signals: u32,
}

impl Run<'_, '_> {
    /// Waits for a message of the guest.
    fn until(
        &mut self,
        lost: &str,
        what: impl Fn(&GuestMessage) -> bool,
        limit: Option<Duration>,
    ) -> Result<GuestMessage> {
        let begin = Instant::now();
        let mut told = false;
        loop {
            match self.events.recv_timeout(LOOK) {
                Ok(Event::Said(said)) if what(&said) => return Ok(said),
                Ok(Event::Said(_)) => {}
                Ok(Event::Lost) | Err(RecvTimeoutError::Disconnected) => return Err(self.guest.failed(lost)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if limit.is_some_and(|l| begin.elapsed() > l) {
                let seconds = self.start.elapsed().as_secs();
                return Err(self.guest.failed(&format!("{lost} in {seconds} s")));
            }
            self.pass_signals()?;
            if let Some(deadline) = self.deadline {
                let now = Instant::now();
                if now >= deadline && !told {
                    told = true;
                    self.signal(15);
                }
                if now >= deadline + GRACE {
                    return Err(timed_out(self.watch.timeout, ProgramEnd::Signal(9)));
                }
            }
        }
    }

    /// Waits until this side has all of the program's output.
    fn drain(&mut self, have: &[ByteCount; 2], total: WrittenBytes) -> Result<()> {
        while have.iter().zip([total.out, total.err]).any(|(h, t)| h.get() < t) {
            thread::sleep(Duration::from_millis(1));
            self.pass_signals()?;
            if !matches!(self.guest.child.try_wait(), Ok(None)) {
                return Err(self.guest.failed("the guest ended before all output was back"));
            }
        }
        Ok(())
    }

    fn pass_signals(&mut self) -> Result<()> {
        let Some(signal) = (self.watch.signal)() else { return Ok(()) };
        self.signals += 1;
        if !self.started || self.signals > 1 {
            let when = if self.started { "at the second signal" } else { "while it booted" };
            return Err(Error::failed(format!("stopped: the guest was ended {when}"))
                .kind(FailureKind::Signalled(signal as u8)));
        }
        self.signal(signal);
        Ok(())
    }

    fn signal(&mut self, number: i32) {
        // The guest may be gone; another place notices that.
        let _ = say(&mut self.control, &GuestCommand::Signal(number));
    }
}
