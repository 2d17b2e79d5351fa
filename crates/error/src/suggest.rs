//! "Did you mean": the nearest of a set of names.

use crate::Error;

/// The name nearest to `word`, if one is near enough to be what was meant. Ties go to the first.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |s: &str| s.to_lowercase().replace(['_', ' '], "-");
    let word = fold(word);
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let folded = fold(name);
        let longest = word.chars().count().max(folded.chars().count());
        let mut distance = strsim::damerau_levenshtein(&word, &folded);
        // A word that somebody stopped typing, or gave without its family: `cg` for `nas-cg`.
        let part = word.len() >= 2 && folded.split('-').any(|p| p == word) || folded.starts_with(&word);
        if part && !word.is_empty() {
            distance = distance.min(1);
        }
        if distance <= (longest / 3).max(1) && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The error for a name that does not exist: says the nearest, or all when they are few.
///
/// `kind` is the singular ("machine"), `list` the command that lists all of them ("homenode machine
/// list").
pub fn unknown(kind: &str, word: &str, names: &[&str], list: &str) -> Error {
    let error = Error::usage(format!("there is no {kind} '{word}'"));
    match nearest(word, names.iter().copied()) {
        Some(name) => error.hint(format!("did you mean '{name}'? '{list}' shows all")),
        None if names.len() <= 12 && !names.is_empty() => error.hint(format!("one of {}", names.join(", "))),
        None => error.hint(format!("'{list}' shows all")),
    }
}

/// The same where no command lists them: says all of them.
pub fn unknown_of(kind: &str, word: &str, names: &[&str]) -> Error {
    let meant = nearest(word, names.iter().copied()).map(|name| format!("did you mean '{name}'? "));
    Error::usage(format!("there is no {kind} '{word}'")).hint(format!(
        "{}one of {}",
        meant.unwrap_or_default(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["sf15k", "nas-cg", "nas-mg", "next-touch", "first-touch"];

    #[test]
    fn a_slip_finds_the_name() {
        for (word, name) in [
            ("sf15", "sf15k"),
            ("sf51k", "sf15k"),
            ("nas_cg", "nas-cg"),
            ("NAS-MG", "nas-mg"),
            ("mg", "nas-mg"),
            ("next-tuoch", "next-touch"),
            ("first", "first-touch"),
        ] {
            assert_eq!(nearest(word, NAMES), Some(name), "{word}");
        }
    }

    #[test]
    fn something_else_finds_nothing() {
        for word in ["", "epyc", "zzz", "interleave"] {
            assert_eq!(nearest(word, NAMES), None, "{word}");
        }
    }

    #[test]
    fn the_error_says_what_there_is() {
        let error = unknown("machine", "sf15", &NAMES, "homenode machine list");
        assert_eq!(error.message, "there is no machine 'sf15'");
        assert_eq!(error.hint.as_deref(), Some("did you mean 'sf15k'? 'homenode machine list' shows all"));
        let error = unknown("machine", "epyc", &NAMES[..2], "homenode machine list");
        assert_eq!(error.hint.as_deref(), Some("one of sf15k, nas-cg"));
        let error = unknown_of("machine", "sf15", &NAMES[..2]);
        assert_eq!(error.hint.as_deref(), Some("did you mean 'sf15k'? one of sf15k, nas-cg"));
    }
}
