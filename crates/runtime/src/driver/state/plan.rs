//! A plan from an earlier run: which allocation of this run is which object of the plan, where its
//! pages should be, and how far that has been carried out.
//!
//! # Approach
//!
//! The launcher has worked out which addresses of the program's file belong to which line of the
//! source. Here an allocation is recognised by its return addresses ([`PlanTable::born`]). On real
//! nodes its memory gets the planned policies at once (`mbind`), so the first touch brings each
//! page home and nothing has to move. Other pages move at the start of a parallel region: memory
//! that the allocator had used before, static variables, objects with too many ranges for a mapping
//! each, and pages of pretended nodes.
//!
//! The result is checked: when a planned object dies, or the program ends, the driver asks the
//! kernel where its pages are.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use homenode_model::NodeId;
use homenode_wire::facts::PlanProgress;
use homenode_wire::plan::{self, HomePlan, Recognition};

use super::team_size::{TeamFit, fit};
use crate::watch::numbers::PAGE;
use crate::watch::{Object, Origin};

/// Ranges of an object that get policies. Each costs a mapping; with more ranges, pages move
/// instead.
const STRETCHES: usize = 512;
/// Ranges of all objects together that get policies. The kernel allows 65 530 mappings.
const ALL_STRETCHES: usize = 16_384;
/// Starts of regions at which the driver looks for an object's pages.
const LOOKS: u8 = 4;
/// Objects of one site that are checked when they die. Of a site that allocates again and again,
/// the first ones.
const READ_BACK: u32 = 64;

/// A range of an object: offset of the first byte, offset past the last, node.
type Home = (u64, u64, NodeId);

/// An object of the plan.
#[derive(Clone, Debug)]
pub struct PlannedObject {
    how: Recognition,
    bytes: u64,
    homes: Vec<Home>,
    read_back: u32,
}

/// A place in the source: address ranges of its instructions, and of the calls that lead to it.
#[derive(Clone, Debug)]
struct Site {
    own: Vec<Range<u64>>,
    callers: Vec<Range<u64>>,
    seen: u32,
}

/// A planned object that is alive.
#[derive(Clone, Copy, Debug)]
struct Living {
    address: usize,
    planned: usize,
    looks: u8,
}

/// See the module.
#[derive(Debug, Default)]
pub struct PlanTable {
    sites: Vec<Site>,
    objects: Vec<PlannedObject>,
    living: Vec<Living>,
    sizes: std::collections::BTreeMap<u64, u32>,
    progress: PlanProgress,
    /// Why memory got no policy; noted once.
    refused: Option<String>,
    /// The number of threads that the launcher expects, and the nodes of the plan's threads. `None`
    /// once the first team has come.
    threads: Option<(usize, Vec<u16>)>,
    /// What follows from a first team of another size.
    other_team: Option<String>,
    /// The plan does not hold for the program's team, and places nothing more.
    over: bool,
}

/// Address ranges of a file once it is loaded at `base`.
fn at(base: u64, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    ranges.iter().map(|r| base.saturating_add(r.start)..base.saturating_add(r.end)).collect()
}

