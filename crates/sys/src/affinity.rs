//! The CPUs that a thread may run on.

use std::fmt;

use crate::call::raw;
use crate::error::check;
use crate::{Result, Span};

/// Most CPUs that a set here can name: the most that Linux can be configured for (CONFIG_NR_CPUS on
/// x86-64).
pub const MOST: usize = 8192;

/// A set of CPUs, by the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuSet([u64; MOST / 64]);

impl CpuSet {
    /// No CPU.
    pub const NONE: Self = Self([0; MOST / 64]);
    /// Every CPU. The kernel cuts this down to the CPUs that the process's cpuset allows.
    pub const ALL: Self = Self([u64::MAX; MOST / 64]);

    /// The set of these CPUs; numbers beyond [`MOST`] are left out.
    pub fn of(cpus: impl IntoIterator<Item = u32>) -> Self {
        let mut set = Self::NONE;
        for cpu in cpus {
            if let Some(word) = set.0.get_mut(cpu as usize / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
        set
    }

    /// Its CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MOST as u32).filter(|c| self.0[*c as usize / 64] >> (c % 64) & 1 == 1)
    }

    /// Adds the CPUs of another set.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// Whether the set has this CPU.
    pub fn has(&self, cpu: u32) -> bool {
        self.0.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Whether the set has no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// `EINVAL` on a machine with more than [`MOST`] CPUs.
pub fn get() -> Result<CpuSet> {
    of_thread(0)
}

/// The CPUs that a thread may run on, by the kernel's number of the thread; 0: the caller.
///
/// # Errors
/// As [`get`], and `ESRCH` if there is no such thread.
pub fn of_thread(thread: i32) -> Result<CpuSet> {
    let mut set = CpuSet::NONE;
    let (at, bytes) = (set.0.as_mut_ptr() as usize, size_of_val(&set.0));
    // SAFETY: writes at most the given number of bytes.
    let r = unsafe { raw(libc::SYS_sched_getaffinity, [thread as usize, bytes, at, 0, 0, 0]) };
    check("sched_getaffinity", Span::EMPTY, r).map(|_| set)
}

/// Restricts the calling thread to these CPUs.
///
/// # Errors
/// `EINVAL` if none of them exists and is allowed.
pub fn set(cpus: &CpuSet) -> Result<()> {
    let (at, bytes) = (cpus.0.as_ptr() as usize, size_of_val(&cpus.0));
    // SAFETY: reads the given number of bytes; 0 is the calling thread.
    let r = unsafe { raw(libc::SYS_sched_setaffinity, [0, bytes, at, 0, 0, 0]) };
    check("sched_setaffinity", Span::EMPTY, r).map(drop)
}

/// Binds the calling thread to one CPU, by the kernel's number.
///
/// # Errors
/// `EINVAL` for a CPU that is off-line, does not exist or is outside of the process's cpuset.
pub fn pin(cpu: u32) -> Result<()> {
    set(&CpuSet::of([cpu]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        let before = get().unwrap();
        for cpu in before.iter() {
            pin(cpu).unwrap();
            assert_eq!((crate::numa::here().0, get().unwrap()), (cpu, CpuSet::of([cpu])));
        }
        set(&before).unwrap();
        assert!(pin(u32::MAX).is_err());
    }

    #[test]
    fn a_thread_goes_where_it_is_sent_and_back() {
        let before = get().unwrap();
        let last = before.iter().last().unwrap();
        set(&CpuSet::of([last])).unwrap();
        assert_eq!(get().unwrap(), CpuSet::of([last]));
        assert_eq!(crate::numa::here().0, last);
        set(&before).unwrap();
        assert_eq!(get().unwrap(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let e = set(&CpuSet::of([MOST as u32 - 1])).unwrap_err();
        assert_eq!(e.to_string(), "sched_setaffinity: refused as invalid (EINVAL)");
        assert!(CpuSet::of([u32::MAX]).is_empty());
    }
}
