//! Two results of `homenode compare --json`, row by row.

use serde::Serialize;
use serde_json::Value;

/// The schemas that can be compared, without their version.
const SCHEMAS: &[&str] = &["homenode/compare/", "homenode/compare-lab/"];
/// Columns that a reader of a comparison looks for first.
const COLUMNS: &[&str] = &["time", "modelled", "remote", "moved"];
/// Longest schema that is shown.
const MOST_SCHEMA: usize = 80;
/// Most rows of a result.
const MOST_ROWS: usize = 4096;

/// Why a text is no such result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared(pub String);

impl std::fmt::Display for NotCompared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotCompared {}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NumberColumn {
    /// Its key.
    pub key: String,
    /// Its heading.
    pub title: String,
    /// Its unit.
    pub unit: Option<String>,
}

/// A result of `homenode compare --json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its schema.
    pub schema: String,
    columns: Vec<NumberColumn>,
    rows: Vec<Row>,
    /// Whether a row lacks a number, each with the reason.
    pub missing: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    machine: Option<String>,
    scheme: String,
    numbers: Vec<Option<f64>>,
}

/// One number before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// Before.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
}

/// A scheme before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDiff {
    /// The machine; none where the results have one.
    pub machine: Option<String>,
    /// The scheme.
    pub scheme: String,
    /// Whether both results have it.
    pub in_both: bool,
    /// One a column.
    pub numbers: Vec<BeforeAfter>,
}

/// Two results, row by row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedDiff {
    /// The columns that both have.
    pub columns: Vec<NumberColumn>,
    /// In the order of the first result; what the second has alone comes last.
    pub rows: Vec<RowDiff>,
}

impl Compared {
    /// Whether the text's schema is that of a comparison. Anything may be wrong with the rest.
    pub fn is(text: &str) -> bool {
        let value: Option<Value> = serde_json::from_str(text).ok();
        let schema = value.as_ref().and_then(|v| v.get("schema")).and_then(Value::as_str);
        schema.is_some_and(|schema| SCHEMAS.iter().any(|s| schema.starts_with(s)))
    }

    /// Reads a result.
    ///
    /// # Errors
    /// It is not one, or of another version.
    pub fn from_json(text: &str) -> Result<Self, NotCompared> {
        let not = |why: &str| NotCompared(format!("it is no result of 'homenode compare --json': {why}"));
        let value: Value = serde_json::from_str(text).map_err(|e| not(&e.to_string()))?;
        let schema = value.get("schema").and_then(Value::as_str).ok_or_else(|| not("it has no schema"))?;
        if !SCHEMAS.iter().any(|s| schema.strip_prefix(s) == Some("1")) {
            let schema: String = clean(schema).chars().take(MOST_SCHEMA).collect();
            return Err(not(&format!("its schema is '{schema}'")));
        }
        let all = |key: &str| value.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).map(clean);
        let column = |v: &Value| {
            let key = text(v, "key").filter(|k| COLUMNS.contains(&k.as_str()))?;
            Some(NumberColumn {
                title: text(v, "title").unwrap_or_else(|| key.clone()),
                unit: text(v, "unit"),
                key,
            })
        };
        let mut columns: Vec<NumberColumn> = Vec::new();
        for column in all("columns").iter().filter_map(column) {
            if columns.iter().all(|c| c.key != column.key) {
                columns.push(column);
            }
        }
        let row = |v: &Value| {
            let number = |c: &NumberColumn| v.get(&c.key).and_then(Value::as_f64);
            Some(Row {
                machine: text(v, "machine"),
                scheme: text(v, "scheme")?,
                numbers: columns.iter().map(number).collect(),
            })
        };
        if all("rows").len() > MOST_ROWS {
            return Err(not(&format!(
                "it has {} schemes, and at most {MOST_ROWS} are read",
                all("rows").len()
            )));
        }
        let rows: Vec<Row> = all("rows").iter().filter_map(row).collect();
        if rows.is_empty() {
            return Err(not("it has no schemes"));
        }
        let missing = all("missing").iter().filter_map(|v| text(v, "why")).collect();
        Ok(Self { schema: schema.to_owned(), columns, rows, missing })
    }

    /// What changed from this one to `after`.
    pub fn diff(&self, after: &Self) -> ComparedDiff {
        let columns: Vec<&NumberColumn> =
            self.columns.iter().filter(|c| after.columns.iter().any(|d| d.key == c.key)).collect();
        let number = |table: &Self, row: Option<&Row>, column: &NumberColumn| {
            let at = table.columns.iter().position(|c| c.key == column.key)?;
            row?.numbers.get(at).copied().flatten()
        };
        let mut rest: Vec<&Row> = after.rows.iter().collect();
        let mut rows = Vec::new();
        let mut add = |before: Option<&Row>, then: Option<&Row>| {
            let Some(any) = before.or(then) else { return };
            let pair = |c: &&NumberColumn| BeforeAfter {
                before: number(self, before, c),
                after: number(after, then, c),
            };
            rows.push(RowDiff {
                machine: any.machine.clone(),
                scheme: any.scheme.clone(),
                in_both: before.is_some() && then.is_some(),
                numbers: columns.iter().map(pair).collect(),
            });
        };
        for before in &self.rows {
            let same = |r: &&Row| r.scheme == before.scheme && r.machine == before.machine;
            let then = rest.iter().position(same).map(|at| rest.remove(at));
            add(Some(before), then);
        }
        rest.into_iter().for_each(|then| add(None, Some(then)));
        ComparedDiff { columns: columns.into_iter().cloned().collect(), rows }
    }
}

fn clean(text: &str) -> String {
    homenode_dataset::foreign::clean(text)
}
