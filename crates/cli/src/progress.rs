//! Progress of something that may take long: a bar on a terminal, a line now and then elsewhere.
//!
//! Always on stderr, and nothing at all in the first two seconds.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::say;
use homenode_error::digits::grouped;

/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines in a log are at least this far apart.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Progress of one piece of work.
#[derive(Debug)]
pub struct TerminalProgress {
    what: String,
    total: Option<u64>,
    done: u64,
    start: Instant,
    show: Show,
}

#[derive(Debug)]
enum Show {
    Nothing,
    Bar(ProgressBar),
    Lines(Pace),
}

impl TerminalProgress {
    /// Starts. `what` is a phrase such as "recording nas-cg". `total` has the unit that
    /// [`advance`](homenode_task::Progress::advance) counts.
    pub fn new(what: impl Into<String>, total: Option<u64>) -> Self {
        let what = what.into();
        let show = if io::stderr().is_terminal() {
            Show::Bar(bar(&what, total))
        } else {
            Show::Lines(Pace { next: PATIENCE })
        };
        Self { what, total, done: 0, start: Instant::now(), show }
    }

    /// One that shows nothing (`--quiet`, tests).
    pub fn hidden() -> Self {
        Self { what: String::new(), total: None, done: 0, start: Instant::now(), show: Show::Nothing }
    }
}

impl homenode_task::Progress for TerminalProgress {
    fn advance(&mut self, more: u64) {
        self.done = self.done.saturating_add(more);
        let elapsed = self.start.elapsed();
        match &mut self.show {
            Show::Nothing => {}
            Show::Bar(bar) => {
                if elapsed >= PATIENCE {
                    bar.set_position(self.done);
                }
            }
            Show::Lines(pace) => {
                if pace.due(elapsed) {
                    say(line(&self.what, self.done, self.total, elapsed));
                }
            }
        }
    }

    /// A bar disappears.
    fn finish(self: Box<Self>) {
        if let Show::Bar(bar) = self.show {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(5));
    let form = match total {
        Some(_) => "{msg} {wide_bar} {percent}% {eta}",
        None => "{msg} {spinner} {human_pos} {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// When lines are due.
#[derive(Debug)]
struct Pace {
    next: Duration,
}

impl Pace {
    fn due(&mut self, elapsed: Duration) -> bool {
        let due = elapsed >= self.next;
        if due {
            self.next = elapsed + LINE_EVERY;
        }
        due
    }
}

fn line(what: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    match total {
        Some(total) if total > 0 => {
            let said = format!(
                "{what}: {} % after {} s",
                u128::from(done) * 100 / u128::from(total),
                elapsed.as_secs()
            );
            match left(done, total, elapsed) {
                Some(left) => format!("{said}, about {} s left", left.as_secs()),
                None => said,
            }
        }
        _ => format!("{what}: {} after {} s", grouped(done), elapsed.as_secs()),
    }
}

/// Estimated time left at the speed so far. `None` before the first step and after the last.
fn left(done: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let rest = total.checked_sub(done).filter(|rest| *rest > 0 && done > 0)?;
    Some(elapsed.mul_f64(rest as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use homenode_task::Progress as _;

    use super::*;

    const fn s(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn lines_are_sparse_and_never_early() {
        let mut pace = Pace { next: PATIENCE };
        let said: Vec<u64> = (0..100).filter(|t| pace.due(s(*t))).collect();
        assert_eq!(said, [2, 32, 62, 92]);
    }

    #[test]
    fn a_line_says_how_far_it_is() {
        assert_eq!(
            line("recording nas-cg", 3, Some(4), s(63)),
            "recording nas-cg: 75 % after 63 s, about 21 s left"
        );
        assert_eq!(line("measuring", 4, Some(4), s(9)), "measuring: 100 % after 9 s");
        assert_eq!(line("measuring", 0, Some(4), s(9)), "measuring: 0 % after 9 s");
        assert_eq!(line("reading", 1200, None, s(2)), "reading: 1200 after 2 s");
        assert_eq!(line("reading", 0, Some(0), s(2)), "reading: 0 after 2 s");
    }

    #[test]
    fn hidden_progress_counts_without_a_word() {
        let mut p = Box::new(TerminalProgress::hidden());
        p.advance(u64::MAX);
        p.advance(1);
        p.finish();
    }
}
