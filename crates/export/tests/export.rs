//! An export: its files, its folder, and what becomes of both when something is wrong.

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use homenode_dataset::column::{Chunk, ColumnKind};
use homenode_dataset::schema::ColumnInfo;
use homenode_dataset::tables::{ALL, META, TableInfo};
use homenode_dataset::{Dataset, Missing};
use homenode_export::export::MARK;
use homenode_export::parquet::FileWriter;
use homenode_export::{ExportError, ExportOptions, export};
use proptest::prelude::*;
use support::parquet::{self, Cell};
use support::{Temporary, in_memory, on_disk, part};

const KEEP: ExportOptions = ExportOptions { force: false };
const FORCE: ExportOptions = ExportOptions { force: true };

/// The cells of a column as the data set has them.
fn cells(chunk: &Chunk, at: usize, kind: ColumnKind) -> Vec<Cell> {
    let column = &chunk.columns[at];
    let int = |n: u64| Cell::Int(i64::try_from(n).unwrap_or(i64::MAX));
    (0..chunk.rows())
        .map(|row| match kind {
            _ if !column.has(row) => Cell::Null,
            ColumnKind::Flag => Cell::Flag(column.int(row) == Some(1)),
            ColumnKind::Int => int(column.int(row).unwrap()),
            ColumnKind::Word(_) | ColumnKind::Text => Cell::Text(column.text(row).unwrap().into()),
            ColumnKind::Ints => Cell::List(column.ints(row).unwrap().iter().map(|n| int(*n)).collect()),
            ColumnKind::Texts => Cell::List(column.texts(row).unwrap().into_iter().map(Cell::Text).collect()),
        })
        .collect()
}

fn same(set: &Dataset, info: &TableInfo, bytes: &[u8]) {
    let file = parquet::read(bytes);
    let columns = (info.columns)();
    assert_eq!(file.columns.len(), columns.len());
    for (at, column) in columns.iter().enumerate() {
        let expected: Vec<Cell> = set.checked_chunks(info).flat_map(|c| cells(&c, at, column.kind)).collect();
        assert_eq!(file.columns[column.name], expected, "{}.{}", info.name, column.name);
    }
    let about = file.footer.at(5).list();
    let value = |key: String| about.iter().find(|kv| kv.at(1).text() == key).map(|kv| kv.at(2).text());
    assert_eq!(value("homenode.row".into()).as_deref(), Some(info.doc));
    for column in &columns {
        assert_eq!(value(format!("homenode.column.{}", column.name)).as_deref(), Some(column.doc));
        let unit = value(format!("homenode.unit.{}", column.name)).unwrap_or_default();
        assert_eq!(unit, column.unit, "{}", column.name);
    }
}

#[test]
fn every_table_comes_back_cell_by_cell() {
    let folder = Temporary::new("cells");
    let (set, out) = (on_disk(&folder.join("set"), 1), folder.join("out"));
    let mut read = 0;
    let done = export(&set, &out, KEEP, &mut |more| {
        read += more;
        true
    });
    let done = done.unwrap();
    assert_eq!(read, homenode_export::export::size(&set), "progress reaches its total");
    assert_eq!(done.missing, []);
    assert_eq!(done.tables.len(), ALL.len() + 1);
    for info in ALL {
        let bytes = fs::read(part(&out, info.name)).unwrap();
        same(&set, info, &bytes);
        let table = done.tables.iter().find(|t| t.name == info.name).unwrap();
        assert_eq!(table.written.bytes, bytes.len() as u64);
        assert_eq!(table.written.rows, set.meta().rows[info.name]);
    }
    let meta = parquet::read(&fs::read(part(&out, META.name)).unwrap());
    assert_eq!(meta.columns["kind"], [Cell::Text("synthetic".into())]);
    assert_eq!(meta.columns["environment"], [Cell::List(vec![Cell::Text("OMP_NUM_THREADS=16".into())])]);
    assert_eq!(meta.columns["missing"], [Cell::List(vec![])]);
    assert_eq!(meta.columns["signal"], [Cell::Null]);
    // The same from memory.
    let again = folder.join("again");
    export(&in_memory(1), &again, KEEP, &mut |_| true).unwrap();
    for info in ALL {
        assert!(fs::read(part(&out, info.name)).unwrap() == fs::read(part(&again, info.name)).unwrap());
    }
}

