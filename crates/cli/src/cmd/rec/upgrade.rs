//! `homenode rec upgrade`: the form and version of recordings, and the version that they would get.
//!
//! A data set of an older version needs no command: homenode upgrades it whenever it reads it
//! (`crates/dataset/src/upgrade.rs`).

use std::path::{Path, PathBuf};

use homenode_dataset::meta::VERSION;
use homenode_dataset::{Dataset, upgrade as old};
use homenode_error::{Context as _, Error, Result};
use homenode_table::{Cell, Column, Table};

use crate::exit::Exit;
use crate::open::{data_set, recording};
use crate::output::{OutputArgs, say};

/// What a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A data set.
    Dataset,
    /// Logs of every access.
    Exact,
    /// The lab's counts, as CSV.
    Counts,
    /// Sightings of a live run, as CSV.
    Sightings,
}

impl Form {
    const fn name(self) -> &'static str {
        match self {
            Self::Dataset => "data set",
            Self::Exact => "logs of every access",
            Self::Counts => "counts of the lab, as CSV",
            Self::Sightings => "sightings of a live run, as CSV",
        }
    }

    /// What it would become, by its version.
    fn becomes(self, version: u32) -> String {
        match self {
            Self::Dataset if version == VERSION => "is the newest".into(),
            Self::Dataset => format!("reads as a data set of version {VERSION}"),
            Self::Exact => "stays: simulating it gives data sets".into(),
            Self::Counts | Self::Sightings => format!("a data set of version {VERSION}"),
        }
    }

    /// The form of a recording and its version.
    fn of(path: &Path) -> Result<(Self, u32)> {
        let form = match old::OlderForm::at(path) {
            Some(old::OlderForm::LabV1) => Self::Counts,
            Some(old::OlderForm::LiveV1) => Self::Sightings,
            None if Dataset::is_at(path) => Self::Dataset,
            None => Self::Exact,
        };
        let version = match form {
            Self::Exact => recording(path, "read")?.meta.format,
            _ => data_set(path, "read")?.meta().format,
        };
        Ok((form, version))
    }
}

/// Writes a recording of an older form as a data set at `to`.
fn write(from: &Path, to: &Path) -> Result<Exit> {
    Form::of(from)?;
    let path = old::upgrade(from, to).context(|| format!("cannot upgrade {}", from.display()))?;
    say(format_args!("{} is now the data set {}", from.display(), path.display()));
    Ok(Exit::Done)
}

pub(super) fn run(recordings: &[PathBuf], to: Option<&Path>, output: &OutputArgs) -> Result<Exit> {
    match (recordings, to) {
        (_, None) => {}
        ([from], Some(to)) => return write(from, to),
        _ => return Err(Error::usage("-o NEW takes one recording").hint("upgrade them one by one")),
    }
    let columns = vec![
        Column::text("recording", "recording"),
        Column::text("form", "is"),
        Column::number("version", "version"),
        Column::text("becomes", "becomes"),
    ];
    let mut table = Table::new("rec-upgrade", 1, columns);
    let mut last: Option<Error> = None;
    for path in recordings {
        match Form::of(path) {
            Ok((form, version)) => table.row(vec![
                Cell::text(path.display().to_string()),
                Cell::text(form.name()),
                Cell::int(version),
                Cell::text(form.becomes(version)),
            ]),
            Err(error) => {
                if let Some(before) = last.replace(error) {
                    say(before);
                }
            }
        }
    }
    let exit = if table.rows().is_empty() { Exit::Usage } else { output.print(&table)? };
    last.map_or(Ok(exit), Err)
}
