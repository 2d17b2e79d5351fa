//! Frames of pages whose lines other nodes fetch on demand: coherent replication by cache line.
//!
//! A node that is to have a replica of a page allots a frame of its own memory to the page. The
//! frame is empty at first. An access of the node to a line that the frame has is local; any other
//! fetches the line from the page's home, and the frame keeps the line. The state of a line in a
//! frame is one of three: absent, valid, or owned. An owned line is newer than the home's, and no
//! other frame has the line. A write makes its line go from the other frames and nothing else.
//!
//! This is S-COMA (Saulsbury, Wilkinson, Carter, Landin; HPCA 1995), which Sun's WildFire calls
//! coherent memory replication (Hagersten and Koster, HPCA 1999).
//!
//! Memory: two bits a line, and about 100 bytes a frame.

use std::collections::BTreeMap;

use homenode_model::{LineNo, NodeId, PageNo, PageRange};

/// A page's lines in the memory of a node that is not the page's home.
#[derive(Clone, Debug)]
struct Frame {
    node: NodeId,
    /// Lines that the frame has, a bit each.
    valid: Vec<u64>,
    /// Those that are newer here than at home.
    owned: Vec<u64>,
    /// The number of the fetch that last missed this frame, or of the frame's allotment.
    missed: u64,
}

/// Where an access to a page with frames finds its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The node whose memory answers.
    pub(super) from: NodeId,
    /// The line comes from elsewhere, and the toucher's frame keeps it.
    pub(super) fetched: bool,
    /// A write needs the answer of these nodes, a bit each: their frames had the line.
    pub(super) invalidated: u64,
}

/// All frames.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    /// Those of a page, ascending by node.
    pages: BTreeMap<PageNo, Vec<Frame>>,
    /// log2 of the 64-byte lines of a page.
    page_shift: u32,
    /// 64-byte lines that a line has.
    line_step: u64,
    /// 64-bit words for the lines of a page.
    words: usize,
    /// Fetches and allotments so far.
    clock: u64,
}

