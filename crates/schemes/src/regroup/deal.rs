//! Which thread executes which chunk of a recorded loop under another schedule.
//!
//! # Problem
//!
//! A recording tells which chunks a loop had, how long each one took and which pages it touched.
//! It does not tell how another schedule would have dealt them.
//!
//! # Model
//!
//! A chunk's time is the number of accesses that its thread executed, on the recorder's clock.
//! Where the order in which threads come matters (`dynamic`, `work-stealing`), each chunk takes up
//! to a tenth more or less, by a fixed hash of execution and chunk: on a real machine a dynamic
//! loop does not repeat itself either. The same recording always gives the same schedule.
//!
//! # Properties
//!
//! - Each chunk is dealt to exactly one thread, which executes its chunks in the order given.
//! - `affinity` gives no thread more time than the busiest thread of `dynamic` has, or 2 % more
//!   than the mean, whichever is more. A chunk that fits nowhere goes to the thread with the least
//!   time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::owners::Owners;

/// Who executes which iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schedule {
    /// The next chunk goes to the thread that is idle first.
    Dynamic,
    /// Each thread gets one run of neighbouring chunks.
    Block,
    /// Chunks go to the threads in turns.
    Cyclic,
    /// A chunk goes to the thread that used its pages first, as far as the balance allows.
    Affinity,
    /// Blocks, and an idle thread takes the last chunk of whoever has most left.
    WorkStealing,
}

impl Schedule {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("dynamic", Self::Dynamic),
        ("block", Self::Block),
        ("cyclic", Self::Cyclic),
        ("affinity", Self::Affinity),
        ("work-stealing", Self::WorkStealing),
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, s)| *s == self).map_or("", |(name, _)| name)
    }
}

impl std::str::FromStr for Schedule {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(n, _)| *n == name);
        found.map(|(_, s)| *s).ok_or_else(|| {
            let names = Self::ALL.map(|(n, _)| n).join(", ");
            format!("there is no schedule {name}; there are {names}")
        })
    }
}

/// A chunk of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DealtChunk {
    /// Accesses that it executes.
    pub ticks: u64,
    /// Pages that it touches, each once, in order, with the recorded accesses.
    pub pages: Vec<(u64, u32)>,
}

/// Chunks of each thread, in the order in which the thread executes them.
pub type ThreadChunks = Vec<Vec<usize>>;

/// Percent of the mean time that a thread may have more under `affinity`.
const SLACK: u64 = 2;
/// Chunks that were dealt to nobody before stay together for at most this part of a thread's mean
/// time.
const PIECES: u64 = 16;
/// A page that is used by one chunk alone weighs this much an access.
const WHOLE: u64 = 1 << 16;

/// Deals the chunks of a loop's execution, which are in the order of its iterations.
pub fn deal(
    schedule: Schedule,
    chunks: &[DealtChunk],
    threads: usize,
    execution: u64,
    owners: &Owners,
) -> ThreadChunks {
    let threads = threads.max(1);
    match schedule {
        Schedule::Dynamic => dynamic(chunks, threads, execution),
        Schedule::Block => (0..threads).map(|t| border(chunks, threads, t)).collect(),
        Schedule::Cyclic => (0..threads).map(|t| (t..chunks.len()).step_by(threads).collect()).collect(),
        Schedule::Affinity => affinity(chunks, threads, execution, owners),
        Schedule::WorkStealing => stealing(chunks, threads, execution),
    }
}

/// The chunks of a thread's block.
fn border(chunks: &[DealtChunk], threads: usize, thread: usize) -> Vec<usize> {
    (chunks.len() * thread / threads..chunks.len() * (thread + 1) / threads).collect()
}

/// The time of each thread.
pub fn loads(chunks: &[DealtChunk], lists: &ThreadChunks) -> Vec<u64> {
    let time = |list: &Vec<usize>| list.iter().fold(0u64, |sum, k| sum.saturating_add(chunks[*k].ticks));
    lists.iter().map(time).collect()
}

