//! The watched memory: spans that do not overlap, by address.

use homenode_sys::Span;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// No spans.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a span, and joins it with its neighbours. `false` without a change if it overlaps
    /// another span, or is empty.
    pub fn add(&mut self, span: Span) -> bool {
        let at = self.0.partition_point(|s| s.end < span.start);
        let near = self.0[at..].iter().take_while(|s| s.start <= span.end).count();
        if span.is_empty() || self.0[at..at + near].iter().any(|s| s.overlaps(span)) {
            return false;
        }
        let whole = self.0[at..at + near]
            .iter()
            .fold(span, |all, s| Span { start: all.start.min(s.start), end: all.end.max(s.end) });
        self.0.splice(at..at + near, [whole]);
        true
    }

    /// Removes all bytes of `span`.
    pub fn cut(&mut self, span: Span) {
        let at = self.0.partition_point(|s| s.end <= span.start);
        let hit = self.0[at..].iter().take_while(|s| s.overlaps(span)).count();
        let Some(last) = hit.checked_sub(1) else { return };
        let rest = [
            Span { start: self.0[at].start, end: span.start },
            Span { start: span.end, end: self.0[at + last].end },
        ];
        self.0.splice(at..at + hit, rest.into_iter().filter(|s| !s.is_empty()));
    }

    /// Whether a span contains `address`.
    pub fn has(&self, address: usize) -> bool {
        let after = self.0.partition_point(|s| s.start <= address);
        after > 0 && self.0[after - 1].contains(address)
    }

    /// The spans, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Span> {
        self.0.iter().copied()
    }

    /// Number of spans.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no spans.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory in use.
    pub const fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Span>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_the_set_of_what_was_added_and_not_cut(
            steps in proptest::collection::vec((any::<bool>(), 0usize..60, 0usize..12), 0..60)
        ) {
            let (mut spans, mut want) = (Spans::new(), [false; 80]);
            for (add, start, bytes) in steps {
                let span = Span::new(start, bytes);
                let room = bytes > 0 && !want[start..start + bytes].contains(&true);
                if add {
                    prop_assert_eq!(spans.add(span), room);
                } else {
                    spans.cut(span);
                }
                if room || !add {
                    want[start..start + bytes].fill(add);
                }
                let have: Vec<bool> = (0..80).map(|at| spans.has(at)).collect();
                prop_assert_eq!(&have[..], &want[..]);
                // As few as can be, ascending.
                let list: Vec<Span> = spans.iter().collect();
                prop_assert!(list.windows(2).all(|w| w[0].end < w[1].start) && list.iter().all(|s| !s.is_empty()));
            }
        }
    }
}
