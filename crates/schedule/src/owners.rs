//! The owners of a loop's values, by the recorded executions of this loop or of others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::homes::ValueHomes;
use crate::shape::{SHAPES, Shape};
use crate::space::{Run, Space};

/// Owners of values, as recorded executions tell. An owner is a node, with `replay` a thread.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// Of the first recorded loop at a site.
    of_site: BTreeMap<usize, Arc<ValueHomes>>,
    /// Of the first recorded loop with these values.
    of_space: BTreeMap<Space, Arc<ValueHomes>>,
    /// Of a recorded loop whose values contain those of the loop at a site ([`Owners::adopt`]).
    adopted: BTreeMap<usize, Arc<ValueHomes>>,
}

impl Owners {
    /// The owners for a loop: those of its site, or else of its values.
    pub fn of(&self, shape: &Shape) -> Option<&Arc<ValueHomes>> {
        let of_values = || self.of_space.get(&shape.space).or_else(|| self.adopted.get(&shape.site));
        self.of_site.get(&shape.site).or_else(of_values)
    }

    /// Gives a loop without owners those of the smallest recorded loop whose values contain its own
    /// and are twice as many at most. A triangular loop then follows the loop that initialised its
    /// data, from its first execution to its last.
    pub fn adopt(&mut self, shape: &Shape) {
        if self.of(shape).is_some() || self.adopted.len() >= SHAPES {
            return;
        }
        let all = |space: &Space| space.place(Run { begin: 0, end: space.count() });
        let (low, high) = all(&shape.space);
        let contains = |space: &Space| {
            let (from, to) = all(space);
            from <= low && high <= to && space.count() / 2 <= shape.space.count()
        };
        let found = self.of_space.iter().filter(|(space, _)| contains(space));
        if let Some((_, homes)) = found.min_by_key(|(space, _)| space.count()) {
            self.adopted.insert(shape.site, Arc::clone(homes));
        }
    }

    /// Whether a loop at this site was recorded.
    pub fn knows(&self, shape: &Shape) -> bool {
        self.of_site.contains_key(&shape.site)
    }

    /// Keeps what a recorded loop tells, if there is anything.
    pub fn learn(&mut self, shape: &Shape, homes: ValueHomes) {
        if !homes.is_empty() {
            let homes = Arc::new(homes);
            self.of_space.entry(shape.space).or_insert_with(|| Arc::clone(&homes));
            self.of_site.insert(shape.site, homes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::IterationTable;

    fn shape(count: i128, team: u32) -> Shape {
        Shape { site: 0x1000, space: Space::excluding(0, count, 1).unwrap(), chunk: 10, team }
    }

    #[test]
    fn owners_are_those_of_the_site_and_else_of_the_values() {
        let homes = |node| {
            let table = IterationTable::new(100, vec![vec![Run { begin: 0, end: 100 }]]).unwrap();
            ValueHomes::of(&shape(100, 2).space, &table, |_| Some(node))
        };
        let (here, there) = (shape(100, 2), Shape { site: 0x2000, ..shape(100, 2) });
        let mut owners = Owners::default();
        assert!(owners.of(&here).is_none());
        owners.learn(&here, ValueHomes::default());
        assert!(!owners.knows(&here), "nothing was recorded");
        owners.learn(&here, homes(0));
        assert!(owners.knows(&here) && !owners.knows(&there));
        assert_eq!(owners.of(&there).map(|h| &**h), Some(&homes(0)), "it has the same values");
        owners.learn(&there, homes(1));
        assert_eq!(owners.of(&there).map(|h| &**h), Some(&homes(1)));
        assert_eq!(owners.of(&Shape { site: 0x3000, ..here }).map(|h| &**h), Some(&homes(0)));
    }

    #[test]
    fn a_triangular_loop_follows_the_loop_that_contains_its_values() {
        let space = |first, bound| Space::excluding(first, bound, 1).unwrap();
        let of = |site, space| Shape { site, space, ..shape(1, 2) };
        let table = IterationTable::new(100, vec![vec![Run { begin: 0, end: 100 }]]).unwrap();
        let mut owners = Owners::default();
        owners.learn(&of(1, space(0, 100)), ValueHomes::of(&space(0, 100), &table, |_| Some(1)));
        for (site, values, adopts) in [
            (2, space(1, 100), true),
            (2, space(90, 100), true),
            (3, space(90, 100), false),
            (4, space(50, 101), false),
            (5, Space::excluding(99, -1, -1).unwrap(), true),
        ] {
            owners.adopt(&of(site, values));
            assert_eq!(owners.of(&of(site, values)).is_some(), adopts, "{values:?} at {site}");
            assert!(!owners.knows(&of(site, values)), "it was not recorded itself");
        }
    }
}
