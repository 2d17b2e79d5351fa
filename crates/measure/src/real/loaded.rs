//! Latency while other CPUs load the same memory.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use homenode_sys::block::AnonymousMemory;
use homenode_sys::ring::Ring;
use homenode_sys::stream::{self, STEP};

use super::latency::Asked;
use super::team::{Step, here};
use super::trouble::Trouble;
use super::{HostMeasurer, Random, proof};
use crate::ask::IDLE;
use crate::axes::{CpuNumber, Mix};
use crate::cell::{CellUnit, MeasuredCell, Proof, Subject};
use crate::item::Load;
use crate::stats::SampleSummary;

/// Numbers in a piece of 4 KiB, between two pauses.
const PIECE: usize = 512;
/// How long the load runs before anybody measures.
const WARM: Duration = Duration::from_millis(20);
/// Steps of a sample.
const STEPS: u64 = 1 << 11;
/// A point has this many samples, however long they take.
const ENOUGH: usize = 8;
/// What the one that measures and those that load share.
struct Shared {
    over: AtomicBool,
    pause: AtomicU32,
    /// Traffic of each that loads, in bytes.
    moved: Vec<Line>,
    /// Pieces whose sum was wrong.
    wrong: AtomicU64,
}

/// A counter on lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

impl Shared {
    fn traffic(&self) -> u64 {
        self.moved.iter().map(|m| m.0.load(Ordering::Relaxed)).sum()
    }
}

/// A point: the pause, 10^6 bytes a second, nanoseconds a step.
struct Point {
    pause: u32,
    rate: f64,
    samples: Vec<f64>,
}

impl HostMeasurer {
    pub(super) fn loaded(&mut self, load: &Load, stop: &dyn Fn() -> bool) -> Vec<MeasuredCell> {
        let subject = |pause| Subject::Loaded { pair: load.pair, mix: load.mix, pause };
        let absent = |t: Trouble| {
            let cell =
                |p: &u32| MeasuredCell::absent(subject(*p), CellUnit::Ns, t.why.clone(), t.remedy.clone());
            load.pauses.iter().map(cell).collect::<Vec<_>>()
        };
        let Some(cpu) = self.host.some_cpus(load.pair.cpu, 1).first().copied() else {
            return absent(Trouble::new(
                format!("{} has no CPU that can be used", load.pair.cpu),
                "choose another node",
            ));
        };
        let (others, note) = self.loaders(load, cpu);
        if others.is_empty() {
            return absent(Trouble::new(
                "one CPU waits and another loads, and there is only one",
                "allow the process a second CPU (taskset, cpuset)",
            ));
        }
        let mut ring = match self.ring(load.pair.memory, &load.chase) {
            Ok(ring) => ring,
            Err(t) => return absent(t),
        };
        let mut blocks = Vec::new();
        for _ in &others {
            match self.place(load.chase.buffer / others.len() as u64, load.pair.memory, load.chase.page) {
                Ok(block) => blocks.push(block),
                Err(t) => return absent(t),
            }
        }
        let cpus: Vec<CpuNumber> = std::iter::once(cpu).chain(others.iter().copied()).collect();
        let mut proofs = Vec::new();
        for (cpu, span) in cpus.iter().zip(spans(&ring, &blocks)) {
            match proof::look(span) {
                Ok(seen) => proofs.push(proof::begin(*cpu, load.pair.memory, span, &seen)),
                Err(t) => return absent(t),
            }
        }
        self.tamper(ring.block(), load.pair.memory);
        let run = run(load, &cpus, &mut ring, &mut blocks, &mut self.random, stop);
        let (points, read) = match run {
            Ok(run) => run,
            Err(why) => {
                return absent(Trouble::new(why, "are the CPUs still on-line and in the process's cpuset?"));
            }
        };
        let mut wrong = None;
        for ((p, read), span) in proofs.iter_mut().zip(read).zip(spans(&ring, &blocks)) {
            p.cpu_read = read;
            match proof::look(span) {
                Err(t) => return absent(t),
                Ok(after) => {
                    p.after = after.nodes;
                    wrong = wrong.or_else(|| proof::wrong(p, after.missing, load.chase.page));
                }
            }
        }
        if wrong.is_none() {
            self.pool.give_ring(load.pair.memory, load.chase.page, ring);
            blocks.into_iter().for_each(|b| self.pool.give(load.pair.memory, load.chase.page, b));
        }
        load.pauses
            .iter()
            .map(|p| cell(subject(*p), *p, &points, wrong.as_ref(), &proofs, note.as_ref()))
            .collect()
    }

    /// Who loads: other cores of the same node, else of the nodes nearest to it, which is said.
    fn loaders(&self, load: &Load, cpu: CpuNumber) -> (Vec<CpuNumber>, Option<String>) {
        let near = self.host.nearest_cpus(load.pair.cpu);
        for node in near {
            let cpus = self.host.some_cpus(node, usize::MAX);
            let mine: Vec<CpuNumber> =
                cpus.into_iter().filter(|c| *c != cpu).take(load.threads.max(1) as usize).collect();
            if !mine.is_empty() {
                let note = (node != load.pair.cpu)
                    .then(|| format!("{} has no second CPU: the load comes from {node}", load.pair.cpu));
                return (mine, note);
            }
        }
        (Vec::new(), None)
    }
}

fn spans<'a>(ring: &'a Ring, blocks: &'a [AnonymousMemory]) -> impl Iterator<Item = homenode_sys::Span> + 'a {
    std::iter::once(ring.block().span()).chain(blocks.iter().map(AnonymousMemory::span))
}

