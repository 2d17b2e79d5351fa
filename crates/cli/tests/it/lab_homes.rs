//! Where programs' pages are on the lab's four nodes (`tests/lab/homes.c`), where they belong, and
//! who accesses them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_dataset::Dataset;
use homenode_dataset::tables::{Access, Object};

/// Nodes, and threads: one on each.
pub const NODES: usize = 4;
pub const PAGE: u64 = 4096;
/// What homenode may spend: a fault that takes a tenth of a millisecond on a real machine takes 15
/// in the emulated guest, more on a busy host.
pub const BUDGET: &str = "1%+300s";
/// Points an edge of the grids of heat and sor; a multiple of the threads.
pub const POINTS: u64 = 1024;
/// Points an edge of MG's finest grid: class W.
const FINEST: u64 = 128;
/// Rows of CG's matrix: class A.
const ROWS: u64 = 14_000;

/// What tells an array from others: its length in bytes, and how many of that length came before.
pub type Key = (u64, u64);

/// An array in one run.
#[derive(Clone, Debug)]
pub struct Array {
    pub address: u64,
    /// Of its first whole page.
    pub offset: u64,
    /// Nodes of its whole pages; none: not there.
    pub homes: Vec<Option<usize>>,
}

/// Main-memory accesses to an array's whole pages by thread, in one run.
#[derive(Clone, Debug)]
pub struct Counts {
    offset: u64,
    pages: Vec<[u64; NODES]>,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The library that places arrays and tells where they are, as `homes.so`.
pub fn library(dir: &Path) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(dir.join("homes.so"));
    assert!(gcc.arg(root().join("tests/lab/homes.c")).status().unwrap().success());
}

/// A program of `tests/lab` with OpenMP.
pub fn program(dir: &Path, name: &str) {
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-o"]).arg(dir.join(name));
    let source = root().join("tests/lab").join(name).with_extension("c");
    assert!(gcc.arg(source).status().unwrap().success());
}

/// A kernel as anybody builds it, without homenode. `false`: there is no compiler for it, which is
/// said.
pub fn kernel(dir: &Path, name: &str) -> bool {
    let kernels = root().join("kernels");
    let common = ["dense", "fourier", "memory", "options", "report", "nas_random", "pairs", "places"];
    let own: &[&str] = match name {
        "nas-cg" => &["main.c", "vectors.c", "matrix.c", "solve.c"],
        "nas-mg" => &["grids.f90", "charges.f90", "stencils.f90", "nas_mg.f90", "about.c"],
        _ => &["main.c"],
    };
    let fortran = own[0].ends_with("f90");
    let compiler = if fortran { "gfortran" } else { "gcc" };
    if Command::new(compiler).arg("--version").output().is_err() {
        eprintln!("skipped: there is no {compiler} for {name}");
        return false;
    }
    let mut build = Command::new(compiler);
    build.args(["-O2", "-fopenmp", "-o", name]);
    build.arg(format!("-I{}", kernels.join("common").display()));
    build.arg(format!("-I{}", root().join("include").display()));
    if fortran {
        build.arg(root().join("fortran/homenode.f90")).arg(kernels.join("common/kernel_common.f90"));
        build.arg(root().join("fortran/homenode_alone.c"));
    }
    build.args(own.iter().map(|file| kernels.join(name).join(file)));
    build.args(common.map(|c| kernels.join("common").join(c).with_extension("c")));
    build.arg(root().join("tests/lab/marks.c")).arg("-lm");
    let built = build.current_dir(dir).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    true
}

/// The arrays as `homes.c` has printed them at `when`.
pub fn read(file: &Path, when: &str) -> BTreeMap<Key, Array> {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut all = BTreeMap::new();
    for words in text.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|w| w[0] == when) {
        let number = |i: usize| words[i].parse::<u64>().unwrap();
        let mut homes = Vec::new();
        for stretch in words[5..].chunks(2) {
            let node = stretch[0].parse::<i64>().unwrap();
            homes.extend(vec![usize::try_from(node).ok(); stretch[1].parse().unwrap()]);
        }
        let address = u64::from_str_radix(words[3].trim_start_matches("0x"), 16).unwrap();
        all.insert((number(1), number(2)), Array { address, offset: number(4), homes });
    }
    all
}

