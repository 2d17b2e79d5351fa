//! Rules for files: how long, what must not be left in them, which licence.

use super::TextFile;
use crate::metadata::Package;

/// One file, one idea: a longer one has two.
const MAX_LINES: usize = 800;

/// What is checked for length and leftovers, by the end of its name.
const SOURCES: &[&str] =
    &[".rs", ".c", ".h", ".cc", ".cpp", ".f90", ".F90", ".f", ".sh", ".ts", ".py", ".cmake"];

/// Crates without the standard library: they end up in programs, or have no business with an
/// operating system.
const NO_STD: &[&str] = &["hooks", "lockless", "model", "policy", "rounds"];

/// What a package's manifest says.
const LICENCE: &str = "MIT OR Apache-2.0";

fn sources(files: &[TextFile]) -> impl Iterator<Item = &TextFile> {
    files.iter().filter(|f| SOURCES.iter().any(|s| f.path.ends_with(s)))
}

/// No source file is too long.
pub fn check_lengths(files: &[TextFile]) -> Vec<String> {
    sources(files)
        .map(|f| (f, f.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(f, lines)| format!("{}: {lines} lines, at most {MAX_LINES}", f.path))
        .collect()
}

/// Columns of a comment.
const COMMENT_WIDTH: usize = 100;

/// Columns of Markdown.
const MARKDOWN_WIDTH: usize = 120;

/// How a language marks comments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    Rust,
    C,
    Fortran,
    Markdown,
}

/// The language of a file by the end of its name.
fn marks(path: &str) -> Option<Marks> {
    match path.rsplit('.').next() {
        Some("rs") => Some(Marks::Rust),
        Some("c" | "h" | "cc" | "cpp" | "ts") => Some(Marks::C),
        Some("f90" | "F90" | "f") => Some(Marks::Fortran),
        Some("md") => Some(Marks::Markdown),
        _ => None,
    }
}

/// Comments and Markdown keep to their widths. Tables, code and lines with a link may be longer.
/// Comments behind code and lines of a string are not checked.
pub fn check_widths(files: &[TextFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let Some(marks) = marks(&file.path) else { continue };
        let width = if marks == Marks::Markdown { MARKDOWN_WIDTH } else { COMMENT_WIDTH };
        let (mut is_code, mut is_block) = (false, false);
        for (i, line) in file.text.lines().enumerate() {
            let text = match marks {
                Marks::Rust => comment(line),
                Marks::C => c_comment(line, &mut is_block),
                Marks::Fortran => fortran_comment(line),
                Marks::Markdown => Some(line),
            };
            let Some(text) = text.map(str::trim_start) else {
                is_code = false;
                continue;
            };
            is_code ^= text.starts_with("```");
            let is_free = is_code || text.starts_with('|') || text.contains("](") || text.contains("\\n");
            let columns = line.chars().count();
            if columns > width && !is_free {
                complaints.push(format!("{}:{}: {columns} columns, at most {width}", file.path, i + 1));
            }
        }
    }
    complaints
}

/// What stands behind the marks of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']))
}

/// The same in C, C++ and TypeScript. `is_block`: the line lies within a comment of several lines;
/// afterwards, whether the next one does.
fn c_comment<'a>(line: &'a str, is_block: &mut bool) -> Option<&'a str> {
    let text = line.trim_start();
    let begins = text.starts_with("/*");
    let is_comment = *is_block || begins || text.starts_with("//");
    *is_block = (*is_block || begins) && !text.contains("*/");
    is_comment.then(|| text.trim_start_matches(['/', '*']))
}

/// The same in Fortran, where `!$` begins a directive.
fn fortran_comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix('!').filter(|text| !text.starts_with('$'))
}

/// Nothing is left for later.
pub fn check_markers(files: &[TextFile]) -> Vec<String> {
    // Put together here, so that this file passes.
    let markers = [["TO", "DO"], ["FIX", "ME"], ["to", "do!("], ["unimple", "mented!("]].map(|m| m.concat());
    let mut complaints = Vec::new();
    for file in sources(files) {
        for (i, line) in file.text.lines().enumerate() {
            if let Some(marker) = markers.iter().find(|m| line.contains(m.as_str())) {
                complaints.push(format!("{}:{}: '{marker}': finish it, or leave it out", file.path, i + 1));
            }
        }
    }
    complaints
}

