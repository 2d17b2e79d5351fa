//! Errors of cells, orders of rows, and conclusions of a result.

use homenode_statistics::Sorted;
use serde_json::Value;

use super::results::Done;
use crate::verdict::{ALL_ROWS, Says};

/// Numbers of the paper that differ by less than this share are in no order.
const DIFFER: f64 = 0.01;

/// What stands where nobody has found a reason.
pub(super) const UNEXPLAINED: &str = "no reason is known";
/// The same for the smallest class.
pub(super) const SMALL: &str = "the class is the smallest; the command without --small has the usual one";

/// The error of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CellError {
    /// Index of its row.
    pub row: usize,
    /// Our column.
    pub column: &'static str,
    /// Ours over theirs.
    pub by: By,
}

/// How far ours is from theirs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum By {
    /// In percent of theirs.
    Percent(f64),
    /// The difference, where theirs is 0 and ours is not.
    Difference(f64),
}

impl By {
    fn of(theirs: f64, ours: f64) -> Self {
        match (theirs == 0.0, ours == 0.0) {
            (true, true) => Self::Percent(0.0),
            (true, false) => Self::Difference(ours),
            _ => Self::Percent(100.0 * (ours / theirs - 1.0)),
        }
    }
    /// For a cell whose heading says percent.
    pub(super) fn words(self) -> String {
        match self {
            Self::Percent(p) => format!("{p:+.1}"),
            Self::Difference(d) => format!("{d:+} for 0"),
        }
    }
}

/// Sizes of the errors in percent.
pub(super) fn percents(errors: &[CellError]) -> impl Iterator<Item = f64> {
    errors.iter().filter_map(|e| match e.by {
        By::Percent(p) => Some(p.abs()),
        By::Difference(_) => None,
    })
}

/// Pairs of rows that differ in the paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Orders {
    /// How many.
    pub all: usize,
    /// Those that differ the same way here.
    pub kept: usize,
    /// The others, in words.
    pub broken: Vec<String>,
}

pub(super) fn rows(done: &Done) -> &[Value] {
    done.result["rows"].as_array().map_or(&[], Vec::as_slice)
}

/// Errors of all cells that both have.
pub(super) fn errors(done: &Done) -> Vec<CellError> {
    let mut all = Vec::new();
    for (theirs, column) in done.entry.pairs {
        for (row, values) in rows(done).iter().enumerate() {
            if let (Some(paper), Some(ours)) = (values[theirs].as_f64(), values[column].as_f64()) {
                all.push(CellError { row, column, by: By::of(paper, ours) });
            }
        }
    }
    all
}

/// Numbers of the paper that ours are not near: each with both, and why.
pub(super) fn missed(done: &Done) -> Vec<String> {
    let mut all = Vec::new();
    for (row, values) in rows(done).iter().enumerate() {
        for (theirs, ours) in done.entry.pairs {
            let (Some(paper), Some(here)) = (values[*theirs].as_f64(), values[*ours].as_f64()) else {
                continue;
            };
            if !done.entry.near.reached(paper, here) {
                let name = name(done, &rows(done)[row]);
                let numbers =
                    format!("{} {}, in the paper {}", title(done, ours), number(here), number(paper));
                all.push(format!("{name}: {numbers}: {}", why(done, &name)));
            }
        }
    }
    all
}

/// The heading of a column.
fn title(done: &Done, key: &str) -> String {
    columns(done).into_iter().find(|c| c.0 == key).map_or_else(|| key.to_owned(), |c| c.1)
}

/// Where the reason stands why a row, an order or a conclusion is not reached: at the texts of the
/// section that begin with the name of what they are about and a colon. All words of the name are
/// in `of`, or the name is [`ALL_ROWS`]. The first such text counts.
pub(super) fn why(done: &Done, of: &str) -> String {
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_alphanumeric() && !"-+.'".contains(c)).filter(|w| !w.is_empty())
    }
    let is_about = |name: &str| name == ALL_ROWS || words(name).all(|word| words(of).any(|w| w == word));
    let mut named = texts(done, "lacks").filter_map(|text| Some(text.split_once(": ")?.0));
    match named.find(|name| is_about(name)) {
        Some(name) => format!("the reason is at \"{name}\" below"),
        None if is_small(done) => SMALL.to_owned(),
        None => UNEXPLAINED.to_owned(),
    }
}

/// Whether the result is one of the smallest class.
fn is_small(done: &Done) -> bool {
    done.result["command"].as_str().is_some_and(|command| command.ends_with("--small"))
}

/// Of the errors' sizes.
pub(super) fn median(errors: &[CellError]) -> Option<f64> {
    Sorted::of(percents(errors).collect::<Vec<f64>>()).median()
}

