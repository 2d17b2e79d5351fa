//! Reads `tests/programs/manifest.toml`: `[[program]]`, then one `key = value` a line.

use std::collections::BTreeMap;

/// One program of the corpus.
#[derive(Clone, Debug)]
pub struct Program {
    pub file: String,
    pub language: String,
    pub compilers: Vec<String>,
    pub flags: Vec<String>,
    pub libs: Vec<String>,
    pub threads: u32,
    pub library: Option<String>,
    /// Exit status, or the signal.
    pub ends: Result<i32, i32>,
}

impl Program {
    pub fn has_openmp(&self) -> bool {
        self.flags.iter().any(|f| f == "-fopenmp")
    }
}

pub fn read() -> Vec<Program> {
    let file = crate::support::root().join("tests/programs/manifest.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut tables: Vec<BTreeMap<&str, &str>> = Vec::new();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line == "[[program]]" {
            tables.push(BTreeMap::new());
        } else if !line.is_empty() && !line.starts_with('#') {
            let (key, value) =
                line.split_once(" = ").unwrap_or_else(|| panic!("line {}: {line}", number + 1));
            tables.last_mut().expect("a table first").insert(key, value);
        }
    }
    tables.iter().map(program).collect()
}

fn program(table: &BTreeMap<&str, &str>) -> Program {
    let need = |key: &str| *table.get(key).unwrap_or_else(|| panic!("no {key} in {table:?}"));
    let number = |text: &str| text.parse::<i32>().unwrap_or_else(|e| panic!("{text}: {e}"));
    let list = |key: &str| table.get(key).map(|v| strings(v)).unwrap_or_default();
    Program {
        file: string(need("file")),
        language: string(need("language")),
        compilers: list("compilers"),
        flags: list("flags"),
        libs: list("libs"),
        threads: need("threads").parse().unwrap(),
        library: table.get("library").map(|v| string(v)),
        ends: match table.get("signal") {
            Some(signal) => Err(number(signal)),
            None => Ok(number(need("status"))),
        },
    }
}

fn string(value: &str) -> String {
    value.trim_matches('"').to_owned()
}

fn strings(value: &str) -> Vec<String> {
    let inner = value.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(|v| string(v.trim())).filter(|v| !v.is_empty()).collect()
}
