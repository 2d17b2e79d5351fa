//! Variables of allocations, found in programs of several languages and compilers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use homenode_symbols::{FoundBy, Resolver, Variable};

use crate::programs::{Run, compile, folder, present, run, sources};

/// What the source says of an allocation.
#[derive(Clone, Debug)]
struct Expected {
    bytes: u64,
    name: String,
    type_name: String,
    element: Option<u64>,
    dimensions: String,
    scope: String,
    line: u32,
}

/// Expectations behind `@` in the comments of a source.
fn expectations(source: &str) -> Vec<Expected> {
    let text = fs::read_to_string(sources().join(source)).unwrap();
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for part in line.split(['/', '!']).filter_map(|p| p.strip_prefix('@')) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let [bytes, name, type_name, element, dimensions, scope] = words.as_slice() else {
                panic!("{source}: {part}")
            };
            found.push(Expected {
                bytes: bytes.parse().unwrap(),
                name: (*name).to_owned(),
                type_name: type_name.replace('_', " "),
                element: element.parse().ok(),
                dimensions: (*dimensions).to_owned(),
                scope: (*scope).to_owned(),
                line: number as u32 + 1,
            });
        }
    }
    found
}

fn dimensions(variable: &Variable) -> String {
    let all = variable.dimensions.iter().map(|d| d.extent.map_or_else(|| "?".into(), |e| e.to_string()));
    format!("[{}]", all.collect::<Vec<_>>().join(","))
}

/// What is wrong with an answer; nothing if it is right. Underscores and blanks in types are one.
fn wrong(expected: &Expected, found: &Variable, names_alone: bool) -> Option<String> {
    let shown = |v: &Variable| {
        format!(
            "{} {} {:?} {} {}",
            v.name,
            v.type_name.as_deref().unwrap_or("-").replace('_', " "),
            v.element_bytes,
            dimensions(v),
            v.scope
        )
    };
    let right = expected.name == found.name
        && (names_alone && found.type_name.is_none()
            || found.type_name.as_ref().is_some_and(|t| t.replace('_', " ") == expected.type_name)
                && found.element_bytes == expected.element
                && dimensions(found) == expected.dimensions
                && found.scope.as_str() == expected.scope);
    (!right).then(|| shown(found))
}

/// The answers for one build of a program.
struct Answers {
    right: usize,
    none: Vec<String>,
    /// The name, and what is wrong.
    wrong: Vec<(String, String)>,
    by: BTreeMap<FoundBy, usize>,
}

fn ask(source: &str, run: &Run, frames: usize, names_alone: bool) -> Answers {
    let expected = expectations(source);
    let mut resolver = Resolver::new(&run.modules);
    let mut answers = Answers { right: 0, none: Vec::new(), wrong: Vec::new(), by: BTreeMap::new() };
    let mut seen = Vec::new();
    for allocation in &run.allocations {
        let Some(expected) = expected.iter().find(|e| e.bytes == allocation.bytes) else { continue };
        seen.push(expected.bytes);
        let stack = &allocation.frames[..allocation.frames.len().min(frames)];
        match resolver.allocation(stack, allocation.bytes) {
            None => answers.none.push(expected.name.clone()),
            Some(found) => match wrong(expected, &found, names_alone) {
                Some(what) => answers.wrong.push((
                    expected.name.clone(),
                    format!(
                        "line {}: {} is called {what} (by {})",
                        expected.line, expected.name, found.found_by
                    ),
                )),
                None => {
                    answers.right += 1;
                    *answers.by.entry(found.found_by).or_default() += 1;
                }
            },
        }
    }
    assert!(resolver.trouble().is_empty(), "{:?}", resolver.trouble());
    for e in expected {
        assert!(seen.contains(&e.bytes), "{source}:{}: nothing of {} bytes was allocated", e.line, e.bytes);
    }
    answers.none.sort();
    answers.none.dedup();
    answers
}

/// A compiler with options, and the names that are known to come out wrong.
type Build = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Lines alone name what the innermost function calls its memory, not its caller.
const WRAPPED: &[&str] = &["fresh", "far", "near", "told", "glob_u", "answer"];

/// Allocations of a hundred that must have an answer. What optimisers leave differs from one
/// version to the next.
const ANSWERED: usize = 90;
/// The same where only lines are known, and the source's text must do.
const ANSWERED_BY_LINES: usize = 80;

