//! A function fits on a screen or two: at most [`MOST`] lines from `fn` to the closing brace.
//!
//! A function whose body is one `match` may be longer: its arms are a table. The check reads lines.
//! `rustfmt` puts the closing brace of a function below the first character of its signature.

use super::TextFile;

/// The most lines of a function.
const MOST: usize = 80;

/// Longer functions: file, name, lines. A number may only fall.
const LEFT: &[(&str, &str, usize)] = &[("crates/cache/src/hierarchy.rs", "behind_the_front", 126)];

/// A function that is too long.
#[derive(Debug, PartialEq, Eq)]
struct Long {
    name: String,
    lines: usize,
}

/// Complains of each longer function that [`LEFT`] does not have, and of numbers there that are not
/// those of the sources.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let ours = |path: &str| path.starts_with("crates/") || path.starts_with("xtask/");
    let sources = files.iter().filter(|f| f.path.ends_with(".rs") && ours(&f.path));
    let found: Vec<(&str, Long)> =
        sources.flat_map(|f| long(&f.text).into_iter().map(|l| (f.path.as_str(), l))).collect();
    judge(&found, LEFT)
}

fn judge(found: &[(&str, Long)], left: &[(&str, &str, usize)]) -> Vec<String> {
    let is = |(path, long): &(&str, Long), entry: &(&str, &str, usize)| {
        *path == entry.0 && long.name == entry.1 && long.lines == entry.2
    };
    let new = found.iter().filter(|f| !left.iter().any(|entry| is(f, entry)));
    let new =
        new.map(|(path, long)| format!("{path}: {} has {} lines, {MOST} are enough", long.name, long.lines));
    let stale = left.iter().filter(|entry| !found.iter().any(|f| is(f, entry)));
    let stale = stale.map(|(path, name, lines)| {
        format!("xtask/src/tidy/functions.rs: {path} has no {name} of {lines} lines; take it off")
    });
    new.chain(stale).collect()
}

/// The functions of a text that are too long.
fn long(text: &str) -> Vec<Long> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter_map(|(at, line)| Some((at, function(line)?)));
    starts
        .filter_map(|(at, name)| {
            let margin = margin(lines[at]);
            let ends = |line: &&str| self::margin(line) == margin && line.trim_end().ends_with(['}', ';']);
            let length = lines[at..].iter().position(ends)? + 1;
            let is_long = length > MOST && !is_match(&lines[at + 1..at + length - 1], margin + 4);
            is_long.then(|| Long { name: name.to_owned(), lines: length })
        })
        .collect()
}

/// The name of the function whose signature begins in a line.
fn function(line: &str) -> Option<&str> {
    let before = line.split_once("fn ")?.0.trim_start();
    let words = ["pub", "const", "unsafe", "async", "extern", "\"C\"", "\"C-unwind\"", "\"sysv64\""];
    let is_modifier = |word: &str| words.contains(&word) || word.starts_with("pub(") || word.ends_with(')');
    if !before.split_whitespace().all(is_modifier) {
        return None;
    }
    let name = line.split_once("fn ")?.1.split(['(', '<']).next()?;
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

/// Whether a body with this margin is a `match` and nothing else. Lines of a signature that is
/// broken over several lines have no place in it: they end with a line at the function's margin.
fn is_match(body: &[&str], margin: usize) -> bool {
    let begins = |line: &&&str| self::margin(line) == margin && !line.trim_start().starts_with("//");
    let heads: Vec<&str> = body.iter().filter(begins).map(|line| line.trim()).collect();
    let without_signature = heads.iter().position(|line| line.starts_with("match ")).unwrap_or(heads.len());
    let is_parameter = |line: &&str| line.ends_with(',');
    let parameters = &heads[..without_signature];
    parameters.iter().all(is_parameter) && heads[without_signature..].len() == 2
}

/// Blanks before the first character.
fn margin(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str, inside: &str, tail: &str) -> String {
        format!("impl A {{\n{head}\n{}{tail}\n    }}\n}}\n", inside.repeat(MOST))
    }

    #[test]
    fn long_functions_are_found_and_short_ones_are_not() {
        let text = of("    pub(crate) const fn run<T>(t: T) {", "        go();\n", "        end()");
        assert_eq!(long(&text), [Long { name: "run".to_owned(), lines: MOST + 3 }]);
        let broken = of("    fn run(\n        t: T,\n    ) -> T {", "        go();\n", "        end()");
        assert_eq!(long(&broken), [Long { name: "run".to_owned(), lines: MOST + 5 }]);
        assert!(long("fn f() {\n    go();\n}\n// fn g(\nfn h();\n").is_empty());
    }

    #[test]
    fn one_match_may_be_long_and_two_may_not() {
        let arms = "            1 => go(),\n";
        let one = of("    fn run(t: T) {\n        match t {", arms, "        }");
        assert!(long(&one).is_empty());
        let more = of("    fn run(t: T) {\n        go();\n        match t {", arms, "        }");
        assert_eq!(long(&more).len(), 1);
    }

    #[test]
    fn a_number_that_is_not_the_source_s_is_refused() {
        let found = || [("crates/a/src/lib.rs", Long { name: "run".to_owned(), lines: 90 })];
        assert!(judge(&found(), &[("crates/a/src/lib.rs", "run", 90)]).is_empty());
        assert_eq!(judge(&found(), &[("crates/a/src/lib.rs", "run", 91)]).len(), 2);
        assert_eq!(judge(&found(), &[]).len(), 1);
    }
}
