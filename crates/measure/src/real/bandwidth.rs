//! Bandwidth: STREAM's loops by threads that go in step, on any number of pairs at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use homenode_sys::block::AnonymousMemory;
use homenode_sys::stream::{self, STEP};

use super::proof::Seen;
use super::team::{Step, here};
use super::trouble::Trouble;
use super::{HostMeasurer, proof};
use crate::axes::{CpuNumber, NodeNumber, Op, Stores};
use crate::cell::{CellUnit, MeasuredCell, Proof, Subject};
use crate::item::Streams;
use crate::stats::SampleSummary;

/// STREAM's factor.
const Q: f64 = 3.0;
/// What the arrays start with (stream.c, 5.10).
const START: [f64; 3] = [1.0, 2.0, 0.0];
/// More rounds would leave the range of numbers: a grows 15-fold in each.
const MOST_ROUNDS: u32 = 200;
/// Fewest rounds that count.
const LEAST_ROUNDS: u32 = 3;
/// STREAM's bound on the relative error of results.
const EPSILON: f64 = 1e-13;
/// Elements between arrays beyond their length, so that they do not start at the same place of a
/// page.
const PAD: usize = 17 * STEP;

/// One thread's work.
struct Worker {
    pair: usize,
    cpu: CpuNumber,
    node: NodeNumber,
    block: AnonymousMemory,
    before: Seen,
}

/// What one thread did.
struct Done {
    cpus: Vec<CpuNumber>,
    /// By round and loop: from when to when.
    times: Vec<Vec<(Instant, Instant)>>,
    /// What is wrong with the results.
    wrong: Option<String>,
}

impl HostMeasurer {
    pub(super) fn bandwidth(&mut self, ask: &Streams, stop: &dyn Fn() -> bool) -> Vec<MeasuredCell> {
        let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| ask.ops.contains(op)).collect();
        let all = |share: Option<usize>, cell: &dyn Fn(Subject) -> MeasuredCell| -> Vec<MeasuredCell> {
            ops.iter().map(|op| cell(subject(ask, *op, share))).collect()
        };
        let absent = |t: &Trouble| {
            all(None, &|s| MeasuredCell::absent(s, CellUnit::MbPerS, t.why.clone(), t.remedy.clone()))
        };
        if ask.stores == Stores::NonTemporal && !stream::NON_TEMPORAL {
            return absent(&Trouble::new(
                "there are no non-temporal stores for this processor here",
                "measure regular stores",
            ));
        }
        let length = (ask.elements / u64::from(ask.threads.max(1)) / STEP as u64) as usize * STEP;
        if ops.is_empty() || ask.pairs.is_empty() || ask.threads == 0 || length == 0 {
            return absent(&Trouble::new(
                "there is nothing to measure",
                "name a loop, a pair, a thread and an array",
            ));
        }
        let workers = match self.workers(ask, length) {
            Ok(workers) => workers,
            Err(t) => return absent(&t),
        };
        let proofs: Vec<Proof> =
            workers.iter().map(|w| proof::begin(w.cpu, w.node, w.block.span(), &w.before)).collect();
        let early = proofs.iter().zip(&workers).find_map(|(p, w)| {
            proof::wrong(&Proof { after: p.before.clone(), ..p.clone() }, w.before.missing, ask.page)
        });
        if let Some(why) = early {
            return all(None, &|s| MeasuredCell::failed(s, CellUnit::MbPerS, why.clone(), proofs.clone()));
        }
        workers.iter().for_each(|w| self.tamper(&w.block, w.node));
        let (workers, done) = run(workers, ask, &ops, length, stop);
        self.judge(ask, &ops, length, workers, proofs, done)
    }

    /// A CPU and memory for each thread.
    fn workers(&mut self, ask: &Streams, length: usize) -> Result<Vec<Worker>, Trouble> {
        let nodes: Vec<NodeNumber> = ask.pairs.iter().map(|p| p.memory).collect();
        self.pool.keep(&nodes, ask.page);
        let mut used: BTreeMap<NodeNumber, usize> = BTreeMap::new();
        let mut workers = Vec::new();
        for (i, pair) in ask.pairs.iter().enumerate() {
            let first = *used.get(&pair.cpu).unwrap_or(&0);
            let last = first + ask.threads as usize;
            let cpus = self.host.some_cpus(pair.cpu, last);
            if cpus.len() < last {
                return Err(Trouble::new(
                    format!(
                        "{last} threads on {} are asked for and it has {} usable CPUs",
                        pair.cpu,
                        cpus.len()
                    ),
                    "ask for fewer with --threads or --pairs: two threads on a CPU would measure the scheduler",
                ));
            }
            used.insert(pair.cpu, last);
            for cpu in &cpus[first..] {
                let bytes = 3 * (length + PAD) * 8;
                let block = self.place(bytes as u64, pair.memory, ask.page)?;
                let before = proof::look(block.span())?;
                workers.push(Worker { pair: i, cpu: *cpu, node: pair.memory, block, before });
            }
        }
        Ok(workers)
    }

    fn judge(
        &mut self,
        ask: &Streams,
        ops: &[Op],
        length: usize,
        workers: Vec<Worker>,
        mut proofs: Vec<Proof>,
        done: Vec<Result<Done, String>>,
    ) -> Vec<MeasuredCell> {
        let all = |cell: &dyn Fn(Subject) -> MeasuredCell| -> Vec<MeasuredCell> {
            ops.iter().map(|op| cell(subject(ask, *op, None))).collect()
        };
        let remedy = "are the CPUs still on-line and in the process's cpuset?";
        let finished: Vec<Done> = match done.into_iter().collect::<Result<_, _>>() {
            Ok(finished) => finished,
            Err(why) => return all(&|s| MeasuredCell::absent(s, CellUnit::MbPerS, why.clone(), remedy)),
        };
        let pair_of: Vec<usize> = workers.iter().map(|w| w.pair).collect();
        let mut wrong = finished.iter().find_map(|d| d.wrong.clone());
        for ((p, w), d) in proofs.iter_mut().zip(&workers).zip(&finished) {
            p.cpu_read.clone_from(&d.cpus);
            match proof::look(w.block.span()) {
                Err(t) => {
                    return all(&|s| {
                        MeasuredCell::absent(s, CellUnit::MbPerS, t.why.clone(), t.remedy.clone())
                    });
                }
                Ok(after) => {
                    p.after = after.nodes;
                    p.huge =
                        if ask.page.bytes() > 4096 { p.huge.min(after.huge) } else { p.huge.max(after.huge) };
                    wrong = wrong.or_else(|| proof::wrong(p, after.missing, ask.page));
                }
            }
        }
        if let Some(why) = wrong {
            return all(&|s| MeasuredCell::failed(s, CellUnit::MbPerS, why.clone(), proofs.clone()));
        }
        for w in workers {
            self.pool.give(w.node, ask.page, w.block);
        }
        let mut cells = Vec::new();
        for (o, op) in ops.iter().enumerate() {
            let bytes = |threads: usize| (threads * length) as f64 * op.bytes() as f64;
            let mut cell = |share: Option<usize>| {
                let mine: Vec<&Done> = finished
                    .iter()
                    .zip(&pair_of)
                    .filter(|(_, p)| share.is_none_or(|s| s == **p))
                    .map(|(d, _)| d)
                    .collect();
                let rates: Vec<f64> =
                    rounds(&mine, o).iter().map(|t| bytes(mine.len()) / t.as_secs_f64() / 1e6).collect();
                let proof: Vec<Proof> = proofs
                    .iter()
                    .zip(&pair_of)
                    .filter(|(_, p)| share.is_none_or(|s| s == **p))
                    .map(|(p, _)| p.clone())
                    .collect();
                let subject = subject(ask, *op, share);
                cells.push(match SampleSummary::of(&rates) {
                    Some(summary) => MeasuredCell::of(subject, CellUnit::MbPerS, summary.max, summary, proof),
                    None => MeasuredCell::absent(
                        subject,
                        CellUnit::MbPerS,
                        "stopped before there was a round that counts",
                        "let it run",
                    ),
                });
            };
            cell(None);
            if ask.pairs.len() > 1 {
                (0..ask.pairs.len()).for_each(|i| cell(Some(i)));
            }
        }
        cells
    }
}

