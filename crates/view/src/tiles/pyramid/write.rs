//! Makes a pyramid while the tables are read.

use std::io;
use std::path::Path;

use homenode_model::ObjectId;

use super::format::{FOOT, Finished, Head, MAGIC};
use super::out::{Out, Written};
use super::shelf::Shelf;
use super::sums::{COLUMN_BITS, NODE_BITS, OBJECT_BITS, PAGE_BITS, Sum, SumCell, SumKey};
use super::{PyramidError, Resolution, SumKind};

/// Sums that all buffers of a kind hold at most, of which each takes 32 bytes: touches, homes,
/// moves.
pub const BUFFERED: [usize; 3] = [1 << 21, 1 << 18, 1 << 17];
/// A cell of the next coarser resolution holds `1 << STEP` cells in one direction.
const STEP: u32 = 2;
/// Cells in one direction of the coarsest resolution: the page itself has coarser pictures.
const FEW: u64 = 128;

/// What a pyramid is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Objects and their pages, by place.
    pub objects: Vec<(ObjectId, u64)>,
    /// Intervals of the recording.
    pub intervals: usize,
    /// Nodes that have an index.
    pub nodes: usize,
    /// Pages of a usual row of accesses: smaller cells would add nothing up.
    pub grain: u64,
    /// Sums that are kept in memory: see [`BUFFERED`].
    pub buffered: [usize; 3],
}

impl Recipe {
    /// Shifts from the finest to the coarsest, for this number of pages or intervals.
    fn shifts(size: u64, grain: u32) -> Vec<u32> {
        let coarser = (1..).map(|n| grain + n * STEP).take_while(|s| size >> s > FEW);
        std::iter::once(0).chain(coarser).collect()
    }

    /// Page shifts and time shifts; every pair is a resolution.
    fn resolutions(&self) -> (Vec<u32>, Vec<u32>) {
        let largest = self.objects.iter().map(|(_, pages)| *pages).max().unwrap_or(1);
        let largest = largest.min(1 << PAGE_BITS);
        (Self::shifts(largest, self.grain.max(1).ilog2()), Self::shifts(self.intervals as u64, 0))
    }

    fn check(&self) -> Result<(), PyramidError> {
        let fits = |n: usize, bits: u32, what| match n >> bits {
            0 => Ok(()),
            _ => Err(PyramidError::TooMany(what)),
        };
        fits(self.objects.len(), OBJECT_BITS, "objects")?;
        fits(self.intervals, COLUMN_BITS, "intervals")?;
        fits(self.nodes, NODE_BITS, "nodes")
    }
}

/// Makes a pyramid. After a failure it takes rows and forgets them; [`PyramidWriter::finish`] says
/// why.
pub struct PyramidWriter {
    recipe: Recipe,
    resolutions: Vec<Resolution>,
    shelves: Vec<Shelf>,
    out: Out,
}

impl PyramidWriter {
    /// A pyramid in a file that must not exist yet.
    ///
    /// # Errors
    /// The file cannot be made, or the recording is too large.
    pub fn create(recipe: Recipe, path: &Path) -> Result<Self, PyramidError> {
        recipe.check()?;
        Self::new(recipe, Out::file(path)?)
    }

    /// A pyramid in memory.
    ///
    /// # Errors
    /// The recording is too large.
    pub fn in_memory(recipe: Recipe) -> Result<Self, PyramidError> {
        Self::new(recipe, Out::memory())
    }

    fn new(recipe: Recipe, mut out: Out) -> Result<Self, PyramidError> {
        recipe.check()?;
        let (pages, times) = recipe.resolutions();
        let pair = |time_shift: &u32| {
            let time_shift = *time_shift;
            pages.iter().map(move |page_shift| Resolution { page_shift: *page_shift, time_shift })
        };
        let resolutions = times.iter().flat_map(pair).collect();
        let shelves =
            SumKind::ALL.map(|kind| Shelf::new(kind, &pages, &times, recipe.buffered[kind as usize])).into();
        out.write(MAGIC);
        Ok(Self { recipe, resolutions, shelves, out })
    }

    /// Why nothing is written any more.
    pub const fn failure(&self) -> Option<&io::Error> {
        self.out.failed.as_ref()
    }

    #[inline]
    fn add(&mut self, kind: SumKind, cell: SumCell, first: u64, second: u64) {
        let fits = (cell.column as usize) < self.recipe.intervals;
        if !fits || cell.pages == 0 || self.out.failed.is_some() {
            return;
        }
        self.shelves[kind as usize].add(Sum { key: SumKey::of(&cell), first, second }, &mut self.out);
    }

    /// Adds accesses or sightings of a run of pages in the interval at `at`, by the node with that
    /// index.
    #[inline]
    pub fn touched(&mut self, run: PyramidRun, at: usize, node: usize, weight: u64, remote: bool) {
        self.add(SumKind::Touches, run.at(at, node), weight, if remote { weight } else { 0 });
    }

    /// Adds pages that lived on `home` from the interval at `first` to the one at `last`.
    pub fn lives(&mut self, run: PyramidRun, first: usize, last: usize, home: usize) {
        if first > last {
            return;
        }
        let pages = run.at(first, home).pages;
        self.add(SumKind::Homes, run.at(first, home), pages, 0);
        self.add(SumKind::Homes, run.at(last.saturating_add(1), home), pages.wrapping_neg(), 0);
    }

    /// Adds a run of pages that moved in the interval at `at`; `back`: to a node where they had
    /// been.
    pub fn moved(&mut self, run: PyramidRun, at: usize, back: bool) {
        let pages = run.at(at, 0).pages;
        self.add(SumKind::Moves, run.at(at, 0), pages, if back { pages } else { 0 });
    }

