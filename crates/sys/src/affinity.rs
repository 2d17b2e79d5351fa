//! Which CPUs the calling thread may run on.

use crate::call::raw;
use crate::error::check;
use crate::{Errno, Error, Result, Span};

/// Most CPUs that are told apart: the kernel's largest configuration on x86-64.
const CPUS: usize = 8192;
type Mask = [u64; CPUS / 64];

/// Binds the calling thread to one CPU, by the kernel's number.
///
/// # Errors
/// `EINVAL` for a CPU that is off-line, does not exist or is outside of the process's cpuset.
pub fn pin(cpu: u32) -> Result<()> {
    pin_to(&[cpu])
}

/// Binds the calling thread to some CPUs, by the kernel's numbers.
///
/// # Errors
/// As [`pin`], when none of them may be used.
pub fn pin_to(cpus: &[u32]) -> Result<()> {
    let mut mask: Mask = [0; CPUS / 64];
    for cpu in cpus {
        match mask.get_mut(*cpu as usize / 64) {
            Some(word) => *word |= 1 << (cpu % 64),
            None => {
                return Err(Error { call: "sched_setaffinity", on: Span::EMPTY, errno: Errno(libc::EINVAL) });
            }
        }
    }
    let (size, at) = (size_of_val(&mask), mask.as_ptr() as usize);
    // SAFETY: the kernel reads the mask.
    let r = unsafe { raw(libc::SYS_sched_setaffinity, [0, size, at, 0, 0, 0]) };
    check("sched_setaffinity", Span::EMPTY, r).map(drop)
}

/// The CPUs that the calling thread may run on, ascending, by the kernel's numbers.
///
/// # Errors
/// What the kernel says.
pub fn allowed() -> Result<Vec<u32>> {
    let mut mask: Mask = [0; CPUS / 64];
    let (size, at) = (size_of_val(&mask), mask.as_mut_ptr() as usize);
    // SAFETY: the kernel writes at most `size` bytes of the mask.
    let r = unsafe { raw(libc::SYS_sched_getaffinity, [0, size, at, 0, 0, 0]) };
    check("sched_getaffinity", Span::EMPTY, r)?;
    Ok((0..CPUS as u32).filter(|c| mask[*c as usize / 64] >> (c % 64) & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        let before = allowed().unwrap();
        assert!(!before.is_empty());
        for cpu in &before {
            pin(*cpu).unwrap();
            assert_eq!((crate::numa::here().0, allowed().unwrap()), (*cpu, vec![*cpu]));
        }
        pin_to(&before).unwrap();
        assert_eq!(allowed().unwrap(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        assert_eq!(pin(CPUS as u32 - 1).unwrap_err().errno, Errno(libc::EINVAL));
        assert_eq!(pin(u32::MAX).unwrap_err().errno, Errno(libc::EINVAL));
    }
}
