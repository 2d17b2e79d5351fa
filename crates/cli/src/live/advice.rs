//! Advice in the source's terms: which array, allocated where, and what to do about it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};

use homenode_log::recording::{SourcePlace, Symbols};

use super::facts::{Facts, Object, Origin};

/// What things are called in the source of a process.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Places by return address.
    pub places: BTreeMap<u64, SourcePlace>,
    /// Static objects by address in the program's file.
    pub statics: BTreeMap<u64, String>,
}

impl Names {
    /// Of what was found; the program is the first module.
    pub fn of(found: Symbols) -> Self {
        let of_program = found.statics.into_iter().filter(|s| s.module == 0);
        Self { places: found.places, statics: of_program.map(|s| (s.address, s.name)).collect() }
    }
}

/// Objects that are worth a sentence.
const SENTENCES: usize = 6;
/// A node alone had so many percent of the pages.
const ALONE: u64 = 90;
/// A node that touched so many percent of the pages uses the object.
const USES: u64 = 5;

/// What an object is called: `array a, allocated at init.c:31`.
pub fn name(object: &Object, names: &Names) -> String {
    if let Some(frames) = &object.python {
        return format!("the array allocated near {}", frames.replace(" < ", ", called from "));
    }
    match &object.origin {
        Origin::Static(n) => match names.statics.get(n) {
            Some(name) => format!("array {name}, static"),
            None => "a static array".into(),
        },
        Origin::Allocated(frames) => match frames.iter().find_map(|f| names.places.get(f)) {
            Some(place) => match variable(place) {
                Some(variable) => format!("array {variable}, allocated at {place}"),
                None => format!("the array allocated at {place}"),
            },
            None => match frames.first() {
                Some(pc) => format!("the array allocated at {pc:#x}"),
                None => "an array".into(),
            },
        },
    }
}

/// The variable that an allocation is assigned to, as the line in the source has it.
fn variable(place: &SourcePlace) -> Option<String> {
    let (file, line) = (place.file.as_ref()?, place.line?);
    let text = BufReader::new(fs::File::open(file).ok()?).lines().nth(line as usize - 1)?.ok()?;
    assigned(&text)
}

fn assigned(line: &str) -> Option<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let lower = line.to_ascii_lowercase();
    // Fortran: allocate(a(n), …)
    if let Some(at) = lower.find("allocate(").filter(|_| !line.contains('=')) {
        let name: String = line[at + "allocate(".len()..]
            .trim_start()
            .chars()
            .take_while(|c| word(*c) || *c == '%')
            .collect();
        return (!name.is_empty()).then_some(name);
    }
    let calls = ["alloc", "new ", "new(", "mmap", "vector"];
    let call = calls.iter().filter_map(|a| lower.find(a)).min()?;
    // Several assignments may stand on the line: the last one before the call is its.
    let left = line.get(..call)?.rsplit_once('=')?.0;
    if left.ends_with(['=', '!', '<', '>']) {
        return None;
    }
    let left = left.trim_end();
    let name: String = left.chars().rev().take_while(|c| word(*c) || ".->[]".contains(*c)).collect();
    let name: String = name.chars().rev().collect();
    name.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(name)
}

/// A sentence for each object that was on the wrong nodes, the largest first.
pub fn sentences(facts: &Facts, names: &Names) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for object in &facts.most {
        if said.len() == SENTENCES {
            break;
        }
        if let Some(text) = sentence(object) {
            let line = format!("{}, {text}", name(object, names));
            if !said.contains(&line) {
                said.push(line);
            }
        }
    }
    said
}

fn sentence(object: &Object) -> Option<String> {
    let pages: u64 = object.homes.iter().sum();
    let touched: u64 = object.touched.iter().sum();
    if pages == 0 || touched == 0 || object.moved * 100 < touched * USES {
        return None;
    }
    let owner = object.homes.iter().position(|n| *n * 100 >= pages * ALONE);
    let users: Vec<usize> =
        (0..object.touched.len()).filter(|n| object.touched[*n] * 100 >= touched * USES).collect();
    if object.ping_pongs * 2 > object.moved {
        return Some(
            "used by several nodes in turn: its pages went back and forth. Give each thread the same part in every loop \
             (schedule(static)), or leave it interleaved (numactl -i all)"
                .into(),
        );
    }
    Some(match (owner, users.as_slice()) {
        (Some(owner), [one]) if owner != *one => {
            format!("first touched on node {owner} and used by node {one}: let the thread that uses it touch it first")
        }
        (Some(_), [_]) => return None,
        (Some(owner), _) => format!(
            "first touched by one thread (node {owner} had {} of {pages} pages) and used by {} nodes: initialise it in a \
             parallel loop with the schedule of the loops that use it",
            object.homes[owner],
            users.len()
        ),
        (None, _) => "initialised with another distribution than it is used with: initialise it with the schedule of the \
                      loops that use it"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_off_the_line() {
        for (line, name) in [
            ("    double *a = malloc(n * sizeof *a);", Some("a")),
            ("  grid->cells = calloc(n, 8);", Some("grid->cells")),
            ("  allocate(u(n, n), v(n))", Some("u")),
            ("  auto p = new double[n];", Some("p")),
            ("int n = 8; double *a = malloc(n);", Some("a")),
            ("  return malloc(8);", None),
            ("  if (x == malloc(8))", None),
            ("  x = y + 1;", None),
        ] {
            assert_eq!(assigned(line).as_deref(), name, "{line}");
        }
    }

    fn object(homes: &[u64], touched: &[u64], moved: u64, ping_pongs: u64) -> Object {
        let origin = Origin::Static(0);
        let (homes, touched) = (homes.into(), touched.into());
        Object { origin, bytes: 1 << 20, moved, ping_pongs, homes, touched, python: None }
    }

    #[test]
    fn advice_follows_homes_and_touches() {
        let says = |o: &Object| sentence(o).unwrap_or_default();
        assert!(
            says(&object(&[100], &[50, 50], 50, 0))
                .starts_with("first touched by one thread (node 0 had 100 of")
        );
        assert!(says(&object(&[100], &[0, 100], 100, 0)).contains("used by node 1"));
        assert!(says(&object(&[50, 50], &[50, 50], 50, 0)).contains("another distribution"));
        assert!(says(&object(&[100], &[50, 50], 90, 60)).contains("back and forth"));
        assert_eq!(says(&object(&[100], &[100], 0, 0)), "");
        let mut names = Names::default();
        assert_eq!(name(&object(&[], &[], 0, 0), &names), "a static array");
        names.statics.insert(0, "grid".into());
        assert_eq!(name(&object(&[], &[], 0, 0), &names), "array grid, static");
    }
}
