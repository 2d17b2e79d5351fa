//! Arms parts of mappings together.
//!
//! The group claims the parts' blocks and takes the pages away, part by part. Then it looks at the
//! process's descriptors, once for all parts, and releases all blocks. Blocks are claimed in the
//! order of their addresses, as by everybody who claims several, so that no cycle of threads waits
//! for one another.

use homenode_model::Bytes;
use homenode_sys::memory::{self, Protection};
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::uffd::{Uffd, WatchedFaults};
use homenode_sys::{Error, HUGE, PAGE, Result, Span, maps};

use super::candidates::{ArmingPlan, Candidate, PARTS, Part, Rooms};
use super::lock::Locked;
use super::mechanism::{Manner, Mechanism};
use super::pieces::{self, Piece};
use super::reports::{ArmReport, Why};
use super::table::{self, BLOCK, BLOCKS, Block, LEAF, PageMask, Word};
use super::{events, fault, inflight, pinning, shadow, state};

/// Blocks that a span touches.
const fn blocks(span: Span) -> usize {
    span.end.div_ceil(BLOCK) - span.start / BLOCK
}

/// See the module.
pub struct Group<'a> {
    lock: &'a Locked,
    candidates: &'a [Candidate],
    rooms: &'a mut Rooms,
    /// Number of parts, and of their blocks.
    parts: usize,
    pages: usize,
    huge: bool,
    /// Changes of mappings that the plan knows of.
    changes: usize,
    manner: Manner,
    report: &'a mut ArmReport,
}

impl<'a> Group<'a> {
    /// An empty group. `changes`: changes of mappings that the plan knows of.
    pub fn new(
        lock: &'a Locked,
        plan: ArmingPlan<'a>,
        changes: usize,
        manner: Manner,
        report: &'a mut ArmReport,
    ) -> Self {
        let ArmingPlan { candidates, rooms, huge, .. } = plan;
        Self { lock, candidates, rooms, parts: 0, pages: 0, huge, changes, manner, report }
    }

    /// Adds a candidate of the plan, in the plan's order.
    pub fn add(&mut self, number: usize) {
        for span in self.candidates[number].span.pieces(LEAF) {
            match Block::make(span.start) {
                Ok(_) => self.add_piece(number, span),
                Err(e) => self.report.fail(e, span.len()),
            }
        }
    }

    fn add_piece(&mut self, number: usize, span: Span) {
        let Candidate { mapping, writable, .. } = self.candidates[number];
        let last = self.parts.checked_sub(1).map(|i| &mut self.rooms.parts[i]);
        if let Some(last) = last.filter(|l| (l.span.end - 1) / BLOCK == span.start / BLOCK) {
            // No block is claimed twice.
            let both = Span { start: last.span.start, end: span.end };
            let joins = last.candidates.1 == number && self.candidates[number - 1].mapping == mapping;
            if joins && last.at + blocks(both) <= BLOCKS {
                (last.span, last.candidates.1) = (both, number + 1);
                self.pages = last.at + blocks(both);
                return;
            }
            self.arm();
        } else if self.parts == PARTS || self.pages + blocks(span) > BLOCKS {
            self.arm();
        }
        let candidates = (number, number + 1);
        self.rooms.parts[self.parts] = Part { span, candidates, at: self.pages, writable };
        self.parts += 1;
        self.pages += blocks(span);
    }

    /// Notes bytes that are not armed.
    pub fn skip(&mut self, why: Why, bytes: usize) {
        self.report.skip(why, bytes);
    }

    /// Arms the added candidates. The group is empty afterwards.
    pub fn arm(&mut self) {
        inflight::choosing(|| match (state::chosen(), state::uffd()) {
            (Mechanism::UserFault, Some(uffd)) => self.arm_by(By::UserFaults(uffd)),
            (Mechanism::Protect | Mechanism::CopyRemap, _) => self.arm_by(By::Protection),
            (Mechanism::UserFault | Mechanism::None, _) => self.each(|mut part, _| part.skip_all(Why::Off)),
        });
        (self.parts, self.pages) = (0, 0);
    }

