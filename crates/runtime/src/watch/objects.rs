//! The program's objects: allocations of at least [`SMALLEST`], and large static variables.

use std::collections::BTreeMap;

use homenode_model::{NodeId, Ns, ObjectId, PageNo, PageRange};
pub use homenode_wire::facts::{FRAMES, Origin};

use super::history::{PageHistory, add};
use super::numbers::{PAGE, PageNumbers};
use super::places::PagePlaces;
use super::treatment::Treatment;

/// Bytes of the smallest object. Smaller allocations share pages with others and stay where they
/// are.
pub const SMALLEST: usize = 64 << 10;

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its number.
    pub id: ObjectId,
    /// First byte.
    pub address: usize,
    /// Its length.
    pub bytes: usize,
    /// Where it comes from.
    pub origin: Origin,
    /// The Python code that allocated it, innermost frame first.
    pub python: Option<Box<str>>,
    /// Numbers of its whole pages.
    pub pages: PageRange,
    /// Number of objects that this one stands for. Dead objects of one origin are joined.
    pub lives: u64,
    /// Wall-clock time of the allocation.
    pub born: Ns,
    /// Whether the recording has its record.
    pub is_recorded: bool,
    /// What homenode does with it.
    pub treatment: Treatment,
    /// Homes by page. Filled when the object is armed or watched.
    places: PagePlaces,
    /// What has happened to its pages.
    pub history: PageHistory,
}

impl Object {
    /// Whether it was armed or watched, or pages of it moved.
    pub fn took_part(&self) -> bool {
        self.treatment.takes_part() || self.history.moved > 0
    }

    fn index(&self, page: PageNo) -> usize {
        page.0.saturating_sub(self.pages.first.0) as usize
    }

    /// Where a page is, if homenode knows.
    pub fn home(&self, page: PageNo) -> Option<NodeId> {
        self.places.home(self.index(page))
    }

    /// Where a page is, and where it was first seen.
    pub fn homes_of(&self, page: PageNo) -> Option<(NodeId, NodeId)> {
        let index = self.index(page);
        self.places.home(index).zip(self.places.first_home(index))
    }

    /// Notes that the page is at `node` now.
    pub fn set_home(&mut self, page: PageNo, node: NodeId) {
        self.places.set_home(self.index(page), node);
    }

    /// Notes that a page moved to `node`. Returns whether it had come from there.
    pub fn note_move(&mut self, page: PageNo, node: NodeId) -> bool {
        let back = self.places.moves(self.index(page), node);
        self.history.page_moved(back);
        back
    }

    /// Notes that a page is touched after an arming, before its move.
    pub fn note_touch(&mut self, page: PageNo) {
        self.history.touched_again += u64::from(self.places.came(self.index(page)));
    }

    /// Whether the page at `address` is no longer where it was first seen.
    pub fn has_moved(&self, address: usize) -> bool {
        self.places.is_away(address.saturating_sub(self.whole_pages().start) / PAGE)
    }

    /// Runs of pages that are not where they were first seen, with that home.
    pub fn moved_ranges(&self) -> Vec<(PageRange, NodeId)> {
        let numbered = |(mut run, home): (PageRange, NodeId)| {
            run.first.0 += self.pages.first.0;
            (run, home)
        };
        self.places.away().into_iter().map(numbered).collect()
    }

    /// Adds the numbers of its pages by their first home and by their present home.
    pub fn add_homes(&self, first: &mut Vec<u64>, now: &mut Vec<u64>) {
        self.places.count(first, now);
    }

    /// Address ranges of seams: pages near the border between two nodes' pages, by stretches of
    /// `around` pages.
    pub fn seams(&self, around: usize) -> Vec<(usize, usize)> {
        self.places.seams(self.whole_pages().start, around)
    }

    /// First address of its whole pages and one past their end.
    pub fn whole_pages(&self) -> std::ops::Range<usize> {
        whole_pages(self.address, self.bytes)
    }

    /// Notes that `node` touched `pages` pages.
    pub fn touch(&mut self, node: NodeId, pages: u64) {
        add(&mut self.history.touched, node, pages);
    }

    /// Notes where page `index` of the object was at the first look. Returns whether that is new.
    pub fn was_at(&mut self, node: NodeId, index: u64) -> bool {
        let news = self.places.first_seen(self.pages.count as usize, index as usize, node);
        if news {
            add(&mut self.history.homes, node, 1);
        }
        news
    }
}

