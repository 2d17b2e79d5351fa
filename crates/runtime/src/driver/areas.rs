//! Areas of memory of which something holds: that the program placed it, or said what is to become of it.

use homenode_sys::Span;

/// Disjoint, ascending.
#[derive(Debug, Default)]
pub struct Areas(Vec<Span>);

impl Areas {
    /// This, too.
    pub fn add(&mut self, span: Span) {
        self.remove(span);
        let at = self.0.partition_point(|s| s.start < span.start);
        self.0.insert(at, span);
    }

    /// No longer this.
    pub fn remove(&mut self, span: Span) {
        if self.0.iter().any(|s| s.overlaps(span)) {
            self.0 = self.0.iter().flat_map(|s| around(*s, span)).filter(|s| !s.is_empty()).collect();
        }
    }

    /// What of `span` is not in it, in order.
    pub fn rest_of(&self, span: Span) -> Vec<Span> {
        let mut rest = Vec::new();
        let mut left = span;
        for area in self.0.iter().filter(|s| s.overlaps(span)) {
            let [before, after] = around(left, *area);
            rest.push(before);
            left = after;
        }
        rest.push(left);
        rest.retain(|s| !s.is_empty());
        rest
    }

    /// Whether the byte at `address` is in it.
    pub fn has(&self, address: usize) -> bool {
        self.0.iter().any(|s| s.contains(address))
    }
}

/// What of `span` lies before and behind `hole`.
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
}
