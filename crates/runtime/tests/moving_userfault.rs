//! Moving by `Mechanism::UserFault`, with two pretended nodes.

use homenode_runtime::moving::{self, Mechanism, Span};
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
