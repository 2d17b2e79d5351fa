//! Löf, Nordén and Holmgren, "Improving Geographical Locality of Data for Shared Memory
//! Implementations of PDE Solvers".
//!
//! Each iteration is simulated for the first few; the rest of a run is like the last of them where
//! the last two agree within [`SETTLED`](super::series::SETTLED). A CPU is simulated three times:
//! *blocking* (it waits for every miss), *covered* (prefetching hides the latency of every miss
//! that goes on with a sequential stream; queues stay), and with the coverage that the machine file
//! has for the program, fitted to its SI/UMA of Table 1 and to nothing else.

mod judge;

use std::collections::BTreeMap;
use std::sync::Arc;

use homenode_error::{Error, Result, suggest};
use homenode_kernels::Kernel;
use homenode_launch::record::FILTER_LINES;
use homenode_machine::Machine;
use homenode_model::{Bytes, Ps, Topology};
use homenode_schemes::scheme::{Layout, Variant};
use homenode_sim::memory::{MoveWorker, Outcome, Percent};
use homenode_table::{Cell, Column, Table};

use super::numbers::{PROGRAMS, Program, SCHEMES};
use super::runs::{Case, Run, Workshop};
use super::series::{Series, Times};
use crate::ask::Ask;
use crate::verdict::Shown;

/// Threads of tables 1 and 2: one a node.
const THREADS: u32 = 4;
/// Iterations of Figure 3 that are simulated at least: the daemon is at work in several.
const FIGURE_3_ITERATIONS: u32 = 6;
/// How often the daemon of Figure 3 looks at the counts. Assumed.
const DAEMON_PERIOD: &str = "10ms";
/// Moves and copies in each period with the paper's sizes. Assumed: the paper says that the
/// operating system limits the number.
const DAEMON_RATE: u64 = 64;

/// The paper's experiments.
pub struct Lof<'a> {
    ask: &'a Ask,
    machine: Machine,
    shop: Workshop<'a>,
}

impl<'a> Lof<'a> {
    /// On the preset `machine`, or the one asked for.
    ///
    /// # Errors
    /// The machine is not there.
    pub fn new(ask: &'a Ask, machine: &str, task: &'a dyn homenode_task::Task) -> Result<Self> {
        let machine = homenode_schemes::machine(ask.machine.as_deref().unwrap_or(machine))?;
        let shop = Workshop { folder: ask.folder.clone(), workers: ask.workers, task };
        Ok(Self { ask, machine, shop })
    }

    /// Table 1: times of all schemes, normalised to UMA.
    ///
    /// # Errors
    /// A program cannot be built, recorded or simulated.
    pub fn table1(&self) -> Result<Shown> {
        let mut table = Table::new(
            "lof-table1",
            2,
            vec![
                Column::text("program", "program"),
                Column::text("scheme", "scheme"),
                Column::number("paper", "paper"),
                Column::number("ours", "ours"),
                Column::number("difference", "difference"),
                Column::number("blocking", "blocking"),
                Column::number("covered", "covered"),
                Column::unit("paper_s", "paper", "s"),
                Column::unit("ours_s", "ours", "s"),
                Column::text("fitted", "fitted"),
            ],
        );
        let mut judged = Vec::new();
        for program in self.programs()? {
            let Some(experiment) = self.experiment(program, &mut table)? else {
                missing_program(&mut table, program, 2);
                continue;
            };
            let models = self.models(program);
            let all = experiment.times(&self.shop, &models)?;
            let fitted = all.last().expect("there are always two models at least");
            let n = program.iterations as usize;
            for (s, scheme) in SCHEMES.iter().enumerate() {
                let ratio = |times: &Times| ratio(times, scheme, n);
                let mut row = vec![Cell::text(program.name), Cell::text(*scheme)];
                row.push(paper(program.table1[s], 2));
                row.push(number(ratio(fitted), 2));
                row.push(match (program.table1[s], ratio(fitted)) {
                    (Some(theirs), Ok(ours)) => Cell::float(ours - theirs, 2),
                    (None, _) => Cell::missing(NOT_PRINTED),
                    (_, Err(why)) => Cell::missing(why),
                });
                row.extend([number(ratio(&all[0]), 2), number(ratio(&all[1]), 2)]);
                row.push(paper(program.seconds[s], 2));
                row.push(seconds(total(fitted, scheme, n)));
                row.push(Cell::text(self.fitted_cell(program, scheme)));
                table.row(row);
            }
            self.bounds(&mut table, program, &all);
            judged.push((program, ratios(fitted, n)));
        }
        table.note("times normalised to UMA; ours with the fitted coverage, beside both bounds of the CPU");
        table.note(PI);
        let mut shown = Shown::new(table);
        judge::table1(&mut shown, &judged);
        shown.lacks.extend(lacks_of_pi(judged.iter().map(|(program, _)| *program)));
        shown.explain("migration outperforms first touch", FIRST_TOUCH);
        Ok(shown)
    }

