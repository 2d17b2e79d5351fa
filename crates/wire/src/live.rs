//! What happens while the program runs: an append-only stream of records in frames.
//!
//! The library in the program writes it, the launcher reads it while it grows or afterwards. A
//! frame holds as many records as the writer had when it flushed. Whatever was written whole is
//! readable after `kill -9`.
//!
//! # Order
//!
//! [`LiveRecord::Start`] comes first and [`LiveRecord::End`] last. A record that defines a number
//! ([`LiveRecord::Object`], [`LiveRecord::Region`], [`LiveRecord::Interval`],
//! [`LiveRecord::Module`]) comes before the first record that uses the number.
//! [`LiveRecord::Interval`] is written when the interval ends, and so are the records that belong
//! to it, in any order before it.
//!
//! # Bounds
//!
//! | what | bound |
//! |---|---|
//! | payload of a frame | [`PAYLOAD`] |
//! | a text in a record | [`crate::bounded::TEXT`] |
//! | CPUs and distances of a node | [`crate::bounded::CPUS`], [`crate::bounded::NODES`] |
//!
//! [`Writer`] allocates nothing. [`LiveReader`] holds one payload and one record at a time.

use std::io::Read;

use homenode_model::{AccessKind, Bytes, CpuId, MoveResult, NodeId, Ns};
use serde::{Deserialize, Serialize};

use crate::bounded::{CPUS, NODES, list, some_text, text};
use crate::facts::{LoadedFile, Origin};
use crate::frame::{Conversation, Error, FrameFault, HEADER, fill, seal};

/// Version of the stream. A change of [`LiveRecord`] is a new version.
pub const VERSION: u16 = 1;
/// The largest payload of a frame, in bytes. The largest record fits.
pub const PAYLOAD: usize = 256 << 10;
/// Bytes of a buffer that holds any record. Smaller buffers hold most records.
pub const BUFFER: usize = HEADER + PAYLOAD;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);
    };
}

number!(
    /// An object, in the order of birth. A number is given once a stream.
    ObjectNo
);
number!(
    /// A region of the source, in the order of its first run.
    RegionNo
);
number!(
    /// An interval, from 0.
    IntervalNo
);
number!(
    /// A round of the program's iteration, from 1.
    IterationNo
);
number!(
    /// A thread of the program, in the order in which the library met it; 0 is the thread that
    /// started the library.
    ThreadNo
);

/// Small pages of an object: `first .. first + count`, counted from the page that holds the
/// object's first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pages {
    /// The first page.
    pub first: u32,
    /// How many pages.
    pub count: u32,
}

/// What a region is in the program's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegionIdentity {
    /// Address of the outlined function; 0: not known.
    pub function: u64,
    /// Where the program starts the region.
    pub caller: u64,
}

/// Who had pages moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MoveOrigin {
    /// The next touch after an arming.
    NextTouch,
    /// A decision of the policy.
    Policy,
    /// The plan of an earlier run.
    Plan,
    /// The guard, which undoes moves that do not pay.
    Undo,
    /// The kernel (NUMA balancing, compaction).
    Kernel,
    /// The program (`hn_place` and its like, `mbind`, `move_pages`).
    Program,
}

impl MoveOrigin {
    /// Every cause.
    pub const ALL: [Self; 6] =
        [Self::NextTouch, Self::Policy, Self::Plan, Self::Undo, Self::Kernel, Self::Program];

    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NextTouch => "next touch",
            Self::Policy => "policy",
            Self::Plan => "plan",
            Self::Undo => "undo",
            Self::Kernel => "kernel",
            Self::Program => "program",
        }
    }
}

/// What a [`LiveRecord::Dropped`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Dropped {
    /// Touches that were not told.
    Touches,
    /// Samples.
    Samples,
    /// Migrations, in runs of pages.
    Migrations,
    /// Objects.
    Objects,
    /// Regions.
    Regions,
    /// Rows of who was seen.
    Seen,
    /// Rows of where pages are.
    Homes,
    /// First touches.
    FirstTouches,
    /// Intervals that were joined with their neighbour.
    Intervals,
}

/// What the answers of a source are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceAnswers {
    /// There are none.
    #[default]
    Nothing,
    /// Accesses that each stands for.
    Sampled {
        /// Accesses that one sample stands for.
        one_in: u64,
    },
    /// That somebody was there.
    Presence,
    /// That somebody wrote there.
    Writers,
}

