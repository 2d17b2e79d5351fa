//! Numbers and records as bytes.

use alloc::vec::Vec;

use homenode_model::{
    AccessKind, Decision, Event, MoveOutcome, MoveResult, NodeId, Ns, ObjectId, PageNo, PageRange,
};

use super::{JournalError, MAX_CELLS, MAX_PAGES};
use crate::Step;

pub(super) const END: u8 = 0;
const ALLOC: u8 = 1;
const FREE: u8 = 2;
const FAULT: u8 = 3;
const TOUCHED: u8 = 4;
const READS: u8 = 5;
const WRITES: u8 = 6;
const REGION_BEGIN: u8 = 7;
const REGION_END: u8 = 8;
const ITERATION: u8 = 9;
const COLLAPSED: u8 = 10;
const NEXT_TOUCH: u8 = 11;
const FRAME_GONE: u8 = 12;
const POLL: u8 = 16;
const OUTCOME: u8 = 17;
/// An event that the writer did not know. A journal with one cannot be replayed.
const UNKNOWN: u8 = 255;

const IDLE: u8 = 0;
const WAKE: u8 = 1;
const ACT: u8 = 2;

const PLACE: u8 = 1;
const MOVE: u8 = 2;
const ARM: u8 = 3;
const REPLICATE: u8 = 4;
const REPLICATE_LINES: u8 = 5;

const RESULTS: [MoveResult; 7] = [
    MoveResult::Moved,
    MoveResult::AlreadyThere,
    MoveResult::Busy,
    MoveResult::NoMemory,
    MoveResult::NoPage,
    MoveResult::Replicated,
    MoveResult::Unsupported,
];

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    End,
    Event(Event),
    /// A poll at a time, and the policy's step. Its decisions are in the reader's list.
    Poll(Ns, Step),
    Outcome(MoveOutcome),
}

/// The base of differences.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    page: u64,
    now: u64,
}

/// Writes numbers and records.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
    last: Last,
}

impl Encoder {
    pub(super) fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }
    fn difference(&mut self, before: u64, now: u64) {
        let d = now.wrapping_sub(before) as i64;
        self.number((d as u64) << 1 ^ (d >> 63) as u64);
    }
    fn page(&mut self, page: PageNo) {
        self.difference(self.last.page, page.0);
        self.last.page = page.0;
    }
    fn range(&mut self, range: PageRange) {
        self.page(range.first);
        self.number(range.count);
    }
    fn node(&mut self, node: NodeId) {
        self.number(node.0.into());
    }
    fn tagged_page(&mut self, tag: u8, page: PageNo) {
        self.bytes.push(tag);
        self.page(page);
    }
    pub(super) fn event(&mut self, event: &Event) {
        match *event {
            Event::Alloc { object, pages } => self.object(ALLOC, object, pages),
            Event::Free { object, pages } => self.object(FREE, object, pages),
            Event::Fault { page, node } => {
                self.tagged_page(FAULT, page);
                self.node(node);
            }
            Event::Touched { page, home, node } => {
                self.tagged_page(TOUCHED, page);
                self.node(home);
                self.node(node);
            }
            Event::Accesses { page, home, node, kind, count } => {
                self.tagged_page(if kind == AccessKind::Read { READS } else { WRITES }, page);
                self.node(home);
                self.node(node);
                self.number(count.into());
            }
            Event::RegionBegin { region } => self.tagged(REGION_BEGIN, region.into()),
            Event::RegionEnd { region } => self.tagged(REGION_END, region.into()),
            Event::Iteration { number } => self.tagged(ITERATION, number.into()),
            Event::Collapsed { page, home } => {
                self.tagged_page(COLLAPSED, page);
                self.node(home);
            }
            Event::FrameGone { page, node } => {
                self.tagged_page(FRAME_GONE, page);
                self.node(node);
            }
            Event::NextTouchRequest { pages } => {
                self.bytes.push(NEXT_TOUCH);
                self.range(pages);
            }
            _ => self.bytes.push(UNKNOWN),
        }
    }
    fn tagged(&mut self, tag: u8, n: u64) {
        self.bytes.push(tag);
        self.number(n);
    }
    fn object(&mut self, tag: u8, object: ObjectId, pages: PageRange) {
        self.tagged(tag, object.0.into());
        self.range(pages);
    }
    pub(super) fn poll(&mut self, now: Ns, step: Step, decisions: &[Decision]) {
        self.bytes.push(POLL);
        self.difference(self.last.now, now.0);
        self.last.now = now.0;
        match step {
            Step::Idle => self.bytes.push(IDLE),
            Step::WakeAt(at) => {
                self.bytes.push(WAKE);
                self.difference(now.0, at.0);
            }
            Step::Act => {
                self.tagged(ACT, decisions.len() as u64);
                decisions.iter().for_each(|d| self.decision(*d));
            }
        }
    }
    fn decision(&mut self, decision: Decision) {
        match decision {
            Decision::Place { page, node } => {
                self.tagged_page(PLACE, page);
                self.node(node);
            }
            Decision::Move { page, to } => {
                self.tagged_page(MOVE, page);
                self.node(to);
            }
            Decision::Arm { pages } => {
                self.bytes.push(ARM);
                self.range(pages);
            }
            Decision::Replicate { page, on } => {
                self.tagged_page(REPLICATE, page);
                self.node(on);
            }
            Decision::ReplicateLines { page, on } => {
                self.tagged_page(REPLICATE_LINES, page);
                self.node(on);
            }
            _ => self.bytes.push(UNKNOWN),
        }
    }
    pub(super) fn outcome(&mut self, outcome: &MoveOutcome) {
        self.tagged_page(OUTCOME, outcome.page);
        self.node(outcome.to);
        self.bytes.push(RESULTS.iter().position(|r| *r == outcome.result).unwrap_or(RESULTS.len()) as u8);
        self.number(outcome.cost.0);
    }
}

