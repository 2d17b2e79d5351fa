//! Where the pages of an object are, and where they came from.

use homenode_model::{NodeId, PageNo, PageRange};

use super::history::add;
use super::numbers::PAGE;

/// No node.
const NOWHERE: u8 = u8::MAX;

/// Present and former homes of an object's pages, by the page's index in the object: 3 bytes a
/// page, or 0.75 MiB a GiB of armed or watched memory. Empty until a page is first seen.
#[derive(Clone, Debug, Default)]
pub struct PagePlaces {
    now: Vec<u8>,
    first: Vec<u8>,
    came_from: Vec<u8>,
}

/// The node as a byte. Nodes beyond a byte's range count as the last; Linux's largest machines have
/// fewer.
fn byte(node: NodeId) -> u8 {
    node.0.min(254) as u8
}

fn node(byte: u8) -> Option<NodeId> {
    (byte != NOWHERE).then(|| NodeId(byte.into()))
}

impl PagePlaces {
    /// Where a page is, if homenode knows.
    pub fn home(&self, index: usize) -> Option<NodeId> {
        self.now.get(index).and_then(|n| node(*n))
    }

    /// Where a page was first seen.
    pub fn first_home(&self, index: usize) -> Option<NodeId> {
        self.first.get(index).and_then(|n| node(*n))
    }

    /// Notes that a page is at `node` now.
    pub fn set_home(&mut self, index: usize, node: NodeId) {
        if let Some(now) = self.now.get_mut(index) {
            *now = byte(node);
        }
    }

    /// Notes that a page moves to `node`. Returns whether it had come from there.
    pub fn moves(&mut self, index: usize, node: NodeId) -> bool {
        // An object that is only planned keeps no homes.
        let (Some(now), Some(came_from)) = (self.now.get_mut(index), self.came_from.get_mut(index)) else {
            return false;
        };
        let back = *came_from == byte(node);
        *came_from = std::mem::replace(now, byte(node));
        back
    }

    /// Whether a page has moved before.
    pub fn came(&self, index: usize) -> bool {
        self.came_from.get(index).is_some_and(|n| *n != NOWHERE)
    }

    /// Whether a page is no longer where it was first seen.
    pub fn is_away(&self, index: usize) -> bool {
        self.now.get(index).zip(self.first.get(index)).is_some_and(|(now, first)| now != first)
    }

    /// Runs of pages that are not where they were first seen, with that home. Pages by index.
    pub fn away(&self) -> Vec<(PageRange, NodeId)> {
        let mut runs: Vec<(PageRange, NodeId)> = Vec::new();
        for ((page, now), first) in (0..).zip(&self.now).zip(&self.first) {
            let Some(home) = node(*first).filter(|_| now != first) else { continue };
            match runs.last_mut() {
                Some((r, same)) if *same == home && r.first.0 + r.count == page => r.count += 1,
                _ => runs.push((PageRange { first: PageNo(page), count: 1 }, home)),
            }
        }
        runs
    }

    /// Adds the numbers of pages by their first home and by their present home.
    pub fn count(&self, first: &mut Vec<u64>, now: &mut Vec<u64>) {
        for (list, places) in [(first, &self.first), (now, &self.now)] {
            places.iter().filter_map(|p| node(*p)).for_each(|node| add(list, node, 1));
        }
    }

    /// Address ranges of seams: pages near the border between two nodes' pages, by stretches of
    /// `around` pages. `start`: the address of the first page.
    pub fn seams(&self, start: usize, around: usize) -> Vec<(usize, usize)> {
        let mut spans: Vec<(usize, usize)> = Vec::new();
        let now = &self.now;
        for i in 1..now.len() {
            if now[i] == now[i - 1] || now[i] == NOWHERE || now[i - 1] == NOWHERE {
                continue;
            }
            let bytes = around * PAGE;
            let at = start + i * PAGE;
            let from = ((at - 1) & !(bytes - 1)).max(start);
            let to = ((at & !(bytes - 1)) + bytes).min(start + now.len() * PAGE);
            match spans.last_mut() {
                Some((_, end)) if *end >= from => *end = to,
                _ => spans.push((from, to)),
            }
        }
        spans
    }

