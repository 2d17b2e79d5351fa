//! The frame around every message.
//!
//! | bytes | field |
//! |---|---|
//! | 0–3 | magic `hnwf` |
//! | 4–5 | kind of the message, little-endian as all numbers here |
//! | 6–7 | version of that kind |
//! | 8–11 | length of the payload |
//! | 12–15 | CRC-32 of bytes 0–11 and the payload |
//! | 16– | payload |

use std::io::{self, Read};

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// First bytes of a frame.
pub const MAGIC: [u8; 4] = *b"hnwf";
/// Bytes in front of the payload.
pub const HEADER: usize = 16;

/// Which conversation a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Conversation {
    /// [`crate::facts::Facts`].
    Facts = 1,
    /// [`crate::live::LiveRecord`], many a frame.
    Live = 3,
    /// [`crate::settings::Settings`].
    Settings = 4,
    /// [`crate::plan::HomePlan`].
    Plan = 5,
    /// [`crate::lab::GuestMessage`].
    Said = 6,
    /// [`crate::lab::GuestCommand`].
    Order = 7,
    /// [`crate::lab::Back`].
    Back = 8,
    /// [`crate::lab::GuestJob`].
    Job = 9,
    /// [`crate::monitor::Config`].
    MonitorConfig = 10,
    /// [`crate::monitor::MonitorCommand`].
    MonitorOrder = 11,
    /// [`crate::monitor::MonitorAnswer`].
    MonitorAnswer = 12,
    /// [`crate::monitor::MonitorReport`].
    MonitorFound = 13,
    /// [`crate::monitor::EmulatorSettings`].
    Emulator = 14,
    /// [`crate::schedule::Schedules`].
    Schedules = 15,
}

impl Conversation {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Facts,
        Self::Live,
        Self::Settings,
        Self::Plan,
        Self::Said,
        Self::Order,
        Self::Back,
        Self::Job,
        Self::MonitorConfig,
        Self::MonitorOrder,
        Self::MonitorAnswer,
        Self::MonitorFound,
        Self::Emulator,
        Self::Schedules,
    ];

    /// What a person calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Facts => "the program's report",
            Self::Live => "the live stream",
            Self::Settings => "the settings",
            Self::Plan => "the plan",
            Self::Said => "what the guest says",
            Self::Order => "an order to the guest",
            Self::Back => "a file of the guest",
            Self::Job => "the guest's job",
            Self::MonitorConfig => "the monitor's configuration",
            Self::MonitorOrder => "an order to the monitor",
            Self::MonitorAnswer => "the monitor's answer",
            Self::MonitorFound => "the monitor's counts",
            Self::Emulator => "the emulator's configuration",
            Self::Schedules => "the recorded schedules",
        }
    }
}

/// A type that travels in a frame of its own.
pub trait Message: Serialize + DeserializeOwned {
    /// Its kind.
    const KIND: Conversation;
    /// Its version. A change of the type is a new version.
    const VERSION: u16;
    /// The largest payload, in bytes. A writer refuses to make a larger one, a reader to allocate
    /// it.
    const MOST: usize;
}

/// What is wrong with a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The input ends inside the frame.
    #[error("it is cut off: {wanted} bytes should follow, {had} are there")]
    CutOff {
        /// Bytes that the frame still needs at the offset.
        wanted: u64,
        /// Bytes that are there.
        had: u64,
    },
    /// The input is something else: its first bytes.
    #[error("it is something else: it begins with {0:02x?}")]
    Magic([u8; 4]),
    /// The frame is of another kind: its number.
    #[error("it is {}", other_kind(*.0))]
    Kind(u16),
    /// The frame is of a version that this homenode does not read.
    #[error("it is of version {found}, and this homenode reads version {known}")]
    Version {
        /// The frame's version.
        found: u16,
        /// The version that this homenode reads.
        known: u16,
    },
    /// The payload is longer than its kind allows.
    #[error("it has {length} bytes of payload, and {most} are allowed")]
    TooLong {
        /// Bytes of the payload; when writing, the first count that was beyond the bound.
        length: u64,
        /// The bound in bytes.
        most: u64,
    },
    /// Header or payload was changed: the checksum does not match.
    #[error("it is damaged: its checksum is {stored:08x}, its bytes give {computed:08x}")]
    Checksum {
        /// What the frame says.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// The payload is no value of its type, or a list or text in it is beyond its bound.
    #[error("its payload makes no sense: {0}")]
    Payload(postcard::Error),
    /// Bytes follow where nothing may follow: how many.
    #[error("{0} bytes follow that do not belong to it")]
    Trailing(u64),
    /// The buffer has no room for what is to be written.
    #[error("the buffer has no room for it")]
    Room,
    /// The system failed to read.
    #[error("it cannot be read: {0}")]
    Io(io::ErrorKind),
}

