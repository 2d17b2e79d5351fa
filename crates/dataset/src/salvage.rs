//! A damaged `dataset.json`, as far as it is whole: the tables beside it are shown all the same.
//!
//! The fields are read one by one. Behind a damage, reading goes on at the next line that begins a
//! field as homenode writes it. A field that makes no sense is left out. What the text does not
//! tell is assumed, and the recording says so.

use serde_json::{Map, Value};

use homenode_model::Bytes;
use homenode_model::json::Weights;

use crate::basis::Basis;
use crate::meta::{Kind, Meta};

/// Memory that the fields may take.
const MOST: Bytes = Bytes(12 << 20);
/// How a field begins, as homenode writes it.
const FIELD: &str = "\n  \"";
/// Fields without which a reader has to assume something.
const NEEDED: [&str; 8] =
    ["homenode", "kind", "basis", "command", "machine", "source", "clock", "page_bytes"];

/// Where the text is damaged first, and what is wrong there.
type Damage = (usize, String);

/// The fields of an object that are whole, and the first damage.
fn fields(text: &str) -> (Map<String, Value>, Option<Damage>) {
    let (mut fields, mut damage) = (Map::new(), None);
    let Some(mut at) = text.find('{').map(|at| at + 1) else {
        return (fields, Some((0, "it is no JSON object".into())));
    };
    loop {
        match field(&text[at..]) {
            Ok(Some((name, value, length))) => {
                fields.entry(name).or_insert(value);
                at += length;
            }
            Ok(None) => return (fields, damage),
            Err((offset, why)) => {
                damage.get_or_insert((at + offset, why));
                // One byte further at least, or the same field would be read for ever.
                let mut from = at + offset.max(1);
                while !text.is_char_boundary(from.min(text.len())) {
                    from += 1;
                }
                match text.get(from..).and_then(|rest| rest.find(FIELD)) {
                    Some(next) => at = from + next + 1,
                    None => return (fields, damage),
                }
            }
        }
    }
}

/// The field at the beginning of `text`, and its length with the comma behind it. `None`: the
/// object ends here.
fn field(text: &str) -> Result<Option<(String, Value, usize)>, Damage> {
    let skip = |at: usize| at + text[at..].len() - text[at..].trim_start().len();
    let mut at = skip(0);
    if text[at..].starts_with('}') {
        return Ok(None);
    }
    let value = |at: usize| -> Result<(Value, usize), Damage> {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => Ok((value, at + values.byte_offset())),
            Some(Err(e)) => Err((at + values.byte_offset(), e.to_string())),
            None => Err((at, "it is cut off".into())),
        }
    };
    let (name, end) = value(at)?;
    let Value::String(name) = name else { return Err((at, "a field has no name".into())) };
    at = skip(end);
    if !text[at..].starts_with(':') {
        return Err((at, "a colon is missing".into()));
    }
    let (value, end) = value(skip(at + 1))?;
    at = skip(end);
    match text[at..].chars().next() {
        Some(',') => Ok(Some((name, value, at + 1))),
        Some('}') => Ok(Some((name, value, at))),
        _ => Err((at, "a comma is missing".into())),
    }
}

/// What the text tells, and a sentence about what it does not. `None`: the file cannot be read.
/// `why`: why the file or its text cannot be read as it is.
pub(crate) fn meta(text: Option<&str>, why: &str) -> (Meta, String) {
    let light = text.filter(|text| Weights::TYPED.check(text, MOST).is_ok());
    let (mut fields, damage) = light.map_or_else(|| (Map::new(), None), fields);
    // Another version is refused before this; this one is damaged, or there is none.
    fields.remove("format");
    let mut meta = Meta::new(Kind::Run, Basis::Presence, Vec::new());
    (meta.machine, meta.source, meta.basis) = ("unknown".into(), "unknown".into(), "unknown".into());
    let mut wrong: Vec<&str> = NEEDED.into_iter().filter(|name| !fields.contains_key(*name)).collect();
    let mut known = serde_json::to_value(&meta).unwrap_or_default();
    for (name, value) in fields {
        let Some(place) = known.get_mut(&name) else { continue };
        let before = std::mem::replace(place, value);
        match serde_json::from_value(known.clone()) {
            Ok(better) => meta = better,
            Err(_) => {
                known[&name] = before;
                wrong.extend(NEEDED.into_iter().find(|needed| *needed == name));
            }
        }
    }
    let mut said = match damage {
        Some((at, what)) => format!("dataset.json is damaged at byte {at}: {what}"),
        None if text.is_none() => format!("dataset.json cannot be read: {why}"),
        None => format!("dataset.json is damaged: {why}"),
    };
    if !wrong.is_empty() {
        said += &format!("; it does not tell {}", wrong.join(", "));
    }
    if wrong.contains(&"kind") {
        said += "; it is read as a recording of homenode run";
    }
    (meta, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> (Meta, String) {
        let mut meta = Meta::new(Kind::Lab, Basis::Emulated, vec!["./app".into(), "x, \"y\": {".into()]);
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
            let (found, said) = super::meta(Some(&damaged), "?");
            assert!(said.contains(&format!("does not tell {lost}")), "{said}");
            let (machine, source) = (found.machine.clone(), found.source.clone());
            assert_eq!(Meta { machine: meta.machine.clone(), source: meta.source.clone(), ..found }, meta);
            assert_eq!((machine == "unknown", source == "unknown"), (lost == "machine", lost == "source"));
        }
    }

    #[test]
    fn what_is_cut_off_anywhere_keeps_the_fields_before() {
        let (meta, text) = whole();
        let mut kinds = 0;
        for end in 0..text.len() - 2 {
            let (found, said) = super::meta(Some(&text[..end]), "?");
            assert!(said.starts_with("dataset.json is damaged"), "{said}");
            let knows_kind = !said.contains("kind");
            assert_eq!(found.kind == meta.kind, knows_kind, "{end}: {said}");
            kinds += u32::from(knows_kind);
            assert!(end < text.find("\"host\"").unwrap() || found.command == meta.command);
        }
        assert!(kinds > 100);
        let (found, said) = super::meta(Some(""), "it is empty");
        assert_eq!((found.kind, found.machine.as_str()), (Kind::Run, "unknown"));
        assert!(said.contains("no JSON object") && said.contains("homenode run"), "{said}");
    }

    #[test]
    fn what_weighs_too_much_is_not_read() {
        let text = format!("{{\"kind\":\"lab\",\"command\":[{}\"\"]}}", "\"\",".repeat(1 << 20));
        let (found, said) = super::meta(Some(&text), "too much");
        assert!(found.kind == Kind::Run && found.command.is_empty(), "{found:?}");
        assert!(said.contains("too much"), "{said}");
    }
}
