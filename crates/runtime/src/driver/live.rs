//! Adapts the process's mover ([`crate::moving`]) to the driver's interface.

use homenode_model::{Bytes, MoveResult, NodeId, Ns};

use homenode_wire::facts::MoverCounters;

use super::full_nodes::{self, FullNodes};
use super::mover::{Armed, Manner, Mover, Touch};
use super::settings::DriverSettings;
use crate::moving::{self, Mechanism, MovingOptions, PageTarget, Span, Started, Why};
use crate::stream::threads;
use crate::watch::numbers::PAGE;

/// Longest time of one call that moves pages.
const CHUNK: Ns = Ns(10_000_000);
/// Spans armed by one call: each is compared with each mapping.
const AT_ONCE: usize = 1024;

/// See the module.
#[derive(Debug)]
pub struct Live {
    started: Started,
    kernel_moves_wanted: bool,
    skipped: [Bytes; Why::ALL.len()],
    /// Bytes of pages that go where the rest of their huge page goes.
    with_others: Bytes,
    failed: Vec<String>,
    /// Looks for full nodes. Only on real nodes.
    room: Option<FullNodes>,
}

impl Live {
    /// Starts the mover, with `mechanism` if one is given. `stay`: pages must be able to stay on
    /// their node.
    pub fn start(settings: &DriverSettings, mechanism: Option<Mechanism>, stay: bool) -> Self {
        let pretend_nodes = settings.pretend.then(|| settings.machine.nodes() as u16);
        // Leaked once a process: it lives as long as the process.
        let pretend_cpus = settings.pretend.then(|| &*settings.machine.table().leak());
        let copy_unseen = settings.copy_unseen;
        let options =
            MovingOptions { pretend_nodes, pretend_cpus, mechanism, copy_unseen, stay, fault_around: None };
        let started = moving::start(&options);
        Self {
            started,
            kernel_moves_wanted: false,
            skipped: [Bytes::ZERO; Why::ALL.len()],
            with_others: Bytes::ZERO,
            failed: Vec::new(),
            room: (!settings.pretend).then(|| FullNodes::new(settings.machine.without_memory())),
        }
    }

    /// Looks where some of the brought pages are.
    fn look(&mut self, brought: &[(usize, NodeId)]) {
        let Some(room) = &mut self.room else { return };
        let pages: Vec<usize> = brought.iter().map(|(page, _)| *page).collect();
        let mut homes = vec![None; pages.len()];
        moving::homes(&pages, &mut homes);
        for ((_, to), home) in brought.iter().zip(homes) {
            home.into_iter().for_each(|home| room.looked(*to, home));
        }
    }

    fn failure(&mut self, text: String) {
        if self.failed.len() < 8 && !self.failed.contains(&text) {
            self.failed.push(text);
        }
    }
}

impl Mover for Live {
    fn arm(&mut self, spans: &[Span], manner: Manner) -> Armed {
        let (mut armed, mut skipped) = (Bytes::ZERO, Bytes::ZERO);
        for spans in spans.chunks(AT_ONCE) {
            let report = moving::arm_as(spans, manner);
            for (why, b) in report.reasons() {
                self.skipped[why as usize] += b;
                skipped += b;
            }
            if let Some(e) = report.error {
                self.failure(e.to_string());
            }
            armed += report.armed;
        }
        Armed { pages: armed.0 / PAGE as u64, skipped: skipped.0 / PAGE as u64 }
    }

    fn armed(&self) -> u64 {
        moving::armed().0 / PAGE as u64
    }

    fn can_stay(&self) -> bool {
        moving::can_stay()
    }

    fn disarm(&mut self) {
        moving::disarm_all();
    }

    fn settle(&mut self) {
        moving::settle();
    }

    fn restore_huge_pages(&mut self, cap: Ns) -> bool {
        moving::restore_huge_pages(cap)
    }

    fn touches(&mut self, tell: &mut dyn FnMut(Touch)) {
        let mut brought = Vec::new();
        moving::drain(|t| {
            if !t.stayed && brought.len() < full_nodes::LOOKS {
                brought.push((t.span.start, t.node));
            }
            tell(Touch {
                address: t.span.start,
                pages: t.span.pages() as u32,
                node: t.node,
                moved: !t.stayed,
            });
        });
        if !brought.is_empty() {
            self.look(&brought);
        }
    }

