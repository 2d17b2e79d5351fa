//! The name that a user probably meant.

/// The candidate nearest to `word`, if one is near enough to be worth asking. Ties go to the
/// earlier candidate.
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    // The distance is quadratic in the length, and nobody mistypes a name into something this long.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1) + 1;
    candidates
        .iter()
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase()), *c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_swapped_pair_of_letters_is_recognised() {
        assert_eq!(nearest("latnecy", &["level", "latency", "link"]), Some("latency"));
    }

    #[test]
    fn something_else_altogether_suggests_nothing() {
        assert_eq!(nearest("zebra", &["latency", "link"]), None);
        assert_eq!(nearest(&"x".repeat(10_000), &["latency"]), None);
    }
}