fn columns() -> Vec<ColumnInfo> {
    let of = |name, kind, optional| ColumnInfo { name, kind, optional, doc: "", unit: "" };
    vec![
        of("int", ColumnKind::Int, false),
        of("maybe_int", ColumnKind::Int, true),
        of("flag", ColumnKind::Flag, true),
        of("text", ColumnKind::Text, false),
        of("maybe_text", ColumnKind::Text, true),
        of("ints", ColumnKind::Ints, false),
        of("maybe_ints", ColumnKind::Ints, true),
        of("texts", ColumnKind::Texts, false),
        of("maybe_texts", ColumnKind::Texts, true),
    ]
}

/// Numbers that make every width of a difference likely.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(n, shift)| n >> shift)
}

type Row = (
    u64,
    Option<u64>,
    Option<bool>,
    String,
    Option<String>,
    Vec<u64>,
    Option<Vec<u64>>,
    Vec<String>,
    Option<Vec<String>>,
);

fn row() -> impl Strategy<Value = Row> {
    let text = || "[a-d]{0,3}";
    (
        number(),
        prop::option::of(number()),
        prop::option::of(any::<bool>()),
        text(),
        prop::option::of(text()),
        prop::collection::vec(number(), 0..4),
        prop::option::of(prop::collection::vec(number(), 0..4)),
        prop::collection::vec(text(), 0..3),
        prop::option::of(prop::collection::vec(text(), 0..3)),
    )
}

fn push(chunk: &mut Chunk, row: &Row) {
    let c = &mut chunk.columns;
    c[0].push_int(row.0);
    c[3].push_text(&row.3);
    c[5].push_ints(&row.5);
    c[7].push_texts(&row.7);
    match row.1 {
        Some(n) => c[1].push_int(n),
        None => c[1].push_none(),
    }
    match row.2 {
        Some(n) => c[2].push_int(u64::from(n)),
        None => c[2].push_none(),
    }
    match &row.4 {
        Some(t) => c[4].push_text(t),
        None => c[4].push_none(),
    }
    match &row.6 {
        Some(t) => c[6].push_ints(t),
        None => c[6].push_none(),
    }
    match &row.8 {
        Some(t) => c[8].push_texts(t),
        None => c[8].push_none(),
    }
}

proptest! {
    #[test]
    fn any_rows_come_back(rows in prop::collection::vec(row(), 1..300), repeated in 1_usize..4) {
        let columns = columns();
        let mut chunk = Chunk::new(columns.iter().map(|c| c.kind));
        rows.iter().for_each(|r| push(&mut chunk, r));
        let mut out = Vec::new();
        let mut file = FileWriter::new(&mut out, &columns).unwrap();
        (0..repeated).for_each(|_| file.add(&chunk).unwrap());
        let written = file.finish(&[]).unwrap();
        prop_assert_eq!(written.rows, (rows.len() * repeated) as u64);
        prop_assert_eq!(written.bytes, out.len() as u64);
        let file = parquet::read(&out);
        for (at, column) in columns.iter().enumerate() {
            let once = cells(&chunk, at, column.kind);
            let all: Vec<_> = (0..repeated).flat_map(|_| once.clone()).collect();
            prop_assert_eq!(&file.columns[column.name], &all, "{}", column.name);
        }
    }
}