/// The pages that lie wholly inside a range, as addresses; empty if there is none.
pub fn whole_pages(address: usize, bytes: usize) -> std::ops::Range<usize> {
    let end = address.saturating_add(bytes) & !(PAGE - 1);
    let start = address.checked_next_multiple_of(PAGE).unwrap_or(end);
    start..end.max(start)
}

/// An object that had no pages at the last look.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    address: usize,
    /// Not armed before this time: objects of its site have not lived that long so far.
    not_before: Ns,
    /// The start of a region at which to look next.
    due: u64,
    /// Starts of regions that were skipped before.
    wait: u64,
}

/// The live objects by address. Dead objects remain as origins with counts, joined by origin.
#[derive(Debug, Default)]
pub struct WatchedObjects {
    live: BTreeMap<usize, Object>,
    past: Vec<Object>,
    /// Objects that have not been armed and may be armed later.
    unseen: Vec<Unseen>,
    /// Number of starts of regions so far, and the start at which to look next.
    starts: u64,
    due: u64,
    numbers: PageNumbers,
    next: u32,
    beyond: Beyond,
    /// The time of the last [`WatchedObjects::clock`].
    now: Ns,
    /// How long objects live, by their allocation site. `None`: every object waits for its first
    /// arming from its birth on.
    sites: Option<Sites>,
}

/// Objects beyond the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Objects that are never armed without a request, because too many waited for their first
    /// arming at their birth.
    pub unarmed: u64,
    /// Dead objects that took part and are forgotten, because there are too many origins.
    pub forgotten: u64,
}

/// Most objects that wait for their first arming. Further ones are never armed without a request.
pub const UNSEEN: usize = 4096;
/// Most dead objects that the report lists one by one. Others are joined with one of the same
/// origin.
pub const PAST: usize = 1024;

impl WatchedObjects {
    /// From now on, objects from a site with short-lived objects wait for their first arming until
    /// they have outlived them. An object that is allocated and freed in every round of a loop
    /// gains nothing from moving.
    pub fn judge_by_life(&mut self) {
        self.sites.get_or_insert_default();
    }

    /// Sets the time of the following births, deaths and starts of regions.
    pub const fn clock(&mut self, now: Ns) {
        self.now = now;
    }

    /// Adds an object. Drops what was known of its memory before.
    pub fn born(&mut self, address: usize, bytes: usize, origin: Origin) -> &Object {
        self.overlapped(address, bytes);
        let id = ObjectId(self.next);
        self.next = self.next.wrapping_add(1);
        let whole = whole_pages(address, bytes);
        let pages = self.numbers.give(whole.start, (whole.len() / PAGE) as u64);
        let object = Object {
            id,
            address,
            bytes,
            origin,
            python: None,
            pages,
            lives: 1,
            born: self.now,
            is_recorded: false,
            treatment: Treatment::default(),
            places: PagePlaces::default(),
            history: PageHistory::default(),
        };
        if object.pages.count > 0 {
            if self.unseen.len() < UNSEEN {
                let due = self.starts + 1;
                let not_before =
                    self.sites.as_ref().map_or(Ns::ZERO, |s| s.not_before(&object.origin, self.now));
                self.unseen.push(Unseen { address, not_before, due, wait: 1 });
                self.due = self.due.min(due);
            } else {
                self.beyond.unarmed += 1;
            }
        }
        self.live.entry(address).insert_entry(object).into_mut()
    }

    fn overlapped(&mut self, address: usize, bytes: usize) {
        let end = address.saturating_add(bytes);
        while let Some((&at, _)) =
            self.live.range(..end).next_back().filter(|(_, o)| o.address + o.bytes > address)
        {
            self.dies(at);
        }
    }

    /// Removes the object that starts at `address`.
    pub fn dies(&mut self, address: usize) -> Option<(ObjectId, PageRange)> {
        let object = self.live.remove(&address)?;
        if !object.treatment.takes_part() {
            self.unseen.retain(|u| u.address != address);
        }
        self.numbers.take_back(object.pages);
        if let Some(sites) = &mut self.sites {
            sites.died(&object, self.now);
        }
        let told = (object.id, object.pages);
        if object.took_part() {
            self.bury(object);
        }
        Some(told)
    }

    fn bury(&mut self, mut object: Object) {
        object.places = PagePlaces::default();
        match self.past.iter().position(|p| p.origin == object.origin && p.python == object.python) {
            Some(i) => {
                let p = &mut self.past[i];
                p.bytes = p.bytes.max(object.bytes);
                p.lives += object.lives;
                p.treatment.contested |= object.treatment.contested;
                p.history.join(&object.history);
            }
            None if self.past.len() < PAST => self.past.push(object),
            None => self.beyond.forgotten += 1,
        }
    }

