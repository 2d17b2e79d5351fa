//! What the sentences of the paper that can be read in several ways come to: moves of Out-U, Out-W
//! and In-W under each reading that the policies have as an option.

use homenode_error::Result;
use homenode_sim::statistics::{self, Moves};
use homenode_table::{Cell, Column, Table};

use super::{SCHEMES, Tao};
use crate::verdict::Shown;

/// A reading, as the heads of the policies call it, and the policy that stands for it.
struct Reading {
    scheme: &'static str,
    name: &'static str,
    policy: &'static str,
}

const fn reading(scheme: &'static str, name: &'static str, policy: &'static str) -> Reading {
    Reading { scheme, name, policy }
}

const READINGS: [Reading; 14] = [
    reading("Out-U", "share", "out-u:at=iteration,from=round-robin,form=share"),
    reading("Out-U", "literal", "out-u:at=iteration,from=round-robin,form=literal"),
    reading("Out-U", "literal-all", "out-u:at=iteration,from=round-robin,form=literal-all"),
    reading("Out-U", "others", "out-u:at=iteration,from=round-robin,form=others"),
    reading("Out-U", "constant", SCHEMES[2].1),
    reading(
        "Out-U",
        "constant, counters until a move",
        "out-u:at=iteration,from=round-robin,form=constant,counters=move",
    ),
    reading(
        "Out-U",
        "constant, A of all remote nodes together",
        "out-u:at=iteration,from=round-robin,form=constant,factor=600",
    ),
    reading("Out-U", "constant, intervals of 1 ms", "out-u:at=1ms,from=round-robin,form=constant"),
    reading("Out-U", "constant, adaptive", "out-u:at=iteration,from=round-robin,form=constant,adaptive=yes"),
    reading("Out-W", "weights by page number", SCHEMES[3].1),
    reading("Out-W", "weights by rank", "out-w:at=iteration,from=round-robin,form=constant,distance=rank"),
    reading("In-W", "share", "in-w:at=iteration,from=round-robin,distance=page"),
    reading("In-W", "constant", SCHEMES[4].1),
    reading(
        "In-W",
        "constant, adaptive",
        "in-w:at=iteration,from=round-robin,form=constant,factor=200,distance=page,adaptive=yes",
    ),
];

impl Tao<'_> {
    /// Moves and ping-pongs of Out-U, Out-W and In-W by reading, for each program.
    ///
    /// # Errors
    /// As [`Tao::table1`].
    pub fn readings(&self) -> Result<Shown> {
        let mut table = Table::new(
            "tao-readings",
            1,
            vec![
                Column::text("scheme", "scheme"),
                Column::text("reading", "reading"),
                Column::text("program", "program"),
                Column::number("mig", "mig, paper"),
                Column::number("mig_ours", "ours"),
                Column::number("ping_pongs", "p-p, paper"),
                Column::number("ping_pongs_ours", "ours"),
                Column::unit("time", "time", "s"),
            ],
        );
        let mut seen = Vec::new();
        for program in self.programs()? {
            let outcomes = self.outcomes(program, &READINGS.map(|r| r.policy))?;
            seen.push((program, outcomes));
        }
        for (r, reading) in READINGS.iter().enumerate() {
            let of = SCHEMES.iter().position(|(name, _)| *name == reading.scheme);
            for (program, outcomes) in &seen {
                let Moves { migrations, ping_pongs, .. } = statistics::moves(&outcomes[r]);
                let theirs = of.map(|i| program.table1[i]).unwrap_or_default();
                table.row(vec![
                    Cell::text(reading.scheme),
                    Cell::text(reading.name),
                    Cell::text(program.name),
                    Cell::int(theirs[0]),
                    Cell::int(migrations),
                    Cell::int(theirs[1]),
                    Cell::int(ping_pongs),
                    Cell::float(outcomes[r].time.secs(), 4),
                ]);
            }
        }
        table.note(
            "pages begin round robin; the head of the policy's module, ars.rs, says what each reading is",
        );
        Ok(Shown::new(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_is_a_policy_of_its_scheme_and_no_two_are_alike() {
        for (i, r) in READINGS.iter().enumerate() {
            assert!(r.policy.starts_with(&r.scheme.to_lowercase()), "{}", r.name);
            assert!(SCHEMES.iter().any(|(name, _)| *name == r.scheme), "{}", r.scheme);
            assert!(READINGS[..i].iter().all(|o| o.policy != r.policy), "{}", r.policy);
        }
    }
}