    /// All rows were added: makes the coarser sums, and writes the index. `stamp` says of which
    /// tables it is. `more` gets the part that is done, in thousandths, and says whether to go on.
    ///
    /// # Errors
    /// Something could not be written, or `more` said no. Nothing is left of the file then.
    pub fn finish(
        mut self,
        stamp: &str,
        more: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Finished, PyramidError> {
        let out = &mut self.out;
        self.shelves.iter_mut().for_each(|shelf| shelf.end_rows(out));
        let blocks = self.shelves.iter().map(Shelf::blocks).sum::<usize>().max(1);
        let mut read = 0;
        let mut more = |n| {
            read += n;
            more((read * 1000 / blocks) as u64)
        };
        for shelf in &mut self.shelves {
            if !shelf.coarsen(out, &mut more) {
                return Err(PyramidError::Stopped);
            }
        }
        let mut index = Vec::new();
        let mut before = 0;
        for entry in &out.index {
            entry.encode(before, &mut index);
            before = entry.offset;
        }
        let head = Head {
            stamp: stamp.to_owned(),
            objects: self.recipe.objects.iter().map(|(o, _)| o.0).collect(),
            resolutions: self.resolutions.iter().map(|r| [r.page_shift, r.time_shift]).collect(),
            intervals: self.recipe.intervals as u64,
            blocks: out.index.len() as u64,
        };
        let mut all = serde_json::to_vec(&head).map_err(io::Error::from)?;
        all.push(b'\n');
        all.extend_from_slice(&index);
        let (at, sum) = (out.at(), crc32fast::hash(&all));
        out.write(&all);
        let mut foot = Vec::with_capacity(FOOT);
        foot.extend(at.to_le_bytes());
        foot.extend((all.len() as u64).to_le_bytes());
        foot.extend(sum.to_le_bytes());
        foot.extend(MAGIC);
        out.write(&foot);
        let Written { path, bytes, index: entries } = self.out.finish()?;
        Ok(Finished { head, entries, path, bytes })
    }
}

/// A run of pages of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PyramidRun {
    /// The object's place.
    pub object: usize,
    /// First page.
    pub page: u64,
    /// How many.
    pub pages: u64,
}

impl PyramidRun {
    /// The cell of the run. Pages and intervals for which there is no number are left out.
    fn at(self, at: usize, node: usize) -> SumCell {
        const BEHIND: u64 = (1 << PAGE_BITS) - 1;
        let pages = self.pages.min(BEHIND.saturating_sub(self.page));
        let page = self.page.min(BEHIND);
        let column = if at >> COLUMN_BITS == 0 { at as u32 } else { u32::MAX };
        SumCell { object: self.object as u32, page, column, node: node as u32, pages }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    /// A disk with room for this number of bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let n = bytes.len().min(self.0);
            self.0 -= n;
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn recipe(intervals: usize) -> Recipe {
        let objects = vec![(ObjectId(4), 1 << 20)];
        Recipe { objects, intervals, nodes: 4, grain: 16, buffered: [0; 3] }
    }

    #[test]
    fn resolutions_are_pairs_from_the_finest_on() {
        let (pages, times) = recipe(3000).resolutions();
        assert_eq!(pages, [0, 6, 8, 10, 12]);
        assert_eq!(times, [0, 2, 4]);
        let tiny = Recipe { objects: Vec::new(), ..recipe(0) };
        assert_eq!(tiny.resolutions(), (vec![0], vec![0]));
    }

    #[test]
    fn a_full_disk_is_told_and_costs_the_pyramid_alone() {
        for room in [0, 100, 5000] {
            let mut writer = PyramidWriter::new(recipe(10_000), Out::other(Full(room))).unwrap();
            for n in 0..20_000_u64 {
                let run = PyramidRun { object: 0, page: n * 16, pages: 16 };
                writer.touched(run, n as usize % 10_000, 1, n, false);
            }
            assert!(writer.failure().is_some(), "{room} bytes are not enough for what is there already");
            let why = writer.finish("", &mut |_| true).unwrap_err().to_string();
            assert!(why.contains("no storage space"), "{why}");
        }
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let path = std::env::temp_dir().join(format!("homenode-pyramid-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let mut writer = PyramidWriter::create(recipe(4), &path).unwrap();
        writer.moved(PyramidRun { object: 0, page: 3, pages: 1 }, 2, true);
        assert!(path.exists());
        drop(writer);
        assert!(!path.exists());
    }

    #[test]
    fn somebody_may_ask_to_stop_while_coarser_sums_are_made() {
        let path = std::env::temp_dir().join(format!("homenode-pyramid-stopped-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let recipe = Recipe { buffered: [20_000; 3], ..recipe(10_000) };
        let mut writer = PyramidWriter::create(recipe, &path).unwrap();
        for n in 0..50_000_u64 {
            let run = PyramidRun { object: 0, page: n * 16, pages: 16 };
            writer.touched(run, n as usize % 10_000, 1, n, false);
        }
        let mut asked = Vec::new();
        let mut more = |done| {
            asked.push(done);
            asked.len() < 3
        };
        assert!(matches!(writer.finish("", &mut more), Err(PyramidError::Stopped)));
        assert_eq!(asked.len(), 3);
        assert!(asked.is_sorted() && asked[0] > 0 && asked[2] < 1000 && !path.exists(), "{asked:?}");
    }

    #[test]
    fn too_many_intervals_are_refused() {
        let why = PyramidWriter::in_memory(recipe(1 << COLUMN_BITS)).err().unwrap().to_string();
        assert_eq!(why, "the recording has more intervals than the file can tell apart");
    }
}