/// What the monitor counted of `arrays`, in all iterations that ended but the first; and which
/// share of all counts that is, in percent.
pub fn counts(
    recording: &Path,
    arrays: &BTreeMap<Key, Array>,
    iterations: u64,
) -> (BTreeMap<Key, Counts>, f64) {
    let mut all: BTreeMap<Key, Counts> = arrays
        .iter()
        .map(|(key, a)| (*key, Counts { offset: a.offset, pages: vec![[0; NODES]; a.homes.len()] }))
        .collect();
    let starts: BTreeMap<u64, Key> = arrays.iter().map(|(key, a)| (a.address + a.offset, *key)).collect();
    let set = Dataset::open(recording).unwrap();
    let (mut sum, mut known) = (0, 0);
    for (address, a) in with_addresses(&set) {
        if !(1..iterations).contains(&u64::from(a.interval.0)) {
            continue;
        }
        let (n, _) = a.tally.count().unwrap().parts();
        sum += n;
        let Some((start, key)) = starts.range(..=address).next_back() else { continue };
        let page = ((address - start) / PAGE) as usize;
        if let Some(page) = all.get_mut(key).unwrap().pages.get_mut(page) {
            page[a.node.index()] += n;
            known += n;
        }
    }
    (all, 100.0 * known as f64 / sum as f64)
}

/// The accesses of a data set, with the address of the first page of each.
pub fn with_addresses(set: &Dataset) -> impl Iterator<Item = (u64, Access)> {
    let objects: BTreeMap<_, u64> = set.rows::<Object>().map(|o| (o.object, o.address)).collect();
    set.rows::<Access>().map(move |a| {
        let address = a.object.and_then(|o| objects.get(&o)).expect("an object of the recording");
        ((address / PAGE + a.page) * PAGE, a)
    })
}

impl Counts {
    /// Of the page at `offset` of the array. Where arrays begin within their pages may differ from
    /// run to run.
    fn at(&self, offset: u64) -> [u64; NODES] {
        let from = offset as i64 - self.offset as i64;
        let (page, part) = (from.div_euclid(PAGE as i64), from.rem_euclid(PAGE as i64) as u64);
        let of = |page: i64, node: usize| {
            usize::try_from(page).ok().and_then(|p| self.pages.get(p)).map_or(0, |p| p[node])
        };
        std::array::from_fn(|n| (of(page, n) * (PAGE - part) + of(page + 1, n) * part) / PAGE)
    }
}

/// The thread that has the `index`-th of `count` rounds of a loop with OpenMP's static schedule.
fn static_schedule(index: u64, count: u64) -> usize {
    let (each, odd) = (count / NODES as u64, count % NODES as u64);
    let long = odd * (each + 1);
    (if index < long { index / (each + 1) } else { odd + (index - long) / each.max(1) }) as usize
}

/// The one that all elements of the page at `offset` have, if it is one.
fn common(offset: u64, bytes: u64, of: impl Fn(u64) -> Option<usize>) -> Option<usize> {
    let mut all = (offset..(offset + PAGE).min(bytes)).step_by(8).map(of);
    let first = all.next()??;
    all.all(|owner| owner == Some(first)).then_some(first)
}

/// The thread whose rows, of the static schedule, the page at `offset` of a grid lies in alone; the
/// border goes with its neighbours.
pub fn owner_in_grid(offset: u64, bytes: u64) -> Option<usize> {
    let width = (bytes / 8).isqrt();
    let points = width - 2;
    common(offset, bytes, |byte| Some(static_schedule((byte / 8 / width).clamp(1, points) - 1, points)))
}

/// Owner and home of each page that has an owner, of the arrays of at least `least` bytes, when
/// they were freed. `owner` is asked with offset and length of the array.
pub fn owned(
    homes: &Path,
    least: u64,
    owner: impl Fn(u64, u64) -> Option<usize>,
) -> Vec<(usize, Option<usize>)> {
    let mut all = Vec::new();
    for ((bytes, _), array) in read(homes, "free").into_iter().filter(|((bytes, _), _)| *bytes >= least) {
        let owners = (0..array.homes.len() as u64).map(|i| owner(array.offset + i * PAGE, bytes));
        all.extend(owners.zip(array.homes).filter_map(|(owner, home)| Some((owner?, home))));
    }
    all
}

/// How many fulfil a condition.
pub fn number<T: Copy>(list: &[T], is: impl Fn(T) -> bool) -> usize {
    list.iter().filter(|t| is(**t)).count()
}

/// The thread whose planes, of MG's static schedule over each level, the page lies in alone. Ghost
/// planes are written by all threads.
pub fn owner_in_levels(offset: u64, bytes: u64) -> Option<usize> {
    common(offset, bytes, |byte| {
        let (mut at, mut edge) = (byte / 8, FINEST);
        while at >= (edge + 2).pow(3) {
            at -= (edge + 2).pow(3);
            edge /= 2;
        }
        let plane = at / (edge + 2).pow(2);
        (1..=edge).contains(&plane).then(|| static_schedule(plane - 1, edge))
    })
}

/// The thread whose rows of CG's static schedule the page lies in alone. Which rows the elements of
/// the matrix are of the recording tells: their thread alone reads them. All threads read p, the
/// third vector.
pub fn owner_in_rows((bytes, number): Key, offset: u64, counts: [u64; NODES]) -> Option<usize> {
    const P: u64 = 2;
    if bytes == ROWS * 8 {
        return common(offset, bytes, |byte| (number != P).then(|| static_schedule(byte / 8, ROWS)));
    }
    dominant(counts, 100)
}

