//! Plain English: short sentences in Markdown, and words that we do not use.

use super::TextFile;

/// Words of a sentence: the longest one, and the average of a file.
const LONGEST: usize = 40;
const AVERAGE: usize = 20;

/// Each of these leaves the reader to guess who or what is meant. Beside it: what to write instead.
const RIDDLES: &[(&str, &str)] = &[
    ("so many", "the number, by name: `count` pages"),
    ("told of", "who tells whom: the driver tells the policy"),
    ("how-many", "a name for the number"),
    ("of what is", "the thing's name"),
    ("than the least", "the yardstick's name"),
    ("for which the others", "the thing's name"),
    ("what there was no room", "the thing's name"),
    ("are had", "who has it"),
];

/// Sentences of Markdown are short, and neither Markdown nor comments have words of [`RIDDLES`].
pub fn check(files: &[TextFile]) -> Vec<String> {
    let of = |end: &'static str| files.iter().filter(move |f| f.path.ends_with(end));
    let rust = of(".rs").filter(|f| !f.path.ends_with("tidy/prose.rs"));
    of(".md").flat_map(lengths).chain(of(".md").chain(rust).flat_map(riddles)).collect()
}

/// What is wrong with the lengths of a Markdown file's sentences.
fn lengths(file: &TextFile) -> Vec<String> {
    let words: Vec<(usize, String)> =
        sentences(&file.text).into_iter().map(|s| (s.split_whitespace().count(), s)).collect();
    let long = words.iter().filter(|(count, _)| *count > LONGEST);
    let mut complaints: Vec<String> = long
        .map(|(count, sentence)| {
            let start: String = sentence.chars().take(50).collect();
            format!("{}: a sentence of {count} words, at most {LONGEST}: {start}…", file.path)
        })
        .collect();
    let sum: usize = words.iter().map(|(count, _)| count).sum();
    if sum > AVERAGE * words.len() {
        let average = sum as f64 / words.len() as f64;
        complaints.push(format!("{}: {average:.1} words a sentence, at most {AVERAGE}", file.path));
    }
    complaints
}

/// The sentences of Markdown. Code, tables and headings have none; a colon or semicolon ends one.
fn sentences(text: &str) -> Vec<String> {
    let (mut paragraphs, mut in_code) = (vec![String::new()], false);
    for raw in text.lines() {
        let line = raw.trim();
        let is_indented_code = raw.starts_with("    ") && paragraphs.last().is_some_and(String::is_empty);
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        let item = line.strip_prefix("- ").or_else(|| numbered(line));
        if in_code
            || is_fence
            || is_indented_code
            || line.is_empty()
            || line.starts_with(['|', '#', '!', '<'])
        {
            paragraphs.push(String::new());
            continue;
        }
        if item.is_some() {
            paragraphs.push(String::new());
        }
        let last = paragraphs.last_mut().expect("there is one");
        *last += item.unwrap_or(line);
        last.push(' ');
    }
    let ends = |word: &str| word.ends_with(['.', ':', ';', '?', '!']);
    let mut sentences = Vec::new();
    for paragraph in paragraphs {
        let mut sentence: Vec<&str> = Vec::new();
        for word in paragraph.split_whitespace() {
            sentence.push(word);
            if ends(word) {
                sentences.push(std::mem::take(&mut sentence).join(" "));
            }
        }
        sentences.push(sentence.join(" "));
    }
    sentences.retain(|s| !s.is_empty());
    sentences
}

/// The text of `1. text`.
fn numbered(line: &str) -> Option<&str> {
    let (number, text) = line.split_once(". ")?;
    number.parse::<u32>().is_ok().then_some(text)
}

/// The riddles of a file: of Markdown all, of Rust those of comments.
fn riddles(file: &TextFile) -> Vec<String> {
    let is_rust = file.path.ends_with(".rs");
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let text = if is_rust { line.split_once("//").map_or("", |(_, comment)| comment) } else { line };
        let text = text.to_lowercase();
        let riddle = RIDDLES.iter().find(|(words, _)| has(&text, words));
        found.extend(
            riddle.map(|(words, instead)| format!("{}:{}: '{words}': say {instead}", file.path, number + 1)),
        );
    }
    found
}

/// Whether `text` has `words` as whole words.
fn has(text: &str, words: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + words.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn sentences_end_at_full_stops_colons_and_paragraphs() {
        let text = "# A title\n\nOne two. Three:\nfour\n\n- five six\n- seven\n\n```\nno code\n```\n\n    nor this\n| no | table |\n";
        assert_eq!(sentences(text), ["One two.", "Three:", "four", "five six", "seven"]);
    }

    #[test]
    fn long_sentences_are_named() {
        let long = vec!["word"; 41].join(" ");
        assert!(lengths(&file("a.md", &long))[0].contains("a sentence of 41 words, at most 40: word word"));
        let many = vec![format!("{}.", vec!["word"; 21].join(" ")); 3].join(" ");
        assert_eq!(lengths(&file("a.md", &many)), ["a.md: 21.0 words a sentence, at most 20"]);
        assert!(lengths(&file("a.md", "Short. And short.")).is_empty());
    }

    #[test]
    fn riddles_are_found_in_comments_and_markdown_as_whole_words() {
        let said = riddles(&file("a.rs", "let so_many = 1; // so many pages\nfn so() {} \"so many\"\n"));
        assert_eq!(said, ["a.rs:1: 'so many': say the number, by name: `count` pages"]);
        assert_eq!(riddles(&file("a.md", "Not told offhand, but told of pages")).len(), 1);
        assert!(riddles(&file("a.md", "told offhand")).is_empty());
    }
}
