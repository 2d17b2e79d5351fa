//! Whole numbers as people read them.

/// `18743112` as `18 743 112`; four digits stay together.
pub fn grouped(value: impl Into<i128>) -> String {
    let value = value.into();
    let digits = value.unsigned_abs().to_string();
    let mut out = String::from(if value < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && digits.len() > 4 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped_from_five_digits_on() {
        let of = [999, 1000, 10_000, -1_234_567].map(|n: i64| grouped(n));
        assert_eq!(of, ["999", "1000", "10 000", "-1 234 567"]);
    }
}
