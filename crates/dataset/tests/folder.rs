//! A data set on disk: what was flushed is readable, and what is damaged is named and left out.

use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::basis::{Basis, SeenCount};
use homenode_dataset::tables::{Access, IntervalNo, Node, Object, ObjectKind};
use homenode_dataset::{
    Dataset, DatasetMeta, DatasetWriter, Ended, MemoryDataset, Missing, RecordingKind, RowSink,
};
use homenode_model::{Bytes, NodeId, ObjectId};

struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("homenode-dataset-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn meta() -> DatasetMeta {
    DatasetMeta::new(RecordingKind::Simulated, Basis::Exact, vec!["app".into(), "--size".into()])
}

fn ended() -> Ended {
    Ended { status: Some(0), signal: None, elapsed_ns: 5 }
}

fn node(n: u16) -> Node {
    Node { node: NodeId(n), memory_bytes: Some(Bytes::gib(1)), cpus: 4 }
}

fn access(page: u64) -> Access {
    Access {
        interval: IntervalNo(0),
        region: None,
        object: Some(ObjectId(0)),
        page,
        pages: 1,
        node: NodeId((page % 4) as u16),
        home: NodeId(0),
        kind: None,
        tally: SeenCount::new(page + 1, Basis::Exact),
    }
}

fn object(name: &str) -> Object {
    Object {
        object: ObjectId(0),
        id: name.into(),
        process: 0,
        name: name.into(),
        kind: ObjectKind::Allocated,
        element_type: Some("double".into()),
        element_bytes: Some(8),
        dimensions: vec![5, 258, 258],
        fields: homenode_dataset::fields::Fields::of([
            ("x".into(), "float".into(), 0, 4),
            ("y".into(), "float".into(), 4, 4),
        ]),
        file: None,
        line: Some(3),
        function: None,
        stack: vec!["main.c:3".into(), "start.c:1".into()],
        bytes: Bytes::mib(1),
        address: 4096,
        allocations: 1,
        birth_ns: None,
        death_ns: None,
    }
}

fn write(path: &Path, rows: u64) {
    let mut writer = DatasetWriter::create(path, meta()).unwrap();
    writer.push(&node(0)).unwrap();
    writer.push(&object("u")).unwrap();
    (0..rows).for_each(|page| writer.push(&access(page)).unwrap());
    writer.finish(ended()).unwrap();
}

fn pages(set: &Dataset) -> Vec<u64> {
    set.rows::<Access>().map(|a| a.page).collect()
}

#[test]
fn many_rows_come_back_in_order() {
    let folder = Temporary::new("order");
    write(&folder.0, 50_000);
    let set = Dataset::open(&folder.0).unwrap();
    assert_eq!(pages(&set), (0..50_000).collect::<Vec<_>>());
    assert_eq!(set.rows::<Object>().collect::<Vec<_>>(), [object("u")]);
    assert_eq!(set.missing(), []);
    assert_eq!(set.meta().command, ["app", "--size"]);
}

#[test]
fn memory_and_disk_read_alike() {
    let folder = Temporary::new("alike");
    write(&folder.0, 40_000);
    let mut memory = MemoryDataset::default();
    memory.push(&node(0)).unwrap();
    memory.push(&object("u")).unwrap();
    (0..40_000).for_each(|page| memory.push(&access(page)).unwrap());
    let set = Dataset::of_memory(DatasetMeta { ended: Some(ended()), ..meta() }, memory);
    let disk = Dataset::open(&folder.0).unwrap();
    assert!(set.rows::<Access>().eq(disk.rows::<Access>()));
    assert!(set.rows::<Object>().eq(disk.rows::<Object>()));
}

#[test]
fn what_was_flushed_survives_its_writer() {
    let folder = Temporary::new("flushed");
    let mut writer = DatasetWriter::create(&folder.0, meta()).unwrap();
    for round in 0..10 {
        writer.push(&access(round)).unwrap();
        if round == 6 {
            writer.flush().unwrap();
        }
    }
    // As kill -9 would: nothing that waits is written, nobody finishes.
    std::mem::forget(writer);
    let set = Dataset::open(&folder.0).unwrap();
    assert_eq!(pages(&set), (0..7).collect::<Vec<_>>());
    assert_eq!(set.missing(), [Missing::CutOff]);
}

