//! The trial: arms pilots, counts them, and lets an object follow or stay. See
//! [`super::state::pilots`].

use std::collections::{BTreeMap, BTreeSet};

use homenode_model::{Event, NodeId, Ns, PageNo, PageRange};
use homenode_sys::Span;
use homenode_wire::facts::Arming;

use super::mover::Manner;
use super::run::Driver;
use super::state::account::trial_allows;
use super::state::arming::ToArm;
use super::state::licence::Spent;
use super::state::memory::AROUND;
use super::state::pilots::{self, PilotsSay, companion, neighbourhood};
use super::state::waiting::Why;
use crate::guard::holdback::block_of;
use crate::watch::numbers::PAGE;
use crate::watch::objects::Object;

impl Driver {
    /// Whether the trial holds: there is no gain so far, and no budget of the user's.
    pub fn is_on_trial(&self) -> bool {
        self.has_trial() && !self.evidence.trial.licence.is_held()
    }

    fn has_trial(&self) -> bool {
        let unasked = matches!(self.settings.arming, Arming::First | Arming::Region);
        self.settings.trial && unasked && !self.settings.force && self.plan.is_none()
    }

    /// Whether pilots should test the object, which was never armed.
    pub(super) fn is_for_pilots(&self, address: usize) -> bool {
        let pages = self.memory.objects.get(address).map_or(0, |o| o.pages.count);
        self.has_trial() && self.settings.arming == Arming::First && pages >= pilots::LEAST
    }

    /// Whether pages may be located for the recording alone. On trial a recording takes at most
    /// half of the allowance for itself.
    pub(super) fn may_locate(&self) -> bool {
        !self.is_on_trial() || self.account.recording().0 < trial_allows(self.cpu_time()).0 / 2
    }

    /// Arms pilots of the object if there is room for that many pages; `None` if there is no room.
    /// Returns the number of armed pages. They include pages that do not exist yet: their first
    /// touch will tell their home.
    pub(super) fn send_pilots(&mut self, address: usize, room: u64) -> Option<u64> {
        let Some(object) = self.memory.objects.get(address) else { return Some(0) };
        let (id, pages, block) = (object.id, object.pages, block_of(object.bytes));
        let (start, again) = (object.whole_pages().start, object.treatment.pilot);
        let (mut there, mut missing) = (BTreeSet::new(), Vec::new());
        for index in pilots::drawn(pages.count).step_by(if again { 2 } else { 1 }) {
            let (at, page) = (start + index as usize * PAGE, PageNo(pages.first.0 + index));
            if self.evidence.hold.was_held(at, block) || self.memory.placed.has(at) {
                continue;
            }
            if (there.len() + missing.len()) as u64 >= room {
                return None;
            }
            if self.has_page(address, page, at) {
                there.insert(at);
            } else {
                missing.push(Span::new(at, PAGE));
            }
        }
        let alone: Vec<Span> = there.iter().map(|at| Span::new(*at, PAGE)).collect();
        let mut armed = self.arm(&ToArm::alone(alone));
        if !again && !missing.is_empty() && self.mover.sees_first_touches() {
            armed += self.mover.arm(&missing, Manner::Alone).pages;
            self.memory.objects.at(address).into_iter().for_each(|o| o.treatment.awaited = true);
        }
        if !there.is_empty() {
            self.memory.objects.seen(address);
            self.memory.objects.at(address).into_iter().for_each(|o| o.treatment.begin_trial());
            self.evidence.trial.begin(address, id, there);
        }
        Some(armed)
    }

    /// Whether the page of the object exists. Notes its home.
    fn has_page(&mut self, object: usize, page: PageNo, at: usize) -> bool {
        if self.memory.objects.get(object).and_then(|o| o.home(page)).is_some() {
            return true;
        }
        let mut home = Vec::with_capacity(1);
        self.mover.homes(at, 1, None, &mut home);
        let Some(home) = home.into_iter().flatten().next() else { return false };
        if self.memory.objects.at(object).is_some_and(|o| o.was_at(home, page.0 - o.pages.first.0)) {
            self.record_home(object, page, home);
            self.policy.observe(&Event::Fault { page, node: home });
        }
        true
    }

    /// At the start of a region: evaluates the pilots. Returns whether an object should follow.
    pub(super) fn count_pilots(&mut self) -> bool {
        let mut follows = false;
        for (address, says) in self.evidence.trial.count() {
            match says {
                PilotsSay::Nothing => {}
                PilotsSay::Stay => self.stays(address),
                PilotsSay::AskLater => self.asks_later(address),
                PilotsSay::TryAgain => self.heavy(|d| d.arm_again(address)),
                PilotsSay::Follow => {
                    self.all_follows(address);
                    follows = true;
                }
            }
        }
        follows
    }

    /// Notes that the object stays where it is for now.
    fn stays(&mut self, address: usize) {
        let again = self.evidence.trial.tests_again(address);
        self.memory.objects.at(address).into_iter().for_each(|o| o.treatment.contested = again);
        self.asks_later(address);
    }

    /// Lets the object's pilots be armed again when the program has run twice as long.
    fn asks_later(&mut self, address: usize) {
        let (now, elapsed) = (self.account.now(), self.account.elapsed());
        self.evidence.trial.ask_later(address, now, elapsed);
    }

