//! Numbers on the page against the same data set asked by SQL: each of the seven views, in a
//! browser, beside DuckDB on the Parquet files of an export.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_dataset::fields::Fields;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::Object;
use homenode_dataset::{Dataset, DatasetWriter};
use homenode_export::{ExportOptions, export};
use homenode_view::{PyramidBudget, page};
use serde_json::Value;

use crate::drive::{drive, file};
use crate::support::{fresh, model, number_of, synthetic, tables};

#[path = "../../../export/tests/support/python.rs"]
mod python;

/// Answers statements on the tables of an export.
const ASK: &str = r#"
import json, sys
import duckdb
out, statements = sys.argv[1], json.loads(sys.argv[2])
tables = ("objects", "intervals", "iterations", "accesses", "residency", "migrations", "samples", "own_cost")
for name in tables:
    duckdb.sql(f"CREATE VIEW {name} AS FROM read_parquet('{out}/{name}/**/*.parquet', hive_partitioning = true)")
duckdb.sql("""CREATE VIEW counted AS SELECT a.*, o.name FROM accesses a LEFT JOIN objects o USING (object)
    WHERE a.interval IN (SELECT interval FROM intervals WHERE timed)""")
plain = lambda v: v if v is None or isinstance(v, (str, float)) else int(v)
print(json.dumps([[[plain(v) for v in row] for row in duckdb.sql(s).fetchall()] for s in statements]))
"#;

type Row = Vec<Value>;

/// Where to ask.
struct Tables {
    python: PathBuf,
    out: PathBuf,
}

impl Tables {
    fn ask(&self, statement: &str) -> Vec<Row> {
        let statements = serde_json::json!([statement]).to_string();
        let found = python::run(Command::new(&self.python).args(["-c", ASK]).arg(&self.out).arg(statements));
        let answers: Vec<Vec<Row>> =
            serde_json::from_str(&found.unwrap_or_else(|e| panic!("{statement}: {e}"))).unwrap();
        answers.into_iter().next().unwrap()
    }
}

fn int(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// The digits of a number with spaces between groups, from the text's beginning.
fn whole(text: &str) -> u64 {
    let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ' ').collect();
    digits.replace(' ', "").parse().unwrap_or_else(|_| panic!("'{text}' does not begin with a number"))
}

/// A time such as `1.23 ms` in nanoseconds.
fn time(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let number: f64 = words.next().unwrap().parse().unwrap_or_else(|_| panic!("'{text}' is no time"));
    let unit = words.next().unwrap().trim_matches(|c: char| !c.is_alphabetic() && c != 'µ');
    number * [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)].iter().find(|(u, _)| *u == unit).unwrap().1
}

fn near(shown: f64, told: f64, by: f64) -> bool {
    (shown - told).abs() <= by
}

/// A share such as `12.3 %` against a part of a whole.
fn is_share(shown: &str, part: u64, whole: u64) {
    let told = 100.0 * part as f64 / whole.max(1) as f64;
    if shown.starts_with("< 0.1") {
        assert!(part > 0 && told < 0.0501, "{shown} on the page, {told} by SQL");
        return;
    }
    let number = shown.split(' ').next().unwrap();
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("'{shown}' is no share"));
    assert!(
        near(number, told, if told >= 99.9 { 0.1 } else { 0.0501 }),
        "{shown} on the page, {told} by SQL"
    );
}

fn on_disk(path: &Path) -> Dataset {
    let spec = SyntheticSpec { iterations: 12, blocks: 200, nodes: 4, seed: 7, rank: None };
    let mut writer = DatasetWriter::create(path, spec.meta()).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    Dataset::open(path).unwrap()
}

/// Pages that a field of [`structured`] takes.
const FIELD_PAGES: u64 = 256;

/// The same data, of which grid_old is one structure with fields of many pages, and grid_new an
/// array of small structures.
fn structured() -> Dataset {
    let set = synthetic(12, 200);
    let fields = |bytes: u64, end: u64| {
        let of = |(name, offset): (&str, u64)| (name.to_owned(), "double[]".to_owned(), offset, bytes);
        Fields::of([of(("low", 0)), of(("high", bytes)), of(("rest", end - bytes))])
    };
    let change = |o: &mut Object| match o.name.as_str() {
        "grid_old" => {
            (o.element_bytes, o.dimensions) = (Some(o.bytes.0), Vec::new());
            o.fields = fields(FIELD_PAGES * 4096, o.bytes.0);
        }
        "grid_new" => {
            (o.element_bytes, o.dimensions) = (Some(64), vec![o.bytes.0 / 64]);
            o.fields = fields(16, 64);
        }
        _ => {}
    };
    Dataset::of_memory(set.meta().clone(), tables(&set, change))
}

