//! How many of the huge pages that arming splits are huge pages again afterwards, where one node
//! has all of each.

use homenode_model::Ns;
use homenode_runtime::moving;
use homenode_sys::memory::{Protection, map_aligned, prefer_huge};
use homenode_sys::{HUGE, PAGE, Span, maps};

use crate::{bind_to, gone, show_since, touch};

const BYTES: usize = 32 * HUGE;
/// Of restoring, at a time.
const CAP: Ns = Ns(10_000_000);

/// Bytes of the mappings of `m` that lie in huge pages.
fn in_huge_pages(m: Span) -> u64 {
    let mut bytes = 0;
    maps::each_with_flags(|mapping, flags| {
        bytes += if mapping.overlaps(m) { flags.huge.0 } else { 0 };
        mapping.start < m.end
    })
    .expect("smaps");
    bytes
}

pub fn run() {
    let m = map_aligned(BYTES, HUGE, Protection::ReadWrite).expect("memory");
    prefer_huge(m, true).expect("huge pages, if there are any");
    touch(m, PAGE);
    let (had, before) = (in_huge_pages(m), moving::counters());
    if had == 0 {
        println!("huge pages restored: skipped, the kernel gives none");
        return gone(m);
    }
    moving::arm(&[m]);
    // One half each, so that no huge page is two nodes'.
    std::thread::scope(|s| {
        for node in 0..2 {
            s.spawn(move || {
                bind_to(node);
                touch(Span::new(m.start + node * BYTES / 2, BYTES / 2), PAGE);
            });
        }
    });
    let split = in_huge_pages(m);
    moving::settle();
    while moving::restore_huge_pages(CAP) {}
    let has = in_huge_pages(m);
    println!("bench: next-touch/huge-pages-restored {:.3} %", 100.0 * has as f64 / had as f64);
    println!("{} MiB in huge pages, {} after all was touched, then {}", had >> 20, split >> 20, has >> 20);
    show_since(&before, "huge pages");
    assert!(split < had, "nothing was split");
    gone(m);
}
