//! `unsafe` lives in a few crates; all others say that they have none.

use super::TextFile;

/// Where it may be: system calls, and what is loaded into other processes.
const MAY: &[&str] = &["sys", "hooks", "runtime", "agent", "recorder", "tracer", "guest", "plugin", "loops"];

const FORBID: &str = "forbid(unsafe_code)";

/// Other crates do not contain the keyword, unless their root forbids it and the compiler answers
/// for it.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let Some((source, _)) = file.path.split_once("/src/") else { continue };
        let may = source.strip_prefix("crates/").is_some_and(|c| MAY.contains(&c));
        if may || !file.path.ends_with(".rs") {
            continue;
        }
        let is_root = |f: &&TextFile| {
            f.path == format!("{source}/src/lib.rs") || f.path == format!("{source}/src/main.rs")
        };
        let mut roots = files.iter().filter(is_root).peekable();
        let forbids = roots.peek().is_some() && roots.all(|r| r.text.contains(FORBID));
        if !forbids && let Some(line) = first_use(&file.text) {
            complaints.push(format!("{}:{line}: 'unsafe' outside of {}", file.path, MAY.join(", ")));
        }
    }
    complaints
}

/// The line of the first `unsafe` that is neither in a comment nor part of a longer word.
fn first_use(text: &str) -> Option<usize> {
    let word = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "unsafe");
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().position(|line| word(&code(line))).map(|i| i + 1)
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn it_is_found_with_its_line() {
        let files =
            [file("crates/sim/src/lib.rs", "mod a;"), file("crates/sim/src/a.rs", "\nunsafe { x() }")];
        assert_eq!(
            check(&files),
            [
                "crates/sim/src/a.rs:2: 'unsafe' outside of sys, hooks, runtime, agent, recorder, tracer, guest, plugin, loops"
            ]
        );
    }

    #[test]
    fn words_and_comments_do_not_count() {
        let text = "// unsafe\nlet unsafe_op = 1; // is unsafe";
        assert_eq!(check(&[file("crates/sim/src/lib.rs", text)]), Vec::<String>::new());
    }

    #[test]
    fn it_may_be_where_it_lives_and_where_the_compiler_answers() {
        let files = [
            file("crates/sys/src/lib.rs", "unsafe { x() }"),
            file("crates/cli/src/lib.rs", "#![forbid(unsafe_code)]"),
            file("crates/cli/src/a.rs", "let text = \"unsafe\";"),
        ];
        assert_eq!(check(&files), Vec::<String>::new());
    }
}