/// A frame that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}, byte {offset}: {fault}", kind.name())]
pub struct Error {
    /// What was expected.
    pub kind: Conversation,
    /// Where, in bytes from the start of the input.
    pub offset: u64,
    /// What is wrong.
    pub fault: FrameFault,
}

/// What a frame with this number of a kind is.
fn other_kind(number: u16) -> String {
    match Conversation::ALL.into_iter().find(|kind| *kind as u16 == number) {
        Some(other) => format!("something else: {}", other.name()),
        None => format!("of kind {number}, which this homenode does not know"),
    }
}

impl FrameFault {
    pub(crate) const fn at(self, kind: Conversation, offset: u64) -> Error {
        Error { kind, offset, fault: self }
    }
}

/// Bytes of a frame as postcard makes them, up to a bound.
struct Growing {
    bytes: Vec<u8>,
    most: usize,
}

impl Flavor for Growing {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(postcard::Error::SerializeBufferFull);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Self::Output> {
        Ok(self.bytes)
    }
}

/// Writes the header of a frame whose payload follows it in `frame`.
pub(crate) fn seal(frame: &mut [u8], kind: Conversation, version: u16) -> Result<(), FrameFault> {
    let (header, payload) = frame.split_first_chunk_mut::<HEADER>().ok_or(FrameFault::Room)?;
    let length = u32::try_from(payload.len()).map_err(|_| FrameFault::Room)?;
    let [k, v] = [(kind as u16).to_le_bytes(), version.to_le_bytes()];
    let mut head = [0; 12];
    let fields = MAGIC.into_iter().chain(k).chain(v).chain(length.to_le_bytes());
    head.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    let sum = checksum(&head, payload).to_le_bytes();
    header.iter_mut().zip(head.into_iter().chain(sum)).for_each(|(to, from)| *to = from);
    Ok(())
}

fn checksum(head: &[u8], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(head);
    sum.update(payload);
    sum.finalize()
}

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    head: [u8; 12],
    length: u32,
    stored: u32,
}

impl Header {
    /// Reads and checks everything but the checksum.
    pub(crate) fn of(
        bytes: &[u8; HEADER],
        kind: Conversation,
        version: u16,
        most: usize,
    ) -> Result<Self, FrameFault> {
        let [m0, m1, m2, m3, k0, k1, v0, v1, l0, l1, l2, l3, s0, s1, s2, s3] = *bytes;
        let magic = [m0, m1, m2, m3];
        if magic != MAGIC {
            return Err(FrameFault::Magic(magic));
        }
        let found = u16::from_le_bytes([k0, k1]);
        if found != kind as u16 {
            return Err(FrameFault::Kind(found));
        }
        let found = u16::from_le_bytes([v0, v1]);
        if found != version {
            return Err(FrameFault::Version { found, known: version });
        }
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if u64::from(length) > most as u64 {
            return Err(FrameFault::TooLong { length: length.into(), most: most as u64 });
        }
        let head = [m0, m1, m2, m3, k0, k1, v0, v1, l0, l1, l2, l3];
        Ok(Self { head, length, stored: u32::from_le_bytes([s0, s1, s2, s3]) })
    }

    /// Bytes of the payload.
    pub(crate) const fn length(&self) -> u64 {
        self.length as u64
    }

    /// Checks the payload against the checksum.
    pub(crate) fn check(&self, payload: &[u8]) -> Result<(), FrameFault> {
        let computed = checksum(&self.head, payload);
        if computed == self.stored {
            return Ok(());
        }
        Err(FrameFault::Checksum { stored: self.stored, computed })
    }
}