    /// Table 2: share of remote main-memory accesses.
    ///
    /// # Errors
    /// As [`Lof::table1`].
    pub fn table2(&self) -> Result<Shown> {
        let mut table = Table::new(
            "lof-table2",
            1,
            vec![
                Column::text("program", "program"),
                Column::text("scheme", "scheme"),
                Column::unit("paper", "paper", "%"),
                Column::unit("ours", "ours", "%"),
                Column::unit("difference", "difference", "points"),
                Column::unit("last", "last iteration", "%"),
            ],
        );
        let mut judged = Vec::new();
        for program in self.programs()? {
            let Some(experiment) = self.experiment(program, &mut table)? else {
                missing_program(&mut table, program, 2);
                continue;
            };
            let outcomes = experiment.outcomes(&self.shop, Percent::ZERO)?;
            let share = |scheme: &str| outcomes.get(scheme).map(remote);
            judged.push((program, [share("SI"), share("PI"), share("SI+MIG")]));
            for (s, scheme) in SCHEMES.iter().enumerate() {
                let mut row =
                    vec![Cell::text(program.name), Cell::text(*scheme), paper(program.table2[s], 2)];
                match outcomes.get(scheme) {
                    Some(outcome) => {
                        let ours = remote(outcome);
                        row.push(Cell::float(ours, 2));
                        row.push(match program.table2[s] {
                            Some(theirs) => Cell::float(ours - theirs, 2),
                            None => Cell::missing(NOT_PRINTED),
                        });
                        row.push(last_remote(outcome));
                    }
                    None => row.extend((0..3).map(|_| Cell::missing("the program has no such run"))),
                }
                table.row(row);
            }
        }
        table
            .note("ours: the simulated iterations; theirs count everything on the CPUs, the system included");
        table.note(PI);
        let mut shown = Shown::new(table);
        judge::table2(&mut shown, &judged);
        shown.lacks.push("the operating system's own accesses, which the paper's counters have too");
        shown.lacks.extend(lacks_of_pi(judged.iter().map(|(program, _)| *program)));
        Ok(shown)
    }

    /// Table 3: first minus second iteration of SI+MIG.
    ///
    /// # Errors
    /// As [`Lof::table1`].
    pub fn table3(&self) -> Result<Shown> {
        let mut table = Table::new(
            "lof-table3",
            2,
            vec![
                Column::text("program", "program"),
                Column::text("run", "run"),
                Column::unit("paper", "paper", "s"),
                Column::unit("ours", "ours", "s"),
                Column::unit("difference", "difference", "s"),
                Column::text("fitted", "fitted"),
            ],
        );
        let mut judged = Vec::new();
        let runs = [
            ("4 threads", 4, Bytes::kib(8)),
            ("12 threads", 12, Bytes::kib(8)),
            ("12 threads 512 KiB pages", 12, Bytes::kib(512)),
        ];
        for program in self.programs()? {
            let mut overheads = Vec::new();
            for (r, (name, threads, page)) in runs.into_iter().enumerate() {
                let Some(experiment) = self.experiment(program, &mut table)? else {
                    missing_program(&mut table, program, 2);
                    break;
                };
                let case =
                    Case { page, ..experiment.case(Layout::Spread, "next-touch", self.coverage(program)) };
                let run = Run { threads, ..experiment.run(Variant::Serial) };
                let outcomes = self.shop.outcomes(program.kernel, &run, &[case])?;
                let ours = outcomes.first().and_then(|o| Series(o.iterations()).overhead());
                overheads.extend(ours);
                table.row(vec![
                    Cell::text(program.name),
                    Cell::text(name),
                    Cell::float(program.table3[r], 2),
                    ours.map_or_else(|| Cell::missing("fewer than two iterations"), |s| Cell::float(s, 2)),
                    ours.map_or_else(
                        || Cell::missing("fewer than two iterations"),
                        |s| Cell::float(s - program.table3[r], 2),
                    ),
                    Cell::text(if r == 0 && self.moves_are_fitted_to(program) { "yes" } else { "" }),
                ]);
            }
            judged.push((program, overheads));
        }
        table.note("first minus second iteration of SI+MIG; threads are dealt over the four nodes");
        let mut shown = Shown::new(table);
        judge::table3(&mut shown, &judged);
        shown.lacks.push("all rows: the costs of a move are fitted to MG with 4 threads (docs/policies.md), and each of the paper's programs has its own");
        Ok(shown)
    }