fn subject(ask: &Streams, op: Op, share: Option<usize>) -> Subject {
    Subject::Bandwidth {
        pairs: ask.pairs.clone(),
        share,
        threads: ask.threads,
        op,
        stores: ask.stores,
        page: ask.page,
    }
}

/// How long loop `op` took in each round but the first: from the first thread's start to the last
/// one's end.
fn rounds(done: &[&Done], op: usize) -> Vec<Duration> {
    let rounds = done.iter().map(|d| d.times.len()).min().unwrap_or(0);
    (1..rounds)
        .filter_map(|r| {
            let start = done.iter().map(|d| d.times[r][op].0).min()?;
            let end = done.iter().map(|d| d.times[r][op].1).max()?;
            Some(end.duration_since(start))
        })
        .collect()
}

/// Runs all threads; the workers come back, for their memory is looked at again.
fn run(
    mut workers: Vec<Worker>,
    ask: &Streams,
    ops: &[Op],
    length: usize,
    stop: &dyn Fn() -> bool,
) -> (Vec<Worker>, Vec<Result<Done, String>>) {
    let team = Step::new(workers.len());
    let (asked, end) = (AtomicBool::new(false), AtomicBool::new(false));
    let (team, asked, end) = (&team, &asked, &end);
    let done = std::thread::scope(|s| {
        let threads: Vec<_> = workers
            .iter_mut()
            .enumerate()
            .map(|(i, w)| {
                let leads = i == 0;
                s.spawn(move || work(w, ask, ops, length, team, leads, asked, end))
            })
            .collect();
        while threads.iter().any(|t| !t.is_finished()) {
            if stop() {
                asked.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = || Err("a thread that measures ended".to_owned());
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| ended())).collect()
    });
    (workers, done)
}

