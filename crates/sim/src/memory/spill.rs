//! A temporary file for the items of threads that run ahead.
//!
//! # Problem
//!
//! The stream has the threads' items in the order of their ticks. Stage 3 takes them in the order
//! of simulated time. A thread whose accesses are slow falls behind the others by up to all its
//! items between two synchronisations, and somebody must keep them until its turn comes.
//!
//! # Approach
//!
//! [`Spill`] keeps blocks of [`BLOCK`] items in a file without a name, which goes with the process.
//! An item takes some 5 bytes there: differences to the item before, as numbers of variable length.
//! Each block has a place of [`PLACE`] bytes, as many as it can take at most. A place is used again
//! when its block has been read. The file is sparse, so that a block takes no more of the disk than
//! its items do.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use homenode_log::varint::{get, put, unzigzag, zigzag};
use homenode_model::{LineNo, ObjectId, Ps, Ticks};
use homenode_order::step::{ByteRange, Mark, Sync, SyncId};

use crate::stream::{Cause, MemItem, MemWhat};

/// Items of a block.
pub(super) const BLOCK: usize = 4096;
/// Bytes that an item takes at most: its kind, its tick, and the object and range of a mark.
const MOST: usize = 36;
/// Bytes of a block's place in the file.
const PLACE: usize = BLOCK * MOST;
/// Names that are tried.
const TRIES: u32 = 1000;

/// Why the file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot {tried} accesses of slow threads in a file in {}: {why}; TMPDIR names another folder",
    folder.display()
)]
pub struct SpillError {
    /// What was tried.
    pub tried: &'static str,
    /// The folder for temporary files.
    pub folder: PathBuf,
    /// What the system said.
    pub why: String,
}

/// A block in the file.
#[derive(Debug)]
pub(super) struct Block {
    place: u64,
    bytes: usize,
}

/// The file of one simulation. Without a block it does not exist.
#[derive(Debug, Default)]
pub(super) struct Spill(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    /// Places whose blocks have been read.
    free: Vec<u64>,
    /// Places that have been used.
    places: u64,
    bytes: Vec<u8>,
    failed: Option<SpillError>,
}

impl Spill {
    /// Writes `items`, [`BLOCK`] of them. `None`: the file cannot be written, and
    /// [`Spill::failed`] says why.
    pub(super) fn write(&self, items: &[MemItem]) -> Option<Block> {
        let mut state = self.state();
        let written = state.write(items);
        written.map_err(|e| state.fail("write", &e)).ok()
    }

    /// Reads a block back, behind what is in `items`. Its place is free then.
    pub(super) fn read(&self, block: &Block, items: &mut Vec<MemItem>) {
        let mut state = self.state();
        if let Err(e) = state.read(block, items) {
            state.fail("read", &e);
        }
    }

