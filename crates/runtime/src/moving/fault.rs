//! The touch of an armed page: the page comes to the toucher's node with the rest of its block.
//!
//! This module runs in signal handlers, with signals from others blocked. It allocates nothing, and
//! takes no lock but the block's own. An owner of a block waits for nothing but the kernel.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use homenode_model::{Bytes, NodeId, Ns};
use homenode_sys::call::yield_now;
use homenode_sys::memory::{self, Protection};
use homenode_sys::signal::HeldSignals;
use homenode_sys::uffd::Uffd;
use homenode_sys::{HUGE, PAGE, Span, call, numa};

use super::events::{self, Copying};
use super::mechanism::Mechanism;
use super::shadow::{discard_shadow, free_shadow};
use super::state::{self, count};
use super::table::{self, BLOCK, Block, PageMask, Word};
use super::{running_stack, touches};

/// Handles a fault at `address`: by SIGBUS if missing pages raise it, by SIGSEGV if blocks are
/// protected. `true`: the access should be repeated. `false`: the fault is not homenode's.
pub extern "C" fn on_fault(address: usize) -> bool {
    let stands_for = stands_for(state::FAULTS.load(Ordering::Relaxed));
    let begin = if stands_for > 0 { call::thread_time() } else { Ns(0) };
    let handled = handle(address);
    if handled {
        count(&state::FAULTS, 1);
        if stands_for > 0 {
            count(&state::IN_HANDLERS, (call::thread_time() - begin).0 * stands_for);
        }
    }
    handled
}

/// Weight of the next timed fault, after `faults` faults: the number of untimed faults that it
/// represents. 0 if the next fault is not timed. Reading a thread's CPU time twice takes a tenth of
/// a fault's work. The period is not a multiple of 16, because the last page of a block takes
/// longer than the others.
const fn stands_for(faults: u64) -> u64 {
    const ALL: u64 = 64;
    const EACH: u64 = 17;
    match faults {
        0..ALL => 1,
        n if n.is_multiple_of(EACH) => EACH,
        _ => 0,
    }
}

fn handle(address: usize) -> bool {
    if events::wait() {
        return true;
    }
    let Some(block) = Block::of(address) else { return false };
    let page = block.pages_touched(Span::new(address & !(PAGE - 1), PAGE));
    let mut wait = call::Wait::default();
    loop {
        let word = block.word();
        if word.busy() {
            wait.a_moment();
            continue;
        }
        let armed = word.armed() & page != 0;
        if !armed && !word.ever() {
            return false;
        }
        // Claims the block in any case: pages that are not armed now may be armed before the next
        // line.
        let Some(word) = block.try_claim() else { continue };
        if events::pending() {
            // The program may have given up the shadow's contents by now: that event comes first.
            block.release(word);
            events::wait();
            return true;
        }
        if word.armed() & page != 0 {
            tell_listener(address);
            let wanted = if word.alone() { page } else { around(page) };
            take(block, word, wanted, state::current_node(), true);
            return true;
        }
        let again = taken_by_another(address, word.marked() & page != 0);
        block.release(word);
        return again;
    }
}

/// The function that learns of touches; 0: there is none.
static LISTENER: AtomicUsize = AtomicUsize::new(0);

/// Has `f` called at each touch of an armed page, with the touched address, by the thread that
/// touches. `f` runs in a signal handler: it neither allocates nor waits, and touches no memory
/// that can be armed.
pub fn listen(f: fn(usize)) {
    LISTENER.store(f as usize, Ordering::Release);
}

fn tell_listener(address: usize) {
    let f = LISTENER.load(Ordering::Acquire);
    if f != 0 {
        // SAFETY: `listen` stored it, as this type.
        let f = unsafe { std::mem::transmute::<usize, fn(usize)>(f) };
        f(address);
    }
}

/// The page of a claimed block is not armed (any more). The access succeeds now, unless the fault
/// was never homenode's.
fn taken_by_another(address: usize, registered: bool) -> bool {
    if registered && state::chosen() == Mechanism::UserFault {
        // The page exists, unless the program gave it up unseen: then it is zero.
        if let Some(uffd) = state::uffd() {
            uffd.zero(Span::new(address & !(PAGE - 1), PAGE));
        }
        return true;
    }
    first_try(address)
}

/// How often pages were taken or disarmed.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Notes a change, after which another thread's fault may be outdated.
pub fn note_change() {
    CHANGES.fetch_add(1, Ordering::SeqCst);
}

