//! The first-level cache of one CPU, as far as the CPU itself can follow it: what it answers, the
//! model need not hear of.
//!
//! A hit in the first level changes the order in its set and nothing else. Where that cache is one
//! CPU's alone, the CPU keeps its lines here, with the time of their last use, and the model hears
//! of the others only: each with the line that makes room for it, the least recently used one
//! ([`homenode_cache::Hierarchy::makes_room`]). A store is a hit here if the line has been written
//! before, and nobody has read it since. Where CPUs share that cache, or it is too large to be kept
//! twice, a set has one place here: for its most recently used line, a hit on which leaves the
//! order as it is, too.
//!
//! A table by virtual address leads to the lines with one look. Only its CPU enters lines; whoever
//! changes the model, under its lock, takes out what another CPU has lost. An access that is
//! answered before that happens stands before the change, an order that the guest could have seen,
//! too; one that the model has yet to hear of stands behind it, so its line stays. A line that is
//! just being entered may be missed or lost: the model then has what the CPU has not, and answers
//! when it is asked for again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use homenode_cache::Line;

/// No line has this number; bit 0 is "a store needs nobody".
const NOTHING: u64 = u64::MAX;

/// Virtual lines at most: the table stays in the host's first cache.
const MOST: usize = 2048;

/// Lines of a first level that is kept whole, at most.
const LARGEST: u64 = 1 << 16;

/// What the check reads, at the place of a virtual line's last bits.
#[derive(Debug)]
pub struct KnownLine {
    /// Virtual line and whether a store needs nobody.
    keys: [AtomicU64; MOST],
    /// Its place among the lines.
    places: [AtomicU32; MOST],
}

impl KnownLine {
    /// The place of a virtual line (64 bytes, whatever the cache's line) if an access to it is
    /// answered here.
    #[inline(always)]
    pub fn hit(&self, virtual_line: u64, write: bool) -> Option<u32> {
        let at = virtual_line as usize % MOST;
        // 0: neither a load nor a store needs anything; 1: a store does; more: another line.
        let differs = self.keys[at].load(Ordering::Relaxed) ^ (virtual_line << 1 | 1);
        (differs.wrapping_add(write.into()) < 2).then(|| self.places[at].load(Ordering::Relaxed))
    }
}

/// What is there of one CPU.
#[derive(Debug)]
pub struct Front {
    known: Box<KnownLine>,
    /// By place: the line and whether a store needs nobody.
    lines: Box<[AtomicU64]>,
    /// By place: the time of the last use.
    used: Box<[AtomicU64]>,
    /// By place: where the table leads there from, if it does.
    from: Box<[AtomicU32]>,
    /// By place: number of the CPU's last access to the line that is the model's.
    told: Box<[AtomicU64]>,
    ways: usize,
    /// Sets, less one.
    mask: u64,
}

/// What an access met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It is answered.
    Own,
    /// The model has to hear of it; what makes room for its line.
    Model(Option<Line>),
}

impl Front {
    /// For a first-level cache of the given numbers of sets and ways. `alone`: of one CPU.
    pub fn new(sets: u64, ways: u32, alone: bool) -> Self {
        // Lines with the same last bits as one in the same set: then too many make room, never too
        // few.
        let (sets, ways) = match alone && sets.saturating_mul(ways.into()) <= LARGEST {
            true => (sets, ways as usize),
            false => (sets.min(MOST as u64), 1),
        };
        let all = 0..sets as usize * ways;
        Self {
            known: Box::new(KnownLine {
                keys: [const { AtomicU64::new(NOTHING) }; MOST],
                places: [const { AtomicU32::new(0) }; MOST],
            }),
            lines: all.clone().map(|_| AtomicU64::new(NOTHING)).collect(),
            used: all.clone().map(|_| AtomicU64::new(0)).collect(),
            from: all.clone().map(|_| AtomicU32::new(0)).collect(),
            told: all.map(|_| AtomicU64::new(0)).collect(),
            ways,
            mask: sets - 1,
        }
    }