impl PlanTable {
    /// Reads the launcher's plan. `base` returns the load address of a file.
    ///
    /// # Errors
    /// The plan cannot be read or makes no sense.
    pub fn read(path: &Path, nodes: usize, base: impl Fn(&str) -> Option<u64>) -> Result<Self, String> {
        let file = File::open(path).map_err(|e| format!("reading {}: {e}", path.display()));
        let plan = homenode_wire::read(&mut file?).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::of(plan, nodes, base).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// A table of a plan.
    ///
    /// # Errors
    /// The plan names a node that does not exist, or a place that it does not list.
    pub fn of(plan: HomePlan, nodes: usize, base: impl Fn(&str) -> Option<u64>) -> Result<Self, String> {
        let mut table = Self {
            threads: Some((plan.threads as usize, plan.nodes.iter().map(|n| n.0).collect())),
            ..Self::default()
        };
        // A file that is not loaded has no places, so its objects never occur.
        if let Some(base) = base(&plan.path) {
            let site = |site: &plan::Site| Site {
                own: at(base, &site.own),
                callers: at(base, &site.callers),
                seen: 0,
            };
            table.sites = plan.sites.iter().map(site).collect();
        }
        for object in plan.objects {
            if let Recognition::Site { site, .. } = object.how
                && site as usize >= plan.sites.len()
            {
                return Err(format!("it lists no place {site}"));
            }
            let mut homes = Vec::with_capacity(object.homes.len());
            for home in object.homes {
                if usize::from(home.node.0) >= nodes {
                    return Err(format!("there is no {}", home.node));
                }
                homes.push((home.offset.0, (home.offset + home.bytes).0, home.node));
            }
            table.objects.push(PlannedObject { how: object.how, bytes: object.bytes.0, homes, read_back: 0 });
        }
        table.progress.planned = table.objects.len() as u64;
        Ok(table)
    }

    /// The planned object of an allocation or static variable.
    fn find(&mut self, origin: &Origin, bytes: u64) -> Option<usize> {
        let frames = match origin {
            Origin::Static(n) => {
                return self
                    .objects
                    .iter()
                    .position(|o| o.how == (Recognition::Static { address: *n }) && o.bytes == bytes);
            }
            Origin::Library(..) => return None,
            Origin::Allocated(frames) => frames,
        };
        let order = self.sizes.entry(bytes).or_insert(0);
        let this = *order;
        *order += 1;
        // A return address is one past its call.
        let among = |list: &[Range<u64>], pc: &u64| *pc > 0 && list.iter().any(|r| r.contains(&(pc - 1)));
        let site = (0..).zip(&mut self.sites).find(|(_, s)| {
            let own = frames.iter().position(|pc| among(&s.own, pc));
            own.is_some_and(|i| s.callers.is_empty() || frames[i..].iter().any(|pc| among(&s.callers, pc)))
        });
        if let Some((number, seen)) = site.map(|(number, s)| (number, &mut s.seen)) {
            let instance = *seen;
            *seen += 1;
            let number: u32 = number;
            let of_site =
                |o: &&PlannedObject| matches!(o.how, Recognition::Site { site, .. } if site == number);
            let fits = |o: &PlannedObject| matches!(o.how, Recognition::Site { site, first, count } if site == number && instance >= first && instance - first < count);
            let known = self.objects.iter().position(|o| fits(o) && o.bytes == bytes);
            // More objects than in the recording: they count as the last one.
            let last = || self.objects.iter().rposition(|o| of_site(&o) && o.bytes == bytes);
            let beyond = !self.objects.iter().any(fits);
            let found = known.or_else(|| if beyond { last() } else { None });
            self.progress.other_size += u64::from(found.is_none());
            return found;
        }
        let fits = |o: &PlannedObject| {
            o.bytes == bytes
                && matches!(o.how, Recognition::Size { first, count } if this >= first && this - first < count)
        };
        self.objects.iter().position(fits)
    }

    /// How far the plan has been carried out.
    pub const fn progress(&self) -> PlanProgress {
        self.progress
    }

    /// If the program's first team is not the expected one: what follows for the plan, and whether
    /// the plan is given up.
    pub fn other_team(&self) -> Option<(&str, bool)> {
        self.other_team.as_deref().map(|text| (text, self.over))
    }

    /// Whether the size of the program's first team is still unknown.
    pub const fn asks_for_team(&self) -> bool {
        self.threads.is_some()
    }

    /// The program is about to start a team of this many threads. If the plan does not hold for it,
    /// the plan places nothing more. Returns the planned objects whose memory has policies that
    /// must go then.
    pub fn team(&mut self, threads: usize) -> Vec<usize> {
        let before = self.over;
        self.first_team(threads);
        let gives_up = self.over && !before && self.progress.policies > 0;
        self.living().filter(|_| gives_up).collect()
    }

    /// Addresses of the planned objects that are alive.
    pub fn living(&self) -> impl Iterator<Item = usize> {
        self.living.iter().map(|l| l.address)
    }

    /// An object was allocated. If it is planned, returns the ranges of its memory that should get
    /// policies, with their nodes: none if there are too many.
    pub fn born(&mut self, object: &Object) -> Vec<(Range<usize>, NodeId)> {
        if self.over {
            return Vec::new();
        }
        let Some(planned) = self.find(&object.origin, object.bytes as u64) else { return Vec::new() };
        let address = object.address;
        self.progress.met += 1;
        self.living.retain(|l| l.address != address);
        self.living.push(Living { address, planned, looks: 0 });
        let stretches = self.objects[planned].stretches(object);
        let room = self.progress.policies as usize + stretches.len() <= ALL_STRETCHES;
        if stretches.len() <= STRETCHES && room { stretches } else { Vec::new() }
    }

    /// A range of memory has got its policy.
    pub const fn has_policy(&mut self) {
        self.progress.policies += 1;
    }

    /// Memory got no policy, for this reason.
    pub fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }

