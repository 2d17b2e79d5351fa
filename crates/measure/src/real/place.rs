//! Memory on the node that it is asked for.

use std::collections::BTreeMap;

use homenode_model::NodeId;
use homenode_sys::block::AnonymousMemory;
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::{Error, memory};

use super::{HostMeasurer, Sabotage};
use crate::item::{NodeNumber, PageSize};

/// Why memory could not be had, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub why: String,
    pub remedy: String,
}

impl Trouble {
    pub fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }

    /// A call that a container's filter or a missing capability forbids.
    pub fn forbidden(what: &str, error: &Error) -> Self {
        Self::new(
            format!("{what}: {error}"),
            "in a container, allow it: docker run --cap-add SYS_NICE, or a seccomp profile with mbind and move_pages",
        )
    }
}

/// Blocks that were placed and may be used again; placing takes longer than measuring.
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: BTreeMap<(NodeNumber, PageSize, usize), Vec<AnonymousMemory>>,
    rings: BTreeMap<(NodeNumber, PageSize, usize), homenode_sys::ring::Ring>,
}

impl Pool {
    /// Gives a block back.
    pub fn give(&mut self, node: NodeNumber, page: PageSize, block: AnonymousMemory) {
        self.free.entry((node, page, block.span().len())).or_default().push(block);
    }
    /// Gives a ring back.
    pub fn give_ring(&mut self, node: NodeNumber, page: PageSize, ring: homenode_sys::ring::Ring) {
        self.rings.insert((node, page, ring.slots()), ring);
    }
    /// The ring with this number of slots, if there is one. All others are dropped: each is large.
    pub fn ring(
        &mut self,
        node: NodeNumber,
        page: PageSize,
        slots: usize,
    ) -> Option<homenode_sys::ring::Ring> {
        let found = self.rings.remove(&(node, page, slots));
        self.rings.clear();
        found
    }
    /// Drops what is not on one of `nodes` with such pages.
    pub fn keep(&mut self, nodes: &[NodeNumber], page: PageSize) {
        self.free.retain(|(n, p, _), _| nodes.contains(n) && *p == page);
    }
    fn take(&mut self, node: NodeNumber, page: PageSize, bytes: usize) -> Option<AnonymousMemory> {
        self.free.get_mut(&(node, page, bytes))?.pop()
    }
    fn clear(&mut self) {
        self.free.clear();
        self.rings.clear();
    }
}

impl HostMeasurer {
    /// Memory of `bytes` on `node` with pages of that size, every page there.
    pub(super) fn place(
        &mut self,
        bytes: u64,
        node: NodeNumber,
        page: PageSize,
    ) -> Result<AnonymousMemory, Trouble> {
        let whole = bytes.max(1).next_multiple_of(homenode_sys::HUGE as u64);
        if let Some(block) = self.pool.take(node, page, whole as usize) {
            return Ok(block);
        }
        self.room_for(whole, node)?;
        let block = AnonymousMemory::new(whole as usize).map_err(|e| {
            Trouble::new(
                format!("{whole} bytes of address space: {e}"),
                "ask for a smaller --buffer, or raise ulimit -v",
            )
        })?;
        // Without huge pages in the kernel the advice is refused and small pages are what there is.
        let advised = memory::prefer_huge(block.span(), page == PageSize::Huge);
        if let (PageSize::Huge, Err(e)) = (page, &advised) {
            return Err(Trouble::new(
                format!("huge pages: {e}"),
                "this kernel has no transparent huge pages; leave out --pages 2M",
            ));
        }
        let target = match self.sabotage {
            Some(Sabotage::Misplace) => self.elsewhere(node).unwrap_or(node),
            _ => node,
        };
        self.populate(&block, target)?;
        if page == PageSize::Huge && super::proof::huge_bytes(block.span()) < whole {
            // Where huge pages are not made at once, asking for them afterwards may help.
            let _ = memory::collapse(block.span());
        }
        Ok(block)
    }

    /// Not to be killed for memory, look first.
    fn room_for(&mut self, bytes: u64, node: NodeNumber) -> Result<(), Trouble> {
        if self.host.room(node) < bytes {
            self.pool.clear();
        }
        let room = self.host.room(node);
        if room >= bytes {
            return Ok(());
        }
        let (why, remedy) = crate::item::no_room(node, bytes, room);
        Err(Trouble { why, remedy })
    }

    /// By policy where that is allowed, else by touching it from there.
    fn populate(&self, block: &AnonymousMemory, node: NodeNumber) -> Result<(), Trouble> {
        let touch = |block: &AnonymousMemory| match memory::populate(block.span()) {
            Ok(()) => Ok(()),
            // Before Linux 5.14.
            Err(e) if e.errno.0 == 22 => {
                let step = homenode_sys::PAGE / 8;
                block
                    .words()
                    .iter()
                    .step_by(step)
                    .for_each(|w| w.store(0, std::sync::atomic::Ordering::Relaxed));
                Ok(())
            }
            Err(e) => Err(Trouble::new(
                format!("memory on {node}: {e}"),
                "end what uses the node's memory, or ask for less with --buffer",
            )),
        };
        let Err(refused) = numa::set_policy(block.span(), &MemoryPolicy::bind(NodeId::from(node))) else {
            return touch(block);
        };
        let Some(cpu) = self.host.some_cpus(node, 1).first().copied() else {
            return Err(Trouble::forbidden(
                &format!("{node} has no CPU that could touch its memory first, and it cannot be bound there"),
                &refused,
            ));
        };
        std::thread::scope(|s| {
            let touched = s.spawn(|| {
                super::team::pin(cpu).map_err(|e| {
                    Trouble::new(format!("binding a thread to {cpu}: {e}"), "is the CPU still on-line?")
                })?;
                touch(block)
            });
            touched
                .join()
                .unwrap_or_else(|_| Err(Trouble::new("the thread that touches memory ended", "report this")))
        })
    }

    /// Moves a page of the memory away, when that was asked for.
    pub(super) fn tamper(&self, block: &AnonymousMemory, node: NodeNumber) {
        if self.sabotage == Some(Sabotage::Migrate)
            && let Some(other) = self.elsewhere(node)
        {
            let page = block.span().start + block.span().len() / 2;
            let mut status = [numa::PageStatus::UNKNOWN];
            // If it does not move, the measurement succeeds and whoever asked for the fault sees
            // that.
            let _ = numa::move_to(&[page], &[i32::from(other.0)], &mut status);
        }
    }
}
