//! Writes a thread's log anew.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use homenode_log::Mark;
use homenode_log::encode::{MARK_WORDS, MAX_CHUNK_WORDS, MAX_DELTA, SKIP, access_words, mark_words};
use homenode_log::file::{Framer, LogHeader};
use homenode_model::LineNo;

/// A log under way. Its clock is the sum of the deltas.
pub struct RegroupedLog {
    file: BufWriter<File>,
    framer: Framer,
}

impl RegroupedLog {
    /// Makes the file.
    pub fn create(path: &Path, header: LogHeader) -> std::io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&header.bytes())?;
        Ok(Self { file, framer: Framer::new() })
    }

    /// Appends whole records.
    pub fn words(&mut self, words: &[u64]) -> std::io::Result<()> {
        if self.framer.words() + words.len() > MAX_CHUNK_WORDS {
            self.file.write_all(self.framer.frame(&[]))?;
        }
        self.framer.add(words);
        Ok(())
    }

    /// Appends what [`Records`] holds.
    pub fn records(&mut self, records: &Records) -> std::io::Result<()> {
        records.each(|words| self.words(words))
    }

    /// Writes the rest.
    pub fn finish(mut self) -> std::io::Result<()> {
        if self.framer.words() > 0 {
            self.file.write_all(self.framer.frame(&[]))?;
        }
        self.file.flush()
    }
}

/// Records in memory, in the form in which a recorder has them.
#[derive(Clone, Debug, Default)]
pub struct Records(Vec<u64>);

impl Records {
    /// Forgets all records.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Words in all; 8 bytes each.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The clock goes on without an access.
    pub fn skip(&mut self, delta: u64) {
        if delta > 0 {
            self.0.extend([SKIP, delta]);
        }
    }

    /// An access.
    pub fn access(&mut self, line: LineNo, write: bool, pc: u64, mut delta: u64) {
        if delta > MAX_DELTA {
            self.skip(delta - MAX_DELTA);
            delta = MAX_DELTA;
        }
        self.0.extend(access_words(line.0, write, pc, delta));
    }

    /// A mark.
    pub fn mark(&mut self, mark: &Mark, delta: u64) {
        let mut words = [0; MARK_WORDS];
        let n = mark_words(mark, delta, &mut words);
        self.0.extend(&words[..n]);
    }

    /// The clock from the first record to behind the last one.
    pub fn ticks(&self) -> u64 {
        let mut sum = 0u64;
        let _ = self.each(|words| {
            let delta = if words[0] & 0xff <= 1 { words[1] & MAX_DELTA } else { words[1] };
            sum = sum.saturating_add(delta);
            Ok(())
        });
        sum
    }

    /// Each record's words.
    pub fn each(&self, mut f: impl FnMut(&[u64]) -> std::io::Result<()>) -> std::io::Result<()> {
        let mut at = 0;
        while let Some(len) = record_len(&self.0[at..]) {
            f(&self.0[at..at + len])?;
            at += len;
        }
        Ok(())
    }

    /// Changes the lines of accesses.
    pub fn map_lines(&mut self, f: impl Fn(u64) -> u64) {
        let mut at = 0;
        while let Some(len) = record_len(&self.0[at..]) {
            let word = self.0[at];
            if word & 0xff <= 1 {
                self.0[at] = f(word >> 8) << 8 | word & 0xff;
            }
            at += len;
        }
    }

    /// Changes the order of each mark that has one: a lock's or an atomic access's. `f` gets the
    /// clock from the first record to the mark, and the order.
    pub fn map_orders(&mut self, mut f: impl FnMut(u64, u64) -> u64) {
        let (mut at, mut clock) = (0, 0u64);
        while let Some(len) = record_len(&self.0[at..]) {
            let word = self.0[at];
            let delta = self.0[at + 1];
            clock = clock.saturating_add(if word & 0xff <= 1 { delta & MAX_DELTA } else { delta });
            let code = (word >> 8) as u8;
            let ordered = [
                Mark::Acquire { lock: 0, order: 0 }.code(),
                Mark::Release { lock: 0, order: 0 }.code(),
                Mark::Atomic { address: 0, write: 0, order: 0 }.code(),
            ];
            if word & 0xff == 0xff && ordered.contains(&code) {
                // The order is the last word of each.
                self.0[at + len - 1] = f(clock, self.0[at + len - 1]);
            }
            at += len;
        }
    }
}

/// Words of the record that begins here.
fn record_len(words: &[u64]) -> Option<usize> {
    let first = *words.first()?;
    Some(if first & 0xff == 0xff { 2 + (first >> 16) as usize } else { 2 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_log::file::LogReader;
    use homenode_log::{Record, RecordKind};
    use homenode_model::Ticks;

    #[test]
    fn records_are_read_back() {
        let path = std::env::temp_dir().join(format!("homenode-regroup-writer-{}", std::process::id()));
        let header = LogHeader { version: homenode_log::VERSION, filter_lines: 64, line_shift: 6 };
        let mut writer = RegroupedLog::create(&path, header).unwrap();
        let mut records = Records::default();
        records.access(LineNo(7), true, 0x40_0000, 3);
        records.mark(&Mark::Atomic { address: 448, write: 1, order: 9 }, 1);
        records.skip(5);
        records.access(LineNo(1 << 40), false, 0x40_0010, 100_000);
        assert_eq!(records.ticks(), 100_009);
        records.map_lines(|l| if l == 7 { 8 } else { l });
        records.map_orders(|clock, order| clock * 100 + order);
        // More than a frame.
        for _ in 0..20_000 {
            writer.records(&records).unwrap();
        }
        writer.finish().unwrap();
        let mut log = LogReader::open(&path).unwrap();
        let all: Vec<Record> = std::iter::from_fn(|| log.next_record().unwrap()).collect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((all.len(), log.header().filter_lines), (60_000, 64));
        let access = |line, write, pc| RecordKind::Access { line: LineNo(line), write, pc };
        assert_eq!(all[0], Record { tick: Ticks(3), what: access(8, true, 0x40_0000) });
        assert_eq!(all[1].what, RecordKind::Mark(Mark::Atomic { address: 448, write: 1, order: 409 }));
        assert_eq!(all[2], Record { tick: Ticks(100_009), what: access(1 << 40, false, 0x40_0010) });
        assert_eq!(all[59_999].tick, Ticks(100_009 * 20_000));
    }
}
