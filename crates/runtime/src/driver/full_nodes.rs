//! Full nodes: looks where the pages really lie that were brought to a node.
//!
//! A page that is brought to a node comes from that node's memory if it has any left. Otherwise
//! Linux silently takes the next node's. So the driver checks some of the brought pages.

use std::collections::BTreeMap;

use homenode_model::NodeId;

/// Pages checked after one round of touches, at most.
pub const LOOKS: usize = 32;
/// Pages that must be checked before anything is said of a node.
const ENOUGH: u32 = 16;
/// A node counts as full if at least this share of its checked pages lies elsewhere, in percent.
/// Single pages lie elsewhere for other reasons, too.
const MANY: u32 = 10;

/// What the checks found, by the node that pages were brought to.
#[derive(Clone, Debug, Default)]
pub struct FullNodes {
    looks: BTreeMap<NodeId, Looks>,
    /// Nodes without memory for this process, as outside of its cpuset. Pages brought there lie
    /// elsewhere although the node is not full.
    without: Vec<NodeId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    pages: u32,
    elsewhere: u32,
    /// Pages that the kernel refused to move there for lack of memory.
    refused: u64,
}

impl FullNodes {
    /// Nothing checked yet.
    pub fn new(without: Vec<NodeId>) -> Self {
        Self { looks: BTreeMap::new(), without }
    }

    /// Counts a page that was brought to `to` and lies on `home`.
    pub fn looked(&mut self, to: NodeId, home: NodeId) {
        let looks = self.looks.entry(to).or_default();
        looks.pages += 1;
        looks.elsewhere += u32::from(home != to);
    }

    /// Counts a page for which the kernel had no memory on `to`.
    pub fn refused(&mut self, to: NodeId) {
        self.looks.entry(to).or_default().refused += 1;
    }

    /// One sentence for each full node.
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
        let mut room = FullNodes::default();
        let texts = |room: &FullNodes| room.texts().collect::<Vec<_>>();
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
        let mut room = FullNodes::default();
        for i in 0..100 {
            room.looked(NodeId(1), NodeId(u16::from(i > 5)));
        }
        assert!(texts(&room).is_empty(), "six of a hundred");
        let mut outside = FullNodes::new(vec![NodeId(2)]);
        (0..100).for_each(|_| outside.looked(NodeId(2), NodeId(1)));
        assert!(texts(&outside).is_empty(), "there is none to be full");
        room.refused(NodeId(0));
        assert!(
            texts(&room)[0]
                .starts_with("node 0 has no memory left: the kernel refused to move 1 pages there;")
        );
    }
}
