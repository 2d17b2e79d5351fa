//! Events of the kernel about registered memory: the program remapped, gave up or unmapped it by a
//! system call that no front end saw.
//!
//! The caller of such a system call waits until its event is read. So a thread of homenode's does
//! nothing but read events, the *reader*. It announces each read *before* it reads, and lets copies
//! end that have begun ([`Copying`]). Until the event is read, the kernel refuses to copy, or gives
//! up the copy with the rest. A thread that faults at memory that has just changed waits until the
//! reader has dealt with the event.
//!
//! A thread that waits for the reader may hold any lock of the process: its allocator's, or
//! homenode's own. So the reader takes no lock and allocates nothing, from its first instruction
//! on.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering};

use homenode_sys::call::{self, yield_now};
use homenode_sys::signal::{Set, replace_mask};
use homenode_sys::uffd::{Uffd, UffdEvent};
use homenode_sys::{PAGE, Result, Span, descriptor, maps, memory, own_threads, thread};

use super::shadow;
use super::state;
use super::table::{self, Block, Word};

/// Milliseconds that the reader waits at most before it checks whether it should end.
const AT_MOST: i32 = 1000;
/// The reader's stack.
const STACK: usize = 256 << 10;
/// Most events that wait at a time. A thread waits for each, except for several events of one call
/// that changes several mappings.
const MOST_WAITING: usize = 1 << 16;
/// Where the events are kept.
static WAITING: AtomicUsize = AtomicUsize::new(0);

static PENDING: AtomicBool = AtomicBool::new(false);
/// The reader has read an event, or is about to, and does not know yet whose it is.
static READING: AtomicBool = AtomicBool::new(false);
/// Number of copies to registered memory that are under way.
static COPYING: AtomicUsize = AtomicUsize::new(0);
static OWN_START: AtomicUsize = AtomicUsize::new(0);
static OWN_END: AtomicUsize = AtomicUsize::new(0);

/// Waits while the reader deals with an event. Returns whether there was one.
#[inline]
pub fn wait() -> bool {
    let mut waited = false;
    while PENDING.load(Ordering::SeqCst) {
        waited = true;
        yield_now();
    }
    waited
}

/// No event is read while this lives. Its thread must not wait for an event meanwhile.
#[derive(Debug)]
pub struct Copying(());