/// What watching came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Touches that were told.
    pub told: u64,
    /// Pages that were asked for.
    pub asked: u64,
    /// Touches that were lost.
    pub lost: u64,
    /// Memory of homenode for it.
    pub state: Bytes,
    /// Memory of the program that was watched.
    pub watched: Bytes,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveRecord {
    /// The library has started. All times count from here.
    Start {
        /// The monotonic clock at the start, to place streams of several processes beside each
        /// other.
        clock: Ns,
        /// The process.
        pid: u32,
        /// How many nodes; a [`LiveRecord::Node`] for each follows.
        nodes: u16,
        /// The nodes are pretended.
        pretended: bool,
        /// Bytes of a page as [`Pages`] counts.
        page: Bytes,
        /// The policy's spec.
        #[serde(with = "text")]
        policy: String,
    },
    /// A node of the machine.
    Node {
        /// The node.
        node: NodeId,
        /// Its memory.
        memory: Bytes,
        /// The kernel's numbers of its CPUs.
        #[serde(serialize_with = "list::write::<CPUS, _, _>", deserialize_with = "list::read::<CPUS, _, _>")]
        cpus: Vec<u32>,
        /// The kernel's distances to each node; 10 is local.
        #[serde(serialize_with = "list::write::<NODES, _, _>")]
        #[serde(deserialize_with = "list::read::<NODES, _, _>")]
        distances: Vec<u64>,
    },
    /// A loaded file. Addresses of code are found in these.
    Module(LoadedFile),
    /// An interval has ended.
    Interval {
        /// Its number.
        index: IntervalNo,
        /// When it began.
        begin: Ns,
        /// When it ended.
        end: Ns,
        /// The round that it belongs to; `None`: no round was known.
        iteration: Option<IterationNo>,
    },
    /// A region of the source ran for the first time.
    Region {
        /// Its number.
        number: RegionNo,
        /// What it is in the program's text.
        key: RegionIdentity,
    },
    /// What a region took in an interval.
    RegionTime {
        /// The interval.
        interval: IntervalNo,
        /// The region.
        region: RegionNo,
        /// How often it ran.
        runs: u32,
        /// Time of these runs together.
        time: Ns,
    },
    /// A round of the iteration has ended.
    Iteration {
        /// Its number.
        number: IterationNo,
        /// When it began.
        begin: Ns,
        /// When it ended.
        end: Ns,
        /// The program told it (`hn_iteration`); otherwise homenode found it.
        told: bool,
    },
    /// An object has come to life.
    Object {
        /// Its number.
        number: ObjectNo,
        /// Where it comes from.
        origin: Origin,
        /// Address of its first byte.
        address: u64,
        /// Its size.
        bytes: Bytes,
        /// When.
        birth: Ns,
        /// The Python code that allocated it: `file:line (function)`, innermost first, with ` < `
        /// between.
        #[serde(with = "some_text")]
        python: Option<String>,
    },
    /// An object is gone.
    ObjectGone {
        /// Its number.
        number: ObjectNo,
        /// When.
        death: Ns,
    },
    /// Pages were moved, or were to be moved.
    Migration {
        /// When.
        time: Ns,
        /// The object.
        object: ObjectNo,
        /// Which of its pages.
        pages: Pages,
        /// Where they were.
        from: NodeId,
        /// Where they were to go.
        to: NodeId,
        /// Who had them moved.
        cause: MoveOrigin,
        /// The region that ran; `None`: none, or not known.
        region: Option<RegionNo>,
        /// What it took of the moving thread's time; `None`: not measured.
        cost: Option<Ns>,
        /// What became of it.
        outcome: MoveResult,
    },
    /// The guard's sample: who touched one page.
    Sample {
        /// When.
        time: Ns,
        /// The object.
        object: ObjectNo,
        /// Which of its pages.
        page: u32,
        /// The page is of a block that was held back; otherwise of a block that moved.
        held_back: bool,
        /// Who touched it.
        node: NodeId,
        /// Where it is; of a page that was held back, where it was then.
        home: NodeId,
    },
    /// Who was seen at pages in an interval.
    Seen {
        /// The interval.
        interval: IntervalNo,
        /// The region that ran; `None`: none, or not known.
        region: Option<RegionNo>,
        /// The object.
        object: ObjectNo,
        /// Which of its pages.
        pages: Pages,
        /// Who was seen.
        node: NodeId,
        /// Where the pages are.
        home: NodeId,
        /// How they were touched; `None`: not known.
        kind: Option<AccessKind>,
        /// How often that was told. What one telling stands for, the facts say.
        told: u32,
    },
    /// Where pages are at the end of an interval. A run of pages is written when its home is new.
    Home {
        /// The interval.
        interval: IntervalNo,
        /// The object.
        object: ObjectNo,
        /// Which of its pages.
        pages: Pages,
        /// Where they are; `None`: nowhere yet.
        node: Option<NodeId>,
    },
    /// Where a thread ran.
    Thread {
        /// The thread.
        thread: ThreadNo,
        /// The kernel's number of the CPU.
        cpu: CpuId,
        /// The CPU's node.
        node: NodeId,
        /// From when on.
        from: Ns,
        /// Until when.
        to: Ns,
        /// It may run on this CPU only.
        bound: bool,
    },
    /// Who touched pages first.
    FirstTouch {
        /// The object.
        object: ObjectNo,
        /// Which of its pages.
        pages: Pages,
        /// The thread; `None`: not known.
        thread: Option<ThreadNo>,
        /// The thread's node.
        node: NodeId,
        /// When.
        time: Ns,
        /// Address of the instruction; 0: not known.
        pc: u64,
    },
    /// What homenode has taken so far.
    Own {
        /// When.
        time: Ns,
        /// homenode's own CPU time.
        own: Ns,
        /// The process's CPU time.
        cpu: Ns,
    },
    /// What tells who touches what, and what its answers are.
    Source {
        /// Its name.
        #[serde(with = "text")]
        name: String,
        /// What its answers are.
        says: SourceAnswers,
    },
    /// What watching came to so far.
    Watched(Watched),
    /// What a person should know: a sentence.
    Note {
        /// The sentence.
        #[serde(with = "text")]
        text: String,
    },
    /// Something is missing from the stream.
    Dropped {
        /// What.
        what: Dropped,
        /// How many.
        how_many: u64,
    },
    /// The stream ends.
    End {
        /// The program had come to its end. Otherwise homenode gave up before.
        whole: bool,
    },
}