#[test]
fn a_table_cut_off_anywhere_gives_its_whole_chunks() {
    let folder = Temporary::new("cut");
    write(&folder.0, 20_000);
    let file = folder.0.join("tables/accesses.hntable");
    let whole = fs::read(&file).unwrap();
    let mut last = 0;
    for cut in (0..whole.len()).step_by(whole.len() / 200) {
        fs::write(&file, &whole[..cut]).unwrap();
        let set = Dataset::open(&folder.0).unwrap();
        let found = pages(&set);
        assert!(found.len() >= last && found.iter().copied().eq(0..found.len() as u64), "{cut}");
        assert!(!set.missing().is_empty(), "cut off at {cut}, and nothing says so");
        last = found.len();
    }
    assert_eq!(last, 1 << 14);
}

#[test]
fn a_table_that_lacks_whole_chunks_says_so() {
    let folder = Temporary::new("chunks");
    write(&folder.0, 100);
    let file = folder.0.join("tables/accesses.hntable");
    let small = fs::read(&file).unwrap();
    let other = Temporary::new("more-chunks");
    write(&other.0, 40_000);
    fs::write(other.0.join("tables/accesses.hntable"), &small).unwrap();
    let set = Dataset::open(&other.0).unwrap();
    assert_eq!(pages(&set).len(), 100);
    assert_eq!(set.missing()[0].to_string(), "39900 rows of tables/accesses.hntable are missing");
    fs::remove_file(other.0.join("tables/accesses.hntable")).unwrap();
    let set = Dataset::open(&other.0).unwrap();
    assert!(pages(&set).is_empty() && set.missing()[0].to_string().starts_with("40000 rows"));
}

#[test]
fn a_flipped_bit_costs_one_chunk_and_is_named() {
    let folder = Temporary::new("flip");
    write(&folder.0, 40_000);
    let file = folder.0.join("tables/accesses.hntable");
    let whole = fs::read(&file).unwrap();
    let mut most = 0;
    for at in (0..whole.len()).step_by(whole.len() / 300) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&file, &bytes).unwrap();
        let set = Dataset::open(&folder.0).unwrap();
        let found = pages(&set);
        assert!(found.is_sorted() && found.len() < 40_000, "{at}");
        let missing = set.missing();
        assert!(
            matches!(&missing[..], [Missing::Damage { file, .. } | Missing::Rows { file, .. }, ..] if file.ends_with("accesses.hntable")),
            "{missing:?}"
        );
        most = most.max(found.len());
    }
    assert!(most >= 40_000 - (1 << 14), "{most}");
}

#[test]
fn pieces_of_other_tables_are_refused() {
    let folder = Temporary::new("splice");
    write(&folder.0, 100);
    let tables = folder.0.join("tables");
    fs::copy(tables.join("nodes.hntable"), tables.join("accesses.hntable")).unwrap();
    let set = Dataset::open(&folder.0).unwrap();
    assert!(pages(&set).is_empty());
    assert!(set.missing()[0].to_string().contains("it is the table 'nodes', not 'accesses'"));
    // A whole chunk of another table, behind a right header.
    write(&folder.0.join("other"), 100);
    let mut bytes = fs::read(folder.0.join("other/tables/accesses.hntable")).unwrap();
    bytes.extend_from_slice(&fs::read(tables.join("objects.hntable")).unwrap()[8..]);
    fs::write(tables.join("accesses.hntable"), bytes).unwrap();
    let set = Dataset::open(&folder.0).unwrap();
    assert_eq!(pages(&set).len(), 100);
    assert!(!set.missing().is_empty());
}