/// The thread that has at least this percentage of the accesses.
pub fn dominant(counts: [u64; NODES], percent: u64) -> Option<usize> {
    let sum: u64 = counts.iter().sum();
    (0..NODES).find(|n| sum > 0 && counts[*n] * 100 >= sum * percent)
}

/// The owner of the page of array `.0` at offset `.1` whose accesses are `.2`.
pub type Owner = fn(Key, u64, [u64; NODES]) -> Option<usize>;

/// How a placement does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Pages that have an owner; those on its node.
    pub owned: [u64; 2],
    /// Pages that one thread has at least 95 % of the accesses to; those on its node.
    pub dominated: [u64; 2],
    /// Pages.
    pub pages: u64,
    accesses: u64,
    remote: u64,
    least: u64,
}

impl Done {
    pub fn of(arrays: &BTreeMap<Key, Array>, counts: &BTreeMap<Key, Counts>, owner: Owner) -> Self {
        let mut done = Self::default();
        for (key, counts) in counts {
            let array = arrays.get(key).unwrap_or_else(|| panic!("no array of {} bytes, {}", key.0, key.1));
            for (i, home) in (0..).zip(&array.homes) {
                let offset = array.offset + i * PAGE;
                let counts = counts.at(offset);
                let sum: u64 = counts.iter().sum();
                done.pages += 1;
                done.accesses += sum;
                // A page that is nowhere is near to nobody.
                done.remote += sum - home.map_or(0, |n| counts[n]);
                done.least += sum - counts.into_iter().max().unwrap_or(0);
                for (which, owner) in [
                    (&mut done.owned, owner(*key, offset, counts)),
                    (&mut done.dominated, dominant(counts, 95)),
                ] {
                    which[0] += u64::from(owner.is_some());
                    which[1] += u64::from(owner.is_some() && owner == *home);
                }
            }
        }
        done
    }

    /// Accesses from remote nodes, in percent.
    pub fn remote(&self) -> f64 {
        100.0 * self.remote as f64 / self.accesses as f64
    }

    /// The same with each page where most accesses come from: no placement has less, where all
    /// remote nodes are equally far.
    pub fn least(&self) -> f64 {
        100.0 * self.least as f64 / self.accesses as f64
    }
}

/// Pages on the node of their owner, in percent of those that have one.
pub fn percent([all, right]: [u64; 2]) -> f64 {
    100.0 * right as f64 / all.max(1) as f64
}

#[test]
fn owners_are_those_of_the_static_schedule() {
    assert_eq!((0..10).map(|i| static_schedule(i, 10)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
    assert_eq!((0..2).map(|i| static_schedule(i, 2)).collect::<Vec<_>>(), [0, 1]);
    let bytes = (POINTS + 2).pow(2) * 8;
    let row = |i: u64| i * (POINTS + 2) * 8;
    assert_eq!(
        [0, row(200), row(300), row(1000)].map(|o| owner_in_grid(o, bytes)),
        [Some(0), Some(0), Some(1), Some(3)]
    );
    assert_eq!(owner_in_grid(row(257) - 8, bytes), None, "a seam");
    // Plane 0 of 130 is a ghost; thread 1 has planes 33 to 64 of the finest grid and 17 to 32 of
    // the next.
    let plane = |edge: u64, i: u64| i * (edge + 2).pow(2) * 8;
    let (finest, all) = (plane(128, 130), plane(128, 130) + plane(64, 66));
    assert_eq!(
        [0, plane(128, 1), plane(128, 33), plane(128, 129)].map(|o| owner_in_levels(o, all)),
        [None, Some(0), Some(1), None]
    );
    assert_eq!(owner_in_levels(finest + plane(64, 17), all), Some(1));
    let vector = |number| owner_in_rows((ROWS * 8, number), 3500 * 8, [0; NODES]);
    assert_eq!([vector(0), vector(2)], [Some(1), None]);
    assert_eq!(
        [dominant([1, 99, 0, 0], 100), dominant([1, 99, 0, 0], 95), dominant([0; NODES], 95)],
        [None, Some(1), None]
    );
}

#[test]
fn counts_are_those_of_the_place_in_the_array() {
    let counts = Counts { offset: 4080, pages: vec![[40, 0, 0, 0], [0, 80, 0, 0]] };
    assert_eq!([counts.at(4080), counts.at(4080 + PAGE)], [[40, 0, 0, 0], [0, 80, 0, 0]]);
    assert_eq!(counts.at(4080 - 1024), [30, 0, 0, 0]);
    assert_eq!(counts.at(4080 + 1024), [30, 20, 0, 0]);
}
