//! What a next touch costs: armed pages go to the thread that touches them, by the very mover that
//! `homenode run` uses.

use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use homenode_runtime::moving::{self, Mechanism, MovingOptions};
use homenode_sys::block::AnonymousMemory;
use homenode_sys::{PAGE, memory};

use super::latency::Asked;
use super::migration::all_to;
use super::proof::huge_bytes;
use super::team::{Step, here};
use super::trouble::Trouble;
use super::{HostMeasurer, proof};
use crate::axes::{CpuNumber, PageSize};
use crate::cell::{CellUnit, MeasuredCell, Proof, Subject};
use crate::item::MigrationTest;
use crate::stats::SampleSummary;

/// Words of a page of 4 KiB.
const WORDS: usize = PAGE / 8;

/// What rounds gave: a number each.
#[derive(Debug, Default)]
struct Rounds {
    /// Nanoseconds that the toucher needed for a page.
    touch: Vec<f64>,
    /// Nanoseconds of arming, a page.
    arm: Vec<f64>,
    /// Nanoseconds of ending it and of putting huge pages together again, a page.
    settle: Vec<f64>,
    /// Share of the memory that is in huge pages afterwards.
    huge: Vec<f64>,
}

impl HostMeasurer {
    pub(super) fn next_touch(&mut self, ask: &MigrationTest, stop: &dyn Fn() -> bool) -> MeasuredCell {
        let subject = Subject::NextTouch { from: ask.from, to: ask.to, page: ask.page };
        let absent = |t: Trouble| MeasuredCell::absent(subject.clone(), CellUnit::Ns, t.why, t.remedy);
        let Some(cpu) = self.host.some_cpus(ask.to, 1).first().copied() else {
            return absent(Trouble::new(
                format!("{} has no CPU that could touch", ask.to),
                "choose another node",
            ));
        };
        // This process makes no call past the C library that gives memory up.
        let started = moving::start(&MovingOptions { copy_unseen: true, ..MovingOptions::default() });
        if started.mechanism == Mechanism::None {
            return absent(Trouble::new(
                format!("there is no way to do it: {}", started.reasons.join("; ")),
                "'homenode doctor' says what to change",
            ));
        }
        let bytes = ask.buffer.max(1).next_multiple_of(homenode_sys::HUGE as u64);
        self.pool.keep(&[ask.from], ask.page);
        let block = match self.place(bytes, ask.from, ask.page) {
            Ok(block) => block,
            Err(t) => return absent(t),
        };
        // A copy of it comes to the other node, for a moment beside the original.
        if self.host.room(ask.to) < bytes {
            let room = self.host.room(ask.to) >> 20;
            return absent(Trouble::new(
                format!("{} MiB are to go to {} and {room} MiB can be had there", bytes >> 20, ask.to),
                format!("end what uses its memory, or move less: --move-buffer {}M", (room / 2).max(2)),
            ));
        }
        let before = match proof::look(block.span()) {
            Ok(seen) => seen,
            Err(t) => return absent(t),
        };
        let mut proof = proof::begin(cpu, ask.to, block.span(), &before);
        proof.came_from = (ask.from != ask.to).then_some(ask.from);
        let there =
            Proof { node: Some(ask.from), came_from: None, after: before.nodes.clone(), ..proof.clone() };
        if let Some(why) = proof::wrong(&there, before.missing, ask.page) {
            return MeasuredCell::failed(subject, CellUnit::Ns, why, vec![proof]);
        }
        let touched = touch(&block, ask, cpu, stop);
        let touched = touched.and_then(|t| {
            self.tamper(&block, ask.to);
            Ok((t, proof::look(block.span())?))
        });
        let ((cpus, rounds), after): ((Vec<CpuNumber>, Rounds), _) = match touched {
            Ok(touched) => touched,
            Err(t) => {
                moving::disarm_all();
                return absent(t);
            }
        };
        proof.cpu_read = cpus;
        proof.after = after.nodes;
        // What of huge pages is lost by it is a result, and not a fault.
        let size = Proof {
            huge: if ask.page == PageSize::Small { after.huge } else { proof.huge },
            ..proof.clone()
        };
        // The block is not used again: its pages are on the other node now, and small.
        match (proof::wrong(&size, after.missing, ask.page), SampleSummary::of(&rounds.touch)) {
            (Some(why), _) => MeasuredCell::failed(subject, CellUnit::Ns, why, vec![proof]),
            (None, None) => {
                MeasuredCell::absent(subject, CellUnit::Ns, "stopped before a round was over", "let it run")
            }
            (None, Some(s)) => {
                let mut cell = rounds.cell(MeasuredCell::of(subject, CellUnit::Ns, s.median, s, vec![proof]));
                cell.more.insert("mb_per_s".into(), ask.page.bytes() as f64 * 1e3 / s.median);
                cell.notes.push(format!("by {}", started.mechanism.name()));
                cell
            }
        }
    }
}

