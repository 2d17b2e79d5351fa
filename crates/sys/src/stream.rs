//! Loops that move data as fast as one CPU can: STREAM's four, a pure read, a pure write and an
//! update in place.
//!
//! Each step handles eight numbers (a cache line). An empty piece of assembly after each step keeps
//! the compiler from turning loops into calls of `memcpy` and `memset`, which choose the kind of
//! store themselves.

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStores {
    /// Through the caches: a line is read before it is written.
    Regular,
    /// Past the caches.
    NonTemporal,
}

/// Numbers in a step.
pub const STEP: usize = 8;

/// Whether this machine has [`StreamStores::NonTemporal`].
pub const NON_TEMPORAL: bool = cfg!(target_arch = "x86_64");

/// Sets all of `to`.
pub fn write(to: &mut [f64], value: f64, stores: StreamStores) {
    each(to, &[], &[], stores, move |_, _| [value; STEP]);
}

/// `to = from`
pub fn copy(to: &mut [f64], from: &[f64], stores: StreamStores) {
    each(to, from, &[], stores, |a, _| a);
}

/// `to = q · from`
pub fn scale(to: &mut [f64], from: &[f64], q: f64, stores: StreamStores) {
    each(to, from, &[], stores, move |a, _| std::array::from_fn(|i| q * a[i]));
}

/// `to = a + b`
pub fn add(to: &mut [f64], a: &[f64], b: &[f64], stores: StreamStores) {
    each(to, a, b, stores, |a, b| std::array::from_fn(|i| a[i] + b[i]));
}

/// `to = a + q · b`
pub fn triad(to: &mut [f64], a: &[f64], b: &[f64], q: f64, stores: StreamStores) {
    each(to, a, b, stores, move |a, b| std::array::from_fn(|i| a[i] + q * b[i]));
}

