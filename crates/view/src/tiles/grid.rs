//! Pages × time of one object: who was home, who touched, what moved; at several resolutions.
//!
//! Sums are exact at every level: a coarse cell is the sum of its fine cells, and only then is the
//! dominant node taken. A page that moved once is one page at every level.

use std::collections::BTreeMap;

use serde::Serialize;

use super::axis::{Bands, Columns};
use super::plane::Plane;

/// Pages above which a run weighs no more, so that sums of hostile rows stay meaningful.
const MOST_PAGES: u64 = 1 << 40;
/// Up to this number of bands no coarser picture is needed.
const FEW_BANDS: usize = 8;
/// A band of the next level holds `1 << STEP` bands.
const STEP: u32 = 2;

/// Sums by cell and node, over time kept as differences between columns: a run over many columns
/// takes as long as one over few.
#[derive(Clone, Debug)]
struct Sums {
    nodes: usize,
    columns: usize,
    values: Vec<u64>,
}

impl Sums {
    fn new(bands: usize, columns: usize, nodes: usize) -> Self {
        Self { nodes, columns, values: vec![0; bands * columns * nodes] }
    }

    const fn at(&self, band: usize, column: usize, node: usize) -> usize {
        (band * self.columns + column) * self.nodes + node
    }

    /// Adds to the columns `from` to `to`, the latter not included.
    fn add_stretch(&mut self, band: usize, from: usize, to: usize, node: usize, value: u64) {
        if from >= to {
            return;
        }
        let at = self.at(band, from, node);
        self.values[at] = self.values[at].wrapping_add(value);
        if to < self.columns {
            let at = self.at(band, to, node);
            self.values[at] = self.values[at].wrapping_sub(value);
        }
    }

    /// From differences to sums.
    fn integrate(&mut self) {
        for band in self.values.chunks_mut(self.columns * self.nodes) {
            for i in self.nodes..band.len() {
                band[i] = band[i].wrapping_add(band[i - self.nodes]);
            }
        }
    }

    /// The sums of a cell, by node.
    fn cell(&self, band: usize, column: usize) -> &[u64] {
        let at = self.at(band, column, 0);
        &self.values[at..at + self.nodes]
    }
}

/// The node with most of something, and its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dominant {
    /// Index of the node plus one; 0 where there is nothing.
    pub node: u32,
    /// Its share in percent, rounded down, at least 1.
    pub percent: u32,
    /// How many nodes have any share.
    pub nodes: u32,
}

/// A part of a whole that is not zero, in percent, rounded down.
fn percent(part: u128, whole: u128) -> u32 {
    match (u64::try_from(part * 100), u64::try_from(whole)) {
        // One instruction instead of a call.
        (Ok(part), Ok(whole)) => (part / whole) as u32,
        _ => (part * 100 / whole) as u32,
    }
}

impl Dominant {
    /// Of equal ones the first.
    pub fn of(values: &[u64]) -> Self {
        let (mut all, mut nodes, mut best) = (0_u128, 0, (0_usize, 0_u64));
        for (i, value) in values.iter().enumerate().filter(|(_, v)| **v > 0) {
            all += u128::from(*value);
            nodes += 1;
            if *value > best.1 {
                best = (i, *value);
            }
        }
        let (i, value) = best;
        if value == 0 {
            return Self::default();
        }
        let percent = percent(value.into(), all);
        Self { node: i as u32 + 1, percent: percent.max(1), nodes }
    }
}

/// A grid while tables are read.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Its bands of pages.
    pub bands: Bands,
    /// Its columns of intervals.
    pub columns: Columns,
    nodes: usize,
    homes: Sums,
    touches: Sums,
    /// Remote ones among the touches.
    remote: Vec<u64>,
    /// Pages that moved, and pages that moved back, by cell.
    moves: BTreeMap<(u32, u32), (u64, u64)>,
    /// By band: the first interval with a home, and the pages by node there. And the last one.
    ends: Vec<[Option<End>; 2]>,
}

impl Grid {
    /// An empty grid; nodes are told by indices below `nodes`.
    pub fn new(bands: Bands, columns: Columns, nodes: usize) -> Self {
        let (b, c) = (bands.count(), columns.count());
        Self {
            bands,
            columns,
            nodes,
            homes: Sums::new(b, c, nodes),
            touches: Sums::new(b, c, nodes),
            remote: vec![0; b * c],
            moves: BTreeMap::new(),
            ends: vec![[None, None]; b],
        }
    }