    /// For [`KnownLine::hit`].
    pub const fn known(&self) -> &KnownLine {
        &self.known
    }

    /// Times of use, by the places that [`KnownLine::hit`] tells.
    pub fn used(&self) -> &[AtomicU64] {
        &self.used
    }

    /// The CPU uses a line at this time, which only grows. The model must get an access that
    /// the front end does not answer before it gets a later access of this CPU. `next` is the
    /// number of that later access.
    #[inline]
    pub fn access(&self, line: Line, write: bool, time: u64, next: u64) -> (u32, Met) {
        let first = (line.0 & self.mask) as usize * self.ways;
        let set = &self.lines[first..first + self.ways];
        let key = line.0 << 1;
        let there = set.iter().position(|l| l.load(Ordering::Relaxed) & !1 == key);
        let (way, met) = match there {
            Some(way) if !write || set[way].load(Ordering::Relaxed) & 1 != 0 => (way, Met::Own),
            Some(way) => {
                self.told[first + way].store(next, Ordering::Relaxed);
                set[way].store(key | 1, Ordering::Release);
                (way, Met::Model(None))
            }
            None => {
                let way = self.oldest(first);
                let old = set[way].load(Ordering::Relaxed);
                self.told[first + way].store(next, Ordering::Relaxed);
                set[way].store(key | u64::from(write), Ordering::Release);
                self.unknow(first + way);
                let room = (old != NOTHING && self.ways > 1).then_some(Line(old >> 1));
                (way, Met::Model(room))
            }
        };
        self.used[first + way].store(time, Ordering::Relaxed);
        ((first + way) as u32, met)
    }

    /// The place in the set that begins there that is empty, or was used least recently.
    #[inline]
    fn oldest(&self, first: usize) -> usize {
        let (lines, used) = (&self.lines[first..first + self.ways], &self.used[first..first + self.ways]);
        let mut least = (u64::MAX, 0);
        for (way, (line, used)) in lines.iter().zip(used).enumerate() {
            let empty = line.load(Ordering::Relaxed) == NOTHING;
            let time = if empty { 0 } else { used.load(Ordering::Relaxed) };
            least = if time < least.0 { (time, way) } else { least };
        }
        least.1
    }

    /// The table leads to a place by this virtual address from now on. `stores`: for stores, too,
    /// where they need nobody.
    #[inline]
    pub fn know(&self, virtual_line: u64, place: u32, stores: bool) {
        let at = virtual_line as usize % MOST;
        // Another address of the same line would stay when the line goes.
        self.unknow(place as usize);
        self.from[place as usize].store(at as u32, Ordering::Relaxed);
        self.known.places[at].store(place, Ordering::Relaxed);
        let written = self.lines[place as usize].load(Ordering::Relaxed) & u64::from(stores);
        self.known.keys[at].store(virtual_line << 1 | written, Ordering::Relaxed);
    }

    /// The table leads to a place no more.
    #[inline]
    fn unknow(&self, place: usize) {
        let at = self.from[place].load(Ordering::Relaxed) as usize % MOST;
        if self.known.places[at].load(Ordering::Relaxed) as usize == place {
            self.known.keys[at].store(NOTHING, Ordering::Relaxed);
        }
    }

    fn place_of(&self, line: Line) -> Option<usize> {
        let first = (line.0 & self.mask) as usize * self.ways;
        let is = |l: &AtomicU64| l.load(Ordering::Acquire) & !1 == line.0 << 1;
        self.lines[first..first + self.ways].iter().position(is).map(|way| first + way)
    }

    /// The place of a line that another CPU has used, `heard` accesses of this CPU before. One that
    /// the model has yet to hear of comes after that.
    fn place_of_old(&self, line: Line, heard: u64) -> Option<usize> {
        self.place_of(line).filter(|place| self.told[*place].load(Ordering::Relaxed) < heard)
    }

