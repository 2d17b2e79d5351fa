//! Pages from node to node by `move_pages`.

use std::time::{Duration, Instant};

use homenode_sys::numa::{self, PageStatus};
use homenode_sys::{Errno, Span};

use super::latency::Asked;
use super::team::{Step, here};
use super::trouble::Trouble;
use super::{HostMeasurer, proof};
use crate::axes::{CpuNumber, NodeNumber};
use crate::cell::{CellUnit, Credibility, MeasuredCell, Subject};
use crate::item::MigrationTest;
use crate::stats::SampleSummary;

/// Pages a call: large ones cost least (a call has a fixed price, and the kernel moves in batches
/// of its own).
const BATCH: usize = 1 << 15;

impl HostMeasurer {
    pub(super) fn migration(&mut self, ask: &MigrationTest, stop: &dyn Fn() -> bool) -> MeasuredCell {
        let subject = Subject::Migration { from: ask.from, to: ask.to, page: ask.page };
        let absent = |t: Trouble| MeasuredCell::absent(subject.clone(), CellUnit::MbPerS, t.why, t.remedy);
        // Whoever moves pages in a program is near them, where there is a CPU.
        let near = self.host.nearest_cpus(ask.from).first().copied();
        let Some(cpu) = near.and_then(|n| self.host.some_cpus(n, 1).first().copied()) else {
            return absent(Trouble::new("no CPU can be used", "is the process's cpuset empty?"));
        };
        let bytes = ask.buffer.max(1).next_multiple_of(homenode_sys::HUGE as u64);
        if self.host.room(ask.to) < bytes {
            let room = self.host.room(ask.to) >> 20;
            return absent(Trouble::new(
                format!("{} MiB are to go to {} and {room} MiB can be had there", bytes >> 20, ask.to),
                format!("end what uses its memory, or move less: --move-buffer {}M", (room / 2).max(2)),
            ));
        }
        self.pool.keep(&[ask.from], ask.page);
        let block = match self.place(bytes, ask.from, ask.page) {
            Ok(block) => block,
            Err(t) => return absent(t),
        };
        let before = match proof::look(block.span()) {
            Ok(seen) => seen,
            Err(t) => return absent(t),
        };
        let mut proof = proof::begin(cpu, ask.from, block.span(), &before);
        let (team, asked) = (Step::new(1), Asked::new());
        let moved = std::thread::scope(|s| {
            let mover = s.spawn(|| {
                let first = team.join(cpu).map_err(|w| Trouble::new(w, "is the CPU still on-line?"))?;
                rounds(block.span(), ask, &asked).map(|samples| (vec![first, here()], samples))
            });
            while !mover.is_finished() {
                if stop() {
                    asked.ask();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            mover.join().unwrap_or_else(|_| Err(Trouble::new("the thread that moves ended", "report this")))
        });
        let (cpus, samples): (Vec<CpuNumber>, Vec<f64>) = match moved {
            Ok(moved) => moved,
            Err(t) => return absent(t),
        };
        proof.cpu_read = cpus;
        // While pages are moved, one that was moved by somebody else comes back with them:
        // afterwards it does not.
        self.tamper(&block, ask.from);
        let after = match proof::look(block.span()) {
            Ok(seen) => seen,
            Err(t) => return absent(t),
        };
        // They were moved back each time.
        proof.after = after.nodes;
        proof.huge = if ask.page.bytes() > 4096 { proof.huge.min(after.huge) } else { after.huge };
        let cell = match (proof::wrong(&proof, after.missing, ask.page), SampleSummary::of(&samples)) {
            (Some(why), _) => MeasuredCell::failed(subject, CellUnit::MbPerS, why, vec![proof]),
            (None, None) => MeasuredCell::absent(
                subject,
                CellUnit::MbPerS,
                "stopped before a round was over",
                "let it run",
            ),
            (None, Some(s)) => {
                let mut cell = MeasuredCell::of(subject, CellUnit::MbPerS, s.median, s, vec![proof]);
                cell.more.insert("pages_per_s".into(), s.median * 1e6 / ask.page.bytes() as f64);
                cell.more.insert("ns_per_page".into(), ask.page.bytes() as f64 * 1e3 / s.median);
                cell
            }
        };
        if !matches!(cell.verdict, Credibility::Failed { .. }) {
            self.pool.give(ask.from, ask.page, block);
        }
        cell
    }
}

/// There, timed, and back again. 10^6 bytes a second, a sample a round.
fn rounds(span: Span, ask: &MigrationTest, asked: &Asked) -> Result<Vec<f64>, Trouble> {
    let pages: Vec<usize> = (span.start..span.end).step_by(ask.page.bytes() as usize).collect();
    let mut samples = Vec::new();
    let start = Instant::now();
    for round in 0..=ask.rounds.max(2) {
        let begin = Instant::now();
        all_to(&pages, ask.to)?;
        let took = begin.elapsed();
        all_to(&pages, ask.from)?;
        if round > 0 {
            samples.push(span.len() as f64 / took.as_secs_f64() / 1e6);
        }
        if asked.asked() || samples.len() >= 2 && start.elapsed() >= ask.time {
            break;
        }
    }
    Ok(samples)
}

/// How often a move is tried, a millisecond apart. The kernel refuses to move a page that waits to
/// be put on a list.
const TRIES: u32 = 20;

/// Moves the pages, and waits for those that the kernel holds for a moment.
pub(super) fn all_to(pages: &[usize], node: NodeNumber) -> Result<(), Trouble> {
    let to = vec![i32::from(node.0); BATCH.min(pages.len())];
    let mut status = vec![PageStatus::UNKNOWN; to.len()];
    for pages in pages.chunks(BATCH) {
        let status = &mut status[..pages.len()];
        let mut tries = TRIES;
        while let Some((n, why)) = stayed(pages, &to, node, status)? {
            tries -= 1;
            if tries == 0 || why.is_some_and(|e| e != Errno::BUSY) {
                let why = why.map_or_else(|| "it stayed".to_owned(), |e| e.to_string());
                return Err(Trouble::new(
                    format!("{n} of {} pages did not go to {node}: {why}", pages.len()),
                    "is there enough free memory on that node, in pages of that size?",
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Moves the pages once. How many stayed where they were, and why the first of them did.
fn stayed(
    pages: &[usize],
    to: &[i32],
    node: NodeNumber,
    status: &mut [PageStatus],
) -> Result<Option<(usize, Option<Errno>)>, Trouble> {
    let left = numa::move_to(pages, to, status)
        .map_err(|e| Trouble::forbidden(&format!("moving pages to {node}"), &e))?;
    if left > 0 {
        // The statuses are not written then.
        numa::query(pages, status).map_err(|e| Trouble::forbidden("asking where pages are", &e))?;
    }
    let stays = |s: &&PageStatus| s.node().is_none_or(|n| n.0 != node.0);
    let first = status.iter().find(stays);
    Ok(first.map(|first| (status.iter().filter(stays).count(), first.errno())))
}
