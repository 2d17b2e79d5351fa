//! What there is: each table and figure of the four papers, and how to run it.

use homenode_error::{Error, Result, suggest};
use homenode_table::{Cell, Column, Table};
use homenode_task::Task;

use crate::ask::Ask;
use crate::lof::Lof;
use crate::niko::Niko;
use crate::robertson::{self, Robertson};
use crate::tao::Tao;
use crate::verdict::Shown;

/// The picture that a report draws of a table.
#[derive(Clone, Copy, Debug)]
pub enum Chart {
    /// A group of bars a row: one a column.
    Bars(&'static [&'static str]),
    /// A line a column over the column `x`.
    Lines {
        /// Column of the horizontal axis.
        x: &'static str,
        /// Columns that are drawn.
        y: &'static [&'static str],
    },
}

/// How far our number may be from the paper's and counts as reached: within a factor, or within a
/// difference.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    factor: f64,
    difference: f64,
}

impl Near {
    const fn factor(factor: f64) -> Self {
        Self { factor, difference: 0.0 }
    }
    const fn difference(difference: f64) -> Self {
        Self { factor: 1.0, difference }
    }
    /// Whether `ours` is near `theirs`.
    pub fn reached(self, theirs: f64, ours: f64) -> bool {
        let (least, most) = (theirs.min(ours), theirs.max(ours));
        // Both are rounded in a table.
        most - least <= self.difference + 1e-9 || least > 0.0 && most <= least * self.factor
    }
    /// In words.
    pub fn words(self) -> String {
        match (self.factor > 1.0, self.difference > 0.0) {
            (true, true) => format!("a factor of {} or a difference of {}", self.factor, self.difference),
            (true, false) => format!("a factor of {}", self.factor),
            _ => format!("a difference of {}", self.difference),
        }
    }
}

/// A table or figure of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// As typed.
    pub name: &'static str,
    /// Authors.
    pub paper: &'static str,
    /// What it is in the paper.
    pub place: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// Programs.
    pub programs: &'static str,
    /// Seconds with the default classes on two cores.
    pub seconds: u32,
    /// The same with `--small`.
    pub seconds_small: u32,
    /// Columns with the paper's number and with ours.
    pub pairs: &'static [(&'static str, &'static str)],
    /// Which of our numbers count as reached.
    pub near: Near,
    /// Columns that name a row; rows that agree in the first of several are one group.
    pub keys: &'static [&'static str],
    /// Its picture.
    pub chart: Chart,
    run: fn(&Ask, &dyn Task) -> Result<Shown>,
}

const LOF: &str = "Löf, Nordén and Holmgren";
const NIKO: &str = "Nikolopoulos, Ayguadé and Polychronopoulos";
const ROBERTSON: &str = "Robertson and Rendell";
/// [`Entry::place`] of what only explains our numbers.
const NOT_IN_THE_PAPER: &str = "not in the paper";
const TAO: &str = "Tao, Schulz and Karl";

const VERSIONS: &[&str] = &["automatic", "manual", "online", "shared", "offline", "balanced"];
const ACCESSES: &[&str] = &[
    "automatic_local",
    "automatic_remote",
    "manual_local",
    "manual_remote",
    "online_local",
    "online_remote",
];

