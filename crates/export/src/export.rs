//! A data set into a folder of Parquet files.
//!
//! The export is written beside its place and renamed at its end: whoever looks finds a whole one
//! or none. Nothing is written through a symbolic link, and nothing that is not an export is
//! replaced.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use homenode_dataset::column::Chunk;
use homenode_dataset::meta::{MetaRow, VERSION};
use homenode_dataset::schema::TableRow as _;
use homenode_dataset::tables::{self, TableInfo};
use homenode_dataset::{Dataset, Missing};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::error::ExportError;
use crate::parquet::{FileWriter, WrittenFile};
use crate::partition;

/// The file by which an export is known. Readers of partitions pass over it.
pub const MARK: &str = "_homenode.json";
/// The name of a partition's file.
const PART: &str = "part-0.parquet";

/// How to export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Replace an export that is there.
    pub force: bool,
}

/// A table that was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedTable {
    /// Its name.
    pub name: &'static str,
    /// Files: one a member.
    pub files: u64,
    /// What all files hold together.
    pub written: WrittenFile,
}

/// What was exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// In the order of the documentation, `meta` first.
    pub tables: Vec<ExportedTable>,
    /// Members: 1, unless the data set is a merged one.
    pub members: u64,
    /// What the data set lacks.
    pub missing: Vec<Missing>,
}

/// How much [`export`](export()) has to read, in the unit of its progress.
pub fn size(set: &Dataset) -> u64 {
    tables::ALL.iter().map(|t| set.size_of(t.name)).sum()
}

/// A folder that goes away unless it is kept.
struct Temporary {
    path: PathBuf,
    kept: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // There is nobody to tell.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn make_folder(path: &Path) -> Result<(), ExportError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(ExportError::io("make the folder", path))
}

/// The path beside `out` with another name.
fn beside(out: &Path, what: &str) -> Result<PathBuf, ExportError> {
    let name =
        out.file_name().ok_or(io::ErrorKind::InvalidInput.into()).map_err(ExportError::io("write", out))?;
    Ok(out.with_file_name(format!("{}.{what}-{}", name.to_string_lossy(), std::process::id())))
}

/// Writes a data set as Parquet into the folder `out`, which must not be there or be an export that
/// `options` let it replace. `more` is told how much of [`size`] was read since it was last told;
/// where it says false, the export ends and nothing is left of it.
///
/// # Errors
/// See [`ExportError`].
pub fn export(
    set: &Dataset,
    out: &Path,
    options: ExportOptions,
    more: &mut dyn FnMut(u64) -> bool,
) -> Result<Exported, ExportError> {
    let replaces = match fs::symlink_metadata(out) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(ExportError::io("look at", out)(e)),
        Ok(_) if !options.force => return Err(ExportError::Exists(out.into())),
        Ok(_) => {
            is_export(out)?;
            true
        }
    };
    let path = beside(out, "part")?;
    fs::DirBuilder::new().mode(0o700).create(&path).map_err(ExportError::io("make the folder", &path))?;
    let mut folder = Temporary { path, kept: false };
    let exported = write(set, &folder.path, more)?;
    if replaces {
        let old = beside(out, "old")?;
        rename_new(out, &old)?;
        if let Err(e) = rename_new(&folder.path, out) {
            // The former one is better than none.
            let _ = fs::rename(&old, out);
            return Err(e);
        }
        folder.kept = true;
        fs::remove_dir_all(&old).map_err(ExportError::io("remove the former export", &old))?;
    } else {
        rename_new(&folder.path, out)?;
        folder.kept = true;
    }
    Ok(exported)
}

/// Renames where nothing is.
fn rename_new(from: &Path, to: &Path) -> Result<(), ExportError> {
    let renamed = match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot promise it. Then the look before must do.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if fs::symlink_metadata(to).is_err() => {
            fs::rename(from, to)
        }
        other => other.map_err(io::Error::from),
    };
    match renamed {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(ExportError::Exists(to.into())),
        other => other.map_err(ExportError::io("rename to", to)),
    }
}

/// Refuses what is not an export, or has anything else in it.
fn is_export(out: &Path) -> Result<(), ExportError> {
    let not = |why: String| ExportError::NotAnExport { path: out.into(), why };
    let kind = fs::symlink_metadata(out).map_err(ExportError::io("look at", out))?.file_type();
    if !kind.is_dir() {
        return Err(not(
            if kind.is_symlink() { "it is a symbolic link" } else { "it is not a folder" }.into()
        ));
    }
    if !fs::symlink_metadata(out.join(MARK)).is_ok_and(|m| m.is_file()) {
        return Err(not(format!("it is no export: it has no {MARK}")));
    }
    foreign_in(out, 0).map_or(Ok(()), |path| Err(not(format!("{} is no part of an export", path.display()))))
}

/// Something below `folder` that no export has. `depth` 0: the export itself; 1: a table.
fn foreign_in(folder: &Path, depth: usize) -> Option<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Some(folder.into()) };
    for entry in entries {
        let Ok(entry) = entry else { return Some(folder.into()) };
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().ok();
        let (is_dir, is_file) = (kind.is_some_and(|k| k.is_dir()), kind.is_some_and(|k| k.is_file()));
        let is_part = match depth {
            0 => {
                (is_file && name == MARK)
                    || (is_dir && (name == tables::META.name || TableInfo::named(&name).is_some()))
            }
            4 => is_file && name == PART,
            _ => is_dir && partition::is(&name, depth - 1),
        };
        if !is_part {
            return Some(path);
        }
        if is_dir && let Some(foreign) = foreign_in(&path, depth + 1) {
            return Some(foreign);
        }
    }
    None
}

