//! The real DuckDB and the real Polars read an export and find what the data set holds; the queries
//! of `docs/dataset.md` run as they stand there.
//!
//! Both come from PyPI into `~/.cache/homenode/python-1`, once.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use homenode_dataset::Dataset;
use homenode_dataset::column::{Chunk, ColumnKind};
use homenode_dataset::meta::MetaRow;
use homenode_dataset::schema::TableRow as _;
use homenode_dataset::tables::{ALL, Access, GuardGroup, Interval, META, Migration, Object, Sample};
use homenode_export::{ExportOptions, export};
use serde_json::Value;
use support::python::{python, run};
use support::{Temporary, on_disk};

/// The statements of `docs/dataset.md`.
fn queries() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dataset.md");
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```sql\n").skip(1).map(|b| b.split("```").next().unwrap());
    blocks.flat_map(|b| b.split(';')).map(str::trim).filter(|s| !s.is_empty()).map(Into::into).collect()
}

/// What `readers.py` finds in an export.
fn read(python: &Path, out: &Path, folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers.py");
    let statements = folder.join("queries");
    fs::write(&statements, queries().join("\n--------\n")).unwrap();
    let found = run(Command::new(python).arg(script).arg(out).arg(statements)).unwrap();
    serde_json::from_str(&found).unwrap()
}

/// A column as a reader should find it: type, nulls, sum.
fn expected(chunks: &[Chunk], at: usize, kind: ColumnKind) -> Value {
    let (mut nulls, mut sum) = (0, 0_u128);
    for chunk in chunks {
        let column = &chunk.columns[at];
        for row in (0..column.rows()).filter(|r| column.has(*r)) {
            sum += match kind {
                ColumnKind::Int | ColumnKind::Flag => u128::from(column.int(row).unwrap()),
                ColumnKind::Word(_) | ColumnKind::Text => column.text(row).unwrap().len() as u128,
                ColumnKind::Ints => column.ints(row).unwrap().iter().map(|n| u128::from(*n) + 1).sum(),
                ColumnKind::Texts => column.texts(row).unwrap().iter().map(|t| t.len() as u128 + 1).sum(),
            };
        }
        nulls += (0..column.rows()).filter(|r| !column.has(*r)).count();
    }
    let name = match kind {
        ColumnKind::Int => "BIGINT",
        ColumnKind::Flag => "BOOLEAN",
        ColumnKind::Word(_) | ColumnKind::Text => "VARCHAR",
        ColumnKind::Ints => "BIGINT[]",
        ColumnKind::Texts => "VARCHAR[]",
    };
    serde_json::json!([name, nulls, sum.to_string()])
}

/// Both readers find what the data set holds.
fn compare(set: &Dataset, found: &Value) {
    let meta = || -> Vec<Chunk> {
        let row = |m: &Dataset| {
            let mut chunk = MetaRow::chunk();
            MetaRow::of(m.meta(), &m.missing()).put(&mut chunk);
            chunk
        };
        set.members().iter().map(row).collect()
    };
    for info in ALL.iter().chain([&META]) {
        let is_meta = info.name == META.name;
        let chunks = if is_meta { meta() } else { set.checked_chunks(info).collect() };
        let rows: usize = chunks.iter().map(Chunk::rows).sum();
        for reader in ["duckdb", "polars"] {
            let table = &found[reader][info.name];
            assert_eq!(table[0], rows, "{reader}: rows of {}", info.name);
            for (at, column) in (info.columns)().iter().enumerate() {
                let what = format!("{reader}: {}.{}", info.name, column.name);
                assert_eq!(table[1][column.name], expected(&chunks, at, column.kind), "{what}");
            }
            assert_eq!(
                table[1].as_object().unwrap().len(),
                (info.columns)().len(),
                "{reader}: {}",
                info.name
            );
        }
    }
}

/// The answer to the query that has these words in it.
fn answer<'a>(found: &'a Value, words: &str) -> Vec<Vec<&'a str>> {
    let at =
        queries().iter().position(|q| q.contains(words)).unwrap_or_else(|| panic!("no query has {words}"));
    let rows = found["answers"][at].as_array().unwrap_or_else(|| panic!("{words} gives no rows"));
    rows.iter().map(|r| r.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect()).collect()
}

fn near(text: &str, value: f64) {
    let found: f64 = text.parse().unwrap();
    assert!((found - value).abs() <= 1e-9 * value.abs().max(1.0), "{found} and {value}");
}

fn names(set: &Dataset) -> BTreeMap<u32, String> {
    set.rows::<Object>().map(|o| (o.object.0, o.name)).collect()
}

