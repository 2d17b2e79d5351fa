//! A set of areas of memory: those that the program has placed, or has ruled on.

use homenode_sys::Span;

/// Disjoint spans, ascending by address.
#[derive(Debug, Default)]
pub struct Areas(Vec<Span>);

impl Areas {
    /// Adds `span`.
    pub fn add(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        // Merges the span with all areas that it overlaps or touches.
        let from = self.0.partition_point(|s| s.end < span.start);
        let to = self.0.partition_point(|s| s.start <= span.end);
        let joined = &self.0[from..to];
        let start = joined.first().map_or(span.start, |s| s.start.min(span.start));
        let end = joined.last().map_or(span.end, |s| s.end.max(span.end));
        self.0.splice(from..to, [Span { start, end }]);
    }

    /// Removes `span`.
    pub fn remove(&mut self, span: Span) {
        let over = self.over(span);
        let left: Vec<Span> = self.0[over.clone()].iter().flat_map(|s| around(*s, span)).collect();
        self.0.splice(over, left.into_iter().filter(|s| !s.is_empty()));
    }

    /// The parts of `span` outside of the set, in order.
    pub fn rest_of(&self, span: Span) -> Vec<Span> {
        let mut rest = Vec::new();
        let mut left = span;
        for area in &self.0[self.over(span)] {
            let [before, after] = around(left, *area);
            rest.push(before);
            left = after;
        }
        rest.push(left);
        rest.retain(|s| !s.is_empty());
        rest
    }

    /// Whether the set contains the byte at `address`.
    pub fn has(&self, address: usize) -> bool {
        self.0.get(self.0.partition_point(|s| s.end <= address)).is_some_and(|s| s.contains(address))
    }

    /// Indices of the areas that overlap `span`.
    fn over(&self, span: Span) -> std::ops::Range<usize> {
        let from = self.0.partition_point(|s| s.end <= span.start);
        from..self.0.partition_point(|s| s.start < span.end).max(from)
    }
}

/// The parts of `span` before and behind `hole`.
fn around(span: Span, hole: Span) -> [Span; 2] {
    if !span.overlaps(hole) {
        return [span, Span::EMPTY];
    }
    [Span { start: span.start, end: hole.start }, Span { start: hole.end, end: span.end }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    #[test]
    fn what_is_in_it_is_left_out() {
        let mut p = Areas::default();
        p.add(span(20, 30));
        p.add(span(40, 50));
        p.add(span(25, 42));
        assert_eq!(p.rest_of(span(0, 100)), [span(0, 20), span(50, 100)]);
        assert_eq!(p.rest_of(span(22, 41)), []);
        assert!(p.has(20) && p.has(49) && !p.has(50));
        p.remove(span(22, 45));
        assert_eq!(p.rest_of(span(0, 60)), [span(0, 20), span(22, 45), span(50, 60)]);
        assert_eq!(Areas::default().rest_of(span(5, 9)), [span(5, 9)]);
    }

    #[test]
    fn neighbours_are_one() {
        let mut p = Areas::default();
        (0..100).rev().for_each(|i| p.add(span(10 * i, 10 * i + 10)));
        p.add(span(2000, 2000));
        assert_eq!(
            (&p.0[..], p.has(999), p.has(1000), p.has(2000)),
            (&[span(0, 1000)][..], true, false, false)
        );
        p.remove(span(0, 10));
        p.remove(span(500, 500));
        p.add(span(990, 1010));
        assert_eq!(p.0, [span(10, 1010)]);
    }
}