fn write(set: &Dataset, out: &Path, more: &mut dyn FnMut(u64) -> bool) -> Result<Exported, ExportError> {
    let members = set.members();
    let mut taken = BTreeSet::new();
    if let Some(twice) = members.iter().map(|m| partition::of(m.meta())).find(|p| !taken.insert(p.clone())) {
        return Err(ExportError::Twice(twice));
    }
    let mut all = Vec::new();
    let mut missing = set.missing();
    for info in tables::ALL {
        let mut table = ExportedTable { name: info.name, files: 0, written: WrittenFile::default() };
        for member in &members {
            let written = write_table(member, info, out, more)?;
            table.files += 1;
            table.written.rows += written.rows;
            table.written.bytes += written.bytes;
            table.written.clipped += written.clipped;
        }
        all.push(table);
    }
    // Only now is it known what each member lacks.
    let mut table = ExportedTable { name: tables::META.name, files: 0, written: WrittenFile::default() };
    for member in &members {
        let lacks = member.missing();
        let mut chunk = MetaRow::chunk();
        MetaRow::of(member.meta(), &lacks).put(&mut chunk);
        let written = write_chunks(member, &tables::META, out, std::iter::once(chunk))?;
        table.files += 1;
        table.written.rows += written.rows;
        table.written.bytes += written.bytes;
        for lack in lacks {
            // A merged data set has said of each member that it was cut off.
            let known = missing.contains(&lack)
                || (members.len() > 1 && !matches!(lack, Missing::Damage { .. } | Missing::Rows { .. }));
            if !known {
                missing.push(lack);
            }
        }
    }
    all.insert(0, table);
    let path = out.join(MARK);
    let text = mark(&all, members.len()).map_err(ExportError::io("write", &path))?;
    fs::write(&path, text).map_err(ExportError::io("write", &path))?;
    Ok(Exported { tables: all, members: members.len() as u64, missing })
}

/// What the export says of itself.
fn mark(tables: &[ExportedTable], members: usize) -> io::Result<String> {
    let rows: serde_json::Map<String, serde_json::Value> =
        tables.iter().map(|t| (t.name.to_owned(), t.written.rows.into())).collect();
    let value = serde_json::json!({
        "format": VERSION,
        "homenode": env!("CARGO_PKG_VERSION"),
        "members": members,
        "rows": rows,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn write_table(
    set: &Dataset,
    info: &TableInfo,
    out: &Path,
    more: &mut dyn FnMut(u64) -> bool,
) -> Result<WrittenFile, ExportError> {
    let mut chunks = set.checked_chunks(info);
    let mut told = 0;
    let size = set.size_of(info.name);
    let mut after = |chunks: u64| {
        let now = chunks.min(size);
        let step = now.saturating_sub(told);
        told = told.max(now);
        more(step)
    };
    let mut stopped = false;
    let written = {
        let mut reads = Reads { chunks: &mut chunks, more: &mut after, stopped: &mut stopped };
        write_chunks(set, info, out, &mut reads)?
    };
    if stopped || !after(size) {
        return Err(ExportError::Stopped);
    }
    Ok(written)
}

/// Chunks, until somebody says that it is enough.
struct Reads<'a> {
    chunks: &'a mut homenode_dataset::folder::Chunks,
    more: &'a mut dyn FnMut(u64) -> bool,
    stopped: &'a mut bool,
}

impl Iterator for Reads<'_> {
    type Item = Chunk;
    fn next(&mut self) -> Option<Chunk> {
        if !(self.more)(self.chunks.read_so_far()) {
            *self.stopped = true;
            return None;
        }
        self.chunks.next()
    }
}

fn write_chunks(
    set: &Dataset,
    info: &TableInfo,
    out: &Path,
    chunks: impl Iterator<Item = Chunk>,
) -> Result<WrittenFile, ExportError> {
    let folder = out.join(info.name).join(partition::of(set.meta()));
    make_folder(&folder)?;
    let path = folder.join(PART);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file: File = file.map_err(ExportError::io("make", &path))?;
    let written = (|| {
        let mut writer = FileWriter::new(BufWriter::with_capacity(1 << 20, file), &(info.columns)())?;
        for chunk in chunks {
            writer.add(&chunk)?;
        }
        writer.finish(&about(info))
    })();
    written.map_err(ExportError::io("write", &path))
}

/// Key-value metadata: what the table and each column mean.
fn about(info: &TableInfo) -> Vec<(String, String)> {
    let mut all = vec![
        ("homenode.format".to_owned(), VERSION.to_string()),
        ("homenode.table".to_owned(), info.name.to_owned()),
        ("homenode.row".to_owned(), info.doc.to_owned()),
    ];
    for column in (info.columns)() {
        all.push((format!("homenode.column.{}", column.name), column.doc.to_owned()));
        if !column.unit.is_empty() {
            all.push((format!("homenode.unit.{}", column.name), column.unit.to_owned()));
        }
    }
    all
}
