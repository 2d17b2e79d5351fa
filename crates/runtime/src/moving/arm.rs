//! Arming: the next toucher of these pages gets them.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;

use homenode_model::Bytes;
use homenode_sys::memory::{self, Access, map};
use homenode_sys::numa::{self, MemoryPolicy};
use homenode_sys::uffd::{Uffd, Watch};
use homenode_sys::{Error, HUGE, PAGE, Result, Span, call, maps};

use super::pieces::{self, Piece};
use super::state::{self, Locked, count};
use super::table::{self, BLOCK, BLOCKS, Block, LEAF, Pages, Word};
use super::{ArmReport, Manner, Mechanism, Why, disarm, events, fault, inflight, pinning, signals};

impl ArmReport {
    fn skip(&mut self, why: Why, bytes: usize) {
        self.skipped[why as usize] += Bytes(bytes as u64);
    }
    fn fail(&mut self, error: Error, bytes: usize) {
        self.error = Some(error);
        self.skip(Why::Failed, bytes);
    }
}

/// Whether [`Manner::Stays`] is possible: the pages themselves can be put back.
pub fn can_stay() -> bool {
    match state::mechanism() {
        Mechanism::UserFault => state::TAKE_BACK.load(Ordering::Relaxed),
        Mechanism::Protect | Mechanism::CopyRemap => true,
        Mechanism::None => false,
    }
}

/// Arms the whole pages of these spans, skipping what must not be. From any thread but not in a signal handler; all
/// threads may go on touching the memory.
pub fn arm(spans: &[Span]) -> ArmReport {
    arm_as(spans, Manner::Around)
}

/// As [`arm`], to be taken in this manner. In a block of which other pages are armed to go to their toucher, these do so, too.
pub fn arm_as(spans: &[Span], manner: Manner) -> ArmReport {
    let begin = call::now();
    let mut report = ArmReport::default();
    let all: usize = spans.iter().map(|s| s.len()).sum();
    let stack = own_stack();
    match Locked::new() {
        _ if state::mechanism() == Mechanism::None => report.skip(Why::Off, all),
        None => report.skip(Why::InFlight, all),
        Some(_) if manner == Manner::Stays && !can_stay() => report.skip(Why::Off, all),
        Some(lock) => arm_locked(&lock, spans, stack, manner, &mut report),
    }
    if report.armed != Bytes::ZERO {
        count(&state::ARMS, 1);
        count(&state::ARMED, report.armed.0);
    }
    report.took = call::now() - begin;
    report
}

fn arm_locked(lock: &Locked, spans: &[Span], stack: Span, manner: Manner, report: &mut ArmReport) {
    let pages: usize = spans.iter().map(|s| s.inner(PAGE).len()).sum();
    let all: usize = spans.iter().map(|s| s.len()).sum();
    report.skip(Why::Partial, all - pages);
    if !signals::are_ours() {
        return report.skip(Why::Off, pages);
    }
    let changes = inflight::changes();
    let plan = match Plan::make(lock, spans) {
        Ok(plan) => plan,
        Err(e) => return report.fail(e, pages),
    };
    // After the mappings, among which may be a device's.
    if !may_copy(lock, &plan.fixed) {
        return report.skip(Why::Pinning, pages);
    }
    report.skip(Why::NotAnonymous, pages - plan.bytes());
    for candidate in plan.candidates {
        if candidate.span.overlaps(stack) {
            report.skip(Why::Stack, candidate.span.len());
        } else if candidate.not == Some(Why::Inaccessible) {
            // Protected blocks, or the program's own doing.
            let ours = armed_in(candidate.span);
            report.skip(Why::Armed, ours);
            report.skip(Why::Inaccessible, candidate.span.len() - ours);
        } else if let Some(why) = candidate.not {
            report.skip(why, candidate.span.len());
        } else {
            for span in candidate.span.pieces(LEAF) {
                let (writable, huge) = (candidate.writable, plan.huge);
                match Block::make(span.start) {
                    _ if state::chosen() == Mechanism::UserFault && pinning::found().is_some() => {
                        report.skip(Why::Pinning, span.len());
                    }
                    Ok(first) => Arming { lock, span, first, writable, report, huge, changes, manner }.run(),
                    Err(e) => report.fail(e, span.len()),
                }
            }
        }
    }
    // What pins memory came in between: nothing is armed by copying any more.
    if state::chosen() == Mechanism::UserFault && pinning::found().is_some() {
        may_copy(lock, &plan.fixed);
    }
}

