//! Disarming: untouched pages go back to their places, and stay on their nodes.

use homenode_model::{Bytes, Ns};
use homenode_sys::call::yield_now;
use homenode_sys::memory::{self, Protection};
use homenode_sys::uffd::Uffd;
use homenode_sys::{HUGE, PAGE, Span, call, numa};

use super::fault::{PATIENCE, copy_from_shadow, note_change, take_back, unprotect};
use super::lock::{self, Locked};
use super::mechanism::Mechanism;
use super::pieces::{self, Piece};
use super::shadow::{discard_shadow, free_stale};
use super::state::{self, TAKE_BACK, count};
use super::table::{self, BLOCK, Block, PageMask, Word};
use super::{events, homes};
use std::sync::atomic::Ordering;

/// Disarms the armed, untouched pages of `span`. They stay on their nodes.
pub fn disarm(span: Span) {
    let whole = span.outer(PAGE);
    // A thread that is arming has no pieces yet, but owns the blocks.
    let idle = || Block::all(whole).all(|b| is_idle(b, whole));
    if idle() {
        return;
    }
    state::in_front_end(|| {
        if let Some(lock) = Locked::unless(idle) {
            part(&lock, whole);
        }
    });
}

/// Whether no page of the block that `span` touches is armed, registered or being worked on.
fn is_idle(block: Block, span: Span) -> bool {
    let word = block.word();
    (word.armed() | word.marked()) & block.pages_touched(span) == 0 && !word.busy()
}

/// As [`disarm`], for all memory.
pub fn disarm_all() {
    // A thread that is arming has no pieces yet, but has the lock.
    if !pieces::any() && lock::nobody_arms() {
        return;
    }
    if let Some(lock) = Locked::new() {
        everything(&lock);
    }
}

/// As [`disarm_all`], under the lock.
pub fn everything(lock: &Locked) {
    part(lock, Span { start: 0, end: usize::MAX & !(PAGE - 1) });
}

fn part(lock: &Locked, span: Span) {
    while let Some(piece) = pieces::take(lock, span) {
        let inside = piece.span.cut(span);
        // There was room for the piece a moment ago. If there is no room for a second part, that
        // part is disarmed, too.
        let before = Span { start: piece.span.start, end: inside.start };
        let after = Span { start: inside.end, end: piece.span.end };
        for rest in [before, after] {
            if !rest.is_empty() && !pieces::add(lock, Piece { span: rest, ..piece }) {
                give_back(&Piece { span: rest, ..piece });
            }
        }
        give_back(&Piece { span: inside, ..piece });
    }
}

/// Whether memory may be armed now. Costs one load.
pub fn may_be_armed() -> bool {
    pieces::any()
}

/// Bytes that are armed now: what the last [`settle`] left, or less.
pub fn armed() -> Bytes {
    let Some(lock) = Locked::new().filter(|_| pieces::any()) else { return Bytes::ZERO };
    let all = (0..).map_while(|place| pieces::at(&lock, place));
    Bytes(all.map(|piece| armed_in(piece.span) as u64).sum())
}

/// Number of armed bytes of a span.
pub fn armed_in(span: Span) -> usize {
    let pages = Block::all(span).map(|b| (b.word().armed() & b.pages_in(span)).count_ones() as usize);
    pages.sum::<usize>() * PAGE
}

/// Unregisters memory all of which has been touched. Call it while the team sleeps.
pub fn settle() {
    if !pieces::any() {
        return;
    }
    if let Some(lock) = Locked::new() {
        let mut place = 0;
        while let Some(piece) = pieces::at(&lock, place) {
            let touched = Block::all(piece.span).all(|b| b.word().armed() & b.pages_touched(piece.span) == 0);
            if touched && pieces::take(&lock, piece.span).is_some() {
                give_back(&piece);
            } else {
                place += 1;
            }
        }
    }
}

/// Gives a piece back to the program as it was.
fn give_back(piece: &Piece) {
    match (state::chosen(), state::uffd()) {
        (Mechanism::UserFault, Some(uffd)) => {
            let mut whole = true;
            // Page by page takes long, so others wait for at most 2 MiB of it.
            for chunk in piece.span.pieces(HUGE) {
                whole &= give_back_chunk(uffd, chunk);
            }
            if let (true, Some(policy)) = (whole, piece.policy) {
                let _ = numa::set_policy(piece.span, &policy);
            }
        }
        _ => make_accessible(piece.span),
    }
}

/// Calls `f` with each maximal stretch of pages that `choose` takes from the span's claimed blocks.
fn stretches(span: Span, choose: impl Fn(Block, Word) -> PageMask, mut f: impl FnMut(Span)) {
    let mut open = Span::EMPTY;
    for block in Block::all(span) {
        for run in block.runs(choose(block, block.word())) {
            if open.end == run.start {
                open.end = run.end;
            } else {
                if !open.is_empty() {
                    f(open);
                }
                open = run;
            }
        }
    }
    if !open.is_empty() {
        f(open);
    }
}