    /// Adds pages that lived on `home` from the interval at `first` to the one at `last`.
    pub fn lives(&mut self, page: u64, pages: u64, first: usize, last: usize, home: usize) {
        let Some((from, to)) = self.columns.inside(first, last) else { return };
        let (shift, width) = (self.columns.shift, self.columns.width());
        let (left, right) = (from >> shift, to >> shift);
        for (band, pages) in self.bands.of_run(page, pages) {
            let pages = pages.min(MOST_PAGES);
            if left == right {
                self.homes.add_stretch(band, left, left + 1, home, pages * (to - from + 1) as u64);
            } else {
                let head = ((left + 1) << shift) - from;
                let tail = to + 1 - (right << shift);
                self.homes.add_stretch(band, left, left + 1, home, pages * head as u64);
                self.homes.add_stretch(band, left + 1, right, home, pages * width);
                self.homes.add_stretch(band, right, right + 1, home, pages * tail as u64);
            }
            let nodes = self.nodes;
            let [begin, end] = &mut self.ends[band];
            note(begin, first, home, pages, nodes, |new, old| new < old);
            note(end, last, home, pages, nodes, |new, old| new > old);
        }
    }

    /// Adds pages that came to `home`, `pages` of them in the interval at `at`; `later`: the same
    /// times how many intervals after `at` they came. Pages that left count as negative. All of
    /// them come before the column of `at` ends.
    pub fn came(&mut self, run: (u64, u64), at: usize, home: usize, pages: u64, later: u64) {
        let Columns { first, intervals, shift } = self.columns;
        if at >= first + intervals || home >= self.nodes {
            return;
        }
        let last = self.columns.count() - 1;
        let width = |column| {
            let (from, to) = self.columns.range(column);
            (to - from) as u64
        };
        let (whole, rest) = (width(0), width(last));
        let whole_run = i128::from(run.1.max(1));
        for (band, inside) in self.bands.of_run(run.0, run.1) {
            let part = |n: u64| (i128::from(n as i64) * i128::from(inside) / whole_run) as u64;
            let (pages, later) = (part(pages), part(later));
            let next = match at.checked_sub(first) {
                None => 0,
                Some(inside) => {
                    let column = inside >> shift;
                    let left = (self.columns.range(column).1 - at) as u64;
                    let value = pages.wrapping_mul(left).wrapping_sub(later);
                    self.homes.add_stretch(band, column, column + 1, home, value);
                    column + 1
                }
            };
            self.homes.add_stretch(band, next, last, home, pages.wrapping_mul(whole));
            if next <= last {
                self.homes.add_stretch(band, last, last + 1, home, pages.wrapping_mul(rest));
            }
        }
    }

    /// Adds `weight` accesses or sightings of a run of pages (its first page and their number) by
    /// `node`, `remote` of them remote.
    pub fn touched(&mut self, run: (u64, u64), at: usize, node: usize, weight: u64, remote: u64) {
        let Some(column) = self.columns.column(at).filter(|_| node < self.nodes) else { return };
        let whole = u128::from(run.1.max(1));
        for (band, inside) in self.bands.of_run(run.0, run.1) {
            // A run that crosses bands is shared out by pages.
            let part = |n: u64| match u128::from(inside) {
                all if all == whole => n,
                some => ((u128::from(n) * some / whole) as u64).max(u64::from(n > 0)),
            };
            self.touches.add_stretch(band, column, column + 1, node, part(weight));
            if remote > 0 {
                let cell = &mut self.remote[band * self.columns.count() + column];
                *cell = cell.saturating_add(part(remote));
            }
        }
    }

    /// Adds `moved` pages of a run that moved in the interval at `at`, `back` of them to a node
    /// where they had been.
    pub fn moved(&mut self, run: (u64, u64), at: usize, moved: u64, back: u64) {
        let Some(column) = self.columns.column(at) else { return };
        let whole = u128::from(run.1.max(1));
        for (band, inside) in self.bands.of_run(run.0, run.1) {
            let part = |n: u64| (u128::from(n) * u128::from(inside) / whole) as u64;
            let sum = self.moves.entry((band as u32, column as u32)).or_default();
            *sum = (sum.0.saturating_add(part(moved)), sum.1.saturating_add(part(back)));
        }
    }

    /// All rows were added: the finest level alone.
    pub fn finish_finest(mut self) -> GridLevel {
        self.homes.integrate();
        self.touches.integrate();
        self.level()
    }

    /// All rows were added: the levels, finest first, and the facts about the bands.
    pub fn finish(mut self, timed: &[bool]) -> Finished {
        self.homes.integrate();
        self.touches.integrate();
        let profile = self.profile(timed);
        let mut levels = vec![self.level()];
        while self.bands.count() > FEW_BANDS {
            self = self.coarser();
            levels.push(self.level());
        }
        Finished { levels, profile }
    }

