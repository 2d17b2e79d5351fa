//! The channel for marks from an emulated program to the emulator's plug-in: system calls that no
//! kernel has.
//!
//! A library in the program makes these calls. The emulator shows every system call with its
//! arguments to the plug-in before it refuses the call. The calling thread and place are those of
//! the mark, so a thread's marks and accesses are in order.

use homenode_log::Mark;

/// Number of the system call: above Linux's, and below those of other interfaces.
pub const CALL: i64 = 0x686e;

/// Most words after the first.
pub const WORDS: usize = 5;

/// The owner of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The recorder: nothing it does counts as the program's.
    Recorder,
    /// The system's libraries: their accesses to the program's objects count as the program's.
    System,
    /// The program.
    Program,
}

/// A message of the program to the plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramMessage {
    /// Records the calling thread from here on.
    Start {
        /// As in [`Mark::ThreadStart`].
        id: u64,
        /// As in [`Mark::ThreadStart`].
        stack_low: u64,
        /// As in [`Mark::ThreadStart`].
        stack_high: u64,
    },
    /// The calling thread ends.
    End,
    /// The process ends.
    Stop,
    /// Empties the filter.
    Synchronise {
        /// Number of the barrier interval that begins.
        interval: u64,
    },
    /// Code lies in a range.
    Code {
        /// First address.
        low: u64,
        /// One past the last.
        high: u64,
        /// The owner of the code, and of the data in the range.
        whose: Whose,
    },
    /// Nobody writes to a range once the program runs: constants, and tables of the loader.
    Constant {
        /// First address.
        low: u64,
        /// One past the last.
        high: u64,
    },
    /// A mark; the plug-in numbers it.
    Mark(Mark),
}

const START: u64 = 1;
const END: u64 = 2;
const STOP: u64 = 3;
const SYNCHRONISE: u64 = 4;
const CODE: u64 = 5;
const CONSTANT: u64 = 6;
/// Marks a mark, with the mark's code in the low byte and the number of its words above.
const MARK: u64 = 1 << 32;

impl ProgramMessage {
    /// The call's arguments.
    pub fn words(&self) -> [u64; 1 + WORDS] {
        match *self {
            Self::Start { id, stack_low, stack_high } => [START, id, stack_low, stack_high, 0, 0],
            Self::End => [END, 0, 0, 0, 0, 0],
            Self::Stop => [STOP, 0, 0, 0, 0, 0],
            Self::Synchronise { interval } => [SYNCHRONISE, interval, 0, 0, 0, 0],
            Self::Code { low, high, whose } => [CODE, low, high, whose as u64, 0, 0],
            Self::Constant { low, high } => [CONSTANT, low, high, 0, 0, 0],
            Self::Mark(mark) => {
                let (words, n) = mark.words();
                let mut out = [MARK | (n as u64) << 8 | u64::from(mark.code()), 0, 0, 0, 0, 0];
                for (to, from) in out[1..].iter_mut().zip(&words[..n]) {
                    *to = *from;
                }
                out
            }
        }
    }

    /// The message in the arguments; `None` if they make no sense.
    pub fn of(words: [u64; 1 + WORDS]) -> Option<Self> {
        let [first, a, b, c, ..] = words;
        Some(match first {
            START => Self::Start { id: a, stack_low: b, stack_high: c },
            END => Self::End,
            STOP => Self::Stop,
            SYNCHRONISE => Self::Synchronise { interval: a },
            CODE => {
                let whose = [Whose::Recorder, Whose::System, Whose::Program];
                Self::Code { low: a, high: b, whose: *whose.get(usize::try_from(c).ok()?)? }
            }
            CONSTANT => Self::Constant { low: a, high: b },
            _ if first & !0xffff == MARK => {
                let n = (first >> 8 & 0xff) as usize;
                Self::Mark(Mark::from_words(first as u8, words[1..].get(..n)?)?)
            }
            _ => return None,
        })
    }
}

/// The mark, with a number of the global order if it has one.
pub fn numbered(mark: Mark, next: impl FnOnce() -> u64) -> Mark {
    match mark {
        Mark::Acquire { lock, .. } => Mark::Acquire { lock, order: next() },
        Mark::Release { lock, .. } => Mark::Release { lock, order: next() },
        Mark::Atomic { address, write, .. } => Mark::Atomic { address, write, order: next() },
        Mark::Alloc { address, bytes, site, caller, .. } => {
            Mark::Alloc { address, bytes, site, caller, order: next() }
        }
        Mark::Free { address, .. } => Mark::Free { address, order: next() },
        Mark::Iteration { number, .. } => Mark::Iteration { number, order: next() },
        Mark::NextTouch { address, bytes, .. } => Mark::NextTouch { address, bytes, order: next() },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_way() {
        for message in [
            ProgramMessage::Start { id: 3, stack_low: 4, stack_high: 5 },
            ProgramMessage::End,
            ProgramMessage::Stop,
            ProgramMessage::Synchronise { interval: 9 },
            ProgramMessage::Code { low: 1, high: 2, whose: Whose::Program },
            ProgramMessage::Constant { low: 3, high: 4 },
            ProgramMessage::Mark(Mark::Flush {}),
            ProgramMessage::Mark(Mark::Alloc { address: 1, bytes: 2, site: 3, caller: 4, order: 5 }),
        ] {
            assert_eq!(ProgramMessage::of(message.words()), Some(message));
        }
    }

    #[test]
    fn nonsense_is_nothing() {
        for first in [0, 7, MARK | 250, MARK | 9 << 8 | 9, u64::MAX] {
            assert_eq!(ProgramMessage::of([first, 0, 0, 0, 0, 0]), None, "{first:#x}");
        }
    }

    #[test]
    fn every_mark_that_a_program_makes_fits() {
        let largest = Mark::Alloc { address: 0, bytes: 0, site: 0, caller: 0, order: 0 };
        assert!(largest.words().1 <= WORDS);
    }
}
