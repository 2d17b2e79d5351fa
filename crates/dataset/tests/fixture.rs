//! Data sets of every version of the format stay readable.
//!
//! A fixture is written once, by `HOMENODE_BLESS=1 cargo test -p homenode-dataset --test fixture`,
//! and never again: a newer version of the format gets a fixture of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::meta::VERSION;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{ALL, Access, Migration, Object};
use homenode_dataset::{Dataset, DatasetWriter};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dataset")
}

/// Rows and numbers of each table, as `rows.txt` of a fixture has them.
fn summary(set: &Dataset) -> String {
    let mut out = String::new();
    for table in ALL {
        let columns = (table.columns)();
        let (mut rows, mut sums, mut texts) = (0, vec![0_u128; columns.len()], 0);
        for chunk in set.checked_chunks(table) {
            rows += chunk.rows();
            for (column, sum) in chunk.columns.iter().zip(&mut sums) {
                for row in 0..column.rows() {
                    *sum += u128::from(column.int(row).unwrap_or(0));
                    *sum += column.ints(row).unwrap_or_default().iter().map(|n| u128::from(*n)).sum::<u128>();
                    texts += column.text(row).map_or(0, str::len);
                    texts += column.texts(row).map_or(0, |all| all.iter().map(String::len).sum());
                }
            }
        }
        let sums = sums.iter().map(u128::to_string).collect::<Vec<_>>().join(" ");
        let _ = writeln!(out, "{}: {rows} rows; sums {sums}; {texts} bytes of text", table.name);
    }
    out
}

/// A summary without the zeros at the end of the sums: a column that came later is the last one of
/// its table, and has no values in an older recording.
fn older(summary: &str) -> String {
    let line = |line: &str| {
        let (sums, text) = line.rsplit_once("; ").unwrap();
        format!("{}; {text}\n", sums.trim_end_matches(" 0"))
    };
    summary.lines().map(line).collect()
}

fn make(path: &Path) {
    let spec = SyntheticSpec { iterations: 8, blocks: 40, nodes: 4, seed: 1, rank: Some(0) };
    let mut writer = DatasetWriter::create(path, spec.meta()).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    fs::write(path.join("rows.txt"), summary(&Dataset::open(path).unwrap())).unwrap();
}

#[test]
fn every_version_is_read() {
    let newest = fixtures().join(format!("v{VERSION}"));
    if std::env::var_os("HOMENODE_BLESS").is_some() && !newest.exists() {
        make(&newest);
    }
    for version in 1..=VERSION {
        let path = fixtures().join(format!("v{version}"));
        let set = Dataset::open(&path).unwrap_or_else(|e| panic!("version {version}: {e}"));
        let expected = fs::read_to_string(path.join("rows.txt")).unwrap();
        assert_eq!(older(&summary(&set)), older(&expected), "version {version}");
        assert_eq!(set.missing(), [], "version {version}");
        assert!(ALL.iter().all(|t| set.size_of(t.name) > 0), "version {version} has every table");
    }
}

#[test]
fn the_first_version_says_what_it_said() {
    let set = Dataset::open(&fixtures().join("v1")).unwrap();
    assert_eq!(set.meta().machine, "synthetic-4");
    assert_eq!(set.meta().environment["OMP_NUM_THREADS"], "16");
    let first = set.rows::<Object>().next().unwrap();
    assert_eq!((first.name.as_str(), &first.dimensions[..]), ("grid_old", &[12, 32, 256][..]));
    assert!(set.rows::<Object>().all(|o| o.fields.0.is_empty()), "its tables have no fields");
    assert!(set.rows::<Migration>().any(|m| m.policy.as_deref() == Some("next-touch")));
    assert!(set.rows::<Access>().any(|a| a.tally.count().is_none()), "presence");
}