    /// Another CPU has written `line`. `heard`: this CPU's accesses that the model knows.
    #[inline]
    pub fn lose(&self, line: Line, heard: u64) {
        if let Some(place) = self.place_of_old(line, heard) {
            self.drop(place);
        }
    }

    /// Another CPU has read `line`: the next store needs somebody.
    #[inline]
    pub fn share(&self, line: Line, heard: u64) {
        if let Some(place) = self.place_of_old(line, heard) {
            self.lines[place].fetch_and(!1, Ordering::Relaxed);
            self.unknow(place);
        }
    }

    /// A line of this set has been used by a CPU that shares this cache: another one in it is no
    /// longer the last.
    #[inline]
    pub fn lose_set(&self, line: Line) {
        let first = (line.0 & self.mask) as usize * self.ways;
        (first..first + self.ways).for_each(|place| self.drop(place));
    }

    fn drop(&self, place: usize) {
        self.lines[place].store(NOTHING, Ordering::Relaxed);
        self.unknow(place);
    }

    /// Virtual addresses may mean something else from now on.
    pub fn forget(&self) {
        self.known.keys.iter().for_each(|k| k.store(NOTHING, Ordering::Relaxed));
    }

    /// Empty again.
    pub fn clear(&self) {
        self.forget();
        self.lines.iter().for_each(|l| l.store(NOTHING, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_cache::{AccessOutcome, Agent, CacheShape, Hierarchy};
    use homenode_model::{Bytes, CpuId, Topology};

    /// The machine with the most contradictions: several nodes, shared outer caches; with a small
    /// first level and without.
    fn machine(small: bool) -> Topology {
        let mut machine = homenode_machine::preset("epyc-nps4").unwrap().topology;
        if small {
            let mut first = machine.caches[0].clone();
            (first.level, first.size, first.ways) = (1, Bytes(16 << 10), 4);
            machine.caches.insert(0, first);
        }
        machine
    }

    /// Numbers that look random and are the same everywhere (SplitMix64).
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// What two models say of the same accesses where it is more than a hit in the first level: one
    /// that hears of all, and one behind fronts; and how many of how many these answered.
    fn both(machine: &Topology, alone: bool) -> ([Vec<(u64, AccessOutcome)>; 2], u64) {
        let shape = CacheShape::new(machine, &[0, 1, 8, 16].map(CpuId)).unwrap();
        let model = || Hierarchy::<u64>::new(&shape, 64).unwrap();
        let (mut all, mut some) = (model(), model());
        let (sets, ways) = (machine.caches[0].sets(), machine.caches[0].ways);
        let fronts: Vec<Front> = (0..4).map(|_| Front::new(sets, ways, alone)).collect();
        let (mut state, mut answered) = (1, 0);
        let mut outcomes = [Vec::new(), Vec::new()];
        for i in 0..400_000_u64 {
            let r = random(&mut state);
            let cpu = (r % 4) as usize;
            let (front, agent) = (&fronts[cpu], Agent(cpu as u32));
            // Mostly few lines, in few sets, so that sets overflow and lines are shared.
            let line = Line((r >> 8) % 3 + ((r >> 20) % 12) * sets + ((r >> 40) % 64 / 63) * 7 * sets);
            // Another address, with other last bits from those on that tell places in a page apart.
            let virtual_line = (line.0 & 63) | (((line.0 >> 6).wrapping_mul(0x9e37_79b9) % (1 << 30)) << 6);
            let write = (r >> 60).is_multiple_of(4);
            let more = |o: &AccessOutcome| o.miss.is_some() || o.level > 0 || o.write_backs > 0;
            outcomes[0].extend(Some((i, all.access(agent, line, write).unwrap())).filter(|o| more(&o.1)));
            if let Some(place) = front.known().hit(virtual_line, write) {
                front.used()[place as usize].store(i + 1, Ordering::Relaxed);
                answered += 1;
                continue;
            }
            let (place, met) = front.access(line, write, i + 1, 0);
            // Now and then the table does not answer stores, whether they need somebody or not.
            front.know(virtual_line, place, !(r >> 50).is_multiple_of(5));
            let Met::Model(room) = met else {
                answered += 1;
                continue;
            };
            room.into_iter().for_each(|l| some.makes_room(agent, l));
            let b = some.access(agent, line, write).unwrap();
            // What follows the model in the monitor: nobody else knows a line that a private cache
            // answers.
            if usize::from(b.level) >= some.private() || b.miss.is_some() {
                for (_, other) in fronts.iter().enumerate().filter(|(i, _)| *i != cpu) {
                    if write { other.lose(line, 1) } else { other.share(line, 1) }
                }
            }
            outcomes[1].extend(Some((i, b)).filter(|o| more(&o.1)));
        }
        (outcomes, answered)
    }

    #[test]
    fn what_the_front_answers_changes_nothing() {
        for (small, alone) in [(false, true), (true, true), (false, false), (true, false)] {
            let ([all, some], answered) = both(&machine(small), alone);
            assert!(answered > if alone { 40_000 } else { 1000 }, "{answered}");
            assert!(all == some, "{} and {}", all.len(), some.len());
        }
    }

    /// A model that hears late of the CPUs' accesses, of some of one CPU at a time, as the
    /// monitor's does.
    struct Late {
        model: Hierarchy<u64>,
        fronts: Vec<Front>,
        waiting: [Vec<(Line, bool, Option<Line>)>; 4],
        heard: [u64; 4],
    }

    impl Late {
        fn access(&mut self, cpu: usize, line: Line, write: bool, time: u64) {
            let next = self.heard[cpu] + self.waiting[cpu].len() as u64;
            if let (_, Met::Model(room)) = self.fronts[cpu].access(line, write, time, next) {
                self.waiting[cpu].push((line, write, room));
            }
            if self.waiting[cpu].len() == 20 {
                self.hand_over(cpu);
            }
        }

        fn hand_over(&mut self, cpu: usize) {
            for (line, write, room) in std::mem::take(&mut self.waiting[cpu]) {
                room.into_iter().for_each(|l| self.model.makes_room(Agent(cpu as u32), l));
                let outcome = self.model.access(Agent(cpu as u32), line, write).unwrap();
                self.heard[cpu] += 1;
                if usize::from(outcome.level) < self.model.private() && outcome.miss.is_none() {
                    continue;
                }
                for (i, other) in self.fronts.iter().enumerate().filter(|(i, _)| *i != cpu) {
                    let heard = self.heard[i];
                    if write { other.lose(line, heard) } else { other.share(line, heard) }
                }
            }
        }

        /// Once the model has heard of all: lines that fronts hold, and how many of them the
        /// model's first levels have not.
        fn held_and_lacking(&mut self) -> [u32; 2] {
            (0..4).for_each(|cpu| self.hand_over(cpu));
            let mut found = [0, 0];
            for (cpu, front) in self.fronts.iter().enumerate() {
                for line in front.lines.iter().map(|l| l.load(Ordering::Relaxed)).filter(|l| *l != NOTHING) {
                    let outcome = self.model.access(Agent(cpu as u32), Line(line >> 1), false).unwrap();
                    found[0] += 1;
                    found[1] += u32::from(outcome != AccessOutcome::FRONT);
                }
            }
            found
        }
    }

    /// Or the front would answer what the model counts as a miss.
    #[test]
    fn what_the_front_holds_the_model_has_however_late_it_hears() {
        let machine = machine(true);
        let shape = CacheShape::new(&machine, &[0, 1, 8, 16].map(CpuId)).unwrap();
        let sets = machine.caches[0].sets();
        let fronts = (0..4).map(|_| Front::new(sets, machine.caches[0].ways, true)).collect();
        let model = Hierarchy::<u64>::new(&shape, 64).unwrap();
        let mut late = Late { model, fronts, waiting: Default::default(), heard: [0; 4] };
        let (mut state, mut held) = (2, 0);
        for time in 1..200_000_u64 {
            let r = random(&mut state);
            // A few lines of all, and more of each CPU's own, in few sets.
            let own = !(r >> 8).is_multiple_of(4);
            let line = Line(((r >> 20) % 10 + if own { 10 * (1 + r % 4) } else { 0 }) * sets + (r >> 40) % 3);
            late.access((r % 4) as usize, line, (r >> 60).is_multiple_of(if own { 4 } else { 2 }), time);
            if time % 100 == 0 {
                let found = late.held_and_lacking();
                held += found[0];
                assert_eq!(found[1], 0, "of {} lines at {time}", found[0]);
            }
        }
        assert!(held > 10_000, "{held}");
    }

    /// Accesses a line, by an address; whether the model has to hear of it.
    fn told(front: &Front, virtual_line: u64, line: u64, write: bool) -> Met {
        let (place, met) = front.access(Line(line), write, 1 + line, 0);
        front.know(virtual_line, place, true);
        met
    }

    #[test]
    fn what_is_lost_is_not_known() {
        let front = Front::new(8, 2, true);
        let knows = |line, write| front.known().hit(line, write).is_some();
        assert_eq!(told(&front, 0x1003, 5, false), Met::Model(None));
        assert!(knows(0x1003, false) && !knows(0x1003, true) && !knows(0x2003, false));
        assert!(
            !knows(0x1002, false) && !knows(0x1803, false),
            "another line at the same place or beside it"
        );
        front.lose(Line(13), 1);
        assert!(knows(0x1003, false), "another line");
        front.lose(Line(5), 0);
        assert!(knows(0x1003, false), "the model has yet to hear of the access");
        front.lose(Line(5), 1);
        assert!(!knows(0x1003, false));
        assert_eq!(told(&front, 0x1003, 5, true), Met::Model(None));
        assert!(knows(0x1003, true) && knows(0x1003, false));
        front.share(Line(5), 1);
        assert!(!knows(0x1003, true));
        assert_eq!(told(&front, 0x1003, 5, false), Met::Own, "still there");
        assert_eq!(told(&front, 0x1003, 5, true), Met::Model(None), "but not its own");
        assert_eq!(told(&front, 0x1004, 13, false), Met::Model(None));
        assert!(knows(0x1003, true) && knows(0x1004, false), "both ways of the set");
        assert_eq!(told(&front, 0x1005, 21, false), Met::Model(Some(Line(5))), "the oldest one goes");
        assert!(!knows(0x1003, false) && knows(0x1004, false));
        assert_eq!(told(&front, 0x1804, 6, false), Met::Model(None));
        assert!(knows(0x1804, false) && !knows(0x1004, false), "the same place of the table, another set");
        assert_eq!(told(&front, 0x1004, 13, false), Met::Own, "it is still there");
        assert_eq!(told(&front, 0x2007, 13, false), Met::Own);
        assert!(knows(0x2007, false) && !knows(0x1004, false), "the last address alone leads there");
        front.forget();
        assert!(!knows(0x2007, false));
        assert_eq!(told(&front, 0x2007, 13, false), Met::Own, "addresses are forgotten, not lines");
        front.clear();
        assert_eq!(told(&front, 0x2007, 13, false), Met::Model(None));
        let last = (1 << 58) - 1;
        assert!(!knows(last, false) && !knows(last, true) && !knows(0, true), "what is not there is no line");
    }

    #[test]
    fn a_shared_cache_keeps_the_last_line_of_a_set() {
        let front = Front::new(8, 2, false);
        assert_eq!(told(&front, 1, 5, false), Met::Model(None));
        assert_eq!(told(&front, 2, 13, false), Met::Model(None), "nothing is said of its order");
        assert!(front.known().hit(1, false).is_none() && front.known().hit(2, false).is_some());
        front.lose_set(Line(21));
        assert!(front.known().hit(2, false).is_none());
    }
}
