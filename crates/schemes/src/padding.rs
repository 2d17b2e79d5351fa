//! False sharing of pages: parts of one page that different nodes use, and the padding that
//! separates them.
//!
//! # Problem
//!
//! A page has one home. Where the rows of an array belong to different nodes and are no whole
//! pages, the pages at their borders have users on two nodes, and no placement serves both.
//!
//! # Approach
//!
//! 1. The recording runs through the caches of the machine. What is left by cache line and node is
//!    who fetches the line.
//! 2. A line *belongs* to a node that fetches it at least three times as often as all others
//!    together. Lines of nobody are left out.
//! 3. Candidates for the row: the dimensions that debug information knows, the distance at which
//!    lines change hands, and the array as a whole (then it has to begin on a page).
//! 4. For each candidate, accesses are counted that go to a page which belongs to another node for
//!    the most part. The candidate that leaves fewest is the advice, if it leaves at most half.
//!
//! # Limits
//!
//! Who fetches a line is learned from the whole recording: an array whose rows change hands in the
//! middle has no owners. Rows of less than half a page would more than double the array and are not
//! padded.

use homenode_error::{Error, Result};
use homenode_log::Mark as LogMark;
use homenode_log::recording::Elements;
use homenode_model::{Bytes, CpuId, LineNo, ObjectId, ThreadId, Ticks, Topology};
use homenode_order::padding::{ArrayRows, Padding};
use homenode_order::space::Birth;
use homenode_order::step::{Mark, Sync, TraceStep, What};
use homenode_order::{StepSink, Trace};
use homenode_sim::caches::Caches;
use homenode_sim::stream::{MemChunk, MemWhat};

use crate::Pass;

/// Steps between two looks at whoever wants to stop.
const BUDGET: u64 = 1 << 18;
/// Bytes of a line.
const LINE: u64 = 1 << LineNo::SHIFT;
/// Of a thousand accesses to memory, those to pages of another node from which an array is looked
/// at.
const LEAST: u64 = 5;
/// Percent of the accesses to an array that must go to lines that belong to a node.
const OWNED: u64 = 60;
/// Percent of a page's accesses that come from other nodes where the page is falsely shared.
const FOREIGN: u64 = 10;
/// Candidates whose misplaced accesses differ by no more percent of all are as good as each other.
const EQUAL: u64 = 2;
/// Rows that the shortest distance may have.
const ROWS: u64 = 4;
/// Rows that are needed to see a distance.
const FEW: usize = 4;

/// What to do about the pages of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddingAdvice {
    /// The array.
    pub object: ObjectId,
    /// Its name.
    pub name: String,
    /// What it consists of.
    pub elements: Elements,
    /// The rows, and how far apart they should begin.
    pub rows: ArrayRows,
    /// Bytes of the array.
    pub bytes: u64,
    /// Pages of the array, and those of them that hold parts of several nodes.
    pub pages: (u64, u64),
    /// Accesses that go to pages of another node, today and with the padding.
    pub foreign: (u64, u64),
}

impl PaddingAdvice {
    /// Whether it is enough that the array begins on a page.
    pub const fn aligns(&self) -> bool {
        self.rows.bytes >= self.bytes
    }

    /// The change in the source's terms.
    pub fn change(&self) -> String {
        let (name, ArrayRows { bytes, padded }) = (&self.name, self.rows);
        if self.aligns() {
            return format!(
                "let {name} begin on a page: allocate it with posix_memalign, or homenode run --align"
            );
        }
        let in_bytes = format!("{bytes} to {padded} bytes");
        let element = self.elements.element_bytes.unwrap_or(0);
        let whole = element > 0 && bytes.is_multiple_of(element) && padded.is_multiple_of(element);
        match (self.dimension(), whole) {
            (Some(dimension), true) => {
                let (inner, count) = (self.inner(dimension + 1), self.elements.extents[dimension]);
                if padded.is_multiple_of(inner) {
                    let which = if dimension + 1 == self.elements.extents.len() {
                        "the innermost dimension".to_owned()
                    } else {
                        format!("dimension {}, counted from the outermost,", dimension + 1)
                    };
                    return format!("pad {which} of {name} from {count} to {} ({in_bytes})", padded / inner);
                }
                format!("pad each row of {name} from {in_bytes}")
            }
            (None, true) => format!(
                "pad the rows of {name} from {} to {} elements ({in_bytes})",
                bytes / element,
                padded / element
            ),
            (_, false) => format!("pad the rows of {name} from {in_bytes}"),
        }
    }

