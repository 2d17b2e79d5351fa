//! Comments of the files that are made, at most [`WIDTH`] columns wide.

/// Columns of a comment.
pub const WIDTH: usize = 100;

/// `lines` with at most `room` columns each: filled anew if one is longer. Empty lines stay.
pub fn filled(lines: &[String], room: usize) -> Vec<String> {
    if lines.iter().all(|l| l.chars().count() <= room) {
        return lines.to_vec();
    }
    let mut out: Vec<String> = Vec::new();
    for paragraph in lines.split(String::is_empty) {
        if !out.is_empty() {
            out.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.iter().flat_map(|l| l.split(' ')) {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                out.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled_only_where_one_is_too_long() {
        let lines = ["one two", "three", "", "four"].map(str::to_owned);
        assert_eq!(filled(&lines, 7), lines);
        assert_eq!(filled(&lines, 5), ["one", "two", "three", "", "four"]);
        assert_eq!(filled(&["aa bb cc".into(), "dd".into()], 6), ["aa bb", "cc dd"]);
    }
}