/// The queries of the documentation answer what was planted, with the numbers of the data set.
fn answers(set: &Dataset, found: &Value) {
    let names = names(set);
    // Which array moved most, from where to where, why.
    let mut moved: BTreeMap<(String, String, u16, u16), u64> = BTreeMap::new();
    for m in set.rows::<Migration>() {
        let key = (names[&m.object.unwrap().0].clone(), m.cause.to_string(), m.from_node.0, m.to_node.0);
        *moved.entry(key).or_default() += m.pages;
    }
    let rows = answer(found, "sum(m.pages * r.page_bytes)");
    assert_eq!(rows.len(), moved.len());
    assert_eq!(rows[0][0], "grid_old", "it moves most");
    for row in &rows {
        let key = (row[0].to_owned(), row[1].to_owned(), row[3].parse().unwrap(), row[4].parse().unwrap());
        assert_eq!(row[5], moved[&key].to_string(), "{key:?}");
        assert_eq!(row[6], (moved[&key] * set.meta().page_bytes).to_string(), "{key:?}");
    }
    // Did it pay: the remote share of each iteration.
    let rounds: BTreeMap<u32, Option<u32>> =
        set.rows::<Interval>().map(|i| (i.interval.0, i.iteration)).collect();
    let ranks: Vec<(u32, u32)> = set
        .members()
        .iter()
        .flat_map(|m| {
            let rank = m.meta().rank.unwrap_or(0);
            m.rows::<Interval>().map(move |i| (i.interval.0, rank)).collect::<Vec<_>>()
        })
        .collect();
    let ranks: BTreeMap<u32, u32> = ranks.into_iter().collect();
    let mut traffic: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for a in set.rows::<Access>() {
        let (Some(round), Some(count)) = (rounds[&a.interval.0], a.tally.count()) else { continue };
        let sums = traffic.entry((ranks[&a.interval.0], round)).or_default();
        sums.1 += count.parts().0;
        sums.0 += if a.node == a.home { 0 } else { count.parts().0 };
    }
    let rows = answer(found, "coalesce(moved.pages, 0)");
    assert_eq!(rows.len(), traffic.len());
    for (row, ((rank, round), (remote, all))) in rows.iter().zip(&traffic) {
        assert_eq!((row[0].parse::<u32>(), row[1].parse::<u32>()), (Ok(*rank), Ok(*round)));
        near(row[3], *remote as f64 / *all as f64);
    }
    let remote = |i: usize| rows[i][3].parse::<f64>().unwrap();
    assert!(remote(0) > 2.0 * remote(8), "it paid");
    // The guard.
    let rows = answer(found, "FROM samples");
    let held = set.rows::<Sample>().filter(|s| s.group == GuardGroup::HeldBack).count().to_string();
    assert_eq!(rows[0][..], ["held back", &held, "1.0"]);
    assert_eq!(rows[1][0], "moved");
    // Who touched what first, and what is remote of it.
    let rows = answer(found, "first_touched_by");
    let by_name = |name: &str| rows.iter().find(|r| r[0] == name).unwrap().clone();
    assert_eq!(by_name("grid_old")[6], "initialise solver.c:62");
    near(by_name("halo")[4], 0.75);
    assert_eq!(by_name("queue")[4], "None", "presence has no remote share");
    // To and fro, contested, where, own cost, trust.
    let back = answer(found, "'ping-pong'");
    assert!(back.iter().all(|r| r[1] == "queue" && r[4] == "8"), "{back:?}");
    assert!(answer(found, "largest_share").iter().all(|r| r[1] == "halo" && r[3] == "4"));
    let homes = answer(found, "o.name = 'queue'");
    assert!(homes.len() >= 10 && homes.windows(2).any(|w| w[0][1] != w[1][1]));
    // One nanosecond in two hundred, rounded to whole ones.
    assert!(
        answer(found, "FROM own_cost").iter().all(|r| (r[1].parse::<f64>().unwrap() - 0.005).abs() < 1e-6)
    );
    let bases: Vec<_> =
        answer(found, "AS accesses\nFROM accesses").iter().map(|r| (r[0], r[1], r[4] == "None")).collect();
    assert_eq!(bases, [("exact", "None", false), ("presence", "None", true), ("sampled", "101", false)]);
    assert_eq!(answer(found, "missing, coarsened").len(), set.members().len());
}

#[test]
fn duckdb_and_polars_find_what_the_data_set_holds() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return println!("skipped: no DuckDB and Polars: {why}"),
    };
    let folder = Temporary::new("readers");
    let (set, out) = (on_disk(&folder.join("set"), 1), folder.join("out"));
    export(&set, &out, ExportOptions::default(), &mut |_| true).unwrap();
    let found = read(&python, &out, &folder.0);
    compare(&set, &found);
    answers(&set, &found);
    // Three ranks, on two hosts of which one has a strange name.
    let sets = [1, 2, 3].map(|seed| {
        let path = folder.join(&format!("r{seed}"));
        drop(on_disk(&path, seed));
        let meta = path.join("dataset.json");
        let host = if seed == 3 { "n 2/é" } else { "n1" };
        let text =
            fs::read_to_string(&meta).unwrap().replace("\"host\": null", &format!("\"host\": \"{host}\""));
        fs::write(&meta, text).unwrap();
        (path.clone(), Dataset::open(&path).unwrap())
    });
    let (merged, out) = (folder.join("all"), folder.join("merged"));
    homenode_dataset::merge::merge(&sets, &merged, &mut |_| true).unwrap();
    let all = Dataset::open(&merged).unwrap();
    export(&all, &out, ExportOptions::default(), &mut |_| true).unwrap();
    let found = read(&python, &out, &folder.0);
    compare(&all, &found);
    answers(&all, &found);
}

#[test]
fn an_export_without_rows_is_read() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return println!("skipped: no DuckDB and Polars: {why}"),
    };
    let folder = Temporary::new("empty");
    let meta = support::spec(1).meta();
    let set = Dataset::of_memory(meta, homenode_dataset::MemoryDataset::default());
    let out = folder.join("out");
    export(&set, &out, ExportOptions::default(), &mut |_| true).unwrap();
    let found = read(&python, &out, &folder.0);
    compare(&set, &found);
    let trust = answer(&found, "missing, coarsened");
    assert!(trust[0][3].contains("cut off"), "{trust:?}");
}