/// Reads what [`Encoder`] writes, and nothing else.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    last: Last,
    /// Number of nodes.
    pub(super) nodes: u64,
    /// The thousands of pages that were named, one bit each.
    named: Vec<u64>,
    cells: u64,
    /// Decisions of the last poll.
    pub(super) decisions: Vec<Decision>,
}

type Read<T> = Result<T, JournalError>;

impl<'a> Decoder<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            last: Last { page: 0, now: 0 },
            nodes: 0,
            named: Vec::new(),
            cells: 0,
            decisions: Vec::new(),
        }
    }
    pub(super) const fn bad(&self, what: &'static str) -> JournalError {
        JournalError::Bad { at: self.at, what }
    }
    pub(super) fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }
    pub(super) fn byte(&mut self) -> Read<u8> {
        let byte = *self.bytes.get(self.at).ok_or(JournalError::Short { at: self.at })?;
        self.at += 1;
        Ok(byte)
    }
    pub(super) fn take(&mut self, n: u64) -> Read<&'a [u8]> {
        let short = JournalError::Short { at: self.at };
        let end = usize::try_from(n).ok().and_then(|n| self.at.checked_add(n)).ok_or(short.clone())?;
        let taken = self.bytes.get(self.at..end).ok_or(short)?;
        self.at = end;
        Ok(taken)
    }
    pub(super) fn number(&mut self) -> Read<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            n |= part << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(self.bad("a number of more than 64 bits"))
    }
    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64, what: &'static str) -> Read<u64> {
        let n = self.number()?;
        if n < end { Ok(n) } else { Err(self.bad(what)) }
    }
    fn difference(&mut self, before: u64) -> Read<u64> {
        let n = self.number()?;
        Ok(before.wrapping_add(n >> 1 ^ (n & 1).wrapping_neg()))
    }
    fn page(&mut self) -> Read<PageNo> {
        let page = self.difference(self.last.page)?;
        if page >= MAX_PAGES {
            return Err(self.bad("a page beyond all canonical ones"));
        }
        self.last.page = page;
        self.name(page)?;
        Ok(PageNo(page))
    }
    /// Bounds the memory that a policy may need for pages.
    fn name(&mut self, page: u64) -> Read<()> {
        let (word, bit) = ((page >> 16) as usize, 1 << (page >> 10 & 63));
        if word >= self.named.len() {
            self.named.resize(word + 1, 0);
        }
        if self.named[word] & bit == 0 {
            self.named[word] |= bit;
            self.cells += self.nodes.max(1);
            if self.cells > MAX_CELLS {
                return Err(JournalError::TooLarge);
            }
        }
        Ok(())
    }
    fn range(&mut self) -> Read<PageRange> {
        let first = self.page()?;
        let count = self.below(MAX_PAGES + 1 - first.0, "a range beyond all canonical pages")?;
        Ok(PageRange { first, count })
    }
    pub(super) fn node(&mut self) -> Read<NodeId> {
        Ok(NodeId(self.below(self.nodes, "a node that the machine lacks")? as u16))
    }
    fn small(&mut self) -> Read<u32> {
        Ok(self.below(1 << 32, "a number of more than 32 bits")? as u32)
    }
    /// The next record.
    pub(super) fn record(&mut self) -> Read<Record> {
        let event = match self.byte()? {
            END => return Ok(Record::End),
            POLL => return self.poll(),
            OUTCOME => return self.outcome(),
            ALLOC => Event::Alloc { object: ObjectId(self.small()?), pages: self.range()? },
            FREE => Event::Free { object: ObjectId(self.small()?), pages: self.range()? },
            FAULT => Event::Fault { page: self.page()?, node: self.node()? },
            TOUCHED => Event::Touched { page: self.page()?, home: self.node()?, node: self.node()? },
            READS => self.accesses(AccessKind::Read)?,
            WRITES => self.accesses(AccessKind::Write)?,
            REGION_BEGIN => Event::RegionBegin { region: self.small()? },
            REGION_END => Event::RegionEnd { region: self.small()? },
            ITERATION => Event::Iteration { number: self.small()? },
            COLLAPSED => Event::Collapsed { page: self.page()?, home: self.node()? },
            FRAME_GONE => Event::FrameGone { page: self.page()?, node: self.node()? },
            NEXT_TOUCH => Event::NextTouchRequest { pages: self.range()? },
            _ => return Err(self.bad("a record of an unknown kind")),
        };
        Ok(Record::Event(event))
    }
    fn accesses(&mut self, kind: AccessKind) -> Read<Event> {
        let (page, home, node) = (self.page()?, self.node()?, self.node()?);
        Ok(Event::Accesses { page, home, node, kind, count: self.small()? })
    }
    fn poll(&mut self) -> Read<Record> {
        let now = self.difference(self.last.now)?;
        self.last.now = now;
        self.decisions.clear();
        let step = match self.byte()? {
            IDLE => Step::Idle,
            WAKE => Step::WakeAt(Ns(self.difference(now)?)),
            ACT => {
                for _ in 0..self.number()? {
                    let decision = self.decision()?;
                    self.decisions.push(decision);
                }
                Step::Act
            }
            _ => return Err(self.bad("an unknown step")),
        };
        Ok(Record::Poll(Ns(now), step))
    }
    fn decision(&mut self) -> Read<Decision> {
        Ok(match self.byte()? {
            PLACE => Decision::Place { page: self.page()?, node: self.node()? },
            MOVE => Decision::Move { page: self.page()?, to: self.node()? },
            ARM => Decision::Arm { pages: self.range()? },
            REPLICATE => Decision::Replicate { page: self.page()?, on: self.node()? },
            REPLICATE_LINES => Decision::ReplicateLines { page: self.page()?, on: self.node()? },
            _ => return Err(self.bad("a decision of an unknown kind")),
        })
    }
    fn outcome(&mut self) -> Read<Record> {
        let (page, to) = (self.page()?, self.node()?);
        let result = RESULTS.get(usize::from(self.byte()?)).copied().ok_or(self.bad("an unknown result"))?;
        Ok(Record::Outcome(MoveOutcome { page, to, result, cost: Ns(self.number()?) }))
    }
}
