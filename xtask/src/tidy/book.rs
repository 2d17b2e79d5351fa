//! The book: `docs/SUMMARY.md` has every page of `docs`, and every link of every page leads to a
//! file and a heading that exist.
//!
//! These are the checks of mdBook and of its link checker. They are made here because mdBook takes
//! minutes to build, and because pages also link files outside of the book.

use std::collections::{BTreeMap, BTreeSet};

use super::TextFile;

const SUMMARY: &str = "docs/SUMMARY.md";

/// A link of a page.
struct Link<'a> {
    line: usize,
    target: &'a str,
}

/// Complaints about all Markdown files. Files that are no text can be linked, too.
pub fn check(files: &[TextFile], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let pages: BTreeMap<&str, &str> = files
        .iter()
        .filter(|f| f.path.ends_with(".md"))
        .map(|f| (f.path.as_str(), f.text.as_str()))
        .collect();
    let mut complaints = Vec::new();
    let mut chapters = BTreeSet::new();
    for (path, text) in &pages {
        for link in links(text) {
            let (file, heading) = link.target.split_once('#').unwrap_or((link.target, ""));
            let target = if file.is_empty() { (*path).to_owned() } else { resolve(path, file) };
            let mut complain =
                |what: &str| complaints.push(format!("{path}:{}: {}: {what}", link.line, link.target));
            if *path == SUMMARY {
                chapters.insert(target.clone());
            }
            match pages.get(target.as_str()) {
                Some(page) if !heading.is_empty() && !headings(page).contains(heading) => {
                    complain("the page has no such heading");
                }
                None if !exists(&target) => complain("there is no such file"),
                _ => {}
            }
        }
    }
    let in_book = |path: &&str| path.starts_with("docs/") && !path["docs/".len()..].contains('/');
    for path in pages.keys().copied().filter(in_book).filter(|p| *p != SUMMARY) {
        if !chapters.contains(path) {
            complaints.push(format!("{path}: no chapter of {SUMMARY}"));
        }
    }
    complaints
}

/// Lines outside of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((i + 1, line))
    })
}

/// Links into the repository: `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    prose(text).flat_map(|(line, text)| {
        let ends = text.match_indices("](").filter(move |(i, _)| !in_code(text, *i));
        ends.filter_map(move |(i, _)| {
            let rest = &text[i + 2..];
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            let outside = target.contains("://") || target.starts_with("mailto:");
            (!outside && !target.is_empty()).then_some(Link { line, target })
        })
    })
}

/// Whether a place of a line lies between backquotes.
fn in_code(line: &str, place: usize) -> bool {
    line[..place].matches('`').count() % 2 == 1
}

/// `docs/a.md` and `../b.md` is `b.md`.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchors of a page, as mdBook and GitHub name them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (_, line) in prose(text) {
        let Some(title) = line.starts_with('#').then(|| line.trim_start_matches('#').trim()) else {
            continue;
        };
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let n = seen.entry(anchor.clone()).or_default();
        all.insert(if *n == 0 { anchor } else { format!("{anchor}-{n}") });
        *n += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn chapters_files_and_headings_are_looked_for() {
        let files = [
            file(SUMMARY, "- [A](a.md)\n- [Gone](gone.md)\n"),
            file(
                "docs/a.md",
                "# Of `x`, twice\n## Of x twice\n[up](../b.md#top) [none](#no) [self](#of-x-twice-1)\n",
            ),
            file(
                "docs/b.md",
                "`[not a link](x.md)`\n```\n[code](y.md)\n```\n[z](z.png) [w](https://example.org)\n",
            ),
            file("b.md", "# Top\n"),
        ];
        assert_eq!(
            check(&files, |path| path == "docs/z.png"),
            [
                "docs/SUMMARY.md:2: gone.md: there is no such file",
                "docs/a.md:3: #no: the page has no such heading",
                "docs/b.md: no chapter of docs/SUMMARY.md",
            ]
        );
    }

    #[test]
    fn a_path_is_relative_to_its_page() {
        assert_eq!(resolve("docs/a.md", "../b/./c.md"), "b/c.md");
        assert_eq!(resolve("README.md", "docs/a.md"), "docs/a.md");
    }
}
