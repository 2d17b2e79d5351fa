//! Table 2: heat diffusion by two threads, each with its rows of the grid, on bricks of one's
//! choice and as the system likes it.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use homenode_error::{Error, Result};
use homenode_kernels::{BuildVariant, Kernel};
use homenode_measure::NodePair;
use homenode_table::{Cell, Column, Table};

use super::setting::Robertson;
use super::stand_ins::{self, Bricks, StandIns, shown};
use crate::verdict::{Says, Shown};

/// An experiment: its number, its pairs (none: as the system likes), best, average and deviation in
/// seconds.
pub(super) struct Times {
    pub(super) number: &'static str,
    pub(super) pairs: &'static [Bricks],
    pub(super) best: f64,
    average: f64,
    deviation: f64,
}

/// Table 2.
pub(super) const TABLE_2: [Times; 6] = [
    Times { number: "2.1", pairs: &[(0, 0), (0, 0)], best: 3.2, average: 3.8, deviation: 0.63 },
    Times { number: "2.2", pairs: &[(0, 0), (1, 1)], best: 3.1, average: 3.7, deviation: 0.49 },
    Times { number: "2.3", pairs: &[(0, 1), (1, 0)], best: 4.0, average: 4.1, deviation: 0.08 },
    Times { number: "2.4", pairs: &[(9, 0), (9, 0)], best: 4.6, average: 5.0, deviation: 0.45 },
    Times { number: "2.5", pairs: &[(9, 0), (9, 1)], best: 4.4, average: 5.4, deviation: 0.94 },
    Times { number: "2.6", pairs: &[], best: 4.3, average: 4.7, deviation: 0.23 },
];

/// The paper's grid: 1500 by 2048 points.
pub(super) const GRID: (u32, u32) = (1500, 2048);
/// And its iterations.
pub(super) const ITERATIONS: u32 = 25;

/// One run's seconds, or why there are none.
type Run = std::result::Result<f64, String>;

pub(super) fn table2(of: &Robertson<'_>, runs: u32) -> Result<Shown> {
    let stand_ins = StandIns::of(&of.host)?;
    let binary = Kernel::find("heat")?.build(BuildVariant::Placed, of.task)?;
    let wanted: Vec<_> = TABLE_2.iter().map(|row| stand_ins.pairs(row.pairs)).collect();
    let mut all: Vec<Vec<Run>> = vec![Vec::new(); TABLE_2.len()];
    let mut progress = of.task.progress("heat", Some(u64::from(runs)));
    // In turns, so that what else the machine does falls on all of them.
    for _ in 0..runs {
        for (pairs, seconds) in wanted.iter().zip(&mut all) {
            if of.task.stop_asked() {
                return Err(Error::interrupted());
            }
            if let Ok(pairs) = pairs {
                seconds.push(once(&binary, pairs)?);
            }
        }
        progress.advance(1);
    }
    progress.finish();
    let columns = vec![
        Column::text("experiment", "exp."),
        Column::text("bricks", "bricks"),
        Column::text("nodes", "nodes here"),
        Column::unit("paper_best", "best, paper", "s"),
        Column::unit("best", "ours", "s"),
        Column::unit("paper_average", "average, paper", "s"),
        Column::unit("average", "ours", "s"),
        Column::unit("paper_deviation", "deviation, paper", "s"),
        Column::unit("deviation", "ours", "s"),
        Column::number("paper_relative", "best / 2.1, paper"),
        Column::number("relative", "ours"),
        Column::unit("difference", "difference", "%"),
    ];
    let mut table = Table::new("robertson-table2", 1, columns);
    of.facts(&mut table);
    let all_ours: Vec<_> = wanted.iter().zip(&all).map(|(w, runs)| Statistics::of(w, runs)).collect();
    for ((row, ours), pairs) in TABLE_2.iter().zip(&all_ours).zip(&wanted) {
        let number = |v: std::result::Result<f64, &String>, digits| {
            v.map_or_else(|why| Cell::missing(why.clone()), |v| Cell::float(v, digits))
        };
        let s = ours.as_ref();
        let paper = row.best / TABLE_2[0].best;
        let relative = s.and_then(|s| all_ours[0].as_ref().map(|first| s.best / first.best));
        table.row(vec![
            Cell::text(row.number),
            Cell::text(if row.pairs.is_empty() { "IRIX".into() } else { stand_ins::words(row.pairs) }),
            match pairs {
                Ok(p) if p.is_empty() => Cell::text("Linux"),
                Ok(p) => Cell::text(shown(p)),
                Err(why) => Cell::missing(why.clone()),
            },
            Cell::float(row.best, 1),
            number(s.map(|s| s.best), 4),
            Cell::float(row.average, 1),
            number(s.map(|s| s.average), 4),
            Cell::float(row.deviation, 2),
            number(s.map(|s| s.deviation), 4),
            Cell::float(paper, 2),
            number(relative, 2),
            number(relative.map(|r| 100.0 * (r / paper - 1.0)), 1),
        ]);
    }
    of.rows_that_cannot_be(&mut table, &stand_ins, TABLE_2.iter().map(|r| (r.number, r.pairs)));
    for why in all_ours.iter().zip(&wanted).filter(|(_, w)| w.is_ok()).filter_map(|(o, _)| o.as_ref().err()) {
        table.note(format!("not measured: {why}"));
    }
    table.note(format!(
        "ours: kernel:heat, {} x {} points, {ITERATIONS} iterations, {runs} runs in turns; each run verified its result, and \
         where thread and pages were",
        GRID.0, GRID.1
    ));
    let best: Vec<Option<f64>> = all_ours.iter().map(|o| o.as_ref().ok().map(|s| s.best)).collect();
    let mut shown = Shown::new(table);
    verdicts(&mut shown, &best);
    Ok(shown)
}