/// What a person reads off each view.
const SCRIPT: &str = r##"
const plain = (t) => t.replace(/[\u202f\u00a0]/g, " ");
const rows = async (label) => (await page.locator(`[aria-label^="${label}"] tbody tr`).evaluateAll((all) =>
  all.map((row) => [...row.children].map((c) => c.textContent)))).map((row) => row.map(plain));
await open("view=findings");
result.findings = await rows("Objects, those with most remote");
await open("view=moves");
result.moves = await rows("Flows between nodes");
result.moved = await text("#panel .lead");
await open("view=locations");
result.locations = await rows("The ");
await open("view=machine");
result.machine = (await page.locator(".matrix td").evaluateAll((all) => all.map((c) => c.title))).map(plain);
await open("view=machine&object=GRID");
result.grid = (await page.locator(".matrix td").evaluateAll((all) => all.map((c) => c.title))).map(plain);
await open("view=structures&object=GRID");
await page.focus("#panel canvas");
for (let i = 0; i < 5; i++) await page.keyboard.press("ArrowRight");
await until(() => !document.querySelector(".tip").hidden);
result.structure = (await page.locator(".tip").first().locator("div").allTextContents()).map(plain);
await open("view=pay");
result.guard = await rows("The guard's samples");
result.iterations = await page.locator("#panel canvas").first().getAttribute("aria-label");
await page.focus("#panel canvas");
for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
result.iteration = (await page.locator(".tip").first().locator("div").allTextContents()).map(plain);
result.own = (await text("#panel")).match(/homenode itself took ([^(]*) of CPU time/)[1];
await open("view=residency&object=GRID");
await page.focus("#panel canvas");
for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowRight");
result.residency = await text(".readout");
await open("view=residency&object=GRID&pages=400-401");
await until(() => document.querySelector("[aria-label='History of a page'] table"));
result.history = await text("[aria-label='History of a page']");
"##;

/// Sums by node and home from the titles of the matrix.
fn matrix(titles: &Value) -> BTreeMap<(u64, u64), u64> {
    let cell = |title: &Value| {
        let title = text(title);
        let (way, value) = title.split_once(": ").unwrap();
        let nodes: Vec<u64> = way.split("node ").skip(1).map(whole).collect();
        ((nodes[0], nodes[1]), whole(value))
    };
    titles.as_array().unwrap().iter().map(cell).filter(|(_, n)| *n > 0).collect()
}

fn sums(rows: &[Row]) -> BTreeMap<(u64, u64), u64> {
    rows.iter().map(|r| ((int(&r[0]), int(&r[1])), int(&r[2]))).collect()
}

#[test]
fn every_view_shows_what_sql_finds() {
    let python = match python::python() {
        Ok(python) => python,
        Err(why) => return eprintln!("skipped: no DuckDB: {why}"),
    };
    let folder = fresh("sql");
    let set = on_disk(&folder.join("set"));
    let out = folder.join("out");
    export(&set, &out, ExportOptions::default(), &mut |_| true).unwrap();
    let grid = number_of(&set, "grid_old").0;
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    let script = SCRIPT.replace("GRID", &grid.to_string());
    let Some(shown) = drive(&file("sql-page", &page), &script) else { return };
    let tables = Tables { python, out };
    // Each is looked at, whatever the others say.
    let checks: [(&str, &dyn Fn()); 7] = [
        ("findings", &|| findings(&shown, &tables)),
        ("moves", &|| moves(&shown, &tables)),
        ("locations", &|| locations(&shown, &tables)),
        ("machine", &|| machine(&shown, &tables, grid)),
        ("structures", &|| structure(&shown, &tables, grid)),
        ("pay", &|| pay(&shown, &tables)),
        ("residency", &|| residency(&shown, &tables, grid)),
    ];
    let is_wrong = |check: &dyn Fn()| catch_unwind(AssertUnwindSafe(check)).is_err();
    let wrong: Vec<&str> = checks.iter().filter(|(_, c)| is_wrong(c)).map(|(view, _)| *view).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn fields_have_the_accesses_of_their_own_pages() {
    let python = match python::python() {
        Ok(python) => python,
        Err(why) => return eprintln!("skipped: no DuckDB: {why}"),
    };
    let out = fresh("sql-fields").join("out");
    let set = structured();
    export(&set, &out, ExportOptions::default(), &mut |_| true).unwrap();
    let [old, new] = ["grid_old", "grid_new"].map(|name| number_of(&set, name).0);
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    let script = r##"
const plain = (t) => t.replace(/[\u202f\u00a0]/g, " ");
for (const [name, object] of [["old", OLD], ["new", NEW]]) {
  await open("view=structures&object=" + object);
  const rows = page.locator('[aria-label^="Fields of an element"] tbody tr');
  result[name] = (await rows.evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent))))
    .map((row) => row.map(plain));
  result[name + " words"] = await text("#panel");
}
"##;
    let script = script.replace("OLD", &old.to_string()).replace("NEW", &new.to_string());
    let Some(shown) = drive(&file("sql-fields-page", &page), &script) else { return };
    let tables = Tables { python, out };
    let told = tables.ask(&format!(
        "SELECT unnest(field_names), unnest(field_offsets), unnest(field_bytes) FROM objects WHERE object = {old}"
    ));
    assert_eq!(told.len(), 3);
    let rows = shown["old"].as_array().unwrap();
    for (row, told) in rows.iter().zip(&told) {
        assert_eq!(row[0], told[0]);
        let (offset, bytes) = (int(&told[1]), int(&told[2]));
        assert_eq!((whole(text(&row[2])), whole(text(&row[3]))), (offset, bytes));
        // A row counts a block: the page gives each of its pages an equal part.
        let (from, to) = (offset / 4096, (offset + bytes) / 4096);
        let sums = tables.ask(&format!(
            "WITH parts AS (SELECT node <> home AS away,
                 \"count\" * (least(page + pages, {to}) - greatest(page, {from})) // pages AS part
                 FROM counted WHERE object = {old} AND page + pages > {from} AND page < {to})
             SELECT sum(part), coalesce(sum(part) FILTER (away), 0), count(*) FROM parts"
        ));
        let (all, away, parts) = (int(&sums[0][0]), int(&sums[0][1]), int(&sums[0][2]));
        assert!(all > 1_000_000, "{told:?}: {all}");
        // The part of each band is rounded down, and a block of 16 pages has at most 16 bands.
        assert!(near(whole(text(&row[6])) as f64, all as f64, 16.0 * parts as f64), "{row}, {all} by SQL");
        let percent = text(&row[7]).split(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(near(percent, 100.0 * away as f64 / all as f64, 0.2), "{row}, {away} of {all} by SQL");
    }
    let words = text(&shown["old words"]);
    assert!(words.contains("A field has the accesses of the pages that hold nothing else"), "{words}");
    // Small fields have sizes and no numbers.
    let rows = shown["new"].as_array().unwrap();
    assert!(rows.len() == 3 && rows.iter().all(|r| r.as_array().unwrap().len() == 5), "{rows:?}");
    let words = text(&shown["new words"]);
    assert!(words.contains("a page of 4 096 bytes holds 64 elements"), "{words}");
    assert!(words.contains("does not say which field is used"), "{words}");
    assert!(words.contains("16 bytes of each element are padding"), "{words}");
}