/// Runs one of the loops over the whole steps of the shortest slice. An empty source is not read.
#[inline(always)]
fn each(
    to: &mut [f64],
    a: &[f64],
    b: &[f64],
    stores: StreamStores,
    value: impl Fn([f64; STEP], [f64; STEP]) -> [f64; STEP] + Copy,
) {
    // Non-temporal stores need alignment.
    let aligned = (to.as_ptr() as usize).is_multiple_of(16);
    #[cfg(target_arch = "x86_64")]
    {
        let wide = std::arch::is_x86_feature_detected!("avx2");
        match (stores, wide) {
            // SAFETY: the processor has AVX2.
            (StreamStores::NonTemporal, true) if aligned => unsafe { avx2::<true, _>(to, a, b, value) },
            (StreamStores::NonTemporal, false) if aligned => body::<true, _>(to, a, b, value),
            // SAFETY: the processor has AVX2.
            (_, true) => unsafe { avx2::<false, _>(to, a, b, value) },
            (_, false) => body::<false, _>(to, a, b, value),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (stores, aligned);
        body::<false, _>(to, a, b, value);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<const PAST: bool, F>(to: &mut [f64], a: &[f64], b: &[f64], value: F)
where
    F: Fn([f64; STEP], [f64; STEP]) -> [f64; STEP] + Copy,
{
    body::<PAST, F>(to, a, b, value);
}

#[inline(always)]
fn body<const PAST: bool, F>(to: &mut [f64], a: &[f64], b: &[f64], value: F)
where
    F: Fn([f64; STEP], [f64; STEP]) -> [f64; STEP] + Copy,
{
    let length = |s: &[f64]| if s.is_empty() { usize::MAX } else { s.len() };
    let n = to.len().min(length(a)).min(length(b)) / STEP * STEP;
    let (have_a, have_b) = (!a.is_empty(), !b.is_empty());
    let (to, a, b) = (to.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    let mut i = 0;
    while i < n {
        // SAFETY: i + STEP is at most the length of each slice that is read and of the one that is
        // written.
        unsafe {
            let load = |have: bool, p: *const f64| {
                if have { p.add(i).cast::<[f64; STEP]>().read_unaligned() } else { [0.0; STEP] }
            };
            store::<PAST>(to.add(i), value(load(have_a, a), load(have_b, b)));
        }
        keep();
        i += STEP;
    }
    #[cfg(target_arch = "x86_64")]
    if PAST {
        // SAFETY: a fence; every x86-64 processor has it.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}

/// # Safety
/// Eight numbers at `to` may be written; with `PAST`, `to` is a multiple of 16.
#[inline(always)]
unsafe fn store<const PAST: bool>(to: *mut f64, v: [f64; STEP]) {
    #[cfg(target_arch = "x86_64")]
    if PAST {
        use std::arch::x86_64::{_mm_set_pd, _mm_stream_pd};
        for i in [0, 2, 4, 6] {
            // SAFETY: the caller's promise; the instruction is in every x86-64 processor.
            unsafe { _mm_stream_pd(to.add(i), _mm_set_pd(v[i + 1], v[i])) };
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { to.cast::<[f64; STEP]>().write_unaligned(v) };
}

/// A step that hides the loop's effect from the compiler.
#[inline(always)]
fn keep() {
    // SAFETY: no instruction.
    unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
}

/// The sum of the whole steps of `from`.
pub fn read(from: &[f64]) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { read_avx2(from) };
    }
    read_body(from)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_avx2(from: &[f64]) -> f64 {
    read_body(from)
}

#[inline(always)]
fn read_body(from: &[f64]) -> f64 {
    let mut sums = [[0.0; STEP]; 2];
    // Two lines a step: a single chain of additions would be slower than memory.
    let mut pairs = from.chunks_exact(2 * STEP);
    for lines in &mut pairs {
        for (sum, line) in sums.iter_mut().zip(lines.chunks_exact(STEP)) {
            for (s, x) in sum.iter_mut().zip(line) {
                *s += x;
            }
        }
    }
    for line in pairs.remainder().chunks_exact(STEP) {
        for (s, x) in sums[0].iter_mut().zip(line) {
            *s += x;
        }
    }
    sums.iter().flatten().sum()
}

/// `a = q · a`: reads every line and writes it back.
pub fn update(a: &mut [f64], q: f64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { update_avx2(a, q) };
    }
    update_body(a, q);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn update_avx2(a: &mut [f64], q: f64) {
    update_body(a, q);
}

#[inline(always)]
fn update_body(a: &mut [f64], q: f64) {
    for line in a.chunks_exact_mut(STEP) {
        for x in line.iter_mut() {
            *x *= q;
        }
        keep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [StreamStores; 2] = [StreamStores::Regular, StreamStores::NonTemporal];

    #[test]
    fn each_loop_computes_what_it_says() {
        // Twenty numbers: two steps and a rest that is left alone.
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let b: Vec<f64> = (0..20).map(|i| f64::from(i * i)).collect();
        for stores in BOTH {
            for shift in [0, 1] {
                let check = |what: &str, run: &dyn Fn(&mut [f64]), want: &dyn Fn(usize) -> f64| {
                    let mut to = [-1.0; 21];
                    run(&mut to[shift..shift + 20]);
                    for (i, x) in to[shift..shift + 16].iter().enumerate() {
                        assert_eq!(*x, want(i), "{what} {stores:?} {i}");
                    }
                    assert_eq!(to[shift + 16], -1.0, "{what} {stores:?}");
                };
                check("write", &|t| write(t, 5.0, stores), &|_| 5.0);
                check("copy", &|t| copy(t, &a, stores), &|i| a[i]);
                check("scale", &|t| scale(t, &a, 3.0, stores), &|i| 3.0 * a[i]);
                check("add", &|t| add(t, &a, &b, stores), &|i| a[i] + b[i]);
                check("triad", &|t| triad(t, &a, &b, 3.0, stores), &|i| a[i] + 3.0 * b[i]);
            }
        }
    }

    #[test]
    fn a_read_sums_and_an_update_scales() {
        let mut a: Vec<f64> = (0..44).map(f64::from).collect();
        assert_eq!(read(&a), (0..40).sum::<i32>().into(), "whole steps only");
        update(&mut a, 2.0);
        assert_eq!((a[39], a[40]), (78.0, 40.0));
    }
}