    /// A region begins: the objects that are to be looked at, each with its number in the plan.
    pub fn look(&mut self) -> Vec<(usize, usize)> {
        if self.over {
            return Vec::new();
        }
        let due = self.living.iter_mut().filter(|l| l.looks < LOOKS);
        due.map(|l| {
            l.looks += 1;
            (l.address, l.planned)
        })
        .collect()
    }

    /// All pages of the object are where they should be. It needs no further look.
    pub fn is_home(&mut self, address: usize) {
        self.living.iter_mut().filter(|l| l.address == address).for_each(|l| l.looks = LOOKS);
    }

    /// The object with this number in the plan.
    pub fn planned(&self, number: usize) -> &PlannedObject {
        &self.objects[number]
    }

    /// An object dies, or the program ends. Returns its number in the plan if its pages should be
    /// read back.
    pub fn dies(&mut self, address: usize) -> Option<usize> {
        let i = self.living.iter().position(|l| l.address == address)?;
        let number = self.living.swap_remove(i).planned;
        let planned = &mut self.objects[number];
        planned.read_back += 1;
        (planned.read_back <= READ_BACK).then_some(number)
    }

    /// Counts a page that was read back: its home and its planned home. Pages without a home were
    /// never touched.
    pub fn read_back(&mut self, home: Option<NodeId>, planned: NodeId) {
        match home {
            Some(home) => {
                self.progress.pages += 1;
                self.progress.at_home += u64::from(home == planned);
            }
            None => self.progress.untouched += 1,
        }
    }

    /// The program starts its first team of more than one thread, with this many.
    fn first_team(&mut self, threads: usize) {
        if threads < 2 {
            return;
        }
        let Some((expected, nodes)) = self.threads.take() else { return };
        if threads == expected {
            return;
        }
        let planned = nodes.len();
        let is = format!("the plan is for {planned} threads, and the program's first team has {threads}");
        self.other_team = Some(match fit(&nodes, threads) {
            TeamFit::Same => return,
            TeamFit::Scaled(n) => format!(
                "{is}: scaled, for each of {n} nodes has the same share of them (that holds for static schedules)"
            ),
            TeamFit::Refused => {
                self.over = true;
                format!("{is}: refused from that region on, nothing more is placed by it")
            }
        });
    }

    /// What could not be done.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

impl PlannedObject {
    /// The planned home of the page at `address` of an object that begins at `start`: that of the
    /// byte in the middle of the page.
    pub fn home(&self, start: usize, address: usize) -> Option<NodeId> {
        let middle = (address + PAGE / 2).checked_sub(start)? as u64;
        let i = self.homes.partition_point(|h| h.0 <= middle).checked_sub(1)?;
        (middle < self.homes[i].1).then_some(self.homes[i].2)
    }

