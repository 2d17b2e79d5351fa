//! Which object owns a page in an interval.

use std::collections::BTreeMap;

use super::told::ObjectStay;

/// Bytes of a counted page.
pub const PAGE: u64 = 4096;

/// The owner of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its index in the list of pieces.
    pub piece: usize,
    /// Its bytes in the page.
    bytes: u64,
    /// Whether no other object shared the page in the interval.
    pub sole: bool,
}

/// Whether a piece lives in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It lives during the whole interval.
    Whole,
    /// It begins or ends in the interval.
    Part,
    /// It does not live.
    None,
}

/// The owners of the pages at these places (process, address) in an interval: the object with most
/// bytes in the page, and the later one among equals. `presence` says which pieces live in the
/// interval.
pub fn of(
    pieces: &[ObjectStay],
    presence: impl Fn(&ObjectStay) -> Presence,
    pages: impl Iterator<Item = (u32, u64)>,
) -> BTreeMap<(u32, u64), Owner> {
    const NOBODY: Owner = Owner { piece: usize::MAX, bytes: 0, sole: true };
    // The flag: one of the page's objects so far begins or ends in the interval.
    let mut owners: BTreeMap<(u32, u64), (Owner, bool)> =
        pages.map(|(process, address)| ((process, address / PAGE), (NOBODY, false))).collect();
    for (number, piece) in pieces.iter().enumerate() {
        let presence = presence(piece);
        if presence == Presence::None {
            continue;
        }
        let end = piece.address.saturating_add(piece.bytes);
        let (first, last) = (piece.address / PAGE, end.div_ceil(PAGE));
        for ((_, page), (owner, changes)) in
            owners.range_mut((piece.process, first)..(piece.process, last.max(first)))
        {
            let from = piece.address.max(page * PAGE);
            let bytes = end.min((page + 1).saturating_mul(PAGE)).saturating_sub(from);
            *changes |= presence == Presence::Part;
            owner.sole &= owner.bytes == 0 || !*changes;
            if bytes >= owner.bytes {
                owner.piece = number;
                owner.bytes = bytes;
            }
        }
    }
    let found = owners.into_iter().filter(|(_, (owner, _))| owner.bytes > 0);
    found.map(|(place, (owner, _))| (place, owner)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::ObjectId;

    fn piece(process: u32, address: u64, bytes: u64) -> ObjectStay {
        ObjectStay { process, address, bytes, object: ObjectId(0), from: None, until: None }
    }

    fn pages() -> impl Iterator<Item = (u32, u64)> {
        (0..4).flat_map(|page| [7, 8].map(|process| (process, page * PAGE)))
    }

    #[test]
    fn a_page_belongs_to_whom_most_of_it_belongs() {
        let pieces = [
            piece(7, PAGE, PAGE + 100),
            piece(7, 2 * PAGE + 100, PAGE),
            piece(7, PAGE, PAGE),
            piece(8, 0, 1),
        ];
        let owners = of(&pieces, |_| Presence::Whole, pages());
        let owner = |process, page| owners.get(&(process, page)).map(|o| (o.piece, o.sole));
        let found = [owner(7, 0), owner(7, 1), owner(7, 2), owner(7, 3)];
        assert_eq!(found, [None, Some((2, true)), Some((1, true)), Some((1, true))]);
        assert_eq!((owner(8, 0), owner(8, 1)), (Some((3, true)), None));
    }

    #[test]
    fn what_is_allocated_anew_is_not_alone_and_what_is_gone_is_nobody() {
        let pieces = [piece(7, 0, 2 * PAGE), piece(7, PAGE, PAGE), piece(7, 2 * PAGE, PAGE)];
        let presence = |p: &ObjectStay| match p.address / PAGE {
            0 => Presence::Whole,
            1 => Presence::Part,
            _ => Presence::None,
        };
        let owners = of(&pieces, presence, pages());
        let found: Vec<_> = owners.iter().map(|((_, page), o)| (*page, o.piece, o.sole)).collect();
        assert_eq!(found, [(0, 0, true), (1, 1, false)]);
    }

    #[test]
    fn addresses_at_the_end_of_the_space_are_no_trouble() {
        let pieces = [piece(7, u64::MAX - 10, u64::MAX), piece(7, 5, 0)];
        let owners = of(&pieces, |_| Presence::Whole, [(7, u64::MAX), (7, 0)].into_iter());
        assert_eq!(owners.len(), 1);
    }
}
