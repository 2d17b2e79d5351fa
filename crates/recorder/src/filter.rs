//! A thread's filter: the lines that the thread has used, and written, since it last synchronised.

use homenode_log::encode::{MARK_TAG, SKIP};

/// log2 of the bytes of a line.
pub const LINE_SHIFT: u32 = homenode_model::LineNo::SHIFT;

/// Two tables with a line at each place, or 0. Another thread may read and clear entries, so the
/// tables live for ever.
#[derive(Clone, Copy)]
pub struct LineFilter {
    /// The lines used.
    pub(crate) used: *mut u64,
    /// The lines written.
    pub(crate) written: *mut u64,
    /// Places of a table.
    lines: usize,
    /// Number of places minus one.
    pub(crate) mask: usize,
}

impl LineFilter {
    /// Over zeroed memory.
    ///
    /// # Safety
    /// `memory` has room for `2 * lines` entries and is never freed. `lines` is a power of two.
    pub unsafe fn new(memory: *mut u64, lines: usize) -> Self {
        Self { used: memory, written: memory.wrapping_add(lines), lines, mask: lines - 1 }
    }

    /// Places of a table.
    pub const fn lines(&self) -> usize {
        self.lines
    }

    /// Writes an entry at a line's place: the line, or 0.
    #[inline(always)]
    pub fn enter(&self, line: u64, write: bool, entry: u64) {
        let at = line as usize & self.mask;
        // SAFETY: `at` is below the tables' length.
        unsafe {
            self.used.add(at).write(entry);
            self.written.add(at).write(if write { entry } else { 0 });
        }
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        // SAFETY: both tables.
        unsafe { self.used.write_bytes(0, 2 * self.lines) };
    }

    /// Forgets the lines of the accesses in words of a log.
    pub fn clear_accesses(&self, words: &[u64]) {
        let mut at = 0;
        while let Some(&word) = words.get(at) {
            at += 2;
            if word & MARK_TAG == MARK_TAG {
                at += (word >> 16) as usize;
            } else if word != SKIP {
                let place = (word >> 8) as usize & self.mask;
                // SAFETY: `place` is below the tables' length.
                unsafe {
                    self.used.add(place).write(0);
                    self.written.add(place).write(0);
                }
            }
        }
    }

    /// Forgets a line in the filter of a thread that may run. The owner may write the same word at
    /// the same time; then one more access is missed, which the next synchronisation ends.
    pub fn forget(&self, line: u64) {
        let at = line as usize & self.mask;
        // SAFETY: `at` is below the tables' length, and filters are never freed.
        unsafe {
            for entry in [self.used.add(at), self.written.add(at)] {
                if entry.read_volatile() == line {
                    entry.write_volatile(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_log::encode::access_words;

    const LINES: usize = 8;

    fn entries(filter: &LineFilter, line: u64) -> [u64; 2] {
        let at = line as usize & filter.mask;
        // SAFETY: below the tables' length.
        unsafe { [filter.used.add(at).read(), filter.written.add(at).read()] }
    }

    fn filter() -> LineFilter {
        let memory = Box::leak(Box::new([0_u64; 2 * LINES]));
        // SAFETY: room for two tables, never freed.
        unsafe { LineFilter::new(memory.as_mut_ptr(), LINES) }
    }

    #[test]
    fn a_line_is_entered_as_used_and_as_written() {
        let filter = filter();
        filter.enter(3, false, 3);
        filter.enter(12, true, 12);
        assert_eq!([entries(&filter, 3), entries(&filter, 12)], [[3, 0], [12, 12]]);
        filter.enter(11, true, 0);
        assert_eq!(entries(&filter, 11), [0, 0], "it bypasses the filter, and has the place of line 3");
        filter.clear();
        assert_eq!(entries(&filter, 12), [0, 0]);
    }

    #[test]
    fn another_line_at_the_place_is_not_forgotten() {
        let filter = filter();
        filter.enter(3, true, 3);
        filter.forget(11);
        assert_eq!(entries(&filter, 3), [3, 3]);
        filter.forget(3);
        assert_eq!(entries(&filter, 3), [0, 0]);
    }

    #[test]
    fn lines_of_a_log_s_accesses_are_forgotten() {
        let filter = filter();
        filter.enter(3, true, 3);
        filter.enter(4, false, 4);
        let words = [SKIP, 1000].into_iter().chain(access_words(3, true, 0, 1)).collect::<Vec<u64>>();
        filter.clear_accesses(&words);
        assert_eq!([entries(&filter, 3), entries(&filter, 4)], [[0, 0], [4, 0]]);
    }
}
