//! Places in the guest's memory: counted from its beginning, without the hole under 4 GiB.

use homenode_model::{Bytes, NodeId, Topology};

use crate::translate::PAGE_SHIFT;
use homenode_wire::monitor::PhysicalAddresses;

/// Where physical addresses are in the guest's memory, and whose they are.
#[derive(Clone, Debug)]
pub struct PhysicalMap {
    addresses: PhysicalAddresses,
    /// Bytes of a disk that is mapped as memory.
    disk: u64,
    /// First page of each node, and one past the last.
    first: Vec<u64>,
}

impl PhysicalMap {
    /// Of a machine whose physical addresses QEMU tells so.
    pub fn of(machine: &Topology, addresses: PhysicalAddresses, disk: Bytes) -> Self {
        let mut first = vec![0];
        for node in &machine.nodes {
            first.push(first.last().unwrap_or(&0) + (node.memory.0 >> PAGE_SHIFT));
        }
        Self { addresses, disk: disk.0, first }
    }

    /// Pages in all.
    pub fn pages(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// The node of a page.
    #[inline]
    pub fn home(&self, page: u64) -> NodeId {
        NodeId((self.first.partition_point(|f| *f <= page).saturating_sub(1)) as u16)
    }

    /// Whether what QEMU says to a plug-in lies in the disk.
    pub fn in_disk(&self, physical: u64) -> bool {
        match self.addresses {
            _ if self.disk == 0 => false,
            // Above all memory.
            PhysicalAddresses::Physical { .. } => physical >= 1 << 32 && self.physical(physical).is_none(),
            PhysicalAddresses::Blocks { .. } => physical < self.disk,
        }
    }

    /// Place of what QEMU says to a plug-in; `None` for what is not memory.
    pub fn told(&self, physical: u64) -> Option<u64> {
        match self.addresses {
            PhysicalAddresses::Physical { .. } => self.physical(physical),
            PhysicalAddresses::Blocks { .. } => {
                // The disk's block is the first.
                let physical = physical.checked_sub(self.disk)?;
                let doubled = |page: &u64| page << (PAGE_SHIFT + 1);
                let node = self.first.partition_point(|f| doubled(f) <= physical).checked_sub(1)?;
                let offset = physical - doubled(&self.first[node]) + (self.first[node] << PAGE_SHIFT);
                (offset < self.first.get(node + 1)? << PAGE_SHIFT).then_some(offset)
            }
        }
    }

    /// Place of a physical address as the guest itself knows it.
    pub fn physical(&self, physical: u64) -> Option<u64> {
        let (PhysicalAddresses::Physical { low } | PhysicalAddresses::Blocks { low }) = self.addresses;
        let offset =
            if physical < low.0 { physical } else { physical.checked_sub(1 << 32)?.checked_add(low.0)? };
        (offset < self.pages() << PAGE_SHIFT).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(addresses: PhysicalAddresses, disk: Bytes) -> PhysicalMap {
        let mut machine = homenode_machine::preset("epyc-nps4").unwrap().topology;
        machine.nodes.truncate(2);
        machine.nodes[0].memory = Bytes::mib(1);
        machine.nodes[1].memory = Bytes::mib(2);
        PhysicalMap::of(&machine, addresses, disk)
    }

    #[test]
    fn a_disk_is_no_memory() {
        let low = Bytes(2_097_152);
        let p = places(PhysicalAddresses::Blocks { low }, Bytes::mib(16));
        assert!(p.in_disk(0) && p.in_disk(Bytes::mib(16).0 - 1) && p.told(0).is_none());
        assert_eq!((p.in_disk(Bytes::mib(16).0), p.told(Bytes::mib(16).0)), (false, Some(0)));
        assert_eq!(p.told(Bytes::mib(16).0 + 2 * 1_048_576), Some(1_048_576));
        let p = places(PhysicalAddresses::Physical { low }, Bytes::mib(16));
        assert!(p.in_disk((1 << 32) + Bytes::mib(2).0) && !p.in_disk(1 << 32) && !p.in_disk(0));
        let p = places(PhysicalAddresses::Physical { low }, Bytes::ZERO);
        assert!(!p.in_disk(1 << 40), "there is none");
    }

    #[test]
    fn a_hole_under_4_gib_is_no_memory() {
        let p = places(PhysicalAddresses::Physical { low: Bytes(2_097_152) }, Bytes::ZERO);
        assert_eq!(p.told(2_097_151), Some(2_097_151));
        assert_eq!(p.told(2_097_152), None);
        assert_eq!(p.told(1 << 32), Some(2_097_152));
        assert_eq!(p.told((1 << 32) + Bytes::mib(1).0), None, "the end");
    }

    #[test]
    fn qemus_old_addresses_count_what_lies_before_a_node_twice() {
        let p = places(PhysicalAddresses::Blocks { low: Bytes(2_097_152) }, Bytes::ZERO);
        assert_eq!(p.told(1_048_575), Some(1_048_575));
        assert_eq!(p.told(1_048_576), None);
        assert_eq!(p.told(2 * 1_048_576), Some(1_048_576));
        assert_eq!(p.told(2 * 1_048_576 + 2_097_151), Some(3 * 1_048_576 - 1));
        assert_eq!(p.told(2 * 1_048_576 + 2_097_152), None);
        assert_eq!(p.physical(1 << 32), Some(2_097_152), "the guest's own words");
        assert_eq!((p.home(255), p.home(256)), (NodeId(0), NodeId(1)));
    }
}