    /// The same with bands of four times the pages. Columns stay: there are no more of them than a
    /// screen is wide, and a picture that is coarse in time hides what came first.
    fn coarser(self) -> Self {
        let bands = Bands { shift: self.bands.shift + STEP, ..self.bands };
        let mut to = Self::new(bands, self.columns, self.nodes);
        let columns = self.columns.count();
        for band in 0..self.bands.count() {
            let b = band >> STEP;
            for column in 0..columns {
                for (sums, from) in [(&mut to.homes, &self.homes), (&mut to.touches, &self.touches)] {
                    let at = sums.at(b, column, 0);
                    for (sum, value) in
                        sums.values[at..at + self.nodes].iter_mut().zip(from.cell(band, column))
                    {
                        *sum = sum.saturating_add(*value);
                    }
                }
                let sum = &mut to.remote[b * columns + column];
                *sum = sum.saturating_add(self.remote[band * columns + column]);
            }
        }
        for ((band, column), (moved, back)) in self.moves {
            let sum = to.moves.entry((band >> STEP, column)).or_default();
            *sum = (sum.0.saturating_add(moved), sum.1.saturating_add(back));
        }
        to
    }

    fn level(&self) -> GridLevel {
        let (bands, columns) = (self.bands.count(), self.columns.count());
        let mut level = GridLevel {
            first_page: self.bands.first,
            pages: self.bands.pages,
            page_shift: self.bands.shift,
            first_interval: self.columns.first,
            intervals: self.columns.intervals,
            time_shift: self.columns.shift,
            bands,
            columns,
            ..GridLevel::default()
        };
        for band in 0..bands {
            for column in 0..columns {
                let home = Dominant::of(self.homes.cell(band, column));
                level.home.push(home.node);
                level.home_percent.push(home.percent);
                let touches = self.touches.cell(band, column);
                let who = Dominant::of(touches);
                level.who.push(who.node);
                level.who_percent.push(who.percent);
                level.who_nodes.push(who.nodes);
                let all: u128 = touches.iter().map(|v| u128::from(*v)).sum();
                let remote = self.remote[band * columns + column];
                // 0: nobody touched it; else percent plus one.
                level.remote.push(if all == 0 { 0 } else { percent(remote.into(), all).min(100) + 1 });
                level.seen.push(u32::try_from(all).unwrap_or(u32::MAX));
            }
        }
        level.moves = self
            .moves
            .iter()
            .map(|((b, c), (moved, back))| [u64::from(*b), u64::from(*c), *moved, *back])
            .collect();
        level
    }

    /// Who touches which band in the columns that count, and where it lived first and last.
    fn profile(&self, timed: &[bool]) -> Vec<GridBand> {
        let counts = |column: &usize| {
            let (from, to) = self.columns.range(*column);
            timed.get(from..to.min(timed.len())).is_none_or(|t| t.is_empty() || t.contains(&true))
        };
        let columns: Vec<usize> = (0..self.columns.count()).filter(counts).collect();
        let band = |band: usize| {
            let mut by = vec![0_u64; self.nodes];
            let mut remote = 0_u64;
            for column in &columns {
                let cell = self.touches.cell(band, *column);
                by.iter_mut().zip(cell).for_each(|(sum, v)| *sum = sum.saturating_add(*v));
                remote = remote.saturating_add(self.remote[band * self.columns.count() + *column]);
            }
            let [first, last] = &self.ends[band];
            let home = |end: &Option<End>| {
                let d = end.as_ref().map(|end| Dominant::of(&end.pages)).unwrap_or_default();
                [d.node, d.percent]
            };
            let mut users: Vec<[u64; 2]> =
                (0_u64..).zip(&by).filter(|(_, v)| **v > 0).map(|(node, v)| [node + 1, *v]).collect();
            users.sort_by_key(|[node, v]| (std::cmp::Reverse(*v), *node));
            users.truncate(MOST_USERS);
            let total = by.iter().fold(0_u64, |sum, v| sum.saturating_add(*v));
            GridBand { first: home(first), last: home(last), total, remote, users }
        };
        (0..self.bands.count()).map(band).collect()
    }
}

/// Most nodes of which a band says how much each touches it.
const MOST_USERS: usize = 8;

/// The first or the last interval in which a page of a band lived.
#[derive(Clone, Debug)]
struct End {
    /// Position of the interval.
    at: usize,
    /// Pages that lived there then, by node.
    pages: Vec<u64>,
}