/// Blocks of a chunk.
const BLOCKS: usize = HUGE / BLOCK;

/// Whether all of the chunk still belonged to the mover.
fn give_back_chunk(uffd: &Uffd, chunk: Span) -> bool {
    let deadline = call::now() + PATIENCE;
    loop {
        match try_give_back(uffd, chunk) {
            Some(whole) => return whole,
            None if call::now() > deadline => return false,
            None => {
                events::wait();
                yield_now();
            }
        }
    }
}

/// `None`: the mappings are changing, and the rest is still armed.
fn try_give_back(uffd: &Uffd, chunk: Span) -> Option<bool> {
    let mut whole = true;
    let mut left: [PageMask; BLOCKS] = [0; BLOCKS];
    for (block, left) in Block::all(chunk).zip(&mut left) {
        let (word, pages) = (block.claim(), block.pages_in(chunk));
        if word.stale() > 0 {
            block.keep(free_stale(block, word));
        }
        if events::pending() {
            // The program may have given up the shadow's contents by now: that event comes first.
            *left = word.armed() & pages;
            continue;
        }
        whole &= word.marked() & pages == pages;
        for run in block.runs(word.armed() & pages) {
            let rest =
                if TAKE_BACK.load(Ordering::Relaxed) { take_back(uffd, run) } else { move_back(uffd, run) };
            *left |= block.pages_in(rest);
            count(&state::RETURNED, (run.len() - rest.len()) as u64);
        }
    }
    if chunk.len() == HUGE && left == [0; BLOCKS] {
        // Only the page table is left. The kernel frees it with 2 MiB that are given up in one
        // call.
        discard_shadow(chunk);
    }
    for (block, left) in Block::all(chunk).zip(left) {
        let (word, pages) = (block.word(), block.pages_in(chunk) & !left);
        for run in block.runs(word.marked() & pages) {
            // SAFETY: every page with contents is back.
            let _ = unsafe { uffd.unregister(run) };
        }
        block.release(word.with_armed(word.armed() & !pages).with_marked(word.marked() & !pages));
    }
    note_change();
    left.iter().all(|l| *l == 0).then_some(whole)
}

/// Puts the pages back with their mapping. Returns the rest. The armed pages of a block may have
/// come from several mappings, and be in several.
fn move_back(uffd: &Uffd, span: Span) -> Span {
    let shadow = Span::new(table::shadow(span.start), span.len());
    if span.len() > PAGE && !memory::is_one_mapping(shadow) {
        let half = span.start + span.pages() / 2 * PAGE;
        let rest = move_back(uffd, Span { end: half, ..span });
        if !rest.is_empty() {
            return Span { end: span.end, ..rest };
        }
        return move_back(uffd, Span { start: half, ..span });
    }
    // SAFETY: whoever touches the pages faults and waits, for the blocks are claimed; no page of
    // the span is there, so nothing is lost with the mapping that is replaced. The shadow's mapping
    // stays.
    let moved = events::own(span, || unsafe { memory::move_leaving_mapping(shadow, span.start) });
    if moved.is_ok() { Span::EMPTY } else { copy_from_shadow(uffd, span) }
}

fn make_accessible(span: Span) {
    for block in Block::all(span) {
        block.claim();
    }
    let inside = |b: Block, w: Word| w.armed() & b.pages_in(span);
    for (read_only, access) in [(false, Protection::ReadWrite), (true, Protection::Read)] {
        let choose = |b: Block, w: Word| inside(b, w) & if read_only { w.marked() } else { !w.marked() };
        stretches(span, choose, |span| {
            count(&state::RETURNED, span.len() as u64);
            unprotect(span, access);
        });
    }
    for block in Block::all(span) {
        let (word, pages) = (block.word(), block.pages_in(span));
        block.release(word.with_armed(word.armed() & !pages).with_marked(word.marked() & !pages));
    }
    note_change();
}

/// Restores huge pages that arming has split: those without armed or registered pages, whose pages
/// are all on one node. Call it while the team sleeps. Runs for about `cap`, some 0.4 ms for each.
/// Returns whether there are more.
pub fn restore_huge_pages(cap: Ns) -> bool {
    if !table::any_split() {
        return false;
    }
    let begin = call::now();
    let Some(_lock) = Locked::new() else { return true };
    let mut more = false;
    for unit in table::split_units() {
        if Block::all(unit).any(|b| !is_idle(b, unit)) {
            continue;
        }
        if call::now() - begin > cap {
            more = true;
            break;
        }
        // A huge page with pages on several nodes stays split.
        table::forget_split(unit);
        if has_one_home(unit) && memory::collapse(unit).is_ok() {
            count(&state::COLLAPSED, 1);
        }
    }
    more
}

fn has_one_home(unit: Span) -> bool {
    const PAGES: usize = HUGE / PAGE;
    let (pages, mut found) = (std::array::from_fn::<_, PAGES, _>(|i| unit.start + i * PAGE), [None; PAGES]);
    homes::homes(&pages, &mut found);
    found[0].is_some() && found.iter().all(|h| *h == found[0])
}