    /// Queues objects whose pilots are to be armed again. Returns whether there are any.
    pub(super) fn wait_rested(&mut self, now: Ns) -> bool {
        let rested = self.evidence.trial.take_rested(now);
        for (address, id) in &rested {
            self.arming.waiting.add(Why::New, *address, *id);
        }
        !rested.is_empty()
    }

    /// Arms the pilots that came from another node once more, if the budget has room.
    fn arm_again(&mut self, address: usize) {
        if !self.within_budget() {
            return;
        }
        let Some(pilots) = self.evidence.trial.take(address) else { return };
        let mut far: BTreeSet<usize> = pilots.far.into_iter().collect();
        let blocks = self.blocks_of(address, &far, &pilots.users);
        far.retain(|at| !blocks.contains_key(&neighbourhood(*at)));
        let mut beside = self.companions(address, &far);
        beside.retain(|at| !blocks.contains_key(&neighbourhood(*at)));
        let alone = far.union(&beside).map(|at| Span::new(*at, PAGE)).collect();
        let around = blocks.keys().map(|at| Span::new(*at, AROUND * PAGE)).collect();
        if self.arm(&ToArm { around, alone }) > 0 {
            self.evidence.trial.begin_again(address, pilots.id, far, beside, blocks);
        }
    }

    /// Blocks around some of the pilots, with the nodes that used these. All pages of a block
    /// exist.
    fn blocks_of(
        &mut self,
        address: usize,
        pilots: &BTreeSet<usize>,
        users: &BTreeMap<usize, NodeId>,
    ) -> BTreeMap<usize, NodeId> {
        let Some(object) = self.memory.objects.get(address) else { return BTreeMap::new() };
        let (start, first, count) = (object.whole_pages().start, object.pages.first.0, object.pages.count);
        let whole = start..=start + count as usize * PAGE;
        let mut blocks = BTreeMap::new();
        for (at, node) in
            pilots.iter().step_by(pilots::ONE_BLOCK_IN).filter_map(|at| Some((*at, *users.get(at)?)))
        {
            let span = Span::new(neighbourhood(at), AROUND * PAGE);
            let is_whole = whole.contains(&span.start) && whole.contains(&span.end);
            let is_free = pilots.range(span.start..span.end).count() == 1;
            let is_full = blocks.len() == pilots::BLOCKS || !is_whole || !is_free;
            if is_full || self.memory.placed.rest_of(span) != [span] {
                continue;
            }
            let first = PageNo(first + ((span.start - start) / PAGE) as u64);
            if self.has_pages(address, PageRange { first, count: AROUND as u64 }) {
                blocks.insert(span.start, node);
            }
        }
        blocks
    }

    /// The companions of pilots that exist and are no pilots themselves.
    fn companions(&mut self, address: usize, pilots: &BTreeSet<usize>) -> BTreeSet<usize> {
        let Some(object) = self.memory.objects.get(address) else { return BTreeSet::new() };
        let (start, first, count) = (object.whole_pages().start, object.pages.first.0, object.pages.count);
        let whole = start..start + count as usize * PAGE;
        let beside = pilots.iter().map(|at| companion(*at)).filter(|at| whole.contains(at));
        let beside: Vec<usize> =
            beside.filter(|at| !pilots.contains(at) && !self.memory.placed.has(*at)).collect();
        let page = |at: usize| PageNo(first + ((at - start) / PAGE) as u64);
        beside.into_iter().filter(|at| self.has_page(address, page(*at), *at)).collect()
    }

    /// Lets all of the object follow its next touch, and grants the licence if enough pilots agree.
    fn all_follows(&mut self, address: usize) {
        let Some(pilots) = self.evidence.trial.take(address) else { return };
        let sure = pilots.are_sure();
        let Some(object) = self.memory.objects.at(address) else { return };
        object.treatment.end_trial(pilots.are_mixed());
        let id = object.id;
        self.evidence.trial.follows(address);
        self.arming.waiting.add(Why::Again, address, id);
        if sure {
            self.evidence.grant_licence(self.spent_so_far());
        }
    }

    /// Before more is armed: withdraws the licence if it brings too little, or grants it by the
    /// guard's verdict.
    pub(super) fn review_licence(&mut self) {
        if self.has_trial() {
            self.evidence.review_licence(self.spent_so_far());
        }
    }

    fn spent_so_far(&self) -> Spent {
        Spent { own: self.own_time(), copied: self.mover.counters().copies }
    }

    /// Bytes of objects that other nodes use each time.
    pub fn contested(&self) -> u64 {
        let all = self.memory.objects.live().chain(self.memory.objects.past());
        all.filter(|o| self.is_contested(o)).map(|o| o.bytes as u64).sum()
    }

    /// Whether no placement of the object lasts: its pilots said so, or its pages went back and
    /// forth. The guard's undo moves pages back, too, and has noted before which objects these are.
    pub fn is_contested(&self, object: &Object) -> bool {
        object.treatment.contested || !self.evidence.is_against() && object.history.goes_back_and_forth()
    }

    /// Notes the objects that other nodes use each time.
    pub(super) fn note_strays(&mut self) {
        let mib = self.contested() >> 20;
        if mib > 0 {
            self.note(format!(
                "{mib} MiB were used by another node each time that homenode looked: no placement would last"
            ));
        }
    }

    /// Locates these pages of an object that follows, if nobody has. `last`: these are its last
    /// pages.
    pub(super) fn look_for(&mut self, object: usize, pages: PageRange, last: bool) {
        if self.evidence.trial.takes_unlooked(object, last) {
            self.introduce(object, pages);
        }
    }
}
