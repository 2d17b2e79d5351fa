//! No frame makes a reader allocate beyond its bound: the allocator is watched.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_wire::facts::Facts;
use homenode_wire::live::{LiveReader, LiveRecord, PAYLOAD, VERSION};
use homenode_wire::{Conversation, Message, decode};

struct Watched;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does it all; sizes are only added up.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Bytes that `f` had at most at a time, beyond what was there before.
fn most(f: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    f();
    PEAK.load(Ordering::Relaxed) - before
}

fn framed(kind: Conversation, version: u16, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = b"hnwf".to_vec();
    frame.extend((kind as u16).to_le_bytes());
    frame.extend(version.to_le_bytes());
    frame.extend(length.to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&frame);
    sum.update(payload);
    frame.extend(sum.finalize().to_le_bytes());
    frame.extend(payload);
    frame
}

/// Every byte of the payload announces as much as a number can.
fn announcing<M: Message>(length: usize) -> Vec<u8> {
    let payload: Vec<u8> = [0xff; 9].into_iter().chain([1]).cycle().take(length).collect();
    framed(M::KIND, M::VERSION, length as u32, &payload)
}

/// A buffer of this size in bytes, and its half, which is copied when it grows to that.
const fn growing(bytes: usize) -> usize {
    bytes / 2 * 3
}

/// One test, because the allocator is the process's.
#[test]
fn a_reader_keeps_within_its_bound() {
    // What is announced and not there: one step of the reader.
    let frame = framed(Facts::KIND, Facts::VERSION, Facts::MOST as u32, &[1; 100]);
    let used = most(|| assert!(decode::<Facts>(&frame).is_err()));
    assert!(used < 128 << 10, "{used}");
    // What is announced inside of a payload that is there.
    let frame = announcing::<Facts>(1 << 20);
    let used = most(|| assert!(decode::<Facts>(&frame).is_err()));
    assert!(used < growing(1 << 20) + (64 << 10), "{used}");
    // A stream of any length takes a payload and a record.
    let empty = postcard_of_end();
    let payload: Vec<u8> = empty.iter().copied().cycle().take(PAYLOAD / empty.len() * empty.len()).collect();
    let frame = framed(Conversation::Live, VERSION, payload.len() as u32, &payload);
    let stream: Vec<u8> = frame.iter().copied().cycle().take(frame.len() * 20).collect();
    let used = most(|| {
        let read = LiveReader::new(&stream[..]).map(Result::unwrap);
        assert_eq!(
            read.filter(|r| *r == LiveRecord::End { whole: true }).count(),
            20 * payload.len() / empty.len()
        );
    });
    assert!(used <= growing(PAYLOAD) + 4096, "{used}");
}

/// The payload of one small record.
fn postcard_of_end() -> Vec<u8> {
    let mut buffer = [0; 64];
    let mut writer = homenode_wire::live::Writer::new(&mut buffer).unwrap();
    writer.add(&LiveRecord::End { whole: true }).unwrap();
    writer.finish()[16..].to_vec()
}
