//! Sizes as people write them: `8192`, `8K`, `8KiB`, `2M`, `2MiB`, `1G`.
//!
//! All powers of two: pages and caches come in nothing else, and `KB` would be read in two ways.

use homenode_model::Bytes;

/// Reads a size. For clap's `value_parser`.
///
/// # Errors
/// A line that says what a size looks like.
pub fn parse(text: &str) -> Result<Bytes, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let wrong = || format!("'{text}' is not a size such as 8192, 8KiB or 2MiB");
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).map(Bytes).ok_or_else(|| format!("'{text}' is more than 2^64 bytes"))
}

/// Shows a size in the largest unit that divides it: `8 KiB`.
pub fn show(bytes: Bytes) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in units {
        if bytes.0 != 0 && bytes.0.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes.0 >> shift);
        }
    }
    format!("{} B", bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read() {
        for bytes in [0, 1, 4096, 8192, 10_000, 2 << 20, 3 << 30, 1 << 40, u64::MAX] {
            assert_eq!(parse(&show(Bytes(bytes))), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn units_are_powers_of_two() {
        for text in ["8192", "8k", "8K", "8KiB", "8 KiB", " 8192 B "] {
            assert_eq!(parse(text), Ok(Bytes(8192)), "{text}");
        }
        assert_eq!(show(Bytes(2 << 20)), "2 MiB");
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "KiB", "8KB", "-1", "1.5M", "99999999999999999999", "99999999T"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