/// All tables and figures, paper by paper, in the papers' order.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "lof-table1",
        paper: LOF,
        place: "Table 1",
        shows: "times of all placement schemes over UMA",
        programs: "nas-cg, nas-mg, i-cg, i-mg",
        seconds: 1800,
        seconds_small: 40,
        pairs: &[("paper", "ours")],
        near: Near::difference(0.08),
        keys: &["program", "scheme"],
        chart: Chart::Bars(&["paper", "ours"]),
        run: |ask, task| Lof::new(ask, "sf15k", task)?.table1(),
    },
    Entry {
        name: "lof-table2",
        paper: LOF,
        place: "Table 2",
        shows: "share of remote accesses",
        programs: "nas-cg, nas-mg, i-cg, i-mg",
        seconds: 900,
        seconds_small: 15,
        pairs: &[("paper", "ours")],
        near: Near::difference(10.0),
        keys: &["program", "scheme"],
        chart: Chart::Bars(&["paper", "ours"]),
        run: |ask, task| Lof::new(ask, "sf15k", task)?.table2(),
    },
    Entry {
        name: "lof-table3",
        paper: LOF,
        place: "Table 3",
        shows: "what migration costs: first minus second iteration",
        programs: "nas-cg, nas-mg, i-cg, i-mg",
        seconds: 900,
        seconds_small: 20,
        pairs: &[("paper", "ours")],
        near: Near::factor(2.0),
        keys: &["program", "run"],
        chart: Chart::Bars(&["paper", "ours"]),
        run: |ask, task| Lof::new(ask, "sf15k", task)?.table3(),
    },
    Entry {
        name: "lof-fig1",
        paper: LOF,
        place: "Figure 1",
        shows: "time per iteration of NAS-CG and NAS-MG",
        programs: "nas-cg, nas-mg",
        seconds: 600,
        seconds_small: 10,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program"],
        chart: Chart::Lines { x: "iteration", y: &["uma", "si", "pi", "si_mig"] },
        run: |ask, task| Lof::new(ask, "sf15k", task)?.figure("lof-fig1", &["NAS-CG", "NAS-MG"]),
    },
    Entry {
        name: "lof-fig2",
        paper: LOF,
        place: "Figure 2",
        shows: "time per iteration of I-CG and I-MG",
        programs: "i-cg, i-mg",
        seconds: 600,
        seconds_small: 10,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program"],
        chart: Chart::Lines { x: "iteration", y: &["uma", "si", "pi", "si_mig"] },
        run: |ask, task| Lof::new(ask, "sf15k", task)?.figure("lof-fig2", &["I-CG", "I-MG"]),
    },
    Entry {
        name: "lof-fig3",
        paper: LOF,
        place: "Figure 3",
        shows: "a daemon that migrates, on WildFire",
        programs: "nas-cg, nas-mg, i-cg, i-mg",
        seconds: 900,
        seconds_small: 20,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program"],
        chart: Chart::Lines { x: "iteration", y: &["uma", "si", "si_tmig"] },
        run: |ask, task| Lof::new(ask, "wildfire", task)?.figure3(),
    },
    Entry {
        name: "lof-fit",
        paper: LOF,
        place: NOT_IN_THE_PAPER,
        shows: "the coverage of streams with which SI/UMA of Table 1 comes out",
        programs: "nas-cg, nas-mg, i-cg, i-mg",
        seconds: 1800,
        seconds_small: 60,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program"],
        chart: Chart::Bars(&["coverage"]),
        run: |ask, task| Lof::new(ask, "sf15k", task)?.fit(),
    },
    Entry {
        name: "niko-fig1",
        paper: NIKO,
        place: "Figure 1",
        shows: "times by processors: automatic, manual, online, offline",
        programs: "nas-bt, nas-sp, nas-cg, nas-ft, nas-mg",
        seconds: 600,
        seconds_small: 60,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program", "processors"],
        chart: Chart::Lines { x: "processors", y: VERSIONS },
        run: |ask, task| Niko::new(ask, task)?.figure1(),
    },
    Entry {
        name: "niko-fig2",
        paper: NIKO,
        place: "Figure 2",
        shows: "local and remote accesses to each node's memory",
        programs: "nas-bt, nas-mg",
        seconds: 60,
        seconds_small: 10,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program", "node"],
        chart: Chart::Lines { x: "node", y: ACCESSES },
        run: |ask, task| Niko::new(ask, task)?.accesses("niko-fig2", &["BT", "MG"], 1),
    },
    Entry {
        name: "niko-fig3",
        paper: NIKO,
        place: "Figure 3",
        shows: "overhead of the engine: a spare processor, and 50-50 sharing",
        programs: "nas-bt, nas-sp, nas-cg, nas-ft, nas-mg",
        seconds: 240,
        seconds_small: 30,
        pairs: &[("paper", "ours")],
        near: Near::factor(2.0),
        keys: &["program", "iterations"],
        chart: Chart::Bars(&["paper", "ours"]),
        run: |ask, task| Niko::new(ask, task)?.figure3(),
    },
    Entry {
        name: "niko-fig4",
        paper: NIKO,
        place: "Figure 4",
        shows: "times with twice the iterations",
        programs: "nas-mg, nas-ft",
        seconds: 480,
        seconds_small: 30,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program", "processors"],
        chart: Chart::Lines { x: "processors", y: VERSIONS },
        run: |ask, task| Niko::new(ask, task)?.figure4(),
    },
    Entry {
        name: "niko-fig5",
        paper: NIKO,
        place: "Figure 5",
        shows: "accesses to each node's memory with twice the iterations",
        programs: "nas-mg, nas-ft",
        seconds: 120,
        seconds_small: 10,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["program", "node"],
        chart: Chart::Lines { x: "node", y: ACCESSES },
        run: |ask, task| Niko::new(ask, task)?.accesses("niko-fig5", &["MG", "FT"], 2),
    },
    Entry {
        name: "niko-fig8",
        paper: NIKO,
        place: "Figure 8",
        shows: "times of LU: automatic, manual, online, schedule reuse",
        programs: "lu",
        seconds: 240,
        seconds_small: 15,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["processors"],
        chart: Chart::Lines { x: "processors", y: &["automatic", "manual", "online", "shared", "reuse"] },
        run: |ask, task| Niko::new(ask, task)?.figure8(),
    },
    Entry {
        name: "niko-fig9",
        paper: NIKO,
        place: "Figure 9",
        shows: "accesses to each node's memory in LU",
        programs: "lu",
        seconds: 60,
        seconds_small: 10,
        pairs: &[],
        near: Near::difference(0.0),
        keys: &["node"],
        chart: Chart::Lines {
            x: "node",
            y: &[
                "automatic_local",
                "automatic_remote",
                "manual_local",
                "manual_remote",
                "reuse_local",
                "reuse_remote",
            ],
        },
        run: |ask, task| Niko::new(ask, task)?.figure9(),
    },
    Entry {
        name: "robertson-fig2",
        paper: ROBERTSON,
        place: "Figure 2",
        shows: "latency of one brick's memory from all bricks",
        programs: "a random chain of loads",
        seconds: 1,
        seconds_small: 1,
        pairs: &[("paper", "ours")],
        near: Near::factor(1.25),
        keys: &["node"],
        chart: Chart::Bars(&["paper", "ours"]),
        run: |ask, task| Robertson::new(ask, task)?.figure2(),
    },
    Entry {
        name: "robertson-table1",
        paper: ROBERTSON,
        place: "Table 1",
        shows: "bandwidth of one or two threads, each with memory of one's choice",
        programs: "STREAM's scale and triad",
        seconds: 1,
        seconds_small: 1,
        pairs: &[("paper", "ours"), ("paper", "blocking"), ("paper_relative", "ours_relative")],
        near: Near::factor(1.25),
        keys: &["loop", "experiment"],
        chart: Chart::Bars(&["paper_relative", "ours_relative"]),
        run: |ask, task| Robertson::new(ask, task)?.table1(),
    },
    Entry {
        name: "robertson-table2",
        paper: ROBERTSON,
        place: "Table 2",
        shows: "heat diffusion by two threads, each with its grid points on a brick of one's choice",
        programs: "heat",
        seconds: 15,
        seconds_small: 5,
        pairs: &[("paper_best", "best"), ("paper_relative", "relative")],
        near: Near::factor(1.25),
        keys: &["experiment"],
        chart: Chart::Bars(&["paper_relative", "relative"]),
        run: robertson::table2,
    },
    Entry {
        name: "tao-table1",
        paper: TAO,
        place: "Table 1",
        shows: "moves of pages by program and migration scheme",
        programs: "fft, lu, radix, water, sor",
        seconds: 120,
        seconds_small: 60,
        pairs: &[
            ("mig", "mig_ours"),
            ("ping_pongs", "ping_pongs_ours"),
            ("multiple", "multiple_ours"),
            ("incorrect", "incorrect_ours"),
        ],
        near: Near { factor: 2.0, difference: 5.0 },
        keys: &["program", "scheme"],
        chart: Chart::Bars(&["mig", "mig_ours"]),
        run: |ask, task| Tao::new(ask, task)?.table1(),
    },
    Entry {
        name: "tao-fig2",
        paper: TAO,
        place: "Figure 2",
        shows: "times of the unoptimised program, of each scheme, and of a manual placement",
        programs: "fft, lu, radix, water, sor",
        seconds: 120,
        seconds_small: 60,
        pairs: &[("paper", "speedup")],
        near: Near::factor(1.25),
        keys: &["program", "run"],
        chart: Chart::Bars(&["speedup"]),
        run: |ask, task| Tao::new(ask, task)?.figure2(),
    },
    Entry {
        name: "tao-readings",
        paper: TAO,
        place: NOT_IN_THE_PAPER,
        shows: "moves of pages under each reading of the paper's threshold and weights",
        programs: "fft, lu, radix, water, sor",
        seconds: 120,
        seconds_small: 60,
        pairs: &[("mig", "mig_ours"), ("ping_pongs", "ping_pongs_ours")],
        near: Near { factor: 2.0, difference: 5.0 },
        keys: &["scheme", "reading", "program"],
        chart: Chart::Bars(&["mig", "mig_ours"]),
        run: |ask, task| Tao::new(ask, task)?.readings(),
    },
];

