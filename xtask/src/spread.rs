//! How far repeated measurements are apart: results of `homenode measure --json` as one table.

use std::fs;

use crate::CommandResult;

/// A median that varies more is noisy (`homenode measure`).
const NOISY: f64 = 0.02;

/// A cell over all runs.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    cell: String,
    unit: String,
    /// The number that is reported, by run.
    values: Vec<Option<f64>>,
    /// Runs that called it noisy.
    noisy: usize,
}

/// What `spread` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct SpreadArgs {
    /// Results of 'homenode measure --json', two at least
    #[arg(value_name = "RUN.json", num_args = 2.., required = true)]
    runs: Vec<String>,
}

/// `cargo xtask spread RUN.json…`
pub fn run(args: &SpreadArgs) -> CommandResult {
    let args = &args.runs;
    let mut lines: Vec<Line> = Vec::new();
    for (number, path) in args.iter().enumerate() {
        let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        add(&mut lines, &text, number, args.len()).map_err(|why| format!("{path}: {why}"))?;
    }
    println!("{}", csv(&lines, args.len()));
    eprintln!("{}", summary(&lines));
    Ok(())
}

/// A subject as words: all that is not about the result, in the order of names.
fn subject(cell: &serde_json::Value) -> Option<String> {
    let result = ["value", "unit", "verdict", "summary", "more", "proof", "notes", "why", "remedy", "kind"];
    let of: Vec<String> = cell
        .as_object()?
        .iter()
        .filter(|(key, _)| !result.contains(&key.as_str()))
        .map(|(key, value)| format!("{key}={}", plain(value)))
        .collect();
    Some(format!("{} {}", cell["kind"].as_str()?, of.join(" ")))
}

/// Without quotes, brackets and commas, which a CSV would have to escape.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(s) => s.clone(),
        serde_json::Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join("+"),
        serde_json::Value::Object(of) => of.values().map(plain).collect::<Vec<_>>().join(":"),
        other => other.to_string(),
    }
}

fn add(lines: &mut Vec<Line>, text: &str, number: usize, runs: usize) -> CommandResult {
    let json: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if json["schema"] != "homenode/measurement/1" {
        return Err(format!("its schema is {}", json["schema"]));
    }
    for cell in json["cells"].as_array().ok_or("it has no cells")? {
        let name = subject(cell).ok_or("a cell has no kind")?;
        let at = lines.iter().position(|l| l.cell == name).unwrap_or_else(|| {
            let unit = cell["unit"].as_str().unwrap_or_default().to_owned();
            lines.push(Line { cell: name, unit, values: vec![None; runs], noisy: 0 });
            lines.len() - 1
        });
        lines[at].values[number] = cell["value"].as_f64();
        lines[at].noisy += usize::from(cell["verdict"] == "noisy");
    }
    Ok(())
}

impl Line {
    /// Standard deviation over mean, and (largest − smallest) over the middle one; nothing when a
    /// run lacks it.
    fn spread(&self) -> Option<(f64, f64)> {
        let mut values: Vec<f64> = self.values.iter().copied().collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let range = values.last()? - values.first()?;
        Some(((squares / (n - 1.0)).sqrt() / mean, range / values[values.len() / 2]))
    }
}

fn csv(lines: &[Line], runs: usize) -> String {
    let names: Vec<String> = (1..=runs).map(|n| format!("run {n}")).collect();
    let mut out = format!("cell,unit,{},cv %,range %,noisy in runs", names.join(","));
    for l in lines {
        let values: Vec<String> =
            l.values.iter().map(|v| v.map_or_else(String::new, |v| format!("{v:.2}"))).collect();
        let (cv, range) = l.spread().map_or_else(Default::default, |(cv, range)| {
            (format!("{:.2}", 100.0 * cv), format!("{:.2}", 100.0 * range))
        });
        out += &format!("\n{},{},{},{cv},{range},{}", l.cell, l.unit, values.join(","), l.noisy);
    }
    out
}

fn summary(lines: &[Line]) -> String {
    let spreads: Vec<(f64, &Line)> = lines.iter().filter_map(|l| Some((l.spread()?.0, l))).collect();
    let wide: Vec<_> = spreads.iter().filter(|(cv, _)| *cv > NOISY).collect();
    let unmarked: Vec<_> = wide.iter().filter(|(_, l)| l.noisy == 0).collect();
    let mut said = format!(
        "{} cells in all runs, {} vary by more than 2 % from run to run, {} of these were never marked noisy",
        spreads.len(),
        wide.len(),
        unmarked.len()
    );
    for (cv, l) in unmarked {
        said += &format!("\n  {:.2} %: {}", 100.0 * cv, l.cell);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, verdict: &str) -> String {
        format!(
            r#"{{"schema":"homenode/measurement/1","cells":[{{"kind":"latency","pair":{{"cpu":0,"memory":1}},"page":"4KiB",
               "value":{value},"unit":"ns","verdict":"{verdict}"}}]}}"#
        )
    }

    #[test]
    fn runs_become_a_line_a_cell() {
        let mut lines = Vec::new();
        for (i, (value, verdict)) in [(99.0, "ok"), (100.0, "noisy"), (101.0, "ok")].into_iter().enumerate() {
            add(&mut lines, &text(value, verdict), i, 3).unwrap();
        }
        let table = csv(&lines, 3);
        assert_eq!(
            table,
            "cell,unit,run 1,run 2,run 3,cv %,range %,noisy in runs\n\
             latency page=4KiB pair=0:1,ns,99.00,100.00,101.00,1.00,2.00,1"
        );
        assert!(summary(&lines).starts_with("1 cells in all runs, 0 vary"));
        lines[0].noisy = 0;
        lines[0].values[0] = Some(50.0);
        assert!(summary(&lines).contains("1 of these were never marked noisy\n"));
        lines[0].values[0] = None;
        assert_eq!(lines[0].spread(), None, "a run lacks it");
        assert!(add(&mut lines, "{}", 0, 3).is_err());
    }
}
