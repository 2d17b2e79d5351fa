//! Marks: everything in a log that is not a plain access. Each is a code and a few 64-bit words.
//!
//! `order` is a number from one counter of the process, taken while the thing it orders is held (a
//! lock: after acquiring, before releasing), so numbers of one lock never contradict the order in
//! which it changed hands, and within a thread they only grow.

macro_rules! marks {
    ($( $(#[$doc:meta])* $code:literal $name:ident { $( $(#[$fdoc:meta])* $field:ident ),* } )*) => {
        /// A mark.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Mark {
            $( $(#[$doc])* $name { $( $(#[$fdoc])* $field: u64 ),* }, )*
        }

        impl Mark {
            /// Its code in the log.
            pub const fn code(&self) -> u8 {
                match self { $( Self::$name { .. } => $code, )* }
            }
            /// Its name, for messages.
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name { .. } => stringify!($name), )* }
            }
            /// Its words, in the order of the fields; `n` of the array are used.
            pub fn words(&self) -> ([u64; MAX_WORDS], usize) {
                let mut out = [0; MAX_WORDS];
                let mut n = 0;
                match *self {
                    $( Self::$name { $($field),* } => { $( out[n] = $field; n += 1; )* } )*
                }
                (out, n)
            }
            /// The mark of `code` with `words`; `None` if there is no such code or the count is
            /// wrong.
            pub fn from_words(code: u8, words: &[u64]) -> Option<Self> {
                let mut it = words.iter().copied();
                let mark = match code {
                    $( $code => Self::$name { $($field: it.next()?),* }, )*
                    _ => return None,
                };
                it.next().is_none().then_some(mark)
            }
        }

        #[cfg(test)]
        pub(crate) const ALL: &[(u8, usize)] = &[ $( ($code, 0 $( + { let _ = stringify!($field); 1 } )*) ),* ];
    };
}

/// Accesses to lines that bypass the filter that a recorder lets pass a thread; from then on such
/// lines are filtered like all others.
pub const BYPASS_CAP: u64 = 1 << 24;

/// Most words any mark has.
pub const MAX_WORDS: usize = 6;

marks! {
    /// The thread starts to be recorded.
    1 ThreadStart {
        /// Number that its creator wrote in `ThreadCreate`; 0 for the initial thread and threads of
        /// a run-time system.
        id,
        /// Lowest address of its stack, 0 if unknown.
        stack_low,
        /// One past the highest.
        stack_high
    }
    /// The thread ends here.
    2 ThreadEnd {
        /// 0: it returned; 1: the process exited; 2: recording was switched off.
        reason
    }
    /// This thread creates thread `id`.
    3 ThreadCreate {
        /// Number, from 1.
        id
    }
    /// This thread has waited for the end of thread `id`.
    4 ThreadJoin {
        /// As in `ThreadCreate`.
        id
    }
    /// This thread starts a team.
    5 RegionFork {
        /// Instance, unique in the recording, from 1.
        instance,
        /// Where in the program: the outlined function (libgomp) or the return address of the fork
        /// (libomp).
        pc
    }
    /// The team has joined.
    6 RegionJoin {
        /// As in `RegionFork`.
        instance
    }
    /// This thread becomes a member of the team.
    7 TaskBegin {
        /// As in `RegionFork`.
        instance,
        /// Its number in the team.
        number,
        /// Members.
        team
    }
    /// This thread has done its part.
    8 TaskEnd {
        /// As in `RegionFork`.
        instance
    }
    /// This thread arrives at a barrier of its team; what follows comes after all members arrived.
    9 Barrier {
        /// As in `RegionFork`.
        instance,
        /// Counts the barriers of the instance, from 0, the same in all members.
        generation
    }
    /// A lock was acquired.
    10 Acquire {
        /// Its address or another number that identifies it.
        lock,
        /// Global order.
        order
    }
    /// A lock is about to be released.
    11 Release {
        /// As in `Acquire`.
        lock,
        /// Global order.
        order
    }
    /// An atomic operation; never filtered.
    12 Atomic {
        /// Address.
        address,
        /// 0 load, 1 store or read-modify-write.
        write,
        /// Global order.
        order
    }
    /// Memory was allocated: an object, or a part of one.
    13 Alloc {
        /// First byte.
        address,
        /// Length.
        bytes,
        /// Return address of the allocating call.
        site,
        /// Return address of the function with that call, so that a program's own allocation
        /// function does not make one object of everything; 0: unknown.
        caller,
        /// Global order.
        order
    }
    /// An allocation told by `Alloc` ends.
    14 Free {
        /// As in `Alloc`.
        address,
        /// Global order.
        order
    }
    /// `hn_iteration`.
    15 Iteration {
        /// Round that begins.
        number,
        /// Global order.
        order
    }
    /// `hn_next_touch`.
    16 NextTouch {
        /// First byte.
        address,
        /// Length.
        bytes,
        /// Global order.
        order
    }
    /// This thread got a piece of a dynamically scheduled loop; an empty one: there is no more for
    /// it, and the loop is over for this thread. The filter was emptied.
    17 LoopPiece {
        /// First iteration, as two's complement.
        first,
        /// One past the last, as two's complement.
        end
    }
    /// This thread won a `single`.
    18 Single {
        /// As in `RegionFork`.
        instance
    }
    /// A loaded module: the addresses `base + low .. base + high` belong to it. The path is in
    /// `modules.txt`.
    19 Module {
        /// Index of the line in `modules.txt`.
        index,
        /// Load bias: address in the process minus address in the file.
        base,
        /// Lowest address, relative to `base`.
        low,
        /// One past the highest, relative to `base`.
        high
    }
    /// The program break's segment starts here.
    20 Heap {
        /// Its first byte.
        address
    }
    /// Lines written by one thread and used by another between two barriers bypass the filter from
    /// here on.
    21 Bypass {
        /// Lines in the table now.
        lines
    }
    /// What the thread's recorder counted, before `ThreadEnd`.
    22 Totals {
        /// Accesses executed.
        accesses,
        /// Accesses that passed the filter.
        passed,
        /// Of these, because the line bypasses it.
        bypassed,
        /// Events dropped because they came from a signal handler that interrupted the recorder.
        dropped
    }
    /// Synchronisation without a partner that the recorder knows (taskwait, fence): the filter was
    /// emptied.
    23 Flush { }
    /// When the thread's next mark is made, and where the thread runs. Only the marks that a
    /// program makes on the lab have it; a recorded trace has a clock of accesses instead.
    24 Clock {
        /// Nanoseconds of the system's monotonic clock.
        ns,
        /// The CPU.
        cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_survives_its_words() {
        for &(code, n) in ALL {
            let words: Vec<u64> = (0..n as u64).map(|i| i * 7 + 1).collect();
            let mark = Mark::from_words(code, &words).expect("known code");
            let (back, used) = mark.words();
            assert_eq!((mark.code(), &back[..used]), (code, &words[..]));
        }
    }

    #[test]
    fn wrong_counts_and_codes_are_refused() {
        assert_eq!(Mark::from_words(1, &[1, 2]), None);
        assert_eq!(Mark::from_words(23, &[1]), None);
        assert_eq!(Mark::from_words(200, &[]), None);
    }
}