/// What section 5 concludes from the best times, in the order of [`TABLE_2`].
pub(super) fn verdicts(shown: &mut Shown, best: &[Option<f64>]) {
    let get = |number| TABLE_2.iter().position(|r| r.number == number).and_then(|i| best[i]);
    let slowest = ["2.1", "2.2", "2.3", "2.4", "2.5"].map(get);
    let (says, numbers) = match (get("2.2"), get("2.4")) {
        (Some(near), Some(far)) => {
            let more = 100.0 * (far / near - 1.0);
            (Says::of((25.0..=75.0).contains(&more)), format!("{more:.0} %; 25 to 75 % counts"))
        }
        _ => (Says::Unknown, "a row is missing".to_owned()),
    };
    shown.judge("2.4 takes about 40 to 50 % longer than 2.2 (section 5)", says, numbers);
    let (says, numbers) = match slowest {
        [Some(a), Some(b), Some(c), Some(d), Some(e)] => {
            let least = [a, c, d, e].into_iter().fold(f64::INFINITY, f64::min);
            (Says::of(b <= least * 1.001), format!("{b:.3} s, the others from {least:.3} s on"))
        }
        _ => (Says::Unknown, "a row is missing".to_owned()),
    };
    shown.judge(
        "each thread with its grid points on a brick of its own is fastest (section 5)",
        says,
        numbers,
    );
    let (says, numbers) = match (get("2.6"), get("2.2"), get("2.4")) {
        (Some(system), Some(near), Some(far)) => {
            (Says::of(system - near > (far - near) / 2.0), format!("{system:.3} s; {near:.3} to {far:.3} s"))
        }
        _ => (Says::Unknown, "the system's placement or a row is missing".to_owned()),
    };
    shown.judge("without explicit placement it is close to the worst (section 5)", says, numbers);
}

/// Of runs, as the paper gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Statistics {
    best: f64,
    average: f64,
    deviation: f64,
}

impl Statistics {
    fn of(
        wanted: &std::result::Result<Vec<NodePair>, String>,
        runs: &[Run],
    ) -> std::result::Result<Self, String> {
        if let Err(why) = wanted {
            return Err(why.clone());
        }
        let seconds: Vec<f64> = runs.iter().cloned().collect::<std::result::Result<_, _>>()?;
        let n = seconds.len() as f64;
        if seconds.len() < 2 {
            return Err("a deviation takes two runs".into());
        }
        let average = seconds.iter().sum::<f64>() / n;
        let squares: f64 = seconds.iter().map(|s| (s - average) * (s - average)).sum();
        let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Self { best, average, deviation: (squares / (n - 1.0)).sqrt() })
    }
}

/// One run. A program that says that it cannot is a cell without a number; one that dies is an
/// error.
fn once(binary: &std::path::Path, pairs: &[NodePair]) -> Result<Run> {
    let mut command = Command::new(binary);
    let numbers = [("--size", GRID.0), ("--columns", GRID.1), ("--iterations", ITERATIONS), ("--threads", 2)];
    for (option, n) in numbers {
        command.args([OsString::from(option), n.to_string().into()]);
    }
    if !pairs.is_empty() {
        let list: Vec<String> = pairs.iter().map(ToString::to_string).collect();
        command.args(["--pairs", &list.join(",")]);
    }
    for (name, _) in std::env::vars_os() {
        // Placement is the experiment's.
        let name = name.to_string_lossy().into_owned();
        if ["OMP_", "GOMP_", "KMP_"].iter().any(|p| name.starts_with(p)) {
            command.env_remove(name);
        }
    }
    let failed = || Error::failed("cannot run kernel:heat");
    let output = command
        .arg("--json")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed().tried(format!("start {}: {e}", binary.display())))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    match output.status.code() {
        Some(0) => {}
        Some(1 | 2) => return Ok(Err(said)),
        _ => return Err(failed().tried(format!("{}: {said}", output.status))),
    }
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| failed().tried(format!("read its report: {e}")))?;
    let verified = json["verification"]["state"] == "successful";
    match json["seconds"].as_f64() {
        Some(seconds) if verified => Ok(Ok(seconds)),
        _ => Ok(Err(format!("its result is {}", json["verification"]["state"]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_best_an_average_and_a_deviation() {
        let s = Statistics::of(&Ok(vec![]), &[Ok(2.0), Ok(1.0), Ok(3.0)]).unwrap();
        assert_eq!((s.best, s.average, s.deviation), (1.0, 2.0, 1.0));
        assert_eq!(Statistics::of(&Ok(vec![]), &[Ok(2.0), Err("astray".into())]).unwrap_err(), "astray");
        assert_eq!(Statistics::of(&Err("no node".into()), &[]).unwrap_err(), "no node");
    }
}
