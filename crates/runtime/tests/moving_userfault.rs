//! Moving by `Mechanism::UserFault`, with two pretended nodes.

use homenode_model::{Bytes, Ns};
use homenode_runtime::moving::{self, Manner, Mechanism, Span};
use homenode_sys::memory::{Protection, map_aligned, prefer_huge};
use homenode_sys::{HUGE, PAGE, maps};

#[path = "moving/cases.rs"]
mod cases;

const MECHANISM: Mechanism = Mechanism::UserFault;

/// Mappings that a range lies in.
fn mappings(range: Span) -> usize {
    let mut n = 0;
    maps::each(|m| {
        n += usize::from(m.span.overlaps(range));
        true
    })
    .unwrap();
    n
}

/// The kernel joins what arming has split: the program's own mremap of it goes well.
#[test]
fn a_mapping_is_one_again_after_a_part_of_it_was_armed() {
    let Some(_one) = cases::ready() else { return };
    let m = cases::Memory::new(2 * HUGE);
    let part = |first: usize, pages: usize| Span::new(m.0.start + first * PAGE, pages * PAGE);
    assert_eq!(mappings(m.0), 1);
    for (round, parts) in [[part(3, 40), part(100, 64)], [part(16, 2), part(510, 4)]].into_iter().enumerate()
    {
        parts.iter().for_each(|p| assert_eq!(moving::arm(&[*p]).armed, p.bytes()));
        assert!(mappings(m.0) > 1);
        // One part is touched, the other goes back untouched.
        assert_eq!(m.read((parts[round].start - m.0.start) / PAGE), parts[round].start);
        moving::disarm_all();
        assert_eq!(mappings(m.0), 1, "round {round}");
        assert_eq!(m.wrong(), 0);
    }
}

/// Pages that this process has in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024 / PAGE as u64
}

/// The shadow of a page that came alone is freed with others of its block, or with none if too many
/// wait.
#[test]
fn pages_that_come_alone_cost_little_memory() {
    let Some(_one) = cases::ready() else { return };
    let m = cases::Memory::new(16 << 20);
    prefer_huge(m.0, false).unwrap();
    let before = resident();
    for round in 0..3 {
        let report = moving::arm_as(&[m.0], Manner::Alone);
        assert!(report.armed > Bytes::ZERO, "{report:?}");
        // One page of each block stays armed.
        for page in (0..m.0.pages()).filter(|p| p % 16 != 7 + round) {
            assert_eq!(m.read(page), m.0.start + page * PAGE);
        }
        let now = resident();
        assert!(now < before + 1024 + 400, "{now} pages, {before} before");
    }
    moving::disarm_all();
    assert_eq!(m.wrong(), 0);
    let now = resident();
    assert!(now < before + 400, "{now} pages, {before} before");
}

/// A whole GiB inside of a mapping goes to the shadow in one step.
#[test]
fn a_whole_gib_is_armed_and_comes_back() {
    const GIB: usize = 1 << 30;
    /// One page in this many has contents.
    const EACH: usize = 61 * PAGE;
    let Some(_one) = cases::ready() else { return };
    let all = map_aligned(2 * GIB + 16 * PAGE, GIB, Protection::ReadWrite).unwrap();
    let m = Span { start: all.start + GIB - 3 * PAGE, end: all.start + 2 * GIB + 5 * PAGE };
    prefer_huge(all, false).unwrap();
    let split = mappings(all);
    let touch = |at: usize, times: u64| {
        let word = at as *mut u64;
        // SAFETY: this test's memory.
        unsafe {
            assert_eq!(word.read_volatile(), if times == 0 { 0 } else { at as u64 + times });
            word.write_volatile(at as u64 + times + 1);
        }
    };
    (m.start..m.end).step_by(EACH).for_each(|at| touch(at, 0));
    for round in 0..3 {
        assert_eq!(moving::arm(&[m]).armed, m.bytes());
        // Some are touched, the others go back.
        let touched = m.start + GIB / 4 * round;
        (touched..m.end).step_by(EACH * 8).for_each(|at| {
            let at = m.start + (at - m.start) / EACH * EACH;
            // SAFETY: this test's memory.
            let now = unsafe { (at as *const u64).read_volatile() };
            assert_eq!(now, at as u64 + 1 + round as u64);
        });
        moving::disarm_all();
        (m.start..m.end).step_by(EACH).for_each(|at| touch(at, 1 + round as u64));
    }
    assert_eq!(mappings(all), split);
    let held = moving::before_free(all);
    // SAFETY: nobody uses it any more.
    unsafe { homenode_sys::memory::unmap(all).unwrap() };
    moving::retire(held);
}

/// Huge pages of a range.
fn huge(range: Span) -> usize {
    let mut n = 0;
    maps::huge_units(range, |_| n += 1).unwrap();
    n
}

/// What arming has split is a huge page again once all of it has one home, also where a single page
/// was armed.
#[test]
fn huge_pages_come_back() {
    let Some(_one) = cases::ready() else { return };
    let units = 6;
    let m = cases::Memory::huge(units * HUGE);
    if maps::huge_units(m.0, |_| {}).is_err() || huge(m.0) < units || !moving::can_make_huge_pages() {
        return println!("skipped: no huge pages, or none can be made");
    }
    let unit = |n: usize| Span::new(m.0.start + n * HUGE, HUGE);
    let touch = |span: Span| span.pieces(PAGE).for_each(|p| _ = m.read((p.start - m.0.start) / PAGE));
    let restore = || {
        moving::settle();
        assert!(!moving::restore_huge_pages(Ns(1_000_000_000)));
    };
    let collapsed = || moving::counters().collapsed;
    // Whole; a page alone; two nodes; not touched to the end; not at all.
    let before = collapsed();
    assert_eq!(moving::arm(&[unit(0)]).armed, unit(0).bytes());
    assert_eq!(
        moving::arm_as(&[Span::new(unit(1).start + 7 * PAGE, PAGE)], Manner::Alone).armed.0,
        PAGE as u64
    );
    [2, 3].iter().for_each(|n| assert_eq!(moving::arm(&[unit(*n)]).armed, unit(*n).bytes()));
    assert_eq!(huge(m.0), 2);
    cases::on_node(0, || {
        [unit(0), unit(1)].into_iter().for_each(touch);
        touch(Span::new(unit(2).start, HUGE / 2));
        touch(Span::new(unit(3).start, HUGE / 2));
    });
    cases::on_node(1, || touch(Span::new(unit(2).start + HUGE / 2, HUGE / 2)));
    restore();
    assert_eq!((collapsed() - before, huge(unit(0)), huge(unit(1)), huge(m.0)), (2, 1, 1, 4));
    // The rest of the fourth goes back untouched: then it is of the first node altogether, too.
    moving::disarm_all();
    restore();
    assert_eq!((collapsed() - before, huge(unit(3)), huge(unit(2))), (3, 1, 0));
    // What is armed a second time before it came back is still known to have been one.
    moving::arm(&[unit(4)]);
    cases::on_node(1, || touch(Span::new(unit(4).start, HUGE / 2)));
    moving::settle();
    moving::arm(&[Span::new(unit(4).start, HUGE / 2)]);
    cases::on_node(1, || touch(unit(4)));
    restore();
    assert_eq!((collapsed() - before, huge(unit(4))), (4, 1));
    assert_eq!(m.wrong(), 0);
}