impl Entry {
    /// The table or figure of a name.
    ///
    /// # Errors
    /// There is none; lists all with a line each.
    pub fn find(name: &str) -> Result<&'static Self> {
        let found = ENTRIES.iter().find(|e| e.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = ENTRIES.iter().map(|e| e.name).collect();
            let error: Error = suggest::unknown("table or figure", name, &names, "homenode paper list");
            let line = |e: &Entry| format!("\n  {:<17} {}, {}: {}", e.name, e.paper, e.place, e.shows);
            let all: String = ENTRIES.iter().map(line).collect();
            let help = error.hint.clone().unwrap_or_default();
            error.hint(format!("{help}{all}"))
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// A program cannot be built, recorded, simulated or measured.
    pub fn run(&self, ask: &Ask, task: &dyn Task) -> Result<Shown> {
        (self.run)(ask, task)
    }

    /// Its programs that take part when these are asked for; its own where none is.
    pub(crate) fn takes(&self, program: &str) -> bool {
        let bare = |name: &str| name.trim_start_matches("nas-").to_ascii_lowercase();
        self.programs.split(", ").any(|p| bare(p) == bare(program))
    }

    /// Whether the paper has it; `paper all` leaves all others out.
    pub(crate) fn is_in_the_paper(&self) -> bool {
        self.place != NOT_IN_THE_PAPER
    }

    /// What a user types for it.
    pub(crate) fn command(&self, small: bool) -> String {
        format!("homenode paper {}{}", self.name, if small { " --small" } else { "" })
    }

    /// About how long it takes, in seconds.
    pub(crate) const fn estimate(&self, small: bool) -> u32 {
        if small { self.seconds_small } else { self.seconds }
    }
}

/// All tables and figures with a line each.
pub fn list() -> Table {
    let mut table = Table::new(
        "papers",
        1,
        vec![
            Column::text("name", "name"),
            Column::text("paper", "paper"),
            Column::text("place", "is"),
            Column::text("shows", "shows"),
            Column::text("programs", "programs"),
            Column::unit("seconds", "about", "s"),
            Column::unit("seconds_small", "--small", "s"),
        ],
    );
    for e in ENTRIES {
        table.row(vec![
            Cell::text(e.name),
            Cell::text(e.paper),
            Cell::text(e.place),
            Cell::text(e.shows),
            Cell::text(e.programs),
            Cell::int(e.seconds),
            Cell::int(e.seconds_small),
        ]);
    }
    table.note(
        "about: rough estimates for two idle cores and programs not built yet; homenode paper all runs all",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_a_factor_or_a_difference() {
        let near = Near::factor(2.0);
        assert!(near.reached(24.0, 48.0) && near.reached(48.0, 24.0) && near.reached(0.0, 0.0));
        assert!(!near.reached(24.0, 49.0) && !near.reached(0.0, 1.0) && !near.reached(1.0, 0.0));
        let near = Near::difference(0.08);
        assert!(near.reached(1.43, 1.51) && near.reached(0.0, 0.05) && !near.reached(1.43, 1.34));
    }

    #[test]
    fn names_are_unique_and_found() {
        for (i, e) in ENTRIES.iter().enumerate() {
            assert!(ENTRIES[..i].iter().all(|o| o.name != e.name), "{}", e.name);
            assert_eq!(Entry::find(&e.name.to_uppercase()).unwrap().name, e.name);
            assert!(!e.keys.is_empty() && e.seconds_small <= e.seconds, "{}", e.name);
        }
        assert_eq!(list().rows().len(), ENTRIES.len());
    }

    #[test]
    fn what_is_not_there_lists_all() {
        let error = Entry::find("niko-fig7").unwrap_err();
        let text = format!("{error}");
        for e in ENTRIES {
            assert!(text.contains(e.name) && text.contains(e.shows), "{text}");
        }
    }

    #[test]
    fn programs_are_known_by_either_name() {
        let e = Entry::find("niko-fig1").unwrap();
        assert!(e.takes("bt") && e.takes("nas-bt") && e.takes("BT") && !e.takes("lu"));
    }
}
