//! Logs of every version are read for ever.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use homenode_log::check::check;
use homenode_log::file::LogReader;
use homenode_log::{Record, RecordKind};

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    list.sort();
    list
}

/// A CRC of everything in the records, in a form that belongs to this test alone.
fn crc(path: &Path) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let mut log = LogReader::open(path).unwrap();
    while let Some(Record { tick, what }) = log.next_record().unwrap() {
        crc.update(&tick.0.to_le_bytes());
        match what {
            RecordKind::Access { line, write, pc } => {
                crc.update(&[0, write.into()]);
                crc.update(&line.0.to_le_bytes());
                crc.update(&pc.to_le_bytes());
            }
            RecordKind::Mark(mark) => {
                let (words, n) = mark.words();
                crc.update(&[mark.code()]);
                words[..n].iter().for_each(|w| crc.update(&w.to_le_bytes()));
            }
        }
    }
    crc.finalize()
}

/// With `HOMENODE_BLESS=1` in the environment, writes `expected.txt` instead: for a new version's
/// folder.
#[test]
fn old_logs_are_read_as_they_were() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/logs");
    let versions: Vec<PathBuf> = sorted(&fixtures).into_iter().filter(|p| p.is_dir()).collect();
    assert_eq!(versions.len() as u32, homenode_log::VERSION, "a folder a version");
    for version in versions {
        let mut found = String::new();
        for log in sorted(&version).iter().filter(|p| p.is_dir()).flat_map(|dir| sorted(dir)) {
            let mut reader = LogReader::open(&log).unwrap();
            let filter = reader.header().filter_lines;
            let (r, damage) = check(&mut reader);
            assert!(damage.is_none(), "{damage:?}");
            let name = log.strip_prefix(&version).unwrap().display();
            let (whole, problems, crc) = (u8::from(r.complete), r.problems.len(), crc(&log));
            writeln!(
                found,
                "{name} {filter} {} {} {} {} {} {whole} {problems} {crc:08x}",
                r.records, r.accesses, r.marks, r.ticks, r.chunks
            )
            .unwrap();
        }
        let expected = version.join("expected.txt");
        if std::env::var_os("HOMENODE_BLESS").is_some() {
            std::fs::write(&expected, &found).unwrap();
        }
        assert_eq!(found, std::fs::read_to_string(&expected).unwrap(), "{}", version.display());
    }
}