/// No test calls cargo. A build within a test takes the lock of the target folder, and other tests
/// wait for it.
pub fn check_cargo(files: &[TextFile]) -> Vec<String> {
    // Put together here, so that this file passes.
    let mark = ["env!(\"CAR", "GO\")"].concat();
    let mut complaints = Vec::new();
    for file in files.iter().filter(|f| f.path.contains("/tests/") && f.path.ends_with(".rs")) {
        let lines = file.text.lines().enumerate().filter(|(_, line)| line.contains(&mark));
        let what = "a test does not call cargo: 'support::built' requires what was built before";
        complaints.extend(lines.map(|(i, _)| format!("{}:{}: {what}", file.path, i + 1)));
    }
    complaints
}

/// The crates that promise it are `no_std`.
pub fn check_no_std(files: &[TextFile]) -> Vec<String> {
    let root = |name: &str| files.iter().find(|f| f.path == format!("crates/{name}/src/lib.rs"));
    let broken = NO_STD.iter().filter(|n| root(n).is_some_and(|f| !f.text.contains("#![no_std]")));
    broken.map(|n| format!("crates/{n}/src/lib.rs: lacks #![no_std]")).collect()
}

/// The licences' texts are there and every package names them.
pub fn check_licences(files: &[TextFile], packages: &[Package]) -> Vec<String> {
    let texts = ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"];
    let missing = texts.iter().filter(|t| !files.iter().any(|f| f.path == **t && !f.text.is_empty()));
    let unnamed = packages.iter().filter(|p| p.license.as_deref() != Some(LICENCE));
    missing
        .map(|t| format!("{t} is missing"))
        .chain(unnamed.map(|p| format!("{}: its manifest lacks 'license.workspace = true'", p.name)))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_comments_and_long_markdown_are_found() {
        let words = "word ".repeat(25);
        let text =
            format!("/// {words}\nlet a = \"{words}\";\n//! | {words} |\n//! ```\n//! {words}\n//! ```\n");
        assert_eq!(check_widths(&[file("a.rs", &text)]), ["a.rs:1: 129 columns, at most 100"]);
        let text = format!("{words}\n| {words} |\n[{words}](x)\n```\n{words}\n```\n");
        assert_eq!(check_widths(&[file("a.md", &text)]), ["a.md:1: 125 columns, at most 120"]);
        let text = format!("int a; /* {words} */\n/* a\n * {words}\n */\nf(\"{words}\");\n// {words}\n");
        let both = ["a.ts:3: 128 columns, at most 100", "a.ts:6: 128 columns, at most 100"];
        assert_eq!(check_widths(&[file("a.ts", &text)]), both);
        let text = format!("a = 1 ! {words}\n!$omp {words}\n   ! {words}\n");
        assert_eq!(check_widths(&[file("a.f90", &text)]), ["a.f90:3: 130 columns, at most 100"]);
    }

    use super::super::file;
    use super::*;

    #[test]
    fn only_sources_have_a_length() {
        let long = "x\n".repeat(MAX_LINES + 1);
        let files = [file("a.rs", &long), file("LICENSE-APACHE", &long), file("b.rs", &long[2..])];
        assert_eq!(check_lengths(&files), ["a.rs: 801 lines, at most 800"]);
    }

    #[test]
    fn what_is_left_for_later_is_found() {
        let marker = ["TO", "DO"].concat();
        let complaints =
            check_markers(&[file("a.c", &format!("x\n/* {marker} */")), file("b.rs", "// todo list")]);
        assert_eq!(complaints, [format!("a.c:2: '{marker}': finish it, or leave it out")]);
    }

    #[test]
    fn a_test_that_calls_cargo_is_found() {
        let calls = ["env!(\"CAR", "GO\")"].concat();
        let files =
            [file("crates/a/tests/x.rs", &format!("\n{calls}")), file("crates/a/benches/x.rs", &calls)];
        let complaints = check_cargo(&files);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("crates/a/tests/x.rs:2: "), "{complaints:?}");
    }

    #[test]
    fn crates_keep_their_promise() {
        assert_eq!(check_no_std(&[file("crates/model/src/lib.rs", "#![no_std]")]), Vec::<String>::new());
        assert_eq!(check_no_std(&[file("crates/policy/src/lib.rs", "")]).len(), 1);
    }

    #[test]
    fn licences_are_there_and_named() {
        let named = |license: Option<&str>| Package {
            name: "x".to_owned(),
            license: license.map(str::to_owned),
            dependencies: Default::default(),
            closure: Default::default(),
        };
        let files = ["LICENSE", "LICENSE-MIT", "LICENSE-APACHE"].map(|p| file(p, "text"));
        assert_eq!(check_licences(&files, &[named(Some(LICENCE))]), Vec::<String>::new());
        assert_eq!(check_licences(&files[1..], &[named(None)]).len(), 2);
    }
}
