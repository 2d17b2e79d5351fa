//! Recorded tables of a run for a later run.
//!
//! A loop is known by the file that has it, told from another build by a hash of the instructions,
//! and by its place there. A table fits a loop with the same values, chunk size and team.

use std::collections::BTreeMap;
use std::sync::Arc;

use homenode_wire::schedule::{
    self, CODES, CodeFile, LOOPS, Loop, RUNS, Schedules, THREADS, ThreadIterations,
};

use crate::shape::Shape;
use crate::space::{Run, Space};
use crate::table::IterationTable;

/// A table and the nodes of its threads.
pub type TableAndNodes = (Arc<IterationTable>, Vec<Option<u16>>);

/// The tables of an earlier run, by hash of the code and place there.
#[derive(Debug, Default)]
pub struct Imported {
    loops: BTreeMap<(u64, u64), Vec<Loop>>,
}

impl Imported {
    /// Takes the tables of the files that are loaded.
    ///
    /// # Errors
    /// A sentence: none of the files is loaded, or there is nothing in the recording.
    pub fn new(file: Schedules, loaded: &[CodeFile]) -> Result<Self, String> {
        let mut loops: BTreeMap<(u64, u64), Vec<Loop>> = BTreeMap::new();
        if file.loops.is_empty() {
            return Err("the recorded schedules are empty".into());
        }
        let is_here = |code: &&CodeFile| loaded.iter().any(|l| l.hash == code.hash && l.bytes == code.bytes);
        for one in file.loops {
            if let Some(code) = file.codes.get(one.code as usize).filter(is_here) {
                loops.entry((code.hash, one.offset)).or_default().push(one);
            }
        }
        if loops.is_empty() {
            let names: Vec<&str> = file.codes.iter().map(|c| c.name.as_str()).collect();
            let same = file.codes.iter().any(|c| loaded.iter().any(|l| l.name == c.name));
            let what = if same { "another build of" } else { "another program:" };
            return Err(format!("the recorded schedules are of {what} {}", names.join(", ")));
        }
        Ok(Self { loops })
    }

    /// Whether there is no table.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    /// The table for a loop at a place.
    ///
    /// # Errors
    /// A sentence: there is none, or it is of another trip count or team.
    pub fn find(&self, shape: &Shape, place: Option<(u64, u64)>) -> Result<TableAndNodes, String> {
        let count = shape.space.count();
        let loops = place.and_then(|p| self.loops.get(&p));
        let loops =
            loops.ok_or_else(|| format!("a loop of {count} iterations is not in the recorded schedules"))?;
        let (first, step, bound) = shape.space.parts();
        let is_this = |l: &&Loop| (l.first, l.step, l.bound, l.chunk) == (first, step, bound, shape.chunk);
        let of_team = |l: &&Loop| l.threads.len() == shape.team as usize;
        let Some(found) = loops.iter().filter(is_this).find(of_team) else {
            let recorded = |l: &Loop| {
                let n = Space::excluding(l.first, l.bound, l.step).map_or(0, |s| s.count());
                format!("{n} iterations in chunks of {} by {} threads", l.chunk, l.threads.len())
            };
            let one = loops.first().map(recorded).unwrap_or_default();
            return Err(format!(
                "a loop has {count} iterations in chunks of {} by {} threads, and was recorded with {one}",
                shape.chunk, shape.team
            ));
        };
        let run = |r: &schedule::IterationRange| Run { begin: r.begin, end: r.end };
        let threads = found.threads.iter().map(|t| t.runs.iter().map(run).collect()).collect();
        let table = IterationTable::new(count, threads)
            .map_err(|why| format!("a recorded loop of {count} iterations makes no sense: {why}"))?;
        Ok((Arc::new(table), found.threads.iter().map(|t| t.node).collect()))
    }
}