/// Whether the calling thread faults there for the first time since the last change anywhere. Only
/// then is another try worthwhile.
fn first_try(address: usize) -> bool {
    static LAST: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
    let me = call::thread_id() as u64;
    let changes = CHANGES.load(Ordering::SeqCst);
    let tried = (address as u64).rotate_left(16) ^ changes.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ me << 1 | 1;
    LAST[(me % 256) as usize].swap(tried, Ordering::Relaxed) != tried
}

/// Brings the armed pages of `buffer` to the caller's node, whole blocks of them.
pub fn bring(buffer: Span) {
    events::wait();
    let idle = |b: &Block| {
        let word = b.word();
        !word.busy() && word.armed() & b.pages_touched(buffer) == 0
    };
    let mut blocks = Block::all(buffer).skip_while(idle).peekable();
    if blocks.peek().is_some() {
        let bring = |block: Block| {
            bring_block(block, block.pages_touched(buffer), PageMask::MAX, state::current_node(), true);
        };
        state::in_front_end(|| blocks.for_each(bring));
    }
}

/// Whether a page is armed.
pub fn is_armed(page: usize) -> bool {
    Block::of(page).is_some_and(|b| b.word().armed() & b.pages_touched(Span::new(page, 1)) != 0)
}

/// Brings one armed page to `node`. If blocks are protected, all pages that come with it.
pub fn bring_page(page: usize, node: NodeId) {
    if let Some(block) = Block::of(page) {
        let pages = block.pages_touched(Span::new(page, 1));
        bring_block(block, pages, pages, node, false);
    }
}

/// How long a thread waits for mappings to settle. They change during a system call and its event.
/// Memory that does not exist at all must not stop a program for ever.
pub const PATIENCE: Ns = Ns(10_000_000_000);

/// Brings `with`, until nothing of `wanted` is armed. `tell`: report it as a touch of `node`.
fn bring_block(block: Block, wanted: PageMask, with: PageMask, node: NodeId, tell: bool) {
    let (mut deadline, mut wait) = (None, call::Wait::default());
    loop {
        events::wait();
        let word = block.word();
        if word.busy() {
            wait.a_moment();
            continue;
        }
        if word.armed() & wanted == 0 {
            return;
        }
        if deadline.is_some_and(|d| call::now() > d) {
            return;
        }
        running_stack::stand();
        {
            let _signals = HeldSignals::new();
            let Some(word) = block.try_claim() else { continue };
            let before = word.armed().count_ones();
            take(block, word, with, node, tell);
            let left = block.word().armed().count_ones().min(before);
            count(&state::PUBLISHED, u64::from(before - left) * PAGE as u64);
        }
        // Repeats, if mappings were changing.
        deadline.get_or_insert_with(|| call::now() + PATIENCE);
        if block.word().armed() & wanted != 0 {
            yield_now();
        }
    }
}

/// Pages that come with one touch.
static AROUND: AtomicU32 = AtomicU32::new((BLOCK / PAGE) as u32);

/// Sets the bytes that come with one touch, from a page to a block.
pub fn set_around(bytes: Bytes) {
    let pages = (bytes.0 as usize / PAGE).clamp(1, BLOCK / PAGE).next_power_of_two();
    AROUND.store(pages as u32, Ordering::Relaxed);
}

/// The pages of a block that come with `page` (one bit).
fn around(page: PageMask) -> PageMask {
    let count = AROUND.load(Ordering::Relaxed);
    let first = page.trailing_zeros() & !(count - 1);
    (((1_u64 << count) - 1) << first) as PageMask
}

/// Takes the armed pages among `wanted`, in a block that the caller has claimed, and releases the
/// block.
fn take(block: Block, word: Word, wanted: PageMask, node: NodeId, tell: bool) {
    match (state::chosen(), state::uffd()) {
        (Mechanism::UserFault, Some(uffd)) => {
            let mut left = 0;
            for run in block.runs(word.armed() & wanted) {
                let stays = word.stays();
                let rest = if stays { take_back(uffd, run) } else { copy(uffd, run) };
                left |= block.pages_in(rest);
                let counter = if stays { &state::RETURNED } else { &state::COPIED };
                count(counter, (run.len() - rest.len()) as u64);
            }
            let stayed = if word.stays() { PageMask::MAX } else { 0 };
            let word = if word.stays() { word } else { free_shadow(block, word, wanted & !left) };
            taken(block, word, wanted & !left, stayed, node, tell);
        }
        _ if word.stays() => {
            for (pages, access) in [
                (word.armed() & !word.marked(), Protection::ReadWrite),
                (word.armed() & word.marked(), Protection::Read),
            ] {
                block.runs(pages).for_each(|span| unprotect(span, access));
            }
            let word = word.with_marked(word.marked() & !word.armed());
            taken(block, word, PageMask::MAX, PageMask::MAX, node, tell);
        }
        _ => take_window(block, word, node, tell),
    }
}