    fn each(&mut self, mut f: impl FnMut(Arming<'_>, &mut [PageMask])) {
        let Rooms { parts, pages } = &mut *self.rooms;
        for part in &parts[..self.parts] {
            let Ok(first) = Block::make(part.span.start) else { continue };
            let (span, writable) = (part.span, part.writable);
            let asked = &self.candidates[part.candidates.0..part.candidates.1];
            let (lock, huge, changes, manner) = (self.lock, self.huge, self.changes, self.manner);
            let report = &mut *self.report;
            let arming = Arming { lock, span, first, asked, writable, report, huge, changes, manner };
            f(arming, &mut pages[part.at..part.at + blocks(span)]);
        }
    }

    /// Takes all pages away, then checks whether anything may have pinned some of them before.
    fn arm_by(&mut self, by: By) {
        if pinning::found().is_some() {
            return self.each(|mut part, _| part.skip_all(Why::Pinning));
        }
        let mut any = false;
        self.each(|mut part, pages| any |= part.take_all_away(by, pages));
        if any && pinning::look_at_descriptors().is_some() {
            self.each(|mut part, pages| part.put_all_back(by, pages));
        } else {
            self.each(|mut part, pages| part.keep_away(by, pages));
        }
    }
}

/// How pages are taken away.
#[derive(Clone, Copy)]
enum By {
    /// To the shadow; an access to a missing page raises SIGBUS.
    UserFaults(&'static Uffd),
    /// The pages become inaccessible in place.
    Protection,
}

/// Arming a part.
struct Arming<'a> {
    lock: &'a Locked,
    span: Span,
    /// The block of its first page.
    first: Block,
    /// The requested candidates in it.
    asked: &'a [Candidate],
    writable: bool,
    report: &'a mut ArmReport,
    huge: bool,
    changes: usize,
    manner: Manner,
}

impl Arming<'_> {
    /// The requested pages of a block.
    #[inline]
    fn asked(&self, block: Block) -> PageMask {
        self.asked.iter().fold(0, |pages, c| pages | block.pages_in(c.span))
    }

    fn skip_all(&mut self, why: Why) {
        let here = self.asked.iter().map(|c| c.span.cut(self.span).len());
        self.report.skip(why, here.sum());
    }

    /// Claims all blocks and chooses the pages. Leaves out pages that the kernel is using, and
    /// pages that have changed.
    fn claim(&mut self, pages: &mut [PageMask]) {
        table::claim_all(self.span);
        for (block, pages) in self.first.and_next(self.span).zip(pages.iter_mut()) {
            let word = block.owned();
            if word.stale() > 0 {
                block.keep(shadow::free_stale(block, word));
            }
            *pages = self.asked(block) & !word.armed() & !block.excluded();
        }
        self.leave_out_published(pages);
        if self.huge {
            // A page of it is enough to split one.
            let _ = maps::huge_units(self.span.outer(HUGE), table::note_split);
        }
    }

    /// Drops pages that the kernel is using, and pages that have changed.
    fn leave_out_published(&self, pages: &mut [PageMask]) {
        let first = self.span.start & !(BLOCK - 1);
        let allowed = inflight::each_in(self.span, |buffer| {
            for block in Block::all(buffer) {
                pages[(block.span().start - first) / BLOCK] &= !block.pages_touched(buffer);
            }
        });
        // A pending event may be about this memory as it was before.
        if !allowed || events::pending() || inflight::changed(self.changes, self.span) {
            pages.fill(0);
        }
    }