    fn one_home(&mut self, address: usize, pages: usize) -> Option<NodeId> {
        moving::one_home(Span::new(address, pages * PAGE))
    }

    fn homes(&mut self, address: usize, pages: usize, one: Option<NodeId>, out: &mut Vec<Option<NodeId>>) {
        out.resize(pages, None);
        if let Some(one) = one {
            moving::homes_on(Span::new(address, pages * PAGE), one, out);
        } else {
            let list: Vec<usize> = (0..pages).map(|i| address + i * PAGE).collect();
            moving::homes(&list, out);
        }
    }

    fn move_pages(&mut self, pages: &[(usize, NodeId)], out: &mut Vec<MoveResult>) {
        self.kernel_moves_wanted = true;
        let mut moves: Vec<PageTarget> = pages.iter().map(|(page, to)| PageTarget::new(*page, *to)).collect();
        let report = moving::move_pages(&mut moves, CHUNK);
        if let Some(e) = report.error {
            self.failure(e.to_string());
        }
        self.with_others += report.with_others;
        let refused = moves.iter().filter(|m| m.result == MoveResult::NoMemory);
        self.room.iter_mut().for_each(|room| refused.clone().for_each(|m| room.refused(m.to)));
        // Sorted by target on the way; restores the order.
        moves.sort_unstable_by_key(|m| m.page);
        let result = |page: usize| moves.binary_search_by_key(&page, |m| m.page).map(|i| moves[i].result);
        out.extend(pages.iter().map(|(page, _)| result(*page).unwrap_or(MoveResult::NoPage)));
    }

    fn moves_in_use(&self) -> bool {
        // Otherwise a move copies pages, as a touch does. Such moves are rare and short.
        self.started.kernel_moves
    }

    fn prefer(&mut self, address: usize, bytes: usize, node: Option<NodeId>) -> Result<bool, String> {
        moving::prefer(Span::new(address, bytes), node).map_err(|e| e.to_string())
    }

    fn threads(&self, node_of: &dyn Fn(u32) -> Option<NodeId>, tell: &mut dyn FnMut(u32, u32, bool)) {
        threads::each(node_of, tell);
    }

    fn team_starts(&mut self) {
        moving::note_serial();
    }

    fn sees_first_touches(&self) -> bool {
        moving::sees_first_touches()
    }

    fn counters(&self) -> MoverCounters {
        let c = moving::counters();
        let page = PAGE as u64;
        MoverCounters {
            arms: c.arms,
            armed_pages: c.armed.0 / page,
            faults: c.faults,
            copies: c.copied.0 / page,
            kernel_moves: c.moved.0 / page,
            lost_touches: c.touches_lost,
            // The driver makes the calls and measures them itself.
            own: c.in_handlers + c.in_calls + c.in_events,
        }
    }

    fn cannot(&self) -> Vec<String> {
        let mut list = self.started.reasons.clone();
        let told = list.first().is_some_and(|first| first.starts_with(moving::NO_NEXT_TOUCH));
        if self.started.mechanism == Mechanism::None && !told {
            list.insert(0, format!("{} what follows is missing", moving::NO_NEXT_TOUCH));
        }
        if self.kernel_moves_wanted && !self.started.kernel_moves {
            list.push("the kernel moves no pages here".into());
        }
        for (why, bytes) in Why::ALL.iter().zip(self.skipped) {
            // Pages that are armed already are no failure.
            if bytes > Bytes::ZERO && *why != Why::Armed {
                list.push(format!("{} KiB were not armed: {why}", bytes.0 >> 10));
            }
        }
        let refused = moving::counters().refused;
        if refused > Bytes::ZERO {
            list.push(format!(
                "{} KiB did not follow their touch: the kernel refused to move them (pinned or in use, or no memory on the node)",
                refused.0 >> 10
            ));
        }
        if self.with_others > Bytes::ZERO {
            list.push(format!(
                "{} KiB are not on their nodes: as much or more of their huge pages was to be on others, and those move whole",
                self.with_others.0 >> 10
            ));
        }
        list.extend(self.room.iter().flat_map(FullNodes::texts));
        list.extend(moving::pinning());
        list.extend(self.failed.iter().cloned());
        list
    }
}