/// The calling thread's stack; the initial thread's has its own name in the mappings.
fn own_stack() -> Span {
    // SAFETY: the attributes are initialised by pthread_getattr_np before they are read, and destroyed after.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if call::thread_id() as u32 == std::process::id()
            || libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0
        {
            return Span::EMPTY;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let got = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        if got == 0 { Span::new(low as usize, size) } else { Span::EMPTY }
    }
}

/// Bytes of a span that are armed.
fn armed_in(span: Span) -> usize {
    let pages = Block::all(span).map(|b| (b.word().armed() & b.pages_in(span)).count_ones() as usize);
    pages.sum::<usize>() * PAGE
}

/// Whether copying is safe, or the mechanism does not copy.
fn may_copy(lock: &Locked, fixed: &maps::Fixed) -> bool {
    let nothing_pins = match state::chosen() {
        // Descriptors are looked at when the pages have gone.
        Mechanism::UserFault => pinning::look(fixed).is_none(),
        _ if state::copies_blocks() => pinning::look(fixed).or_else(pinning::look_at_descriptors).is_none(),
        _ => true,
    };
    if nothing_pins {
        return true;
    }
    disarm::everything(lock);
    state::without_copying()
}

/// A part of a mapping that was asked for.
#[derive(Clone, Copy)]
struct Candidate {
    span: Span,
    writable: bool,
    not: Option<Why>,
}

/// Candidates of one call; what is beyond counts as not anonymous.
const MOST: usize = 1 << 14;

/// Memory that only arming uses.
struct Scratch {
    candidates: [Candidate; MOST],
    /// Pages to arm, by block.
    pages: [Pages; BLOCKS],
}

struct Shared(UnsafeCell<*mut Scratch>);

// SAFETY: only used under the lock (`Locked` is asked for).
unsafe impl Sync for Shared {}

static SCRATCH: Shared = Shared(UnsafeCell::new(std::ptr::null_mut()));

fn scratch(_: &Locked) -> Result<*mut Scratch> {
    // SAFETY: under the lock.
    let p = unsafe { &mut *SCRATCH.0.get() };
    if p.is_null() {
        let memory = map(size_of::<Scratch>().next_multiple_of(PAGE), Access::ReadWrite)?;
        table::note_own(memory);
        *p = memory.start as *mut Scratch;
    }
    Ok(*p)
}

struct Plan<'a> {
    candidates: &'a [Candidate],
    /// There are huge pages on this machine: worth looking for.
    huge: bool,
    /// What of the process's memory is locked or pinned.
    fixed: maps::Fixed,
}

