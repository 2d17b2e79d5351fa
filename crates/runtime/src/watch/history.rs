//! What has happened to an object's pages: counts that outlive the object.

use homenode_model::NodeId;

/// With fewer moves than this, moves back may be chance.
const FEW: u64 = 16;
/// Moves of less than one touched page in this number may be at seams alone.
const SEAMS: u64 = 20;
/// Of the touches of pages that had moved before, more than one in this many moves back if two
/// nodes come in turn: by chance, it is every second.
const RETURNS: u64 = 4;

/// Touches and moves of an object's pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageHistory {
    /// Pages by the node that touched them after an arming: presence, not counts.
    pub touched: Vec<u64>,
    /// Pages by their home when the object was first armed.
    pub homes: Vec<u64>,
    /// Number of moved pages.
    pub moved: u64,
    /// Number of pages that moved back to a former node.
    pub ping_pongs: u64,
    /// Touches of pages that had moved before: each could have been a move back.
    pub touched_again: u64,
}

impl PageHistory {
    /// Notes that a page moved. `back`: to the node that it had come from.
    pub fn page_moved(&mut self, back: bool) {
        self.moved += 1;
        self.ping_pongs += u64::from(back);
    }

    /// Whether pages go back to a node that they had left, again and again, and more of them than
    /// lie at the seams of the nodes' parts. Either most moves were such, or pages that were
    /// touched again went back as often as chance would have it.
    pub fn goes_back_and_forth(&self) -> bool {
        let touched: u64 = self.touched.iter().sum();
        let mostly = self.ping_pongs * 2 > self.moved;
        let by_chance = self.ping_pongs >= FEW && self.ping_pongs * RETURNS > self.touched_again;
        self.moved >= FEW && self.moved * SEAMS > touched && (mostly || by_chance)
    }

    /// Adds the counts of another object.
    pub fn join(&mut self, other: &Self) {
        self.moved += other.moved;
        self.ping_pongs += other.ping_pongs;
        self.touched_again += other.touched_again;
        for (list, more) in [(&mut self.touched, &other.touched), (&mut self.homes, &other.homes)] {
            (0u16..).zip(more).for_each(|(n, pages)| add(list, NodeId(n), *pages));
        }
    }
}

/// Adds `n` to a node's number in a list by node.
pub fn add(list: &mut Vec<u64>, node: NodeId, n: u64) {
    if list.len() <= node.index() {
        list.resize(node.index() + 1, 0);
    }
    list[node.index()] += n;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(touched: u64, moved: u64, ping_pongs: u64, touched_again: u64) -> PageHistory {
        PageHistory { touched: vec![0, touched], homes: vec![moved], moved, ping_pongs, touched_again }
    }

    #[test]
    fn an_object_goes_back_and_forth_if_most_moves_are_back() {
        assert!(history(100, 16, 9, 1000).goes_back_and_forth());
        assert!(!history(100, 16, 8, 1000).goes_back_and_forth(), "half of them");
        assert!(!history(100, 15, 15, 1000).goes_back_and_forth(), "too few");
        assert!(!history(320, 16, 16, 1000).goes_back_and_forth(), "no more than at seams");
        assert!(history(319, 16, 16, 1000).goes_back_and_forth());
    }

    #[test]
    fn an_object_goes_back_and_forth_if_pages_return_as_often_as_by_chance() {
        assert!(history(100, 100, 16, 63).goes_back_and_forth());
        assert!(!history(100, 100, 16, 64).goes_back_and_forth(), "one in four");
        assert!(!history(100, 100, 15, 15).goes_back_and_forth(), "too few");
    }

    #[test]
    fn counts_of_two_objects_are_added_node_by_node() {
        let mut one = PageHistory::default();
        [true, false, false].into_iter().for_each(|back| one.page_moved(back));
        add(&mut one.touched, NodeId(2), 5);
        one.join(&history(7, 2, 1, 4));
        let sum =
            PageHistory { touched: vec![0, 7, 5], homes: vec![2], moved: 5, ping_pongs: 2, touched_again: 4 };
        assert_eq!(one, sum);
    }
}
