//! Results of `compare` that somebody damaged or made up: compared, or refused in words.

#[path = "../../../fuzz/mutate.rs"]
mod mutate;

use homenode_report::compared::Compared;
use mutate::{Rng, mutated};

const TEXT: &str = r#"{"schema": "homenode/compare/1",
  "columns": [{"key": "scheme", "title": "scheme", "unit": null}, {"key": "time", "title": "model time", "unit": "s"},
              {"key": "remote", "title": "remote", "unit": "%"}, {"key": "moved", "title": "pages moved", "unit": null}],
  "rows": [{"scheme": "SI", "time": 2.5, "remote": 88.0, "moved": 0}, {"scheme": "PI", "time": 1.5, "remote": 3.0, "moved": 0}],
  "missing": [{"row": 2, "column": "remote", "why": "a number, not a run"}]}"#;

#[test]
fn damaged_results_are_refused_in_words_or_compare() {
    let sound = Compared::from_json(TEXT).unwrap();
    let (mut rng, mut read, mut refused) = (Rng(3), 0, 0);
    for _ in 0..20_000 {
        let Ok(changed) = String::from_utf8(mutated(TEXT, TEXT, &mut rng)) else { continue };
        match Compared::from_json(&changed) {
            Ok(other) => {
                read += 1;
                for diff in [sound.diff(&other), other.diff(&sound)] {
                    assert!(diff.rows.len() <= 200 && diff.columns.len() <= 4, "{diff:?}");
                    let texts = diff.rows.iter().flat_map(|r| r.machine.iter().chain([&r.scheme]));
                    let titles = diff.columns.iter().flat_map(|c| c.unit.iter().chain([&c.title]));
                    for text in texts.chain(titles) {
                        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{0}']), "{text:?}");
                    }
                }
            }
            Err(why) => {
                refused += 1;
                let text = why.to_string();
                assert!(text.len() < 1000 && !text.contains('\u{1b}'), "{text:?}");
            }
        }
    }
    assert!(read > 100 && refused > 1000, "{read} read, {refused} refused");
}

#[test]
fn a_result_of_very_many_rows_and_columns_is_refused_or_short() {
    let column = r#"{"key":"time","title":"t","unit":null}"#;
    let columns = vec![column; 5000].join(",");
    let few = format!(
        r#"{{"schema":"homenode/compare/1","columns":[{columns}],"rows":[{{"scheme":"a","time":1}}]}}"#
    );
    let read = Compared::from_json(&few).unwrap();
    assert_eq!(read.diff(&read).columns.len(), 1, "a column is there once");
    let rows = vec![r#"{"scheme":"a","time":1}"#; 100_000].join(",");
    let many = format!(r#"{{"schema":"homenode/compare/1","columns":[{column}],"rows":[{rows}]}}"#);
    let why = Compared::from_json(&many).unwrap_err().to_string();
    assert!(why.contains("100000 schemes"), "{why}");
}
