//! What next touch costs, with two pretended nodes: pages are really copied. In each round of an
//! interleaved run: plain first touch, then arming and next touch of the same memory. CPU time of
//! the thread; medians of the rounds.
//!
//! Goals: sequential sweep at most 1.1 × first touch, one page at a time at most 3.0 ×, marking at
//! most 1 ms/GiB while others write, peak memory at most 1.1 ×, owners cyclic by 64 KiB: at least
//! 99 % of the pages at their owner, none of 10⁸ updates lost, huge pages huge again where one node
//! has them. Beside sweep and single page: the same by a bare handler, which is the machine's part
//! of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use homenode_model::{Bytes, NodeId};
use homenode_runtime::moving::{self, Mechanism, MovingOptions, MovingTotals, Span};
use homenode_statistics::Sorted;
use homenode_sys::memory::{Protection, map_aligned, move_leaving_mapping, prefer_huge, unmap};
use homenode_sys::{HUGE, PAGE, maps};

mod bare;
mod huge;
mod updates;

const BYTES: usize = 256 << 20;
/// What comes with a touch.
const BLOCK: usize = 64 << 10;
const ROUNDS: usize = 11;

/// CPU time of this thread in seconds.
fn cpu() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

fn fresh(bytes: usize) -> Span {
    let m = map_aligned(bytes, HUGE, Protection::ReadWrite).expect("memory");
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

fn median(list: Vec<f64>) -> f64 {
    Sorted::of(list).upper_median().expect("there are rounds")
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

/// Two threads on two nodes own a block of 64 KiB each in turn: the share of the pages that is its
/// owner's afterwards.
fn cyclic() {
    let m = fresh(BYTES);
    touch(m, PAGE);
    moving::arm(&[m]);
    std::thread::scope(|s| {
        for node in [0, 1] {
            s.spawn(move || {
                bind_to(node);
                (m.start + node * BLOCK..m.end).step_by(2 * BLOCK).for_each(|block| {
                    touch(Span::new(block, BLOCK), PAGE);
                });
            });
        }
    });
    let pages: Vec<usize> = (m.start..m.end).step_by(PAGE).collect();
    let mut homes = vec![None; pages.len()];
    assert!(moving::homes(&pages, &mut homes).is_none());
    let owner = |page: usize| Some(NodeId(((page - m.start) / BLOCK % 2) as u16));
    let right = pages.iter().zip(&homes).filter(|(page, home)| owner(**page) == **home).count();
    println!("bench: next-touch/cyclic-owners {:.3} %", 100.0 * right as f64 / pages.len() as f64);
    gone(m);
}

/// The first CPU of a pretended node, for this thread.
fn bind_to(node: usize) {
    let cpu = (0..4096).find(|cpu| moving::node_of_cpu(*cpu).0 as usize == node).expect("a CPU of the node");
    // SAFETY: a set of CPUs on the stack.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0, "CPU {cpu}");
    }
}

/// How the other thread writes.
#[derive(Clone, Copy)]
enum Writer {
    /// One word of each 64 KiB in turn: it runs undisturbed until it comes to where pages have
    /// gone.
    InOrder,
    /// Words anywhere: it soon waits.
    Scattered,
}

/// Runs `f` while another thread writes to `m`.
fn with_a_writer(m: Span, writer: Writer, f: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    let words = m.len() / size_of::<u64>();
    let step = match writer {
        Writer::InOrder => (BLOCK + 64) / size_of::<u64>(),
        // The golden section.
        Writer::Scattered => (words as f64 * 0.618) as usize | 1,
    };
    // Each on a CPU of its own, wherever the scheduler would have them.
    bind_to(0);
    std::thread::scope(|s| {
        s.spawn(|| {
            bind_to(1);
            let mut at = 0;
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: memory of this program.
                unsafe { (m.start as *mut u64).add(at).write_volatile(1) };
                at = (at + step) % words;
            }
        });
        f();
        stop.store(true, Ordering::Relaxed);
    });
}

/// Milliseconds of CPU time a GiB.
fn per_gib(seconds: f64, bytes: u64) -> f64 {
    seconds * 1e3 * (1_u64 << 30) as f64 / bytes.max(1) as f64
}

