//! The guest's side. It runs in the guest as root; the script of [`crate::initramfs`] starts it.

mod changes;
mod ports;

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use homenode_model::Ns;
use homenode_sys::{call, mark};
use rustix::process::{Pid, Signal, kill_process_group};

use homenode_wire::decode;

use crate::wire::{GuestCommand, GuestJob, GuestMessage, JOB, ProgramEnd, STREAMS, WrittenBytes, say};
use changes::Snapshot;

/// How long the guest waits after its last message for the host to end it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that a pipe (fs.pipe-max-size) and a thread together may hold.
const LARGEST_PIPE: u64 = 2 << 20;
/// File among the marks with the time of the program's start, in nanoseconds of the marks'
/// monotonic clock.
pub const STARTED: &str = "started";
/// A pipe counts as empty if nothing comes for this long.
const QUIET: Duration = Duration::from_millis(100);

/// The whole guest's side. Errors go to the console.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = fs::write("/dev/console", format!("homenode-lab: the guest side failed: {e}\n"));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let bytes = fs::read(JOB)?;
    let job: GuestJob =
        decode(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
    let mut control = ports::open("control")?;
    let streams =
        Streams { stdin: ports::open("stdin")?, out: ports::open("stdout")?, err: ports::open("stderr")? };
    let before = job.sync.as_deref().map(Snapshot::take);
    let killed = out_of_memory();
    say(&mut control, &GuestMessage::Ready)?;
    let orders = BufReader::new(control.try_clone()?);
    if job.apart {
        say(&mut control, &GuestMessage::Started)?;
    }
    // Without the monitor this does nothing.
    mark::start();
    let (begin, started) = (Instant::now(), call::now());
    match start(&job) {
        Err(e) => say(&mut control, &GuestMessage::CannotRun(e.raw_os_error().unwrap_or(0)))?,
        Ok(mut child) => {
            if !job.apart {
                say(&mut control, &GuestMessage::Started)?;
            }
            watch(orders, child.id());
            let (status, took, written) = if job.apart {
                apart(&mut child, begin, streams)?
            } else {
                attend(&mut child, begin, streams)?
            };
            let took = Ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            let out_of_memory = out_of_memory().saturating_sub(killed);
            say(&mut control, &GuestMessage::Ended { status: how(status), written, out_of_memory, took })?;
        }
    }
    if job.sync.is_some() || job.marks.is_some() {
        let mut port = ports::open("files")?;
        if let (Some(folder), Some(before)) = (&job.sync, before) {
            changes::send(folder, &before, &mut port)?;
        }
        if let Some(folder) = &job.marks {
            fs::write(folder.join(STARTED), started.0.to_string())?;
            changes::send(folder, &Snapshot::default(), &mut port)?;
        }
    }
    say(&mut control, &GuestMessage::Bye)?;
    // The host ends the guest once it has everything. If it does not, the script does.
    thread::sleep(PATIENCE);
    Ok(())
}

fn start(job: &GuestJob) -> io::Result<Child> {
    let [stdin, out, err] = if job.apart {
        let [stdin, out, err] = STREAMS;
        [File::open(stdin)?.into(), File::create(out)?.into(), File::create(err)?.into()]
    } else {
        [Stdio::piped(), Stdio::piped(), Stdio::piped()]
    };
    Command::new(&job.program)
        .arg0(&job.name)
        .args(&job.args)
        .env_clear()
        .envs(&job.env)
        .current_dir(&job.cwd)
        .gid(job.user.group)
        .uid(job.user.user)
        // A signal from the host is for the whole process group, as from a terminal.
        .process_group(0)
        .stdin(stdin)
        .stdout(out)
        .stderr(err)
        .spawn()
}

struct Streams {
    stdin: File,
    out: File,
    err: File,
}

/// How a program ended, how long it took, and how much it wrote.
type Attended = (ExitStatus, Duration, WrittenBytes);