    /// Figures 1 and 2: time per iteration.
    ///
    /// # Errors
    /// As [`Lof::table1`].
    pub fn figure(&self, name: &'static str, programs: &[&str]) -> Result<Shown> {
        let columns = ["uma", "si", "pi", "si_mig"].iter().zip(SCHEMES);
        let mut all = vec![Column::text("program", "program"), Column::number("iteration", "iteration")];
        all.extend(columns.map(|(key, title)| Column::unit(key, title, "s")));
        let mut table = Table::new(name, 1, all);
        let mut judged = Vec::new();
        for program in self.programs()?.into_iter().filter(|p| programs.contains(&p.name)) {
            let Some(experiment) = self.experiment(program, &mut table)? else {
                missing_program(&mut table, program, 1);
                continue;
            };
            let times = experiment.times(&self.shop, &[self.coverage(program)])?.remove(0);
            let simulated = times.values().map(|s| s.0.len()).max().unwrap_or(0);
            for i in 0..simulated {
                let cell = |scheme: &&str| match times.get(*scheme).and_then(|s| s.0.get(i)) {
                    Some(time) => Cell::float(time.secs(), 3),
                    None => Cell::missing("the program has no such run"),
                };
                let mut row = vec![Cell::text(program.name), Cell::int(i as u64 + 1)];
                row.extend(SCHEMES.iter().map(cell));
                table.row(row);
            }
            judged.push((program, times));
        }
        table.note("the paper draws these times and prints none of them; later iterations are like the last one here");
        let mut shown = Shown::new(table);
        for (program, times) in &judged {
            judge::figure(&mut shown, program, times);
        }
        Ok(shown)
    }

    /// Figure 3: transparent migration by a daemon, on WildFire, whose replicas are coherent by
    /// cache line. Beside it the same daemon with replicas that go at a write.
    ///
    /// # Errors
    /// As [`Lof::table1`].
    pub fn figure3(&self) -> Result<Shown> {
        let mut table = Table::new(
            "lof-fig3",
            2,
            vec![
                Column::text("program", "program"),
                Column::number("iteration", "iteration"),
                Column::unit("uma", "UMA", "s"),
                Column::unit("si", "SI", "s"),
                Column::unit("si_tmig", "SI+TMIG", "s"),
                Column::unit("si_tmig_pages", "replicas of pages", "s"),
            ],
        );
        let mut judged = Vec::new();
        for program in self.programs()? {
            let simulated = FIGURE_3_ITERATIONS.max(program.simulated);
            let Some(experiment) = self.experiment_of(program, simulated, &mut table)? else {
                missing_program(&mut table, program, 1);
                continue;
            };
            let coverage = self.coverage(program);
            let case = |layout, policy: &str| experiment.case(layout, policy, coverage);
            let rate = daemon_rate(experiment.scale);
            let daemon = |replicas: &str| {
                let policy = format!("daemon:period={DAEMON_PERIOD},rate={rate},replicate={replicas}");
                Case { mover: MoveWorker::Apart, ..case(Layout::Spread, policy.as_str()) }
            };
            let cases = [
                case(Layout::Packed, "first-touch"),
                case(Layout::Spread, "first-touch"),
                daemon("lines"),
                daemon("yes"),
            ];
            let run = Run { threads: 8, ..experiment.run(Variant::Serial) };
            let outcomes = self.shop.outcomes(program.kernel, &run, &cases)?;
            let series: Vec<Vec<Ps>> = outcomes.iter().map(Outcome::iterations).collect();
            judged.push((program, series.clone()));
            for i in 0..series[0].len() {
                let mut row = vec![Cell::text(program.name), Cell::int(i as u64 + 1)];
                row.extend(series.iter().map(|s| Cell::float(s[i].secs(), 3)));
                table.row(row);
            }
            let [.., lines, pages] = &outcomes[..] else { continue };
            table.note(format!(
                "{}: the daemon moved {} pages and allotted {} frames, at most {rate} each {DAEMON_PERIOD}; {} lines came to \
                 the frames, {} went because another node wrote; {:.1} % of the accesses were remote",
                program.name,
                lines.moved,
                lines.replicated,
                lines.lines.fetched,
                lines.lines.invalidated,
                remote(lines)
            ));
            table.note(format!(
                "{}: with replicas of pages it moved {} and copied {}, and writes took {} pages' copies away; {:.1} % were remote",
                program.name,
                pages.moved,
                pages.replicated,
                pages.collapsed,
                remote(pages)
            ));
        }
        table.note("8 threads, 4 a node; the paper draws I-CG and I-MG alone, and prints no numbers");
        table.note("the daemon runs on a CPU that the program does not use; its limit shrinks with the data");
        table
            .note("SI+TMIG: replicas coherent by cache line, as WildFire's; replicas of pages go at a write");
        let mut shown = Shown::new(table);
        for (program, series) in &judged {
            judge::figure3(&mut shown, program, series);
        }
        shown.lacks.push(
            "how WildFire's daemon recognises a wrong page, its period and its limit: the paper does not say",
        );
        Ok(shown)
    }

