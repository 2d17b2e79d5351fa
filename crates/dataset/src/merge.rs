//! Puts data sets of several ranks together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::DatasetError;
use crate::file::Appender;
use crate::folder::Dataset;
use crate::layout::{TABLES, open_file, path_of};
use crate::members::{self, Bases, MEMBERS};
use crate::meta::{DatasetMeta, Ended};
use crate::tables::{ALL, TableInfo};
use crate::writer::save_meta;

/// Why data sets cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them cannot be read, or the merged one cannot be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// They do not belong together.
    #[error("{} does not go with {}: {why}", path.display(), first.display())]
    Unlike {
        /// The one that does not fit.
        path: PathBuf,
        /// The one that it was compared with.
        first: PathBuf,
        /// What differs.
        why: String,
    },
    /// There is nothing to merge.
    #[error("there is no data set to merge")]
    Nothing,
    /// Somebody asked to stop.
    #[error("it was stopped")]
    Stopped,
}

/// The numbers of a member, and the tables that define each of them.
const NUMBERS: [(&str, &[&str]); 6] = [
    ("object", &["objects"]),
    ("region", &["regions"]),
    ("interval", &["intervals"]),
    ("thread", &["threads"]),
    ("process", &["objects", "threads", "iterations", "own_cost"]),
    ("node", &["nodes"]),
];

/// How many numbers of the kind `column` a data set uses: one more than the highest.
fn used(set: &Dataset, column: &str, defining: &[&str]) -> u64 {
    // A table that is damaged or was never written does not define every number that others use.
    let whole = set.missing().is_empty() && defining.iter().any(|t| set.size_of(t) > 0);
    let of_kind = Bases { object: 1, region: 2, interval: 3, thread: 4, process: 5, node: 6, machine: false };
    let mut used = 0;
    for table in ALL.iter().filter(|t| !whole || defining.contains(&t.name)) {
        let mut columns = (table.columns)();
        columns.retain(|c| of_kind.of(c.name) == of_kind.of(column));
        if columns.is_empty() {
            continue;
        }
        for chunk in set.chunks_of(table.name, &columns) {
            let all = chunk.columns.iter().flat_map(|c| (0..c.rows()).filter_map(|r| c.int(r)));
            used = all.fold(used, |most, n| most.max(n.saturating_add(1)));
        }
    }
    used
}

/// What each member's numbers begin with.
fn bases(sets: &[Dataset]) -> Vec<Bases> {
    let mut all = Vec::new();
    let mut next = Bases::default();
    let mut machines: BTreeMap<(Option<String>, String), u64> = BTreeMap::new();
    for set in sets {
        // Damage in the tables shows when they are read.
        NUMBERS.iter().flat_map(|(_, tables)| *tables).for_each(|t| {
            ALL.iter().filter(|i| i.name == *t).for_each(|i| set.checked_chunks(i).for_each(drop));
        });
        let [object, region, interval, thread, process, node] =
            NUMBERS.map(|(column, defining)| used(set, column, defining));
        let machine = (set.meta().host.clone(), set.meta().machine.clone());
        let first = !machines.contains_key(&machine);
        let at = *machines.entry(machine).or_insert(next.node);
        all.push(Bases { node: at, machine: first, ..next });
        next.object += object;
        next.region += region;
        next.interval += interval;
        next.thread += thread;
        next.process += process.max(1);
        if first {
            next.node += node;
        }
    }
    all
}

/// The members' own `dataset.json`: each has a rank of its own.
fn metas(sets: &[(PathBuf, Dataset)]) -> Result<Vec<DatasetMeta>, MergeError> {
    let (first_path, first) = sets.first().ok_or(MergeError::Nothing)?;
    for (path, set) in sets {
        let unlike = |why: String| MergeError::Unlike { path: path.clone(), first: first_path.clone(), why };
        let (a, b) = (first.meta(), set.meta());
        if a.kind != b.kind {
            return Err(unlike(format!("one is '{}', the other '{}'", a.kind, b.kind)));
        }
        if a.page_bytes != b.page_bytes {
            return Err(unlike(format!("pages of {} and of {} bytes", a.page_bytes, b.page_bytes)));
        }
        if a.clock != b.clock {
            return Err(unlike(format!("one tells '{}' time, the other '{}'", a.clock, b.clock)));
        }
    }
    let mut taken: BTreeMap<(Option<String>, u32), &Path> = BTreeMap::new();
    for (path, set) in sets {
        let meta = set.meta();
        if let Some(rank) = meta.rank
            && let Some(other) = taken.insert((meta.job.clone(), rank), path)
        {
            let job = meta.job.as_ref().map_or_else(String::new, |j| format!(" of job {j}"));
            let why = format!("both are rank {rank}{job}");
            return Err(MergeError::Unlike { path: path.clone(), first: other.into(), why });
        }
    }
    let told: BTreeSet<u32> = sets.iter().filter_map(|(_, s)| s.meta().rank).collect();
    let mut free = (0..).filter(|rank| !told.contains(rank));
    let ranked =
        |set: &Dataset| DatasetMeta { rank: set.meta().rank.or_else(|| free.next()), ..set.meta().clone() };
    Ok(sets.iter().map(|(_, set)| set).map(ranked).collect())
}

