//! Which libraries act for their callers.

/// Run-time libraries of languages and allocators, wherever they are installed.
const RUNTIMES: [&[u8]; 19] = [
    b"ld-",
    b"libc++",
    b"libc.",
    b"libflang",
    b"libgcc",
    b"libgfortran",
    b"libgomp",
    b"libhomenode",
    b"libiomp",
    b"libjemalloc",
    b"libm.",
    b"libmemkind",
    b"libmimalloc",
    b"libnuma",
    b"libomp",
    b"libpthread",
    b"libquadmath",
    b"libstdc++",
    b"libtcmalloc",
];

/// Whether a file is a run-time library of a language or an allocator, by its path. Its code acts
/// for its caller: memory that it allocates, fills or copies is its caller's.
pub fn is_runtime_library(path: &[u8]) -> bool {
    let file = path.rsplit(|c| *c == b'/').next().unwrap_or(path);
    RUNTIMES.iter().any(|runtime| file.starts_with(runtime))
}

#[cfg(test)]
mod tests {
    use super::is_runtime_library;

    #[test]
    fn a_runtime_library_is_known_wherever_it_lies() {
        for path in ["/home/me/conda/lib/libstdc++.so.6", "/usr/lib/libc.so.6", "libgomp.so.1"] {
            assert!(is_runtime_library(path.as_bytes()), "{path}");
        }
        for path in ["/home/me/libcells.so", "/home/libc.so/app", "[heap]", ""] {
            assert!(!is_runtime_library(path.as_bytes()), "{path}");
        }
    }
}