    /// What was seen, in a few words.
    pub fn evidence(&self) -> String {
        format!("{} of its {} pages hold parts of several nodes", self.pages.1, self.pages.0)
    }

    /// Bytes of an element of a dimension: of all dimensions from it on.
    fn inner(&self, from: usize) -> u64 {
        let element = self.elements.element_bytes.unwrap_or(1);
        self.elements.extents.iter().skip(from).fold(element, |all, e| all.saturating_mul(*e))
    }

    /// The dimension whose extent is padded: all from it on make one row.
    fn dimension(&self) -> Option<usize> {
        (1..self.elements.extents.len()).find(|d| self.inner(*d) == self.rows.bytes)
    }
}

/// What the address space has to do.
pub fn padding(all: &[PaddingAdvice]) -> Padding {
    all.iter().map(|advice| (advice.object, advice.rows)).collect()
}

/// Who fetches a line: the node that leads, by how much, of how many (Boyer and Moore's vote).
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    node: u8,
    lead: u16,
    all: u16,
}

impl Line {
    fn add(&mut self, node: u8) {
        if self.lead == 0 {
            (self.node, self.lead) = (node, 1);
        } else if self.node == node {
            self.lead += 1;
        } else {
            self.lead -= 1;
        }
        self.all += 1;
        if self.all == u16::MAX {
            (self.lead, self.all) = (self.lead / 2, self.all / 2);
        }
    }

    /// The node that it belongs to: a lead of half of all means three quarters of all.
    fn owner(self) -> Option<u8> {
        (self.all > 0 && self.lead.saturating_mul(2) >= self.all).then_some(self.node)
    }
}

/// Lines by canonical number, as the memory sees them.
struct Profile {
    caches: Caches,
    chunk: MemChunk,
    lines: Vec<Line>,
    /// The node of each thread.
    nodes: Vec<u8>,
    /// Only regions count.
    regions: bool,
    open: u64,
    failed: bool,
}

impl Profile {
    /// Takes what left the caches.
    fn take(&mut self) {
        let counts = !self.regions || self.open > 0;
        for (thread, items) in self.chunk.threads.iter_mut().enumerate() {
            for item in items.drain(..) {
                let MemWhat::Access { line, cause, .. } = item.what else { continue };
                let place = line.0 as usize;
                if !counts || !cause.is_miss() || place >= MOST_LINES {
                    continue;
                }
                if place >= self.lines.len() {
                    self.lines.resize(place + place / 2 + 64, Line::default());
                }
                self.lines[place].add(self.nodes.get(thread).copied().unwrap_or(0));
            }
        }
        self.chunk.items = 0;
    }
}

/// Lines that are looked at: 64 GiB of memory.
const MOST_LINES: usize = 1 << 30;

impl StepSink for Profile {
    fn access(&mut self, thread: ThreadId, tick: Ticks, line: LineNo, write: bool) -> bool {
        match self.caches.access(thread, tick, line, write, &mut self.chunk) {
            Ok(cold) => cold,
            Err(_) => {
                self.failed = true;
                false
            }
        }
    }

    fn sync(&mut self, thread: ThreadId, tick: Ticks, sync: Sync) {
        self.failed |=
            self.caches.step(&TraceStep { thread, tick, what: What::Sync(sync) }, &mut self.chunk).is_err();
    }