/// Marks the armed pages among `wanted` as touched by `node`. They are on `node` now, except for
/// those that `stayed`.
fn taken(block: Block, word: Word, wanted: PageMask, stayed: PageMask, node: NodeId, tell: bool) {
    let pages = word.armed() & wanted;
    for run in block.runs(pages & !stayed) {
        table::set_homes(run, node.0.min(254) as u8);
    }
    for (pages, stayed) in [(pages & !stayed, false), (pages & stayed, true)] {
        if tell && pages != 0 {
            touches::note(block.span(), pages, node, stayed);
        }
    }
    if pages != 0 {
        note_change();
    }
    block.release(word.with_armed(word.armed() & !pages));
}

/// As [`copy`], and frees the shadow.
#[must_use]
pub fn copy_from_shadow(uffd: &Uffd, run: Span) -> Span {
    let rest = copy(uffd, run);
    discard_shadow(Span { start: run.start, end: rest.start });
    rest
}

/// Copies a run of a claimed block from its shadow. Returns the rest, which stays in the shadow
/// alone: the mappings are changing under the program's own system call. An event will tell how,
/// and must be dealt with first. So the caller releases the block with these pages still armed.
#[must_use]
fn copy(uffd: &Uffd, run: Span) -> Span {
    let Some(_copying) = Copying::begin() else { return run };
    let from = table::shadow(run.start);
    let (mut at, mut page_by_page) = (run.start, false);
    while at < run.end {
        let rest = if page_by_page { Span::new(at, PAGE) } else { Span { start: at, end: run.end } };
        // SAFETY: the shadow of a claimed block: mapped, and nobody else uses it.
        let copied = unsafe { uffd.copy(rest, from + (at - run.start)) };
        at += copied.done;
        match copied.stopped.map(|e| e.0) {
            None => {}
            // A part of the copy is done.
            Some(libc::EAGAIN) if copied.done > 0 => {}
            // The run lies in several mappings, and one call serves one.
            Some(libc::ENOENT | libc::EINVAL) if !page_by_page => page_by_page = true,
            // There is a page already.
            Some(libc::EEXIST) => at += PAGE,
            // The source has no readable page.
            Some(libc::EFAULT) => match uffd.zero(Span::new(at, PAGE)).stopped.map(|e| e.0) {
                None | Some(libc::EEXIST) => at += PAGE,
                Some(_) => break,
            },
            Some(libc::ENOMEM) => {
                // SAFETY: as above.
                at += unsafe { uffd.take_back(Span::new(at, PAGE), from + (at - run.start)) }.done;
                if events::pending() {
                    break;
                }
                yield_now();
            }
            // The mappings are changing, or the page's mapping is gone or elsewhere.
            Some(_) => break,
        }
    }
    Span { start: at, end: run.end }
}

/// Puts the pages themselves back from the shadow, one by one. Returns the rest.
pub fn take_back(uffd: &Uffd, span: Span) -> Span {
    let Some(_copying) = Copying::begin() else { return span };
    let from = table::shadow(span.start);
    let mut at = span.start;
    while at < span.end {
        let rest = Span { start: at, end: span.end };
        // SAFETY: the shadow of claimed blocks: nobody else uses it.
        let moved = unsafe { uffd.take_back(rest, from + (at - span.start)) };
        at += moved.done;
        match moved.stopped.map(|e| e.0) {
            None => {}
            Some(libc::EAGAIN) if moved.done > 0 => {}
            Some(libc::EEXIST) => at += PAGE,
            Some(_) if at >= span.end => {}
            // The page is shared with a child since a fork, in use, or in several mappings: it is
            // copied. Or the mappings are changing.
            Some(_) => {
                if !copy_from_shadow(uffd, Span::new(at, PAGE)).is_empty() {
                    break;
                }
                at += PAGE;
            }
        }
    }
    Span { start: at, end: span.end }
}

/// Blocks of a 2 MiB window.
const WINDOW: usize = HUGE / BLOCK;