impl Frames {
    /// `page_shift`: log2 of the 64-byte lines of a page; `line_step`: 64-byte lines in a line of
    /// the machine.
    pub(super) fn new(page_shift: u32, line_step: u64) -> Self {
        let lines = ((1u64 << page_shift) / line_step).max(1);
        Self { pages: BTreeMap::new(), page_shift, line_step, words: lines.div_ceil(64) as usize, clock: 0 }
    }
    /// Whether `node` has a frame of `page`.
    pub(super) fn has(&self, page: PageNo, node: NodeId) -> bool {
        self.pages.get(&page).is_some_and(|frames| frames.iter().any(|f| f.node == node))
    }
    /// Allots an empty frame to `page` on a node without one.
    pub(super) fn allot(&mut self, page: PageNo, node: NodeId) {
        self.clock += 1;
        let (none, missed) = (vec![0; self.words], self.clock);
        let frames = self.pages.entry(page).or_default();
        let at = frames.partition_point(|f| f.node < node);
        frames.insert(at, Frame { node, valid: none.clone(), owned: none, missed });
    }
    /// Word and bit of a line of its page.
    fn bit(&self, line: LineNo) -> (usize, u64) {
        let within = (line.0 & ((1 << self.page_shift) - 1)) / self.line_step;
        ((within >> 6) as usize, 1 << (within & 63))
    }
    /// CPUs of `node` read a line of a page whose home is `home`.
    pub(super) fn read(&mut self, line: LineNo, node: NodeId, home: NodeId) -> Found {
        let (word, bit) = self.bit(line);
        self.clock += 1;
        let clock = self.clock;
        let page = PageNo(line.0 >> self.page_shift);
        let Some(frames) = self.pages.get_mut(&page) else {
            return Found { from: home, fetched: false, invalidated: 0 };
        };
        // The owner's line is sent home, too, and all may read it from then on.
        let owner = frames.iter_mut().find(|f| f.node != node && f.owned[word] & bit != 0).map(|f| {
            f.owned[word] &= !bit;
            f.node
        });
        let Some(mine) = frames.iter_mut().find(|f| f.node == node) else {
            // The home has nowhere else to read the line; others are answered by the home.
            let from = if node == home { owner.unwrap_or(home) } else { home };
            return Found { from, fetched: false, invalidated: 0 };
        };
        if mine.valid[word] & bit != 0 {
            return Found { from: node, fetched: false, invalidated: 0 };
        }
        mine.valid[word] |= bit;
        mine.missed = clock;
        Found { from: home, fetched: true, invalidated: 0 }
    }
    /// CPUs of `node` write to a line of a page whose home is `home`: the line goes from all other
    /// frames, and the node owns it.
    pub(super) fn write(&mut self, line: LineNo, node: NodeId, home: NodeId) -> Found {
        let (word, bit) = self.bit(line);
        self.clock += 1;
        let clock = self.clock;
        let page = PageNo(line.0 >> self.page_shift);
        let mut found = Found { from: home, fetched: false, invalidated: 0 };
        for frame in self.pages.get_mut(&page).into_iter().flatten() {
            if frame.node == node {
                if frame.owned[word] & bit != 0 {
                    found.from = node;
                } else {
                    found.fetched = frame.valid[word] & bit == 0;
                    frame.missed = clock;
                }
                frame.valid[word] |= bit;
                frame.owned[word] |= bit;
            } else if frame.valid[word] & bit != 0 {
                if node == home && frame.owned[word] & bit != 0 {
                    found.from = frame.node;
                }
                frame.valid[word] &= !bit;
                frame.owned[word] &= !bit;
                found.invalidated |= 1 << frame.node.0;
            }
        }
        found
    }
    /// Whether `node`'s frame owns the line: its CPUs write it back there.
    pub(super) fn owns(&self, line: LineNo, node: NodeId) -> bool {
        let (word, bit) = self.bit(line);
        let frames = self.pages.get(&PageNo(line.0 >> self.page_shift));
        frames.into_iter().flatten().any(|f| f.node == node && f.owned[word] & bit != 0)
    }
    /// The page other than `except` whose frame on `node` has gone without a miss for longest: the
    /// one to give up. Ties cannot be: each miss has a number of its own.
    pub(super) fn least_recently_missed(&self, node: NodeId, except: Option<PageNo>) -> Option<PageNo> {
        let of_node = self.pages.iter().flat_map(|(p, frames)| frames.iter().map(move |f| (*p, f)));
        let others = of_node.filter(|(p, f)| f.node == node && Some(*p) != except);
        others.min_by_key(|(_, f)| f.missed).map(|(p, _)| p)
    }
    /// Gives up the frame of `page` on `node`: how many of its lines must go home first, and
    /// whether it was the page's last frame. `None` if there is none.
    pub(super) fn give_up(&mut self, page: PageNo, node: NodeId) -> Option<(u64, bool)> {
        let frames = self.pages.get_mut(&page)?;
        let at = frames.iter().position(|f| f.node == node)?;
        let frame = frames.remove(at);
        let last = frames.is_empty();
        if last {
            self.pages.remove(&page);
        }
        Some((frame.owned.iter().map(|w| u64::from(w.count_ones())).sum(), last))
    }
    /// Gives up all frames of `page`: each node with the lines that must go home first.
    pub(super) fn give_up_all(&mut self, page: PageNo) -> Vec<(NodeId, u64)> {
        let frames = self.pages.remove(&page).unwrap_or_default();
        let owned = |f: &Frame| f.owned.iter().map(|w| u64::from(w.count_ones())).sum();
        frames.iter().map(|f| (f.node, owned(f))).collect()
    }
    /// Pages of `pages` that have frames, ascending.
    pub(super) fn of(&self, pages: PageRange) -> Vec<PageNo> {
        let end = PageNo(pages.first.0.saturating_add(pages.count));
        self.pages.range(pages.first..end).map(|(page, _)| *page).collect()
    }
}