    fn mark(&mut self, thread: ThreadId, tick: Ticks, mark: Mark) {
        self.take();
        match mark {
            Mark::RegionBegin { .. } => self.open += 1,
            Mark::RegionEnd { .. } => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        self.failed |=
            self.caches.step(&TraceStep { thread, tick, what: What::Mark(mark) }, &mut self.chunk).is_err();
    }
}

/// What to pad, most misplaced accesses first.
///
/// # Errors
/// The recording cannot be read, or the task asks to stop.
pub fn find(
    pass: &Pass<'_>,
    machine: &Topology,
    binding: &[CpuId],
    page: Bytes,
) -> Result<Vec<PaddingAdvice>> {
    let mut regions = false;
    let recording = &pass.loaded.recording;
    recording
        .for_marks(|mark| regions |= matches!(mark, LogMark::RegionFork { .. }))
        .map_err(|e| Error::failed(format!("cannot read {}", recording.path.display())).tried(e))?;
    let caches = Caches::new(machine, binding)
        .map_err(|e| Error::failed("cannot look for pages that are falsely shared").tried(e))?;
    let node = |cpu: &CpuId| u8::try_from(machine.node_of(*cpu).0).unwrap_or(u8::MAX);
    let mut profile = Profile {
        caches,
        chunk: MemChunk { threads: vec![Vec::new(); binding.len()], items: 0, last: false },
        lines: Vec::new(),
        nodes: binding.iter().map(node).collect(),
        regions,
        open: 0,
        failed: false,
    };
    let mut order = pass.open()?;
    // Damage ends the reading early.
    while let Ok(true) = order.advance(&mut profile, BUDGET) {
        profile.take();
        if pass.task.stop_asked() {
            return Err(Error::interrupted());
        }
        if profile.failed {
            return Ok(Vec::new());
        }
    }
    profile.take();
    Ok(advice(&order.trace(), &profile.lines, page.0, |object| {
        let trace = order.space().objects().get(object.index());
        trace.map_or_else(Default::default, |o| {
            let called = pass.loaded.names().object(o);
            (called.name, called.elements)
        })
    }))
}

/// The advice for all arrays.
fn advice(
    trace: &Trace,
    lines: &[Line],
    page: u64,
    names: impl Fn(ObjectId) -> (String, Elements),
) -> Vec<PaddingAdvice> {
    let all = lines.iter().fold(0u64, |sum, l| sum + u64::from(l.all));
    // Of an object's births the longest.
    let mut births: Vec<&Birth> = trace.births.iter().filter(|b| b.bytes >= 2 * page).collect();
    births.sort_by_key(|b| (b.object, std::cmp::Reverse(b.bytes)));
    births.dedup_by_key(|b| b.object);
    let mut found: Vec<PaddingAdvice> = Vec::new();
    for birth in births {
        let used = Used::of(birth, lines);
        let today = used.foreign(page, None);
        if today.foreign.saturating_mul(1000) < all.saturating_mul(LEAST)
            || used.owned.saturating_mul(100) < used.accesses.saturating_mul(OWNED)
        {
            continue;
        }
        let (name, elements) = names(birth.object);
        let candidates = used.candidates(birth, &elements, page);
        let tried = candidates.into_iter().map(|rows| (used.foreign(page, Some(rows)).foreign, rows));
        let best = tried.min_by_key(|(foreign, rows)| {
            // What is as good needs less memory.
            let equal = (all / 100 * EQUAL).max(1);
            (foreign / equal, rows.padded / rows.bytes, std::cmp::Reverse(rows.bytes))
        });
        let Some((left, rows)) = best.filter(|(left, _)| left.saturating_mul(2) <= today.foreign) else {
            continue;
        };
        found.push(PaddingAdvice {
            object: birth.object,
            name,
            elements,
            rows,
            bytes: birth.bytes,
            pages: (today.pages, today.shared),
            foreign: (today.foreign, left),
        });
    }
    found.sort_by_key(|a| (std::cmp::Reverse(a.foreign.0), a.object));
    found
}

/// The lines of an array that belong to nodes.
struct Used {
    /// Offset of the line's middle in the array, canonical address, owner, accesses.
    lines: Vec<(u64, u64, u8, u64)>,
    owned: u64,
    accesses: u64,
}

/// Pages of an array in one layout.
struct Layout {
    pages: u64,
    /// Those that belong to several nodes.
    shared: u64,
    /// Accesses to pages of another node.
    foreign: u64,
}

impl Used {
    fn of(birth: &Birth, lines: &[Line]) -> Self {
        let mut used = Self { lines: Vec::new(), owned: 0, accesses: 0 };
        let mut offset = 0;
        for range in &birth.ranges {
            let (first, end) = (range.first >> LineNo::SHIFT, (range.first + range.bytes).div_ceil(LINE));
            let seen = lines.get(first as usize..(end as usize).min(lines.len())).unwrap_or_default();
            for (line, at) in seen.iter().zip(first..) {
                used.accesses += u64::from(line.all);
                let Some(owner) = line.owner() else { continue };
                used.owned += u64::from(line.all);
                let middle = (offset + (at * LINE + LINE / 2)).saturating_sub(range.first);
                used.lines.push((middle.min(birth.bytes - 1), at * LINE, owner, line.all.into()));
            }
            offset += range.bytes;
        }
        used
    }