    /// Ranges of whole pages with the same planned home.
    fn stretches(&self, object: &Object) -> Vec<(Range<usize>, NodeId)> {
        let mut all: Vec<(Range<usize>, NodeId)> = Vec::new();
        for page in object.whole_pages().step_by(PAGE) {
            let Some(node) = self.home(object.address, page) else { continue };
            match all.last_mut() {
                Some((range, same)) if *same == node && range.end == page => range.end = page + PAGE,
                _ => all.push((page..page + PAGE, node)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> HomePlan {
        use homenode_model::Bytes;
        let home = |offset, bytes, node| plan::Home {
            offset: Bytes(offset),
            bytes: Bytes(bytes),
            node: NodeId(node),
        };
        let object = |how, bytes, homes: &[plan::Home]| plan::ObjectPlan {
            how,
            bytes: Bytes(bytes),
            homes: homes.to_vec(),
        };
        let one = |range: Range<u64>| Vec::from([range]);
        let site = |site, count| Recognition::Site { site, first: 0, count };
        HomePlan {
            path: "/app".into(),
            sites: vec![
                plan::Site { own: one(0x100..0x110), callers: one(0x200..0x210) },
                plan::Site { own: one(0x120..0x130), callers: vec![] },
            ],
            objects: vec![
                object(site(0, 2), 65536, &[home(0, 0x8000, 0), home(0x8000, 0x8000, 1)]),
                object(site(1, 1), 65536, &[home(0, 0x10000, 1)]),
                object(Recognition::Size { first: 1, count: 1 }, 1 << 20, &[home(0, 1 << 20, 1)]),
                object(Recognition::Static { address: 7 }, 65536, &[home(0, 0x10000, 0)]),
            ],
            ..HomePlan::default()
        }
    }

    fn table() -> PlanTable {
        PlanTable::of(plan(), 2, |path| (path == "/app").then_some(0x1000)).unwrap()
    }

    fn allocated(frames: &[u64]) -> Origin {
        let mut all = [0; crate::watch::objects::FRAMES];
        all[..frames.len()].copy_from_slice(frames);
        Origin::Allocated(all)
    }

    #[test]
    fn allocations_are_recognised_by_place_and_instance() {
        let mut t = table();
        let own = allocated(&[0x9999, 0x1105, 0x1208]);
        assert_eq!(t.find(&own, 65536), Some(0));
        assert_eq!(t.find(&own, 65536), Some(0), "the second of two alike");
        assert_eq!(t.find(&own, 65536), Some(0), "one more than was recorded");
        assert_eq!(t.find(&own, 70000), None, "another size");
        assert_eq!(t.progress().other_size, 1);
        assert_eq!(t.find(&allocated(&[0x1105, 0x1300]), 65536), None, "called from elsewhere");
        assert_eq!(t.find(&allocated(&[0x1121]), 65536), Some(1));
        assert_eq!(t.find(&allocated(&[0x1120]), 65536), None, "the call before the range");
    }

    #[test]
    fn the_first_team_of_several_threads_is_compared() {
        let of = |teams: &[usize]| {
            let plan = HomePlan { threads: 2, nodes: vec![NodeId(0), NodeId(1)], ..plan() };
            let mut t = PlanTable::of(plan, 2, |_| Some(0)).unwrap();
            teams.iter().for_each(|n| _ = t.team(*n));
            t.other_team().map(|(text, over)| (text.to_owned(), over))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1, 2, 3]), None, "one thread is no team, and the first counts");
        let (text, over) = of(&[1, 4]).unwrap();
        assert!(
            text.contains("for 2 threads, and the program's first team has 4: scaled") && !over,
            "{text}"
        );
        let (text, over) = of(&[3, 2]).unwrap();
        assert!(text.contains("has 3: refused") && over, "{text}");
    }

    fn object(address: usize, frames: &[u64]) -> crate::watch::WatchedObjects {
        let mut objects = crate::watch::WatchedObjects::default();
        objects.born(address, 65536, allocated(frames));
        objects
    }

    #[test]
    fn an_object_gets_policies_is_looked_at_some_times_and_is_read_back() {
        let mut t = table();
        let (at, half) = (0x20_0000, 0x8000);
        let objects = object(at, &[0x1105, 0x1208]);
        let object = objects.get(at).unwrap();
        let ranges = [(at..at + half, NodeId(0)), (at + half..at + 2 * half, NodeId(1))];
        assert_eq!(t.born(object), ranges);
        ranges.iter().for_each(|_| t.has_policy());
        assert_eq!([(); 6].map(|()| t.look().len()), [1, 1, 1, 1, 0, 0]);
        assert_eq!(t.born(object), ranges, "born again at the same place");
        assert_eq!(t.look(), [(at, 0)]);
        t.is_home(at);
        assert_eq!((t.look(), t.living().collect::<Vec<_>>()), (vec![], vec![at]));
        assert_eq!((t.dies(at), t.dies(at), t.dies(at + PAGE)), (Some(0), None, None));
        for home in [Some(0), Some(1), None] {
            t.read_back(home.map(NodeId), NodeId(0));
        }
        let p = t.progress();
        assert_eq!((p.met, p.policies, p.pages, p.at_home, p.untouched), (2, 2, 2, 1, 1));
    }

    #[test]
    fn a_plan_that_does_not_hold_gives_its_policies_back_once() {
        let plan = HomePlan { threads: 2, nodes: vec![NodeId(0), NodeId(1)], ..plan() };
        let mut t = PlanTable::of(plan, 2, |_| Some(0x1000)).unwrap();
        let objects = object(0x20_0000, &[0x1105, 0x1208]);
        t.born(objects.get(0x20_0000).unwrap()).iter().for_each(|_| t.has_policy());
        assert!(t.asks_for_team() && t.team(1).is_empty() && t.asks_for_team());
        assert_eq!((t.team(3), t.team(3), t.asks_for_team()), (vec![0x20_0000], vec![], false));
        assert_eq!((t.look(), t.born(objects.get(0x20_0000).unwrap())), (vec![], vec![]));
    }

    #[test]
    fn others_by_size_and_order_and_statics_by_address() {
        let mut t = table();
        let found: Vec<_> = (0..3).map(|_| t.find(&allocated(&[1]), 1 << 20)).collect();
        assert_eq!(found, [None, Some(2), None]);
        assert_eq!((t.find(&Origin::Static(7), 65536), t.find(&Origin::Static(8), 65536)), (Some(3), None));
    }

    #[test]
    fn a_page_goes_where_most_of_it_is_planned() {
        let t = table();
        let home = |page| t.objects[0].home(0x10010, page);
        assert_eq!(home(0x11000), Some(NodeId(0)));
        assert_eq!(home((0x10010 + 0x8000) & !0xfff), Some(NodeId(1)));
        assert_eq!((home(0x10010 + 0x10000), home(0)), (None, None));
    }

    #[test]
    fn what_makes_no_sense_is_no_table() {
        let error = |plan, nodes| PlanTable::of(plan, nodes, |_| Some(0)).unwrap_err();
        assert!(error(plan(), 1).contains("no node 1"), "{}", error(plan(), 1));
        let mut other = plan();
        other.sites.pop();
        assert!(error(other.clone(), 2).contains("no place 1"), "{}", error(other, 2));
        let mut elsewhere = PlanTable::of(plan(), 2, |_| None).unwrap();
        assert_eq!(elsewhere.find(&allocated(&[0x1105, 0x1208]), 65536), None, "its file is not loaded");
    }
}