/// A row's name: its keys.
pub(super) fn name(done: &Done, row: &Value) -> String {
    let text = |key: &&str| match &row[*key] {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let words: Vec<String> = done.entry.keys.iter().map(text).filter(|w| !w.is_empty()).collect();
    words.join(" ")
}

/// Which group a row belongs to: the first of several keys.
pub(super) fn group(done: &Done, row: &Value) -> String {
    match done.entry.keys {
        [first, _, ..] => row[*first].as_str().map_or_else(|| row[*first].to_string(), str::to_owned),
        _ => String::new(),
    }
}

/// All pairs of rows of a group, in the first pair of columns of the entry.
pub(super) fn orders(done: &Done) -> Orders {
    let mut orders = Orders::default();
    let Some((theirs, ours)) = done.entry.pairs.first() else { return orders };
    let rows = rows(done);
    for (i, a) in rows.iter().enumerate() {
        for b in rows[i + 1..].iter().filter(|b| group(done, b) == group(done, a)) {
            let both = |column: &str| Some((a[column].as_f64()?, b[column].as_f64()?));
            let (Some((ta, tb)), Some((oa, ob))) = (both(theirs), both(ours)) else { continue };
            if (ta - tb).abs() <= DIFFER * ta.abs().max(tb.abs()) {
                continue;
            }
            orders.all += 1;
            if (ta - tb) * (oa - ob) > 0.0 {
                orders.kept += 1;
            } else {
                let sign = if ta > tb { "above" } else { "below" };
                orders.broken.push(format!("{} {sign} {}", name(done, a), name(done, b)));
            }
        }
    }
    orders
}

/// Claim, whether it holds, our numbers.
pub(super) fn verdicts(done: &Done) -> impl Iterator<Item = (&str, Says, &str)> {
    let all = done.result["verdicts"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(|v| {
        Some((v["claim"].as_str()?, Says::parse(v["says"].as_str()?)?, v["numbers"].as_str()?))
    })
}

/// A list of texts in a result.
pub(super) fn texts<'d>(done: &'d Done, key: &str) -> impl Iterator<Item = &'d str> {
    done.result[key].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str)
}

/// A number as people read it: four digits that count.
pub(super) fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e9 {
        return format!("{value:.0}");
    }
    let above = value.abs().max(1e-12).log10().floor() as i32;
    format!("{value:.*}", (3 - above).clamp(0, 9) as usize)
}

/// A cell, or why it is empty.
pub(super) fn cell(done: &Done, row: usize, key: &str) -> Result<String, String> {
    match &rows(done)[row][key] {
        Value::String(s) => Ok(s.clone()),
        Value::Number(n) => Ok(n.as_f64().map_or_else(|| n.to_string(), number)),
        _ => {
            let all = done.result["missing"].as_array().map_or(&[][..], Vec::as_slice);
            let here = |m: &&Value| m["row"] == row && m["column"] == key;
            Err(all.iter().find(here).and_then(|m| m["why"].as_str()).unwrap_or("no value").to_owned())
        }
    }
}

/// Keys and headings of a result's columns.
pub(super) fn columns(done: &Done) -> Vec<(String, String)> {
    let all = done.result["columns"].as_array().map_or(&[][..], Vec::as_slice);
    let heading = |c: &Value| {
        let (key, title) = (c["key"].as_str()?, c["title"].as_str()?);
        let unit = c["unit"].as_str().map_or(String::new(), |u| format!(", {u}"));
        Some((key.to_owned(), format!("{title}{unit}")))
    };
    all.iter().filter_map(heading).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_broken_order_is_named() {
        let report = example();
        let orders = orders(&report.done[0]);
        assert_eq!(orders.broken, ["C UMA below C SI"]);
    }

    #[test]
    fn a_number_that_is_not_reached_is_told_with_its_reason() {
        let mut done = example().done.remove(0);
        // A difference of 0.08 counts.
        assert_eq!(
            missed(&done),
            [
                format!("A<B SI: ours 1.200, in the paper 1.500: {SMALL}"),
                format!("C SI: ours 0.9000, in the paper 1.100: {SMALL}")
            ]
        );
        done.result["command"] = "homenode paper lof-table1".into();
        assert_eq!(why(&done, "C SI"), UNEXPLAINED);
        done.result["lacks"] = serde_json::json!(["C PI: one thing", "C: another"]);
        assert_eq!(why(&done, "C SI"), "the reason is at \"C\" below");
        assert_eq!(why(&done, "C: SI+MIG beats PI (5)"), "the reason is at \"C PI\" below");
        assert_eq!(why(&done, "I-C SI"), UNEXPLAINED);
    }

    #[test]
    fn errors_are_shares_but_of_nothing() {
        assert_eq!(By::of(2.0, 3.0).words(), "+50.0");
        assert_eq!((By::of(0.0, 0.0), By::of(0.0, 497.0).words()), (By::Percent(0.0), "+497 for 0".into()));
        let error = |by| CellError { row: 0, column: "a", by };
        let errors = [By::of(2.0, 3.0), By::of(0.0, 9.0), By::of(2.0, 2.0)].map(error);
        assert_eq!(median(&errors), Some(25.0));
    }

    #[test]
    fn an_empty_cell_says_why() {
        let report = example();
        assert_eq!(cell(&report.done[0], 4, "paper"), Err("not printed".into()));
        assert_eq!(cell(&report.done[0], 1, "paper"), Ok("1.500".into()));
    }

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!([number(3.0), number(1234.6), number(0.012_346)], ["3", "1235", "0.01235"]);
    }
}