/// Takes the armed blocks of a 2 MiB window together, except blocks that others work on. Protected
/// memory comes in such windows.
fn take_window(block: Block, word: Word, node: NodeId, tell: bool) {
    let mut mine: [Option<(Block, Word)>; WINDOW] = [None; WINDOW];
    let window = block.span().outer(HUGE);
    for (place, other) in mine.iter_mut().zip(Block::all(window)) {
        if other.span() == block.span() {
            *place = Some((block, word));
        } else if other.word().armed() != 0 && !other.word().busy() && !other.word().stays() {
            *place = other.try_claim().map(|word| (other, word));
        }
    }
    let mut open = Run { span: Span::EMPTY, read_only: false, node, refused: Refused::none(window) };
    for (block, word) in mine.iter().flatten() {
        for (pages, read_only) in
            [(word.armed() & !word.marked(), false), (word.armed() & word.marked(), true)]
        {
            for span in block.runs(pages) {
                open.extend(span, read_only);
            }
        }
    }
    open.flush();
    let refused = open.refused;
    for (block, word) in mine.into_iter().flatten() {
        let word = word.with_marked(word.marked() & !word.armed());
        taken(block, word, PageMask::MAX, refused.of(block), node, tell);
    }
}

/// Pages of a window that the kernel has not moved.
#[derive(Clone, Copy)]
struct Refused {
    window: Span,
    pages: [PageMask; WINDOW],
}

impl Refused {
    const fn none(window: Span) -> Self {
        Self { window, pages: [0; WINDOW] }
    }

    fn of(&self, block: Block) -> PageMask {
        self.pages[(block.span().start - self.window.start) / BLOCK]
    }

    fn add(&mut self, page: usize) {
        let at = page - self.window.start;
        self.pages[at / BLOCK] |= 1 << (at % BLOCK / PAGE);
    }
}

/// Protected pages that are made accessible in one go.
struct Run {
    span: Span,
    read_only: bool,
    node: NodeId,
    refused: Refused,
}

impl Run {
    fn extend(&mut self, span: Span, read_only: bool) {
        if self.span.end == span.start && self.read_only == read_only {
            self.span.end = span.end;
        } else {
            self.flush();
            (self.span, self.read_only) = (span, read_only);
        }
    }

    fn flush(&mut self) {
        if self.span.is_empty() {
            return;
        }
        let access = if self.read_only { Protection::Read } else { Protection::ReadWrite };
        let copies = state::copies_blocks();
        if copies && copy_and_remap(self.span, access).is_ok() {
            count(&state::COPIED, self.span.len() as u64);
        } else {
            unprotect(self.span, access);
            if !copies && state::pretended() == 0 {
                move_here(self.span, self.node, &mut self.refused);
            }
        }
        self.span = Span::EMPTY;
    }
}

/// Makes memory accessible again that arming had made inaccessible.
pub fn unprotect(span: Span, access: Protection) {
    // SAFETY: as it was before arming. More cannot be done if it fails (no memory for a mapping):
    // the fault repeats.
    let _ = unsafe { memory::protect(span, access) };
}

/// Has the kernel move accessible pages. Notes pages that it has left elsewhere: they are in use or
/// pinned, or the node has no memory.
fn move_here(span: Span, node: NodeId, refused: &mut Refused) {
    /// Pages a call: small enough for a handler's stack.
    const CHUNK: usize = 64;
    for chunk in span.pieces(CHUNK * PAGE) {
        let (mut pages, mut status) = ([0; CHUNK], [numa::PageStatus::UNKNOWN; CHUNK]);
        let n = chunk.pages();
        (0..n).for_each(|i| pages[i] = chunk.start + i * PAGE);
        let (mut moved, mut left) = (0, 0);
        let mut leave = |page| {
            left += PAGE as u64;
            refused.add(page);
        };
        if numa::query(&pages[..n], &mut status[..n]).is_err() {
            // Nobody knows where the pages are.
            pages[..n].iter().for_each(|page| leave(*page));
            count(&state::REFUSED, left);
            continue;
        }
        let mut wanted = 0;
        for i in 0..n {
            if status[i].node().is_some_and(|n| n != node) {
                pages[wanted] = pages[i];
                wanted += 1;
            }
        }
        if wanted > 0 {
            let to = [i32::from(node.0); CHUNK];
            let _ = numa::move_to(&pages[..wanted], &to[..wanted], &mut status[..wanted]);
            // If the kernel did not do all, the statuses of single pages are unreliable.
            let known = numa::query(&pages[..wanted], &mut status[..wanted]).is_ok();
            for (page, status) in pages[..wanted].iter().zip(&status) {
                match status.node() {
                    Some(now) if known && now == node => moved += PAGE as u64,
                    // The page was given up meanwhile, and will come into being anew.
                    None if known => {}
                    _ => leave(*page),
                }
            }
        }
        count(&state::MOVED, moved);
        count(&state::REFUSED, left);
    }
}

