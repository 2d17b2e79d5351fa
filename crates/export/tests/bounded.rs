//! Hostile data sets: opening, reading and exporting them ends in words, within 256 MiB.
//!
//! One test, so that the peak of the process's memory is that of this work.

mod support;

#[allow(dead_code)] // Each test uses a part of it.
#[path = "../../../fuzz/fuzz_targets/table.rs"]
mod table;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use homenode_dataset::column::ColumnKind;
use homenode_dataset::tables::{ALL, Object, TableInfo};
use homenode_dataset::{Dataset, DatasetError, DatasetWriter, RowSink as _};
use homenode_export::{ExportOptions, export};
use support::{Temporary, on_disk, spec};

/// Most memory that opening, reading and exporting may take, in MiB.
const MOST: u64 = 256;

/// A line of `/proc/self/status`, in MiB.
fn mebibytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}

/// Opens, reads and exports; the rows that were found and what is missing.
fn try_all(set: &Path, folder: &Temporary) -> Result<(u64, Vec<String>), DatasetError> {
    // The peak begins anew: what the test itself needs to make hostile files is not counted.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = mebibytes("VmRSS:");
    let begin = Instant::now();
    let tried = read_and_export(set, folder);
    let took = mebibytes("VmHWM:").saturating_sub(before);
    assert!(took <= MOST, "{took} MiB");
    println!("{took} MiB, {:?}", begin.elapsed());
    tried
}

fn read_and_export(set: &Path, folder: &Temporary) -> Result<(u64, Vec<String>), DatasetError> {
    let begin = Instant::now();
    let set = Dataset::open(set)?;
    let out = folder.join("out");
    let done = export(&set, &out, ExportOptions::default(), &mut |_| true).unwrap();
    fs::remove_dir_all(&out).unwrap();
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(120), "{took:?}");
    let rows = done.tables.iter().filter(|t| t.name != "meta").map(|t| t.written.rows).sum();
    let missing: Vec<String> = done.missing.iter().map(ToString::to_string).collect();
    for text in &missing {
        assert!(text.len() < 10_000 && !text.contains(|c: char| c.is_control()), "{text:?}");
    }
    Ok((rows, missing))
}

/// A column of this kind with nothing in it.
fn empty(kind: ColumnKind, rows: usize) -> Vec<u8> {
    match kind {
        ColumnKind::Int | ColumnKind::Flag => [&[0, 0][..], &vec![0; rows]].concat(),
        ColumnKind::Word(words) => {
            let mut out = vec![1, 0, 1, words[0].len() as u8];
            out.extend_from_slice(words[0].as_bytes());
            out.resize(out.len() + rows, 0);
            out
        }
        ColumnKind::Text => [&[1, 0, 1, 0][..], &vec![0; rows]].concat(),
        ColumnKind::Ints => [&[2, 0][..], &vec![0; rows]].concat(),
        ColumnKind::Texts => [&[3, 0][..], &vec![0; rows], &[0]].concat(),
    }
}

/// A frame with a column of `bytes` in the place of `column`.
fn frame(info: &TableInfo, file: &[u8], rows: usize, column: &str, bytes: &[u8]) -> Vec<u8> {
    let mut full = Vec::new();
    for info in (info.columns)() {
        let part = if info.name == column { bytes.to_vec() } else { empty(info.kind, rows) };
        full.extend_from_slice(&(part.len() as u32).to_le_bytes());
        full.extend(part);
    }
    let block = lz4_flex::block::compress(&full);
    table::sealed(table::seed(file), rows as u32, full.len() as u32, &block)
}

fn leb(mut n: u32) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// Small chunks that would become large.
fn bombs(info: &TableInfo, file: &[u8]) -> Vec<Vec<u8>> {
    const MANY: usize = 1 << 20;
    let one = |name, rows, bytes: Vec<u8>| frame(info, file, rows, name, &bytes);
    let long = "x".repeat(4000);
    let word = [&[1, 0, 1][..], &leb(4000), long.as_bytes(), &vec![0; MANY]].concat();
    let mut all = vec![one("-", MANY, vec![])];
    for column in (info.columns)() {
        let of = |n: usize| [&leb(n as u32)[..], &vec![0; n]].concat();
        all.push(match column.kind {
            // All rows absent, and the list of them goes on.
            ColumnKind::Int | ColumnKind::Flag => one(column.name, 1, [&[0][..], &of(8 << 20)].concat()),
            ColumnKind::Word(_) => one(column.name, MANY, word.clone()),
            // Millions of words without a letter.
            ColumnKind::Text => one(column.name, 1, [&[1, 0][..], &of(8 << 20), &[0]].concat()),
            ColumnKind::Ints => one(column.name, 1, [&[2, 0][..], &of(8 << 20)].concat()),
            ColumnKind::Texts => one(column.name, 1, [&[3, 0][..], &of(8 << 20), &of(8 << 20)].concat()),
        });
    }
    // A frame that claims 32 or 64 MiB and holds ten bytes.
    for full in [32 << 20, 64 << 20] {
        all.push(table::sealed(table::seed(file), 1, full, &[0x1f; 10]));
    }
    all.push(table::sealed(table::seed(file), 1, 32 << 20, &lz4_flex::block::compress(&vec![0; 32 << 20])));
    all
}

