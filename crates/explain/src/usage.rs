//! Who uses which page of an object, when and from which region.
//!
//! # Terms
//! *Inside*: in a parallel region. A program without regions is inside all the time. *Owner* of a
//! page: the node that makes at least [`OWNS`] percent of the accesses from inside. Only accesses
//! that count are looked at: initialisation is left out where rounds are known.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use homenode_dataset::tables::{
    Access, FirstTouch, IntervalNo, Object, ObjectKind, Region, RegionNo, ThreadStay,
};
use homenode_dataset::{Dataset, SeenCount};
use homenode_model::{AccessKind, NodeId, ObjectId, ThreadId};
use homenode_report::Amount;
use homenode_report::blocks::pages;
use homenode_report::time::Timeline;

/// Percent of a page's accesses that its owner makes.
pub const OWNS: u64 = 80;
/// Objects that are looked at.
const MOST: usize = 24;
/// An object with fewer of a thousand remote accesses is not looked at.
const LEAST: u64 = 10;
/// Pages that are told apart in a data set of any size; a page takes some 500 bytes.
const PAGES: u64 = 1 << 17;

/// Accesses by node. Few nodes use one page, so that a list does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByNode(Vec<(NodeId, u64)>);

impl ByNode {
    fn add(&mut self, node: NodeId, n: u64) {
        match self.0.iter_mut().find(|(at, _)| *at == node) {
            Some((_, sum)) => *sum = sum.saturating_add(n),
            None => self.0.push((node, n)),
        }
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Nodes with at least one of a hundred accesses.
    pub fn users(&self) -> u64 {
        let total = self.total();
        self.0.iter().filter(|(_, n)| n.saturating_mul(100) >= total && *n > 0).count() as u64
    }

    /// The node that makes at least [`OWNS`] percent.
    pub fn owner(&self) -> Option<NodeId> {
        let (node, most) = self.0.iter().max_by_key(|(node, n)| (*n, Reverse(*node)))?;
        (u128::from(*most) * 100 >= u128::from(self.total()) * u128::from(OWNS) && *most > 0).then_some(*node)
    }
}

/// A page, or a block of pages where the data set tells no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageUse {
    /// Pages of the block.
    pub pages: u64,
    /// Accesses from inside.
    pub inside: ByNode,
    /// All accesses.
    pub all: u64,
    /// Remote ones among them.
    pub remote: u64,
    /// Accesses from inside by region.
    regions: Vec<(Option<RegionNo>, ByNode)>,
    /// Accesses from inside in intervals that had an owner.
    owned: u64,
    /// The owner in the latest interval that had one, and how often it was another one than before.
    last: Option<NodeId>,
    changes: u64,
    /// Accesses of the interval under way.
    fresh: ByNode,
}

/// How a page is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// One node uses it.
    Owned(NodeId),
    /// Each interval has an owner, and once or twice it becomes another one.
    Phases,
    /// Each region has an owner, and not the same.
    Regions,
    /// Several nodes use it at the same time.
    Shared,
}

impl PageUse {
    fn end_interval(&mut self) {
        if let Some(owner) = self.fresh.owner() {
            self.owned = self.owned.saturating_add(self.fresh.total());
            if self.last.is_some_and(|last| last != owner) {
                self.changes += 1;
            }
            self.last = Some(owner);
        }
        // It keeps its room: most pages are used in most intervals.
        self.fresh.0.clear();
    }

    /// How the page is used.
    pub fn class(&self) -> Class {
        if let Some(node) = self.inside.owner() {
            return Class::Owned(node);
        }
        let most = |part: u64| u128::from(part) * 100 >= u128::from(self.inside.total()) * u128::from(OWNS);
        if (1..=2).contains(&self.changes) && most(self.owned) {
            return Class::Phases;
        }
        let owned = self.regions.iter().filter(|(_, by)| by.owner().is_some());
        if self.regions.len() > 1 && most(owned.fold(0, |sum, (_, by)| sum.saturating_add(by.total()))) {
            return Class::Regions;
        }
        Class::Shared
    }
}

/// A thread or, where nobody knows the thread, a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The thread.
    Thread(ThreadId),
    /// The node.
    Node(NodeId),
}

