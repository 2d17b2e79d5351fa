//! `--fail-if`: a condition on the table that is printed, for scripts and CI.
//!
//! `[ROW:]COLUMN OP NUMBER`, as in `remote>10` or `next-touch:time>=1.5`: a row is named by its
//! first cell, a column by its key, and the number is in the column's unit. Without a row, one row
//! that meets it is enough.

use std::str::FromStr;

use homenode_error::{Error, Result, suggest};

use crate::{Cell, Row, Table};

/// How to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Less,
    AtMost,
    Equal,
    NotEqual,
    AtLeast,
    Greater,
}

/// Longer ones first: `>=` is not `>`.
const OPS: [(&str, Op); 6] = [
    ("<=", Op::AtMost),
    (">=", Op::AtLeast),
    ("!=", Op::NotEqual),
    ("=", Op::Equal),
    ("<", Op::Less),
    (">", Op::Greater),
];

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    text: String,
    row: Option<String>,
    column: String,
    op: Op,
    value: f64,
}

impl FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || format!("'{text}' is not of the form [ROW:]COLUMN OP NUMBER, as in 'remote>10'");
        let at = text.find(['<', '>', '=', '!']).ok_or_else(form)?;
        let (left, rest) = text.split_at(at);
        let (sign, op) = OPS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(form)?;
        let number = rest[sign.len()..].trim();
        let value: f64 = number
            .parse()
            .map_err(|_| format!("'{number}' in '{text}' is not a number, as in 'remote>5'"))?;
        let (row, column) = match left.rsplit_once(':') {
            Some((row, column)) => (Some(row.trim().to_owned()), column.trim().to_owned()),
            None => (None, left.trim().to_owned()),
        };
        if column.is_empty() || !value.is_finite() {
            return Err(form());
        }
        Ok(Self { text: text.to_owned(), row, column, op, value })
    }
}

impl FailIf {
    /// Whether it holds in `table`. A cell without a value meets no condition.
    ///
    /// # Errors
    /// When the table has no such column or row: a condition that can never hold is a mistake.
    pub fn holds(&self, table: &Table) -> Result<bool> {
        let column = self.column(table)?;
        let name = |row: &Row| match row.cells.first() {
            Some(Cell::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let mut rows =
            table.rows().iter().filter(|r| self.row.as_ref().is_none_or(|n| name(r) == *n)).peekable();
        if let (Some(row), None) = (&self.row, rows.peek()) {
            let names: Vec<String> = table.rows().iter().map(name).collect();
            return Err(self.unknown("row", row, &names.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        Ok(rows.any(|r| r.cells[column].number().is_some_and(|x| self.meets(x))))
    }

    /// Refuses a condition that can never hold, before there is a result: `table` has the columns,
    /// and needs no rows.
    ///
    /// # Errors
    /// The table has no such column.
    pub fn check(&self, table: &Table) -> Result<()> {
        self.column(table).map(drop)
    }

    /// The index of its column.
    fn column(&self, table: &Table) -> Result<usize> {
        let keys: Vec<&str> = table.columns().iter().map(|c| c.key).collect();
        let found = keys.iter().position(|k| *k == self.column);
        found.ok_or_else(|| self.unknown("column", &self.column, &keys))
    }

    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    #[expect(clippy::float_cmp, reason = "the user asked for equality")]
    fn meets(&self, x: f64) -> bool {
        match self.op {
            Op::Less => x < self.value,
            Op::AtMost => x <= self.value,
            Op::Equal => x == self.value,
            Op::NotEqual => x != self.value,
            Op::AtLeast => x >= self.value,
            Op::Greater => x > self.value,
        }
    }

    fn unknown(&self, kind: &str, word: &str, names: &[&str]) -> Error {
        let error = Error::usage(format!("--fail-if '{}': the table has no {kind} '{word}'", self.text));
        match suggest::nearest(word, names.iter().copied()) {
            Some(name) => error.hint(format!("did you mean '{name}'?")),
            None => error.hint(format!("it has {}", names.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn holds(text: &str) -> bool {
        text.parse::<FailIf>().unwrap().holds(&example()).unwrap()
    }

    #[test]
    fn one_row_is_enough_unless_one_is_named() {
        assert!(holds("remote>10"));
        assert!(!holds("next-touch:remote > 10"));
        assert!(holds("next-touch:remote<=1.7000001"));
        assert!(holds("moves=18743"));
        assert!(!holds("moves<0"));
    }

    #[test]
    fn a_cell_without_a_value_meets_nothing() {
        assert!(!holds("replay, \"last\":time>0"));
        assert!(!holds("replay, \"last\":time<=0"));
    }

    #[test]
    fn what_can_never_hold_is_a_usage_error() {
        let error = "remot>1".parse::<FailIf>().unwrap().holds(&example()).unwrap_err();
        assert_eq!(error.kind, homenode_error::FailureKind::Usage);
        assert_eq!(error.hint.as_deref(), Some("did you mean 'remote'?"));
        assert!("last-touch:remote>1".parse::<FailIf>().unwrap().holds(&example()).is_err());
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for text in ["", "remote", ">1", "remote>", "remote>x", "remote!1", "remote>nan"] {
            assert!(text.parse::<FailIf>().is_err(), "{text}");
        }
    }
}