/// A book's tables ([`crate::Book::tables`]) for a later run, and how many were left out. `place`
/// tells the index of a site's file in `codes`, and where there the site is.
pub fn export<'a>(
    tables: impl Iterator<Item = (&'a Shape, &'a IterationTable, &'a [Option<u16>])>,
    codes: Vec<CodeFile>,
    place: impl Fn(usize) -> Option<(u32, u64)>,
) -> (Schedules, usize) {
    let mut file = Schedules { codes, loops: Vec::new() };
    let mut left_out = 0;
    // A message has a bound: runs take at most 20 bytes each.
    let mut room = 2 << 20;
    for (shape, table, nodes) in tables {
        let runs: usize = (0..table.team()).map(|t| table.runs(t).len()).sum();
        let fits = file.loops.len() < LOOPS && runs <= room && runs <= RUNS && table.team() <= THREADS;
        let (Some((code, offset)), true) = (place(shape.site), fits) else {
            left_out += 1;
            continue;
        };
        room -= runs;
        let (first, step, bound) = shape.space.parts();
        let thread = |t: usize| ThreadIterations {
            node: nodes.get(t).copied().flatten(),
            runs: table
                .runs(t)
                .iter()
                .map(|r| schedule::IterationRange { begin: r.begin, end: r.end })
                .collect(),
        };
        let threads = (0..table.team()).map(thread).collect();
        file.loops.push(Loop { code, offset, first, step, bound, chunk: shape.chunk, threads });
    }
    // Only the files that have loops, in the order in which they first occur.
    let mut kept: Vec<u32> = Vec::new();
    for one in &mut file.loops {
        let at = kept.iter().position(|k| *k == one.code).unwrap_or_else(|| {
            kept.push(one.code);
            kept.len() - 1
        });
        one.code = at as u32;
    }
    kept.truncate(CODES);
    file.codes = kept.iter().filter_map(|k| file.codes.get(*k as usize).cloned()).collect();
    (file, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::{Book, LoopOutcome, Promise, ThreadExecution};
    use crate::deal::Deal;
    use homenode_wire::schedule::Mode;

    const SITE: usize = 0x5000_1234;

    fn shape(count: i128, team: u32) -> Shape {
        Shape { site: SITE, space: Space::excluding(0, count, 1).unwrap(), chunk: 4, team }
    }

    fn code(hash: u64) -> CodeFile {
        CodeFile { name: "app".into(), bytes: 100, hash }
    }

    fn recorded() -> Schedules {
        let mut book = Book::new(Mode::Record, 2);
        let shape = shape(10, 2);
        book.decide(&shape, Promise::default(), |_| None, nothing).unwrap();
        let row =
            |thread, begin, end| ThreadExecution { thread, node: Some(1), runs: vec![Run { begin, end }] };
        let rows = Some(vec![row(0, 4, 10), row(1, 0, 4)]);
        book.ended(&shape, LoopOutcome { rows, complete: true, ..LoopOutcome::default() });
        let codes = vec![code(3), code(7)];
        let (file, left_out) = export(book.tables(), codes, |site| (site == SITE).then_some((1, 0x1234)));
        assert_eq!((file.loops.len(), left_out, &file.codes[..]), (1, 0, &[code(7)][..]));
        file
    }

    fn nothing(pages: &[usize]) -> Vec<Option<u16>> {
        vec![None; pages.len()]
    }

    #[test]
    fn a_later_run_replays_what_an_earlier_one_recorded() {
        let bytes = homenode_wire::encode(&recorded()).unwrap();
        let file: Schedules = homenode_wire::decode(&bytes).unwrap();
        let mut book = Book::new(Mode::Replay, 2);
        book.import(Imported::new(file, &[code(7)]).unwrap());
        let place = |_| Some((7, 0x1234));
        // From its first execution on.
        let decision = book.decide(&shape(10, 2), Promise::default(), place, nothing).unwrap();
        let Some(Deal::Replay(table)) = decision.deal else { panic!("it is replayed") };
        assert_eq!(table.runs(0), [Run { begin: 4, end: 10 }]);
        // Another team, another trip count: the program's own schedule, and a sentence.
        for other in [shape(10, 3), shape(11, 2)] {
            assert!(book.decide(&other, Promise::default(), place, nothing).is_none());
        }
        assert!(
            book.decide(&Shape { site: 1, ..shape(10, 2) }, Promise::default(), |_| None, nothing).is_none()
        );
        let refused = book.dealt_so_far().refused;
        assert_eq!(
            refused,
            [
                "a loop has 10 iterations in chunks of 4 by 3 threads, and was recorded with 10 iterations in chunks of 4 by 2 threads",
                "a loop has 11 iterations in chunks of 4 by 2 threads, and was recorded with 10 iterations in chunks of 4 by 2 threads",
                "a loop of 10 iterations is not in the recorded schedules",
            ]
        );
    }

    #[test]
    fn another_program_is_refused_in_words() {
        let why = |loaded: &[CodeFile]| Imported::new(recorded(), loaded).unwrap_err();
        assert_eq!(why(&[code(8)]), "the recorded schedules are of another build of app");
        let other = CodeFile { name: "b".into(), ..code(8) };
        assert_eq!(why(&[other]), "the recorded schedules are of another program: app");
        assert!(Imported::new(Schedules::default(), &[]).unwrap_err().contains("empty"));
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let mut file = recorded();
        file.loops[0].threads[0].runs[0].begin = 5;
        let imported = Imported::new(file, &[code(7)]).unwrap();
        let why = imported.find(&shape(10, 2), Some((7, 0x1234))).unwrap_err();
        assert_eq!(why, "a recorded loop of 10 iterations makes no sense: iteration 4 is missing");
    }
}
