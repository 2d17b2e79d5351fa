//! Tao, Schulz and Karl, "An Adaptive Runtime System for SCI based NUMA Clusters".
//!
//! Five programs of the paper's sizes run with four threads on `smile`, from pages that are dealt
//! round robin. Every access is recorded, because the machine does not cache remote memory. The
//! policies decide at the end of each parallel region with the threshold of the paper, twice the
//! average.

use std::sync::Arc;

use homenode_error::{Result, suggest};
use homenode_model::{Bytes, Topology};
use homenode_schemes::scheme::{Layout, Variant};
use homenode_sim::memory::{Outcome, Percent};
use homenode_sim::statistics::{self, Moves};
use homenode_table::{Cell, Column, Table};

use super::runs::{Case, Run, Workshop};

/// Threads, one a node.
const THREADS: u32 = 4;

/// The machine of the paper.
pub const MACHINE: &str = "smile";

/// The migration schemes, by column of Table 1, with the policy that stands for each.
const SCHEMES: [(&str, &str); 5] = [
    ("Out-U-local", "out-u-local:from=round-robin"),
    ("Out-W-local", "out-w-local:from=round-robin"),
    ("Out-U", "out-u:from=round-robin"),
    ("Out-W", "out-w:from=round-robin"),
    ("In-W", "in-w:from=round-robin"),
];

/// A program of the paper.
struct Program {
    /// As the paper calls it.
    name: &'static str,
    /// The kernel that stands for it, and its class of the paper's size.
    kernel: (&'static str, &'static str),
    /// Table 1, by scheme: migrations, ping-pongs, multiple migrations, incorrect migrations.
    table1: [[u64; 4]; 5],
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "FFT",
        kernel: ("splash-fft", "S"),
        table1: [[41, 0, 0, 0], [89, 0, 0, 0], [69, 0, 0, 0], [27, 0, 0, 0], [96, 0, 0, 3]],
    },
    Program {
        name: "LU",
        kernel: ("splash-lu", "S"),
        table1: [[28, 0, 3, 0], [30, 0, 3, 0], [16, 0, 1, 1], [20, 0, 0, 1], [30, 0, 3, 0]],
    },
    Program {
        name: "RADIX",
        kernel: ("splash-radix", "S"),
        table1: [[81, 0, 0, 0], [191, 0, 0, 0], [98, 0, 1, 1], [98, 0, 0, 0], [106, 0, 0, 0]],
    },
    Program {
        name: "WATER",
        kernel: ("splash-water-nsquared", "S"),
        table1: [[26, 0, 0, 0], [89, 0, 29, 0], [48, 0, 1, 0], [119, 0, 43, 0], [33, 1, 1, 0]],
    },
    Program {
        name: "SOR",
        kernel: ("sor", "W"),
        table1: [[24, 0, 0, 0], [24, 0, 0, 0], [25, 0, 0, 1], [27, 0, 0, 2], [26, 0, 0, 2]],
    },
];

/// The speedup of SOR over round robin: the one number of Figure 2 that the text prints, for the
/// best scheme.
const SOR_SPEEDUP: f64 = 1.88;

/// What is asked for.
pub struct Settings {
    /// Programs, by the paper's name or the kernel's; empty: all.
    pub programs: Vec<String>,
    /// The machine instead of the paper's.
    pub machine: Arc<Topology>,
}

/// The paper's experiments.
pub struct Tao<'a> {
    settings: Settings,
    shop: Workshop<'a>,
}

impl<'a> Tao<'a> {
    /// With recordings in `folder`.
    pub const fn new(
        settings: Settings,
        folder: std::path::PathBuf,
        workers: usize,
        task: &'a dyn homenode_task::Task,
    ) -> Self {
        Self { settings, shop: Workshop { folder, workers, task } }
    }

    /// Table 1: moves of pages by program and scheme, the paper's beside ours.
    ///
    /// # Errors
    /// A program cannot be built, recorded or simulated.
    pub fn table1(&self) -> Result<Table> {
        let mut columns = vec![Column::text("program", "program"), Column::text("scheme", "scheme")];
        for (key, ours, title) in [
            ("mig", "mig_ours", "mig"),
            ("ping_pongs", "ping_pongs_ours", "p-p"),
            ("multiple", "multiple_ours", "mul"),
            ("incorrect", "incorrect_ours", "err"),
        ] {
            columns.push(Column::number(key, title));
            columns.push(Column::number(ours, "ours"));
        }
        let mut table = Table::new("tao-table1", 1, columns);
        let (mut near, mut calm, mut rows) = (0, 0, 0);
        for program in self.programs()? {
            let outcomes = self.outcomes(program, &SCHEMES.map(|(_, policy)| policy))?;
            for (((name, _), outcome), theirs) in SCHEMES.iter().zip(&outcomes).zip(program.table1) {
                let moves = statistics::moves(outcome);
                let Moves { migrations, ping_pongs, multiple, incorrect, .. } = moves;
                let ours = [migrations, ping_pongs, multiple, incorrect];
                let mut row = vec![Cell::text(program.name), Cell::text(*name)];
                row.extend(theirs.iter().zip(ours).flat_map(|(t, o)| [Cell::int(*t), Cell::int(o)]));
                table.row(row);
                rows += 1;
                near += u32::from(within_twice(theirs[0], migrations));
                calm += u32::from(ping_pongs <= 5);
            }
        }
        table.note("mig: moves; p-p: back to where the page came from; mul: on to a third node; err: away from its main user");
        table.note(format!("{near} of {rows} numbers of moves are within a factor of 2 of the paper's"));
        table.note(format!("{calm} of {rows} cells have at most 5 ping-pongs"));
        table.note(INTERVALS);
        Ok(table)
    }

