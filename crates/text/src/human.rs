//! Numbers, sizes, times and shares as people read them. Forms for programs have none of this.

pub use homenode_error::digits::grouped;
use homenode_model::{Bytes, Ns, Ps};

/// A gap within a number or between a number and its unit: text never wraps there. Whoever prints
/// a text turns it into a space with [`plain`].
pub const GLUE: char = '\u{a0}';

/// The text with ordinary spaces.
pub fn plain(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// The text as one word: it does not wrap.
pub fn glued(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// A count: all digits up to 99 999 999, else three of them and the power of ten, as `1.23 G`.
pub fn count(value: u64) -> String {
    if value < 100_000_000 {
        return grouped(value);
    }
    scaled(
        value,
        &[(1_000_000, "M"), (1_000_000_000, "G"), (1_000_000_000_000, "T"), (1_000_000_000_000_000, "P")],
    )
}

/// The value in the largest unit that gives at least 1, with three digits; the largest unit with
/// as many as there are.
fn scaled(value: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().rev().find(|(size, _)| value >= *size).or(units.first());
    let Some((size, unit)) = fits else { return grouped(value) };
    let number = value as f64 / *size as f64;
    if value.is_multiple_of(*size) {
        return format!("{} {unit}", grouped(value / size));
    }
    match number {
        n if n >= 99.95 => format!("{} {unit}", grouped(n.round() as i128)),
        n if n >= 9.995 => format!("{} {unit}", fixed(n, 1)),
        n => format!("{} {unit}", fixed(n, 2)),
    }
}

/// Bytes in binary units: `16.1 MiB`.
pub fn bytes(bytes: Bytes) -> String {
    let units =
        [(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB"), (1 << 50, "PiB")];
    scaled(bytes.0, &units)
}

/// A time: `850 ns`, `12.0 ms`, `1.20 s`.
pub fn time(time: Ns) -> String {
    if time.0 == 0 {
        return "0 s".into();
    }
    scaled(time.0, &[(1, "ns"), (1000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")])
}

/// A modelled time, as [`time`].
pub fn modelled(time: Ps) -> String {
    self::time(time.ns())
}

/// A number with `digits` digits after the point. There is no `-0.0`.
pub fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    if is_zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// A share in percent without its sign: `75.0`. What is not nothing is never `0.0`.
pub fn percent(percent: f64) -> String {
    match percent {
        p if p > 0.0 && p < 0.05 => "<0.1".into(),
        p if (99.95..100.0).contains(&p) => ">99.9".into(),
        p => fixed(p, 1),
    }
}

/// A number of things: `1 page`, `770 pages`.
pub fn plural(n: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { several })
}

/// Columns that the text takes on a terminal.
pub fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// The text in at most `most` columns: the middle of a longer one becomes an ellipsis.
pub fn elided(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(1);
    let take = |chars: &mut dyn Iterator<Item = char>, room: usize| {
        let mut left = room;
        let mut out = Vec::new();
        for c in chars {
            let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
            if wide > left {
                break;
            }
            left -= wide;
            out.push(c);
        }
        out
    };
    let head: String = take(&mut text.chars(), room.div_ceil(2)).into_iter().collect();
    // A wide character that did not fit leaves its room to the tail.
    let tail: String = take(&mut text.chars().rev(), room - width(&head)).into_iter().rev().collect();
    if most == 0 { String::new() } else { format!("{head}…{tail}") }
}

/// The text in lines of at most `most` columns, broken at spaces. A longer word stands alone.
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A text of several lines in lines of at most `most` columns. A longer line goes on under its
/// second column, as the description of an option does. Without one, it goes on under its own
/// beginning, further to the right if the line is indented. A second column that would be too
/// narrow stands on a line of its own.
pub fn hung(text: &str, most: usize) -> String {
    text.split('\n').map(|line| hung_line(line, most)).collect::<Vec<_>>().join("\n")
}

/// The narrowest second column of [`hung`].
const NARROW: usize = 30;

fn hung_line(line: &str, most: usize) -> String {
    if width(line) <= most {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let gap = line[indent..].find("  ").map(|gap| indent + gap);
    let second = gap.map(|gap| gap + line[gap..].len() - line[gap..].trim_start().len());
    let (mut out, rest, hang) = match gap.zip(second) {
        Some((_, second)) if width(&line[..second]) + NARROW <= most => {
            (line[..second].to_owned(), &line[second..], width(&line[..second]))
        }
        Some((gap, second)) => {
            let hang = indent + 4;
            (format!("{}\n{}", &line[..gap], " ".repeat(hang)), &line[second..], hang)
        }
        None => (line[..indent].to_owned(), &line[indent..], indent + if indent > 0 { 2 } else { 0 }),
    };
    out += &wrapped(rest, most.saturating_sub(hang)).join(&format!("\n{}", " ".repeat(hang)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_have_three_digits() {
        let of = [0, 99_999_999, 100_000_000, 123_456_789, 1_234_567_890, u64::MAX].map(count);
        assert_eq!(of, ["0", "99 999 999", "100 M", "123 M", "1.23 G", "18 447 P"]);
    }

    #[test]
    fn sizes_and_times_have_units() {
        let sizes = [0, 8, 1023, 1536, 16 << 20, 16_900_000, u64::MAX].map(|n| bytes(Bytes(n)));
        assert_eq!(sizes, ["0 B", "8 B", "1023 B", "1.50 KiB", "16 MiB", "16.1 MiB", "16 384 PiB"]);
        let times = [0, 850, 12_020_000, 412_000_000, 3_600_000_000_000].map(|n| time(Ns(n)));
        assert_eq!(times, ["0 s", "850 ns", "12.0 ms", "412 ms", "3600 s"]);
    }

    #[test]
    fn there_is_no_minus_nothing() {
        assert_eq!([fixed(-0.0, 1), fixed(-0.04, 1), fixed(-0.06, 1)], ["0.0", "0.0", "-0.1"]);
        assert_eq!([0.0, 0.001, 50.0, 99.99, 100.0].map(percent), ["0.0", "<0.1", "50.0", ">99.9", "100.0"]);
    }

    #[test]
    fn long_texts_lose_their_middle() {
        assert_eq!(elided("temperature_old", 15), "temperature_old");
        assert_eq!(elided("temperature_old", 9), "temp…_old");
        assert_eq!(width(&elided("変数変数変数", 7)), 7);
        assert_eq!([elided("abc", 1), elided("abc", 0)], ["…", ""]);
    }

    #[test]
    fn a_long_line_goes_on_under_its_second_column() {
        let text = "Examples:\n  show REC     what is remote in a recording, and where\n  show REC  all";
        let expected = "\
Examples:
  show REC     what is remote in a recording,
               and where
  show REC  all";
        assert_eq!(hung(text, 46), expected);
        let narrow = "\
Examples:
  show REC
      what is remote in a recording, and
      where
  show REC  all";
        assert_eq!(hung(text, 40), narrow);
        assert_eq!(hung("  one two three", 9), "  one\n    two\n    three");
        assert_eq!(hung(text, 80), text);
    }

    #[test]
    fn only_spaces_are_broken_at() {
        let text = format!("of {} accesses", glued("12 345 678"));
        assert_eq!(
            wrapped(&text, 13).iter().map(|l| plain(l)).collect::<Vec<_>>(),
            ["of 12 345 678", "accesses"]
        );
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("a_long_word b", 3), ["a_long_word", "b"]);
    }
}
