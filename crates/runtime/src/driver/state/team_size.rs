//! Whether a plan for one number of threads serves another number.
//!
//! Static schedules deal iterations in equal shares, in order. So a plan also holds for another
//! number of threads if each node has the same share of them, in the same order: node by node, each
//! with as many as the others. The plan is then *scaled*, and does not change. Otherwise each
//! thread would have other pages, and the plan is refused.

/// Whether a plan serves a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeamFit {
    /// The plan was made for this number of threads.
    Same,
    /// The plan also holds for this number: each of this many nodes has the same share.
    Scaled(usize),
    /// The plan does not hold.
    Refused,
}

/// The nodes in the order of their threads, each with its number of threads. `None`: the threads
/// are not in node order.
fn shares(threads: &[u16]) -> Option<Vec<(u16, usize)>> {
    let shares: Vec<(u16, usize)> = threads.chunk_by(|a, b| a == b).map(|c| (c[0], c.len())).collect();
    let mut nodes: Vec<u16> = shares.iter().map(|s| s.0).collect();
    nodes.sort_unstable();
    nodes.windows(2).all(|w| w[0] != w[1]).then_some(shares)
}

/// Whether a plan whose threads ran on the nodes `planned` serves a team of `threads`.
pub fn fit(planned: &[u16], threads: usize) -> TeamFit {
    if threads == planned.len() {
        return TeamFit::Same;
    }
    let dealt = shares(planned)
        .filter(|s| s.iter().all(|(_, n)| *n == s[0].1) && threads.is_multiple_of(s.len()) && threads > 0);
    dealt.map_or(TeamFit::Refused, |s| TeamFit::Scaled(s.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_scale_and_others_are_refused() {
        assert_eq!(fit(&[0, 1], 2), TeamFit::Same);
        assert_eq!([fit(&[0, 1], 4), fit(&[0, 0, 1, 1], 2)], [TeamFit::Scaled(2); 2]);
        for (planned, threads) in
            [(&[0, 1][..], 3), (&[0, 0, 1], 6), (&[0, 1, 0, 1], 2), (&[0, 1], 0), (&[], 2)]
        {
            assert_eq!(fit(planned, threads), TeamFit::Refused, "{planned:?} {threads}");
        }
    }
}