    /// Calls `arm` with each maximal stretch of chosen pages that have the same mark. Pages of
    /// stretches for which it returns `false` are no longer chosen.
    fn stretches(
        &mut self,
        pages: &mut [PageMask],
        mut arm: impl FnMut(&mut Self, Span, bool) -> bool,
    ) -> usize {
        let (mut open, mut open_marked, mut armed) = (Span::EMPTY, false, 0);
        let mut failed = [Span::EMPTY; 16];
        let mut failures = 0;
        let mut flush = |this: &mut Self, span: Span, marked: bool| {
            if span.is_empty() {
            } else if arm(this, span, marked) {
                armed += span.len();
            } else {
                // More than fits: all of them are taken out below by one covering span.
                let at = failures.min(failed.len() - 1);
                let old = failed[at];
                failed[at] = if old.is_empty() { span } else { Span { start: old.start, end: span.end } };
                failures += 1;
            }
        };
        for (block, chosen) in self.first.and_next(self.span).zip(pages.iter()) {
            let all = if open_marked { PageMask::MAX } else { 0 };
            if *chosen == PageMask::MAX && open.end == block.span().start && block.owned().marked() == all {
                open.end += BLOCK;
                continue;
            }
            each_run(block, *chosen, block.owned().marked(), |run, is_marked| {
                if open.end == run.start && open_marked == is_marked {
                    open.end = run.end;
                } else {
                    flush(self, open, open_marked);
                    (open, open_marked) = (run, is_marked);
                }
            });
        }
        flush(self, open, open_marked);
        for span in failed.iter().filter(|s| !s.is_empty()) {
            for (block, chosen) in self.first.and_next(self.span).zip(pages.iter_mut()) {
                *chosen &= !block.pages_touched(*span);
            }
        }
        armed
    }

    /// Releases the blocks with the result, and notes what was left out.
    fn release(&mut self, pages: &[PageMask], marks: impl Fn(PageMask, PageMask) -> PageMask) {
        // Nothing was armed of a block that is armed whole now.
        let whole = Word::NOTHING
            .with_marked(marks(0, PageMask::MAX))
            .with_armed(PageMask::MAX)
            .with_manner(self.manner);
        for (block, armed) in self.first.and_next(self.span).zip(pages) {
            if *armed == PageMask::MAX {
                block.keep(whole);
                continue;
            }
            let word = block.owned();
            let mut new = word.with_marked(marks(word.marked(), *armed));
            self.say_left_out(block, word, *armed);
            if *armed != 0 {
                let manner = if word.armed() == 0 { self.manner } else { both(word, self.manner) };
                new = new.with_armed(word.armed() | armed).with_manner(manner);
            }
            block.keep(new);
        }
        table::release_all(self.span);
    }

    /// Notes why pages of a claimed block are left out. `word`: the block's state before.
    fn say_left_out(&mut self, block: Block, word: Word, armed: PageMask) {
        let bytes = |p: PageMask| p.count_ones() as usize * PAGE;
        let (left, excluded) = (self.asked(block) & !armed, block.excluded());
        self.report.skip(Why::Armed, bytes(left & word.armed()));
        self.report.skip(Why::Excluded, bytes(left & excluded & !word.armed()));
        self.report.skip(Why::InFlight, bytes(left & !excluded & !word.armed()));
    }

    /// Claims the blocks, then takes the pages away. Returns whether any was.
    fn take_all_away(&mut self, by: By, pages: &mut [PageMask]) -> bool {
        self.claim(pages);
        let armed = self.stretches(pages, |this, span, registered| {
            let done = match by {
                By::UserFaults(uffd) => this.take_away(uffd, span, registered),
                By::Protection => this.make_inaccessible(span),
            };
            if let Err(e) = done {
                this.report.error = Some(e);
            }
            done.is_ok()
        });
        self.report.armed += Bytes(armed as u64);
        armed > 0
    }

    /// Marks pages that were taken away as armed.
    fn keep_away(&mut self, by: By, pages: &[PageMask]) {
        match by {
            By::UserFaults(_) => self.release(pages, |old, armed| old | armed),
            By::Protection if self.writable => self.release(pages, |old, armed| old & !armed),
            By::Protection => self.release(pages, |old, armed| old | armed),
        }
    }

    fn put_all_back(&mut self, by: By, pages: &mut [PageMask]) {
        let access = if self.writable { Protection::ReadWrite } else { Protection::Read };
        let back = self.stretches(pages, |this, span, registered| {
            match by {
                By::UserFaults(uffd) => this.put_back(uffd, span, registered),
                By::Protection => fault::unprotect(span, access),
            }
            true
        });
        self.report.armed = Bytes(self.report.armed.0 - back as u64);
        self.report.skip(Why::Pinning, back);
        pages.fill(0);
        self.release(pages, |old, _| old);
    }

