//! Times, sizes and bandwidths as people write them: `"216 ns"`, `"8 MiB"`, `"2.4 GB/s"`.
//!
//! Everything is integer arithmetic: what [`show_bytes`] and its sisters print reads back as the
//! same number, and a value that is finer than the unit it is kept in is refused, not rounded.

use homenode_model::{Bytes, MbPerS, Ns, Ps};

/// Units of a kind of quantity: name and size in the unit in which the quantity is kept, as a
/// fraction.
struct Kind {
    /// What a message calls it.
    what: &'static str,
    /// An example of a right value.
    example: &'static str,
    /// Name, numerator, denominator.
    units: &'static [(&'static str, u128, u128)],
    /// The unit of a number without a unit: its index in `units`.
    bare: usize,
}

const TIME_UNITS_NS: &[(&str, u128, u128)] = &[
    ("ps", 1, 1000),
    ("ns", 1, 1),
    ("us", 1000, 1),
    ("µs", 1000, 1),
    ("ms", 1_000_000, 1),
    ("s", 1_000_000_000, 1),
];
const TIME_UNITS_PS: &[(&str, u128, u128)] = &[
    ("ps", 1, 1),
    ("ns", 1000, 1),
    ("us", 1_000_000, 1),
    ("µs", 1_000_000, 1),
    ("ms", 1_000_000_000, 1),
    ("s", 1_000_000_000_000, 1),
];

const NS: Kind =
    Kind { what: "a time in whole nanoseconds", example: "\"216 ns\"", units: TIME_UNITS_NS, bare: 1 };
const PS: Kind =
    Kind { what: "a time in whole picoseconds", example: "\"2.2 ns\"", units: TIME_UNITS_PS, bare: 1 };
const BYTES: Kind = Kind {
    what: "a size",
    example: "\"8 MiB\"",
    units: &[("B", 1, 1), ("KiB", 1 << 10, 1), ("MiB", 1 << 20, 1), ("GiB", 1 << 30, 1), ("TiB", 1 << 40, 1)],
    bare: 0,
};
const BANDWIDTH: Kind = Kind {
    what: "a bandwidth in whole MB/s",
    example: "\"2.4 GB/s\" or \"unlimited\"",
    units: &[("MB/s", 1, 1), ("GB/s", 1000, 1), ("TB/s", 1_000_000, 1)],
    bare: 0,
};

pub(crate) fn ns(text: &str) -> Result<Ns, String> {
    NS.parse(text).map(Ns)
}

pub(crate) fn ps(text: &str) -> Result<Ps, String> {
    PS.parse(text).map(Ps)
}

pub(crate) fn bytes(text: &str) -> Result<Bytes, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ". _".contains(c));
    if let "kB" | "KB" | "MB" | "GB" | "TB" | "K" | "M" | "G" = unit.trim() {
        let binary = format!("{}iB", unit.trim()[..1].to_uppercase());
        return Err(format!(
            "{text:?} is ambiguous: write {binary} (powers of two), for example {}",
            BYTES.example
        ));
    }
    BYTES.parse(text).map(Bytes)
}

/// `unlimited` is the model's 0.
pub(crate) fn bandwidth(text: &str) -> Result<MbPerS, String> {
    if text.trim() == "unlimited" {
        return Ok(MbPerS(0));
    }
    BANDWIDTH.parse(text).map(MbPerS)
}

impl Kind {
    fn parse(&self, text: &str) -> Result<u64, String> {
        let units = || {
            self.units.iter().map(|(name, ..)| *name).filter(|n| *n != "µs").collect::<Vec<_>>().join(", ")
        };
        let expected = || format!("expected {} such as {} (units: {})", self.what, self.example, units());
        let trimmed = text.trim();
        let number_ends =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..number_ends], trimmed[number_ends..].trim());
        let factor = if unit.is_empty() {
            Some(&self.units[self.bare])
        } else {
            self.units.iter().find(|(n, ..)| *n == unit)
        };
        let Some(&(_, num, den)) = factor else {
            let names: Vec<&str> = self.units.iter().map(|(n, ..)| *n).collect();
            let hint = match crate::nearest::nearest(unit, &names) {
                Some(n) if !number.is_empty() => format!("; did you mean `{n}`?"),
                _ => String::new(),
            };
            return Err(format!("{:?} is not {}: {}{hint}", shorten(text), self.what, expected()));
        };
        let (digits, decimals) = decimal(number)
            .ok_or_else(|| format!("{:?} is not {}: {}", shorten(text), self.what, expected()))?;
        // value = digits / 10^decimals · num / den, exactly. 28 digits · 10^12 stay below 2^128.
        let (top, bottom) = (digits * num, 10u128.pow(decimals) * den);
        if !top.is_multiple_of(bottom) {
            return Err(format!("{:?} is too fine: {}", shorten(text), expected()));
        }
        u64::try_from(top / bottom).map_err(|_| format!("{:?} is too large: {}", shorten(text), expected()))
    }
}

