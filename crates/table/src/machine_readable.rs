//! A table for programs.

use serde::{Serialize, Serializer};

use super::{Cell, Row, Table};

impl Table {
    /// As a JSON object.
    ///
    /// ```text
    /// {"schema": "homenode/compare/1", "facts": {…}, "columns": [{"key", "title", "unit"}, …],
    ///  "rows": [{key: value, …}, …], "missing": [{"row", "column", "why"}, …], "notes": […],
    ///  "warnings": […], where there are any}
    /// ```
    pub fn to_json(&self) -> String {
        let mut out =
            serde_json::to_string_pretty(&Document::of(self)).expect("keys are strings and numbers finite");
        out.push('\n');
        out
    }

    /// As CSV (RFC 4180): keys, then rows. Cells without a value are empty.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        let mut line = |fields: Vec<String>| {
            out += &fields.iter().map(|f| quoted(f)).collect::<Vec<_>>().join(",");
            out += "\r\n";
        };
        line(self.columns.iter().map(|c| c.key.to_owned()).collect());
        for row in &self.rows {
            line(row.cells.iter().map(field).collect());
        }
        out
    }
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value, _) | Cell::Percent(value, _) if value.is_finite() => clean(*value).to_string(),
        Cell::Float(..) | Cell::Percent(..) | Cell::Missing(_) => String::new(),
    }
}

/// Twelve significant digits: enough for every number here, and 26.2 does not become
/// 26.200000000000003. There is no -0.
fn clean(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value) + 0.0
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => s.serialize_str(text),
            Self::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => s.serialize_i64(value),
                (_, Ok(value)) => s.serialize_u64(value),
                // No count is that large; a number that readers would round is better told apart.
                _ => s.serialize_str(&value.to_string()),
            },
            Self::Float(value, _) | Self::Percent(value, _) if value.is_finite() => {
                s.serialize_f64(clean(*value))
            }
            Self::Float(..) | Self::Percent(..) | Self::Missing(_) => s.serialize_none(),
        }
    }
}

/// A row with its columns' keys, in their order.
struct Keyed<'a>(&'a Table, &'a Row);

impl Serialize for Keyed<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.columns.iter().map(|c| c.key).zip(&self.1.cells))
    }
}

/// A table's facts, in their order.
struct Facts<'a>(&'a Table);

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.facts.iter().map(|(key, value)| (*key, value)))
    }
}

#[derive(Serialize)]
struct Heading<'a> {
    key: &'a str,
    title: &'a str,
    unit: Option<&'a str>,
}

#[derive(Serialize)]
struct Missing<'a> {
    row: usize,
    column: &'a str,
    why: &'a str,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: String,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    answer: &'a [String],
    facts: Facts<'a>,
    columns: Vec<Heading<'a>>,
    rows: Vec<Keyed<'a>>,
    missing: Vec<Missing<'a>>,
    notes: Vec<&'a String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

impl<'a> Document<'a> {
    fn of(table: &'a Table) -> Self {
        let heading = |c: &'a super::Column| Heading { key: c.key, title: &c.title, unit: c.unit };
        let missing = table.rows.iter().enumerate().flat_map(|(row, r)| {
            r.cells.iter().zip(&table.columns).filter_map(move |(cell, column)| match cell {
                Cell::Missing(why) => Some(Missing { row, column: column.key, why }),
                _ => None,
            })
        });
        Self {
            schema: table.schema(),
            answer: &table.answers,
            facts: Facts(table),
            columns: table.columns.iter().map(heading).collect(),
            rows: table.rows.iter().map(|row| Keyed(table, row)).collect(),
            missing: missing.collect(),
            notes: table.notes.iter().chain(&table.legend).collect(),
            warnings: &table.warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Column, Table, example};
    use super::*;

    fn parsed(table: &Table) -> Value {
        serde_json::from_str(&table.to_json()).unwrap()
    }

    #[test]
    fn json_carries_schema_values_and_reasons() {
        assert_eq!(
            parsed(&example()),
            json!({
                "schema": "homenode/example/1",
                "facts": {"program": "nas-cg W", "threads": 16},
                "columns": [
                    {"key": "scheme", "title": "scheme", "unit": null},
                    {"key": "time", "title": "time", "unit": "s"},
                    {"key": "moves", "title": "moves", "unit": null},
                    {"key": "remote", "title": "remote", "unit": "%"},
                ],
                "rows": [
                    {"scheme": "first-touch", "time": 12.3456, "moves": 0, "remote": 26.2},
                    {"scheme": "next-touch", "time": 7.0, "moves": 18743, "remote": 1.7},
                    {"scheme": "replay, \"last\"", "time": null, "moves": 5, "remote": 0.0},
                ],
                "missing": [{"row": 2, "column": "time", "why": "the program was stopped"}],
                "notes": ["times are modelled"],
            })
        );
    }

    #[test]
    fn warnings_come_first_for_people_and_under_a_key_of_their_own_for_programs() {
        let mut t = example();
        t.warn("the recording was cut off");
        t.warn("the recording was cut off");
        assert_eq!(parsed(&t)["warnings"], json!(["the recording was cut off"]));
        assert!(!t.to_csv().contains("cut off"));
    }

    #[test]
    fn json_keeps_the_order_of_columns() {
        let text = example().to_json();
        let at = |key: &str| text.find(&format!("\"{key}\": ")).unwrap();
        assert!(at("schema") < at("facts") && at("scheme") < at("time") && at("time") < at("moves"));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn csv_has_keys_and_full_values() {
        assert_eq!(
            example().to_csv(),
            "scheme,time,moves,remote\r\n\
             first-touch,12.3456,0,26.2\r\n\
             next-touch,7,18743,1.7\r\n\
             \"replay, \"\"last\"\"\",,5,0\r\n"
        );
    }

    #[test]
    fn what_is_not_a_number_is_empty() {
        let mut t = Table::new("t", 1, vec![Column::number("x", "x")]);
        t.row(vec![Cell::float(f64::INFINITY, 1)]);
        assert_eq!(t.to_csv(), "x\r\n\r\n");
        assert_eq!(parsed(&t)["rows"], json!([{"x": null}]));
    }

    #[test]
    fn there_is_no_minus_nothing() {
        let mut t = Table::new("t", 1, vec![Column::number("x", "x")]);
        t.row(vec![Cell::float(-0.0, 1)]);
        assert_eq!(t.to_csv(), "x\r\n0\r\n");
        assert!(t.to_json().contains("\"x\": 0.0"), "{}", t.to_json());
    }
}