#[test]
fn hostile_names_reach_nobody_as_they_are() {
    let folder = Temporary::new("names");
    let mut writer =
        DatasetWriter::create(&folder.0, DatasetMeta { machine: "m\x1b]0;x\x07".into(), ..meta() }).unwrap();
    for name in ["\x1b[2Jred", "two\nlines", "\u{202e}txt.exe", &"x".repeat(10 << 20)] {
        writer.push(&object(name)).unwrap();
    }
    writer.finish(ended()).unwrap();
    let set = Dataset::open(&folder.0).unwrap();
    let names: Vec<_> = set.rows::<Object>().map(|o| o.name).collect();
    assert_eq!(names[..3], ["\u{fffd}[2Jred", "two\u{fffd}lines", "\u{fffd}txt.exe"]);
    assert!(names[3].len() <= 4096);
    assert!(!set.meta().machine.contains(['\x1b', '\x07']));
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let folder = Temporary::new("fifo");
    write(&folder.0, 10);
    let table = folder.0.join("tables/accesses.hntable");
    fs::remove_file(&table).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&table).status().unwrap().success());
    let set = Dataset::open(&folder.0).unwrap();
    assert!(pages(&set).is_empty());
    assert!(set.missing()[0].to_string().contains("not a regular file"), "{:?}", set.missing());
    fs::remove_file(&table).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &table).unwrap();
    let set = Dataset::open(&folder.0).unwrap();
    assert!(pages(&set).is_empty());
    assert!(set.missing()[0].to_string().contains("symbolic link"), "{:?}", set.missing());
}

#[test]
fn wrong_versions_and_strange_folders_are_named() {
    let folder = Temporary::new("version");
    write(&folder.0, 1);
    let file = folder.0.join("dataset.json");
    let text = fs::read_to_string(&file).unwrap();
    let error = |text: &str| {
        fs::write(&file, text).unwrap();
        Dataset::open(&folder.0).unwrap_err().to_string()
    };
    assert!(error(&text.replace("\"format\": 1", "\"format\": 99")).contains("format 99"));
    // A description that is damaged hides no table.
    let said = |text: &str| {
        fs::write(&file, text).unwrap();
        let opened = Dataset::open(&folder.0);
        opened.map_or_else(|e| e.to_string(), |set| set.meta().incomplete.join("\n"))
    };
    assert!(said("{").contains("dataset.json is damaged at byte 1"));
    assert!(!said(&text.replace("\"simulated\"", "\"\\u001b[31m\"")).contains('\x1b'));
    assert!(Dataset::open(Path::new("/")).unwrap_err().to_string().contains("no dataset.json"));
    assert!(Dataset::open(Path::new("/nowhere")).unwrap_err().to_string().contains("cannot open /nowhere"));
}

#[test]
fn a_glance_reads_some_chunks_of_the_accesses_and_all_of_the_rest() {
    let folder = Temporary::new("glance");
    write(&folder.0, 1_000_000);
    let set = Dataset::open(&folder.0).unwrap();
    let glance = set.glance(10).unwrap();
    let some = pages(&glance);
    assert!(some.is_sorted_by(|a, b| a < b), "each row once");
    let chunks: std::collections::BTreeSet<u64> = some.iter().map(|page| page >> 14).collect();
    assert_eq!(chunks.len(), 10, "whole chunks, one in each tenth: {chunks:?}");
    assert!(some[0] < 200_000 && *some.last().unwrap() > 800_000, "from the beginning to the end");
    assert_eq!(glance.rows::<Object>().count(), 1);
    assert_eq!(glance.missing(), [], "what is not read is not lost");
    assert_eq!(pages(&set).len(), 1_000_000, "the data set itself reads everything");
    assert_eq!(pages(&set.glance(1000).unwrap()), pages(&set), "more places than chunks: all of them once");
    assert!(Dataset::of_memory(meta(), MemoryDataset::default()).glance(10).is_none());
}

#[test]
fn a_glance_at_a_damaged_table_tells_the_damage_that_it_meets() {
    let folder = Temporary::new("glance-damaged");
    write(&folder.0, 300_000);
    let table = folder.0.join("tables").join("accesses.hntable");
    let mut bytes = fs::read(&table).unwrap();
    let (from, to) = (bytes.len() / 4, bytes.len() / 2);
    bytes[from..to].fill(0);
    fs::write(&table, bytes).unwrap();
    let set = Dataset::open(&folder.0).unwrap();
    let some = pages(&set.glance(4).unwrap());
    assert!(some.is_sorted_by(|a, b| a < b) && !some.is_empty(), "{}", some.len());
    assert!(some.iter().any(|page| *page > 150_000), "what lies behind the damage is read");
}
