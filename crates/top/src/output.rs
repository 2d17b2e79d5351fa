//! The program's own output while homenode draws on its terminal: kept, and printed when the
//! terminal is free again.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, PipeReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use homenode_dataset::foreign::clean;

/// Bytes of output that are kept: the last ones.
const MOST: usize = 4 << 20;
/// How long a process that the program left behind may keep the output open.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of the last line that are shown.
const LINE: usize = 512;

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Bytes that were dropped.
    dropped: u64,
    /// The terminal is free: what comes is printed at once.
    free: bool,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        if self.free {
            // Nobody can be told that the terminal is gone.
            let _ = io::stderr().write_all(bytes);
            return;
        }
        self.bytes.extend(bytes);
        let beyond = self.bytes.len().saturating_sub(MOST);
        self.bytes.drain(..beyond);
        self.dropped += beyond as u64;
    }

    /// The last line that is not empty.
    fn last(&self) -> String {
        let tail = self.bytes.len().saturating_sub(LINE);
        let tail: Vec<u8> = self.bytes.iter().skip(tail).copied().collect();
        let text = String::from_utf8_lossy(&tail).into_owned();
        // A bar of progress returns to the beginning of its line.
        let last = text.split(['\n', '\r']).rev().map(str::trim).find(|l| !l.is_empty());
        clean(last.unwrap_or_default())
    }
}

/// The output of a program.
#[derive(Debug)]
pub struct Output {
    kept: Arc<Mutex<Kept>>,
    reader: JoinHandle<()>,
}

impl Output {
    /// Keeps what `command` writes to the terminal. What it writes to a file or a pipe goes there.
    /// A program that would read from the terminal finds its end there: the keys are homenode's.
    /// `None`: nothing goes to the terminal.
    ///
    /// # Errors
    /// The system has no pipe left.
    pub fn keep(command: &mut Command) -> io::Result<Option<Self>> {
        if io::stdin().is_terminal() {
            command.stdin(Stdio::null());
        }
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        if !out && !err {
            return Ok(None);
        }
        let (reader, writer) = io::pipe()?;
        if out {
            command.stdout(writer.try_clone()?);
        }
        if err {
            command.stderr(writer.try_clone()?);
        }
        drop(writer);
        let kept = Arc::new(Mutex::new(Kept::default()));
        let to = Arc::clone(&kept);
        Ok(Some(Self { kept, reader: thread::spawn(move || copy(reader, &to)) }))
    }

    /// The last line that the program printed.
    pub fn last(&self) -> String {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).last()
    }

    /// The terminal is free: prints what was kept. What comes later is printed at once.
    pub fn free(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.free {
            return;
        }
        kept.free = true;
        let mut to = io::stderr();
        if kept.dropped > 0 {
            let _ =
                writeln!(to, "homenode: the first {} bytes of the program's output are lost", kept.dropped);
        }
        let (a, b) = kept.bytes.as_slices();
        let _ = to.write_all(a).and_then(|()| to.write_all(b));
        kept.bytes.clear();
    }

    /// The program has ended: waits for the rest of its output, and prints it.
    pub fn end(self) {
        self.free();
        let begun = Instant::now();
        while !self.reader.is_finished() && begun.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn copy(mut from: PipeReader, to: &Mutex<Kept>) {
    let mut bytes = [0; 1 << 14];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(n) => to.lock().unwrap_or_else(PoisonError::into_inner).add(&bytes[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_and_the_last_line_is_shown() {
        let mut kept = Kept::default();
        kept.add(b"step 1\nstep 2\x1b[31m\n\n");
        assert!(kept.last().starts_with("step 2"), "{}", kept.last());
        assert!(!kept.last().contains('\x1b'));
        for _ in 0..=MOST / 4096 {
            kept.add(&[b'x'; 4096]);
        }
        assert_eq!(kept.bytes.len(), MOST);
        assert_eq!(kept.dropped, (MOST / 4096 + 1) as u64 * 4096 + 20 - MOST as u64);
    }
}
