//! Reading a journal, and checking it with a fresh policy.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use homenode_model::{Bytes, Decision, DecisionBuf, Interest, Matrix, MbPerS, NodeId, Ns, PageNo, Placement};

use super::code::{Decoder, Record};
use super::{JournalError, MAGIC, MAX_CELLS, MAX_NODES, MAX_PAGES, OLDEST, VERSION};
use crate::{Policy, PolicyContext, Step};

/// The head of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The policy, as [`crate::build`] takes it.
    pub spec: String,
    /// The events that the policy wanted.
    pub interest: Interest,
    /// The machine that the policy was made for.
    pub context: PolicyContext,
}

/// The result of checking a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of events that the policy got.
    pub events: u64,
    /// Number of polls.
    pub polls: u64,
    /// Number of decisions.
    pub decisions: u64,
    /// The first decision that differs.
    pub difference: Option<Difference>,
    /// Whether the journal ends where its writer ended it.
    pub complete: bool,
}

/// A decision that a fresh policy makes otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the last event before it, from 1.
    pub event: u64,
    /// The time of the poll.
    pub now: Ns,
    /// Index of the decision in the poll, from 0.
    pub decision: usize,
    /// The recorded decision and step.
    pub recorded: (Option<Decision>, Step),
    /// The fresh policy's decision and step.
    pub fresh: (Option<Decision>, Step),
}

/// Reads the head of a journal.
///
/// # Errors
/// The bytes are no journal, or damaged.
pub fn header(bytes: &[u8]) -> Result<Header, JournalError> {
    open(bytes).map(|(header, _)| header)
}

pub(super) fn open(bytes: &[u8]) -> Result<(Header, Decoder<'_>), JournalError> {
    if !bytes.starts_with(MAGIC) {
        return Err(JournalError::NotAJournal);
    }
    let mut d = Decoder::new(bytes);
    d.at = MAGIC.len();
    let version = d.number()?;
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(JournalError::Version(version));
    }
    let length = d.number()?;
    let spec = core::str::from_utf8(d.take(length)?).map_err(|_| d.bad("a policy's name that is no text"))?;
    let bits = d.below(1 << 5, "an interest that this version does not know")?;
    let has = |bit: u32| bits >> bit & 1 != 0;
    let interest = Interest {
        faults: has(0),
        counts_by_region: has(1),
        counts_by_iteration: has(2),
        counts_at_wakes: has(3),
        touches_by_region: has(4),
        ..Interest::default()
    };
    let context = context(&mut d, version)?;
    Ok((Header { spec: spec.to_string(), interest, context }, d))
}

fn context(d: &mut Decoder<'_>, version: u64) -> Result<PolicyContext, JournalError> {
    d.nodes = d.below(MAX_NODES, "a machine of too many nodes")?;
    let nodes = d.nodes as usize;
    let (page, line, migration) = (Bytes(d.number()?), Bytes(d.number()?), Ns(d.number()?));
    let (mut capacity, mut bandwidth) = (Vec::new(), Vec::new());
    let (mut latency, mut nearest) = (Vec::new(), Vec::new());
    for _ in 0..nodes {
        capacity.push(d.number()?);
        bandwidth.push(MbPerS(d.number()?));
        for _ in 0..nodes {
            latency.push(Ns(d.number()?));
        }
        let many = d.below(d.nodes + 1, "more near nodes than nodes")?;
        nearest.push((0..many).map(|_| d.node()).collect::<Result<Vec<NodeId>, _>>()?);
    }
    let running = match version {
        OLDEST => Vec::new(),
        _ => {
            let many = d.below(d.nodes + 1, "more nodes with threads than nodes")?;
            (0..many).map(|_| d.node()).collect::<Result<Vec<NodeId>, _>>()?
        }
    };
    let plan = match d.below(2, "neither a plan nor none")? {
        0 => None,
        _ => Some(Arc::new(plan(d)?)),
    };
    let latency = Matrix::from_fn(nodes, |a, b| latency[a * nodes + b]);
    Ok(PolicyContext { capacity, nearest, page, latency, bandwidth, line, migration, running, plan })
}

fn plan(d: &mut Decoder<'_>) -> Result<Placement, JournalError> {
    let mut plan = Placement::new();
    let mut last = None;
    let mut pieces = 0;
    for _ in 0..d.number()? {
        let page = d.below(MAX_PAGES, "a page beyond all canonical ones")?;
        pieces += u64::from(last != Some(page >> 10));
        last = Some(page >> 10);
        if pieces > MAX_CELLS {
            return Err(JournalError::TooLarge);
        }
        plan.set(PageNo(page), d.node()?);
    }
    Ok(plan)
}

/// Feeds the journal to a fresh policy and compares the decisions, up to the first difference.
///
/// # Errors
/// The bytes are no journal or damaged, or the policy cannot be made.
pub fn check(bytes: &[u8]) -> Result<Checked, JournalError> {
    let (header, mut decoder) = open(bytes)?;
    let mut policy = crate::build(&header.spec, &header.context).map_err(JournalError::Policy)?;
    feed(&mut decoder, &mut policy)
}

pub(super) fn feed(decoder: &mut Decoder<'_>, policy: &mut impl Policy) -> Result<Checked, JournalError> {
    let mut checked = Checked::default();
    let mut out = DecisionBuf::new();
    while !decoder.is_over() {
        match decoder.record()? {
            Record::End => {
                checked.complete = true;
                break;
            }
            Record::Event(event) => {
                checked.events += 1;
                policy.observe(&event);
            }
            Record::Outcome(outcome) => policy.outcome(&outcome),
            Record::Poll(now, recorded) => {
                out.clear();
                let fresh = policy.poll(now, &mut out);
                checked.polls += 1;
                checked.decisions += out.as_slice().len() as u64;
                if fresh != recorded || out.as_slice() != decoder.decisions {
                    let (a, b) = (&decoder.decisions, out.as_slice());
                    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                    checked.difference = Some(Difference {
                        event: checked.events,
                        now,
                        decision: at,
                        recorded: (a.get(at).copied(), recorded),
                        fresh: (b.get(at).copied(), fresh),
                    });
                    break;
                }
            }
        }
    }
    Ok(checked)
}