impl Copying {
    /// `None`: the reader is dealing with an event, which comes first.
    pub fn begin() -> Option<Self> {
        COPYING.fetch_add(1, Ordering::SeqCst);
        let copying = Self(());
        (!pending()).then_some(copying)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        COPYING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether the reader is dealing with an event.
pub fn pending() -> bool {
    PENDING.load(Ordering::SeqCst)
}

/// Runs `f`, whose events for `span` are homenode's own doing. Under the lock.
pub fn own<R>(span: Span, f: impl FnOnce() -> R) -> R {
    OWN_END.store(span.end, Ordering::SeqCst);
    OWN_START.store(span.start, Ordering::SeqCst);
    let result = f();
    // The system call has returned, so its event was read. But the reader may not have compared it
    // yet.
    while READING.load(Ordering::SeqCst) {
        yield_now();
    }
    OWN_END.store(0, Ordering::SeqCst);
    result
}

fn is_own(span: Span) -> bool {
    let own = Span { start: OWN_START.load(Ordering::SeqCst), end: OWN_END.load(Ordering::SeqCst) };
    own.cut(span) == span
}

/// State of the reader: 0 not started, 1 being made, 2 running, 3 could not be made.
static READER: AtomicU8 = AtomicU8::new(0);
/// An eventfd that wakes the reader to end, or -1.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// Makes sure that there is a reader before anything is registered. The first call starts it.
/// Returns whether there is one.
pub fn has_reader() -> bool {
    if READER.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        let made = start().is_ok();
        READER.store(if made { 2 } else { 3 }, Ordering::SeqCst);
    }
    READER.load(Ordering::SeqCst) == 2
}

/// Wakes the reader, which then checks whether it should end.
pub fn wake_reader() {
    let one = 1_u64;
    // SAFETY: eight bytes to an eventfd of ours; -1 is refused.
    unsafe {
        let fd = WAKE.load(Ordering::SeqCst) as usize;
        call::raw(libc::SYS_write, [fd, &raw const one as usize, 8, 0, 0, 0]);
    }
}

/// Starts the reader, once.
///
/// # Errors
/// No memory for its stack and its list, or no thread could be made.
fn start() -> Result<()> {
    let flags = (libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) as usize;
    // SAFETY: plain numbers.
    let wake = unsafe { call::raw(libc::SYS_eventfd2, [0, flags, 0, 0, 0, 0]) };
    if wake >= 0 {
        WAKE.store(descriptor::keep(wake as i32), Ordering::SeqCst);
    }
    let waiting = memory::map(MOST_WAITING * size_of::<UffdEvent>(), memory::Protection::ReadWrite)?;
    WAITING.store(waiting.start, Ordering::SeqCst);
    // Made with its signals blocked from the first instruction on.
    let mask = replace_mask(Set::FOR_OWN_THREADS);
    let stack = thread::start_bare(STACK, read);
    replace_mask(mask);
    table::note_own(stack?);
    table::note_own(waiting);
    Ok(())
}

fn read() {
    thread::set_name(c"homenode-events");
    // SAFETY: memory of this size and alignment that `start` made for this thread alone, and that
    // is never freed.
    let list = unsafe {
        std::slice::from_raw_parts_mut(
            WAITING.load(Ordering::SeqCst) as *mut MaybeUninit<UffdEvent>,
            MOST_WAITING,
        )
    };
    let mut waiting = Queue { list, first: 0, count: 0 };
    while !own_threads::are_to_end() {
        // Only a forked child gives the descriptor up, and a child has no reader.
        let Some(uffd) = state::uffd() else { return };
        let mut reader = Reader { uffd, waiting: &mut waiting };
        if !uffd.wait_or(WAKE.load(Ordering::SeqCst), AT_MOST) {
            continue;
        }
        PENDING.store(true, Ordering::SeqCst);
        while COPYING.load(Ordering::SeqCst) > 0 {
            yield_now();
        }
        reader.read();
        while let Some(event) = reader.waiting.pop() {
            reader.deal_with(event);
        }
        PENDING.store(false, Ordering::SeqCst);
        state::IN_EVENTS.store(call::thread_time().0, Ordering::Relaxed);
    }
}

/// In a forked child there is no reader.
pub fn in_child() {
    WAKE.store(-1, Ordering::SeqCst);
    READING.store(false, Ordering::SeqCst);
    PENDING.store(false, Ordering::SeqCst);
    COPYING.store(0, Ordering::SeqCst);
}

/// Events that were read and not yet dealt with, first in, first out.
struct Queue {
    list: &'static mut [MaybeUninit<UffdEvent>],
    first: usize,
    count: usize,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.count == self.list.len()
    }
    fn push(&mut self, event: UffdEvent) {
        let at = (self.first + self.count) % self.list.len();
        self.list[at].write(event);
        self.count += 1;
    }
    fn pop(&mut self) -> Option<UffdEvent> {
        self.count = self.count.checked_sub(1)?;
        // SAFETY: `push` wrote it.
        let event = unsafe { self.list[self.first].assume_init_read() };
        self.first = (self.first + 1) % self.list.len();
        Some(event)
    }
}

struct Reader<'a> {
    uffd: &'static Uffd,
    waiting: &'a mut Queue,
}