#[test]
fn hostile_data_sets_end_in_words_within_256_mib() {
    let folder = Temporary::new("bounded");
    let path = folder.join("set");
    let rows: u64 = on_disk(&path, 1).meta().rows.values().sum();
    assert_eq!(try_all(&path, &folder).unwrap(), (rows, vec![]));
    let set = HostileSet { folder: &folder, path: &path, rows };
    set.chunks_that_claim_a_lot();
    set.marks_and_heads_without_frames();
    set.tables_that_are_no_files();
    set.descriptions_of_nothings();
    set.descriptions_that_are_damaged();
    set.long_names();
}

/// A data set that is damaged and mended again, one way after the other.
struct HostileSet<'a> {
    folder: &'a Temporary,
    path: &'a Path,
    rows: u64,
}

impl HostileSet<'_> {
    fn table(&self, name: &str) -> PathBuf {
        self.path.join(format!("tables/{name}.hntable"))
    }

    fn try_all(&self) -> Result<(u64, Vec<String>), DatasetError> {
        try_all(self.path, self.folder)
    }

    fn chunks_that_claim_a_lot(&self) {
        // Each table in turn, with small chunks that claim or become a lot.
        for info in ALL {
            let whole = fs::read(self.table(info.name)).unwrap();
            let mut bytes = whole.clone();
            bombs(info, &whole).iter().for_each(|b| bytes.extend_from_slice(b));
            fs::write(self.table(info.name), &bytes).unwrap();
            let (found, missing) = self.try_all().unwrap();
            assert!(found >= self.rows, "{}: what is whole is there", info.name);
            assert!(
                missing[0].starts_with(&format!("tables/{}.hntable is damaged at byte ", info.name)),
                "{missing:?}"
            );
            fs::write(self.table(info.name), whole).unwrap();
        }

        // Chunks as large as they may be: memory for one, not for all.
        let whole = fs::read(self.table("accesses")).unwrap();
        let accesses = &ALL.iter().find(|t| t.name == "accesses").unwrap();
        let chunk = frame(
            accesses,
            &whole,
            300_000,
            "one_in",
            &[&[0][..], &leb(300_000), &[0], &vec![1; 299_999]].concat(),
        );
        fs::write(self.table("accesses"), [&whole[..], &chunk.repeat(8)].concat()).unwrap();
        let (found, missing) = self.try_all().unwrap();
        assert_eq!((found, missing), (self.rows + 8 * 300_000, vec![]));
        fs::write(self.table("accesses"), whole).unwrap();
    }

    fn marks_and_heads_without_frames(&self) {
        let whole = fs::read(self.table("accesses")).unwrap();
        // Marks without frames, and heads of frames that reach over each other.
        let garbage = b"\xf5hn\n".repeat(6 << 20);
        fs::write(
            self.table("accesses"),
            [&whole[..], &garbage, &table::sealed(table::seed(&whole), 1, 9, b"x")].concat(),
        )
        .unwrap();
        assert_eq!(self.try_all().unwrap().0, self.rows);
        let mut heads = Vec::new();
        for _ in 0..2000 {
            let mut head = table::sealed(0, 1, 9, &[]);
            head[4..8].copy_from_slice(&(30_u32 << 20).to_le_bytes());
            let crc = crc32fast::hash(&head[..20]).to_le_bytes();
            head[20..].copy_from_slice(&crc);
            heads.extend(head);
        }
        heads.resize(40 << 20, 0);
        fs::write(self.table("accesses"), [&whole[..], &heads].concat()).unwrap();
        let (found, missing) = self.try_all().unwrap();
        assert_eq!(found, self.rows);
        assert!(missing.iter().any(|m| m.contains("the rest is not read")), "{}", missing.len());
        fs::write(self.table("accesses"), &whole).unwrap();
    }

    fn tables_that_are_no_files(&self) {
        // What is no file, or leads elsewhere.
        let table = self.table("samples");
        let whole = fs::read(&table).unwrap();
        let gone = |missing: Vec<String>, why: &str| assert!(missing[0].contains(why), "{missing:?}");
        fs::remove_file(&table).unwrap();
        gone(self.try_all().unwrap().1, "rows of tables/samples.hntable are missing");
        assert!(Command::new("mkfifo").arg(&table).status().unwrap().success());
        gone(self.try_all().unwrap().1, "not a regular file");
        for target in ["/dev/zero", "/dev/stdin", "/nowhere", "samples.hntable"] {
            fs::remove_file(&table).unwrap();
            symlink(target, &table).unwrap();
            gone(self.try_all().unwrap().1, "symbolic link");
        }
        fs::remove_file(&table).unwrap();
        fs::create_dir(&table).unwrap();
        gone(self.try_all().unwrap().1, "not a regular file");
        fs::remove_dir(&table).unwrap();
        fs::write(&table, whole).unwrap();
        fs::rename(self.path.join("tables"), self.folder.join("elsewhere")).unwrap();
        symlink(self.folder.join("elsewhere"), self.path.join("tables")).unwrap();
        let (found, missing) = self.try_all().unwrap();
        assert_eq!(found, 0);
        gone(missing, "its folder is a symbolic link");
        fs::remove_file(self.path.join("tables")).unwrap();
        fs::rename(self.folder.join("elsewhere"), self.path.join("tables")).unwrap();
    }

    fn descriptions_of_nothings(&self) {
        // Millions of nothings.
        let json = self.path.join("dataset.json");
        let text = fs::read_to_string(&json).unwrap();
        let many = vec!["\"\""; 2 << 20].join(",");
        let map: String = (0..600_000).map(|n| format!("\"k{n}\":1,")).collect();
        let nothings = [
            text.replace("\"coarsened\": []", &format!("\"coarsened\": [{many}]")),
            text.replace("\"rows\": {", &format!("\"rows\": {{{map}")),
            text.replace(
                "\"environment\": {",
                &format!("\"environment\": {{{}", map.replace(":1,", ":\"\",")),
            ),
            text.replace(
                "\"homenode\"",
                &format!("\"x\": {}1{}, \"homenode\"", "[".repeat(100), "]".repeat(100)),
            ),
            text.replace("\"homenode\"", &format!("\"rest\": \"{}\", \"homenode\"", "x".repeat(7 << 20))),
            text.replace("\"machine\": \"", &format!("\"machine\": \"\\u001b[31m{}", "y".repeat(4 << 20))),
        ];
        let mut opened = 0;
        for text in nothings {
            assert!(text.len() > 1000);
            fs::write(&json, text).unwrap();
            match Dataset::open(self.path) {
                Ok(set) => {
                    opened += 1;
                    assert!(!set.meta().machine.contains('\x1b') && set.meta().machine.len() <= 4096);
                }
                Err(e) => assert!(e.to_string().contains("more values than fit 96 MiB"), "{e}"),
            }
        }
        assert!(opened >= 2, "long texts alone are no reason to refuse a set");
        fs::write(&json, text).unwrap();
    }

    fn descriptions_that_are_damaged(&self) {
        let json = self.path.join("dataset.json");
        let text = fs::read_to_string(&json).unwrap();
        let refused = |text: &str, why: &str| {
            fs::write(&json, text).unwrap();
            let error = self.try_all().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("set") && !error.contains('\x1b'), "{error}");
        };
        refused(&text.replace("\"format\": 1", "\"format\": 2"), "format 2, but this homenode knows 1 to 1");
        refused(&text.replace("\"format\": 1", "\"format\": 0"), "format 0");
        // Another description hides no table: its rows are there, and what is wrong with it is
        // said.
        let is_told = |why: &str| {
            let said = match self.try_all() {
                Ok((rows, said)) => {
                    assert!(rows > 0, "{said:?}");
                    said.join("\n")
                }
                Err(e) => e.to_string(),
            };
            assert!(said.contains(why) && said.contains("dataset.json"), "{why}: {said}");
            assert!(!said.contains('\x1b'), "{said}");
        };
        let damaged = |text: &str, why: &str| {
            fs::write(&json, text).unwrap();
            is_told(why);
        };
        damaged(&text.replace("\"format\": 1", "\"format\": 99999999999"), "line 2");
        damaged(&"[".repeat(1 << 20), "");
        damaged(&"x".repeat(9 << 20), "longer than");
        damaged("", "damaged");
        fs::remove_file(&json).unwrap();
        symlink("/dev/zero", &json).unwrap();
        is_told("symbolic link");
        fs::remove_file(&json).unwrap();
        assert!(Command::new("mkfifo").arg(&json).status().unwrap().success());
        is_told("not a regular file");
    }

    fn long_names(&self) {
        // Names of 10 MB, written by homenode itself.
        let named = self.folder.join("named");
        let mut writer = DatasetWriter::create(&named, spec(1).meta()).unwrap();
        let object = Dataset::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dataset/v1"))
            .unwrap()
            .rows::<Object>()
            .next()
            .unwrap();
        for n in 0..6 {
            let name = format!("\x1b]0;{n}\x07{}", "é".repeat(5 << 20));
            writer.push(&Object { name, stack: vec!["x".repeat(3000); 100], ..object.clone() }).unwrap();
        }
        writer.finish(homenode_dataset::Ended { status: Some(0), signal: None, elapsed_ns: 1 }).unwrap();
        let (found, missing) = try_all(&named, self.folder).unwrap();
        assert_eq!((found, missing), (6, vec![]));
        let names: Vec<String> = Dataset::open(&named).unwrap().rows::<Object>().map(|o| o.name).collect();
        assert!(names.iter().all(|n| n.len() <= 4096 && !n.contains(['\x1b', '\x07'])));
    }
}