impl LiveRecord {
    /// The name of the file that process `pid` writes its stream to.
    pub fn file_name(pid: u32) -> String {
        format!("live.{pid}")
    }
}

/// Encodes records into a buffer of the caller's: one frame.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    used: usize,
}

impl<'a> Writer<'a> {
    /// An empty frame in `buffer`. Of a buffer of more than [`BUFFER`] bytes only these are used.
    ///
    /// # Errors
    /// The buffer has no room for a frame.
    pub fn new(buffer: &'a mut [u8]) -> Result<Self, Error> {
        let most = buffer.len().min(BUFFER);
        match buffer.get_mut(..most) {
            Some(buffer) if most > HEADER => Ok(Self { buffer, used: HEADER }),
            _ => Err(FrameFault::Room.at(Conversation::Live, 0)),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`FrameFault::Room`]: the buffer is full, and the frame is as it was. Finish it, write it
    /// out, and add the record to the next. If the frame is empty, the record does not fit at all.
    /// [`FrameFault::Payload`]: a list in the record is too long.
    pub fn add(&mut self, record: &LiveRecord) -> Result<(), Error> {
        let rest = self.buffer.get_mut(self.used..).unwrap_or_default();
        match postcard::to_slice(record, rest) {
            Ok(bytes) => {
                self.used += bytes.len();
                Ok(())
            }
            Err(postcard::Error::SerializeBufferFull) => {
                Err(FrameFault::Room.at(Conversation::Live, self.used as u64))
            }
            Err(other) => Err(FrameFault::Payload(other).at(Conversation::Live, self.used as u64)),
        }
    }

    /// Whether there is no record in the frame.
    pub const fn is_empty(&self) -> bool {
        self.used == HEADER
    }

    /// Bytes of the frame so far.
    pub const fn len(&self) -> usize {
        self.used
    }

    /// The frame, to be appended to the stream; nothing of an empty frame.
    pub fn finish(self) -> &'a [u8] {
        let Self { buffer, used } = self;
        let used = if used == HEADER { 0 } else { used };
        let frame = buffer.get_mut(..used).unwrap_or_default();
        if !frame.is_empty() && seal(frame, Conversation::Live, VERSION).is_err() {
            return &[];
        }
        frame
    }
}

/// Reads records from a stream. It stops at the first damage, and says where that is.
#[derive(Debug)]
pub struct LiveReader<R> {
    from: R,
    /// The frame's payload.
    payload: Vec<u8>,
    /// Bytes of the payload that are read.
    read: usize,
    /// Bytes of the stream before the frame.
    start: u64,
    over: bool,
}

impl<R: Read> LiveReader<R> {
    /// Reads from the start of a stream.
    pub const fn new(from: R) -> Self {
        Self { from, payload: Vec::new(), read: 0, start: 0, over: false }
    }

    /// Bytes of the stream that are whole so far. What lies behind may still be written, or is
    /// damaged.
    pub fn whole(&self) -> u64 {
        self.start
    }

    fn record(&mut self) -> Result<Option<LiveRecord>, Error> {
        while self.read >= self.payload.len() {
            if !self.next_frame()? {
                return Ok(None);
            }
        }
        let at = || self.start.saturating_sub((self.payload.len() - self.read) as u64);
        let rest = self.payload.get(self.read..).unwrap_or_default();
        let (record, after) = postcard::take_from_bytes(rest)
            .map_err(|e| FrameFault::Payload(e).at(Conversation::Live, at()))?;
        self.read = self.payload.len() - after.len();
        Ok(Some(record))
    }

    /// Whether there is another frame.
    fn next_frame(&mut self) -> Result<bool, Error> {
        self.read = 0;
        match fill(&mut self.from, &mut self.payload, Conversation::Live, VERSION, PAYLOAD) {
            Ok(()) => {
                self.start += (HEADER + self.payload.len()) as u64;
                Ok(true)
            }
            Err((fault, at)) => {
                self.payload.clear();
                // Nothing at all where a frame would begin is the end.
                if at == 0 && matches!(fault, FrameFault::CutOff { had: 0, .. }) {
                    return Ok(false);
                }
                Err(fault.at(Conversation::Live, self.start + at))
            }
        }
    }
}

impl<R: Read> Iterator for LiveReader<R> {
    type Item = Result<LiveRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.record().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}
