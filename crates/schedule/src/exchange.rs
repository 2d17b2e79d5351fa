//! Who gets which range of a static loop, by the owners of its values.
//!
//! # Problem
//!
//! A loop with `schedule(static)` gives each thread one range of neighbouring iterations. The
//! run-time tells a thread a lower and an upper bound, so a thread can only get one range. The
//! ranges are as long as each other; longer and shorter ones would cost balance.
//!
//! # Approach
//!
//! The ranges stay, and threads exchange them. Each range goes to a thread of the *owner* that has
//! most of the range's values. An owner is whatever the caller groups threads by: a node (its
//! threads are as good as each other), or a single thread.
//!
//! # Algorithm
//!
//! Pairs of a range and an owner are taken in the order of their values, most first; then by the
//! number of the range, then by that of the owner. A pair is kept if the range is free and the
//! owner has a thread left. Threads of an owner keep their own range where that range is among the
//! owner's, and get the others in ascending order. Of the threads that are left, each keeps its own
//! range if no owner got it; the others get what is left, in ascending order.
//!
//! # Properties
//!
//! - The answer is a permutation: each range goes to one thread.
//! - Nothing is exchanged unless the iterations that are executed by their owners grow by at least
//!   a sixteenth of the loop. Less is chance where small chunks of an earlier loop went to whoever
//!   asked first.

use crate::homes::ValueHomes;
use crate::space::{LoopChunks, Run, Space};

/// Ranges of values, with owners, of a loop whose ranges are exchanged. With more the search would
/// take longer than many a loop.
pub const MOST: usize = 1 << 14;
/// Part of a loop's iterations that an exchange has to bring to their owners.
const WORTH: i128 = 16;

/// The range of the number `range` in a team of `team` threads.
pub fn range(space: &Space, range: u32, team: u32) -> Run {
    LoopChunks::new(space.count(), 1).block(range, team)
}