impl<'a> Plan<'a> {
    /// What the mappings have of the spans at the moment.
    fn make(lock: &'a Locked, spans: &[Span]) -> Result<Self> {
        // SAFETY: zeroed memory under the lock; nothing else uses this part of it while the plan lives.
        let candidates = unsafe { &mut (*scratch(lock)?).candidates };
        let (mut n, mut seen) = (0, Seen(0));
        let within = spans.iter().fold(Span { start: usize::MAX, end: 0 }, |all, s| Span {
            start: all.start.min(s.start),
            end: all.end.max(s.end),
        });
        maps::each(|m| {
            if !m.is_private_anonymous() {
                pinning::see_mapping(m.name);
            }
            if !m.span.overlaps(within) || !(m.is_private_anonymous() || m.is_stack()) {
                return true;
            }
            let new = seen.rest_of(m.span);
            for span in spans.iter().map(|s| s.inner(PAGE).cut(new)).filter(|s| !s.is_empty()) {
                if n < MOST {
                    let not = match () {
                        () if m.is_stack() => Some(Why::Stack),
                        () if !m.read => Some(Why::Inaccessible),
                        () => None,
                    };
                    candidates[n] = Candidate { span, writable: m.write, not };
                    n += 1;
                }
            }
            true
        })?;
        let candidates = &mut candidates[..n];
        let fixed = maps::fixed()?;
        if fixed.locked != Bytes::ZERO {
            Self::leave_out_locked(candidates)?;
        }
        Ok(Self { candidates, huge: huge_pages_exist(), fixed })
    }

    fn leave_out_locked(candidates: &mut [Candidate]) -> Result<()> {
        maps::each_with_flags(|span, flags| {
            let not = match () {
                () if flags.locked || flags.not_at_fork => Why::Locked,
                () if flags.grows_down => Why::Stack,
                () => return true,
            };
            candidates.iter_mut().filter(|c| c.span.overlaps(span)).for_each(|c| c.not = Some(not));
            true
        })
    }

    fn bytes(&self) -> usize {
        self.candidates.iter().map(|c| c.span.len()).sum()
    }
}

/// Up to where mappings were told. The kernel writes its list a part at a time: where mappings are joined in between, the next line begins
/// before the end of the last one.
struct Seen(usize);

impl Seen {
    /// What of the next line is news.
    fn rest_of(&mut self, line: Span) -> Span {
        let news = Span { start: line.start.max(self.0), end: line.end };
        self.0 = self.0.max(line.end);
        news
    }
}

/// Whether the machine uses any transparent huge page: looking for them costs 0.3 µs for 2 MiB.
fn huge_pages_exist() -> bool {
    let mut some = false;
    let _ = maps::lines(c"/proc/meminfo", |line| match line.strip_prefix(b"AnonHugePages:") {
        Some(rest) => {
            some = rest.iter().any(|c| matches!(c, b'1'..=b'9'));
            false
        }
        None => true,
    });
    some
}

/// Arming a part of one mapping within one GiB.
struct Arming<'a> {
    lock: &'a Locked,
    span: Span,
    /// The block of its first page.
    first: Block,
    writable: bool,
    report: &'a mut ArmReport,
    huge: bool,
    /// Changes of mappings that the plan knows of.
    changes: usize,
    manner: Manner,
}