/// Digits and number of decimals of a plain decimal number; at most 22 digits, which holds any
/// `u64` with decimals.
fn decimal(number: &str) -> Option<(u128, u32)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let part_given = number.contains('.');
    if whole.is_empty() || (part_given && part.is_empty()) || number.len() > 40 {
        return None;
    }
    let digits: String = whole.chars().chain(part.chars()).filter(|c| *c != '_').collect();
    if digits.is_empty() || digits.len() > 22 || digits.contains('.') {
        return None;
    }
    let decimals = part.chars().filter(|c| *c != '_').count() as u32;
    Some((digits.parse().ok()?, decimals))
}

/// For a message: hostile files may hold strings of megabytes.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// A time: `216 ns`.
pub fn show_ns(t: Ns) -> String {
    match t.0 {
        0 => "0 ns".into(),
        n if n % 1_000_000 == 0 => format!("{} ms", n / 1_000_000),
        n if n >= 10_000 && n % 1000 == 0 => format!("{} us", n / 1000),
        n => format!("{n} ns"),
    }
}

/// A time finer than that: `2.2 ns`.
pub fn show_ps(t: Ps) -> String {
    format!("{} ns", decimals(t.0))
}

/// A size: `8 MiB`.
pub fn show_bytes(b: Bytes) -> String {
    let unit = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match unit.iter().find(|(shift, _)| b.0 != 0 && b.0.trailing_zeros() >= *shift) {
        Some((shift, name)) => format!("{} {name}", b.0 >> shift),
        None => format!("{} B", b.0),
    }
}

/// A bandwidth: `2.4 GB/s`; the model's 0 is `unlimited`.
pub fn show_bandwidth(b: MbPerS) -> String {
    match b.0 {
        0 => "unlimited".into(),
        n if n < 1000 => format!("{n} MB/s"),
        n => format!("{} GB/s", decimals(n)),
    }
}

/// `thousandths / 1000` without trailing zeros.
fn decimals(thousandths: u64) -> String {
    let (whole, part) = (thousandths / 1000, thousandths % 1000);
    if part == 0 { whole.to_string() } else { format!("{whole}.{part:03}").trim_end_matches('0').to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_quantities_like_this() {
        assert_eq!(bytes("8 MiB"), Ok(Bytes::mib(8)));
        assert_eq!(bytes("1.25MiB"), Ok(Bytes::kib(1280)));
        assert_eq!(bytes("4096"), Ok(Bytes(4096)));
        assert_eq!(ns("1 ms"), Ok(Ns(1_000_000)));
        assert_eq!(ns("2.5 us"), Ok(Ns(2500)));
        assert_eq!(ps("2.2 ns"), Ok(Ps(2200)));
        assert_eq!(ps("0.45"), Ok(Ps(450)));
        assert_eq!(bandwidth("2.4 GB/s"), Ok(MbPerS(2400)));
        assert_eq!(bandwidth("unlimited"), Ok(MbPerS(0)));
    }

    #[test]
    fn what_is_refused_says_what_was_expected() {
        for (got, want) in [
            (bytes("8 MB").unwrap_err(), "write MiB"),
            (bytes("8 MibB").unwrap_err(), "did you mean `MiB`"),
            (bytes("").unwrap_err(), "\"8 MiB\""),
            (bytes("1.3 B").unwrap_err(), "too fine"),
            (bytes("99999999999 TiB").unwrap_err(), "too large"),
            (ns("1.0001 us").unwrap_err(), "too fine"),
            (ns("-5 ns").unwrap_err(), "not a time"),
            (ns("1.2.3 ns").unwrap_err(), "not a time"),
            (bandwidth("3 GiB/s").unwrap_err(), "did you mean `GB/s`"),
        ] {
            assert!(got.contains(want), "{got} does not contain {want}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(n: u64) {
            for n in [n, n >> 20, n >> 40, n << 10, n.wrapping_mul(1000)] {
                prop_assert_eq!(bytes(&show_bytes(Bytes(n))), Ok(Bytes(n)));
                prop_assert_eq!(ns(&show_ns(Ns(n))), Ok(Ns(n)));
                prop_assert_eq!(ps(&show_ps(Ps(n))), Ok(Ps(n)));
                prop_assert_eq!(bandwidth(&show_bandwidth(MbPerS(n))), Ok(MbPerS(n)));
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC*", near in "[0-9._]{0,30} ?[a-zA-Zµ/]{0,5}") {
            for t in [text, near] {
                let _ = (bytes(&t), ns(&t), ps(&t), bandwidth(&t));
            }
        }
    }
}