fn findings(shown: &Value, tables: &Tables) {
    let told = tables.ask(
        r#"SELECT name, bool_or("count" IS NOT NULL),
               coalesce(sum("count") FILTER (node <> home), 0), coalesce(sum("count"), 0),
               coalesce(sum(seen) FILTER (node <> home), 0), sum(seen),
               (SELECT coalesce(sum(pages), 0) FROM migrations m
                WHERE m.object = any_value(c.object) AND m.outcome <> 'refused')
           FROM counted c WHERE object IS NOT NULL GROUP BY name"#,
    );
    assert!(told.len() >= 6, "{told:?}");
    let rows = shown["findings"].as_array().unwrap();
    for row in &told {
        let name = text(&row[0]);
        let found =
            rows.iter().find(|r| text(&r[0]) == name).unwrap_or_else(|| panic!("{name} is not listed"));
        let (part, all) = if row[1] == 1 { (&row[2], &row[3]) } else { (&row[4], &row[5]) };
        is_share(text(&found[3]), int(part), int(all));
        assert_eq!(whole(text(&found[8])), int(&row[6]), "{name}: pages moved");
    }
}

fn moves(shown: &Value, tables: &Tables) {
    let told = tables.ask(
        "SELECT from_node, to_node, cause, sum(pages),
                coalesce(sum(pages) FILTER (outcome = 'ping-pong'), 0)
         FROM migrations WHERE outcome <> 'refused' GROUP BY ALL",
    );
    let route = |r: &Value| {
        let node = |cell: &Value| whole(text(cell).strip_prefix("node ").unwrap());
        let pages = (whole(text(&r[3])), whole(text(&r[4])));
        let cause = text(&r[2]).trim_start_matches("guard's ").to_owned();
        ((node(&r[0]), node(&r[1]), cause), pages)
    };
    let found: BTreeMap<_, _> = shown["moves"].as_array().unwrap().iter().map(route).collect();
    let told: BTreeMap<_, _> = told
        .iter()
        .map(|r| ((int(&r[0]), int(&r[1]), text(&r[2]).to_owned()), (int(&r[3]), int(&r[4]))))
        .collect();
    assert!(told.len() > 4 && told.values().any(|(_, back)| *back > 0), "{told:?}");
    assert_eq!(found, told);
    let lead = text(&shown["moved"]);
    assert_eq!(whole(lead), told.values().map(|(pages, _)| pages).sum::<u64>(), "{lead}");
}