/// A message as one frame.
///
/// # Errors
/// A list in it or all of it is beyond its bound.
pub fn encode<M: Message>(message: &M) -> Result<Vec<u8>, Error> {
    let growing = Growing { bytes: vec![0; HEADER], most: HEADER + M::MOST };
    let frame = postcard::serialize_with_flavor(message, growing);
    let mut frame = frame.map_err(|e| {
        let fault = match e {
            postcard::Error::SerializeBufferFull => {
                FrameFault::TooLong { length: M::MOST as u64 + 1, most: M::MOST as u64 }
            }
            other => FrameFault::Payload(other),
        };
        fault.at(M::KIND, 0)
    })?;
    seal(&mut frame, M::KIND, M::VERSION).map_err(|fault| fault.at(M::KIND, 0))?;
    Ok(frame)
}

/// The message of exactly one frame.
///
/// # Errors
/// The bytes are no frame of this message, or more than one.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<M, Error> {
    let mut rest = bytes;
    let message = read(&mut rest)?;
    match rest.len() as u64 {
        0 => Ok(message),
        n => Err(FrameFault::Trailing(n).at(M::KIND, bytes.len() as u64 - n)),
    }
}

/// Reads the next frame, and no byte more. Allocates at most [`Message::MOST`] for its payload, and
/// half as much while the buffer grows.
///
/// # Errors
/// The system fails to read, the input ends, or the bytes are no frame of this message. The offset
/// counts from the first byte that this call reads.
pub fn read<M: Message>(from: &mut impl Read) -> Result<M, Error> {
    let mut payload = Vec::new();
    fill(from, &mut payload, M::KIND, M::VERSION, M::MOST).map_err(|(fault, at)| fault.at(M::KIND, at))?;
    value(&payload).map_err(|fault| fault.at(M::KIND, HEADER as u64))
}

/// A message as a word of a command line: its frame in hexadecimal.
///
/// # Errors
/// As [`encode`].
pub fn encode_word<M: Message>(message: &M) -> Result<String, Error> {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = |byte: u8| [byte >> 4, byte & 15].map(|d| DIGITS[usize::from(d)]);
    Ok(encode(message)?.into_iter().flat_map(digits).collect())
}

/// The message of a word that [`encode_word`] made.
///
/// # Errors
/// As [`decode`]; what is no hexadecimal number ends the frame.
pub fn decode_word<M: Message>(word: &str) -> Result<M, Error> {
    if word.len() / 2 > HEADER + M::MOST {
        let length = (word.len() / 2 - HEADER) as u64;
        return Err(FrameFault::TooLong { length, most: M::MOST as u64 }.at(M::KIND, 0));
    }
    let digit = |d: u8| char::from(d).to_digit(16).map(|d| d as u8);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Vec<u8> = word.as_bytes().chunks(2).map_while(byte).collect();
    decode(&bytes)
}

/// The value that takes up all of a payload.
fn value<T: DeserializeOwned>(payload: &[u8]) -> Result<T, FrameFault> {
    let (value, rest) = postcard::take_from_bytes(payload).map_err(FrameFault::Payload)?;
    match rest.len() as u64 {
        0 => Ok(value),
        n => Err(FrameFault::Trailing(n)),
    }
}

/// Reads a frame's payload into `payload`, whose old content goes. An error comes with its place in
/// the frame.
pub(crate) fn fill(
    from: &mut impl Read,
    payload: &mut Vec<u8>,
    kind: Conversation,
    version: u16,
    most: usize,
) -> Result<(), (FrameFault, u64)> {
    payload.clear();
    gather(from, payload, HEADER as u64).map_err(|fault| (fault, 0))?;
    let header = payload.first_chunk::<HEADER>().copied().unwrap_or_default();
    let header = Header::of(&header, kind, version, most).map_err(|fault| (fault, 0))?;
    payload.clear();
    gather(from, payload, header.length()).map_err(|fault| (fault, HEADER as u64))?;
    header.check(payload).map_err(|fault| (fault, 0))
}

/// Reads into `to` until it has `wanted` bytes. It grows with the bytes that arrive, and never
/// beyond the length that the frame announced.
fn gather(from: &mut impl Read, to: &mut Vec<u8>, wanted: u64) -> Result<(), FrameFault> {
    const STEP: u64 = 64 << 10;
    loop {
        let had = to.len() as u64;
        let step = wanted.saturating_sub(had).min(had.max(STEP));
        if step == 0 {
            return Ok(());
        }
        to.reserve_exact(step as usize);
        let read = from.by_ref().take(step).read_to_end(to).map_err(|e| FrameFault::Io(e.kind()))?;
        if (read as u64) < step {
            return Err(FrameFault::CutOff { wanted, had: to.len() as u64 });
        }
    }
}
