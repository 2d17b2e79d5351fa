//! The common part of policies that act on access counts: homes, intervals, and a rule that decides
//! at the end of an interval.

use homenode_model::{
    Decision, DecisionBuf, Event, Interest, MoveOutcome, MoveResult, NodeId, Ns, PageNo, PageRange,
};

use crate::homes::Homes;
use crate::initial::{Initial, Start};
use crate::interval::{Counters, Interval};
use crate::queue::Queue;
use crate::when::{Clock, Moment, When};
use crate::{Policy, PolicyContext, Step};

/// The part that differs between policies: what to do with the counts of an interval.
pub(crate) trait Rule: Send {
    /// Whether it compares nodes with each other, so that draws of presence serve as counts.
    const BY_PROPORTION: bool = false;
    /// Decides at the end of an interval. Decisions go to `out`, in the order in which they should
    /// be carried out.
    fn decide(&mut self, interval: &Interval, homes: &Homes, out: &mut Queue);
    /// A move or a copy was carried out, or not. `from`: the page's home before.
    fn outcome(&mut self, _outcome: &MoveOutcome, _from: Option<NodeId>) {}
    /// Pages do not exist any more. Calls `copy` with each node that had a copy of one.
    fn freed(&mut self, _pages: PageRange, _copy: &mut dyn FnMut(NodeId)) {}
    /// The page's copies do not exist any more, because it moved or (`written`) because somebody
    /// wrote. Calls `copy` as in `freed`.
    fn collapsed(&mut self, _page: PageNo, _written: bool, _copy: &mut dyn FnMut(NodeId)) {}
    /// The node has no frame of the page any more.
    fn frame_gone(&mut self, _page: PageNo, _node: NodeId) {}
    /// Its last decision was about an interval before iterations were known. It is no reason to
    /// stop that nothing moved then.
    fn was_early(&mut self) {}
    /// Whether it will never decide again, so nothing need be counted.
    fn is_done(&self) -> bool {
        false
    }
}

/// A policy that places pages by [`Initial`], and then leaves decisions to its rule.
#[derive(Debug)]
pub(crate) struct Counting<R> {
    start: Start,
    homes: Homes,
    queue: Queue,
    clock: Clock,
    interval: Interval,
    counters: Counters,
    rule: R,
}

impl<R: Rule> Counting<R> {
    pub(crate) fn new(context: &PolicyContext, initial: Initial, when: When, rule: R) -> Self {
        Self {
            start: Start::new(context, initial),
            homes: Homes::new(context),
            queue: Queue::new(),
            clock: Clock::new(when),
            interval: Interval::new(context.nodes()),
            counters: Counters::Interval,
            rule,
        }
    }
    /// The same with counts that count for longer.
    pub(crate) const fn with_counters(mut self, counters: Counters) -> Self {
        self.counters = counters;
        self
    }
    fn moment(&mut self, moment: Moment) {
        match moment {
            Moment::Within => return,
            Moment::End | Moment::Early if !self.rule.is_done() => {
                self.interval.join();
                self.rule.decide(&self.interval, &self.homes, &mut self.queue);
                if moment == Moment::Early {
                    self.rule.was_early();
                }
                if self.counters == Counters::Move {
                    self.interval.keep();
                    return;
                }
            }
            Moment::Begin | Moment::End | Moment::Early => {}
        }
        self.interval.clear();
    }
    fn fault(&mut self, page: PageNo, node: NodeId) {
        if let Some(node) = self.homes.settle(page, self.start.wanted(page, node)) {
            self.queue.push(Decision::Place { page, node });
        }
    }
}

impl<R: Rule> Policy for Counting<R> {
    fn interest(&self) -> Interest {
        Interest { by_proportion: R::BY_PROPORTION, ..self.clock.interest() }
    }
    #[inline]
    fn observe(&mut self, event: &Event) {
        if let Event::Accesses { page, home, node, kind, count } = *event {
            if !self.rule.is_done() {
                self.interval.add(page, home, node, kind, count);
            }
            return;
        }
        self.clock.happened();
        match *event {
            Event::Fault { page, node } => self.fault(page, node),
            Event::Free { pages, .. } => {
                let homes = &mut self.homes;
                homes.free(pages);
                self.interval.forget(pages);
                self.rule.freed(pages, &mut |node| homes.copy_gone(node));
            }
            Event::Collapsed { page, .. } => {
                let homes = &mut self.homes;
                self.rule.collapsed(page, true, &mut |node| homes.copy_gone(node));
            }
            Event::FrameGone { page, node } => {
                self.homes.copy_gone(node);
                self.rule.frame_gone(page, node);
            }
            _ => {}
        }
        let moment = self.clock.event(event);
        self.moment(moment);
    }
    fn poll(&mut self, now: Ns, out: &mut DecisionBuf) -> Step {
        if !self.rule.is_done() {
            let moment = self.clock.poll(now);
            self.moment(moment);
        }
        match (self.queue.pour(out), self.clock.wake()) {
            (Step::Idle, Some(at)) if !self.rule.is_done() => Step::WakeAt(at),
            (step, _) => step,
        }
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        let from = self.homes.home(outcome.page);
        match outcome.result {
            MoveResult::Moved => {
                self.interval.forget(PageRange { first: outcome.page, count: 1 });
                let homes = &mut self.homes;
                self.rule.collapsed(outcome.page, false, &mut |node| homes.copy_gone(node));
            }
            MoveResult::Replicated => self.homes.copied_to(outcome.to),
            _ => {}
        }
        self.homes.moved(outcome);
        self.rule.outcome(outcome, from);
    }
}