    /// The layout with rows on pages of their own, or as it is.
    fn foreign(&self, page: u64, rows: Option<ArrayRows>) -> Layout {
        let place = |offset: u64, address: u64| match rows {
            None => address / page,
            Some(ArrayRows { bytes, padded }) => offset / bytes * (padded / page) + offset % bytes / page,
        };
        let mut layout = Layout { pages: 0, shared: 0, foreign: 0 };
        let mut at = None;
        let mut by_node = [0u64; 256];
        let mut end = |by_node: &mut [u64; 256]| {
            let all: u64 = by_node.iter().sum();
            let other = all - by_node.iter().max().copied().unwrap_or(0);
            layout.pages += u64::from(all > 0);
            layout.shared += u64::from(other > 0 && other * 100 >= all * FOREIGN);
            layout.foreign += other;
            by_node.fill(0);
        };
        for (offset, address, owner, accesses) in &self.lines {
            let page = place(*offset, *address);
            if at.replace(page).is_some_and(|last| last != page) {
                end(&mut by_node);
            }
            by_node[usize::from(*owner)] += accesses;
        }
        end(&mut by_node);
        layout
    }

    /// Rows that may be what the source has.
    fn candidates(&self, birth: &Birth, elements: &Elements, page: u64) -> Vec<ArrayRows> {
        let mut bytes = Vec::new();
        let element = elements.element_bytes.unwrap_or(0);
        let mut inner = element;
        for extent in elements.extents.iter().skip(1).rev() {
            inner = inner.saturating_mul(*extent);
            bytes.push(inner);
        }
        bytes.extend(self.distance(element));
        // Rows of whole pages are padded when the array begins on a page.
        bytes.retain(|b| (page / 2..birth.bytes).contains(b) && !b.is_multiple_of(page));
        // The whole array, which then begins on a page.
        bytes.push(birth.bytes);
        bytes.sort_unstable();
        bytes.dedup();
        let rows = |bytes: u64| ArrayRows { bytes, padded: bytes.next_multiple_of(page) };
        bytes.into_iter().map(rows).filter(|r| r.total(birth.bytes).is_some()).collect()
    }

