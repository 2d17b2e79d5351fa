//! What next touch costs, with two pretended nodes: pages are really copied. In each round of an interleaved run: plain
//! first touch, then arming and next touch of the same memory. CPU time of the thread; medians of the rounds.
//!
//! Goals: sequential sweep at most 1.1 × first touch, one page at a time at most 3.0 ×, marking at most 1 ms/GiB while others
//! write, peak memory at most 1.1 ×.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use homenode_model::Bytes;
use homenode_runtime::moving::{self, Mechanism, Options, Span};
use homenode_sys::memory::{Access, map_aligned, prefer_huge, unmap};
use homenode_sys::{HUGE, PAGE, maps};

const BYTES: usize = 256 << 20;
const ROUNDS: usize = 11;

/// CPU time of this thread in seconds.
fn cpu() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn fresh(bytes: usize) -> Span {
    let m = map_aligned(bytes, HUGE, Access::ReadWrite).expect("memory");
    prefer_huge(m, false).expect("small pages");
    m
}

fn gone(m: Span) {
    let held = moving::before_free(m);
    // SAFETY: memory of this program that nobody uses any more.
    unsafe { unmap(m).expect("unmap") };
    moving::retire(held);
}

/// Writes one word of every `stride` bytes; nanoseconds of CPU time a touch.
fn touch(m: Span, stride: usize) -> f64 {
    let begin = cpu();
    for at in (m.start..m.end).step_by(stride) {
        // SAFETY: memory of this program.
        unsafe { (at as *mut u64).write_volatile(at as u64) };
    }
    (cpu() - begin) * 1e9 / (m.len() / stride) as f64
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_unstable_by(f64::total_cmp);
    list[list.len() / 2]
}

fn resident() -> u64 {
    let mut kib = 0;
    let _ = maps::lines(c"/proc/self/status", |l| {
        let Some(rest) = l.strip_prefix(b"VmRSS:") else { return true };
        kib = String::from_utf8_lossy(rest).trim().trim_end_matches(" kB").parse().unwrap_or(0);
        false
    });
    kib
}

/// The whole memory in order: first touch, next touch.
fn sweep() {
    let (mut first, mut next, mut marks, mut peak) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let m = fresh(BYTES);
        first.push(touch(m, PAGE));
        let before = resident();
        let report = moving::arm(&[m]);
        assert_eq!(report.armed, Bytes(BYTES as u64), "{report:?}");
        marks.push(report.took.0 as f64 * (1_u64 << 30) as f64 / BYTES as f64 * 1e-6);
        let mut highest = 0;
        let mut costs = vec![];
        for part in m.pieces(BYTES / 8) {
            costs.push(touch(part, PAGE));
            highest = highest.max(resident());
        }
        next.push(costs.iter().sum::<f64>() / costs.len() as f64);
        peak.push(highest as f64 / before as f64);
        moving::settle();
        gone(m);
    }
    let ratios = first.iter().zip(&next).map(|(a, b)| b / a).collect();
    println!("first touch {:.0} ns/page, next touch {:.0} ns/page", median(first), median(next));
    println!("bench: next-touch/sweep {:.3} x", median(ratios));
    println!("bench: next-touch/marking-alone {:.3} ms/GiB", median(marks));
    println!("bench: next-touch/peak-memory {:.3} x", median(peak));
}

/// As the sweep, in a process where one page comes with a touch.
fn single() {
    let (mut first, mut next) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let m = fresh(BYTES / 4);
        first.push(touch(m, PAGE));
        moving::arm(&[m]);
        next.push(touch(m, PAGE));
        gone(m);
    }
    let ratios = first.iter().zip(&next).map(|(a, b)| b / a).collect();
    println!("one page at a time: first touch {:.0} ns, next touch {:.0} ns", median(first), median(next));
    println!("bench: next-touch/single-page {:.3} x", median(ratios));
}

/// Marking while another thread writes: what has no whole GiB moves by 2 MiB, of larger memory most moves by GiB.
fn marking(bytes: usize) {
    let gib = bytes >> 30;
    let m = fresh(bytes);
    touch(m, PAGE);
    let stop = AtomicBool::new(false);
    let (mut marks, mut own) = (vec![], vec![]);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for at in (m.start..m.end).step_by(16 * PAGE + 64) {
                    // SAFETY: memory of this program.
                    unsafe { (at as *mut u64).write_volatile(1) };
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
        });
        for _ in 0..ROUNDS {
            moving::disarm_all();
            let (begin, used) = (Instant::now(), cpu());
            let report = moving::arm(&[m]);
            let per_gib = 1e3 * (1_u64 << 30) as f64 / report.armed.0.max(1) as f64;
            marks.push(begin.elapsed().as_secs_f64() * per_gib);
            own.push((cpu() - used) * per_gib);
        }
        stop.store(true, Ordering::Relaxed);
    });
    moving::disarm_all();
    let least = marks.iter().copied().fold(f64::INFINITY, f64::min);
    println!("bench: next-touch/marking-{gib}gib-cpu {:.3} ms/GiB", median(own));
    println!("bench: next-touch/marking-{gib}gib-with-a-writer {:.3} ms/GiB", median(marks));
    println!("bench: next-touch/marking-{gib}gib-with-a-writer-least {least:.3} ms/GiB");
    gone(m);
}

fn main() {
    // A process has one mover, and that one way to bring pages: the benchmark calls itself for the other.
    let alone = std::env::var_os("BENCH_SINGLE_PAGE").is_some();
    let options = Options {
        pretend_nodes: Some(2),
        mechanism: Some(Mechanism::UserFault),
        fault_around: alone.then_some(Bytes(PAGE as u64)),
        ..Options::default()
    };
    let started = moving::start(&options);
    if started.mechanism != Mechanism::UserFault {
        return println!("skipped: {:?}", started.reasons);
    }
    if alone {
        single();
    } else {
        sweep();
        marking(1 << 30);
        marking(4 << 30);
        let me = std::env::current_exe().expect("the benchmark's own path");
        let child = std::process::Command::new(me).env("BENCH_SINGLE_PAGE", "1").status();
        assert!(child.is_ok_and(|s| s.success()));
    }
    let c = moving::counters();
    assert!(c.arms > 0 && c.faults > 0 && c.copied > Bytes::ZERO);
    println!("arms {}, faults {}, copied {}", c.arms, c.faults, c.copied);
}
