//! Nodes: where pages are, moving pages, memory policies, the caller's node.

use homenode_model::NodeId;

use crate::call::raw;
use crate::error::check;
use crate::{Errno, Result, Span};

/// `MPOL_MF_MOVE` (include/uapi/linux/mempolicy.h): move pages that this process alone has mapped.
const MPOL_MF_MOVE: usize = 1 << 1;
/// `MPOL_F_ADDR` (the same): the policy of an address.
const MPOL_F_ADDR: usize = 1 << 1;
/// `MPOL_F_NODE` (the same): with `MPOL_F_ADDR`, the node of the page.
const MPOL_F_NODE: usize = 1 << 0;
/// `MPOL_F_NUMA_BALANCING` (the same, Linux 5.12).
const MPOL_F_NUMA_BALANCING: usize = 1 << 13;
const MPOL_DEFAULT: usize = 0;
const MPOL_PREFERRED: usize = 1;
const MPOL_BIND: usize = 2;
const MPOL_LOCAL: usize = 4;

/// Most nodes that a policy here can name: the kernel's largest configuration.
const NODES: usize = 1024;
type Mask = [u64; NODES / 64];

fn mask_of(nodes: &[NodeId]) -> Mask {
    let mut mask = [0; NODES / 64];
    for node in nodes {
        if let Some(word) = mask.get_mut(node.index() / 64) {
            *word |= 1 << (node.index() % 64);
        }
    }
    mask
}

/// The kernel's answer for one page: its node, or why it has none (`ENOENT`: there is no page,
/// `EFAULT`: a page of zeros or no mapping, `EBUSY`: pinned, `EACCES`: mapped by several
/// processes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct PageStatus(pub i32);

impl PageStatus {
    /// Not written by the kernel.
    pub const UNKNOWN: Self = Self(i32::MIN);
    /// The page's node.
    pub const fn node(self) -> Option<NodeId> {
        if self.0 >= 0 { Some(NodeId(self.0 as u16)) } else { None }
    }
    /// Why the page has no node.
    pub const fn errno(self) -> Option<Errno> {
        if self.0 < 0 && self.0 != i32::MIN { Some(Errno(-self.0)) } else { None }
    }
}

/// Asks for the node of the page at each address (`move_pages` without targets). As many are
/// answered as both slices have.
///
/// # Errors
/// `EPERM` or `ENOSYS` where a container forbids the call.
pub fn query(pages: &[usize], status: &mut [PageStatus]) -> Result<()> {
    let n = pages.len().min(status.len());
    // SAFETY: both slices have n elements; the pages' addresses are only looked up.
    let r = unsafe {
        raw(libc::SYS_move_pages, [0, n, pages.as_ptr() as usize, 0, status.as_mut_ptr() as usize, 0])
    };
    check("move_pages (query)", Span::EMPTY, r).map(drop)
}

/// Moves the page at each address to `to`. `Ok(0)`: every status is written. A larger number: that
/// many were not attempted, and no status is reliable; ask again.
///
/// # Errors
/// `EPERM` or `ENOSYS` if a container forbids the call, `ENODEV` for a node without memory,
/// `EACCES` for a node outside of the cpuset.
pub fn move_to(pages: &[usize], to: &[i32], status: &mut [PageStatus]) -> Result<usize> {
    let n = pages.len().min(status.len()).min(to.len());
    let (pages, to, status) = (pages.as_ptr() as usize, to.as_ptr() as usize, status.as_mut_ptr() as usize);
    // SAFETY: the slices have n elements. Moving keeps contents and addresses.
    let r = unsafe { raw(libc::SYS_move_pages, [0, n, pages, to, status, MPOL_MF_MOVE]) };
    check("move_pages", Span::EMPTY, r)
}

/// The nodes that new pages of some memory come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MemoryPolicy {
    mode: usize,
    mask: Mask,
}

impl MemoryPolicy {
    /// The policy of the thread that touches the memory.
    pub const DEFAULT: Self = Self { mode: MPOL_DEFAULT, mask: [0; NODES / 64] };
    /// The toucher's node, whatever the thread's policy.
    pub const LOCAL: Self = Self { mode: MPOL_LOCAL, mask: [0; NODES / 64] };

    /// `node` alone. The kernel may sample who touches the pages (numa_balancing), and leaves them
    /// where they are.
    pub fn bind_and_sample(node: NodeId) -> Self {
        Self { mode: MPOL_BIND | MPOL_F_NUMA_BALANCING, mask: mask_of(&[node]) }
    }
    /// `node` alone.
    pub fn bind(node: NodeId) -> Self {
        Self { mode: MPOL_BIND, mask: mask_of(&[node]) }
    }
    /// `node` while it has memory.
    pub fn prefer(node: NodeId) -> Self {
        Self { mode: MPOL_PREFERRED, mask: mask_of(&[node]) }
    }
}

