//! What is added to a command line, and why. Measured with GCC 12.2 and clang 14.0 on x86-64.

use crate::toolchain::{Family, SourceLanguage, Toolchain};
use crate::wraps::WRAPPED_SYMBOLS;
use std::ffi::OsString;
use std::path::Path;

/// The library that the instrumented code calls, without `lib` and `.so`.
pub const TRACE_LIBRARY: &str = "homenode_trace";

/// Flags appended to each compile step. They come last, so they win over the user's.
///
/// For all compilers:
///
/// * `-fsanitize=thread` puts a call before each access. Entry and exit of functions are not
///   needed.
/// * `-fno-lto`: link-time optimisation would run the pass at the link, which gets no such flag.
/// * `-U_FORTIFY_SOURCE`: the checked `__memcpy_chk` and its like are other functions than those
///   wrapped.
/// * `-g`, where no `-g…` is given: lines and variables, without another effect on the code.
///
/// Not there: `-fno-plt`, which made no difference (2.03 ns for a counted access with and without).
///
/// GCC:
///
/// * `-fno-builtin-mem…` (C and C++): a copy of constant size up to 256 bytes (1024 with AVX-512)
///   is otherwise expanded inline *after* the instrumentation, and nothing is seen of it. Fortran
///   has no such flag: there whole-array assignments of constant size up to 256 bytes stay unseen.
/// * `-mmem…-strategy=libcall` (x86): the same for larger and for unknown sizes.
/// * `-fno-tree-loop-distribute-patterns`: no loop becomes a `memset`. GCC 12 does not do it in
///   instrumented loops anyhow: its pass runs before the loop optimisers (so loops are not
///   vectorised either, and masked or gathered accesses do not occur).
/// * `-fno-caller-saves`, `-fno-tree-reassoc`: with a call before each access, what a call may
///   change is a poor place to keep a value, and sums of addresses that are shared keep more of
///   them. NAS MG recorded takes 6 % less, CG counted 11 % more; what is accessed is the same.
///   (`-fno-tree-pre` would mend CG, but changes the accesses.) Without `-ffast-math` and its like
///   the order of floating-point operations is the program's in any case; with it sums are rounded
///   otherwise than without homenode, whose loops are not vectorised.
/// * `-fno-ipa-reference`: GCC otherwise concludes that the fence of `#pragma omp flush`, which the
///   pass makes a call, leaves a `static` variable alone whose address nobody takes. A loop that
///   waits for such a flag then reads it once and never ends (`spin_static.cc`; LU of NPB in C++).
/// * `-U__SANITIZE_THREAD__`: the program shall take the same `#if` branches as without homenode.
/// * `-Wno-tsan`: it warns of fences, which the real ThreadSanitizer cannot model; the recorder
///   can. `-Wno-error=maybe-uninitialized`: instrumented code draws false warnings.
///
/// clang:
///
/// * its pass runs after the vectoriser and **silently drops** each access that is not 1, 2, 4, 8
///   or 16 bytes: 32- and 64-byte vectors, but also interleaved groups (`a[3*i]`) and masked
///   accesses with 128-bit vectors. So no vectorisation at all; `-force-vector-width=1` holds for
///   `#pragma omp simd`, too, whose warning is turned off. `-mprefer-vector-width=128` for what is
///   left. Bytes read and written in the test `stores_of_every_shape_are_seen` (216 608 and 287 744
///   are right): 151 136 and 287 744 with `-O2`, 118 560 and 222 336 with `-O3 -mavx2`, 151 200 and
///   254 976 with AVX-512 and width 128; right in all three without vectorisation.
/// * copies and fills become calls of `memcpy` and `memset` in the pass itself, loops that were
///   recognised as such among them: the link redirects them. No `-fno-builtin` is needed.
pub fn compile_flags(tool: &Toolchain, driver: SourceLanguage, user_has_g: bool) -> Vec<OsString> {
    let mut flags: Vec<&str> = vec!["-fsanitize=thread", "-fno-lto", "-U_FORTIFY_SOURCE"];
    match tool.family {
        Family::Gcc => {
            flags.extend([
                "--param",
                "tsan-instrument-func-entry-exit=0",
                "-fno-tree-loop-distribute-patterns",
                "-fno-caller-saves",
                "-fno-tree-reassoc",
                "-fno-ipa-reference",
                "-U__SANITIZE_THREAD__",
                "-Wno-tsan",
                "-Wno-error=maybe-uninitialized",
            ]);
            if driver != SourceLanguage::Fortran {
                flags.extend(["-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset"]);
            }
            if tool.x86 {
                flags
                    .extend(["-mmemcpy-strategy=libcall:-1:noalign", "-mmemset-strategy=libcall:-1:noalign"]);
            }
        }
        Family::Clang => flags.extend([
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            "-fno-vectorize",
            "-fno-slp-vectorize",
            "-mllvm",
            "-force-vector-width=1",
            "-mllvm",
            "-force-vector-interleave=1",
            "-Wno-pass-failed",
        ]),
    }
    if tool.family == Family::Clang && tool.x86 {
        flags.push("-mprefer-vector-width=128");
    }
    // Names and types of variables are wanted, too: they cost time to compile and bytes of the
    // file, and no instruction.
    if !user_has_g {
        flags.push("-g");
    }
    flags.into_iter().map(OsString::from).collect()
}

/// Flags put before the user's in a link: the recorder comes before every other library, so that
/// its definitions of the OpenMP entry points are found first, and it stays even if nothing refers
/// to it.
pub fn link_flags_before(lib_dir: &Path) -> Vec<OsString> {
    let mut search = OsString::from("-L");
    search.push(lib_dir);
    let mut rpath = OsString::from("-Wl,-rpath,");
    rpath.push(lib_dir);
    let mut wraps = String::from("-Wl");
    for symbol in WRAPPED_SYMBOLS {
        wraps.push_str(",--wrap=");
        wraps.push_str(symbol);
    }
    vec![
        search,
        "-Wl,--push-state,--no-as-needed".into(),
        format!("-l{TRACE_LIBRARY}").into(),
        "-Wl,--pop-state".into(),
        rpath,
        wraps.into(),
        "-fno-lto".into(),
    ]
}

/// Flags put after the user's in a link.
///
/// The recorder defines the OpenMP entry points that it forwards. A linker that defaults to
/// `--as-needed` (Ubuntu's) would then drop the OpenMP library itself: it is named again.
pub fn link_flags_after(openmp: Option<&str>) -> Vec<OsString> {
    match openmp {
        None => Vec::new(),
        Some(library) => vec![
            "-Wl,--push-state,--no-as-needed".into(),
            format!("-l{library}").into(),
            "-Wl,--pop-state".into(),
        ],
    }
}