    /// The coverage of each program with which SI/UMA is the paper's.
    ///
    /// # Errors
    /// As [`Lof::table1`].
    pub fn fit(&self) -> Result<Shown> {
        let mut table = Table::new(
            "lof-fit",
            1,
            vec![
                Column::text("program", "program"),
                Column::number("paper", "SI / UMA"),
                Column::unit("coverage", "coverage", "%"),
            ],
        );
        let grid: Vec<Percent> = (0..=100).step_by(20).filter_map(Percent::new).collect();
        for program in self.programs()? {
            let Some(experiment) = self.experiment(program, &mut table)? else {
                missing_program(&mut table, program, 1);
                continue;
            };
            let case = |c: &Percent, layout| experiment.case(layout, "first-touch", *c);
            let cases: Vec<Case> =
                grid.iter().flat_map(|c| [case(c, Layout::Packed), case(c, Layout::Spread)]).collect();
            let outcomes = self.shop.outcomes(program.kernel, &experiment.run(Variant::Serial), &cases)?;
            let series: Vec<Series> = outcomes.iter().map(|o| Series(o.iterations())).collect();
            let n = program.iterations as usize;
            let mut points = Vec::new();
            for (c, pair) in grid.iter().zip(series.chunks_exact(2)) {
                let of = |s: &Series| s.total(n).map_err(|why| Error::failed(why.clone()));
                points.push((f64::from(c.get()), of(&pair[1])?.0 as f64 / of(&pair[0])?.0.max(1) as f64));
            }
            let wanted = program.table1[1].unwrap_or(1.0);
            table.row(vec![
                Cell::text(program.name),
                Cell::float(wanted, 2),
                crossing(&points, wanted).map_or_else(
                    || Cell::missing("no coverage gives the paper's number"),
                    |c| Cell::float(c, 0),
                ),
            ]);
            let (least, most) = (points[points.len() - 1].1, points[0].1);
            table.note(format!("{}: SI/UMA from {least:.2} (covered) to {most:.2} (blocking)", program.name));
        }
        Ok(Shown::new(table))
    }