/// Sets the policy of memory. Existing pages stay where they are.
///
/// # Errors
/// `EPERM` in containers without CAP_SYS_NICE, `EINVAL` for a policy that the kernel does not know.
pub fn set_policy(span: Span, policy: &MemoryPolicy) -> Result<()> {
    let plain = policy.mode == MPOL_DEFAULT || policy.mode == MPOL_LOCAL;
    let (mask, bits) = if plain { (0, 0) } else { (policy.mask.as_ptr() as usize, NODES + 1) };
    // SAFETY: the mask has NODES bits (the kernel wants one more than it reads). Contents and
    // addresses stay.
    let r = unsafe { raw(libc::SYS_mbind, [span.start, span.len(), policy.mode, mask, bits, 0]) };
    check("mbind", span, r).map(drop)
}

/// The policy of the memory at `address`.
///
/// # Errors
/// `EPERM` or `ENOSYS` where a container forbids the call, `EFAULT` where nothing is mapped.
pub fn policy_of(address: usize) -> Result<MemoryPolicy> {
    let (mut mode, mut mask) = (0_i32, [0_u64; NODES / 64]);
    let (m, b) = (&raw mut mode as usize, mask.as_mut_ptr() as usize);
    // SAFETY: writes the mode and NODES bits.
    let r = unsafe { raw(libc::SYS_get_mempolicy, [m, b, NODES, address, MPOL_F_ADDR, 0]) };
    check("get_mempolicy", Span::new(address, 1), r)?;
    Ok(MemoryPolicy { mode: mode as usize, mask })
}

/// The node of the page at `address`. The page is brought into memory if it is not there.
///
/// # Errors
/// As [`policy_of`].
pub fn node_of(address: usize) -> Result<NodeId> {
    let mut node = 0_i32;
    let how = MPOL_F_ADDR | MPOL_F_NODE;
    // SAFETY: writes the node.
    let r = unsafe { raw(libc::SYS_get_mempolicy, [&raw mut node as usize, 0, 0, address, how, 0]) };
    check("get_mempolicy(MPOL_F_NODE)", Span::new(address, 1), r).map(|_| NodeId(node as u16))
}

/// The kernel's numbers of the caller's CPU and node.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn here() -> (u32, NodeId) {
    /// `__CPUNODE_SEG`: the kernel keeps `node << 12 | cpu` in this segment's limit
    /// (arch/x86/include/asm/segment.h).
    const SEGMENT: u64 = 15 * 8 + 3;
    let packed: u64;
    // SAFETY: reads a segment's limit; no memory.
    unsafe { std::arch::asm!("lsl {0}, {1}", out(reg) packed, in(reg) SEGMENT, options(nomem, nostack)) };
    ((packed & 0xfff) as u32, NodeId((packed >> 12) as u16))
}

/// The kernel's numbers of the caller's CPU and node.
#[cfg(not(target_arch = "x86_64"))]
pub fn here() -> (u32, NodeId) {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    // SAFETY: writes two numbers.
    unsafe { raw(libc::SYS_getcpu, [&raw mut cpu as usize, &raw mut node as usize, 0, 0, 0, 0]) };
    (cpu, NodeId(node as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Protection, map, unmap};
    use crate::{HUGE, PAGE};

    #[test]
    fn a_touched_page_has_a_node_and_an_untouched_one_has_none() {
        let m = map(2 * PAGE, Protection::ReadWrite).unwrap();
        // SAFETY: this test's mapping.
        unsafe { (m.start as *mut u8).write_volatile(1) };
        let mut status = [PageStatus::UNKNOWN; 2];
        match query(&[m.start, m.start + PAGE], &mut status) {
            Err(e) => println!("skipped: {e}"),
            Ok(()) => {
                let node = status[0].node().expect("a node");
                assert_eq!(status[1].errno(), Some(Errno(libc::ENOENT)));
                assert_eq!(node_of(m.start), Ok(node));
                assert_eq!(move_to(&[m.start], &[i32::from(node.0)], &mut status), Ok(0));
            }
        }
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }

    #[test]
    fn a_policy_is_read_as_it_was_set() {
        let m = map(HUGE, Protection::ReadWrite).unwrap();
        match set_policy(m, &MemoryPolicy::LOCAL) {
            Err(e) => println!("skipped: {e}"),
            Ok(()) => {
                assert!(policy_of(m.start).unwrap() == MemoryPolicy::LOCAL);
                set_policy(m, &MemoryPolicy::bind(NodeId(0))).unwrap();
                assert!(policy_of(m.start).unwrap() == MemoryPolicy::bind(NodeId(0)));
                set_policy(m, &MemoryPolicy::DEFAULT).unwrap();
                assert!(policy_of(m.start).unwrap() == MemoryPolicy::DEFAULT);
            }
        }
        // SAFETY: this test's mapping.
        unsafe { unmap(m).unwrap() };
    }

    #[test]
    fn the_cpu_is_the_one_that_the_kernel_names() {
        // Pinned, so that it is the same for both questions.
        // SAFETY: plain calls on this thread.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let cpu = libc::sched_getcpu();
            libc::CPU_SET(cpu as usize, &mut set);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
            assert_eq!(here().0, cpu as u32);
        }
    }
}