fn cell(
    subject: Subject,
    pause: u32,
    points: &[Point],
    wrong: Option<&String>,
    proofs: &[Proof],
    note: Option<&String>,
) -> MeasuredCell {
    if let Some(why) = wrong {
        return MeasuredCell::failed(subject, CellUnit::Ns, why, proofs.to_vec());
    }
    let point = points.iter().find(|p| p.pause == pause);
    let Some((point, summary)) = point.and_then(|p| Some((p, SampleSummary::of(&p.samples)?))) else {
        return MeasuredCell::absent(subject, CellUnit::Ns, "stopped before this point", "let it run");
    };
    let mut cell = MeasuredCell::of(subject, CellUnit::Ns, summary.median, summary, proofs.to_vec());
    cell.more.insert("injected_mb_per_s".into(), point.rate);
    cell.notes.extend(note.cloned());
    cell
}

type Run = (Vec<Point>, Vec<Vec<CpuNumber>>);

fn run(
    load: &Load,
    cpus: &[CpuNumber],
    ring: &mut Ring,
    blocks: &mut [AnonymousMemory],
    random: &mut Random,
    stop: &dyn Fn() -> bool,
) -> Result<Run, String> {
    let team = &Step::new(cpus.len());
    let asked = &Asked::new();
    let shared = &Shared {
        over: AtomicBool::new(false),
        pause: AtomicU32::new(IDLE),
        moved: (1..cpus.len()).map(|_| Line::default()).collect(),
        wrong: AtomicU64::new(0),
    };
    let results = std::thread::scope(|s| {
        let waiter = s.spawn(move || {
            let first = team.join(cpus[0])?;
            let points =
                load.pauses.iter().map_while(|p| point(*p, load, ring, random, shared, asked)).collect();
            shared.over.store(true, Ordering::Relaxed);
            Ok::<_, String>((points, vec![first, here()]))
        });
        let loaders: Vec<_> = blocks
            .iter_mut()
            .zip(&cpus[1..])
            .zip(&shared.moved)
            .map(|((block, cpu), moved)| {
                s.spawn(move || {
                    let first = team.join(*cpu)?;
                    inject(block, load.mix, shared, &moved.0);
                    Ok::<_, String>(vec![first, here()])
                })
            })
            .collect();
        while !waiter.is_finished() {
            if stop() {
                asked.ask();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Should the waiter have failed, the others end with it.
        shared.over.store(true, Ordering::Relaxed);
        let ended = || "a thread that measures ended".to_owned();
        let waited = waiter.join().unwrap_or_else(|_| Err(ended()));
        let read: Vec<Result<Vec<CpuNumber>, String>> =
            loaders.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(ended()))).collect();
        (waited, read)
    });
    let (points, first) = results.0?;
    let mut read = vec![first];
    for r in results.1 {
        read.push(r?);
    }
    match shared.wrong.load(Ordering::Relaxed) {
        0 => Ok((points, read)),
        n => Err(format!("{n} pieces of memory that was loaded had wrong contents")),
    }
}

/// One point of the curve; `None` when somebody asked to stop.
fn point(
    pause: u32,
    load: &Load,
    ring: &mut Ring,
    random: &mut Random,
    shared: &Shared,
    asked: &Asked,
) -> Option<Point> {
    shared.pause.store(pause, Ordering::Relaxed);
    let slots = ring.slots() as u32;
    let mut order = Vec::new();
    let mut relink = |ring: &mut Ring| {
        if ring.left() < STEPS {
            ring.turn(&mut order, |order| random.shuffle(order, slots));
        }
    };
    relink(ring);
    let warm = Instant::now();
    while warm.elapsed() < WARM {
        relink(ring);
        ring.walk(STEPS);
    }
    let mut samples = Vec::new();
    let (mut moved, mut during) = (0, Duration::ZERO);
    let start = Instant::now();
    while samples.len() < ENOUGH || start.elapsed() < load.chase.time {
        if asked.asked() {
            return None;
        }
        relink(ring);
        let (begin, before) = (Instant::now(), shared.traffic());
        let walked = ring.walk(STEPS);
        let took = begin.elapsed();
        moved += shared.traffic() - before;
        during += took;
        samples.push(took.as_secs_f64() * 1e9 / walked.max(1) as f64);
    }
    Some(Point { pause, rate: moved as f64 / during.as_secs_f64() / 1e6, samples })
}

/// Loads memory until the measurement ends. `mix` says how many pieces are only read for each piece
/// that is read and written back.
fn inject(block: &mut AnonymousMemory, mix: Mix, shared: &Shared, moved: &AtomicU64) {
    let numbers = block.floats_mut();
    numbers.fill(1.0);
    let bytes = (PIECE * 8) as u64;
    let mut turn = 0;
    loop {
        for piece in numbers.chunks_exact_mut(PIECE) {
            let mut pause = shared.pause.load(Ordering::Relaxed);
            while pause == IDLE && !shared.over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(500));
                pause = shared.pause.load(Ordering::Relaxed);
            }
            if shared.over.load(Ordering::Relaxed) {
                return;
            }
            turn = (turn + 1) % mix.reads.max(1);
            let traffic = if mix.writes > 0 && turn == 0 {
                stream::update(piece, 1.0);
                2 * bytes
            } else {
                if (stream::read(piece) - (PIECE / STEP * STEP) as f64).abs() > 0.5 {
                    shared.wrong.fetch_add(1, Ordering::Relaxed);
                }
                bytes
            };
            moved.fetch_add(traffic, Ordering::Relaxed);
            for _ in 0..pause {
                std::hint::black_box(());
            }
        }
    }
}