fn locations(shown: &Value, tables: &Tables) {
    let told = tables.ask(
        "WITH each AS (SELECT object, interval, until, home, unnest(range(page, page + pages)) AS p
                       FROM residency WHERE object IS NOT NULL),
              homes AS (SELECT object, p, arg_min(home, interval) AS first, arg_max(home, until) AS last
                        FROM each GROUP BY object, p)
         SELECT name, count(*), count(*) FILTER (first <> last)
         FROM homes JOIN objects USING (object) GROUP BY name",
    );
    let rows = shown["locations"].as_array().unwrap();
    let mut compared = 0;
    for row in &told {
        let Some(found) = rows.iter().find(|r| text(&r[0]) == text(&row[0])) else { continue };
        assert_eq!(whole(text(&found[2])), int(&row[1]), "{found}");
        is_share(text(&found[3]), int(&row[2]), int(&row[1]));
        compared += 1;
    }
    assert!(compared >= 6, "{rows:?}");
}

fn machine(shown: &Value, tables: &Tables, grid: u32) {
    let unit = if shown["machine"].to_string().contains("sightings") { "seen" } else { "\"count\"" };
    let told = tables.ask(&format!("SELECT node, home, sum({unit}) FROM counted GROUP BY node, home"));
    assert_eq!(matrix(&shown["machine"]), sums(&told));
    let statement =
        format!("SELECT node, home, sum(\"count\") FROM counted WHERE object = {grid} GROUP BY node, home");
    let told = sums(&tables.ask(&statement));
    assert!(told.len() > 4, "{told:?}");
    assert_eq!(matrix(&shown["grid"]), told);
}

fn structure(shown: &Value, tables: &Tables, grid: u32) {
    let lines: Vec<&str> = shown["structure"].as_array().unwrap().iter().map(text).collect();
    let (_, pages) = lines[0].split_once(", page").unwrap();
    let pages = pages.trim_start_matches('s').trim_start();
    let (from, to) = pages.split_once(" to ").unwrap_or((pages, pages));
    let (from, to) = (whole(from), whole(to));
    let used = lines.iter().find_map(|l| l.strip_prefix("used by ")).unwrap();
    let (shares, total) = used.split_once(" of ").unwrap();
    // A row counts a block: the page gives each of its pages an equal part.
    let told = tables.ask(&format!(
        "SELECT node, count(*),
                sum(\"count\" * (least(page + pages, {to} + 1) - greatest(page, {from})) // pages)
         FROM counted WHERE object = {grid} AND page + pages > {from} AND page <= {to} GROUP BY node"
    ));
    let sum: u64 = told.iter().map(|r| int(&r[2])).sum();
    let rows: u64 = told.iter().map(|r| int(&r[1])).sum();
    assert!(sum > 1_000_000 && near(whole(total) as f64, sum as f64, rows as f64), "{used}, {sum} by SQL");
    for row in &told {
        let name = format!("node {}: ", int(&row[0]));
        let share = shares.split(", ").find_map(|s| s.strip_prefix(&name));
        is_share(share.unwrap_or_else(|| panic!("{name}{used}")), int(&row[2]), sum);
    }
}

fn pay(shown: &Value, tables: &Tables) {
    let told =
        tables.ask("SELECT \"group\", count(*), count(*) FILTER (remote) FROM samples GROUP BY \"group\"");
    let rows = shown["guard"].as_array().unwrap();
    assert_eq!(rows.len(), told.len());
    for row in &told {
        let found = rows.iter().find(|r| r[0] == row[0]).unwrap();
        assert_eq!((whole(text(&found[1])), whole(text(&found[2]))), (int(&row[1]), int(&row[2])), "{found}");
    }
    let iterations = tables.ask("SELECT iteration, end_ns - begin_ns FROM iterations ORDER BY iteration");
    let label = text(&shown["iterations"]);
    assert!(label.contains(&format!("Times of {} iterations", iterations.len())), "{label}");
    let number = whole(text(&shown["iteration"][0]).strip_prefix("iteration ").unwrap());
    let told = iterations.iter().find(|r| int(&r[0]) == number).unwrap();
    let took = time(text(&shown["iteration"][1]));
    let told = int(&told[1]) as f64;
    assert!(near(took, told, told / 100.0), "{took} on the page, {told} by SQL");
    let told = tables.ask(
        "SELECT sum(own), sum(cpu) FROM (SELECT arg_max(own_ns, time_ns) AS own, arg_max(cpu_ns, time_ns) AS cpu
         FROM own_cost GROUP BY process)",
    );
    let (own, cpu) = text(&shown["own"]).split_once(" of ").unwrap();
    for (shown, told) in [(own, &told[0][0]), (cpu, &told[0][1])] {
        let told = told.as_f64().unwrap();
        assert!(near(time(shown), told, told / 100.0), "{shown} on the page, {told} by SQL");
    }
}