    /// Notes where one of the object's `count` pages was at the first look. Returns whether that is
    /// new.
    pub fn first_seen(&mut self, count: usize, index: usize, node: NodeId) -> bool {
        if self.now.is_empty() {
            [&mut self.now, &mut self.first, &mut self.came_from]
                .into_iter()
                .for_each(|list| list.resize(count, NOWHERE));
        }
        let news = self.now.get(index) == Some(&NOWHERE);
        if news {
            (self.now[index], self.first[index]) = (byte(node), byte(node));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that were first seen on these nodes.
    fn places(nodes: &[u16]) -> PagePlaces {
        let mut places = PagePlaces::default();
        for (i, node) in nodes.iter().enumerate() {
            assert!(places.first_seen(nodes.len(), i, NodeId(*node)));
        }
        places
    }

    #[test]
    fn a_page_is_first_seen_once_and_never_outside() {
        let mut p = places(&[0, 1]);
        assert!(!p.first_seen(2, 0, NodeId(1)), "it is known");
        assert!(!p.first_seen(2, 2, NodeId(1)), "there is no such page");
        assert_eq!([0, 1, 2].map(|i| p.home(i)), [Some(NodeId(0)), Some(NodeId(1)), None]);
        p.set_home(0, NodeId(3));
        p.set_home(2, NodeId(3));
        assert_eq!((p.home(0), p.first_home(0), p.home(2)), (Some(NodeId(3)), Some(NodeId(0)), None));
        assert_eq!(p.home(0), Some(NodeId(3)));
    }

    #[test]
    fn a_move_back_is_one_to_the_node_before() {
        let mut p = places(&[0, 0]);
        assert!(!p.came(0) && !p.moves(0, NodeId(1)) && p.came(0) && p.is_away(0));
        assert!(!p.moves(0, NodeId(2)), "it came from node 1");
        assert!(p.moves(0, NodeId(1)));
        assert!(
            !p.moves(0, NodeId(0)) && !p.is_away(0),
            "back at its first home, from where it did not come"
        );
        assert!(!p.came(1) && !p.moves(7, NodeId(0)), "there is no such page");
        assert!(!PagePlaces::default().moves(0, NodeId(0)), "nothing is known");
    }

    #[test]
    fn pages_that_are_away_make_runs_by_first_home() {
        let mut p = places(&[0, 0, 1, 1, 0]);
        [1, 2, 3].into_iter().for_each(|i| p.set_home(i, NodeId(2)));
        let run = |first, count, home| (PageRange { first: PageNo(first), count }, NodeId(home));
        assert_eq!(p.away(), [run(1, 1, 0), run(2, 2, 1)]);
        let (mut first, mut now) = (vec![], vec![]);
        p.count(&mut first, &mut now);
        assert_eq!((first, now), (vec![3, 2], vec![2, 0, 3]));
    }

    #[test]
    fn seams_are_stretches_around_borders_within_the_object() {
        let start = 0x10_0000 + 2 * PAGE;
        let p = places(&[0, 0, 0, 1, 1, 1, 1, 1]);
        // The border lies within a stretch of four pages.
        assert_eq!(p.seams(start, 4), [(start + 2 * PAGE, start + 6 * PAGE)]);
        // The border lies between two pages, and the first begins before the object.
        assert_eq!(places(&[0, 1]).seams(start, 4), [(start, start + 2 * PAGE)]);
        assert!(places(&[1, 1]).seams(start, 4).is_empty());
        // A page that nobody has seen makes no border.
        let mut unknown = PagePlaces::default();
        [(0, 0), (2, 1)].into_iter().for_each(|(i, n)| _ = unknown.first_seen(3, i, NodeId(n)));
        assert!(unknown.seams(start, 4).is_empty());
    }
}