/// The number of the range that each thread gets. `owner_of` has the owner of each thread of the
/// team. `None`: the program's own order is as good.
pub fn exchanged(space: &Space, homes: &ValueHomes, owner_of: &[Option<u16>]) -> Option<Vec<u32>> {
    let team = u32::try_from(owner_of.len()).ok()?;
    if homes.len() > MOST {
        return None;
    }
    // The values of each range by owner.
    let values: Vec<Vec<(u16, i128)>> =
        (0..team).map(|r| homes.values(space, range(space, r, team))).collect();
    let mut pairs: Vec<(i128, u32, u16)> = Vec::new();
    for (r, owners) in (0_u32..).zip(&values) {
        pairs.extend(owners.iter().map(|(owner, sum)| (*sum, r, *owner)));
    }
    pairs.sort_unstable_by_key(|(sum, r, owner)| (std::cmp::Reverse(*sum), *r, *owner));

    let mut free: Vec<(u16, u32)> = Vec::new();
    for owner in owner_of.iter().flatten() {
        match free.iter_mut().find(|(o, _)| o == owner) {
            Some((_, threads)) => *threads += 1,
            None => free.push((*owner, 1)),
        }
    }
    let mut owner_of_range: Vec<Option<u16>> = vec![None; owner_of.len()];
    for (_, r, owner) in pairs {
        let place = &mut owner_of_range[r as usize];
        let left = free.iter_mut().find(|(o, threads)| *o == owner && *threads > 0);
        if let (None, Some((_, threads))) = (*place, left) {
            *threads -= 1;
            *place = Some(owner);
        }
    }

    let mut range_of: Vec<Option<u32>> = vec![None; owner_of.len()];
    let mut is_taken = vec![false; owner_of.len()];
    for (t, owner) in owner_of.iter().enumerate() {
        if owner.is_some() && owner_of_range[t] == *owner {
            (range_of[t], is_taken[t]) = (Some(t as u32), true);
        }
    }
    // The other ranges with an owner, then those that no owner got.
    for (r, owner) in owner_of_range.iter().enumerate().filter(|(_, owner)| owner.is_some()) {
        let is_owners = |t: &usize| range_of[*t].is_none() && owner_of[*t] == *owner;
        if !is_taken[r]
            && let Some(t) = (0..owner_of.len()).find(is_owners)
        {
            (range_of[t], is_taken[r]) = (Some(r as u32), true);
        }
    }
    for (t, (range, taken)) in range_of.iter_mut().zip(&mut is_taken).enumerate() {
        if range.is_none() && !*taken {
            (*range, *taken) = (Some(t as u32), true);
        }
    }
    let mut left = (0_u32..).zip(&is_taken).filter(|(_, taken)| !**taken).map(|(r, _)| r);
    let range_of: Vec<u32> =
        range_of.into_iter().map(|r| r.or_else(|| left.next())).collect::<Option<_>>()?;

    let at_home = |t: usize, r: u32| {
        let sum = values[r as usize].iter().find(|(owner, _)| Some(*owner) == owner_of[t]);
        sum.map_or(0, |(_, sum)| *sum)
    };
    let own: i128 = (0..owner_of.len()).map(|t| at_home(t, t as u32)).sum();
    let new: i128 = range_of.iter().enumerate().map(|(t, r)| at_home(t, *r)).sum();
    let (low, high) = space.place(Run { begin: 0, end: space.count() });
    (new - own >= ((high - low) / WORTH).max(1)).then_some(range_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::IterationTable;
    use proptest::prelude::*;

    fn homes(space: &Space, runs: Vec<Vec<(u64, u64)>>) -> ValueHomes {
        let run = |(begin, end)| Run { begin, end };
        let threads = runs.into_iter().map(|r| r.into_iter().map(run).collect()).collect();
        ValueHomes::of(space, &IterationTable::new(space.count(), threads).unwrap(), |t| Some(t as u16))
    }

    fn space(count: i128) -> Space {
        Space::excluding(0, count, 1).unwrap()
    }

    #[test]
    fn ranges_go_to_the_threads_of_the_node_that_has_their_values() {
        let space = space(100);
        // Node 1 has the first half.
        let homes = homes(&space, vec![vec![(50, 100)], vec![(0, 50)]]);
        let nodes = [0, 0, 1, 1].map(Some);
        assert_eq!(exchanged(&space, &homes, &nodes), Some(vec![2, 3, 0, 1]));
        // As the program has it, there is nothing to exchange.
        assert_eq!(exchanged(&space, &homes, &[1, 1, 0, 0].map(Some)), None);
        // A thread whose node is not known gets what is left.
        assert_eq!(exchanged(&space, &homes, &[None, Some(0), Some(1), Some(1)]), Some(vec![3, 2, 0, 1]));
        assert_eq!(exchanged(&space, &homes, &[None; 4]), None);
    }

    #[test]
    fn threads_keep_their_own_range_where_it_is_as_good() {
        let space = space(80);
        let homes = homes(&space, vec![vec![(20, 60)], vec![(0, 20), (60, 80)]]);
        assert_eq!(exchanged(&space, &homes, &[0, 0, 1, 1].map(Some)), Some(vec![2, 1, 0, 3]));
    }

    #[test]
    fn chance_is_no_reason_to_exchange() {
        let space = space(160);
        // Chunks of one iteration by turns, but the first four pairs: 8 of 160 would be gained.
        let odd = |i: u64| i % 2 == 1 || i < 8;
        let of = |node: bool| (0..160).filter(|i| odd(*i) == node).map(|i| (i, i + 1)).collect();
        let homes = homes(&space, vec![of(false), of(true)]);
        assert_eq!(exchanged(&space, &homes, &[0, 1].map(Some)), None);
    }

    #[test]
    fn a_loop_with_fewer_iterations_than_threads_has_empty_ranges() {
        let space = space(2);
        let homes = homes(&space, vec![vec![(1, 2)], vec![(0, 1)]]);
        let got = exchanged(&space, &homes, &[0, 0, 1, 1].map(Some)).unwrap();
        let runs: Vec<Run> = got.iter().map(|r| range(&space, *r, 4)).collect();
        assert_eq!(runs.iter().map(Run::len).sum::<u64>(), 2);
        assert!(runs[2].len() + runs[3].len() == 1 && runs.iter().any(|r| r.end == 2));
    }

    proptest! {
        #[test]
        fn each_range_goes_to_one_thread(
            count in 1u64..300, owner_of in prop::collection::vec(prop::option::of(0u16..4), 2..12),
            borders in prop::collection::vec(0u64..300, 0..12), step in prop::sample::select(vec![1i128, 3, -2]),
        ) {
            let space = Space::excluding(0, i128::from(count) * step, step).unwrap();
            let mut borders: Vec<u64> = borders.into_iter().map(|b| b.min(count)).collect();
            borders.extend([0, count]);
            borders.sort_unstable();
            let mut runs = vec![Vec::new(); 4];
            for (i, b) in borders.windows(2).enumerate() {
                runs[i * 7 % 4].push((b[0], b[1]));
            }
            let homes = homes(&space, runs);
            if let Some(ranges) = exchanged(&space, &homes, &owner_of) {
                let mut sorted = ranges.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..owner_of.len() as u32).collect::<Vec<_>>());
                let home = |ranges: &[u32]| -> i128 {
                    let of = |(t, r): (usize, &u32)| {
                        let all = homes.values(&space, range(&space, *r, owner_of.len() as u32));
                        all.into_iter().filter(|(o, _)| Some(*o) == owner_of[t]).map(|(_, n)| n).sum::<i128>()
                    };
                    ranges.iter().enumerate().map(of).sum()
                };
                let own: Vec<u32> = (0..owner_of.len() as u32).collect();
                prop_assert!(home(&ranges) > home(&own));
            }
        }
    }
}