fn residency(shown: &Value, tables: &Tables, grid: u32) {
    let readout = text(&shown["residency"]);
    let told = tables.ask(&format!(
        "SELECT home FROM residency
         WHERE object = {grid} AND page <= 0 AND page + pages > 0 AND interval <= 8 AND until >= 8"
    ));
    assert!(readout.contains(&format!("home: node {} (", int(&told[0][0]))), "{readout}");
    let told = tables.ask(&format!(
        "SELECT node, sum(\"count\"), coalesce(sum(\"count\") FILTER (node <> home), 0) FROM accesses
         WHERE object = {grid} AND page <= 0 AND page + pages > 0 AND interval = 8
         GROUP BY node ORDER BY 2 DESC"
    ));
    let sum: u64 = told.iter().map(|r| int(&r[1])).sum();
    let remote: u64 = told.iter().map(|r| int(&r[2])).sum();
    let touched = format!("touched by {} node", told.len());
    let most = format!("most by node {}: ", int(&told[0][0]));
    assert!(readout.contains(&touched) && readout.contains(&most), "{told:?}: {readout}");
    // The cell's pages have their part of the blocks' counts.
    let pages = readout.split_once(", page").unwrap().1.trim_start_matches('s').trim_start();
    let from = whole(pages);
    let to = pages.split_once(" to ").map_or(from, |(_, to)| whole(to)) + 1;
    let told_count = tables.ask(&format!(
        "SELECT sum(\"count\" * (least(page + pages, {to}) - greatest(page, {from})) // pages), count(*)
         FROM accesses WHERE object = {grid} AND page + pages > {from} AND page < {to} AND interval = 8"
    ));
    let count = whole(readout.split_once("accesses: ").unwrap().1);
    let (all, parts) = (int(&told_count[0][0]), int(&told_count[0][1]));
    assert!(all > 1000 && near(count as f64, all as f64, parts as f64), "{all} by SQL: {readout}");
    let told_move = tables.ask(&format!(
        "SELECT from_node, to_node, cause FROM migrations m WHERE object = {grid} AND page < {to} AND page + pages > {from}
             AND outcome <> 'refused' AND time_ns < (SELECT end_ns FROM intervals WHERE interval = 8)
         ORDER BY time_ns DESC LIMIT 1"
    ));
    match told_move.first() {
        Some(row) => {
            let way = format!("from node {} to node {} by {}", int(&row[0]), int(&row[1]), text(&row[2]));
            assert!(readout.contains(&way), "{way}: {readout}");
        }
        None => assert!(readout.contains("not moved since they were first touched by thread"), "{readout}"),
    }
    let percent = |words: &str| whole(readout.split_once(words).unwrap().1) as f64;
    assert!(near(percent(&most), 100.0 * int(&told[0][1]) as f64 / sum as f64, 1.0), "{readout}");
    assert!(near(percent("remote: "), 100.0 * remote as f64 / sum as f64, 1.0), "{readout}");
    let told = tables.ask(&format!(
        "SELECT from_node, to_node, cause FROM migrations
         WHERE object = {grid} AND page <= 400 AND page + pages > 400 AND outcome <> 'refused'"
    ));
    let history = text(&shown["history"]);
    assert!(!told.is_empty());
    for row in &told {
        let way = format!("moved from node {} to node {}", int(&row[0]), int(&row[1]));
        assert!(history.contains(&way) && history.contains(text(&row[2])), "{way}: {history}");
    }
}