/// What the merged data set says of itself.
fn summary(metas: &[DatasetMeta], bases: Vec<Bases>) -> DatasetMeta {
    let first = &metas[0];
    let same = |of: fn(&DatasetMeta) -> &Option<String>| {
        of(first).clone().filter(|_| metas.iter().all(|m| of(m) == of(first)))
    };
    let distinct = |of: fn(&DatasetMeta) -> &str| {
        let all: BTreeSet<&str> = metas.iter().map(of).collect();
        all.into_iter().collect::<Vec<_>>().join("; ")
    };
    let sentences = |of: fn(&DatasetMeta) -> &Vec<String>| {
        let of_one = |m: &DatasetMeta| {
            let rank = m.rank.unwrap_or(0);
            of(m).iter().map(move |s| format!("rank {rank}: {s}")).collect::<Vec<_>>()
        };
        metas.iter().flat_map(of_one).take(1000).collect::<Vec<_>>()
    };
    let ended = || metas.iter().filter_map(|m| m.ended.as_ref());
    let mut notes = vec![format!("{} recordings, merged", metas.len())];
    notes.extend(sentences(|m| &m.notes));
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    for (meta, bases) in metas.iter().zip(&bases) {
        for (table, n) in meta.rows.iter().filter(|(t, _)| bases.has(t)) {
            let sum = rows.entry(table.clone()).or_default();
            *sum = sum.saturating_add(*n);
        }
    }
    DatasetMeta {
        basis: distinct(|m| &m.basis),
        machine: distinct(|m| &m.machine),
        source: distinct(|m| &m.source),
        pretended: metas.iter().any(|m| m.pretended),
        policy: same(|m| &m.policy),
        host: same(|m| &m.host),
        job: same(|m| &m.job),
        rank: None,
        verdict: same(|m| &m.verdict),
        notes,
        coarsened: sentences(|m| &m.coarsened),
        // Each member says what it lacks.
        incomplete: Vec::new(),
        rows,
        members: bases,
        ended: Some(Ended {
            status: ended().filter_map(|e| e.status).find(|s| *s != 0).or(Some(0)),
            signal: ended().find_map(|e| e.signal),
            elapsed_ns: ended().map(|e| e.elapsed_ns).max().unwrap_or(0),
        }),
        ..first.clone()
    }
}

/// Writes a table of a data set in memory.
fn write(set: &Dataset, table: &TableInfo, to: &Path) -> Result<(), MergeError> {
    let output = fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(to);
    let mut output = output.map_err(DatasetError::io("make", to))?;
    let columns = (table.columns)();
    let written = Appender::begin(&mut output, table.name, &columns).and_then(|mut appender| {
        set.chunks_of(table.name, &columns).try_for_each(|chunk| appender.append(&mut output, &chunk))
    });
    Ok(written.map_err(DatasetError::io("write", to))?)
}

/// Copies the tables of `set`.
fn copy(set: &Dataset, to: &Path, more: &mut dyn FnMut(u64) -> bool) -> Result<(), MergeError> {
    let mut folder = fs::DirBuilder::new();
    folder.mode(0o700).recursive(true);
    let tables = to.join(TABLES);
    folder.create(&tables).map_err(DatasetError::io("make the folder", &tables))?;
    for table in ALL {
        let new = path_of(to, table.name);
        let Some(from) = set.path() else {
            write(set, table, &new)?;
            if !more(set.size_of(table.name)) {
                return Err(MergeError::Stopped);
            }
            continue;
        };
        let old = path_of(from, table.name);
        let mut input = match open_file(from, table.name) {
            Ok(Some(file)) => file,
            Ok(None) => continue,
            Err(e) => return Err(DatasetError::io("read", &old)(e).into()),
        };
        let output = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
        let mut output = output.map_err(DatasetError::io("make", &new))?;
        loop {
            let copied = io::copy(&mut io::Read::take(&mut input, 64 << 20), &mut output);
            let copied = copied.map_err(DatasetError::io("write", &new))?;
            if !more(copied) {
                return Err(MergeError::Stopped);
            }
            if copied == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Bytes that [`merge`] copies.
pub fn size(sets: &[(PathBuf, Dataset)]) -> u64 {
    sets.iter().flat_map(|(_, set)| ALL.iter().map(|t| set.size_of(t.name))).sum()
}

/// The data sets that a merge takes: of a merged one its members.
fn flat(sets: &[(PathBuf, Dataset)]) -> Result<Vec<(PathBuf, Dataset)>, DatasetError> {
    let mut all = Vec::new();
    for (path, set) in sets {
        match set.meta().members.len() {
            0 => all.push((path.clone(), set.clone())),
            n => {
                for i in 0..n {
                    let path = path.join(MEMBERS).join(members::folder(i));
                    let set = Dataset::open(&path)?;
                    all.push((path, set));
                }
            }
        }
    }
    Ok(all)
}

/// A new folder that goes away unless it is kept.
struct New<'a> {
    path: &'a Path,
    kept: bool,
}

impl Drop for New<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // There is nobody to tell.
            let _ = fs::remove_dir_all(self.path);
        }
    }
}

/// Merges data sets into a new one in the folder `out`, which must not be there. `more` is told how
/// many bytes were copied since it was last told; where it says false, the merge ends and nothing
/// is left of it.
///
/// # Errors
/// The data sets do not belong together, or one cannot be read or written.
pub fn merge(
    sets: &[(PathBuf, Dataset)],
    out: &Path,
    more: &mut dyn FnMut(u64) -> bool,
) -> Result<(), MergeError> {
    let sets = flat(sets)?;
    let metas = metas(&sets)?;
    let alone: Vec<Dataset> = sets.iter().map(|(_, set)| set.clone()).collect();
    let bases = bases(&alone);
    fs::DirBuilder::new().mode(0o700).create(out).map_err(DatasetError::io("make the folder", out))?;
    let mut new = New { path: out, kept: false };
    for (i, (set, meta)) in alone.iter().zip(&metas).enumerate() {
        let folder = out.join(MEMBERS).join(members::folder(i));
        copy(set, &folder, more)?;
        save_meta(&folder, meta)?;
    }
    // Only now is the folder a data set.
    save_meta(out, &summary(&metas, bases))?;
    new.kept = true;
    Ok(())
}
