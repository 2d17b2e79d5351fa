//! Memory on the node that it is asked for.

use homenode_model::NodeId;
use homenode_sys::block::AnonymousMemory;
use homenode_sys::memory;
use homenode_sys::numa::{self, MemoryPolicy};

use super::proof::huge_bytes;
use super::trouble::Trouble;
use super::{HostMeasurer, Sabotage};
use crate::axes::{NodeNumber, PageSize};

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
        if page == PageSize::Huge && huge_bytes(block.span()) < whole {
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