    fn programs(&self) -> Result<Vec<&'static Program>> {
        let names: Vec<&str> = PROGRAMS.iter().map(|p| p.kernel).collect();
        let find = |name: &String| {
            let known =
                |p: &&Program| p.kernel.eq_ignore_ascii_case(name) || p.name.eq_ignore_ascii_case(name);
            PROGRAMS.iter().find(known).ok_or_else(|| {
                suggest::unknown("program of the paper", name, &names, "homenode paper --help")
            })
        };
        match self.ask.programs.is_empty() {
            true => Ok(PROGRAMS.iter().collect()),
            false => self.ask.programs.iter().map(find).collect(),
        }
    }

    fn coverage(&self, program: &Program) -> Percent {
        self.machine.coverage(program.kernel).and_then(Percent::new).unwrap_or(Percent::ZERO)
    }

    /// Which of a row's cells of Table 1 the machine's constants are fitted to.
    fn fitted_cell(&self, program: &Program, scheme: &str) -> &'static str {
        let is_fitted = |what: &str| {
            let source = self.machine.source(&format!("fitted.{}.{what}", program.kernel));
            source.starts_with("fitted") && source.contains(scheme)
        };
        match scheme {
            "SI" if is_fitted("coverage") => "ratio",
            "UMA" if is_fitted("access") => "seconds",
            _ => "",
        }
    }

    /// Whether the costs of a move are fitted to the program's overhead with 4 threads.
    fn moves_are_fitted_to(&self, program: &Program) -> bool {
        let source = self.machine.source("migration.fixed");
        source.starts_with("fitted") && source.contains(program.name)
    }

    /// Blocking, covered, fitted.
    fn models(&self, program: &Program) -> [Percent; 3] {
        [Percent::ZERO, Percent::ALL, self.coverage(program)]
    }

    /// The program on the machine, if there is a kernel that stands for it; facts about it go to
    /// the table.
    fn experiment(&self, program: &'static Program, table: &mut Table) -> Result<Option<Experiment>> {
        self.experiment_of(program, program.simulated, table)
    }

    /// The same with `simulated` iterations unless asked otherwise.
    fn experiment_of(
        &self,
        program: &'static Program,
        simulated: u32,
        table: &mut Table,
    ) -> Result<Option<Experiment>> {
        let Ok(kernel) = Kernel::find(program.kernel) else { return Ok(None) };
        let class = self.ask.class_of("S", program.class);
        let scale = match class == program.class {
            true => 1,
            false => program.smaller.iter().find(|(c, _)| *c == class).map(|(_, s)| *s).ok_or_else(|| {
                let known: Vec<&str> = program.smaller.iter().map(|(c, _)| *c).collect();
                Error::usage(format!("{} has no class {class}", program.name)).hint(format!(
                    "the paper's is {}, smaller ones are {}",
                    program.class,
                    known.join(", ")
                ))
            })?,
        };
        let iterations = self.ask.iterations.unwrap_or(simulated);
        let mut machine = self.machine.topology_for(program.kernel);
        for cache in &mut machine.caches {
            cache.size.0 /= scale;
        }
        let note = format!(
            "{}: class {class}, {iterations} of {} iterations simulated{}, {} % of the latency of streams covered{}",
            program.name,
            program.iterations,
            if scale > 1 {
                format!(", caches and filter 1/{scale} of {}'s", machine.name)
            } else {
                String::new()
            },
            self.coverage(program).get(),
            self.machine
                .coverage(program.kernel)
                .map_or(String::new(), |_| format!(" ({})", self.machine.source(&path(program)))),
        );
        table.note(note);
        let parallel = program.table1[2].is_some() && kernel.schemes.iter().any(|s| s == "PI");
        let filter_lines = FILTER_LINES / scale as u32;
        Ok(Some(Experiment {
            program,
            machine: Arc::new(machine),
            class,
            iterations,
            parallel,
            filter_lines,
            scale,
        }))
    }

    /// Whether the paper's SI/UMA lies between both bounds of the CPU.
    fn bounds(&self, table: &mut Table, program: &Program, all: &[Times]) {
        let n = program.iterations as usize;
        if let (Ok(blocking), Ok(covered), Some(theirs)) =
            (ratio(&all[0], "SI", n), ratio(&all[1], "SI", n), program.table1[1])
        {
            let within = covered.min(blocking) <= theirs && theirs <= covered.max(blocking);
            let word = if within { "lies between" } else { "does not lie between" };
            table.note(format!(
                "{}: the paper's SI/UMA of {theirs:.2} {word} covered ({covered:.2}) and blocking ({blocking:.2})",
                program.name
            ));
        }
    }
}

/// One program on the machine.
struct Experiment {
    program: &'static Program,
    machine: Arc<Topology>,
    class: String,
    iterations: u32,
    parallel: bool,
    filter_lines: u32,
    /// Caches are divided by this.
    scale: u64,
}

