//! Charts of results, without scripts: they look the same in a browser and on paper.

use std::fmt::Write as _;

use serde_json::Value;

use super::judge::{group, name, number, rows};
use super::results::Done;
use crate::catalogue::Chart;

/// Distinguishable by colour-blind readers and, with dashes and markers, in print (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
const DASHES: [&str; 6] = ["", "6 3", "2 2", "8 3 2 3", "1 3", "10 4"];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
/// Room for the numbers left of the axis, and below it.
const LEFT: f64 = 64.0;
const BELOW: f64 = 40.0;
const ABOVE: f64 = 22.0;

/// Text that may stand between tags.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Charts of a result, one a group of rows.
pub(super) fn charts(done: &Done) -> String {
    let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
    for row in rows(done) {
        let of = match (done.entry.chart, done.entry.keys) {
            // A line a program; where rows are named by one key, that names the group.
            (Chart::Lines { x, .. }, [only]) if *only != x => {
                row[*only].as_str().unwrap_or_default().to_owned()
            }
            _ => group(done, row),
        };
        match groups.iter_mut().find(|g| g.0 == of) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((of, vec![row])),
        }
    }
    let one = |(title, rows): &(String, Vec<&Value>)| match done.entry.chart {
        Chart::Bars(y) => bars(done, title, rows, y),
        Chart::Lines { x, y } => lines(done, title, rows, x, y),
    };
    groups.iter().filter_map(one).collect()
}

/// Heading of a column.
fn heading<'d>(done: &'d Done, key: &'d str) -> &'d str {
    let all = done.result["columns"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|c| c["key"] == key).and_then(|c| c["title"].as_str()).unwrap_or(key)
}

/// Columns that share a heading are told apart by their keys.
fn legend(done: &Done, y: &[&'static str]) -> Vec<String> {
    let title = |key: &&str| {
        let title = heading(done, key);
        let shared = y.iter().filter(|k| heading(done, k) == title).count() > 1;
        if shared { key.replace('_', " ") } else { title.to_owned() }
    };
    y.iter().map(title).collect()
}

/// A chart with its title, axis and legend; `body` draws into (x, y) of the given range.
struct Canvas {
    text: String,
    least: f64,
    most: f64,
    logarithmic: bool,
}

impl Canvas {
    /// For values from `least` to `most`; logarithmic where they differ by more than a factor of
    /// 20.
    fn new(title: &str, names: &[String], least: f64, most: f64) -> Self {
        let logarithmic = least > 0.0 && most / least > 20.0;
        let height = HEIGHT + ABOVE + BELOW + 18.0 * names.len().div_ceil(3) as f64;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" width=\"{}\" role=\"img\" \
             aria-label=\"{}\"><text x=\"{LEFT}\" y=\"14\" class=\"t\">{}</text>",
            WIDTH + LEFT + 10.0,
            WIDTH + LEFT + 10.0,
            escaped(title),
            escaped(title)
        );
        for (i, name) in names.iter().enumerate() {
            let x = LEFT + (i % 3) as f64 * WIDTH / 3.0;
            let y = ABOVE + HEIGHT + BELOW + 18.0 * (i / 3) as f64;
            let (colour, dash) = (COLOURS[i % 6], DASHES[i % 6]);
            let _ = write!(
                text,
                "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"4\" \
                 stroke-dasharray=\"{dash}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                x + 28.0,
                x + 34.0,
                y + 4.0,
                escaped(name)
            );
        }
        let mut canvas =
            Self { text, least: if logarithmic { least } else { least.min(0.0) }, most, logarithmic };
        for i in 0..=4 {
            let share = f64::from(i) / 4.0;
            let (value, y) = (canvas.value(share), ABOVE + HEIGHT * (1.0 - share));
            let _ = write!(
                canvas.text,
                "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" class=\"g\"/><text x=\"{}\" y=\"{}\" \
                 text-anchor=\"end\">{}</text>",
                LEFT + WIDTH,
                LEFT - 6.0,
                y + 4.0,
                number(value)
            );
        }
        canvas
    }
    /// The value at a share of the height.
    fn value(&self, share: f64) -> f64 {
        if self.logarithmic {
            self.least * (self.most / self.least).powf(share)
        } else {
            self.least + (self.most - self.least) * share
        }
    }
    fn y(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        ABOVE + HEIGHT * (1.0 - share.clamp(0.0, 1.0))
    }
    fn label(&mut self, x: f64, text: &str) {
        let y = ABOVE + HEIGHT + 14.0;
        let _ =
            write!(self.text, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", escaped(text));
    }
    fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }
}