impl Arming<'_> {
    fn run(mut self) {
        let pages = match scratch(self.lock) {
            // SAFETY: under the lock; the candidates, which the caller reads, are another part of it.
            Ok(scratch) => unsafe { &mut (*scratch).pages },
            Err(e) => return self.report.fail(e, self.span.len()),
        };
        self.claim(pages);
        self.leave_out_published(pages);
        if self.huge {
            // A page of it is enough to split one.
            let _ = maps::huge_units(self.span.outer(HUGE), table::note_split);
        }
        let armed = match state::chosen() {
            Mechanism::UserFault => self.by_user_faults(pages),
            Mechanism::Protect | Mechanism::CopyRemap => self.by_protection(pages),
            Mechanism::None => 0,
        };
        self.report.armed += Bytes(armed as u64);
    }

    /// Claims all blocks and chooses the pages.
    fn claim(&self, pages: &mut [Pages]) {
        table::claim_all(self.span);
        let span = self.span;
        for (block, pages) in self.first.and_next(span).zip(pages) {
            let word = block.owned();
            if word.stale() > 0 {
                block.keep(fault::free_stale(block, word));
            }
            *pages = block.pages_in(span) & !word.armed() & !block.excluded();
        }
    }

    /// Chooses nothing that the kernel is using, or that has changed.
    fn leave_out_published(&self, pages: &mut [Pages]) {
        let first = self.span.start & !(BLOCK - 1);
        let allowed = inflight::each_in(self.span, |buffer| {
            for block in Block::all(buffer) {
                pages[(block.span().start - first) / BLOCK] &= !block.pages_touched(buffer);
            }
        });
        // An event that is being dealt with may be about this memory as it was before.
        if !allowed || events::pending() || inflight::changed(self.changes, self.span) {
            pages.fill(0);
        }
    }

    /// Calls `arm` with each maximal stretch of chosen pages that have the same mark; pages of stretches for which it says
    /// `false` are no longer chosen.
    fn stretches(
        &mut self,
        pages: &mut [Pages],
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
            let all = if open_marked { Pages::MAX } else { 0 };
            if *chosen == Pages::MAX && open.end == block.span().start && block.owned().marked() == all {
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

    /// Gives the blocks up with what came of it, and says what was left out.
    fn release(&mut self, pages: &[Pages], marks: impl Fn(Pages, Pages) -> Pages) {
        // Nothing was armed of a block that is armed whole now.
        let whole =
            Word::NOTHING.with_marked(marks(0, Pages::MAX)).with_armed(Pages::MAX).with_manner(self.manner);
        for (block, armed) in self.first.and_next(self.span).zip(pages) {
            if *armed == Pages::MAX {
                block.keep(whole);
                continue;
            }
            let word = block.owned();
            let mut new = word.with_marked(marks(word.marked(), *armed));
            self.say_left_out(block, word, *armed);
            if *armed != 0 {
                let manner = match self.manner {
                    Manner::Stays if word.armed() != 0 && !word.stays() => Manner::Alone,
                    manner => manner,
                };
                new = new.with_armed(word.armed() | armed).with_manner(manner);
            }
            block.keep(new);
        }
        table::release_all(self.span);
    }

    /// Why pages of a claimed block, of which this was known before, are left out.
    fn say_left_out(&mut self, block: Block, word: Word, armed: Pages) {
        let bytes = |p: Pages| p.count_ones() as usize * PAGE;
        let (left, excluded) = (block.pages_in(self.span) & !armed, block.excluded());
        self.report.skip(Why::Armed, bytes(left & word.armed()));
        self.report.skip(Why::Excluded, bytes(left & excluded & !word.armed()));
        self.report.skip(Why::InFlight, bytes(left & !excluded & !word.armed()));
    }

    /// Registers, then moves the pages away.
    fn by_user_faults(&mut self, pages: &mut [Pages]) -> usize {
        let Some(uffd) = state::uffd() else {
            pages.fill(0);
            self.release(pages, |old, _| old);
            return 0;
        };
        let armed = self.stretches(pages, |this, span, registered| {
            let done = this.take_away(uffd, span, registered);
            if let Err(e) = done {
                this.report.error = Some(e);
            }
            done.is_ok()
        });
        if armed > 0 && pinning::look_at_descriptors().is_some() {
            self.stretches(pages, |this, span, registered| {
                this.put_back(uffd, span, registered);
                true
            });
            self.report.skip(Why::Pinning, armed);
            pages.fill(0);
            self.release(pages, |old, _| old);
            return 0;
        }
        self.release(pages, |old, armed| old | armed);
        armed
    }

    /// Puts the pages of a stretch that nobody has touched back where they were: the pages themselves, which something may have pinned.
    fn put_back(&self, uffd: &Uffd, span: Span, registered: bool) {
        let back = |part: Span| {
            // SAFETY: whoever touches the pages faults and waits, for the blocks are claimed; none of the part is there, so nothing is
            // lost with the mapping that is replaced. The shadow's mapping stays.
            events::own(part, || unsafe {
                memory::move_leaving_mapping(Span::new(table::shadow(part.start), part.len()), part.start)
            })
        };
        let (most, last) = (Span { end: span.end - PAGE, ..span }, Span { start: span.end - PAGE, ..span });
        let mut entry = [maps::PageEntry(0)];
        // The last one may never have left (see `leave_mapping`).
        let known = maps::page_entries(last.start, &mut entry).is_ok();
        let left = known && !entry[0].present() && !entry[0].swapped();
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
            unsafe { uffd.register(wide, Watch::Missing)? };
            policy = local_policy(wide);
            if !pieces::add(self.lock, Piece { span, policy }) {
                return Err(self.undo(uffd, wide, policy, "keeping account of so many pieces"));
            }
        }
        let shadow = Span::new(table::shadow(span.start), span.len());
        // SAFETY: whoever touches the pages now faults and waits, for the blocks are claimed; then they come back from the
        // shadow, which is empty: every page that ever was there was discarded.
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
        Error { call, on: span, errno: homenode_sys::Errno(libc::ENOMEM) }
    }

    /// Makes the pages inaccessible.
    fn by_protection(&mut self, pages: &mut [Pages]) -> usize {
        let writable = self.writable;
        let armed = self.stretches(pages, |this, span, _| {
            let known = pieces::covers(this.lock, span);
            if table::is_own(span) {
                this.report.error = Some(own_memory(span));
                return false;
            }
            if !known && !pieces::add(this.lock, Piece { span, policy: None }) {
                return false;
            }
            // SAFETY: whoever touches it faults and waits, for the blocks are claimed; our handler makes it accessible.
            let done = unsafe { memory::protect(span, Access::None) };
            if let Err(e) = done {
                this.report.error = Some(e);
                if !known {
                    pieces::take(this.lock, span);
                }
            }
            done.is_ok()
        });
        self.release(pages, |old, armed| if writable { old & !armed } else { old | armed });
        armed
    }
}

