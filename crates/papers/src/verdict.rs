//! What a paper concludes, and whether it holds here.

use homenode_table::Table;

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
    /// What the model lacks where a number is not reached: for the report.
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
    fn words_are_read_back() {
        for says in [Says::Holds, Says::DoesNot, Says::Unknown] {
            assert_eq!(Says::parse(says.words()), Some(says));
        }
        assert_eq!(Says::parse("perhaps"), None);
    }
}