/// What is known of an object.
#[derive(Clone, Debug)]
pub struct ObjectUse {
    /// The object.
    pub object: Object,
    /// Accesses that count.
    pub accesses: Amount,
    /// Remote ones.
    pub remote: Amount,
    /// Accesses by region.
    pub regions: BTreeMap<Option<RegionNo>, Amount>,
    /// Accesses by node, from inside.
    pub by_node: ByNode,
    /// Stores from inside.
    pub stores_inside: u64,
    /// Stores from outside of regions, in a program with regions.
    pub stores_outside: u64,
    /// By page.
    pub pages: BTreeMap<u64, PageUse>,
    /// First touches of its pages.
    pub touches: Vec<FirstTouch>,
}

impl ObjectUse {
    fn new(object: Object) -> Self {
        Self {
            object,
            accesses: Amount::default(),
            remote: Amount::default(),
            regions: BTreeMap::new(),
            by_node: ByNode::default(),
            stores_inside: 0,
            stores_outside: 0,
            pages: BTreeMap::new(),
            touches: Vec::new(),
        }
    }

    /// Accesses from inside that are looked at.
    pub fn inside(&self) -> u64 {
        self.by_node.total()
    }

    /// Owners of the pages in order: how often the next owned page has another owner, and how many
    /// owned pages there are.
    pub fn turns(&self) -> (u64, u64) {
        let owners = self.pages.values().filter_map(|p| p.inside.owner());
        let mut last = None;
        owners.fold((0, 0), |(turns, pages), owner| {
            let turn = last.replace(owner).is_some_and(|l| l != owner);
            (turns + u64::from(turn), pages + 1)
        })
    }

    /// Pages by who touched them first, most first.
    pub fn touchers(&self) -> Vec<(Who, u64)> {
        let mut all: BTreeMap<Who, u64> = BTreeMap::new();
        for touch in &self.touches {
            let who = touch.thread.map_or(Who::Node(touch.node), Who::Thread);
            let sum = all.entry(who).or_default();
            *sum = sum.saturating_add(touch.pages);
        }
        let mut all: Vec<(Who, u64)> = all.into_iter().collect();
        all.sort_by_key(|(who, pages)| (Reverse(*pages), *who));
        all
    }
}

/// The whole recording.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Objects with most remote accesses.
    pub objects: Vec<ObjectUse>,
    /// Accesses that count, of everything.
    pub accesses: Amount,
    /// Remote ones.
    pub remote: Amount,
    /// Regions by number.
    pub regions: BTreeMap<RegionNo, Region>,
    /// Threads.
    pub threads: u64,
    /// Nodes that threads ran on.
    pub nodes: u64,
    /// Threads that are known not to be bound, and were seen on several nodes.
    pub wandering: u64,
    /// Neighbouring pages that were taken for one, because the data set has too many; 1: none were.
    pub together: u64,
}

/// Rows of accesses between two questions whether to go on.
const OFTEN: u64 = 1 << 16;

fn units(tally: SeenCount) -> u64 {
    tally.count().map_or(tally.seen(), |c| c.parts().0)
}

/// Accesses that count, row by row. `more` gets the number of rows that were read in this pass, and
/// says whether to go on; `None`: it said no.
fn counted(set: &Dataset, more: &mut dyn FnMut(u64) -> bool, mut each: impl FnMut(Access)) -> Option<()> {
    let timeline = Timeline::of(set);
    let all = !timeline.has_timed();
    for (row, a) in (0_u64..).zip(set.rows::<Access>()) {
        if row.is_multiple_of(OFTEN) && !more(row) {
            return None;
        }
        if all || timeline.is_timed(a.interval) {
            each(a);
        }
    }
    Some(())
}

/// What the first pass knows of an object.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// Remote accesses.
    remote: u64,
    /// Pages of its smallest block.
    least: u64,
}

/// Bits by which the number of a page is shortened, so that all objects together have at most
/// [`PAGES`] blocks. `blocks`: the pages of each object, and the pages of its smallest block.
fn shift(blocks: impl Iterator<Item = (u64, u64)> + Clone) -> u32 {
    let fits = |shift: &u32| {
        let all = blocks.clone().map(|(pages, least)| (pages / least.max(1 << shift)).saturating_add(1));
        all.fold(0, u64::saturating_add) <= PAGES
    };
    (0..63).find(fits).unwrap_or(63)
}