    /// Puts the untouched pages of a stretch back in place: the pages themselves, which something
    /// may have pinned.
    fn put_back(&self, uffd: &Uffd, span: Span, registered: bool) {
        let back = |part: Span| {
            // SAFETY: whoever touches the pages faults and waits, for the blocks are claimed; none
            // of the part is there, so nothing is lost with the mapping that is replaced. The
            // shadow's mapping stays.
            events::own(part, || unsafe {
                memory::move_leaving_mapping(Span::new(table::shadow(part.start), part.len()), part.start)
            })
        };
        let (most, last) = (Span { end: span.end - PAGE, ..span }, Span { start: span.end - PAGE, ..span });
        let left = has_left(last);
        for part in [most, last] {
            if !part.is_empty() && (part == most || left) {
                let _ = back(part);
            }
        }
        let policy = if registered { None } else { pieces::take(self.lock, span).and_then(|p| p.policy) };
        self.undo(uffd, span, policy, "");
    }

    fn take_away(&self, uffd: &Uffd, span: Span, registered: bool) -> Result<()> {
        let mut policy = None;
        if table::is_own(span) {
            return Err(own_memory(span));
        }
        let wide = if registered { span } else { with_neighbour(span) };
        if !registered {
            // SAFETY: our handler is there (looked at by the caller).
            unsafe { uffd.register(wide, WatchedFaults::Missing)? };
            policy = local_policy(wide);
            if !pieces::add(self.lock, Piece { span, policy }) {
                return Err(self.undo(uffd, wide, policy, "keeping account of so many pieces"));
            }
        }
        let shadow = Span::new(table::shadow(span.start), span.len());
        // SAFETY: whoever touches the pages now faults and waits, for the blocks are claimed; then
        // they come back from the shadow, which is empty: every page that ever was there was
        // discarded.
        let moved = unsafe { leave_mapping(span, shadow.start) };
        // SAFETY: the shadow's pages are where they are; faults there are the kernel's own.
        let plain = moved.and_then(|()| unsafe { uffd.unregister(shadow) });
        if plain.is_err() {
            if moved.is_ok() {
                // SAFETY: as above, the other way.
                let _ = events::own(span, || unsafe { memory::move_leaving_mapping(shadow, span.start) });
            }
            if !registered {
                pieces::take(self.lock, span);
                self.undo(uffd, wide, policy, "");
            }
        }
        for rest in [Span { start: wide.start, end: span.start }, Span { start: span.end, end: wide.end }] {
            if plain.is_ok() && !rest.is_empty() {
                self.undo(uffd, rest, policy, "");
            }
        }
        plain
    }

    fn undo(&self, uffd: &Uffd, span: Span, policy: Option<MemoryPolicy>, call: &'static str) -> Error {
        // SAFETY: no page of it was taken away.
        let _ = unsafe { uffd.unregister(span) };
        if let Some(policy) = policy {
            let _ = numa::set_policy(span, &policy);
        }
        no_room(call, span)
    }

    fn make_inaccessible(&self, span: Span) -> Result<()> {
        if table::is_own(span) {
            return Err(own_memory(span));
        }
        let known = pieces::covers(self.lock, span);
        if !known && !pieces::add(self.lock, Piece { span, policy: None }) {
            return Err(no_room("keeping account of so many pieces", span));
        }
        // SAFETY: whoever touches it faults and waits, for the blocks are claimed; our handler
        // makes it accessible.
        let done = unsafe { memory::protect(span, Protection::None) };
        if done.is_err() && !known {
            pieces::take(self.lock, span);
        }
        done
    }
}

/// The runs of a block's `chosen` pages that are all marked or all not, ascending.
#[inline]
fn each_run(block: Block, chosen: PageMask, marked: PageMask, mut f: impl FnMut(Span, bool)) {
    if chosen == PageMask::MAX && (marked == 0 || marked == PageMask::MAX) {
        return f(block.span(), marked != 0);
    }
    let (mut a, mut b) = (block.runs(chosen & marked).peekable(), block.runs(chosen & !marked).peekable());
    loop {
        match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return,
            (Some(x), y) if y.is_none_or(|y| x.start < y.start) => f(a.next().unwrap_or(x), true),
            (_, Some(y)) => f(b.next().unwrap_or(y), false),
            (Some(x), None) => f(x, true),
        }
    }
}