#[test]
fn more_words_than_a_dictionary_holds_are_written_as_they_are() {
    let columns = [ColumnInfo { name: "id", kind: ColumnKind::Text, optional: false, doc: "", unit: "" }];
    let mut out = Vec::new();
    let mut file = FileWriter::new(&mut out, &columns).unwrap();
    let text = |n: usize| format!("{n:0>100}");
    for from in (0..40_000).step_by(5000) {
        let mut chunk = Chunk::new([ColumnKind::Text]);
        (from..from + 5000).for_each(|n| chunk.columns[0].push_text(&text(n)));
        file.add(&chunk).unwrap();
    }
    file.finish(&[]).unwrap();
    let file = parquet::read(&out);
    let expected: Vec<Cell> = (0..40_000).map(|n| Cell::Text(text(n))).collect();
    assert!(file.columns["id"] == expected);
    let encodings = file.footer.at(4).list()[0].at(1).list()[0].at(3).at(2).list().iter().map(|e| e.int());
    assert_eq!(encodings.collect::<Vec<_>>(), [3, 0, 8], "both forms");
}

#[test]
fn many_rows_make_several_row_groups_with_bounds() {
    let columns = [ColumnInfo { name: "n", kind: ColumnKind::Int, optional: true, doc: "", unit: "" }];
    let mut out = Vec::new();
    let mut file = FileWriter::new(&mut out, &columns).unwrap();
    for from in (0..2_500_000_u64).step_by(50_000) {
        let mut chunk = Chunk::new([ColumnKind::Int]);
        for n in from..from + 50_000 {
            if n % 10 == 0 { chunk.columns[0].push_none() } else { chunk.columns[0].push_int(n) }
        }
        file.add(&chunk).unwrap();
    }
    assert_eq!(file.finish(&[]).unwrap().rows, 2_500_000);
    let file = parquet::read(&out);
    let mut last = -1;
    for group in file.footer.at(4).list() {
        let statistics = group.at(1).list()[0].at(3).at(12);
        let bound = |id| i64::from_le_bytes(statistics.at(id).bytes().try_into().unwrap());
        assert!(bound(6) > last && bound(5) > bound(6));
        last = bound(5);
        assert_eq!(statistics.at(3).int(), group.at(3).int() / 10);
    }
    assert!(file.footer.at(4).list().len() >= 2);
    assert_eq!(last, 2_499_999);
}

#[test]
fn numbers_that_sql_cannot_hold_are_told() {
    let columns = [ColumnInfo { name: "n", kind: ColumnKind::Int, optional: false, doc: "", unit: "" }];
    let mut chunk = Chunk::new([ColumnKind::Int]);
    [1, u64::MAX, i64::MAX as u64, 1 << 63].into_iter().for_each(|n| chunk.columns[0].push_int(n));
    let mut out = Vec::new();
    let mut file = FileWriter::new(&mut out, &columns).unwrap();
    file.add(&chunk).unwrap();
    assert_eq!(file.finish(&[]).unwrap().clipped, 2);
    let expected = [1, i64::MAX, i64::MAX, i64::MAX].map(Cell::Int);
    assert_eq!(parquet::read(&out).columns["n"], expected);
}

#[test]
fn what_is_there_is_replaced_only_when_asked_and_only_an_export() {
    let folder = Temporary::new("force");
    let (set, out) = (in_memory(1), folder.join("out"));
    let run = |options| export(&set, &out, options, &mut |_| true);
    let names = || fs::read_dir(&folder.0).unwrap().count();
    run(KEEP).unwrap();
    assert!(matches!(run(KEEP), Err(ExportError::Exists(_))));
    fs::write(out.join(MARK), "old").unwrap();
    run(FORCE).unwrap();
    assert!(fs::read_to_string(out.join(MARK)).unwrap().contains("\"rows\""), "it is the new one");
    assert_eq!(names(), 1, "nothing else is left");
    // Somebody's own file, at each depth.
    for own in ["thesis.txt", "accesses/notes", "accesses/host=local/job=0/rank=0/part-1.parquet", "mine/x"] {
        let own = out.join(own);
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(&own, "precious").unwrap();
        let error = run(FORCE).unwrap_err().to_string();
        assert!(error.contains("no part of an export"), "{error}");
        assert!(own.exists());
        fs::remove_file(&own).unwrap();
        let _ = fs::remove_dir(out.join("mine"));
    }
    fs::remove_file(out.join(MARK)).unwrap();
    assert!(run(FORCE).unwrap_err().to_string().contains(MARK));
    assert_eq!(names(), 1);
}

