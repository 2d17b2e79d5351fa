//! A damaged `dataset.json`, as far as it is whole: the tables beside it are shown all the same.
//!
//! What the text does not tell is assumed, and the recording says so.

use homenode_salvage::Damaged;

use crate::basis::Basis;
use crate::layout::META;
use crate::meta::{DatasetMeta, RecordingKind};

/// Fields without which a reader has to assume something.
const NEEDED: [&str; 9] =
    ["homenode", "kind", "basis", "command", "machine", "source", "clock", "page_bytes", "ended"];

/// What the text tells, a sentence about what it does not, and whether it tells of an end. `None`:
/// the file cannot be read. `why`: why the file or its text cannot be read as it is.
pub(crate) fn meta(text: Option<&str>, why: &str) -> (DatasetMeta, String, bool) {
    let mut assumed = DatasetMeta::new(RecordingKind::Run, Basis::Presence, Vec::new());
    (assumed.machine, assumed.source, assumed.basis) = ("unknown".into(), "unknown".into(), "unknown".into());
    // Another version is refused before this; this one is damaged, or there is none.
    let salvaged = Damaged { file: META, text, why }.read(assumed, &NEEDED, &["format"]);
    let mut said = salvaged.words();
    if salvaged.untold.contains(&"kind") {
        said += "; it is read as a recording of homenode run";
    }
    (salvaged.value, said, !salvaged.untold.contains(&"ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> (DatasetMeta, String) {
        let mut meta =
            DatasetMeta::new(RecordingKind::Lab, Basis::Emulated, vec!["./app".into(), "x, \"y\": {".into()]);
        (meta.machine, meta.source) = ("lab-4".into(), "the monitor".into());
        meta.notes.push("a note".into());
        meta.rows.insert("accesses".into(), 7);
        let text = serde_json::to_string_pretty(&meta).unwrap();
        (meta, text)
    }

    #[test]
    fn a_damage_costs_the_field_that_it_is_in() {
        let (meta, text) = whole();
        for (damaged, lost) in [
            (text.replace("\"lab-4\"", "\"lab-4"), "machine"),
            (text.replace("\"machine\":", "\"machine\""), "machine"),
            (text.replace("\"lab-4\"", "[1,2]"), "machine"),
            (text.replace("\"the monitor\"", "\u{1}"), "source"),
        ] {
            let (found, said, _) = super::meta(Some(&damaged), "?");
            assert!(said.contains(&format!("does not tell {lost}")), "{said}");
            let (machine, source) = (found.machine.clone(), found.source.clone());
            assert_eq!(
                DatasetMeta { machine: meta.machine.clone(), source: meta.source.clone(), ..found },
                meta
            );
            assert_eq!((machine == "unknown", source == "unknown"), (lost == "machine", lost == "source"));
        }
    }

    #[test]
    fn what_is_cut_off_anywhere_keeps_the_fields_before() {
        let (meta, text) = whole();
        let mut kinds = 0;
        for end in 0..text.len() - 2 {
            let (found, said, _) = super::meta(Some(&text[..end]), "?");
            assert!(said.starts_with("dataset.json is damaged"), "{said}");
            let knows_kind = !said.contains("kind");
            assert_eq!(found.kind == meta.kind, knows_kind, "{end}: {said}");
            kinds += u32::from(knows_kind);
            assert!(end < text.find("\"host\"").unwrap() || found.command == meta.command);
        }
        assert!(kinds > 100);
        let (found, said, _) = super::meta(Some(""), "it is empty");
        assert_eq!((found.kind, found.machine.as_str()), (RecordingKind::Run, "unknown"));
        assert!(said.contains("no JSON object") && said.contains("homenode run"), "{said}");
    }

    #[test]
    fn what_weighs_too_much_is_not_read() {
        let text = format!("{{\"kind\":\"lab\",\"command\":[{}\"\"]}}", "\"\",".repeat(1 << 20));
        let (found, said, _) = super::meta(Some(&text), "too much");
        assert!(found.kind == RecordingKind::Run && found.command.is_empty(), "{found:?}");
        assert!(said.contains("too much"), "{said}");
    }
}
