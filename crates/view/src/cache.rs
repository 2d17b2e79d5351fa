//! What was drawn of a recording, kept beside its tables, so that the next opening reads no table.
//!
//! | file in the recording's folder | what |
//! |---|---|
//! | [`FILE`] | what the page is told |
//! | [`PYRAMID`] | sums at many resolutions, from which finer pictures are drawn |
//!
//! Each has a version, a stamp of the tables that it was drawn from, and checksums. homenode makes
//! a file anew that is of another version, of other tables or damaged. Where no file can be
//! written, because the disk is full or may only be read, the page works without: it reads the
//! tables at the next opening, and for each finer picture.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use homenode_dataset::folder::room;
use homenode_dataset::layout::{META, TABLES};
use homenode_dataset::{Dataset, TableRow as _, foreign, tables};
use homenode_model::{Bytes, NodeId, ObjectId};
use homenode_report::Unit;
use homenode_report::time::Timeline;
use serde::{Deserialize, Serialize};

use crate::model::PageModel;
use crate::opened::Opened;
use crate::page;
use crate::server::ServedPage;
use crate::source;
use crate::tiles::nodes::RecordedNodes;
use crate::tiles::pyramid::gather::gather;
use crate::tiles::pyramid::{Pyramid, PyramidError, PyramidWriter, Recipe};

/// The file, in the folder of the recording.
pub const FILE: &str = "view.tiles";
/// The file while it is written.
const NEW: &str = "view.tiles.new";
/// The file of the pyramid, from which finer pictures are drawn.
pub const PYRAMID: &str = "view.pyramid";
/// That file while it is written.
const PYRAMID_NEW: &str = "view.pyramid.new";
/// Version of the file and of what it holds. A change of the model is a new version.
const SCHEMA: &str = "homenode/tiles/4";
/// Most bytes of a file that are read.
const MOST: u64 = 256 << 20;
/// Bytes of accesses above which a file is worth its room.
pub const WORTH: u64 = 16 << 20;
/// A pyramid has at most this many times the bytes of the accesses, about: 1.4 to 1.5 were seen.
const TIMES: u64 = 2;
/// Bytes at each end of a table that the stamp looks at.
const ENDS: u64 = 4096;
/// Stands in front of the lines of the source, which are read anew each time.
const SOURCES: &str = "\"sources\":[";

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    homenode: String,
    stamp: String,
    /// Checksum of what follows the line.
    sum: u64,
    nodes: Vec<u16>,
    /// Objects, and whether their remote share is one of sightings.
    units: Vec<(u32, bool)>,
    /// Objects with a picture, and their pages.
    drawn: Vec<(u32, u64)>,
    /// Places in the source that the page names.
    places: Vec<(String, u32)>,
}

/// FNV-1a: tells changed bytes from unchanged ones, and guards against no attacker.
struct Sum(u64);

