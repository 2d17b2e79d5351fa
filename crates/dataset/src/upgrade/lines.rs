//! The lines of a table of an old form. What makes no sense is left out and named.

use crate::foreign::clean;

/// Why a line was left out, for the reader.
#[derive(Debug, Default)]
pub struct SkippedLine {
    /// The first, in words.
    first: Option<String>,
    /// How many there are.
    lines: u64,
}

impl SkippedLine {
    /// Notes a line of `name`; the first one is 1.
    pub fn note(&mut self, name: &str, line: usize, why: &str) {
        self.lines += 1;
        self.first.get_or_insert_with(|| format!("{name}, line {line}: {why}"));
    }

    /// What is missing, in words.
    pub fn into_words(self) -> Option<String> {
        let first = self.first?;
        Some(match self.lines {
            1 => first,
            n => format!("{first}; and {} more lines make no sense", n - 1),
        })
    }
}

/// Hands each line behind the heading to `take`, with its number; `take` says why it makes no
/// sense.
///
/// # Errors
/// The heading is another one.
pub fn each(
    name: &str,
    text: &str,
    heading: &str,
    wrong: &mut SkippedLine,
    mut take: impl FnMut(&str) -> Result<(), &'static str>,
) -> Result<(), String> {
    let mut lines = text.split_inclusive('\n').zip(1..);
    let strip = |line: &'_ str| line.strip_suffix('\n').map(|l| l.trim_end_matches('\r').to_owned());
    let found = lines.next().map(|(line, _)| line.trim_end());
    if found != Some(heading) {
        let found: String = found.unwrap_or_default().chars().take(80).collect();
        return Err(format!("{name}, line 1: its heading is '{}', not '{heading}'", clean(&found)));
    }
    for (line, number) in lines {
        match strip(line) {
            None => wrong.note(name, number, "it is cut off"),
            Some(line) => {
                if let Err(why) = take(&line) {
                    wrong.note(name, number, why);
                }
            }
        }
    }
    Ok(())
}

/// A line that is not what it should be.
pub const NO_SENSE: &str = "it makes no sense";

/// `0x1f` as a number.
pub fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<String>, Option<String>) {
        let (mut wrong, mut lines) = (SkippedLine::default(), Vec::new());
        let take = |line: &str| {
            if line.contains('?') {
                return Err(NO_SENSE);
            }
            lines.push(line.to_owned());
            Ok(())
        };
        each("x.csv", text, "a,b", &mut wrong, take).unwrap();
        (lines, wrong.into_words())
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_named() {
        assert_eq!(all("a,b\n1\r\n2\n"), (vec!["1".into(), "2".into()], None));
        let (lines, wrong) = all("a,b\n?\n2\n?\n3");
        assert_eq!(lines, ["2"]);
        assert_eq!(wrong.unwrap(), "x.csv, line 2: it makes no sense; and 2 more lines make no sense");
        assert_eq!(all("a,b\n3").1.unwrap(), "x.csv, line 2: it is cut off");
    }

    #[test]
    fn another_heading_is_shown_without_what_a_terminal_obeys() {
        let error = each("x.csv", "\x1b[2Jhello\n", "a,b", &mut SkippedLine::default(), |_| Ok(()));
        let error = error.unwrap_err();
        assert!(error.starts_with("x.csv, line 1") && !error.contains('\x1b'), "{error}");
    }
}