impl Reader<'_> {
    /// Reads the waiting events, and keeps those that are not homenode's own.
    fn read(&mut self) {
        // If the queue is full, the rest waits, and so do its callers.
        while !self.waiting.is_full() {
            READING.store(true, Ordering::SeqCst);
            let Some(event) = self.uffd.event() else { break };
            let own = match event {
                UffdEvent::Remap { from, to } => is_own(from) && to == table::shadow(from.start),
                // homenode gives up no registered memory, and replaces mappings only if pages
                // cannot be taken back.
                UffdEvent::Remove(_) => false,
                UffdEvent::Unmap(span) => is_own(span) && !state::TAKE_BACK.load(Ordering::Relaxed),
                UffdEvent::Other(_) => true,
            };
            READING.store(false, Ordering::SeqCst);
            if !own {
                self.waiting.push(event);
            }
        }
        READING.store(false, Ordering::SeqCst);
    }

    /// Claims a block, and frees its shadow except for armed pages. Goes on reading meanwhile,
    /// because the block's owner may be waiting for its own event to be read.
    fn claim(&mut self, block: Block) -> Word {
        loop {
            if let Some(word) = block.try_claim() {
                return shadow::free_stale(block, word);
            }
            self.read();
            yield_now();
        }
    }

    fn deal_with(&mut self, event: UffdEvent) {
        match event {
            UffdEvent::Remap { from, to } => self.moved(from, to),
            UffdEvent::Remove(span) => self.emptied(span),
            UffdEvent::Unmap(span) => self.gone(span),
            UffdEvent::Other(_) => {}
        }
    }

    /// Registered pages are about to become zero. They are never armed again while this memory
    /// lives. The thread that gives them up empties them when it gets the CPU again. By then the
    /// pages may have been disarmed, and armed again with the contents that must go.
    fn emptied(&mut self, span: Span) {
        for block in Block::all(span) {
            let word = self.claim(block);
            let touched = block.pages_touched(span);
            let pages = touched & word.marked();
            // Also pages that are not armed at the moment.
            block.exclude(touched);
            for run in block.runs(pages) {
                shadow::discard_shadow(run);
            }
            block.release(word.with_armed(word.armed() | pages));
        }
    }

    /// The memory has been unmapped.
    fn gone(&mut self, span: Span) {
        for block in Block::all(span) {
            let word = self.claim(block);
            let pages = block.pages_touched(span) & word.marked();
            for run in block.runs(pages & word.armed()) {
                shadow::discard_shadow(run);
            }
            block.release(word.with_armed(word.armed() & !pages).with_marked(word.marked() & !pages));
        }
    }

    /// The mapping has moved: its armed pages go to the new place at once, and are disarmed.
    fn moved(&mut self, from: Span, to: usize) {
        for block in Block::all(from) {
            let word = self.claim(block);
            let pages = block.pages_touched(from) & word.marked();
            for run in block.runs(pages & word.armed()) {
                self.deliver(run, to + (run.start - from.start));
                shadow::discard_shadow(run);
            }
            block.release(word.with_armed(word.armed() & !pages).with_marked(word.marked() & !pages));
        }
        // The mapping may have become longer.
        let mut mapping = Span::new(to, from.len());
        let _ = maps::each(|m| {
            if m.span.contains(to) {
                mapping.end = mapping.end.max(m.span.end);
            }
            m.span.start <= to
        });
        // SAFETY: every page of it that has contents is there.
        let _ = unsafe { self.uffd.unregister(mapping) };
    }

    fn deliver(&mut self, run: Span, to: usize) {
        let from = table::shadow(run.start);
        let mut done = 0;
        while done < run.len() {
            // SAFETY: the shadow of a claimed block: mapped, and nobody else uses it.
            let copied = unsafe { self.uffd.copy(Span::new(to + done, PAGE), from + done) };
            done += copied.done;
            match copied.stopped.map(|e| e.0) {
                None => {}
                Some(libc::EAGAIN | libc::ENOMEM) => {
                    // The mappings are changing until all events of the change are read. One call
                    // can have several.
                    self.read();
                    yield_now();
                }
                // There is nothing to copy, or no place to copy to.
                Some(_) => done += PAGE,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_gives_back_in_order_and_says_when_it_is_full() {
        let list = Box::leak(Box::new([const { MaybeUninit::uninit() }; 3]));
        let mut queue = Queue { list, first: 0, count: 0 };
        let event = |n: usize| UffdEvent::Remove(Span::new(n * PAGE, PAGE));
        queue.push(event(1));
        queue.push(event(2));
        assert_eq!(queue.pop(), Some(event(1)));
        queue.push(event(3));
        queue.push(event(4));
        assert!(queue.is_full());
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop(), queue.pop()],
            [2, 3, 4, 0].map(|n| (n > 0).then(|| event(n)))
        );
    }
}