/// Least and most of all values; none where there are not two that differ from 0.
fn range(rows: &[&Value], y: &[&str]) -> Option<(f64, f64)> {
    let values = || rows.iter().flat_map(|r| y.iter().filter_map(|k| r[*k].as_f64()));
    let (least, most) = values().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    (most > 0.0 && least.is_finite()).then_some((least, most))
}

fn bars(done: &Done, title: &str, rows: &[&Value], y: &[&'static str]) -> Option<String> {
    let (least, most) = range(rows, y)?;
    let mut canvas = Canvas::new(title, &legend(done, y), least.min(0.0), most);
    let each = WIDTH / rows.len() as f64;
    let width = (each * 0.8 / y.len() as f64).min(40.0);
    for (i, row) in rows.iter().enumerate() {
        let from = LEFT + each * i as f64 + (each - width * y.len() as f64) / 2.0;
        for (k, key) in y.iter().enumerate() {
            let Some(value) = row[*key].as_f64() else { continue };
            let (top, x) = (canvas.y(value), from + width * k as f64);
            let _ = write!(
                canvas.text,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {}</title></rect>",
                width - 1.0,
                (canvas.y(canvas.least) - top).max(0.5),
                COLOURS[k % 6],
                escaped(heading(done, key)),
                number(value)
            );
        }
        let full = name(done, row);
        let short = full.strip_prefix(title).unwrap_or(&full).trim();
        canvas.label(LEFT + each * (i as f64 + 0.5), short);
    }
    Some(canvas.finish())
}

fn lines(done: &Done, title: &str, rows: &[&Value], x: &str, y: &[&'static str]) -> Option<String> {
    let (least, most) = range(rows, y)?;
    let at: Vec<f64> = rows.iter().filter_map(|r| r[x].as_f64()).collect();
    let mut canvas = Canvas::new(title, &legend(done, y), least, most);
    // Even steps: numbers of processors double.
    let step = WIDTH / at.len().max(2) as f64;
    let place = |i: usize| LEFT + step * (i as f64 + 0.5);
    for (k, key) in y.iter().enumerate() {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .enumerate()
            .filter_map(|(i, r)| Some((place(i), canvas.y(r[*key].as_f64()?))))
            .collect();
        let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (colour, dash) = (COLOURS[k % 6], DASHES[k % 6]);
        let _ = write!(
            canvas.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
            list.join(" ")
        );
        if rows.len() <= 16 {
            for (x, y) in points {
                let _ =
                    write!(canvas.text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
            }
        }
    }
    for (i, value) in at.iter().enumerate().step_by(at.len().div_ceil(16).max(1)) {
        canvas.label(place(i), &number(*value));
    }
    Some(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_group_has_a_chart_with_all_its_bars() {
        let report = example();
        let text = charts(&report.done[0]);
        assert_eq!(text.matches("<svg").count(), 2, "{text}");
        assert_eq!(text.matches("<rect").count(), 9, "{text}");
        assert!(text.contains("A&lt;B") && !text.contains("A<B"));
    }

    #[test]
    fn wide_ranges_are_logarithmic_and_nothing_leaves_the_frame() {
        let canvas = Canvas::new("t", &[], 1.0, 1000.0);
        assert!((canvas.y(1.0) - (ABOVE + HEIGHT)).abs() < 1e-9 && (canvas.y(1000.0) - ABOVE).abs() < 1e-9);
        assert!((canvas.value(1.0 / 3.0) - 10.0).abs() < 1e-6);
        let linear = Canvas::new("t", &[], 5.0, 10.0);
        assert_eq!((linear.value(0.0), linear.value(1.0)), (0.0, 10.0));
        assert!((linear.y(20.0) - ABOVE).abs() < 1e-9);
    }
}
