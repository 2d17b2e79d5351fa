//! Times of the outer loop's iterations, and what homenode itself cost meanwhile.

use homenode_dataset::tables::{Iteration, OwnCost};
use homenode_statistics::Sorted;
use serde::Serialize;

/// Iterations, as they are or in groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupedRounds {
    /// How many iterations there are.
    pub count: u64,
    /// Iterations of a group; the last one may have fewer.
    pub each: u64,
    /// By group: number of the first iteration, its start, the last one's end, and the shortest,
    /// median and longest time.
    pub groups: Vec<[u64; 6]>,
    /// Moment, homenode's CPU time until then, the processes' CPU time until then.
    pub own_cost: Vec<[u64; 3]>,
}

impl GroupedRounds {
    /// Groups of all iterations, at most `most`, in the order of their begin.
    pub fn of(mut rounds: Vec<Iteration>, own_cost: &[OwnCost], most: usize) -> Self {
        rounds.sort_by_key(|r| (r.begin_ns, r.process, r.iteration));
        let each = rounds.len().div_ceil(most.max(1)).max(1);
        let groups = rounds.chunks(each).map(|group| {
            let time = |r: &Iteration| (r.end_ns - r.begin_ns).0;
            let times = Sorted::of(group.iter().map(time).collect::<Vec<u64>>());
            let [shortest, median, longest] =
                [times.smallest(), times.upper_median(), times.largest()].map(Option::unwrap_or_default);
            let end = group.iter().map(|r| r.end_ns.0).max().unwrap_or(0);
            [group[0].iteration.into(), group[0].begin_ns.0, end, shortest, median, longest]
        });
        let groups = groups.collect();
        let step = own_cost.len().div_ceil(most.max(1)).max(1);
        let last = own_cost.len().saturating_sub(1);
        let kept = own_cost.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last);
        let own_cost = kept.map(|(_, c)| [c.time_ns.0, c.own_ns.0, c.cpu_ns.0]).collect();
        Self { count: rounds.len() as u64, each: each as u64, groups, own_cost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_dataset::tables::IterationSource;
    use homenode_model::Ns;

    #[test]
    fn many_iterations_become_groups() {
        let rounds = (0..10).map(|i| Iteration {
            process: 0,
            iteration: i,
            begin_ns: Ns(u64::from(i) * 100),
            end_ns: Ns(u64::from(i) * 100 + 10 + u64::from(i)),
            source: IterationSource::Found,
        });
        let all = GroupedRounds::of(rounds.clone().collect(), &[], 100);
        assert_eq!((all.each, all.groups.len(), all.groups[9]), (1, 10, [9, 900, 919, 19, 19, 19]));
        let few = GroupedRounds::of(rounds.collect(), &[], 3);
        assert_eq!((few.count, few.each, few.groups[0]), (10, 4, [0, 0, 313, 10, 12, 13]));
        assert_eq!(GroupedRounds::of(Vec::new(), &[], 3).groups, Vec::<[u64; 6]>::new());
    }
}