impl Usage {
    /// Reads a data set; tells all pages apart.
    pub fn of(set: &Dataset) -> Self {
        // Nobody says no.
        Self::read(set, false, &mut |_| true).unwrap_or_else(|| unreachable!("nobody stops it"))
    }

    /// Reads a data set of any size in bounded memory: neighbouring pages are taken for one where
    /// there are too many ([`Usage::together`]). `more` gets the number of rows of accesses that
    /// were read, in two passes over the table, and says whether to go on; `None`: it said no.
    pub fn bounded(set: &Dataset, more: &mut dyn FnMut(u64) -> bool) -> Option<Self> {
        Self::read(set, true, more)
    }

    fn read(set: &Dataset, bounded: bool, more: &mut dyn FnMut(u64) -> bool) -> Option<Self> {
        let (mut accesses, mut remote) = (Amount::default(), Amount::default());
        let mut sums: BTreeMap<ObjectId, Sum> = BTreeMap::new();
        let mut rows = 0;
        let mut first = |row: u64| {
            rows = row;
            more(row)
        };
        counted(set, &mut first, |a| {
            accesses.add(a.tally);
            if a.node != a.home {
                remote.add(a.tally);
                if let Some(object) = a.object {
                    let sum = sums.entry(object).or_insert(Sum { remote: 0, least: u64::MAX });
                    sum.remote = sum.remote.saturating_add(units(a.tally));
                    sum.least = sum.least.min(a.pages.max(1));
                }
            }
        })?;
        let whole = accesses.units().1;
        let listed: BTreeMap<ObjectId, Object> = set
            .rows::<Object>()
            .filter(|o| matches!(o.kind, ObjectKind::Static | ObjectKind::Allocated))
            .map(|o| (o.object, o))
            .collect();
        let mut ranked: Vec<(u64, ObjectId)> = sums
            .iter()
            .filter(|(object, sum)| {
                listed.contains_key(object) && sum.remote.saturating_mul(1000) >= whole.saturating_mul(LEAST)
            })
            .map(|(object, sum)| (sum.remote, *object))
            .collect();
        ranked.sort_by_key(|(n, object)| (Reverse(*n), *object));
        ranked.truncate(MOST);
        let page_bytes = set.meta().page_bytes;
        let blocks = ranked.iter().filter_map(|(_, object)| {
            Some((pages(listed.get(object)?, page_bytes), sums.get(object)?.least))
        });
        let shift = if bounded { shift(blocks) } else { 0 };
        let regions: BTreeMap<RegionNo, Region> = set.rows::<Region>().map(|r| (r.region, r)).collect();
        let mut objects: Vec<ObjectUse> =
            ranked.iter().filter_map(|(_, object)| listed.get(object).cloned().map(ObjectUse::new)).collect();
        let place: BTreeMap<ObjectId, usize> =
            objects.iter().enumerate().map(|(i, o)| (o.object.object, i)).collect();
        let grain = Grain { shift, has_regions: !regions.is_empty() };
        read_accesses(set, grain, &mut |row| more(rows.saturating_add(row)), &place, &mut objects)?;
        for touch in set.rows::<FirstTouch>() {
            if let Some(at) = place.get(&touch.object) {
                objects[*at].touches.push(touch);
            }
        }
        let (threads, nodes, wandering) = threads(set);
        let together = 1 << shift;
        Some(Self { objects, accesses, remote, regions, threads, nodes, wandering, together })
    }
}

/// How accesses are taken together.
#[derive(Clone, Copy, Debug)]
struct Grain {
    /// Bits by which the number of a page is shortened.
    shift: u32,
    /// The program has regions.
    has_regions: bool,
}

