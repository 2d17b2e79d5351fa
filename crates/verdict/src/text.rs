//! Times, shares and lines as people read them.

use homenode_model::Ns;

/// Columns of a terminal that every line of the answer fits.
pub const COLUMNS: usize = 80;

/// A time in its unit.
pub fn seconds(time: Ns) -> String {
    let s = time.0 as f64 * 1e-9;
    match time.0 {
        0..1_000_000 => format!("{:.1} µs", s * 1e6),
        1_000_000..1_000_000_000 => format!("{:.2} ms", s * 1e3),
        _ => format!("{s:.2} s"),
    }
}

/// A share; a dash of nothing.
pub fn percent(part: u64, all: u64) -> String {
    if all == 0 { "–".into() } else { format!("{:.1} %", part as f64 * 100.0 / all as f64) }
}

/// The size of `pages` small pages.
pub fn mib(pages: u64) -> String {
    format!("{:.1} MiB", pages as f64 / 256.0)
}

/// The first of these that has at most `columns`; otherwise as much of the last as there is room
/// for.
pub fn first_that_fits(forms: &[String], columns: usize) -> String {
    let fits = |text: &&String| text.chars().count() <= columns;
    match (forms.iter().find(fits), forms.last()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        (None, None) => String::new(),
    }
}

/// The words of a text in at most `most` lines of `columns`; what there is no room for is cut off.
pub fn wrapped(text: &str, columns: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| first_that_fits(std::slice::from_ref(line), columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_more_lines_and_columns_than_there_are() {
        assert_eq!(wrapped("one two three", 7, 3), ["one two", "three"]);
        assert_eq!(wrapped("one two three four", 7, 2), ["one two", "three …"]);
        assert_eq!(wrapped("", 7, 2), Vec::<String>::new());
        assert_eq!(first_that_fits(&["too long".into(), "short".into()], 5), "short");
        assert_eq!(first_that_fits(&["too long".into()], 5), "too …");
    }
}
