//! The functions that the linker redirects to the recorder.

/// Symbols given to the linker as `--wrap=SYM`.
///
/// A reference to `SYM` from any object or archive of the link becomes one to `__wrap_SYM`, which
/// `libhomenode_trace.so` **must export for each name below** and which forwards to the function
/// that the program would have called. Shared libraries of the system are not affected: what they
/// allocate or copy for themselves stays unseen, as it would be anyhow (they are not instrumented).
///
/// Why each group is here:
///
/// * copying and filling: compilers turn loops, structure copies and Fortran array assignments into
///   these calls, and `-fsanitize=thread` does not see into them. Often they are the first touch;
/// * allocation, C and C++: the objects of a recording, and the end of an address's life;
/// * mappings: the same for programs that allocate by themselves;
/// * input: the kernel writes the buffer;
/// * locks: order between threads, at which the filter is emptied (threads are created inside of
///   libraries, too: the recorder defines `pthread_create` and `pthread_join` itself);
/// * `_exit` skips the handlers that flush the log.
pub const WRAPPED_SYMBOLS: &[&str] = &[
    // copying and filling
    "memcpy",
    "memmove",
    "memset",
    // allocation, C
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    // allocation, C++: operator new (plain, array, aligned, nothrow)
    "_Znwm",
    "_Znam",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    // operator delete (plain, sized, aligned, both, nothrow, aligned nothrow)
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    // mappings
    "mmap",
    "munmap",
    "mremap",
    // input
    "read",
    "pread",
    "fread",
    // locks
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_mutex_trylock",
    // the end of a process
    "_exit",
];

#[cfg(test)]
mod tests {
    use super::WRAPPED_SYMBOLS;
    use std::collections::BTreeSet;

    #[test]
    fn no_symbol_is_named_twice() {
        let unique: BTreeSet<_> = WRAPPED_SYMBOLS.iter().collect();
        assert_eq!(unique.len(), WRAPPED_SYMBOLS.len());
    }
}
