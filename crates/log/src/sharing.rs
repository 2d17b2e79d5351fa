//! What a recorder's count of shared cache lines means, in words.
//!
//! The recorder counts the lines that one thread writes and another uses between two
//! synchronisations. It sees OpenMP's barriers and the calls of pthreads. It sees neither a pool's
//! own queues nor a loop that waits for a flag: such a program shares lines rightly, and nobody may
//! call that a race.

/// Most lines that a recorder counts: its table holds no more.
pub const MOST_LINES: u64 = 3072;

/// What the lines are, as the subject of a sentence: `at least 3072 cache lines are …`.
///
/// `barriers`: all synchronisation of the program is known, because it has parallel regions and
/// neither fences nor task waits.
pub fn describe(lines: u64, barriers: bool) -> String {
    let count = match lines {
        1 => "1 cache line is".to_owned(),
        n if n >= MOST_LINES => format!("at least {MOST_LINES} cache lines are"),
        n => format!("{n} cache lines are"),
    };
    let between = if barriers {
        "barriers (false sharing, or a race)"
    } else {
        "synchronisations that the recorder knows (false sharing, or threads that wait for flags)"
    };
    format!("{count} written by one thread and used by another between two {between}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_is_no_count() {
        assert!(describe(MOST_LINES, true).starts_with("at least 3072 cache lines are"));
        assert!(describe(MOST_LINES - 1, true).starts_with("3071 cache lines are"));
    }

    #[test]
    fn unknown_synchronisation_accuses_nobody() {
        assert!(describe(9, true).contains("race"));
        assert!(!describe(9, false).contains("race"));
    }
}
