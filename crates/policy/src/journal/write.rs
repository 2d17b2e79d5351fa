//! Writing a journal: a policy that passes everything on to another and takes notes.

use homenode_model::{DecisionBuf, Event, Interest, MoveOutcome, Ns};

use super::code::{END, Encoder};
use super::{MAGIC, VERSION};
use crate::{Policy, PolicyContext, Step};

/// Bytes that are collected before the sink gets them.
const PIECE: usize = 1 << 16;
/// The sink gets what is there at the first poll that is so much later than the last time: what a
/// killed process loses.
const PAUSE: Ns = Ns(100_000_000);

/// The target of a journal. Errors are the sink's business, because a policy cannot fail.
pub trait Sink: Send {
    /// Takes the journal's next bytes.
    fn write(&mut self, bytes: &[u8]);
}

/// A policy and its journal. The last of it is written when this is dropped.
pub struct Journalled<P: Policy, S: Sink> {
    policy: P,
    sink: S,
    encoder: Encoder,
    /// The time of the poll at which the sink last got everything.
    written: Ns,
}

impl<P: Policy, S: Sink> Journalled<P, S> {
    /// `policy`, made by [`crate::build`] from `spec` and `context`, with its journal in `sink`.
    pub fn new(policy: P, spec: &str, context: &PolicyContext, sink: S) -> Self {
        let mut encoder = Encoder::default();
        header(&mut encoder, spec, policy.interest(), context);
        let mut journalled = Self { policy, sink, encoder, written: Ns(0) };
        journalled.flush(0);
        journalled
    }

    fn flush(&mut self, at: usize) {
        if self.encoder.bytes.len() >= at {
            self.sink.write(&self.encoder.bytes);
            self.encoder.bytes.clear();
        }
    }
}

/// The parts of an [`Interest`] as bits.
pub(super) const fn bits(interest: Interest) -> u64 {
    interest.faults as u64
        | (interest.counts_by_region as u64) << 1
        | (interest.counts_by_iteration as u64) << 2
        | (interest.counts_at_wakes as u64) << 3
        | (interest.touches_by_region as u64) << 4
}

fn header(out: &mut Encoder, spec: &str, interest: Interest, context: &PolicyContext) {
    out.bytes.extend_from_slice(MAGIC);
    out.number(VERSION);
    out.number(spec.len() as u64);
    out.bytes.extend_from_slice(spec.as_bytes());
    out.number(bits(interest));
    let nodes = context.nodes();
    out.number(nodes as u64);
    out.number(context.page.0);
    out.number(context.line.0);
    out.number(context.migration.0);
    for n in 0..nodes {
        out.number(context.capacity.get(n).copied().unwrap_or(0));
        out.number(context.bandwidth.get(n).map_or(0, |b| b.0));
        let node = homenode_model::NodeId(n as u16);
        context.latency.row(node).iter().for_each(|l| out.number(l.0));
        out.number(context.nearest[n].len() as u64);
        context.nearest[n].iter().for_each(|m| out.number(m.0.into()));
    }
    out.number(context.running.len() as u64);
    context.running.iter().for_each(|n| out.number(n.0.into()));
    let homes = || context.plan.iter().flat_map(|p| p.iter());
    out.number(context.plan.is_some().into());
    if context.plan.is_some() {
        out.number(homes().count() as u64);
        for (page, home) in homes() {
            out.number(page.0);
            out.number(home.0.into());
        }
    }
}

impl<P: Policy, S: Sink> Policy for Journalled<P, S> {
    fn interest(&self) -> Interest {
        self.policy.interest()
    }
    fn observe(&mut self, event: &Event) {
        self.encoder.event(event);
        self.policy.observe(event);
        self.flush(PIECE);
    }
    fn poll(&mut self, now: Ns, out: &mut DecisionBuf) -> Step {
        let step = self.policy.poll(now, out);
        self.encoder.poll(now, step, out.as_slice());
        if now.0.saturating_sub(self.written.0) >= PAUSE.0 {
            self.written = now;
            self.flush(0);
        }
        step
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        self.encoder.outcome(outcome);
        self.policy.outcome(outcome);
        self.flush(PIECE);
    }
}

impl<P: Policy, S: Sink> Drop for Journalled<P, S> {
    fn drop(&mut self) {
        self.encoder.bytes.push(END);
        self.flush(0);
    }
}
