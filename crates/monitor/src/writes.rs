//! Writes to pages that were write-protected for the purpose.
//!
//! The kernel takes such a protection away at the first store, without a signal and without stopping anybody (WP_ASYNC, Linux
//! 6.7); what is left is a minor fault, and the software event `page-faults` in a perf ring tells of it with address and
//! CPU. It names writers, not readers, and needs neither privileges nor a PMU.

use homenode_model::{AccessKind, NodeId, Ns};
use homenode_sys::memory::Scratch;
use homenode_sys::perf::Spec;
use homenode_sys::uffd::WriteWatch;
use homenode_sys::{PAGE, Result, Span, call};

use crate::rings::Rings;
use crate::source::{Cpus, Says, Source, Touch};

/// Spans that are registered at a time.
const SPANS: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct Writes {
    watch: WriteWatch,
    rings: Rings,
    cpus: Cpus,
    /// Registered, by first address; they do not overlap.
    spans: Vec<Span>,
    cost: Ns,
    /// Refused by the kernel: shared or file-backed memory, or another's.
    refused: u64,
}

impl Writes {
    /// For all threads that the caller starts from now on.
    ///
    /// # Errors
    /// What the kernel refuses first.
    pub fn open(cpus: Cpus) -> Result<Self> {
        let watch = WriteWatch::open()?;
        let rings = Rings::open(&[Spec::page_faults()], None, cpus.all())?;
        let cost = measure(&watch, &rings)?;
        rings.enable()?;
        Ok(Self { watch, rings, cpus, spans: Vec::new(), cost, refused: 0 })
    }

    fn has(&self, page: usize) -> bool {
        let after = self.spans.partition_point(|s| s.start <= page);
        after > 0 && self.spans[after - 1].contains(page)
    }
}

/// What protecting a page and the fault afterwards cost, on memory of our own: the median of a few rounds.
fn measure(watch: &WriteWatch, rings: &Rings) -> Result<Ns> {
    const ROUNDS: usize = 5;
    const PAGES: usize = 64;
    let scratch = Scratch::new(PAGES * PAGE)?;
    scratch.touch();
    watch.add(scratch.span())?;
    rings.enable()?;
    let mut rounds = [Ns::ZERO; ROUNDS];
    for round in &mut rounds {
        let begin = call::now();
        for page in scratch.span().pieces(PAGE) {
            watch.protect(page)?;
        }
        scratch.touch();
        *round = Ns((call::now() - begin).0 / PAGES as u64);
    }
    rings.disable()?;
    watch.remove(scratch.span())?;
    rounds.sort_unstable();
    Ok(rounds[ROUNDS / 2])
}

impl Source for Writes {
    fn name(&self) -> &'static str {
        "writes to write-protected pages (WP_ASYNC and perf)"
    }

    fn says(&self) -> Says {
        Says::Presence { writers_only: true }
    }

    fn watch(&mut self, span: Span, _: NodeId) {
        let span = span.inner(PAGE);
        if span.is_empty() || self.spans.len() >= SPANS || self.spans.iter().any(|s| s.overlaps(span)) {
            return;
        }
        match self.watch.add(span) {
            Ok(()) => {
                let at = self.spans.partition_point(|s| s.start < span.start);
                self.spans.insert(at, span);
            }
            Err(_) => self.refused += 1,
        }
    }

    fn leave(&mut self, span: Span) {
        let span = span.outer(PAGE);
        let mut rest = Vec::new();
        self.spans.retain(|s| {
            let inside = s.cut(span);
            if inside.is_empty() {
                return true;
            }
            rest.extend([Span { start: s.start, end: inside.start }, Span { start: inside.end, end: s.end }]);
            false
        });
        // Memory that is gone is no longer registered anyhow.
        let _ = self.watch.remove(span);
        self.spans.extend(rest.into_iter().filter(|s| !s.is_empty()));
        self.spans.sort_unstable_by_key(|s| s.start);
    }

    fn ask(&mut self, pages: &[usize]) -> usize {
        let ours = pages.iter().filter(|p| self.has(**p));
        ours.filter(|p| self.watch.protect(Span::new(**p, PAGE)).is_ok()).count()
    }

    fn drain(&mut self, tell: &mut dyn FnMut(Touch)) {
        let Self { rings, cpus, spans, .. } = self;
        rings.drain(|_, s| {
            let address = s.address as usize;
            let after = spans.partition_point(|span| span.start <= address);
            let ours = after > 0 && spans[after - 1].contains(address);
            if let (true, Some(node)) = (ours, cpus.node(s.cpu)) {
                tell(Touch { address, node, time: s.time, kind: Some(AccessKind::Write) });
            }
        });
    }

    fn stop(&mut self) {
        let _ = self.rings.disable();
        for span in std::mem::take(&mut self.spans) {
            let _ = self.watch.remove(span);
        }
    }

    fn end(&mut self) {
        // What is still protected the kernel makes writable by itself; to let go of a GiB takes 0.1 s.
        let _ = self.rings.disable();
        self.spans.clear();
    }

    fn cost(&self) -> Ns {
        self.cost
    }

    fn lost(&self) -> u64 {
        self.rings.lost()
    }

    fn state_bytes(&self) -> usize {
        self.rings.bytes() + self.spans.capacity() * size_of::<Span>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Option<Writes> {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let last = text.trim().rsplit(['-', ',']).next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let node = |cpu: u16| Some(NodeId(cpu % 2));
        match Writes::open(Cpus::new((0..=last).map(node).collect())) {
            Ok(w) => Some(w),
            Err(e) => {
                println!("skipped: {e}");
                None
            }
        }
    }

    #[test]
    fn each_asked_page_is_told_once_with_its_writers_node() {
        let Some(mut writes) = opened() else { return };
        let scratch = Scratch::new(16 * PAGE).unwrap();
        scratch.touch();
        let pages: Vec<usize> = scratch.span().pieces(PAGE).map(|p| p.start).collect();
        assert_eq!(writes.ask(&pages), 0, "not watched yet");
        writes.watch(scratch.span(), NodeId(0));
        assert_eq!(writes.ask(&pages[..8]), 8);
        writes.drain(&mut |_| {});
        scratch.touch();
        scratch.touch();
        let mut seen = Vec::new();
        writes.drain(&mut |t| {
            assert_eq!(t.kind, Some(AccessKind::Write));
            seen.push(t.address & !(PAGE - 1));
        });
        assert_eq!(seen, pages[..8]);
        assert!(writes.cost() > Ns::ZERO);
    }

    #[test]
    fn what_is_left_is_told_no_more_and_the_rest_still_is() {
        let Some(mut writes) = opened() else { return };
        let scratch = Scratch::new(8 * PAGE).unwrap();
        scratch.touch();
        let all = scratch.span();
        writes.watch(all, NodeId(0));
        let pages: Vec<usize> = all.pieces(PAGE).map(|p| p.start).collect();
        writes.leave(Span::new(pages[2], 3 * PAGE));
        assert_eq!(writes.ask(&pages), 5);
        writes.drain(&mut |_| {});
        scratch.touch();
        let mut seen = Vec::new();
        writes.drain(&mut |t| seen.push((t.address - all.start) / PAGE));
        assert_eq!(seen, [0, 1, 5, 6, 7]);
        writes.stop();
        assert_eq!(writes.ask(&pages), 0);
    }
}
