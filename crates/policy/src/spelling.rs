//! How names and times in a policy's spec are spelt, and suggestions for misspelt names.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use homenode_model::Ns;

/// Longest name that is compared. The distance costs the product of the lengths.
const LONGEST: usize = 64;

/// Insertions, deletions, substitutions and swaps of neighbours between two words (Damerau and
/// Levenshtein, optimal string alignment).
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let differ = usize::from(a[i - 1] != b[j - 1]);
            next[j] = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + differ);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = core::mem::replace(&mut row, next);
    }
    row[b.len()]
}

/// The name in `known` nearest to `typed`, if it is near: at most a third of the letters are wrong,
/// or `typed` is its beginning. Ties go to the first.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if typed.chars().count() > LONGEST {
        return None;
    }
    let begins = |k: &str| !typed.is_empty() && k.starts_with(typed);
    let score = |k: &str| if begins(k) { 0 } else { distance(typed, k) };
    let best = known.into_iter().map(|k| (score(k), k)).min_by_key(|(d, _)| *d);
    best.filter(|(d, k)| *d <= k.chars().count().div_ceil(3)).map(|(_, k)| k)
}

/// A time: a number with ns, us, ms or s, from 1 µs to 1000 s.
pub(crate) fn time(text: &str) -> Option<Ns> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let scale = match &text[at..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let ns = text[..at].parse::<u64>().ok()?.checked_mul(scale)?;
    (1_000..=1_000_000_000_000).contains(&ns).then_some(Ns(ns))
}

/// The end of a sentence: the nearest name as a suggestion, then all known names.
pub(crate) fn candidates(
    nearest: Option<&str>,
    what: &str,
    known: impl Iterator<Item = &'static str>,
) -> String {
    let meant = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
    let known: Vec<&str> = known.collect();
    match known.is_empty() {
        true => format!("{meant} (it has no {what})"),
        false => format!("{meant} ({what}: {})", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_swap_is_one_mistake() {
        assert_eq!(distance("next-touch", "nxet-touch"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn the_nearest_name_is_offered_only_if_it_is_near() {
        let known = ["first-touch", "next-touch", "one-node"];
        assert_eq!(nearest("next_touch", known), Some("next-touch"));
        assert_eq!(nearest("one", known), Some("one-node"));
        assert_eq!(nearest("elephant", known), None);
        assert_eq!(nearest("", known), None);
    }

    proptest! {
        #[test]
        fn distance_is_symmetric_and_zero_for_equals(a in "[a-c]{0,8}", b in "[a-c]{0,8}") {
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert_eq!(distance(&a, &b) == 0, a == b);
        }
    }
}
