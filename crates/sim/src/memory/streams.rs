//! Sequential streams of misses, which a prefetcher sees coming.

use homenode_model::LineNo;

/// Streams that are followed at once, as many as the arrays that a loop walks through.
const STREAMS: usize = 16;

/// The last line of each of a thread's recent streams.
///
/// A miss goes on with a stream when its line follows or precedes the stream's last. What it
/// depends on is the thread's misses alone, in program order, and so never on placement.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    last: [u64; STREAMS],
    /// The oldest entry, next to be replaced.
    oldest: usize,
    /// 64-byte lines in a line of the last cache.
    step: u64,
}

impl Streams {
    /// `step` is the distance of neighbouring lines in units of 64 bytes.
    pub(crate) const fn new(step: u64) -> Self {
        Self { last: [u64::MAX / 2; STREAMS], oldest: 0, step }
    }
    /// Notes a miss; whether it goes on with a stream.
    #[inline]
    pub(crate) fn follows(&mut self, line: LineNo) -> bool {
        let near = |last: &u64| line.0.abs_diff(*last) == self.step;
        if let Some(stream) = self.last.iter().position(near) {
            self.last[stream] = line.0;
            return true;
        }
        self.last[self.oldest] = line.0;
        self.oldest = (self.oldest + 1) % STREAMS;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_up_and_down_are_followed_side_by_side() {
        let mut s = Streams::new(2);
        let mut follows = |line: u64| s.follows(LineNo(line));
        assert!(!follows(100) && !follows(5000));
        assert!(follows(102) && follows(4998) && follows(104) && follows(4996));
        assert!(!follows(105), "not the next line of 128 bytes");
        assert!(!follows(104 + 20), "too far");
    }

    #[test]
    fn random_lines_follow_nothing() {
        let mut s = Streams::new(1);
        let hits = (0..1000u64).filter(|i| s.follows(LineNo(i * 7919 % 100_003))).count();
        assert_eq!(hits, 0);
    }
}