    /// Figure 2: times of the unoptimised program, of each scheme, and of a manual placement.
    ///
    /// # Errors
    /// As [`Tao::table1`].
    pub fn figure2(&self) -> Result<Table> {
        let mut table = Table::new(
            "tao-fig2",
            1,
            vec![
                Column::text("program", "program"),
                Column::text("run", "run"),
                Column::unit("time", "time", "s"),
                Column::number("speedup", "speedup"),
                Column::number("paper", "paper"),
            ],
        );
        let runs: Vec<(&str, &str)> =
            [&[("Unoptimised", "round-robin")], &SCHEMES[..], &[("Optimised", "plan")]].concat();
        for program in self.programs()? {
            let outcomes = self.outcomes(program, &runs.iter().map(|r| r.1).collect::<Vec<_>>())?;
            let times: Vec<f64> = outcomes.iter().map(|o| o.time.secs()).collect();
            let best = SCHEMES.len().min(times.len() - 2);
            let quickest = times[1..=best].iter().copied().fold(f64::INFINITY, f64::min);
            for ((name, _), time) in runs.iter().zip(&times) {
                let is_printed = program.name == "SOR" && time.to_bits() == quickest.to_bits();
                table.row(vec![
                    Cell::text(program.name),
                    Cell::text(*name),
                    Cell::float(*time, 4),
                    Cell::float(times[0] / time, 2),
                    if is_printed { Cell::float(SOR_SPEEDUP, 2) } else { Cell::missing(DRAWN) },
                ]);
            }
            for text in conclusions(program.name, &times) {
                table.note(text);
            }
        }
        table.note(
            "speedup: over round robin; Optimised: each page where its accesses cost least, known beforehand",
        );
        table.note(INTERVALS);
        Ok(table)
    }

    fn outcomes(&self, program: &Program, policies: &[&'static str]) -> Result<Vec<Outcome>> {
        let run = Run {
            class: program.kernel.1.into(),
            threads: THREADS,
            iterations: 0,
            variant: Variant::Parallel,
            filter_lines: 0,
        };
        let case = |policy: &&'static str| Case {
            machine: self.settings.machine.clone(),
            page: self.settings.machine.page_sizes.first().copied().unwrap_or(Bytes::kib(4)),
            layout: Layout::Spread,
            policy,
            coverage: Percent::ZERO,
        };
        self.shop.outcomes(program.kernel.0, &run, &policies.iter().map(case).collect::<Vec<_>>())
    }

    fn programs(&self) -> Result<Vec<&'static Program>> {
        let names: Vec<&str> = PROGRAMS.iter().map(|p| p.kernel.0).collect();
        let find = |name: &String| {
            let known = |p: &&Program| [p.name, p.kernel.0].iter().any(|n| n.eq_ignore_ascii_case(name));
            PROGRAMS.iter().find(known).ok_or_else(|| {
                suggest::unknown("program of the paper", name, &names, "homenode paper --help")
            })
        };
        match self.settings.programs.is_empty() {
            true => Ok(PROGRAMS.iter().collect()),
            false => self.settings.programs.iter().map(find).collect(),
        }
    }
}

const DRAWN: &str = "the paper draws it and prints no number";

const INTERVALS: &str = "pages begin round robin; decisions at the end of each parallel region; the paper does not say its intervals";

/// Whether each of two counts is at most twice the other.
const fn within_twice(a: u64, b: u64) -> bool {
    a <= 2 * b && b <= 2 * a
}

/// What the paper concludes from the figure, and whether it holds here. `times`: unoptimised, by
/// scheme, optimised.
fn conclusions(program: &str, times: &[f64]) -> Vec<String> {
    let [unoptimised, schemes @ .., optimised] = times else { return Vec::new() };
    let holds = |yes: bool| if yes { "holds" } else { "does not hold" };
    let all_faster = schemes.iter().all(|t| t < unoptimised);
    let mut all =
        vec![format!("{program}: \"faster after migration, whichever algorithm\" {}", holds(all_faster))];
    let best = schemes.iter().copied().fold(f64::INFINITY, f64::min);
    all.push(match program {
        "WATER" => format!(
            "{program}: \"migration is better than the optimised version\" {}",
            holds(best < *optimised)
        ),
        _ => format!("{program}: \"the optimised version is better\" {}", holds(*optimised <= best)),
    });
    if let ([_, _, out_u, out_w, _], "LU" | "WATER") = (schemes, program) {
        all.push(format!("{program}: \"Out-W outperforms Out-U\" {}", holds(out_w < out_u)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conclusions_are_judged_from_the_times() {
        let all = conclusions("LU", &[10.0, 5.0, 5.0, 6.0, 4.0, 11.0, 3.0]).join("\n");
        assert!(all.contains("whichever algorithm\" does not hold"), "{all}");
        assert!(all.contains("optimised version is better\" holds"), "{all}");
        assert!(all.contains("Out-W outperforms Out-U\" holds"), "{all}");
        let water = conclusions("WATER", &[10.0, 5.0, 5.0, 6.0, 7.0, 9.0, 6.0]).join("\n");
        assert!(water.contains("better than the optimised version\" holds"), "{water}");
        assert!(water.contains("Out-W outperforms Out-U\" does not hold"), "{water}");
    }

    #[test]
    fn a_factor_of_two_is_symmetric() {
        assert!(within_twice(24, 48) && within_twice(48, 24) && within_twice(0, 0));
        assert!(!within_twice(24, 49) && !within_twice(0, 1) && !within_twice(1, 0));
    }
}
