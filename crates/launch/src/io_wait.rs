//! How much of its time a program waits for input and output, from samples.
//!
//! # Approach
//! `/proc/PID/task/TID/syscall` names the system call in which a thread sleeps, and says `running`
//! of a thread that runs or waits for a CPU. A sample counts as a wait for input and output if no
//! thread runs and at least one sleeps in such a call. So a team that waits at a barrier for the
//! thread that reads a file counts, and a barrier alone does not. Writes to the recording's own
//! files do not count. Reads that the page cache answers hardly sleep, and are not seen.

use std::fs;
use std::path::{Path, PathBuf};

/// Fewer samples say nothing.
const LEAST: u32 = 8;
/// System calls of x86-64 that wait for files, pipes, sockets and devices, by number.
#[cfg(target_arch = "x86_64")]
const CALLS: &[u32] = &[
    0, 1, // read, write
    2, 257, 437, // open, openat, openat2
    7, 271, // poll, ppoll
    17, 18, 19, 20, 295, 296, 327, 328, // p, v and pv variants of read and write
    23, 270, // select, pselect6
    26, 74, 75, 162, 277, 306, // msync, fsync, fdatasync, sync, sync_file_range, syncfs
    40, 275, 326, // sendfile, splice, copy_file_range
    42, 43, 288, // connect, accept, accept4
    44, 45, 46, 47, 299, 307, // send and receive
    208, 426, // io_getevents, io_uring_enter
    217, // getdents64
    232, 281, 441, // epoll_wait, epoll_pwait, epoll_pwait2
    285, // fallocate
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS: &[u32] = &[];

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It runs, or waits for a CPU.
    Run,
    /// It waits for input or output; the first argument of the call.
    WaitForIo(u64),
    /// It waits for something else.
    Wait,
}

fn does(syscall: &str) -> Does {
    let mut words = syscall.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<u32>().ok()) else {
        // `running`, or `-1`: asleep outside of a call, for a page that comes from a file.
        return if syscall.starts_with("-1") { Does::Wait } else { Does::Run };
    };
    if !CALLS.contains(&number) {
        return Does::Wait;
    }
    let first = words.next().and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    Does::WaitForIo(first.unwrap_or(0))
}

/// Samples of a process.
#[derive(Clone, Debug)]
pub(crate) struct IoWait {
    /// `/proc/PID`.
    process: PathBuf,
    /// Files below it are the recording's.
    own: PathBuf,
    samples: u32,
    waits: u32,
}

impl IoWait {
    /// Of a process whose recording goes to `own`.
    pub(crate) fn new(pid: u32, own: &Path) -> Self {
        Self { process: PathBuf::from(format!("/proc/{pid}")), own: own.to_owned(), samples: 0, waits: 0 }
    }

    /// Takes a sample; a process that is gone or may not be looked at gives none.
    pub(crate) fn look(&mut self) {
        let Ok(tasks) = fs::read_dir(self.process.join("task")) else { return };
        let (mut any, mut waits) = (false, false);
        for task in tasks.flatten() {
            let Ok(text) = fs::read_to_string(task.path().join("syscall")) else { continue };
            any = true;
            match does(&text) {
                Does::Run => {
                    waits = false;
                    break;
                }
                Does::WaitForIo(file) => waits |= !self.is_own(file),
                Does::Wait => {}
            }
        }
        self.samples += u32::from(any);
        self.waits += u32::from(waits);
    }

    fn is_own(&self, file: u64) -> bool {
        let link = fs::read_link(self.process.join("fd").join(file.to_string()));
        link.is_ok_and(|to| to.starts_with(&self.own))
    }

    /// The share of the samples that are waits, from 0 to 1; `None`: there are too few.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.samples >= LEAST && !CALLS.is_empty()).then(|| f64::from(self.waits) / f64::from(self.samples))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_are_told_apart() {
        assert_eq!(does("running\n"), Does::Run);
        assert_eq!(does("0 0x3 0x7ffc 0x1000 0x0 0x0 0x0 0x7ffd 0x7f00\n"), Does::WaitForIo(3));
        assert_eq!(does("202 0x7f 0x189 0x0 0x0 0x0 0x0 0x7ffd 0x7f00\n"), Does::Wait, "futex");
        assert_eq!(does("-1 0x7ffd 0x7f00\n"), Does::Wait);
    }

    #[test]
    fn a_program_that_waits_for_its_input_is_seen_and_one_that_sleeps_or_computes_is_not() {
        let share = |words: &[&str]| {
            let mut child = Command::new(words[0]).args(&words[1..]).stdin(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            let mut seen = IoWait::new(child.id(), Path::new("/nowhere"));
            for _ in 0..20 {
                seen.look();
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
            seen.share()
        };
        let Some(waits) = share(&["cat"]) else {
            println!("skipped: /proc/PID/syscall cannot be read here");
            return;
        };
        assert!(waits > 0.9, "{waits}");
        assert_eq!(share(&["sleep", "30"]), Some(0.0));
        assert_eq!(share(&["sh", "-c", "while :; do :; done"]), Some(0.0));
    }

    #[test]
    fn few_samples_say_nothing() {
        assert_eq!(IoWait::new(u32::MAX, Path::new("/")).share(), None);
    }
}