/// Waits until the program has ended, and relays its output only then.
fn apart(child: &mut Child, begin: Instant, streams: Streams) -> io::Result<Attended> {
    let status = child.wait()?;
    mark::stop();
    let took = begin.elapsed();
    let [_, out, err] = STREAMS;
    let written = WrittenBytes {
        out: pass(&mut File::open(out)?, &mut { streams.out })?,
        err: pass(&mut File::open(err)?, &mut { streams.err })?,
    };
    Ok((status, took, written))
}

/// Relays the streams until the program has ended.
fn attend(child: &mut Child, begin: Instant, streams: Streams) -> io::Result<Attended> {
    let Streams { mut stdin, out, err } = streams;
    if let Some(mut to) = child.stdin.take() {
        thread::spawn(move || {
            let _ = pass(&mut stdin, &mut to);
        });
    }
    let out = child.stdout.take().map(|from| passing(from, out));
    let err = child.stderr.take().map(|from| passing(from, err));
    let status = child.wait()?;
    mark::stop();
    let took = begin.elapsed();
    let total = |passing: Option<Passing>| passing.map_or(0, |p| p.total());
    Ok((status, took, WrittenBytes { out: total(out), err: total(err) }))
}

/// A stream that a thread relays.
struct Passing {
    /// A message for each relayed piece: its length.
    pieces: Receiver<u64>,
    /// Whether the thread holds a piece.
    busy: Arc<AtomicBool>,
}

fn passing(mut from: impl Read + Send + 'static, mut to: File) -> Passing {
    let (tell, pieces) = mpsc::channel();
    let busy = Arc::new(AtomicBool::new(false));
    let hands = Arc::clone(&busy);
    thread::spawn(move || {
        let mut buffer = vec![0; 32 << 10];
        loop {
            match from.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(n) => {
                    hands.store(true, Ordering::SeqCst);
                    if to.write_all(&buffer[..n]).is_err() || tell.send(n as u64).is_err() {
                        return;
                    }
                    hands.store(false, Ordering::SeqCst);
                }
            }
        }
    });
    Passing { pieces, busy }
}

impl Passing {
    /// Waits until all of the program's output has been relayed, and returns its length. The
    /// program has ended, so the rest is in the pipe. A process that the program left behind may
    /// keep the pipe open for ever.
    fn total(&self) -> u64 {
        // Everything relayed so far is the program's. Of what comes now, at most a pipe's contents
        // are.
        let mut total: u64 = self.pieces.try_iter().sum();
        let end = total + LARGEST_PIPE;
        loop {
            match self.pieces.recv_timeout(QUIET) {
                Ok(n) => {
                    total += n;
                    if total >= end {
                        return total;
                    }
                }
                // The host is slow.
                Err(RecvTimeoutError::Timeout) if self.busy.load(Ordering::SeqCst) => {}
                Err(_) => return total,
            }
        }
    }
}

/// Relays everything, and returns its length.
fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    let mut buffer = vec![0; 32 << 10];
    let mut total = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(n) => {
                to.write_all(&buffer[..n])?;
                total += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn how(status: ExitStatus) -> ProgramEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProgramEnd::Exit(code as u8),
        (None, signal) => ProgramEnd::Signal(signal.unwrap_or(0) as u8),
    }
}

/// Passes the host's signals on. Ends the guest when the host is gone.
fn watch(mut orders: BufReader<File>, child: u32) {
    thread::spawn(move || {
        let group = Pid::from_raw(child as i32);
        while let Ok(GuestCommand::Signal(number)) = homenode_wire::read(&mut orders) {
            if let (Some(signal), Some(group)) = (Signal::from_named_raw(number), group) {
                // The program may have ended in between.
                let _ = kill_process_group(group, signal);
            }
        }
        let _ = fs::write("/proc/sysrq-trigger", "o");
    });
}

/// Number of processes that the kernel has killed for lack of memory since the boot.
fn out_of_memory() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
}