/// Copies inaccessible pages of claimed blocks to fresh memory, which replaces them. Changes that
/// others make to the mapping meanwhile are lost: see [`super::MovingOptions::copy_unseen`].
fn copy_and_remap(span: Span, access: Protection) -> homenode_sys::Result<()> {
    let from = Span::new(table::shadow(span.start), span.len());
    let fresh = memory::map(span.len(), Protection::ReadWrite)?;
    // SAFETY: `span` is inaccessible and its blocks are ours, so nobody sees it without its pages:
    // who faults waits. The shadow and the fresh memory are known to us alone. Pages and all they
    // hold are at `span` or on their way back there.
    unsafe {
        let moved = memory::move_leaving_mapping(span, from.start);
        let readable = moved.and_then(|()| memory::protect(from, Protection::ReadWrite));
        if let Err(e) = readable {
            if moved.is_ok() {
                let _ = memory::move_leaving_mapping(from, span.start);
            }
            let _ = memory::unmap(fresh);
            return Err(e);
        }
        std::ptr::copy_nonoverlapping(from.start as *const u8, fresh.start as *mut u8, span.len());
        let mut placed = Ok(());
        if access != Protection::ReadWrite {
            placed = memory::protect(fresh, access);
        }
        let placed = placed.and_then(|()| memory::move_mapping(fresh, span.start));
        if let Err(e) = placed {
            // Back to its former place, unchanged.
            let _ = memory::protect(from, Protection::None);
            let _ = memory::move_leaving_mapping(from, span.start);
            let _ = memory::unmap(fresh);
            return Err(e);
        }
        let _ = memory::discard(from);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_sys::numa::PageStatus;

    /// No machine has it: the kernel refuses to move a page there, as it refuses to move one that
    /// is pinned.
    const NOWHERE: NodeId = NodeId(1000);

    /// Has `node` touch armed pages of a window, and returns what the handler reports: bytes, and
    /// whether they stayed.
    fn touched(window: Span, armed: PageMask, node: NodeId) -> Vec<(usize, bool)> {
        for block in Block::all(window) {
            let word = block.claim();
            block.runs(armed).for_each(|run| {
                // SAFETY: memory of the test's own, which nobody touches before it is taken.
                unsafe { memory::protect(run, Protection::None).unwrap() };
            });
            block.release(word.with_armed(armed));
        }
        let Some(block) = Block::of(window.start) else { panic!("it was made") };
        let word = block.claim();
        take(block, word, PageMask::MAX, node, true);
        assert!(Block::all(window).all(|b| b.word().armed() == 0));
        let mut told = Vec::new();
        touches::drain(|t| told.push((t.span.len(), t.stayed)));
        told
    }

    #[test]
    fn a_page_that_the_kernel_does_not_move_keeps_its_home_and_is_told_to_have_stayed() {
        let window = memory::map_aligned(HUGE, HUGE, Protection::ReadWrite).unwrap();
        let words = || window.pieces(PAGE).map(|page| page.start as *mut usize);
        // SAFETY: memory of this test's own.
        words().for_each(|p| unsafe { p.write(p as usize) });
        let mut status = [PageStatus::UNKNOWN];
        if numa::query(&[window.start], &mut status).is_err() {
            return println!("skipped: this kernel does not say where pages are");
        }
        let Some(home) = status[0].node() else { panic!("{status:?}") };
        Block::make(window.start).unwrap();
        let refused = || state::REFUSED.load(Ordering::Relaxed);
        // Three pages of each block.
        const ARMED: PageMask = 0b1011;
        let bytes = (WINDOW * 3 * PAGE) as u64;
        let told = touched(window, ARMED, NOWHERE);
        assert!(told.iter().all(|(_, stayed)| *stayed), "{told:?}");
        assert_eq!(told.iter().map(|(bytes, _)| *bytes as u64).sum::<u64>(), bytes);
        assert_eq!(refused(), bytes);
        assert!(
            window.pieces(PAGE).all(|page| table::home(page.start).is_none()),
            "a home that it does not have"
        );
        // Those that are where they belong.
        let told = touched(window, ARMED, home);
        assert!(told.iter().all(|(_, stayed)| !*stayed), "{told:?}");
        assert_eq!(refused(), bytes);
        for page in window.pieces(PAGE) {
            let armed = ARMED & 1 << (page.start % BLOCK / PAGE) != 0;
            assert_eq!(table::home(page.start), armed.then_some(home.0 as u8));
        }
        // SAFETY: as above.
        assert!(words().all(|p| unsafe { p.read() } == p as usize));
    }
}
