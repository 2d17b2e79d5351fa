//! Nodes without room: where the pages lie that were brought to a node.
//!
//! A page that is brought comes to be on its toucher's node if that has memory; else Linux takes
//! the next node's, and says nothing. So some of those that were brought are looked at.

use std::collections::BTreeMap;

use homenode_model::NodeId;

/// Pages that are looked at after one round of touches, at most.
pub const LOOKS: usize = 32;
/// Pages that have to be looked at before anything is said of a node.
const ENOUGH: u32 = 16;
/// And this part of them, in percent, lies elsewhere: single pages go elsewhere for other reasons,
/// too.
const MANY: u32 = 10;

/// What was seen, by the node that pages were brought to.
#[derive(Clone, Debug, Default)]
pub struct Room {
    looks: BTreeMap<NodeId, Looks>,
    /// Nodes that have no memory for this process, as outside of its cpuset: what is brought there
    /// lies elsewhere, and they are not full.
    without: Vec<NodeId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    pages: u32,
    elsewhere: u32,
    /// Pages that the kernel refused to move there for want of memory.
    refused: u64,
}

impl Room {
    /// Nothing seen yet.
    pub fn new(without: Vec<NodeId>) -> Self {
        Self { looks: BTreeMap::new(), without }
    }

    /// A page was brought to `to` and is on `home`.
    pub fn looked(&mut self, to: NodeId, home: NodeId) {
        let looks = self.looks.entry(to).or_default();
        looks.pages += 1;
        looks.elsewhere += u32::from(home != to);
    }

    /// The kernel had no memory on `to` for a page.
    pub fn refused(&mut self, to: NodeId) {
        self.looks.entry(to).or_default().refused += 1;
    }

    /// A sentence for each node without room.
    pub fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let looks = self.looks.iter().filter(|(node, _)| !self.without.contains(node));
        looks.filter_map(|(node, l)| {
            let full = l.pages >= ENOUGH && l.elsewhere * 100 >= l.pages * MANY;
            let mut what = Vec::new();
            if l.refused > 0 {
                what.push(format!("the kernel refused to move {} pages there", l.refused));
            }
            if full {
                what.push(format!(
                    "of {} pages that were looked at after they had been brought there, {} lie elsewhere",
                    l.pages, l.elsewhere
                ));
            }
            let what = (!what.is_empty()).then(|| what.join("; "))?;
            Some(format!(
                "node {} has no memory left: {what}; 'numastat -m' shows what takes it, fewer threads or larger nodes help",
                node.0
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_room_is_told_once_enough_has_been_seen() {
        let mut room = Room::default();
        let texts = |room: &Room| room.texts().collect::<Vec<_>>();
        for _ in 0..ENOUGH - 1 {
            room.looked(NodeId(2), NodeId(1));
        }
        assert!(texts(&room).is_empty(), "too few");
        room.looked(NodeId(2), NodeId(2));
        assert_eq!(
            texts(&room),
            [
                "node 2 has no memory left: of 16 pages that were looked at after they had been brought there, 15 lie elsewhere; \
                 'numastat -m' shows what takes it, fewer threads or larger nodes help"
            ]
        );
        let mut room = Room::default();
        for i in 0..100 {
            room.looked(NodeId(1), NodeId(u16::from(i > 5)));
        }
        assert!(texts(&room).is_empty(), "six of a hundred");
        let mut outside = Room::new(vec![NodeId(2)]);
        (0..100).for_each(|_| outside.looked(NodeId(2), NodeId(1)));
        assert!(texts(&outside).is_empty(), "there is none to be full");
        room.refused(NodeId(0));
        assert!(
            texts(&room)[0]
                .starts_with("node 0 has no memory left: the kernel refused to move 1 pages there;")
        );
    }
}
