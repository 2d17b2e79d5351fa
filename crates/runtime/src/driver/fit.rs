//! Whether a plan for one number of threads serves another.
//!
//! Static schedules deal iterations out in equal shares, neighbours together. So a plan holds for
//! another number of threads where each node has the same share of them, in the same order: node by
//! node, each with as many as the others. It is *scaled* then, and nothing of it changes. Otherwise
//! other pages would be each thread's, and it is refused.

/// What becomes of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is for this number of threads.
    Same,
    /// It holds for this number, too: each of so many nodes has the same share.
    Scaled(usize),
    /// It does not hold.
    Refused,
}

/// Nodes in the order of the threads, with how many threads each has; `None`: not dealt node by
/// node.
fn shares(threads: &[u16]) -> Option<Vec<(u16, usize)>> {
    let shares: Vec<(u16, usize)> = threads.chunk_by(|a, b| a == b).map(|c| (c[0], c.len())).collect();
    let mut nodes: Vec<u16> = shares.iter().map(|s| s.0).collect();
    nodes.sort_unstable();
    nodes.windows(2).all(|w| w[0] != w[1]).then_some(shares)
}

/// Whether a plan whose threads were on these nodes serves a team of so many.
pub fn fit(planned: &[u16], threads: usize) -> Fit {
    if threads == planned.len() {
        return Fit::Same;
    }
    let dealt = shares(planned)
        .filter(|s| s.iter().all(|(_, n)| *n == s[0].1) && threads.is_multiple_of(s.len()) && threads > 0);
    dealt.map_or(Fit::Refused, |s| Fit::Scaled(s.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_scale_and_others_are_refused() {
        assert_eq!(fit(&[0, 1], 2), Fit::Same);
        assert_eq!([fit(&[0, 1], 4), fit(&[0, 0, 1, 1], 2)], [Fit::Scaled(2); 2]);
        for (planned, threads) in
            [(&[0, 1][..], 3), (&[0, 0, 1], 6), (&[0, 1, 0, 1], 2), (&[0, 1], 0), (&[], 2)]
        {
            assert_eq!(fit(planned, threads), Fit::Refused, "{planned:?} {threads}");
        }
    }
}