/// Notes pages at the earliest (or latest) interval.
fn note(
    end: &mut Option<End>,
    at: usize,
    node: usize,
    pages: u64,
    nodes: usize,
    better: fn(usize, usize) -> bool,
) {
    let known = match end.take() {
        Some(known) if !better(at, known.at) => known,
        _ => End { at, pages: vec![0; nodes] },
    };
    let known = end.insert(known);
    if known.at == at {
        known.pages[node] = known.pages[node].saturating_add(pages);
    }
}

/// A grid that was read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finished {
    /// Levels, finest first.
    pub levels: Vec<GridLevel>,
    /// The finest bands over all time that counts.
    pub profile: Vec<GridBand>,
}

/// A band of pages over all time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GridBand {
    /// Home of most of its pages in the first interval in which one lived: index of the node plus
    /// one (0: none), and percent of the pages.
    pub first: [u32; 2],
    /// The same of the last interval.
    pub last: [u32; 2],
    /// Accesses or sightings in intervals that count.
    pub total: u64,
    /// How many of them were remote.
    pub remote: u64,
    /// By node, most first: index of the node plus one, and how often.
    pub users: Vec<[u64; 2]>,
}

/// A picture of an object at one resolution. Cells are listed band by band.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GridLevel {
    /// First page.
    pub first_page: u64,
    /// Pages.
    pub pages: u64,
    /// A band holds `1 << page_shift` pages.
    pub page_shift: u32,
    /// Position of the first interval.
    pub first_interval: usize,
    /// Intervals.
    pub intervals: usize,
    /// A column holds `1 << time_shift` intervals.
    pub time_shift: u32,
    /// Bands.
    pub bands: usize,
    /// Columns.
    pub columns: usize,
    /// Home of most pages: index of the node plus one, 0 for none.
    pub home: Plane,
    /// Percent of the pages with that home.
    pub home_percent: Plane,
    /// The node that touched most: index plus one, 0 for none.
    pub who: Plane,
    /// Its share in percent of accesses or sightings.
    pub who_percent: Plane,
    /// How many nodes touched it.
    pub who_nodes: Plane,
    /// Remote percent plus one; 0 where nobody touched it.
    pub remote: Plane,
    /// Accesses or sightings; [`u32::MAX`] of more.
    pub seen: Plane,
    /// Band, column, pages that moved, pages that moved back.
    pub moves: Vec<[u64; 4]>,
}