/// Compiles, runs and asks; prints a table. Any wrong name fails, and so do too many missing ones.
fn check(source: &str, builds: &[Build], frames: usize) {
    let mut table = String::new();
    let mut complaints = Vec::new();
    for (number, (compiler, options, known)) in builds.iter().enumerate() {
        if !present(compiler) {
            println!("skipped: {compiler} is not here");
            continue;
        }
        let stem = source.split('.').next().unwrap();
        let folder = folder(&format!("{stem}-{frames}-{number}"));
        let program = folder.join(stem);
        compile(compiler, options, &sources().join(source), &program);
        let names_alone = options.contains(&"-g1");
        let answers = ask(source, &run(&program), frames, names_alone);
        let by: Vec<String> = answers.by.iter().map(|(by, n)| format!("{by} {n}")).collect();
        let build = format!("{compiler} {}", options.join(" "));
        let _ = writeln!(
            table,
            "{source:<12} {build:<34} right {:>3}  none {:>2}  wrong {:>2}  ({})  {}",
            answers.right,
            answers.none.len(),
            answers.wrong.len(),
            by.join(", "),
            answers.none.join(" "),
        );
        let unknown = answers.wrong.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        complaints.extend(unknown.map(|(_, what)| format!("{build}: {what}")));
        let least = if names_alone { ANSWERED_BY_LINES } else { ANSWERED };
        if answers.right * 100 < (answers.right + answers.none.len()) * least {
            complaints.push(format!("{build}: no answer for {}", answers.none.join(", ")));
        }
        fs::remove_dir_all(folder).unwrap();
    }
    println!("{table}");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// As live recordings have them.
const LIVE: usize = 16;

#[test]
fn c_programs() {
    check(
        "plain.c",
        &[
            ("gcc", &["-g", "-O0"], &[]),
            ("gcc", &["-g", "-O1"], &[]),
            ("gcc", &["-g", "-O2"], &[]),
            ("gcc", &["-g", "-O3", "-march=x86-64-v3"], &[]),
            ("gcc", &["-gdwarf-4", "-O2"], &[]),
            ("gcc", &["-g", "-O2", "-no-pie", "-fno-pie"], &[]),
            ("gcc", &["-g1", "-O0"], WRAPPED),
            ("gcc", &["-g1", "-O2"], WRAPPED),
            ("clang", &["-g", "-O0"], &["level[]"]),
            ("clang", &["-g", "-O1"], &[]),
            ("clang", &["-g", "-O2"], &[]),
            ("clang", &["-g", "-O3"], &[]),
            ("clang", &["-gdwarf-4", "-O2"], &[]),
        ],
        LIVE,
    );
}

#[test]
fn cpp_programs() {
    check(
        "classes.cpp",
        &[
            ("g++", &["-g", "-O0"], &[]),
            ("g++", &["-g", "-O1"], &[]),
            ("g++", &["-g", "-O2"], &[]),
            ("g++", &["-g", "-O3"], &[]),
            ("clang++", &["-g", "-O0"], &[]),
            ("clang++", &["-g", "-O1"], &[]),
            ("clang++", &["-g", "-O2"], &[]),
            ("clang++", &["-gdwarf-4", "-O3"], &[]),
        ],
        LIVE,
    );
}

#[test]
fn fortran_programs() {
    check(
        "arrays.f90",
        &[
            ("gfortran", &["-g", "-O0"], &[]),
            ("gfortran", &["-g", "-O1"], &[]),
            ("gfortran", &["-g", "-O2"], &[]),
            ("gfortran", &["-g", "-O3"], &[]),
            ("gfortran", &["-gdwarf-4", "-O2"], &[]),
            ("gfortran", &["-g1", "-O0"], &[]),
        ],
        LIVE,
    );
}

#[test]
fn stripped_programs_have_no_variables() {
    let folder = folder("stripped");
    let program = folder.join("plain");
    compile("cc", &["-O1", "-s"], &sources().join("plain.c"), &program);
    let run = run(&program);
    let mut resolver = Resolver::new(&run.modules);
    assert!(run.allocations.len() > 20);
    for a in &run.allocations {
        assert_eq!(resolver.allocation(&a.frames, a.bytes), None);
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_source_that_is_a_fifo_is_not_opened() {
    let folder = folder("fifo");
    let source = folder.join("plain.c");
    fs::copy(sources().join("plain.c"), &source).unwrap();
    let program = folder.join("plain");
    compile("cc", &["-O0", "-g1"], &source, &program);
    let run = run(&program);
    fs::remove_file(&source).unwrap();
    assert!(Command::new("mkfifo").arg(&source).status().unwrap().success());
    let mut resolver = Resolver::new(&run.modules);
    let found = run.allocations.iter().filter_map(|a| resolver.allocation(&a.frames, a.bytes));
    assert!(found.filter(|v| v.found_by == FoundBy::SourceText).count() == 0);
    fs::remove_dir_all(folder).unwrap();
}