impl Sum {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn add_file(sum: &mut Sum, path: &Path) -> io::Result<()> {
    let mut file = foreign::open(path)?;
    let meta = file.metadata()?;
    let changed = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    sum.add(path.file_name().unwrap_or_default().as_encoded_bytes());
    sum.add(&meta.len().to_le_bytes());
    sum.add(&changed.map_or(0, |t| t.as_nanos()).to_le_bytes());
    let mut ends = Vec::new();
    (&file).take(ENDS).read_to_end(&mut ends)?;
    if meta.len() > ENDS {
        file.seek(io::SeekFrom::End(-(ENDS as i64)))?;
        file.take(ENDS).read_to_end(&mut ends)?;
    }
    sum.add(&ends);
    Ok(())
}

/// Of a data set in a folder of its own that is complete: its folder, and a stamp of all its
/// tables.
fn stamp(set: &Dataset) -> Option<(PathBuf, String)> {
    let folder = set.path()?.to_owned();
    let meta = set.meta();
    if meta.ended.is_none() || !meta.members.is_empty() {
        return None;
    }
    let mut sum = Sum::new();
    add_file(&mut sum, &folder.join(META)).ok()?;
    for table in tables::ALL {
        let path = folder.join(TABLES).join(format!("{}.hntable", table.name));
        match add_file(&mut sum, &path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return None,
            _ => sum.add(table.name.as_bytes()),
        }
    }
    Some((folder, format!("{:016x}", sum.0)))
}

/// Refuses a pyramid for which the disk has no room; `accesses`: bytes of the table of accesses.
fn check_room(accesses: u64, room: Bytes) -> Result<(), PyramidError> {
    let needed = Bytes(accesses.saturating_mul(TIMES));
    if room < needed { Err(PyramidError::NoRoom { needed, room }) } else { Ok(()) }
}

/// Begins the pyramid of a data set: beside the tables if they are large, else in memory.
///
/// # Errors
/// No file can be made there, the disk has too little room, or the recording is too large for a
/// pyramid.
pub fn begin(set: &Dataset, recipe: Recipe) -> Result<PyramidWriter, PyramidError> {
    match stamp(set).filter(|_| is_worth(set)) {
        None => PyramidWriter::in_memory(recipe),
        Some((folder, _)) => {
            let new = folder.join(PYRAMID_NEW);
            let _ = fs::remove_file(&new);
            check_room(set.size_of(tables::Access::NAME), room(&folder)?)?;
            PyramidWriter::create(recipe, &new)
        }
    }
}

/// Writes the rest of a pyramid, and opens it. `more` gets the part that is done, in thousandths,
/// and says whether to go on.
///
/// # Errors
/// It cannot be written or read, or `more` said no; nothing is left of it.
pub fn finish(
    set: &Dataset,
    writer: PyramidWriter,
    more: &mut dyn FnMut(u64) -> bool,
) -> Result<Pyramid, PyramidError> {
    let (folder, stamp) = stamp(set).unwrap_or_default();
    let finished = writer.finish(&stamp, more)?;
    let new = finished.path.clone();
    let pyramid = Pyramid::of(finished).and_then(|pyramid| {
        new.iter().try_for_each(|new| fs::rename(new, folder.join(PYRAMID)))?;
        Ok(pyramid)
    });
    if let (Err(_), Some(new)) = (&pyramid, &new) {
        let _ = fs::remove_file(new);
    }
    pyramid
}

/// Makes the pyramid of a data set whose pictures are there already. `more` gets the number
/// of rows that were read, and says whether to go on. `None`: it said no.
///
/// # Errors
/// It cannot be written or read.
pub fn build(
    set: &Dataset,
    drawn: &Drawn,
    more: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Pyramid>, PyramidError> {
    let timeline = Timeline::of(set);
    let nodes = RecordedNodes::of_list(drawn.nodes.iter().copied());
    let writer = gather(set, &timeline, &nodes, &drawn.objects, &mut |recipe| begin(set, recipe), more)?;
    let Some(writer) = writer else { return Ok(None) };
    match finish(set, writer, &mut |_| more(u64::MAX)) {
        Err(PyramidError::Stopped) => Ok(None),
        made => made.map(Some),
    }
}

/// The pyramid that was kept of a data set, if it is still right.
pub fn pyramid(set: &Dataset) -> Option<Pyramid> {
    let (folder, stamp) = stamp(set)?;
    Pyramid::open(&folder.join(PYRAMID), &stamp).ok()
}

/// Whether what is drawn of a data set is worth keeping.
pub fn is_worth(set: &Dataset) -> bool {
    set.size_of(tables::Access::NAME) > WORTH
}

/// Keeps what was drawn.
///
/// # Errors
/// It cannot be kept, and nothing is left behind.
pub fn save(opened: &Opened, model: &PageModel) -> io::Result<()> {
    let unkept =
        || io::Error::new(io::ErrorKind::Unsupported, "it is not in a folder of its own, or not complete");
    let (folder, stamp) = stamp(&opened.set).ok_or_else(unkept)?;
    let bare = PageModel { sources: Vec::new(), ..model.clone() };
    let json = page::json(&bare)?;
    let mut sum = Sum::new();
    sum.add(json.as_bytes());
    let unit =
        |o: &homenode_report::objects::ObjectReport| Some((o.object?.0, o.remote.of == Unit::Sightings));
    let head = Head {
        schema: SCHEMA.into(),
        homenode: env!("CARGO_PKG_VERSION").into(),
        stamp,
        sum: sum.0,
        nodes: model.nodes.clone(),
        units: opened.report.objects.iter().filter_map(unit).collect(),
        drawn: model.objects.iter().filter_map(|o| Some((o.report.object?.0, o.pages))).collect(),
        places: bare.places(),
    };
    let new = folder.join(NEW);
    let written = write(&new, &head, &json).and_then(|()| fs::rename(&new, folder.join(FILE)));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write(new: &Path, head: &Head, json: &str) -> io::Result<()> {
    let _ = fs::remove_file(new);
    let mut file = File::options().write(true).create_new(true).open(new)?;
    file.write_all(&serde_json::to_vec(head)?)?;
    file.write_all(b"\n")?;
    file.write_all(json.as_bytes())?;
    file.sync_data()
}

/// What a pyramid needs to know of pictures that were kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    nodes: Vec<NodeId>,
    objects: Vec<(ObjectId, u64, Unit)>,
}

/// What was kept of a data set, if it is still right. `folder`: where the source lies, if it is
/// looked for.
pub fn load(set: &Dataset, folder: Option<&Path>) -> Option<(ServedPage, Drawn)> {
    let (place, stamp) = stamp(set)?;
    let text = foreign::read(&place.join(FILE), MOST).ok()?;
    let (head, json) = text.split_once('\n')?;
    let head: Head = serde_json::from_str(head).ok()?;
    let mut sum = Sum::new();
    sum.add(json.as_bytes());
    let right = head.schema == SCHEMA && head.homenode == env!("CARGO_PKG_VERSION") && head.stamp == stamp;
    // Whoever made the file: it must not end the element of the page that it stands in.
    if !right || head.sum != sum.0 || json.contains('<') {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
    let (before, after) = json.split_once(SOURCES)?;
    let sources = folder.map(|folder| source::around(&head.places, folder)).unwrap_or_default();
    let sources = serde_json::to_string(&sources).ok()?.replace('<', "\\u003c");
    let model = format!("{before}{}{}{after}", &SOURCES[..SOURCES.len() - 1], sources.strip_suffix(']')?);
    let unit =
        |(object, sightings)| (ObjectId(object), if sightings { Unit::Sightings } else { Unit::Accesses });
    let units: BTreeMap<ObjectId, Unit> = head.units.into_iter().map(unit).collect();
    let of = |(object, pages)| Some((ObjectId(object), pages, *units.get(&ObjectId(object))?));
    let objects = head.drawn.into_iter().filter_map(of).collect();
    let nodes: Vec<NodeId> = head.nodes.into_iter().map(NodeId).collect();
    let drawn = Drawn { nodes: nodes.clone(), objects };
    Some((ServedPage::kept(model, set.clone(), RecordedNodes::of_list(nodes), units), drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_too_little_room_is_left_as_it_is() {
        assert!(check_room(100 << 20, Bytes(200 << 20)).is_ok());
        let why = check_room(100 << 20, Bytes(5 << 20)).unwrap_err().to_string();
        assert_eq!(why, "it may take 200 MiB, and the disk has 5 MiB left");
        assert!(room(Path::new("/")).unwrap() > Bytes(0));
    }
}
