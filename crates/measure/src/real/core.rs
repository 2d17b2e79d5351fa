//! A cache line that two CPUs pass to and fro.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::latency::Asked;
use super::team::{Step, here};
use super::trouble::Trouble;
use super::{HostMeasurer, proof};
use crate::axes::{CpuNumber, PageSize};
use crate::cell::{CellUnit, Credibility, MeasuredCell, Subject};
use crate::item::CoreToCore;
use crate::stats::SampleSummary;

/// What ends the game.
const OVER: u64 = u64::MAX;
/// A sample should take about so long.
const SAMPLE: Duration = Duration::from_micros(200);
/// Round trips of a sample, at most.
const MOST: u64 = 2000;
/// Samples are taken until there are this many, for at most ten times as long as was asked for.
const ENOUGH: usize = 8;
/// Turns of the wait after which the CPU is offered to others: where there are fewer real CPUs than
/// these, nothing else lets the partner run. A line between two CPUs takes far fewer.
const PATIENCE: u32 = 1 << 14;

impl HostMeasurer {
    pub(super) fn core(&mut self, ask: &CoreToCore, stop: &dyn Fn() -> bool) -> MeasuredCell {
        let nodes = (self.host.node_of(ask.cpus.0), self.host.node_of(ask.cpus.1));
        let (Some(a), Some(b)) = nodes else {
            let none = crate::axes::NodeNumber(u16::MAX);
            let nodes = (nodes.0.unwrap_or(none), nodes.1.unwrap_or(none));
            let subject = Subject::Core { cpus: ask.cpus, nodes, home: ask.home };
            return MeasuredCell::absent(
                subject,
                CellUnit::Ns,
                "one of the CPUs cannot be used",
                "'homenode measure --json' lists CPUs",
            );
        };
        let subject = Subject::Core { cpus: ask.cpus, nodes: (a, b), home: ask.home };
        let absent = |t: Trouble| MeasuredCell::absent(subject.clone(), CellUnit::Ns, t.why, t.remedy);
        if ask.cpus.0 == ask.cpus.1 {
            return absent(Trouble::new("a line needs two CPUs to go between", "choose two"));
        }
        self.pool.keep(&[ask.home], PageSize::Small);
        let block = match self.place(1, ask.home, PageSize::Small) {
            Ok(block) => block,
            Err(t) => return absent(t),
        };
        let before = match proof::look(block.span()) {
            Ok(seen) => seen,
            Err(t) => return absent(t),
        };
        let mut proofs = [ask.cpus.0, ask.cpus.1].map(|c| proof::begin(c, ask.home, block.span(), &before));
        self.tamper(&block, ask.home);
        // In the middle, where a page that is moved away is seen.
        let line = &block.words()[block.words().len() / 2];
        line.store(0, Ordering::Relaxed);
        let played = play(ask, line, stop);
        let (samples, cpus) = match played {
            Ok(played) => played,
            Err(why) => {
                return absent(Trouble::new(why, "are the CPUs still on-line and in the process's cpuset?"));
            }
        };
        let after = match proof::look(block.span()) {
            Ok(seen) => seen,
            Err(t) => return absent(t),
        };
        for (p, cpus) in proofs.iter_mut().zip(cpus) {
            p.cpu_read = cpus;
            p.after.clone_from(&after.nodes);
        }
        let wrong =
            proofs.iter().find_map(|p| proof::wrong(p, before.missing.max(after.missing), PageSize::Small));
        let cell = match (wrong, SampleSummary::of(&samples)) {
            (Some(why), _) => MeasuredCell::failed(subject, CellUnit::Ns, why, proofs.to_vec()),
            (None, Some(s)) => MeasuredCell::of(subject, CellUnit::Ns, s.median, s, proofs.to_vec()),
            (None, None) => {
                MeasuredCell::absent(subject, CellUnit::Ns, "stopped before there was a sample", "let it run")
            }
        };
        if !matches!(cell.verdict, Credibility::Failed { .. }) {
            self.pool.give(ask.home, PageSize::Small, block);
        }
        cell
    }
}

type Played = (Vec<f64>, [Vec<CpuNumber>; 2]);

fn play(ask: &CoreToCore, line: &AtomicU64, stop: &dyn Fn() -> bool) -> Result<Played, String> {
    let team = Step::new(2);
    let asked = Asked::new();
    std::thread::scope(|s| {
        let first = s.spawn(|| {
            let cpu = team.join(ask.cpus.0)?;
            let samples = serve(line, ask.time, &asked);
            line.store(OVER, Ordering::Release);
            Ok::<_, String>((samples, vec![cpu, here()]))
        });
        let second = s.spawn(|| {
            let cpu = team.join(ask.cpus.1)?;
            answer(line);
            Ok::<_, String>(vec![cpu, here()])
        });
        while !(first.is_finished() && second.is_finished()) {
            if stop() {
                asked.ask();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = || "a thread that measures ended".to_owned();
        let first = first.join().unwrap_or_else(|_| Err(ended()));
        let second = second.join().unwrap_or_else(|_| Err(ended()));
        let ((samples, a), b) = (first?, second?);
        Ok((samples, [a, b]))
    })
}

/// Writes odd numbers and waits for even ones; nanoseconds of one way, a sample each.
fn serve(line: &AtomicU64, time: Duration, asked: &Asked) -> Vec<f64> {
    let mut samples = Vec::new();
    let (mut turn, mut trips) = (0, 1);
    let start = Instant::now();
    loop {
        let begin = Instant::now();
        for _ in 0..trips {
            line.store(turn + 1, Ordering::Release);
            turn += 2;
            wait(line, |v| v == turn);
        }
        let took = begin.elapsed();
        let one = took / trips as u32;
        // What warms up, and what finds out how many trips a sample needs, does not count.
        if trips > 1 || one >= SAMPLE {
            samples.push(took.as_secs_f64() * 1e9 / (2 * trips) as f64);
        }
        if trips == 1 {
            trips = (SAMPLE.as_nanos() / one.as_nanos().max(1)).clamp(1, u128::from(MOST)) as u64;
        }
        let elapsed = start.elapsed();
        let enough = samples.len() >= ENOUGH || elapsed >= time * 10;
        if asked.asked() || elapsed >= time && enough {
            return samples;
        }
    }
}

/// Answers each odd number with the even one after it.
fn answer(line: &AtomicU64) {
    loop {
        let turn = wait(line, |v| v % 2 == 1);
        if turn == OVER {
            return;
        }
        line.store(turn + 1, Ordering::Release);
    }
}

fn wait(line: &AtomicU64, until: impl Fn(u64) -> bool) -> u64 {
    let mut turns = 0;
    loop {
        let v = line.load(Ordering::Acquire);
        if until(v) {
            return v;
        }
        turns += 1;
        if turns == PATIENCE {
            std::thread::yield_now();
            turns = 0;
        }
    }
}