#[test]
fn nothing_is_written_through_a_symbolic_link() {
    let folder = Temporary::new("link");
    let (set, out, target) = (in_memory(1), folder.join("out"), folder.join("target"));
    export(&set, &target, KEEP, &mut |_| true).unwrap();
    let before = fs::read(part(&target, "objects")).unwrap();
    symlink(&target, &out).unwrap();
    for options in [KEEP, FORCE] {
        assert!(export(&set, &out, options, &mut |_| true).is_err());
    }
    assert!(fs::read(part(&target, "objects")).unwrap() == before);
    // A link that leads nowhere is there, too.
    fs::remove_file(&out).unwrap();
    symlink(folder.join("nowhere"), &out).unwrap();
    assert!(matches!(export(&set, &out, KEEP, &mut |_| true), Err(ExportError::Exists(_))));
    assert!(!folder.join("nowhere").exists());
    // A link within an export that is to be replaced.
    symlink("/etc", target.join("samples/host=x")).unwrap();
    assert!(export(&set, &target, FORCE, &mut |_| true).unwrap_err().to_string().contains("host=x"));
}

#[test]
fn an_export_that_is_stopped_leaves_nothing() {
    let folder = Temporary::new("stopped");
    let (set, out) = (on_disk(&folder.join("set"), 1), folder.join("out"));
    for after in [0, 3, 9] {
        let mut left = after;
        let stopped = export(&set, &out, KEEP, &mut |_| {
            left -= 1;
            left >= 0
        });
        assert!(matches!(stopped, Err(ExportError::Stopped)), "{stopped:?}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "the data set alone");
    }
    let nowhere = folder.join("no/such/place");
    let error = export(&set, &nowhere, KEEP, &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn a_damaged_data_set_is_exported_as_far_as_it_is_whole() {
    let folder = Temporary::new("damaged");
    let (set, out) = (on_disk(&folder.join("set"), 1), folder.join("out"));
    drop(set);
    let file = folder.join("set/tables/migrations.hntable");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let set = Dataset::open(&folder.join("set")).unwrap();
    let done = export(&set, &out, KEEP, &mut |_| true).unwrap();
    assert!(
        matches!(&done.missing[..], [Missing::Damage { file, .. }, Missing::Rows { .. }] if file.ends_with("migrations.hntable"))
    );
    let meta = parquet::read(&fs::read(part(&out, "meta")).unwrap());
    let Cell::List(missing) = &meta.columns["missing"][0] else { panic!() };
    assert_eq!(missing.len(), 2, "the export says so itself");
    for info in ALL.iter().filter(|t| t.name != "migrations") {
        same(&set, info, &fs::read(part(&out, info.name)).unwrap());
    }
    assert!(parquet::read(&fs::read(part(&out, "migrations")).unwrap()).columns["page"].is_empty());
}

#[test]
fn members_have_partitions_of_their_own() {
    let folder = Temporary::new("members");
    let sets = [1, 2].map(|seed| {
        let path = folder.join(&format!("r{seed}"));
        (path.clone(), on_disk(&path, seed))
    });
    let (merged, out) = (folder.join("all"), folder.join("out"));
    homenode_dataset::merge::merge(&sets, &merged, &mut |_| true).unwrap();
    let all = Dataset::open(&merged).unwrap();
    let done = export(&all, &out, KEEP, &mut |_| true).unwrap();
    assert_eq!((done.members, done.tables[0].written.rows), (2, 2));
    let mut objects = Vec::new();
    for rank in 0..2 {
        let part = out.join(format!("objects/host=local/job=0/rank={rank}/part-0.parquet"));
        objects.extend(parquet::read(&fs::read(part).unwrap()).columns["object"].clone());
    }
    let expected: Vec<Cell> = (0..objects.len() as i64).map(Cell::Int).collect();
    assert_eq!(objects, expected, "numbers of their own");
}