/// The runs of a block's `chosen` pages that are all marked or all not, ascending.
#[inline]
fn each_run(block: Block, chosen: Pages, marked: Pages, mut f: impl FnMut(Span, bool)) {
    if chosen == Pages::MAX && (marked == 0 || marked == Pages::MAX) {
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

/// The program has given it up, and homenode's own memory came to lie there.
const fn own_memory(span: Span) -> homenode_sys::Error {
    homenode_sys::Error { call: "arming", on: span, errno: homenode_sys::Errno(libc::EBUSY) }
}

/// Moves the pages of a registered span to `to`, the last one by a call of its own: the mapping that a call empties altogether loses what
/// it shares with its neighbours (its `anon_vma`; mm/mremap.c, dontunmap_complete), and the kernel would never join them again.
/// A whole GiB next to registered memory is a part of a larger mapping by now, and goes in one step (`move_normal_pud`), with one interruption
/// of the other CPUs instead of 512.
///
/// # Safety
/// As [`memory::move_leaving_mapping`].
unsafe fn leave_mapping(span: Span, to: usize) -> Result<()> {
    let most = Span { start: span.start, end: span.end - PAGE };
    let last = Span { start: span.end - PAGE, end: span.end };
    // SAFETY: the caller's promise, for both.
    let leave = |part: Span| {
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
    // Between the two the program may have remapped or unmapped all of it. An event tells, and finds the pages in the shadow, for they are
    // armed; and the last one wherever it is now. An armed page that has never left is found there when it is disarmed.
    let _ = leave(last);
    Ok(())
}

/// A page of a huge page that was split, with the one next to it, which is registered for a moment only. A mapping of one page
/// that loses its page is never joined again (see [`leave_mapping`]), and a huge page lies in one mapping.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_is_told_twice() {
        let mut seen = Seen(0);
        let lines = [(1, 4), (4, 6), (2, 9), (3, 5), (9, 10)].map(|(start, end)| Span { start, end });
        let news: Vec<usize> = lines.into_iter().map(|line| seen.rest_of(line).len()).collect();
        assert_eq!(news, [3, 2, 3, 0, 1]);
    }
}
