//! What is whole of a damaged description.
//!
//! A recording describes itself in a JSON object. [`Damaged::read`] reads the object's fields one
//! by one. Behind a damage, reading goes on at the next line that begins a field as homenode writes
//! it. A field that makes no sense is left out. The caller gives a value for each field that the
//! text does not tell, and [`Salvaged::words`] says which fields these are.

#![forbid(unsafe_code)]

use homenode_model::Bytes;
use homenode_model::json::MemoryWeights;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Memory that the fields may take.
const MOST: Bytes = Bytes(12 << 20);
/// How a field begins, as homenode writes it.
const FIELD: &str = "\n  \"";

/// A description that cannot be read as it is.
#[derive(Clone, Copy, Debug)]
pub struct Damaged<'a> {
    /// The file's name, for the reader.
    pub file: &'a str,
    /// Its text; `None`: the file cannot be read.
    pub text: Option<&'a str>,
    /// Why the file or its text cannot be read as it is.
    pub why: &'a str,
}

/// What a damaged description tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged<T> {
    /// The description. What the text does not tell is as the caller assumed.
    pub value: T,
    /// Where and how the text is damaged.
    pub damage: String,
    /// Fields that the caller needs and the text does not tell.
    pub untold: Vec<&'static str>,
}

impl<T> Salvaged<T> {
    /// What is damaged and what is not told, as a sentence without its full stop.
    pub fn words(&self) -> String {
        match self.untold.is_empty() {
            true => self.damage.clone(),
            false => format!("{}; it does not tell {}", self.damage, self.untold.join(", ")),
        }
    }
}

impl Damaged<'_> {
    /// Reads the fields that are whole over those of `assumed`. `needed`: fields without which a
    /// reader has to assume something. `skipped`: fields that are not read.
    pub fn read<T>(&self, assumed: T, needed: &[&'static str], skipped: &[&str]) -> Salvaged<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let light = self.text.filter(|text| MemoryWeights::TYPED.check(text, MOST).is_ok());
        let (mut fields, damage) = light.map_or_else(|| (Map::new(), None), fields);
        fields.retain(|name, _| !skipped.contains(&name.as_str()));
        let mut untold: Vec<&'static str> =
            needed.iter().copied().filter(|name| !fields.contains_key(*name)).collect();
        let mut value = assumed;
        let mut known = serde_json::to_value(&value).unwrap_or_default();
        for (name, told) in fields {
            let Some(place) = known.get_mut(&name) else { continue };
            let before = std::mem::replace(place, told);
            match T::deserialize(&known) {
                Ok(better) => value = better,
                Err(_) => {
                    known[&name] = before;
                    untold.extend(needed.iter().copied().find(|needed| *needed == name));
                }
            }
        }
        let (file, why) = (self.file, self.why);
        let damage = match damage {
            Some((at, what)) => format!("{file} is damaged at byte {at}: {what}"),
            None if self.text.is_none() => format!("{file} cannot be read: {why}"),
            None => format!("{file} is damaged: {why}"),
        };
        Salvaged { value, damage, untold }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct About {
        name: String,
        nodes: u32,
        words: Vec<String>,
    }

    const NEEDED: [&str; 2] = ["name", "nodes"];

    fn whole() -> (About, String) {
        let about = About { name: "a \"b\": {".into(), nodes: 4, words: vec!["x".into(), "y,".into()] };
        let text = serde_json::to_string_pretty(&about).unwrap();
        (about, text)
    }

    fn read(text: Option<&str>) -> Salvaged<About> {
        let assumed = About { name: "unknown".into(), nodes: 1, words: Vec::new() };
        Damaged { file: "about.json", text, why: "it is empty" }.read(assumed, &NEEDED, &["words"])
    }

    #[test]
    fn what_is_whole_is_read_and_what_is_not_is_assumed() {
        let (about, text) = whole();
        let salvaged = read(Some(&text));
        assert_eq!((&salvaged.value.name, salvaged.value.nodes), (&about.name, 4));
        assert_eq!(
            (salvaged.words(), salvaged.value.words.len()),
            ("about.json is damaged: it is empty".into(), 0)
        );
        for (damaged, untold) in [
            (text.replace("\"nodes\": 4", "\"nodes\": 4x"), "nodes"),
            (text.replace("\"nodes\": 4", "\"nodes\": \"4\""), "nodes"),
            (text.replace("\"name\"", "\"nane\""), "name"),
            (text.replace("\"name\"", "name"), "name"),
        ] {
            let salvaged = read(Some(&damaged));
            assert_eq!(salvaged.untold, [untold], "{damaged}");
            assert_eq!(
                (salvaged.value.nodes == 4, salvaged.value.name == about.name),
                (untold == "name", untold == "nodes")
            );
            assert!(salvaged.words().ends_with(&format!("; it does not tell {untold}")), "{salvaged:?}");
        }
    }

    #[test]
    fn a_damage_is_placed() {
        let (_, text) = whole();
        let at = text.find('4').unwrap();
        assert!(read(Some(&text[..at])).damage.starts_with(&format!("about.json is damaged at byte {at}")));
        assert_eq!(read(Some("")).damage, "about.json is damaged at byte 0: it is no JSON object");
        assert_eq!(read(None).damage, "about.json cannot be read: it is empty");
        assert_eq!(read(None).untold, NEEDED);
    }
}