    /// Why the file cannot be used, if it cannot: the simulation is of no use then.
    pub(super) fn failed(&self) -> Result<(), SpillError> {
        self.state().failed.clone().map_or(Ok(()), Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, items: &[MemItem]) -> io::Result<Block> {
        self.bytes.resize(PLACE, 0);
        let bytes = encode(items, &mut self.bytes);
        if self.file.is_none() {
            self.file = Some(nameless()?);
        }
        let place = self.free.pop().unwrap_or(self.places);
        if let Some(file) = &self.file {
            file.write_all_at(&self.bytes[..bytes], place * PLACE as u64)?;
        }
        self.places = self.places.max(place + 1);
        Ok(Block { place, bytes })
    }

    fn read(&mut self, block: &Block, items: &mut Vec<MemItem>) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        self.bytes.resize(PLACE, 0);
        file.read_exact_at(&mut self.bytes[..block.bytes], block.place * PLACE as u64)?;
        self.free.push(block.place);
        decode(&self.bytes[..block.bytes], items).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn fail(&mut self, tried: &'static str, error: &io::Error) {
        let (folder, why) = (std::env::temp_dir(), error.to_string());
        self.failed.get_or_insert(SpillError { tried, folder, why });
    }
}

/// A file in the folder for temporary files that nobody else can open.
fn nameless() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let name = |n| folder.join(format!("homenode-accesses-{}-{n}", std::process::id()));
    for path in (0..TRIES).map(name) {
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

const CAUSES: [Cause; 6] =
    [Cause::Cold, Cause::Capacity, Cause::Coherence, Cause::Upgrade, Cause::WriteBack, Cause::Uncached];

// Kinds of items in a block. Reads and writes have the number of their cause besides.
const READ: u8 = 0;
const WRITE: u8 = 8;
const TOUCH: u8 = 16;
const REGION_TOUCH: u8 = 17;
const CACHE_TIME: u8 = 18;
const SIGNAL: u8 = 19;
const WAIT: u8 = 20;
const END: u8 = 21;
const ALLOC: u8 = 22;
const FREE: u8 = 23;
const REGION_BEGIN: u8 = 24;
const REGION_END: u8 = 25;
const ITERATION: u8 = 26;
const NEXT_TOUCH: u8 = 27;

/// Writes `items` to `out`; the bytes that they take.
fn encode(items: &[MemItem], out: &mut [u8]) -> usize {
    let (mut at, mut tick, mut line) = (0, 0u64, 0u64);
    for item in items {
        let mut of_line = |now: LineNo| {
            let change = zigzag(now.0.wrapping_sub(line).cast_signed());
            line = now.0;
            [change, 0, 0]
        };
        let object = |object: ObjectId, range: ByteRange| [u64::from(object.0), range.first, range.bytes];
        let (kind, numbers, n) = match item.what {
            MemWhat::Access { line, write: false, cause } => (READ + cause as u8, of_line(line), 1),
            MemWhat::Access { line, write: true, cause } => (WRITE + cause as u8, of_line(line), 1),
            MemWhat::Touch { line } => (TOUCH, of_line(line), 1),
            MemWhat::RegionTouch { line } => (REGION_TOUCH, of_line(line), 1),
            MemWhat::CacheTime(time) => (CACHE_TIME, [time.0, 0, 0], 1),
            MemWhat::Sync(Sync::Signal(id)) => (SIGNAL, [id.0.into(), 0, 0], 1),
            MemWhat::Sync(Sync::Wait { id, n }) => (WAIT, [id.0.into(), n.into(), 0], 2),
            MemWhat::Sync(Sync::End) => (END, [0; 3], 0),
            MemWhat::Mark(Mark::Alloc { object: o, range }) => (ALLOC, object(o, range), 3),
            MemWhat::Mark(Mark::Free { object: o, range }) => (FREE, object(o, range), 3),
            MemWhat::Mark(Mark::RegionBegin { region }) => (REGION_BEGIN, [region.into(), 0, 0], 1),
            MemWhat::Mark(Mark::RegionEnd { region }) => (REGION_END, [region.into(), 0, 0], 1),
            MemWhat::Mark(Mark::Iteration { number }) => (ITERATION, [number.into(), 0, 0], 1),
            MemWhat::Mark(Mark::NextTouch { range }) => (NEXT_TOUCH, [range.first, range.bytes, 0], 2),
        };
        out[at] = kind;
        let ticks = zigzag(item.tick.0.wrapping_sub(tick).cast_signed());
        tick = item.tick.0;
        at = put(out, at + 1, ticks);
        at = numbers[..n].iter().fold(at, |at, number| put(out, at, *number));
    }
    at
}

/// Reads what [`encode`] wrote. `None`: the bytes are something else.
fn decode(bytes: &[u8], items: &mut Vec<MemItem>) -> Option<()> {
    let (mut at, mut tick, mut line) = (0, 0u64, 0u64);
    while let Some(&kind) = bytes.get(at) {
        at += 1;
        tick = tick.wrapping_add(unzigzag(get(bytes, &mut at)?).cast_unsigned());
        let mut number = || get(bytes, &mut at);
        let what = match kind {
            ..=REGION_TOUCH => {
                line = line.wrapping_add(unzigzag(number()?).cast_unsigned());
                match (kind, LineNo(line)) {
                    (TOUCH, line) => MemWhat::Touch { line },
                    (REGION_TOUCH, line) => MemWhat::RegionTouch { line },
                    (_, line) => {
                        let cause = *CAUSES.get(usize::from(kind % WRITE))?;
                        MemWhat::Access { line, write: kind >= WRITE, cause }
                    }
                }
            }
            CACHE_TIME => MemWhat::CacheTime(Ps(number()?)),
            SIGNAL => MemWhat::Sync(Sync::Signal(SyncId(small(number()?)?))),
            WAIT => MemWhat::Sync(Sync::Wait { id: SyncId(small(number()?)?), n: small(number()?)? }),
            END => MemWhat::Sync(Sync::End),
            ALLOC | FREE => {
                let object = ObjectId(small(number()?)?);
                let range = ByteRange { first: number()?, bytes: number()? };
                MemWhat::Mark(match kind {
                    ALLOC => Mark::Alloc { object, range },
                    _ => Mark::Free { object, range },
                })
            }
            REGION_BEGIN => MemWhat::Mark(Mark::RegionBegin { region: small(number()?)? }),
            REGION_END => MemWhat::Mark(Mark::RegionEnd { region: small(number()?)? }),
            ITERATION => MemWhat::Mark(Mark::Iteration { number: small(number()?)? }),
            NEXT_TOUCH => {
                MemWhat::Mark(Mark::NextTouch { range: ByteRange { first: number()?, bytes: number()? } })
            }
            _ => return None,
        };
        items.push(MemItem { tick: Ticks(tick), what });
    }
    Some(())
}

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn what() -> impl Strategy<Value = MemWhat> {
        let range = (any::<u64>(), any::<u64>()).prop_map(|(first, bytes)| ByteRange { first, bytes });
        let object = any::<u32>().prop_map(ObjectId);
        let line = prop_oneof![0..1000u64, any::<u64>()].prop_map(LineNo);
        prop_oneof![
            (line.clone(), any::<bool>(), 0..CAUSES.len()).prop_map(|(line, write, c)| MemWhat::Access {
                line,
                write,
                cause: CAUSES[c]
            }),
            line.clone().prop_map(|line| MemWhat::Touch { line }),
            line.prop_map(|line| MemWhat::RegionTouch { line }),
            any::<u64>().prop_map(|ps| MemWhat::CacheTime(Ps(ps))),
            any::<u32>().prop_map(|id| MemWhat::Sync(Sync::Signal(SyncId(id)))),
            (any::<u32>(), any::<u32>()).prop_map(|(id, n)| MemWhat::Sync(Sync::Wait { id: SyncId(id), n })),
            Just(MemWhat::Sync(Sync::End)),
            (object.clone(), range.clone())
                .prop_map(|(object, range)| MemWhat::Mark(Mark::Alloc { object, range })),
            (object, range.clone()).prop_map(|(object, range)| MemWhat::Mark(Mark::Free { object, range })),
            any::<u32>().prop_map(|region| MemWhat::Mark(Mark::RegionBegin { region })),
            any::<u32>().prop_map(|region| MemWhat::Mark(Mark::RegionEnd { region })),
            any::<u32>().prop_map(|number| MemWhat::Mark(Mark::Iteration { number })),
            range.prop_map(|range| MemWhat::Mark(Mark::NextTouch { range })),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(all in proptest::collection::vec((any::<u64>(), what()), 0..50)) {
            let items: Vec<MemItem> =
                all.into_iter().map(|(tick, what)| MemItem { tick: Ticks(tick), what }).collect();
            let mut bytes = vec![0; items.len() * MOST];
            let n = encode(&items, &mut bytes);
            let mut read = Vec::new();
            prop_assert_eq!(decode(&bytes[..n], &mut read), Some(()));
            prop_assert_eq!(read, items);
        }
    }

    fn reads(first: u64) -> Vec<MemItem> {
        let item = |i| MemItem {
            tick: Ticks(9 * i),
            what: MemWhat::Access { line: LineNo(i + first), write: false, cause: Cause::Capacity },
        };
        (first..).map(item).take(BLOCK).collect()
    }

    #[test]
    fn a_place_is_used_again_when_its_block_has_been_read() {
        let spill = Spill::default();
        let blocks = [1, 2].map(|i| spill.write(&reads(i)).unwrap());
        assert_eq!(blocks.each_ref().map(|b| b.place), [0, 1]);
        assert!(blocks[0].bytes <= 4 * BLOCK, "{} bytes for {BLOCK} reads", blocks[0].bytes);
        let mut items = Vec::new();
        spill.read(&blocks[0], &mut items);
        assert_eq!(items, reads(1));
        assert_eq!(spill.write(&reads(3)).unwrap().place, 0);
        spill.read(&blocks[1], &mut items);
        assert_eq!(items[BLOCK..], reads(2));
        spill.failed().unwrap();
    }

    #[test]
    fn bytes_that_nobody_wrote_are_refused() {
        let mut items = Vec::new();
        for bad in [&[7, 0, 0][..], &[28, 0], &[READ, 0x80], &[SIGNAL, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 1]] {
            assert_eq!(decode(bad, &mut items), None, "{bad:?}");
        }
        let spill = Spill::default();
        spill.read(&Block { place: 0, bytes: 3 }, &mut items);
        assert!(matches!(spill.failed(), Err(SpillError { tried: "read", .. })));
    }
}
