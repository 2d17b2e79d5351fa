//! What is kept beside a recording is what would be drawn, or is drawn anew.

use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::layout::TABLES;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::{Dataset, DatasetWriter};
use homenode_view::cache::{self, FILE};
use homenode_view::{PyramidBudget, page};

use crate::support::{fresh, opened};

fn recording(name: &str) -> PathBuf {
    let folder = fresh(name).join("set.hnrec");
    let spec = SyntheticSpec { iterations: 8, blocks: 64, nodes: 4, seed: 7, rank: None };
    let mut writer = DatasetWriter::create(&folder, spec.meta()).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    folder
}

/// Draws the recording and keeps it; returns what the page is told.
fn keep(folder: &Path) -> String {
    let opened = opened(Dataset::open(folder).unwrap());
    let mut model = opened.model(PyramidBudget::SERVER, &mut |_| true);
    opened.complete(&mut model);
    cache::save(&opened, &model).unwrap();
    page::json(&model).unwrap()
}

fn kept(folder: &Path) -> Option<String> {
    Some(cache::load(&Dataset::open(folder).unwrap(), None)?.0.model().to_owned())
}

#[test]
fn what_is_kept_is_what_was_drawn() {
    let folder = recording("cache-same");
    assert_eq!(kept(&folder), None, "nothing is kept yet");
    let drawn = keep(&folder);
    assert!(kept(&folder).unwrap() == drawn);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "description, tables and one file");
    homenode_dataset::folder::remove(&folder).unwrap();
}

#[test]
fn the_source_is_read_anew() {
    let folder = recording("cache-source");
    let source = folder.with_file_name("source");
    fs::create_dir(&source).unwrap();
    let set = Dataset::open(&folder).unwrap();
    keep(&folder);
    let lines = |line: &str| {
        fs::write(source.join("solver.c"), format!("{line}\n").repeat(500)).unwrap();
        let (shown, _) = cache::load(&set, Some(&source)).unwrap();
        let model: serde_json::Value = serde_json::from_str(shown.model()).unwrap();
        model["sources"][0]["lines"][0].as_str().unwrap().to_owned()
    };
    assert_eq!([lines("one"), lines("<b>")], ["one", "<b>"]);
}

#[test]
fn other_tables_damage_and_other_versions_are_drawn_anew() {
    let folder = recording("cache-stale");
    keep(&folder);
    let file = folder.join(FILE);
    let good = fs::read(&file).unwrap();
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fs::write(&file, bytes).unwrap();
        kept(&folder)
    };
    assert!(damaged(&|_| {}).is_some());
    assert_eq!(damaged(&|b| b.truncate(b.len() / 2)), None, "cut off");
    assert_eq!(damaged(&|b| *b.last_mut().unwrap() ^= 1), None, "damaged");
    assert_eq!(damaged(&|b| b.clear()), None, "empty");
    assert_eq!(
        damaged(&|b| *b = b.replacen("homenode/tiles/4", "homenode/tiles/0")),
        None,
        "of another version"
    );
    fs::write(&file, &good).unwrap();
    let table = folder.join(TABLES).join("migrations.hntable");
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&table, bytes).unwrap();
    assert_eq!(kept(&folder), None, "the tables are others");
}

trait Replacen {
    fn replacen(&self, from: &str, to: &str) -> Self;
}

impl Replacen for Vec<u8> {
    fn replacen(&self, from: &str, to: &str) -> Self {
        String::from_utf8(self.clone()).unwrap().replacen(from, to, 1).into_bytes()
    }
}

#[test]
fn where_nothing_can_be_written_nothing_is_left() {
    let folder = recording("cache-refused");
    // A folder where the file should be: root may write everywhere else.
    fs::create_dir_all(folder.join("view.tiles.new/in the way")).unwrap();
    let opened = opened(Dataset::open(&folder).unwrap());
    let model = opened.model(PyramidBudget::SERVER, &mut |_| true);
    assert!(cache::save(&opened, &model).is_err());
    assert!(!folder.join(FILE).exists());
    assert!(model.objects.len() > 3, "what was drawn is there");
}
