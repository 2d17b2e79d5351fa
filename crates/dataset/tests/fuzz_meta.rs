//! `dataset.json` that somebody damaged or made up: the recording opens and says what it lacks,
//! or is refused in words.

#[path = "../../../fuzz/mutate.rs"]
mod mutate;

use std::fs;

use homenode_dataset::tables::ALL;
use homenode_dataset::{Basis, Dataset, DatasetMeta, DatasetWriter, Ended, RecordingKind};
use mutate::{Rng, mutated};

#[test]
fn damaged_descriptions_are_refused_in_words_or_open() {
    let folder = std::env::temp_dir().join(format!("homenode-meta-fuzz-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let mut meta = DatasetMeta::new(
        RecordingKind::Run,
        Basis::Sampled { one_in: 64 },
        vec!["./app".into(), "-n".into()],
    );
    meta.environment.insert("OMP_NUM_THREADS".into(), "4".into());
    (meta.machine, meta.source, meta.policy) = ("m".into(), "samples".into(), Some("next-touch".into()));
    (meta.host, meta.job, meta.rank) = (Some("h".into()), Some("1".into()), Some(0));
    meta.notes.push("a note".into());
    meta.incomplete.push("a process".into());
    meta.rows.insert("accesses".into(), 12);
    let ended = Ended { status: Some(0), signal: None, elapsed_ns: 1_000_000 };
    DatasetWriter::create(&folder, meta).unwrap().finish(ended).unwrap();
    let path = folder.join("dataset.json");
    let text = fs::read_to_string(&path).unwrap();
    let merged = text.replacen('{', "{\"members\":[{}, {}],", 1);
    let (mut rng, mut opened, mut salvaged, mut refused) = (Rng(3), 0, 0, 0);
    for round in 0..2000 {
        let from = if round % 5 == 0 { &merged } else { &text };
        fs::write(&path, mutated(from, &text, &mut rng)).unwrap();
        match Dataset::open(&folder) {
            Ok(set) => {
                opened += 1;
                let first =
                    set.missing().iter().any(|m| m.to_string().starts_with("dataset.json is damaged"));
                salvaged += u32::from(first);
                let meta = set.meta();
                let lists = [&meta.command, &meta.notes, &meta.incomplete].into_iter().flatten();
                let all = [&meta.machine, &meta.source, &meta.basis].into_iter().chain(lists);
                for t in all.chain(meta.policy.iter()).chain(meta.host.iter()) {
                    assert!(!t.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{0}', '\n']), "{t:?}");
                }
                if round % 16 == 0 {
                    let rows: usize = ALL.iter().flat_map(|t| set.checked_chunks(t)).map(|c| c.rows()).sum();
                    assert_eq!(rows, 0, "there are no tables");
                }
                assert!(set.missing().iter().all(|m| !m.to_string().contains('\u{1b}')));
            }
            Err(why) => {
                refused += 1;
                let text = why.to_string();
                let named = text.contains("homenode-meta-fuzz") && text.len() < 10_000;
                assert!(named && !text.contains('\u{1b}'), "{text:?}");
            }
        }
    }
    let right = opened - salvaged > 20 && salvaged > 200;
    assert!(right, "{opened} opened, {salvaged} of these in part, {refused} refused");
    // Another version is no damage, and without tables nothing is left to show.
    let refusal = || Dataset::open(&folder).unwrap_err().to_string();
    fs::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    assert!(refusal().contains("format 2, but this homenode knows 1 to 1"), "{}", refusal());
    fs::remove_dir_all(folder.join("tables")).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(refusal().contains("dataset.json, line"), "{}", refusal());
    fs::remove_dir_all(&folder).unwrap();
}