/// The manner of a block that has armed pages and gets more. Several objects may lie in it. One of
/// them may wait for its first touches, and a touch of its neighbour must not bring its pages into
/// being.
const fn both(word: Word, more: Manner) -> Manner {
    match more {
        Manner::Stays if word.stays() => Manner::Stays,
        Manner::Around if !word.alone() => Manner::Around,
        _ => Manner::Alone,
    }
}

/// Whether a page of the program's, whose block is claimed, lies in its shadow. It may never have
/// left (see [`leave_mapping`]).
fn has_left(page: Span) -> bool {
    let mut entry = [maps::PageEntry(0)];
    if maps::page_entries(page.start, &mut entry).is_ok() {
        return !entry[0].present() && !entry[0].swapped();
    }
    // The process cannot read /proc: it lies behind `chroot`, for instance. A page that has not
    // left has an empty shadow, which reads as zeros. A page of zeros need not come back: the
    // program reads zeros where no page is.
    let shadow = Span::new(table::shadow(page.start), PAGE);
    let words = (shadow.start..shadow.end).step_by(size_of::<u64>());
    // SAFETY: the shadow is mapped, and belongs to whoever has claimed the block.
    let has_contents = words.into_iter().any(|at| unsafe { (at as *const u64).read_volatile() } != 0);
    if !has_contents {
        // SAFETY: the same; there is nothing in it.
        let _ = unsafe { memory::discard(shadow) };
    }
    has_contents
}

/// The program has given the memory up, and homenode's own memory came to lie there.
const fn own_memory(span: Span) -> homenode_sys::Error {
    homenode_sys::Error { call: "arming", on: span, errno: homenode_sys::Errno(libc::EBUSY) }
}

const fn no_room(call: &'static str, on: Span) -> homenode_sys::Error {
    homenode_sys::Error { call, on, errno: homenode_sys::Errno(libc::ENOMEM) }
}

/// Moves the pages of a registered span to `to`, the last one by a call of its own: the mapping
/// that a call empties altogether loses what it shares with its neighbours (its `anon_vma`;
/// mm/mremap.c, dontunmap_complete), and the kernel would never join them again. A whole GiB next
/// to registered memory is a part of a larger mapping by now, and goes in one step
/// (`move_normal_pud`), with one interruption of the other CPUs instead of 512.
///
/// # Safety
/// As [`memory::move_leaving_mapping`].
unsafe fn leave_mapping(span: Span, to: usize) -> Result<()> {
    let most = Span { start: span.start, end: span.end - PAGE };
    let last = Span { start: span.end - PAGE, end: span.end };
    let leave = |part: Span| {
        // SAFETY: the caller's promise, for both.
        events::own(part, || unsafe { memory::move_leaving_mapping(part, to + (part.start - span.start)) })
    };
    let registered = |page: usize| {
        Block::of(page).is_some_and(|b| b.word().marked() & b.pages_touched(Span::new(page, PAGE)) != 0)
    };
    let in_one_step =
        span.len() == LEAF && (registered(span.start.saturating_sub(PAGE)) || registered(span.end));
    if in_one_step || most.is_empty() {
        return leave(span);
    }
    leave(most)?;
    // Between the two the program may have remapped or unmapped all of it. An event tells, and
    // finds the pages in the shadow, for they are armed; and the last one wherever it is now. An
    // armed page that has never left is found there when it is disarmed.
    let _ = leave(last);
    Ok(())
}

/// A page of a huge page that was split, with the one next to it, which is registered for a moment
/// only. A mapping of one page that loses its page is never joined again (see [`leave_mapping`]),
/// and a huge page lies in one mapping.
fn with_neighbour(span: Span) -> Span {
    let pair = Span::new(span.start & !(2 * PAGE - 1), 2 * PAGE);
    let registered = || Block::all(pair).any(|b| b.owned().marked() & b.pages_in(pair) != 0);
    if span.len() == PAGE && table::is_split(span.start) && !registered() { pair } else { span }
}

/// Sets the policy that gives pages to their toucher; what it was, where it was another.
fn local_policy(span: Span) -> Option<MemoryPolicy> {
    let old = numa::policy_of(span.start).ok()?;
    numa::set_policy(span, &MemoryPolicy::LOCAL).ok().map(|()| old)
}

const _: () = assert!(LEAF.is_multiple_of(HUGE));
