//! What a paper concludes, and whether it holds here.

use homenode_table::Table;

/// The name of what a text of [`Shown::lacks`] is about that explains all rows and conclusions.
pub(crate) const ALL_ROWS: &str = "all rows";

/// Whether a conclusion holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// Our numbers agree.
    Holds,
    /// Our numbers do not agree.
    DoesNot,
    /// What was run cannot tell.
    Unknown,
}

impl Says {
    /// From a comparison of our numbers.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::DoesNot }
    }
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNot => "does not hold",
            Self::Unknown => "cannot be said",
        }
    }
    /// From [`Says::words`].
    pub fn parse(words: &str) -> Option<Self> {
        [Self::Holds, Self::DoesNot, Self::Unknown].into_iter().find(|s| s.words() == words)
    }
}

/// A conclusion of a paper and what our numbers say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The conclusion, as the paper has it, with its section.
    pub claim: String,
    /// Whether it holds.
    pub says: Says,
    /// Our numbers, or why there are none.
    pub numbers: String,
}

impl Conclusion {
    /// In one line.
    pub fn line(&self) -> String {
        format!("{}: {} ({})", self.claim, self.says.words(), self.numbers)
    }
}

/// A table or figure with the paper's conclusions from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Theirs beside ours.
    pub table: Table,
    /// Conclusions.
    pub verdicts: Vec<Conclusion>,
    /// What the model lacks where a number is not reached: for the report. A text is the reason of
    /// all rows, orders and conclusions with the words before its first colon, as in `NAS-MG PI:`.
    pub lacks: Vec<&'static str>,
}

impl Shown {
    /// A table without conclusions yet.
    pub const fn new(table: Table) -> Self {
        Self { table, verdicts: Vec::new(), lacks: Vec::new() }
    }
    /// Adds a conclusion.
    pub fn judge(&mut self, claim: impl Into<String>, says: Says, numbers: impl Into<String>) {
        self.verdicts.push(Conclusion { claim: claim.into(), says, numbers: numbers.into() });
    }
    /// Adds a reason if a conclusion with `name` does not hold.
    pub(crate) fn explain(&mut self, name: &str, reason: &'static str) {
        let is_about = |v: &Conclusion| v.claim.starts_with(name) && v.says == Says::DoesNot;
        if self.verdicts.iter().any(is_about) && !self.lacks.contains(&reason) {
            self.lacks.push(reason);
        }
    }
    /// The table with its conclusions as notes, for a terminal.
    pub fn into_table(mut self) -> Table {
        for verdict in &self.verdicts {
            self.table.note(verdict.line());
        }
        for lack in self.lacks {
            self.table.note(format!("the model lacks: {lack}"));
        }
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_is_explained_once() {
        let columns = vec![homenode_table::Column::text("a", "a")];
        let mut shown = Shown::new(Table::new("t", 1, columns));
        shown.judge("BT: a", Says::Holds, "1");
        shown.judge("CG: b", Says::DoesNot, "2");
        for _ in 0..2 {
            shown.explain("BT", "BT: why");
            shown.explain("CG", "CG: why");
        }
        assert_eq!(shown.lacks, ["CG: why"]);
    }

    #[test]
    fn words_are_read_back() {
        for says in [Says::Holds, Says::DoesNot, Says::Unknown] {
            assert_eq!(Says::parse(says.words()), Some(says));
        }
        assert_eq!(Says::parse("perhaps"), None);
    }
}
