//! What `docs/guarantees.md` promises: each line names tests, and they exist.

use super::TextFile;

const PAGE: &str = "docs/guarantees.md";
/// The head of the table whose lines are promises.
const HEAD: &str = "| held by |";

/// Every promise names a test that exists.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let Some(page) = files.iter().find(|f| f.path == PAGE) else { return vec![format!("{PAGE} is missing")] };
    let rows = page.text.lines().enumerate().skip_while(|(_, l)| !l.ends_with(HEAD)).skip(2);
    let mut complaints = Vec::new();
    for (i, row) in rows.take_while(|(_, line)| line.starts_with('|')) {
        let held_by = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let names: Vec<&str> = held_by.split('`').filter(|part| part.contains("::")).collect();
        if names.is_empty() {
            complaints.push(format!("{PAGE}:{}: no test holds it", i + 1));
        }
        let unknown = names.into_iter().filter(|name| !exists(files, name));
        complaints.extend(unknown.map(|name| format!("{PAGE}:{}: there is no test {name}", i + 1)));
    }
    complaints
}

/// Whether a file of tests has the test: `file::test`.
fn exists(files: &[TextFile], name: &str) -> bool {
    let Some((file, test)) = name.split_once("::") else { return false };
    let end = format!("/{file}.rs");
    let is_it = |f: &&TextFile| f.path.contains("/tests/") && f.path.ends_with(&end);
    // A function, or a line of a macro that makes one.
    let (function, made) = (format!("fn {test}("), format!("{test} \""));
    files.iter().filter(is_it).any(|f| {
        let has = |l: &str| l.starts_with(&function) || l.starts_with(&made);
        f.text.lines().map(str::trim_start).any(has)
    })
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn a_promise_without_a_test_is_found() {
        let page = "| it | held by |\n|---|---|\n| a | `x::one`, `x::two` |\n| b | `x::three` |\n| c | hope |\n\n| d | e |\n";
        let tests = file("crates/a/tests/x.rs", "#[test]\nfn one() {\n}\n    two \"name\";\n");
        assert_eq!(
            check(&[file(PAGE, page), tests]),
            ["docs/guarantees.md:4: there is no test x::three", "docs/guarantees.md:5: no test holds it"]
        );
    }
}
