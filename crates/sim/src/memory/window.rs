//! The main-memory accesses that a thread has under way.

/// When each access under way is done, in program order; at most `outstanding` of them.
///
/// They retire in order, like the entries of a reorder buffer: an access that is done behind one
/// that is not still holds its place.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// A ring, a power of two long.
    done: Box<[u64]>,
    head: usize,
    len: usize,
    outstanding: usize,
}

/// What a thread did since its last item that others can notice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SinceItem {
    computed: u64,
    hits: u64,
}

impl SinceItem {
    /// It computed so long.
    #[inline]
    pub(crate) const fn computed(&mut self, time: u64) {
        self.computed = self.computed.saturating_add(time);
    }
    /// It had hits in caches behind the first, which take so long one after the other.
    #[inline]
    pub(crate) const fn hits(&mut self, latencies: u64) {
        self.hits = self.hits.saturating_add(latencies);
    }
    /// How long it waited for these hits beyond its computing; then all begins anew. A CPU that
    /// waits for every access waits for each hit. Any other has up to `outstanding` of them under
    /// way, and computes.
    #[inline]
    pub(crate) fn waits(&mut self, outstanding: u64) -> u64 {
        let Self { computed, hits } = std::mem::take(self);
        match outstanding {
            0 | 1 => hits,
            n => hits.div_ceil(n).saturating_sub(computed),
        }
    }
}

impl Window {
    /// `outstanding` from 1 up; 1 is a CPU that waits for every access.
    pub(super) fn new(outstanding: u32) -> Self {
        let outstanding = outstanding.max(1) as usize;
        Self { done: vec![0; outstanding.next_power_of_two()].into(), head: 0, len: 0, outstanding }
    }
    #[inline]
    pub(super) const fn outstanding(&self) -> u64 {
        self.outstanding as u64
    }
    /// An access issued at `now` is done at `done`; when may the thread go on?
    #[inline]
    pub(super) fn issue(&mut self, now: u64, done: u64) -> u64 {
        let mask = self.done.len() - 1;
        while self.len > 0 && self.done[self.head & mask] <= now {
            self.head += 1;
            self.len -= 1;
        }
        self.done[(self.head + self.len) & mask] = done;
        self.len += 1;
        if self.len < self.outstanding {
            return now;
        }
        let oldest = self.done[self.head & mask];
        self.head += 1;
        self.len -= 1;
        now.max(oldest)
    }
    /// All of them are done so much later.
    pub(super) fn delay(&mut self, by: u64) {
        let mask = self.done.len() - 1;
        for i in self.head..self.head + self.len {
            self.done[i & mask] = self.done[i & mask].saturating_add(by);
        }
    }
    /// Waits for all of them; when are they done?
    #[inline]
    pub(super) fn drain(&mut self, now: u64) -> u64 {
        let mask = self.done.len() - 1;
        let all = self.head..self.head + self.len;
        self.head = 0;
        self.len = 0;
        all.map(|i| self.done[i & mask]).fold(now, u64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outstanding_blocks() {
        let mut w = Window::new(1);
        assert_eq!(w.issue(10, 110), 110);
        assert_eq!(w.drain(110), 110);
    }

    #[test]
    fn a_full_window_waits_for_the_oldest() {
        let mut w = Window::new(3);
        assert_eq!(w.issue(0, 100), 0);
        assert_eq!(w.issue(0, 50), 0);
        assert_eq!(w.issue(0, 70), 100, "three under way: wait for the first");
        // At 100 all are done, so two more fit.
        assert_eq!(w.issue(100, 400), 100);
        assert_eq!(w.issue(100, 300), 100);
        w.delay(7);
        assert_eq!(w.drain(120), 407);
    }
}