    /// The distance at which lines change hands, in whole elements.
    fn distance(&self, element: u64) -> Option<u64> {
        let mut begins: Vec<u64> = Vec::new();
        let mut last = None;
        for (offset, _, owner, _) in &self.lines {
            if last.replace(*owner) != Some(*owner) {
                begins.push(*offset);
            }
        }
        let distances: Vec<u64> = begins.windows(2).skip(1).map(|w| w[1] - w[0]).collect();
        if distances.len() < FEW {
            return None;
        }
        // The shortest one that at least a tenth of all have, within a line.
        let mut sorted = distances.clone();
        sorted.sort_unstable();
        let like = |d: u64| sorted.iter().filter(|other| other.abs_diff(d) <= LINE).count();
        let shortest = sorted.iter().copied().find(|d| *d > LINE && like(*d) * 10 >= sorted.len())?;
        // Neighbouring rows of one node make longer distances: all together measure the row finer
        // than lines do. The shortest may be several rows, too.
        let measured = |row: u64| {
            let (mut sum, mut rows, mut fit) = (0, 0, 0);
            for d in &distances {
                let n = (d + row / 2) / row;
                if n > 0 && (n * row).abs_diff(*d) <= LINE * (n + 1) / 2 {
                    (sum, rows, fit) = (sum + d, rows + n, fit + 1);
                }
            }
            (fit, sum, rows)
        };
        let tried = (1..=ROWS).map(|n| measured(shortest / n));
        let best = tried.clone().map(|(fit, ..)| fit).max().unwrap_or(0);
        // Of two that fit as well the longer one.
        let (_, sum, rows) = tried.into_iter().find(|(fit, ..)| *fit * 10 >= best * 9)?;
        let unit = if element > 0 { element } else { 8 };
        (rows > 0).then(|| (sum + rows * unit / 2) / rows / unit * unit).filter(|row| *row > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_order::step::ByteRange;

    fn trace(first: u64, bytes: u64) -> Trace {
        let ranges = vec![ByteRange { first, bytes }];
        Trace { births: vec![Birth { object: ObjectId(0), bytes, ranges }], ..Trace::default() }
    }

    /// An array whose rows belong to nodes.
    fn lines(first: u64, row: u64, rows: u64, owner: impl Fn(u64) -> u8) -> Vec<Line> {
        let mut lines = vec![Line::default(); ((first + row * rows) / LINE + 2) as usize];
        for at in 0..row * rows / 8 {
            let line = &mut lines[((first + at * 8) / LINE) as usize];
            line.add(owner(at * 8 / row));
        }
        lines
    }

    fn doubles(extents: &[u64]) -> Elements {
        Elements { element_type: None, element_bytes: Some(8), extents: extents.to_vec(), fields: Vec::new() }
    }

    fn found(
        first: u64,
        row: u64,
        rows: u64,
        elements: &Elements,
        owner: impl Fn(u64) -> u8,
    ) -> Vec<PaddingAdvice> {
        let lines = lines(first, row, rows, owner);
        advice(&trace(first, row * rows), &lines, 4096, |_| ("a".into(), elements.clone()))
    }

    #[test]
    fn a_matrix_dealt_by_rows_is_to_be_padded() {
        for (elements, text) in [
            (
                doubles(&[1400, 1400]),
                "pad the innermost dimension of a from 1400 to 1536 (11200 to 12288 bytes)",
            ),
            (doubles(&[]), "pad the rows of a from 1400 to 1536 elements (11200 to 12288 bytes)"),
            (Elements::default(), "pad the rows of a from 11200 to 12288 bytes"),
        ] {
            let all = found(4096 + 16, 11200, 1400, &elements, |row| (row % 4) as u8);
            assert_eq!(all.len(), 1, "{elements:?}");
            assert_eq!(all[0].change(), text);
            assert_eq!(all[0].rows, ArrayRows { bytes: 11200, padded: 12288 });
            // Most borders of rows lie within a page.
            let (pages, shared) = all[0].pages;
            assert!(pages >= 3828 && (1000..1400).contains(&shared), "{pages} {shared}");
            assert!(all[0].foreign.1 * 20 < all[0].foreign.0, "{:?}", all[0].foreign);
            assert_eq!(padding(&all)[&ObjectId(0)].padded, 12288);
        }
    }

    #[test]
    fn rows_that_are_no_whole_lines_are_measured() {
        // Rows of 1001 doubles under a dynamic schedule: neighbours sometimes have one owner.
        let owner = |row: u64| (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as u8;
        let all = found(4096, 8008, 500, &doubles(&[]), owner);
        assert_eq!(all[0].rows, ArrayRows { bytes: 8008, padded: 8192 });
    }

    #[test]
    fn rows_that_come_in_groups_are_measured() {
        // Groups of two, three and five rows of 320 doubles.
        let groups = [2u64, 3, 5, 3, 2, 2, 5, 3, 2, 3, 5, 2, 3, 2, 2, 3, 5, 3, 2];
        let mut owner_of = Vec::new();
        for (i, n) in groups.iter().cycle().take(100).enumerate() {
            owner_of.extend(std::iter::repeat_n((i % 4) as u8, *n as usize));
        }
        let all = found(4096, 2560, owner_of.len() as u64, &doubles(&[]), |row| owner_of[row as usize]);
        assert_eq!(all[0].rows, ArrayRows { bytes: 2560, padded: 4096 });
    }

    #[test]
    fn planes_of_a_grid_are_padded_by_their_dimension() {
        // 40 planes of 30 rows of 50 doubles: 12 000 bytes a plane.
        let all = found(4096, 12_000, 40, &doubles(&[40, 30, 50]), |plane| (plane % 2) as u8);
        assert_eq!(all[0].change(), "pad each row of a from 12000 to 12288 bytes");
        let all = found(4096, 12_288 - 512, 40, &doubles(&[40, 23, 64]), |plane| (plane % 2) as u8);
        assert_eq!(
            all[0].change(),
            "pad dimension 2, counted from the outermost, of a from 23 to 24 (11776 to 12288 bytes)"
        );
    }

    #[test]
    fn an_array_of_whole_pages_that_begins_within_one_is_to_be_aligned() {
        let all = found(4096 + 2064, 4096, 300, &Elements::default(), |row| (row % 4) as u8);
        assert!(all[0].aligns(), "{all:?}");
        assert!(all[0].change().contains("homenode run --align"), "{}", all[0].change());
        assert_eq!(all[0].evidence(), "299 of its 301 pages hold parts of several nodes");
    }

    #[test]
    fn what_padding_does_not_help_is_left_alone() {
        // Blocks: four borders in a large array.
        assert_eq!(found(4096, 11200, 1400, &doubles(&[1400, 1400]), |row| (row / 350) as u8), []);
        // Rows on pages already.
        assert_eq!(found(4096, 8192, 500, &Elements::default(), |row| (row % 4) as u8), []);
        // Rows of less than half a page.
        assert_eq!(found(4096, 640, 5000, &doubles(&[5000, 80]), |row| (row % 4) as u8), []);
        // Lines that everybody uses.
        let mut all = lines(4096, 11200, 100, |row| (row % 4) as u8);
        for line in &mut all {
            (0..4).for_each(|n| (0..20).for_each(|_| line.add(n)));
        }
        assert_eq!(advice(&trace(4096, 1_120_000), &all, 4096, |_| ("a".into(), doubles(&[]))), []);
    }

    #[test]
    fn a_vote_finds_whoever_fetches_three_of_four() {
        let mut line = Line::default();
        (0..90_000).for_each(|n| line.add(if n % 5 == 0 { 1 } else { 2 }));
        assert_eq!(line.owner(), Some(2));
        let mut line = Line::default();
        (0..90_000).for_each(|n| line.add((n % 3) as u8));
        assert_eq!(line.owner(), None);
    }
}