    /// A region starts. Returns whether there is an object to look at, which may have pages by now.
    pub fn region_starts(&mut self) -> bool {
        self.starts += 1;
        !self.unseen.is_empty() && self.starts >= self.due
    }

    /// The objects to look at, or all that have not been armed: address and pages. Until an object
    /// is [`WatchedObjects::seen`], looks at it become rarer: at the 1st, 2nd, 4th, … start of a
    /// region after its birth. An initialisation may have many regions of one thread before it
    /// touches an array.
    pub fn take_unseen(&mut self, all: bool) -> Vec<(usize, PageRange)> {
        let Self { live, unseen, starts, due, now, .. } = self;
        let mut taken = Vec::with_capacity(unseen.len());
        unseen.retain_mut(|u| {
            let Some(o) = live.get(&u.address) else { return false };
            if u.not_before > *now {
                // Looking again costs next to nothing, and the length of a region is not known.
                u.due = u.due.max(*starts + 1);
                return true;
            }
            if u.due <= *starts {
                u.due = *starts + u.wait;
                u.wait *= 2;
                taken.push((u.address, o.pages));
            } else if all {
                taken.push((u.address, o.pages));
            }
            true
        });
        *due = unseen.iter().map(|u| u.due).min().unwrap_or(u64::MAX);
        taken
    }

    /// Notes that the object at `address` has been armed.
    pub fn seen(&mut self, address: usize) {
        self.unseen.retain(|u| u.address != address);
    }

    /// The object that contains `address`.
    pub fn at(&mut self, address: usize) -> Option<&mut Object> {
        let (_, object) = self.live.range_mut(..=address).next_back()?;
        (address - object.address < object.bytes).then_some(object)
    }

    /// The object that contains `address`, read-only.
    pub fn get(&self, address: usize) -> Option<&Object> {
        let (_, object) = self.live.range(..=address).next_back()?;
        (address - object.address < object.bytes).then_some(object)
    }

    /// The live objects, by address.
    pub fn live(&self) -> impl Iterator<Item = &Object> {
        self.live.values()
    }

    /// The live objects, by address.
    pub fn live_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.live.values_mut()
    }

    /// Notes which live objects go back and forth.
    pub fn note_contested(&mut self) {
        self.live_mut().for_each(|o| o.treatment.contested |= o.history.goes_back_and_forth());
    }

    /// Dead objects that took part, joined by origin.
    pub fn past(&self) -> &[Object] {
        &self.past
    }

    /// Objects beyond the limits.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// Page numbers.
    pub fn numbers(&self) -> &PageNumbers {
        &self.numbers
    }

    /// Number of live objects.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there are no live objects.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

/// Sites that are remembered. Objects of further sites do not wait.
const SITES: usize = 1024;
/// Deaths after which a site's objects are known to be short-lived.
const DEATHS: u32 = 2;
/// An object has outlived its site's objects at this many times the age of the oldest dead one.
const OUTLIVES: u64 = 2;

/// How long objects live, by allocation site.
#[derive(Debug, Default)]
struct Sites(BTreeMap<Origin, Lives>);

/// Of a site: the number of dead objects, and the longest life among them.
#[derive(Clone, Copy, Debug, Default)]
struct Lives {
    deaths: u32,
    longest: Ns,
}

impl Sites {
    fn died(&mut self, object: &Object, now: Ns) {
        if self.0.len() < SITES || self.0.contains_key(&object.origin) {
            let lives = self.0.entry(object.origin.clone()).or_default();
            lives.deaths += 1;
            lives.longest = lives.longest.max(now - object.born);
        }
    }

