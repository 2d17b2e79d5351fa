//! `mremap` of a range that arming has left in several mappings.
//!
//! When a part of a mapping is armed, the kernel gives that part's page tables an owner of its own
//! (an `anon_vma`). It never joins the part with its neighbours again, although nothing else
//! differs. The kernel remaps one mapping at a time and answers `EFAULT` for several. So homenode
//! makes the program's call part by part.

use homenode_sys::memory::{self, Protection};
use homenode_sys::{PAGE, Span, maps};

use super::lock::Locked;
use super::mechanism::Mechanism;
use super::{disarm, state};

/// Most mappings of a range.
const MOST: usize = 4096;

/// Moves `old` to `to`, or to any free place, with a new length of `bytes`. Returns the new
/// address. `stays`: the old mappings stay, without their pages. `None`: the real function should
/// be called, because the range is one mapping, its mappings differ, or there is no room.
pub fn remap_in_parts(old: Span, bytes: usize, to: Option<usize>, stays: bool) -> Option<usize> {
    let bytes = bytes.checked_next_multiple_of(PAGE).filter(|b| *b > 0)?;
    let mapped = (old.start.is_multiple_of(PAGE) && !old.is_empty()).then(|| old.outer(PAGE))?;
    if state::chosen() == Mechanism::None {
        return None;
    }
    // Nobody splits the range further meanwhile.
    let lock = Locked::new()?;
    disarm::everything(&lock);
    let (parts, access) = parts(mapped)?;
    let target = match to {
        Some(to) if to.is_multiple_of(PAGE) && !Span::new(to, bytes).overlaps(mapped) => to,
        Some(_) => return None,
        None => memory::map(bytes, access).ok()?.start,
    };
    if to.is_some() {
        // The target's mappings are replaced, as the caller asked.
        // SAFETY: the caller asked for it.
        unsafe { memory::unmap(Span::new(target, bytes)).ok()? };
        let fresh = memory::map(bytes, access).ok()?;
        // SAFETY: fresh memory that nobody knows, to where nothing is.
        unsafe { memory::move_mapping(fresh, target).ok()? };
    }
    for part in parts {
        let offset = part.start - mapped.start;
        let part = part.cut(Span::new(mapped.start, bytes));
        if part.is_empty() {
            continue;
        }
        // SAFETY: the caller gives the old range up, or its pages, for the new one, which is its
        // own; each part goes to its place there.
        let moved = unsafe {
            match stays {
                true => memory::move_leaving_mapping(part, target + offset),
                false => memory::move_mapping(part, target + offset),
            }
        };
        if moved.is_err() {
            // A half of the range has moved: the rest is copied.
            // SAFETY: both ranges are mapped, the caller's, and of this length.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    part.start as *const u8,
                    (target + offset) as *mut u8,
                    part.len(),
                );
                let _ = if stays { memory::discard(part) } else { memory::unmap(part) };
            }
        }
    }
    if bytes < mapped.len() {
        // SAFETY: the end of the old range, which the caller gives up.
        let _ = unsafe { memory::unmap(Span { start: mapped.start + bytes, end: mapped.end }) };
    }
    Some(target)
}

/// The mappings of a range, if they are several, without a hole, and all private, anonymous and
/// alike.
fn parts(range: Span) -> Option<(Vec<Span>, Protection)> {
    let (mut parts, mut access, mut at) = (Vec::with_capacity(64), None, range.start);
    let mut alike = true;
    maps::each(|m| {
        let part = m.span.cut(range);
        if !part.is_empty() {
            let this = match (m.read, m.write) {
                (true, true) => Some(Protection::ReadWrite),
                (true, false) => Some(Protection::Read),
                _ => None,
            };
            alike &= part.start == at && m.is_private_anonymous() && this.is_some();
            alike &= access.is_none() || access == this;
            (at, access) = (part.end, this);
            parts.push(part);
        }
        alike && parts.len() <= MOST && m.span.end < range.end
    })
    .ok()?;
    (alike && at == range.end && parts.len() > 1).then_some((parts, access?))
}