/// A number that looks like chance (splitmix64).
fn hash(execution: u64, what: u64) -> u64 {
    let mut x = execution.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ what.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// How long a chunk takes this time: a tenth more or less.
fn varied(ticks: u64, execution: u64, chunk: usize) -> u64 {
    let percent = 90 + hash(execution, chunk as u64) % 21;
    (ticks.saturating_mul(percent) / 100).max(1)
}

/// When each thread comes for its first chunk: within the time of a chunk.
fn arrivals(chunks: &[DealtChunk], threads: usize, execution: u64) -> BinaryHeap<Reverse<(u64, usize)>> {
    let all = chunks.iter().fold(0u64, |sum, c| sum.saturating_add(c.ticks));
    let mean = (all / (chunks.len() as u64).max(1)).max(1);
    (0..threads).map(|t| Reverse((hash(!execution, t as u64) % mean, t))).collect()
}

fn dynamic(chunks: &[DealtChunk], threads: usize, execution: u64) -> ThreadChunks {
    let mut idle = arrivals(chunks, threads, execution);
    let mut lists = vec![Vec::new(); threads];
    for (k, chunk) in chunks.iter().enumerate() {
        let Some(Reverse((time, t))) = idle.pop() else { break };
        lists[t].push(k);
        idle.push(Reverse((time.saturating_add(varied(chunk.ticks, execution, k)), t)));
    }
    lists
}

fn stealing(chunks: &[DealtChunk], threads: usize, execution: u64) -> ThreadChunks {
    let mut left: Vec<(usize, usize)> =
        (0..threads).map(|t| (chunks.len() * t / threads, chunks.len() * (t + 1) / threads)).collect();
    let mut idle = arrivals(chunks, threads, execution);
    let mut lists = vec![Vec::new(); threads];
    while let Some(Reverse((time, t))) = idle.pop() {
        let k = if left[t].0 < left[t].1 {
            left[t].0 += 1;
            left[t].0 - 1
        } else {
            let most =
                (0..threads).max_by_key(|v| (left[*v].1 - left[*v].0, Reverse(v.abs_diff(t)), Reverse(*v)));
            let Some(victim) = most.filter(|v| left[*v].0 < left[*v].1) else { continue };
            left[victim].1 -= 1;
            left[victim].1
        };
        lists[t].push(k);
        idle.push(Reverse((time.saturating_add(varied(chunks[k].ticks, execution, k)), t)));
    }
    lists
}

/// What a chunk's pages weigh: a page counts the less the more chunks of the execution use it, for
/// one that all use tells nothing.
struct Weights(HashMap<u64, u64>);

impl Weights {
    fn of(chunks: &[DealtChunk]) -> Self {
        let mut users: HashMap<u64, u64> = HashMap::new();
        for (page, _) in chunks.iter().flat_map(|c| &c.pages) {
            *users.entry(*page).or_default() += 1;
        }
        Self(users)
    }

    fn weight(&self, (page, accesses): (u64, u32)) -> u64 {
        u64::from(accesses).saturating_mul(WHOLE) / self.0.get(&page).copied().unwrap_or(1).max(1)
    }

    /// The thread whose pages weigh most, where at least half of the weight has an owner.
    fn home(&self, chunk: &DealtChunk, threads: usize, owners: &Owners) -> Option<usize> {
        let (mut by_thread, mut all) = (vec![0u64; threads], 0u64);
        for use_ in &chunk.pages {
            let weight = self.weight(*use_);
            all = all.saturating_add(weight);
            if let Some(sum) = owners.of(use_.0).and_then(|t| by_thread.get_mut(t)) {
                *sum = sum.saturating_add(weight);
            }
        }
        let known = by_thread.iter().fold(0u64, |sum, w| sum.saturating_add(*w));
        let best = (0..threads).max_by_key(|t| (by_thread[*t], Reverse(*t)))?;
        (known > 0 && known.saturating_mul(2) >= all).then_some(best)
    }

    /// Whether at least half of a chunk's weight lies on pages of the one before it.
    fn continues(&self, before: &DealtChunk, chunk: &DealtChunk) -> bool {
        let (mut same, mut all) = (0u64, 0u64);
        for use_ in &chunk.pages {
            let weight = self.weight(*use_);
            all = all.saturating_add(weight);
            if before.pages.binary_search_by_key(&use_.0, |p| p.0).is_ok() {
                same = same.saturating_add(weight);
            }
        }
        all > 0 && same.saturating_mul(2) >= all
    }
}

fn affinity(chunks: &[DealtChunk], threads: usize, execution: u64, owners: &Owners) -> ThreadChunks {
    let all = chunks.iter().fold(0u64, |sum, c| sum.saturating_add(c.ticks));
    let mean = all / threads as u64;
    let busiest = loads(chunks, &dynamic(chunks, threads, execution)).into_iter().max().unwrap_or(0);
    let limit = busiest.max(mean.saturating_add(mean * SLACK / 100));
    let weights = Weights::of(chunks);
    let mut thread_of: Vec<Option<usize>> = vec![None; chunks.len()];
    let mut load = vec![0u64; threads];
    let mut homeless = Vec::new();
    for (k, chunk) in chunks.iter().enumerate() {
        match weights.home(chunk, threads, owners) {
            Some(t) if load[t].saturating_add(chunk.ticks) <= limit => {
                load[t] += chunk.ticks;
                thread_of[k] = Some(t);
            }
            _ => homeless.push(k),
        }
    }
    // Chunks that share pages with the one before stay together.
    let mut at = 0;
    while at < homeless.len() {
        let (mut end, mut ticks) = (at + 1, chunks[homeless[at]].ticks);
        while let Some(&k) = homeless.get(end)
            && k == homeless[end - 1] + 1
            && ticks.saturating_add(chunks[k].ticks) <= mean / PIECES
            && weights.continues(&chunks[k - 1], &chunks[k])
        {
            ticks = ticks.saturating_add(chunks[k].ticks);
            end += 1;
        }
        let least = (0..threads).min_by_key(|t| (load[*t], *t)).unwrap_or(0);
        load[least] = load[least].saturating_add(ticks);
        homeless[at..end].iter().for_each(|k| thread_of[*k] = Some(least));
        at = end;
    }
    let mut lists = vec![Vec::new(); threads];
    for (k, thread) in thread_of.into_iter().enumerate() {
        lists[thread.unwrap_or(0)].push(k);
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn work(ticks: u64, pages: &[u64]) -> DealtChunk {
        DealtChunk { ticks, pages: pages.iter().map(|p| (*p, 10)).collect() }
    }

    fn even(n: usize) -> Vec<DealtChunk> {
        (0..n).map(|k| work(100, &[k as u64])).collect()
    }

    #[test]
    fn names_are_read_back() {
        for (name, schedule) in Schedule::ALL {
            assert_eq!((name.parse(), schedule.as_str()), (Ok(schedule), name));
        }
        assert!("guided".parse::<Schedule>().unwrap_err().contains("there are dynamic, block"));
    }

    #[test]
    fn block_and_cyclic_are_what_they_are_called() {
        let none = Owners::default();
        assert_eq!(deal(Schedule::Block, &even(5), 2, 0, &none), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(deal(Schedule::Cyclic, &even(5), 2, 0, &none), [vec![0, 2, 4], vec![1, 3]]);
    }

    #[test]
    fn a_dynamic_loop_does_not_repeat_itself_and_is_balanced() {
        let chunks = even(200);
        let maps: Vec<ThreadChunks> = (0..2).map(|e| dynamic(&chunks, 4, e)).collect();
        assert_ne!(maps[0], maps[1]);
        for lists in &maps {
            let loads = loads(&chunks, lists);
            assert!(loads.iter().max().unwrap() * 100 <= 106 * 5000, "{loads:?}");
        }
    }

    #[test]
    fn idle_threads_steal_from_whoever_has_most() {
        // The first block takes ten times as long.
        let mut chunks = even(40);
        chunks[..10].iter_mut().for_each(|c| c.ticks = 1000);
        let lists = stealing(&chunks, 4, 3);
        let loads = loads(&chunks, &lists);
        assert!(*loads.iter().max().unwrap() <= 4000, "{loads:?}");
        assert!(lists[0].len() < 10, "{lists:?}");
    }

    #[test]
    fn a_chunk_returns_to_the_thread_that_has_its_pages() {
        // Each chunk has a page of its own, and all read page 99.
        let chunks: Vec<DealtChunk> = (0..12).map(|k| work(100, &[k, 99])).collect();
        let mut owners = Owners::default();
        owners.take(99, 0);
        (0..12).for_each(|k| owners.take(k, (11 - k as usize) / 3));
        let lists = affinity(&chunks, 4, 0, &owners);
        assert_eq!(lists, [vec![9, 10, 11], vec![6, 7, 8], vec![3, 4, 5], vec![0, 1, 2]]);
    }

    #[test]
    fn affinity_is_as_balanced_as_dynamic() {
        // One thread has touched everything.
        let chunks = even(100);
        let mut owners = Owners::default();
        (0..100).for_each(|k| owners.take(k, 0));
        let loads = loads(&chunks, &affinity(&chunks, 4, 0, &owners));
        assert!(*loads.iter().max().unwrap() <= 2700, "{loads:?}");
    }

    #[test]
    fn neighbours_on_one_page_stay_together_where_nothing_is_known() {
        let chunks: Vec<DealtChunk> = (0..256).map(|k| work(100, &[k / 4])).collect();
        let lists = affinity(&chunks, 2, 0, &Owners::default());
        for page in 0..64 {
            let has = |list: &Vec<usize>| list.iter().any(|k| k / 4 == page);
            assert_eq!(lists.iter().filter(|l| has(l)).count(), 1, "page {page}");
        }
        let loads = loads(&chunks, &lists);
        assert_eq!(loads[0], loads[1]);
    }

    proptest! {
        #[test]
        fn each_chunk_goes_to_one_thread(
            ticks in prop::collection::vec(0u64..5000, 0..120), threads in 1usize..9, execution: u64,
            owned in prop::collection::vec(0usize..9, 0..40),
        ) {
            let chunks: Vec<DealtChunk> =
                ticks.iter().enumerate().map(|(k, t)| work(*t, &[k as u64 / 2, 1000])).collect();
            let mut owners = Owners::default();
            owned.iter().enumerate().for_each(|(page, t)| owners.take(page as u64, *t));
            let least = dynamic(&chunks, threads, execution);
            let busiest = loads(&chunks, &least).into_iter().max().unwrap();
            for (name, schedule) in Schedule::ALL {
                let lists = deal(schedule, &chunks, threads, execution, &owners);
                prop_assert_eq!(lists.len(), threads);
                let mut all: Vec<usize> = lists.iter().flatten().copied().collect();
                all.sort_unstable();
                prop_assert_eq!(&all, &(0..chunks.len()).collect::<Vec<_>>(), "{}", name);
                if schedule == Schedule::Affinity {
                    let most = loads(&chunks, &lists).into_iter().max().unwrap();
                    let longest = ticks.iter().max().copied().unwrap_or(0);
                    let mean = ticks.iter().sum::<u64>() / threads as u64;
                    prop_assert!(most <= busiest.max(mean * 102 / 100 + 1).max(mean + longest), "{most} {busiest}");
                }
            }
        }
    }
}