impl Rounds {
    /// The cell with the medians of what was measured beside the touch.
    fn cell(&self, mut cell: MeasuredCell) -> MeasuredCell {
        for (name, values) in
            [("arm_ns", &self.arm), ("settle_ns", &self.settle), ("huge_afterwards", &self.huge)]
        {
            cell.more.extend(SampleSummary::of(values).map(|s| (name.to_owned(), s.median)));
        }
        cell
    }
}

/// Touches the block from a thread on `cpu`, round after round, until `stop`. Returns the CPUs on
/// which the thread ran, and what the rounds took.
fn touch(
    block: &AnonymousMemory,
    ask: &MigrationTest,
    cpu: CpuNumber,
    stop: &dyn Fn() -> bool,
) -> Result<(Vec<CpuNumber>, Rounds), Trouble> {
    let (team, asked) = (Step::new(1), Asked::new());
    std::thread::scope(|s| {
        let toucher = s.spawn(|| {
            let first = team.join(cpu).map_err(|w| Trouble::new(w, "is the CPU still on-line?"))?;
            rounds(block, ask, &asked).map(|r| (vec![first, here()], r))
        });
        while !toucher.is_finished() {
            if stop() {
                asked.ask();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        toucher.join().unwrap_or_else(|_| Err(Trouble::new("the thread that touches ended", "report this")))
    })
}

/// Arms, touches, ends it, brings the pages back; the last round leaves them where they went.
fn rounds(block: &AnonymousMemory, ask: &MigrationTest, asked: &Asked) -> Result<Rounds, Trouble> {
    let pages = block.span().len() as f64 / ask.page.bytes() as f64;
    for (i, word) in block.words().iter().step_by(WORDS).enumerate() {
        word.store(i as u64, Ordering::Relaxed);
    }
    let mut all = Rounds::default();
    let start = Instant::now();
    for round in 0..=ask.rounds.max(2) {
        let begin = Instant::now();
        let report = moving::arm(&[block.span()]);
        let armed = begin.elapsed();
        if report.armed.0 != block.span().len() as u64 {
            let skipped: Vec<String> =
                report.reasons().map(|(why, bytes)| format!("{bytes}: {why}")).collect();
            return Err(Trouble::new(
                format!(
                    "only {} of {} bytes could be armed ({})",
                    report.armed.0,
                    block.span().len(),
                    skipped.join("; ")
                ),
                "'homenode doctor' says what next touch needs",
            ));
        }
        let begin = Instant::now();
        let sum: u64 =
            block.words().iter().step_by(WORDS).map(|w| black_box(w.load(Ordering::Relaxed))).sum();
        let touched = begin.elapsed();
        let begin = Instant::now();
        moving::settle();
        moving::disarm_all();
        let settled = begin.elapsed();
        let n = (block.span().len() / PAGE) as u64;
        if sum != n * (n - 1) / 2 {
            return Err(Trouble::new(
                "memory that was brought over has other contents",
                "please report this",
            ));
        }
        // The first round makes the mover's tables.
        if round > 0 {
            let each = |t: Duration| t.as_secs_f64() * 1e9 / pages;
            all.touch.push(each(touched));
            all.arm.push(each(armed));
            all.settle.push(each(settled));
            all.huge.push(huge_bytes(block.span()) as f64 / block.span().len() as f64);
        }
        let over = asked.asked() || all.touch.len() >= 2 && start.elapsed() >= ask.time;
        if over || round == ask.rounds.max(2) {
            break;
        }
        back(block, ask)?;
    }
    Ok(all)
}

/// Back to where they were, in the pages that are asked for.
fn back(block: &AnonymousMemory, ask: &MigrationTest) -> Result<(), Trouble> {
    let whole = ask.page == PageSize::Huge && huge_bytes(block.span()) == block.span().len() as u64;
    let step = if whole { ask.page.bytes() as usize } else { PAGE };
    let pages: Vec<usize> = (block.span().start..block.span().end).step_by(step).collect();
    if ask.from != ask.to {
        all_to(&pages, ask.from)?;
    }
    if ask.page == PageSize::Huge && !whole {
        memory::collapse(block.span()).map_err(|e| {
            Trouble::new(
                format!("huge pages that next touch split do not come together again: {e}"),
                "a kernel from 6.1 on, and 'echo 1 > /proc/sys/vm/compact_memory' where memory is fragmented",
            )
        })?;
    }
    Ok(())
}