impl Experiment {
    fn run(&self, variant: Variant) -> Run {
        let (class, iterations, filter_lines) = (self.class.clone(), self.iterations, self.filter_lines);
        let more = match variant {
            Variant::Parallel => self.program.pi.iter().map(|word| (*word).to_owned()).collect(),
            Variant::Serial | Variant::Changed(_) => Vec::new(),
        };
        Run { iterations, more, ..Run::new(&class, THREADS, variant, filter_lines) }
    }
    fn case(&self, layout: Layout, policy: &str, coverage: Percent) -> Case {
        let page = self.machine.page_sizes.first().copied().unwrap_or(Bytes::kib(8));
        Case { policy: policy.to_owned(), ..Case::new(self.machine.clone(), page, layout, coverage) }
    }
    /// All schemes with one model of the CPU.
    fn outcomes(&self, shop: &Workshop<'_>, coverage: Percent) -> Result<BTreeMap<&'static str, Outcome>> {
        Ok(self.all(shop, &[coverage])?.remove(0))
    }
    /// Times of all schemes with each model of the CPU.
    fn times(&self, shop: &Workshop<'_>, models: &[Percent]) -> Result<Vec<Times>> {
        let all = self.all(shop, models)?;
        let times = |of: &BTreeMap<&'static str, Outcome>| -> Times {
            of.iter().map(|(s, o)| (*s, Series(o.iterations()))).collect()
        };
        Ok(all.iter().map(times).collect())
    }
    fn all(&self, shop: &Workshop<'_>, models: &[Percent]) -> Result<Vec<BTreeMap<&'static str, Outcome>>> {
        let serial = [
            ("UMA", Layout::Packed, "first-touch"),
            ("SI", Layout::Spread, "first-touch"),
            ("SI+MIG", Layout::Spread, "next-touch"),
        ];
        let parallel = [("PI", Layout::Spread, "first-touch")];
        let mut all = vec![BTreeMap::new(); models.len()];
        let mut add = |variant, schemes: &[(&'static str, Layout, &'static str)]| -> Result<()> {
            let of = |m: &Percent| schemes.iter().map(|(_, l, p)| self.case(*l, p, *m)).collect::<Vec<_>>();
            let cases: Vec<Case> = models.iter().flat_map(of).collect();
            let mut outcomes = shop.outcomes(self.program.kernel, &self.run(variant), &cases)?.into_iter();
            for of_model in &mut all {
                for (name, _, _) in schemes {
                    of_model.extend(outcomes.next().map(|o| (*name, o)));
                }
            }
            Ok(())
        };
        add(Variant::Serial, &serial)?;
        if self.parallel {
            add(Variant::Parallel, &parallel)?;
        }
        Ok(all)
    }
}

const PI: &str = "PI of NAS-CG and NAS-MG: first touch as in NPB 3.0's OpenMP version (--init npb)";
/// What would have to be true of NAS-MG, tried with class W: `warm_up` of kernels/nas-mg/nas_mg.f90
/// with `who = INITIAL_THREAD` for --init npb.
const MG_LACKS: &str = "NAS-MG PI: NPB's loops clear u and v in parallel, and 2 % of the accesses are remote. If the initial thread \
     alone cleared u and v, and the threads first touched r, 43 % would be remote and PI would take 1.33 times as long as UMA \
     (class W): near the paper's 48.5 % and 1.43. The paper does not say what else its program did";
const FIRST_TOUCH: &str =
    "first touch: NAS-MG's PI is as fast as UMA here, because its remote accesses do not come";
const NOT_PRINTED: &str = "the paper prints no such number";

/// What is not reached of PI, if the program that it is about was run.
fn lacks_of_pi(mut programs: impl Iterator<Item = &'static Program>) -> Option<&'static str> {
    programs.any(|p| p.name == "NAS-MG").then_some(MG_LACKS)
}

fn path(program: &Program) -> String {
    format!("fitted.{}.coverage", program.kernel)
}

/// Moves and copies in each period where there is `scale` times less data: the share of the data
/// that can move in an iteration stays as it is.
fn daemon_rate(scale: u64) -> u64 {
    (DAEMON_RATE / scale.max(1)).max(1)
}

fn missing_program(table: &mut Table, program: &Program, named: usize) {
    let columns = table.width();
    let mut row = vec![Cell::text(program.name)];
    row.extend((1..named).map(|_| Cell::text("")));
    let why = format!("kernel:{} is not among the kernels", program.kernel);
    row.extend((named..columns).map(|_| Cell::missing(why.clone())));
    table.row(row);
}

fn paper(value: Option<f64>, digits: usize) -> Cell {
    value.map_or_else(|| Cell::missing(NOT_PRINTED), |v| Cell::float(v, digits))
}

fn number(value: std::result::Result<f64, String>, digits: usize) -> Cell {
    value.map_or_else(Cell::missing, |v| Cell::float(v, digits))
}

fn seconds(value: std::result::Result<Ps, String>) -> Cell {
    value.map_or_else(Cell::missing, |t| Cell::float(t.secs(), 2))
}

fn total(times: &Times, scheme: &str, n: usize) -> std::result::Result<Ps, String> {
    times.get(scheme).ok_or("the program has no such run")?.total(n)
}

fn ratio(times: &Times, scheme: &str, n: usize) -> std::result::Result<f64, String> {
    Ok(total(times, scheme, n)?.0 as f64 / total(times, "UMA", n)?.0.max(1) as f64)
}

/// Times of SI, PI and SI+MIG over UMA.
fn ratios(times: &Times, n: usize) -> [Option<f64>; 3] {
    ["SI", "PI", "SI+MIG"].map(|scheme| ratio(times, scheme, n).ok())
}

/// The share of remote accesses in the timed part, in percent.
fn remote(outcome: &Outcome) -> f64 {
    let (local, remote) = outcome.timed_counts.total();
    100.0 * remote as f64 / (local + remote).max(1) as f64
}

/// The share of remote accesses in the last iteration.
fn last_remote(outcome: &Outcome) -> Cell {
    match outcome.marks[..] {
        [.., before, last] => {
            let (local, remote) = (last.local - before.local, last.remote - before.remote);
            Cell::float(100.0 * remote as f64 / (local + remote).max(1) as f64, 2)
        }
        _ => Cell::missing("fewer than two iteration marks"),
    }
}

/// Where the line through `points` first crosses `wanted`.
fn crossing(points: &[(f64, f64)], wanted: f64) -> Option<f64> {
    points.windows(2).find_map(|w| {
        let ((x0, y0), (x1, y1)) = (w[0], w[1]);
        let between = (y0 - wanted) * (y1 - wanted) <= 0.0 && y0 != y1;
        between.then(|| x0 + (wanted - y0) / (y1 - y0) * (x1 - x0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_limit_shrinks_with_the_data() {
        assert_eq!([1, 8, 16, 1000].map(daemon_rate), [64, 8, 4, 1]);
    }

    #[test]
    fn cells_that_constants_are_fitted_to_are_marked() {
        let ask = Ask::usual(std::env::temp_dir(), 1);
        let lof = Lof::new(&ask, "sf15k", &homenode_task::Unattended).unwrap();
        let marks = |p: &Program| SCHEMES.map(|scheme| lof.fitted_cell(p, scheme));
        let all: Vec<_> = PROGRAMS.iter().map(|p| (p.name, marks(p), lof.moves_are_fitted_to(p))).collect();
        let none = ["", "", "", ""];
        assert_eq!(
            all,
            [
                ("NAS-CG", ["seconds", "ratio", "", ""], false),
                ("NAS-MG", ["", "ratio", "", ""], true),
                ("I-CG", none, false),
                ("I-MG", none, false),
            ]
        );
        let lof = Lof::new(&ask, "wildfire", &homenode_task::Unattended).unwrap();
        assert!(PROGRAMS.iter().all(|p| SCHEMES.iter().all(|s| lof.fitted_cell(p, s).is_empty())));
    }

    #[test]
    fn the_crossing_is_found_between_points() {
        assert_eq!(crossing(&[(0.0, 2.0), (50.0, 1.5), (100.0, 1.0)], 1.25), Some(75.0));
        assert_eq!(crossing(&[(0.0, 2.0), (100.0, 1.5)], 1.2), None);
        assert_eq!(crossing(&[], 1.2), None);
    }

    #[test]
    fn the_paper_is_copied_without_slips() {
        for p in PROGRAMS {
            for (ratio, seconds) in p.table1.iter().zip(p.seconds) {
                assert_eq!(ratio.is_some(), seconds.is_some(), "{}", p.name);
                if let (Some(ratio), Some(seconds)) = (ratio, seconds) {
                    let of = seconds / p.seconds[0].unwrap();
                    assert!((of - ratio).abs() < 0.0101, "{}: {of} {ratio}", p.name);
                }
            }
        }
    }
}