#[expect(clippy::too_many_arguments, reason = "a thread's whole world")]
fn work(
    worker: &mut Worker,
    ask: &Streams,
    ops: &[Op],
    length: usize,
    team: &Step,
    leads: bool,
    asked: &AtomicBool,
    end: &AtomicBool,
) -> Result<Done, String> {
    let first = team.join(worker.cpu)?;
    let (a, rest) = worker.block.floats_mut().split_at_mut(length + PAD);
    let (b, c) = rest.split_at_mut(length + PAD);
    let (a, b, c) = (&mut a[..length], &mut b[..length], &mut c[..length]);
    for (array, value) in [&mut *a, &mut *b, &mut *c].into_iter().zip(START) {
        array.fill(value);
    }
    let stores = match ask.stores {
        Stores::Regular => stream::StreamStores::Regular,
        Stores::NonTemporal => stream::StreamStores::NonTemporal,
    };
    let (mut want, mut wrong) = (START, None);
    let mut times = Vec::new();
    let start = Instant::now();
    let most = ask.rounds.clamp(LEAST_ROUNDS, MOST_ROUNDS);
    for round in 0..=most {
        if leads {
            let late = round > LEAST_ROUNDS && start.elapsed() >= ask.time;
            end.store(late || asked.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        team.wait();
        if end.load(Ordering::Relaxed) {
            break;
        }
        let mut row = Vec::with_capacity(ops.len());
        for op in ops {
            team.wait();
            let begin = Instant::now();
            let sum = one(*op, a, b, c, f64::from(round), stores);
            row.push((begin, Instant::now()));
            after(*op, &mut want, f64::from(round));
            let total = want[0] * length as f64;
            if *op == Op::Read && (sum - total).abs() > 1e-9 * total.abs() {
                wrong = wrong.or_else(|| Some(format!("the sum of a was {sum} and should be {total}")));
            }
        }
        times.push(row);
    }
    let wrong = wrong.or_else(|| validate([a, b, c], want));
    Ok(Done { cpus: vec![first, here()], times, wrong })
}

/// Runs one loop; what a read summed up.
fn one(op: Op, a: &mut [f64], b: &mut [f64], c: &mut [f64], round: f64, stores: stream::StreamStores) -> f64 {
    match op {
        Op::Copy => stream::copy(c, a, stores),
        Op::Scale => stream::scale(b, c, Q, stores),
        Op::Add => stream::add(c, a, b, stores),
        Op::Triad => stream::triad(a, b, c, Q, stores),
        Op::Write => stream::write(c, round + 0.5, stores),
        Op::Read => return stream::read(a),
    }
    0.0
}

/// What every element of a, b, c is afterwards.
fn after(op: Op, [a, b, c]: &mut [f64; 3], round: f64) {
    match op {
        Op::Copy => *c = *a,
        Op::Scale => *b = Q * *c,
        Op::Add => *c = *a + *b,
        Op::Triad => *a = *b + Q * *c,
        Op::Write => *c = round + 0.5,
        Op::Read => {}
    }
}

/// Every element, not only their mean as stream.c has it.
fn validate(arrays: [&[f64]; 3], want: [f64; 3]) -> Option<String> {
    let names = ["a", "b", "c"];
    names.iter().zip(arrays).zip(want).find_map(|((name, array), want)| {
        let off = |x: &f64| (x - want).abs() > EPSILON * want.abs();
        let at = array.iter().position(off)?;
        Some(format!("results are wrong: {name}[{at}] is {} and should be {want}", array[at]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_expectation_agree() {
        for stores in [stream::StreamStores::Regular, stream::StreamStores::NonTemporal] {
            let mut arrays = START.map(|v| vec![v; 64]);
            let mut want = START;
            for round in 0..5 {
                for op in Op::ALL {
                    let [a, b, c] = &mut arrays;
                    one(op, a, b, c, f64::from(round), stores);
                    after(op, &mut want, f64::from(round));
                }
            }
            let [a, b, c] = &arrays;
            assert_eq!(validate([a, b, c], want), None);
            arrays[1][63] *= 1.0 + 1e-12;
            let [a, b, c] = &arrays;
            assert!(validate([a, b, c], want).unwrap().starts_with("results are wrong: b[63] is "));
        }
    }

    #[test]
    fn a_round_lasts_from_the_first_start_to_the_last_end() {
        let t = Instant::now();
        let at = |ms| t + Duration::from_millis(ms);
        let done = |from: u64, to: u64| Done {
            cpus: vec![],
            times: vec![vec![(at(0), at(9))], vec![(at(from), at(to))]],
            wrong: None,
        };
        let (x, y) = (done(10, 15), done(12, 19));
        assert_eq!(rounds(&[&x, &y], 0), [Duration::from_millis(9)]);
        assert_eq!(rounds(&[&x], 0), [Duration::from_millis(5)]);
    }
}