/// Marking while another thread writes there: what has no whole GiB moves by 2 MiB, of larger
/// memory most moves by GiB.
fn marking(bytes: usize) {
    let m = fresh(bytes);
    touch(m, PAGE);
    let mark = |writer| {
        let (mut used, mut elapsed) = (vec![], vec![]);
        with_a_writer(m, writer, || {
            for _ in 0..ROUNDS {
                moving::disarm_all();
                let (begin, before) = (Instant::now(), cpu());
                let report = moving::arm(&[m]);
                elapsed.push(per_gib(begin.elapsed().as_secs_f64(), report.armed.0));
                used.push(per_gib(cpu() - before, report.armed.0));
            }
        });
        moving::disarm_all();
        (median(used), median(elapsed))
    };
    let (in_order, took) = mark(Writer::InOrder);
    let (scattered, _) = mark(Writer::Scattered);
    let bare = bare_move(m);
    gone(m);
    let gib = bytes >> 30;
    println!("bench: next-touch/marking-{gib}gib-scattered-writer {scattered:.3} ms/GiB");
    println!("bench: next-touch/marking-{gib}gib-writer-in-order {in_order:.3} ms/GiB");
    println!("{took:.3} ms/GiB elapsed; a bare mremap {bare:.3} ms/GiB of CPU time");
    println!("bench: next-touch/marking-{gib}gib-to-bare-mremap {:.3} x", in_order / bare);
}

/// What the kernel takes to move the page tables of `m` by one call, while another thread writes to
/// other memory and is interrupted for each 2 MiB.
fn bare_move(m: Span) -> f64 {
    let other = fresh(HUGE);
    let to = map_aligned(m.len(), HUGE, Protection::None).expect("address space");
    let mut used = vec![];
    with_a_writer(other, Writer::InOrder, || {
        for _ in 0..ROUNDS {
            let before = cpu();
            // SAFETY: nobody uses this memory.
            unsafe { move_leaving_mapping(m, to.start).expect("move") };
            used.push(per_gib(cpu() - before, m.len() as u64));
            // SAFETY: as above, the other way.
            unsafe { move_leaving_mapping(to, m.start).expect("move back") };
        }
    });
    for known in [other, to] {
        // SAFETY: known to this function alone.
        unsafe { unmap(known).expect("unmap") };
    }
    median(used)
}

/// What was done since `before`; ends the benchmark if that is nothing.
fn show_since(before: &MovingTotals, what: &str) {
    let now = moving::counters();
    let (arms, faults) = (now.arms - before.arms, now.faults - before.faults);
    let copied = Bytes(now.copied.0 - before.copied.0);
    println!("{what}: arms {arms}, faults {faults}, copied {copied}");
    assert!(arms > 0 && faults > 0 && copied > Bytes::ZERO, "{what}: nothing was done");
}

fn main() {
    // A process has one mover, and that one way to bring pages: the benchmark calls itself for the
    // others.
    if std::env::var_os("BENCH_BARE").is_some() {
        return bare::run();
    }
    let alone = std::env::var_os("BENCH_SINGLE_PAGE").is_some();
    let options = MovingOptions {
        pretend_nodes: Some(2),
        mechanism: Some(Mechanism::UserFault),
        fault_around: alone.then_some(Bytes(PAGE as u64)),
        ..MovingOptions::default()
    };
    let started = moving::start(&options);
    if started.mechanism != Mechanism::UserFault {
        return println!("skipped: {:?}", started.reasons);
    }
    if alone {
        single();
    } else {
        sweep();
        cyclic();
        marking(1 << 30);
        marking(4 << 30);
        huge::run();
        updates::run();
        for other in ["BENCH_SINGLE_PAGE", "BENCH_BARE"] {
            let me = std::env::current_exe().expect("the benchmark's own path");
            let child = std::process::Command::new(me).env(other, "1").status();
            assert!(child.is_ok_and(|s| s.success()));
        }
    }
    show_since(&MovingTotals::default(), "in all");
}