    /// The time at which an object of this origin, born `now`, will have outlived the dead ones.
    fn not_before(&self, origin: &Origin, now: Ns) -> Ns {
        let known = self.0.get(origin).filter(|lives| lives.deaths >= DEATHS);
        known.map_or(Ns::ZERO, |lives| now + lives.longest.times(OUTLIVES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_in_every_round_waits_until_it_has_outlived_its_like() {
        let mut all = WatchedObjects::default();
        all.judge_by_life();
        let mut now = Ns(0);
        let mut round = |all: &mut WatchedObjects, stays: bool| {
            all.clock(now);
            all.born(0x10000, 0x20000, site(1));
            all.region_starts();
            let taken = all.take_unseen(false).len();
            now += Ns(1_000);
            all.clock(now);
            if !stays {
                all.dies(0x10000);
            }
            taken
        };
        let looked: Vec<usize> = (0..6).map(|_| round(&mut all, false)).collect();
        assert_eq!(looked, [1, 1, 0, 0, 0, 0], "two have told how long they live");
        assert_eq!(round(&mut all, true), 0);
        // Another site's are looked at as ever.
        all.born(0x80000, 0x20000, site(2));
        all.region_starts();
        assert_eq!(all.take_unseen(true).iter().map(|t| t.0).collect::<Vec<_>>(), [0x80000]);
        // This one lives on.
        all.clock(now + Ns(1_000));
        all.region_starts();
        assert!(all.take_unseen(true).iter().any(|t| t.0 == 0x10000));
    }

    #[test]
    fn sites_are_bounded() {
        let mut all = WatchedObjects::default();
        all.judge_by_life();
        for i in 0..2 * SITES + 10 {
            all.born(0x10000, 0x20000, site(i / 2));
            all.dies(0x10000);
        }
        assert_eq!(all.sites.unwrap().0.len(), SITES);
    }

    fn site(pc: usize) -> Origin {
        Origin::Allocated([pc as u64, 0, 0, 0, 0, 0])
    }

    #[test]
    fn whole_pages_lie_inside() {
        assert_eq!(whole_pages(0x1001, 0x3000), 0x2000..0x4000);
        assert_eq!(whole_pages(0x1000, 0x1000), 0x1000..0x2000);
        assert!(whole_pages(0x1001, 0x1000).is_empty());
        assert!(whole_pages(usize::MAX - 10, 100).is_empty());
    }

    #[test]
    fn an_address_belongs_to_the_object_around_it() {
        let mut all = WatchedObjects::default();
        all.born(0x10000, 0x20000, site(1));
        let second = all.born(0x40000, 0x10000, site(2)).id;
        assert_eq!(all.at(0x4ffff).unwrap().id, second);
        assert!(all.at(0x50000).is_none() && all.at(0xffff).is_none());
        assert!(all.dies(0x40000).is_some() && all.dies(0x40000).is_none());
        assert!(all.at(0x40000).is_none());
    }

    #[test]
    fn memory_that_is_used_again_is_a_new_object() {
        let mut all = WatchedObjects::default();
        all.born(0x10000, 0x20000, site(1));
        all.born(0x40000, 0x20000, site(1));
        let third = all.born(0x20000, 0x30000, site(2)).id;
        assert_eq!(all.len(), 1);
        assert_eq!(all.at(0x21000).unwrap().id, third);
    }

    #[test]
    fn what_has_no_pages_is_looked_at_ever_more_rarely() {
        let mut all = WatchedObjects::default();
        assert!(!all.region_starts());
        let pages = all.born(0x10000, 0x20000, site(1)).pages;
        let looked = |all: &mut WatchedObjects| {
            let mut looks = Vec::new();
            for start in 1..=100 {
                if all.region_starts() {
                    assert_eq!(all.take_unseen(false), [(0x10000, pages)]);
                    looks.push(start);
                }
            }
            looks
        };
        assert_eq!(looked(&mut all), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(all.take_unseen(true), [(0x10000, pages)]);
        all.seen(0x10000);
        assert!(looked(&mut all).is_empty() && all.take_unseen(true).is_empty());
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut all = WatchedObjects::default();
        let many = UNSEEN + 3;
        for i in 1..=many {
            all.born(i << 20, SMALLEST, site(i));
        }
        assert_eq!(all.beyond(), Beyond { unarmed: 3, forgotten: 0 });
        for i in 1..=many {
            all.at(i << 20).unwrap().treatment.armed = true;
            all.dies(i << 20);
        }
        assert_eq!(all.beyond(), Beyond { unarmed: 3, forgotten: (many - PAST) as u64 });
    }

    #[test]
    fn what_took_part_is_remembered_by_origin() {
        let mut all = WatchedObjects::default();
        for python in [None, None, None, Some("a.py:1 (f)")] {
            all.born(0x10000, 0x20000, site(1));
            let object = all.at(0x10000).unwrap();
            object.treatment.armed = true;
            object.python = python.map(Into::into);
            object.touch(NodeId(1), 4);
            all.dies(0x10000);
        }
        // The interpreter's own calls are the same for all that Python code allocates.
        assert_eq!(all.past().len(), 2);
        assert_eq!([0, 1].map(|n| &all.past()[n].history.touched), [&[0, 12], &[0, 4]]);
    }
}