impl GridLevel {
    /// The level as JSON with the length of each plane in place of the plane, and the bytes of the
    /// planes behind those in `to`, in the order of the fields.
    pub fn with_planes(&self, to: &mut Vec<u8>) -> serde_json::Value {
        let mut length = |plane: &Plane| {
            let before = to.len();
            to.extend(plane.bytes());
            to.len() - before
        };
        serde_json::json!({
            "first_page": self.first_page,
            "pages": self.pages,
            "page_shift": self.page_shift,
            "first_interval": self.first_interval,
            "intervals": self.intervals,
            "time_shift": self.time_shift,
            "bands": self.bands,
            "columns": self.columns,
            "home": length(&self.home),
            "home_percent": length(&self.home_percent),
            "who": length(&self.who),
            "who_percent": length(&self.who_percent),
            "who_nodes": length(&self.who_nodes),
            "remote": length(&self.remote),
            "seen": length(&self.seen),
            "moves": self.moves,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(pages: u64, most: u64, intervals: usize, columns: usize) -> Grid {
        Grid::new(Bands::of(0, pages, most), Columns::of(0, intervals, columns), 2)
    }

    #[test]
    fn a_cell_has_the_home_of_most_pages() {
        let mut g = grid(4, 4, 4, 4);
        g.lives(0, 4, 0, 1, 0);
        g.lives(0, 3, 2, 3, 1);
        g.lives(3, 1, 2, 3, 0);
        let levels = g.finish(&[]).levels;
        assert_eq!(levels[0].home.values()[..4], [1, 1, 2, 2], "page 0");
        assert_eq!(levels[0].home.values()[12..], [1, 1, 1, 1], "page 3");
        assert_eq!(levels.len(), 1, "eight bands need no coarser level");
    }

    #[test]
    fn coarse_cells_are_sums_and_not_majorities_of_majorities() {
        let mut g = grid(16, 16, 1, 1);
        // Of each pair of pages one is of node 0 with 2 of 2, one of node 1 with 3 of 3 accesses.
        for page in 0..16 {
            let odd = page % 2;
            g.touched((page, 1), 0, odd as usize, 2 + odd, 3 * odd);
        }
        let done = g.finish(&[]);
        let last = done.levels.last().unwrap();
        assert_eq!((last.bands, last.page_shift), (4, 2));
        assert_eq!(last.who.values(), [2; 4]);
        assert_eq!(last.who_percent.values(), [60; 4]);
        assert_eq!(last.who_nodes.values(), [2; 4]);
        assert!(last.seen.values().iter().all(|n| *n > 0), "{:?}", last.seen);
        assert_eq!(last.remote.values(), [61; 4], "60 percent, plus one");
    }

    #[test]
    fn a_run_over_columns_fills_them_in_proportion() {
        let mut g = grid(1, 1, 100, 10);
        assert_eq!(g.columns.width(), 16);
        g.lives(0, 1, 10, 40, 0);
        g.lives(0, 1, 41, 99, 1);
        let level = &g.finish(&[]).levels[0];
        // Column 2: node 0 has the nine intervals 32 to 40, node 1 the seven from 41 to 47.
        assert_eq!(level.home.values(), [1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(level.home_percent.values()[2], 56, "nine of sixteen");
    }

    #[test]
    fn comings_and_goings_are_stays() {
        // Columns of 16 intervals; the last one has four.
        for (first, last) in [(0, 99), (3, 3), (10, 40), (16, 31), (95, 97), (98, 99)] {
            let (mut stays, mut moves) = (grid(8, 8, 100, 10), grid(8, 8, 100, 10));
            stays.lives(2, 3, first, last, 1);
            moves.came((2, 3), first, 1, 3, 0);
            moves.came((2, 3), last + 1, 1, 3_u64.wrapping_neg(), 0);
            // The same told with the begin of a cell of four intervals.
            let mut cells = grid(8, 8, 100, 10);
            let (a, b) = (first as u64 % 4, (last as u64 + 1) % 4);
            cells.came((2, 3), first & !3, 1, 3, 3 * a);
            cells.came((2, 3), (last + 1) & !3, 1, 3_u64.wrapping_neg(), (3 * b).wrapping_neg());
            let of = |g: Grid| {
                let level = g.finish_finest();
                (level.home.values(), level.home_percent.values())
            };
            let expected = of(stays);
            assert_eq!(of(moves), expected, "{first} to {last}");
            assert_eq!(of(cells), expected, "{first} to {last}, by cell");
        }
    }

    #[test]
    fn moves_keep_their_number_at_every_level() {
        let mut g = grid(64, 64, 64, 64);
        g.moved((5, 1), 33, 1, 1);
        g.moved((40, 10), 3, 10, 0);
        for level in g.finish(&[]).levels {
            let sum = |i: usize| level.moves.iter().map(|m| m[i]).sum::<u64>();
            assert_eq!((sum(2), sum(3), level.columns), (11, 1, 64), "{} bands", level.bands);
        }
    }

    #[test]
    fn a_band_tells_its_first_and_last_home_and_its_users() {
        let mut g = grid(2, 1, 4, 4);
        g.lives(0, 2, 0, 1, 0);
        g.lives(0, 2, 2, 3, 1);
        g.touched((0, 2), 0, 0, 100, 0);
        g.touched((0, 2), 2, 1, 7, 7);
        let profile = g.finish(&[false, true, true, true]).profile;
        let users = vec![[2, 7]];
        assert_eq!(profile, [GridBand { first: [1, 100], last: [2, 100], total: 7, remote: 7, users }]);
    }

    #[test]
    fn hostile_rows_do_no_harm() {
        let mut g = grid(10, 4, 3, 3);
        g.lives(u64::MAX, u64::MAX, 0, usize::MAX, 1);
        g.lives(0, u64::MAX, 2, 1, 1);
        g.touched((0, u64::MAX), 1, 1, u64::MAX, u64::MAX);
        g.touched((0, 0), 9, 1, 1, 1);
        g.touched((0, 1), 0, 2, 1, 1);
        g.moved((3, u64::MAX), 2, u64::MAX, u64::MAX);
        g.came((0, u64::MAX), 1, 1, u64::MAX, 1 << 63);
        g.came((0, 1), 0, 2, 1, 0);
        assert_eq!(g.finish(&[true]).levels[0].bands, 3);
    }

    #[test]
    fn of_equal_shares_the_first_node_counts() {
        assert_eq!(Dominant::of(&[0, 5, 5]), Dominant { node: 2, percent: 50, nodes: 2 });
        assert_eq!(Dominant::of(&[0, 0]), Dominant::default());
    }
}