/// `None`: `more` said no.
fn read_accesses(
    set: &Dataset,
    grain: Grain,
    more: &mut dyn FnMut(u64) -> bool,
    place: &BTreeMap<ObjectId, usize>,
    objects: &mut [ObjectUse],
) -> Option<()> {
    let mut interval: Option<IntervalNo> = None;
    counted(set, more, |a| {
        if interval.replace(a.interval).is_some_and(|last| last != a.interval) {
            end_interval(objects);
        }
        let Some(it) = a.object.and_then(|o| place.get(&o)).and_then(|at| objects.get_mut(*at)) else {
            return;
        };
        let (n, inside) = (units(a.tally), a.region.is_some() || !grain.has_regions);
        let store = a.kind == Some(AccessKind::Write);
        it.accesses.add(a.tally);
        it.regions.entry(a.region).or_default().add(a.tally);
        let page = it.pages.entry(a.page >> grain.shift << grain.shift).or_default();
        page.pages = page.pages.max(a.pages).max(1 << grain.shift);
        page.all = page.all.saturating_add(n);
        if a.node != a.home {
            it.remote.add(a.tally);
            page.remote = page.remote.saturating_add(n);
        }
        if inside {
            it.by_node.add(a.node, n);
            it.stores_inside = it.stores_inside.saturating_add(if store { n } else { 0 });
            page.inside.add(a.node, n);
            page.fresh.add(a.node, n);
            match page.regions.iter_mut().find(|(region, _)| *region == a.region) {
                Some((_, by)) => by.add(a.node, n),
                None => {
                    let mut by = ByNode::default();
                    by.add(a.node, n);
                    page.regions.push((a.region, by));
                }
            }
        } else {
            it.stores_outside = it.stores_outside.saturating_add(if store { n } else { 0 });
        }
    })?;
    end_interval(objects);
    Some(())
}

fn end_interval(objects: &mut [ObjectUse]) {
    objects.iter_mut().flat_map(|o| o.pages.values_mut()).for_each(PageUse::end_interval);
}

/// Threads, nodes that they ran on, and threads that are not bound and ran on several nodes.
fn threads(set: &Dataset) -> (u64, u64, u64) {
    let mut all: BTreeMap<(u32, ThreadId), (Vec<NodeId>, bool)> = BTreeMap::new();
    let mut nodes: Vec<NodeId> = Vec::new();
    for stay in set.rows::<ThreadStay>() {
        let (seen, bound) = all.entry((stay.process, stay.thread)).or_default();
        *bound |= stay.bound == Some(true);
        if let Some(node) = stay.node {
            if !seen.contains(&node) {
                seen.push(node);
            }
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
    }
    let wandering = all.values().filter(|(seen, bound)| seen.len() > 1 && !bound).count();
    (all.len() as u64, nodes.len() as u64, wandering as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(counts: &[u64]) -> ByNode {
        ByNode((0..).map(NodeId).zip(counts.iter().copied()).collect())
    }

    #[test]
    fn an_owner_makes_most_accesses() {
        assert_eq!(by(&[80, 20]).owner(), Some(NodeId(0)));
        assert_eq!(by(&[79, 21]).owner(), None);
        assert_eq!(by(&[]).owner(), None);
        assert_eq!(by(&[0, 0]).owner(), None);
        assert_eq!((by(&[1000, 1]).users(), by(&[50, 50, 0]).users()), (1, 2));
    }

    #[test]
    fn a_page_whose_owner_changes_once_has_phases() {
        let mut page = PageUse::default();
        for (node, rounds) in [(0, 3), (1, 5)] {
            for _ in 0..rounds {
                page.fresh.add(NodeId(node), 10);
                page.inside.add(NodeId(node), 10);
                page.end_interval();
            }
        }
        assert_eq!(page.class(), Class::Phases);
        // One that goes back and forth has none.
        for node in [0, 1, 0] {
            page.fresh.add(NodeId(node), 10);
            page.inside.add(NodeId(node), 10);
            page.end_interval();
        }
        assert_eq!(page.class(), Class::Shared);
    }

    #[test]
    fn pages_are_taken_together_only_where_there_are_too_many() {
        let of = |blocks: &[(u64, u64)]| shift(blocks.iter().copied());
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(PAGES - 1, 1)]), 0);
        assert_eq!(of(&[(PAGES, 1)]), 1);
        assert_eq!(of(&[(PAGES, 16), (PAGES, 16)]), 0, "blocks of the table are pages enough");
        assert_eq!(of(&[(PAGES * 15, 16), (PAGES, 1)]), 5);
        assert_eq!(of(&[(u64::MAX, 1)]), 47);
    }

    #[test]
    fn regions_that_disagree_are_told() {
        let mut page = PageUse::default();
        for node in [0, 1] {
            page.inside.add(NodeId(node), 10);
            page.fresh.add(NodeId(node), 10);
            page.regions.push((
                Some(RegionNo(node.into())),
                by(&[u64::from(node == 0) * 10, u64::from(node == 1) * 10]),
            ));
        }
        page.end_interval();
        assert_eq!(page.class(), Class::Regions);
    }
}
