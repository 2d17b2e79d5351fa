//! Idle latency: a walk along a ring of pointers.

use std::time::{Duration, Instant};

use homenode_sys::ring::Ring;

use super::team::{Step, here};
use super::trouble::Trouble;
use super::{HostMeasurer, Random, proof};
use crate::axes::{NodeNumber, NodePair, PageSize};
use crate::cell::{CellUnit, Credibility, MeasuredCell, Proof, Subject};
use crate::item::Chase;
use crate::stats::SampleSummary;

/// Samples a lap, at most; a sample has at least [`LEAST`] steps, so that reading the clock does
/// not show.
const SAMPLES: u64 = 64;
const LEAST: u64 = 1 << 10;
/// Samples are taken until there are this many, however long they take.
const ENOUGH: usize = 8;

impl HostMeasurer {
    pub(super) fn latency(&mut self, pair: NodePair, chase: &Chase, stop: &dyn Fn() -> bool) -> MeasuredCell {
        let subject = Subject::Latency { pair, page: chase.page };
        let absent = |t: Trouble| MeasuredCell::absent(subject.clone(), CellUnit::Ns, t.why, t.remedy);
        let Some(cpu) = self.host.some_cpus(pair.cpu, 1).first().copied() else {
            return absent(Trouble::new(
                format!("{} has no CPU that can be used", pair.cpu),
                "choose another node",
            ));
        };
        let mut ring = match self.ring(pair.memory, chase) {
            Ok(ring) => ring,
            Err(t) => return absent(t),
        };
        let before = match proof::look(ring.block().span()) {
            Ok(seen) => seen,
            Err(t) => return absent(t),
        };
        let mut proof = proof::begin(cpu, pair.memory, ring.block().span(), &before);
        if let Some(why) =
            proof::wrong(&Proof { after: proof.before.clone(), ..proof.clone() }, before.missing, chase.page)
        {
            return MeasuredCell::failed(subject, CellUnit::Ns, why, vec![proof]);
        }
        self.tamper(ring.block(), pair.memory);
        let team = Step::new(1);
        let random = &mut self.random;
        // `stop` is asked from here, for it need not be shareable.
        let ask = Asked::new();
        let walked = std::thread::scope(|s| {
            let walker = s.spawn(|| {
                let first = team.join(cpu)?;
                let samples = walk(&mut ring, chase, random, &ask);
                Ok::<_, String>((vec![first, here()], samples))
            });
            while !walker.is_finished() {
                if stop() {
                    ask.ask();
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            walker.join().unwrap_or_else(|_| Err("the thread that measures ended".into()))
        });
        let (cpus, samples) = match walked {
            Ok(walked) => walked,
            Err(why) => {
                return absent(Trouble::new(why, "is the CPU still on-line and in the process's cpuset?"));
            }
        };
        proof.cpu_read = cpus;
        let cell = match proof::look(ring.block().span()) {
            Err(t) => absent(t),
            Ok(after) => {
                proof.after = after.nodes;
                proof.huge = proof.huge.min(after.huge);
                if chase.page == PageSize::Small {
                    proof.huge = proof.huge.max(after.huge);
                }
                finish(subject.clone(), &samples, proof, after.missing, chase)
            }
        };
        // What was found to be wrong is not used again.
        if !matches!(cell.verdict, Credibility::Failed { .. }) {
            self.pool.give_ring(pair.memory, chase.page, ring);
        }
        cell
    }

    /// A ring on that node, linked or not.
    pub(super) fn ring(&mut self, node: NodeNumber, chase: &Chase) -> Result<Ring, Trouble> {
        let stride = (chase.stride.max(8) & !7) as usize;
        let bytes = chase.buffer.max(1).next_multiple_of(homenode_sys::HUGE as u64);
        let slots = bytes as usize / stride;
        if u32::try_from(slots).is_err() || slots < 2 {
            return Err(Trouble::new(
                format!("a buffer of {bytes} bytes with a slot every {stride} bytes"),
                "choose --buffer and --stride so that there are 2 to 2^32 slots",
            ));
        }
        self.pool.keep(&[], chase.page);
        if let Some(ring) = self.pool.ring(node, chase.page, slots) {
            return Ok(ring);
        }
        self.place(bytes, node, chase.page).map(|block| Ring::new(block, stride))
    }
}

fn finish(subject: Subject, samples: &[f64], proof: Proof, missing: u64, chase: &Chase) -> MeasuredCell {
    if let Some(why) = proof::wrong(&proof, missing, chase.page) {
        return MeasuredCell::failed(subject, CellUnit::Ns, why, vec![proof]);
    }
    match SampleSummary::of(samples) {
        None => {
            MeasuredCell::absent(subject, CellUnit::Ns, "stopped before there was a sample", "let it run")
        }
        Some(summary) => MeasuredCell::of(subject, CellUnit::Ns, summary.median, summary, vec![proof]),
    }
}

/// A wish to stop that crosses threads.
#[derive(Debug)]
pub(super) struct Asked(std::sync::atomic::AtomicBool);

impl Asked {
    pub const fn new() -> Self {
        Self(std::sync::atomic::AtomicBool::new(false))
    }
    pub fn ask(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    pub fn asked(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Nanoseconds a step, a sample each.
fn walk(ring: &mut Ring, chase: &Chase, random: &mut Random, stop: &Asked) -> Vec<f64> {
    let mut samples = Vec::new();
    let slots = ring.slots() as u64;
    let steps = (slots / SAMPLES).clamp(LEAST.min(slots), 1 << 16);
    let mut order = Vec::new();
    let (mut lap, mut warm) = (0, false);
    let mut start = Instant::now();
    loop {
        if ring.left() == 0 {
            lap += 1;
            if chase.laps > 0 && lap > chase.laps + 1 {
                return samples;
            }
            ring.turn(&mut order, |order| random.shuffle(order, slots as u32));
        }
        // The first lap warms up; where there is no time for a lap, an eighth of the time.
        let warming = !warm && lap <= 1 && start.elapsed() < chase.time / 8;
        if !warming && !warm {
            (warm, start) = (true, Instant::now());
        }
        let begin = Instant::now();
        let walked = ring.walk(steps);
        let took = begin.elapsed();
        // The short rest of a lap is walked and not counted.
        if !warming && walked == steps {
            samples.push(took.as_secs_f64() * 1e9 / walked as f64);
        }
        if stop.asked() || warm && samples.len() >= ENOUGH && start.elapsed() >= chase.time {
            return samples;
        }
    }
}
