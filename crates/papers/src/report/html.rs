//! The page as HTML: one file, nothing loaded from elsewhere.

use std::fmt::Write as _;

use super::judge;
use super::results::{Done, Report};
use super::svg::{charts, escaped};
use crate::verdict::Says;

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:78em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:.6em 0;font-size:13px}th,td{padding:2px 8px;border-bottom:1px solid #ddd;\
text-align:right}th:first-child,td:first-child,td.w{text-align:left}td.m{color:#777}\
code{background:#f3f3f3;padding:1px 4px}.scroll{max-height:32em;overflow:auto}svg{display:block;max-width:100%;\
margin:.6em 0}svg text{font:11px sans-serif}svg .t{font-weight:bold}svg .g{stroke:#ddd}\
.holds{color:#00674d;font-weight:bold}.doesnot{color:#a33c00;font-weight:bold}.unknown{color:#555;font-weight:bold}";

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tables and figures of four papers</title>\
         <style>{STYLE}</style></head><body>\n<h1>Tables and figures of four papers, theirs beside ours</h1>\n"
    );
    if report.partial {
        out += "<p><strong>Partial:</strong> not everything ran; the same command goes on.</p>\n";
    }
    if report.small {
        out += "<p>Smallest classes: these numbers show that everything runs, not how near it comes.</p>\n";
    }
    out += &summary(report);
    let mut paper = "";
    for done in &report.done {
        if done.entry.paper != paper {
            paper = done.entry.paper;
            let _ = writeln!(out, "<h2>{}</h2>", escaped(paper));
        }
        section(&mut out, done);
    }
    out += "</body></html>\n";
    out
}

fn summary(report: &Report) -> String {
    let table = report.summary();
    let mut out = String::from("<table><tr>");
    for c in table.columns() {
        let unit = c.unit.map_or(String::new(), |u| format!(", {u}"));
        let _ = write!(out, "<th>{}{unit}</th>", escaped(&c.title));
    }
    out += "</tr>\n";
    for row in table.rows() {
        out += "<tr>";
        for (i, cell) in row.cells.iter().enumerate() {
            let text = match (cell, cell.number()) {
                (homenode_table::Cell::Text(name), _) if i == 0 => format!("<a href=\"#{name}\">{name}</a>"),
                (homenode_table::Cell::Text(text), _) => escaped(text),
                (_, Some(value)) => judge::number(value),
                _ => "–".into(),
            };
            let _ = write!(out, "<td>{text}</td>");
        }
        out += "</tr>\n";
    }
    out += "</table>\n";
    for meaning in table.legend() {
        let _ = writeln!(out, "<p>{}</p>", escaped(meaning));
    }
    out
}

fn section(out: &mut String, done: &Done) {
    let e = done.entry;
    let command = done.result["command"].as_str().unwrap_or_default();
    let _ = writeln!(
        out,
        "<h3 id=\"{}\">{}: {}</h3>\n<p>Programs: {}. Command: <code>{}</code>",
        e.name,
        escaped(e.place),
        escaped(e.shows),
        escaped(e.programs),
        escaped(command)
    );
    if let Some(why) = done.result["error"].as_str() {
        let _ = writeln!(out, "</p><p class=\"doesnot\">Did not run: {}</p>", escaped(why));
        return;
    }
    let seconds = done.result["seconds"].as_f64().unwrap_or(0.0);
    let _ = writeln!(out, "; it took {} s.</p>", judge::number(seconds));
    out.push_str(&charts(done));
    table(out, done);
    closeness(out, done);
    missed(out, done);
    let verdicts: Vec<_> = judge::verdicts(done).collect();
    if !verdicts.is_empty() {
        out.push_str("<p>What the paper concludes:</p>\n<ul>\n");
        for (claim, says, numbers) in verdicts {
            let class = match says {
                Says::Holds => "holds",
                Says::DoesNot => "doesnot",
                Says::Unknown => "unknown",
            };
            let why = match says {
                Says::DoesNot => format!(": {}", escaped(&judge::why(done, claim))),
                _ => String::new(),
            };
            let (claim, numbers) = (escaped(claim), escaped(numbers));
            let _ = writeln!(
                out,
                "<li>{claim}: <span class=\"{class}\">{}</span> ({numbers}){why}</li>",
                says.words()
            );
        }
        out.push_str("</ul>\n");
    }
    for (title, key) in [("What the model lacks", "lacks"), ("Notes", "notes")] {
        let texts: Vec<&str> = judge::texts(done, key).collect();
        if !texts.is_empty() {
            let items: String = texts.iter().map(|t| format!("<li>{}</li>\n", escaped(t))).collect();
            let _ = writeln!(out, "<p>{title}:</p>\n<ul>\n{items}</ul>");
        }
    }
}

fn table(out: &mut String, done: &Done) {
    let columns = judge::columns(done);
    let errors = judge::errors(done);
    out.push_str("<div class=\"scroll\"><table><tr>");
    for (_, title) in &columns {
        let _ = write!(out, "<th>{}</th>", escaped(title));
    }
    for (_, ours) in done.entry.pairs {
        let title = columns.iter().find(|c| c.0 == *ours).map_or(*ours, |c| c.1.as_str());
        let _ = write!(out, "<th>error of {}, %</th>", escaped(title));
    }
    out.push_str("</tr>\n");
    for row in 0..judge::rows(done).len() {
        out.push_str("<tr>");
        for (key, _) in &columns {
            let _ = match judge::cell(done, row, key) {
                Ok(text) => write!(out, "<td>{}</td>", escaped(&text)),
                Err(why) => write!(out, "<td class=\"m\" title=\"{}\">–</td>", escaped(&why)),
            };
        }
        for (_, ours) in done.entry.pairs {
            let error = errors.iter().find(|e| e.row == row && e.column == *ours);
            let _ = match error {
                Some(e) => write!(out, "<td>{}</td>", e.by.words()),
                None => write!(out, "<td class=\"m\">–</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

/// Numbers that are not reached.
fn missed(out: &mut String, done: &Done) {
    let missed = judge::missed(done);
    if !missed.is_empty() {
        let items: String = missed.iter().map(|text| format!("<li>{}</li>\n", escaped(text))).collect();
        let _ = writeln!(out, "<p>Not within {}:</p>\n<ul>\n{items}</ul>", done.entry.near.words());
    }
}

fn closeness(out: &mut String, done: &Done) {
    let errors = judge::errors(done);
    if let Some(median) = judge::median(&errors) {
        let largest = judge::percents(&errors).fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "<p>{} numbers of the paper beside ours: median error {median:.1} %, largest {largest:.1} %.</p>",
            errors.len()
        );
    }
    let orders = judge::orders(done);
    if orders.all > 0 {
        let _ = write!(out, "<p>{} of {} orders of rows are the paper's.", orders.kept, orders.all);
        if !orders.broken.is_empty() {
            let shown = orders.broken.len().min(20);
            let broken: Vec<String> = orders.broken[..shown]
                .iter()
                .map(|b| format!("{} ({})", escaped(b), escaped(&judge::why(done, b))))
                .collect();
            let _ = write!(out, " In the paper, not here: {}", broken.join("; "));
            if shown < orders.broken.len() {
                let _ = write!(out, "; {} more", orders.broken.len() - shown);
            }
            out.push('.');
        }
        out.push_str("</p>\n");
    }
}
