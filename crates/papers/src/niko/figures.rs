//! Figures 1 to 5: the NAS programs.

use homenode_error::Result;
use homenode_sim::statistics;
use homenode_table::{Cell, Column, Table};

use super::numbers::{BT_REMOTE, GAIN, GAIN_LARGE, MG_FEWER_REMOTE, MG_MOVES, PROGRAMS, Program, Reasons};
use super::{ALL, Niko, Seen, Version, digits, mean, of, shares};
use crate::verdict::{Says, Shown};

const DRAWN: &str = "the paper draws it and prints no number";
/// Largest difference of two times, in percent, that counts as equal ("matches").
const EQUAL: f64 = 2.0;
/// Largest difference of two times, in percent, that counts as "in par".
const NEAR: f64 = 10.0;
/// The programs of Fig. 1.
const FIVE: [&str; 5] = ["BT", "SP", "CG", "FT", "MG"];

const ENGINE: &str =
    "time of the program's threads on the engine's processor other than the half that the paper assumes";
const COUNTERS: &str = "what reading the hardware's counters costs";
const OWNERS: &str = "caches as sources: a line that another CPU changed comes from its home's memory, so homes of what all \
                      read are the busier the more processors there are";
const BUSY: &str = "the engine: it moves one page after the other beside the run, for 77 % of MG's time and 84 % of FT's with class W. \
                    Half of the engine's time over the run with that half is a third at most, so programs whose engine never \
                    rests hardly differ; the paper's 39 % of MG are more than that";
const MEAN: &str = "all rows: the mean and its growth follow from the times of the five programs";
const SYSTEM: &str = "the system's own memory, code and stacks, whose accesses the paper's counters have too";

/// Times of the versions of a program on `processors` processors.
struct Times {
    program: &'static Program,
    processors: u32,
    seen: Vec<Seen>,
}

impl Times {
    fn time(&self, version: Version) -> f64 {
        of(&self.seen, version).map_or(f64::NAN, |s| s.time)
    }
    fn shared(&self, version: Version) -> f64 {
        of(&self.seen, version).map_or(f64::NAN, Seen::shared)
    }
    /// By how many percent `version` is slower than manual distribution.
    fn slower(&self, time: f64) -> f64 {
        100.0 * (time / self.time(Version::Manual) - 1.0)
    }
}

impl Niko<'_> {
    /// Figure 1: times of all versions by processors.
    ///
    /// # Errors
    /// A program cannot be built, recorded or simulated.
    pub fn figure1(&self) -> Result<Shown> {
        let mut shown = Shown::new(times_table("niko-fig1"));
        let all = self.times(&mut shown, &FIVE, 1)?;
        let most = self.most()?;
        self.gains(&mut shown, &all)?;
        let here = |t: &&Times| t.processors == most;
        for t in all.iter().filter(here) {
            let name = t.program.name;
            let slower = t.slower(t.time(Version::Automatic));
            shown.judge(
                format!("{name}: automatic is 10 to 45 % slower than manual on {ALL} processors (Fig. 1)"),
                at(most, (10.0..=45.0).contains(&slower)),
                format!("{slower:+.1} % on {most}"),
            );
            let offline = t.slower(t.time(Version::Offline));
            shown.judge(
                format!("{name}: offline matches or exceeds manual (4.1.1, 4.1.2)"),
                at(most, offline <= EQUAL),
                format!("{offline:+.1} % of manual's time on {most}"),
            );
            self.online(&mut shown, t, most);
        }
        for t in all.iter().filter(here).filter(|t| t.program.name == "MG") {
            let (alone, shared) =
                (t.slower(t.time(Version::Balanced)), t.slower(t.shared(Version::Balanced)));
            shown.judge(
                "MG: \"this problem can be solved by careful engineering of the page migration criterion\": \
                 competitive-balanced is at least as fast as manual (4.1.2)",
                at(most, alone <= EQUAL),
                format!("{alone:+.1} % with a spare processor, {shared:+.1} % with 50-50 sharing, on {most}"),
            );
        }
        explain(&mut shown, |why| why.times);
        shown.lacks.extend([ENGINE, COUNTERS, OWNERS]);
        Ok(shown)
    }

    /// Section 4.1: how manual distribution gains with the number of processors.
    fn gains(&self, shown: &mut Shown, all: &[Times]) -> Result<()> {
        let gain = |t: &Times| 100.0 * (1.0 - t.time(Version::Manual) / t.time(Version::Automatic));
        let of = |p: u32| {
            let of_p = all.iter().filter(|t| t.processors == p);
            let of_p: Vec<f64> = of_p.map(gain).collect();
            (of_p.len() == FIVE.len()).then(|| mean(&of_p)).flatten()
        };
        for (p, theirs) in GAIN {
            let (says, numbers) = match of(p) {
                Some(ours) => {
                    (Says::of(near(ours, theirs)), format!("{ours:.1} %; from half to twice theirs counts"))
                }
                None => (Says::Unknown, format!("{p} processors and five programs were not run")),
            };
            let claim =
                format!("manual distribution takes {theirs} % off on {p} processors in the mean (4.1)");
            shown.judge(claim, says, numbers);
        }
        let processors = self.processors()?;
        if let [first, .., last] = processors[..]
            && let (Some(few), Some(many)) = (of(first), of(last))
        {
            let numbers = format!("{few:.1} % on {first}, {many:.1} % on {last}");
            let claim = "its margin is wider on more processors (4.1)";
            shown.judge(claim, Says::of(many > few), numbers);
        }
        let large = all.iter().filter(|t| t.processors == ALL && GAIN_LARGE.0.contains(&t.program.name));
        for t in large {
            let claim =
                format!("{}: it exceeds {} % on {ALL} processors (4.1)", t.program.name, GAIN_LARGE.1);
            shown.judge(claim, Says::of(gain(t) > GAIN_LARGE.1), format!("{:.1} %", gain(t)));
        }
        Ok(())
    }

    /// What the paper concludes of the online engine.
    fn online(&self, shown: &mut Shown, t: &Times, most: u32) {
        let (alone, shared) = (t.slower(t.time(Version::Online)), t.slower(t.shared(Version::Online)));
        let numbers =
            format!("{alone:+.1} % with a spare processor, {shared:+.1} % with 50-50 sharing, on {most}");
        let (claim, holds) = match t.program.name {
            "BT" | "SP" => ("online matches manual, within 10 % (4.1.1)", alone.abs() <= NEAR),
            "CG" => ("online performs in par with manual or better (4.1.2)", alone <= NEAR),
            _ => ("manual performs better than online (4.1.2)", shared > 0.0),
        };
        shown.judge(format!("{}: {claim}", t.program.name), at(most, holds), numbers);
    }

    /// Runs all versions and fills in a row for each program and number of processors.
    fn times(&self, shown: &mut Shown, names: &[&str], times: u32) -> Result<Vec<Times>> {
        let mut all = Vec::new();
        let most = self.most()?;
        for program in self.programs(names)? {
            if let Err(why) = super::is_there(program.kernel) {
                shown.table.note(format!("{}: {why}", program.name));
                continue;
            }
            let experiment = self.experiment(program, &mut shown.table)?;
            for processors in self.processors()? {
                let seen = self.versions(&experiment, processors, &Version::EACH, times)?;
                let t = Times { program, processors, seen };
                let mut row = vec![Cell::text(program.name), Cell::int(processors)];
                let columns = [
                    t.time(Version::Automatic),
                    t.time(Version::Manual),
                    t.time(Version::Online),
                    t.shared(Version::Online),
                    t.time(Version::Offline),
                    t.time(Version::Balanced),
                ];
                row.extend(columns.map(|s| Cell::float(s, digits(s))));
                row.push(Cell::float(t.slower(t.time(Version::Automatic)), 1));
                row.push(Cell::float(t.slower(t.time(Version::Online)), 1));
                shown.table.row(row);
                settled(&mut shown.table, &t);
                if processors == most {
                    shown.table.note(shares::note(program, &experiment.class, processors, &t.seen));
                }
                all.push(t);
            }
        }
        shown.table.note(
            "seconds of all the paper's iterations, those beyond the simulated like the last; shared: online and half of \
             the engine's own time; %: over manual's time",
        );
        Ok(all)
    }

    /// Figures 2 and 5: accesses to each node's memory on all processors, from its own processors
    /// and from others.
    ///
    /// # Errors
    /// As [`Niko::figure1`].
    pub fn accesses(&self, name: &'static str, names: &[&str], times: u32) -> Result<Shown> {
        let versions = [Version::Automatic, Version::Manual, Version::Online];
        let mut columns = vec![Column::text("program", "program"), Column::number("node", "node")];
        for (key, title) in [
            ("automatic_local", "automatic local"),
            ("automatic_remote", "remote"),
            ("manual_local", "manual local"),
            ("manual_remote", "remote"),
            ("online_local", "online local"),
            ("online_remote", "remote"),
        ] {
            columns.push(Column::number(key, title));
        }
        let mut shown = Shown::new(Table::new(name, 1, columns));
        let most = self.most()?;
        for program in self.programs(names)? {
            if let Err(why) = super::is_there(program.kernel) {
                shown.table.note(format!("{}: {why}", program.name));
                continue;
            }
            let experiment = self.experiment(program, &mut shown.table)?;
            let seen = self.versions(&experiment, most, &versions, times)?;
            let by_node: Vec<_> = seen.iter().map(|s| statistics::by_node(&s.outcome)).collect();
            for node in 0..by_node.first().map_or(0, Vec::len) {
                let mut row = vec![Cell::text(program.name), Cell::int(node as u64)];
                for version in &by_node {
                    row.extend([Cell::int(version[node].local), Cell::int(version[node].served)]);
                }
                shown.table.row(row);
            }
            for s in &seen {
                let served: Vec<f64> =
                    statistics::by_node(&s.outcome).iter().map(|n| n.served as f64).collect();
                shown.table.note(format!(
                    "{}, {}: {:.1} % of the accesses are remote; the busiest node serves {:.2} times the mean of them",
                    program.name,
                    s.version.name(),
                    100.0 * s.remote_share(),
                    unevenness(&served)
                ));
            }
            match (program.name, times) {
                ("BT", 1) => bt(&mut shown, &seen, most),
                ("MG", 1) => mg(&mut shown, &seen, most),
                (name, _) if times > 1 => doubled(&mut shown, name, &seen, most),
                _ => {}
            }
        }
        shown.table.note(format!(
            "accesses to the memory of each node by its own processors (local) and by others (remote), {most} processors"
        ));
        explain(&mut shown, |why| why.accesses);
        shown.lacks.push(SYSTEM);
        Ok(shown)
    }

    /// Figure 3: the engine's own time over the program's, with the iterations of the paper and
    /// with twice as many.
    ///
    /// # Errors
    /// As [`Niko::figure1`].
    pub fn figure3(&self) -> Result<Shown> {
        let columns = vec![
            Column::text("program", "program"),
            Column::text("iterations", "iterations"),
            Column::number("moves", "moves"),
            Column::unit("engine", "engine", "s"),
            Column::unit("spare", "run, spare", "s"),
            Column::unit("shared", "run, 50-50", "s"),
            Column::unit("paper", "overhead, paper", "%"),
            Column::unit("ours", "ours", "%"),
        ];
        let mut shown = Shown::new(Table::new("niko-fig3", 1, columns));
        let most = self.most()?;
        let mut overheads = Vec::new();
        for program in self.programs(&FIVE)? {
            if let Err(why) = super::is_there(program.kernel) {
                shown.table.note(format!("{}: {why}", program.name));
                continue;
            }
            let experiment = self.experiment(program, &mut shown.table)?;
            let doubled = ["FT", "MG"].contains(&program.name);
            for (times, theirs) in [(1, program.overhead), (2, program.overhead_doubled)] {
                if times > 1 && !doubled {
                    continue;
                }
                let seen = self.versions(&experiment, most, &[Version::Automatic, Version::Online], times)?;
                let (Some(before), Some(online)) =
                    (of(&seen, Version::Automatic), of(&seen, Version::Online))
                else {
                    continue;
                };
                let ours = 100.0 * (online.engine / 2.0) / online.shared();
                let iterations = if times == 1 { "the paper's" } else { "twice" };
                shown.table.row(vec![
                    Cell::text(program.name),
                    Cell::text(iterations),
                    Cell::int(online.outcome.moved),
                    Cell::float(online.engine, digits(online.engine)),
                    Cell::float(online.time, digits(online.time)),
                    Cell::float(online.shared(), digits(online.shared())),
                    theirs.map_or_else(|| Cell::missing(DRAWN), |t| Cell::float(t, 1)),
                    Cell::float(ours, 1),
                ]);
                if let Some(theirs) = theirs {
                    shown.judge(
                        format!(
                            "{}: the engine takes {theirs} % of the time with {iterations} iterations (4.1.2)",
                            program.name
                        ),
                        at(most, near(ours, theirs)),
                        format!("{ours:.1} %; from half to twice theirs counts"),
                    );
                }
                if program.name == "MG" && times == 1 {
                    moves(&mut shown, before, online, most, experiment.shrunk);
                }
                overheads.push((program.name, times, ours));
            }
        }
        overhead_orders(&mut shown, &overheads, most);
        shown.table.note(
            "spare: the engine has a processor of its own and holds nobody up; 50-50: half of its time is added to the run, \
             and that half over the run is the overhead",
        );
        explain(&mut shown, |why| why.engine);
        shown.explain("the engine takes more", BUSY);
        shown.lacks.extend([ENGINE, COUNTERS]);
        Ok(shown)
    }

    /// Figure 4: MG and FT with twice as many iterations.
    ///
    /// # Errors
    /// As [`Niko::figure1`].
    pub fn figure4(&self) -> Result<Shown> {
        let mut shown = Shown::new(times_table("niko-fig4"));
        let all = self.times(&mut shown, &["MG", "FT"], 2)?;
        let most = self.most()?;
        for t in all.iter().filter(|t| t.processors == most) {
            let shared = t.slower(t.shared(Version::Online));
            let numbers = format!("{shared:+.1} % with 50-50 sharing on {most}");
            let (claim, holds) = match t.program.name {
                "MG" => (
                    "MG: online is slower than manual with twice the iterations, too (4.1.2)",
                    shared > EQUAL,
                ),
                _ => (
                    "FT: with twice the iterations online comes within 10 % of manual (4.1.2)",
                    shared <= NEAR,
                ),
            };
            shown.judge(claim, at(most, holds), numbers);
        }
        explain(&mut shown, |why| why.times);
        shown.lacks.extend([ENGINE, COUNTERS]);
        Ok(shown)
    }
}

/// Adds the reasons of the programs of which a conclusion does not hold.
fn explain(shown: &mut Shown, about: fn(&Reasons) -> Option<&'static str>) {
    for program in PROGRAMS {
        if let Some(reason) = about(&program.why) {
            shown.explain(program.name, reason);
        }
    }
    for claim in ["manual distribution", "its margin"] {
        shown.explain(claim, MEAN);
    }
}

/// What the text says at 128 processors cannot be said of fewer.
const fn at(processors: u32, holds: bool) -> Says {
    if processors == ALL { Says::of(holds) } else { Says::Unknown }
}

/// From half to twice theirs.
fn near(ours: f64, theirs: f64) -> bool {
    (theirs / 2.0..=theirs * 2.0).contains(&ours)
}

fn times_table(name: &'static str) -> Table {
    let mut columns = vec![Column::text("program", "program"), Column::number("processors", "processors")];
    for (key, title) in [
        ("automatic", "automatic"),
        ("manual", "manual"),
        ("online", "online"),
        ("shared", "shared"),
        ("offline", "offline"),
        ("balanced", "balanced"),
    ] {
        columns.push(Column::unit(key, title, "s"));
    }
    columns.push(Column::unit("automatic_over", "automatic", "%"));
    columns.push(Column::unit("online_over", "online", "%"));
    Table::new(name, 1, columns)
}

/// Says where the last two iterations of the online engine differ too much to go on from.
fn settled(table: &mut Table, t: &Times) {
    let Some(online) = of(&t.seen, Version::Online) else { return };
    let series = crate::series::Series(online.outcome.iterations());
    if (series.0.len() as u32) < t.program.iterations
        && let Err(why) = series.settled()
    {
        table
            .note(format!("{} on {}, online: {why}: its total is an estimate", t.program.name, t.processors));
    }
}

/// The largest over the mean.
fn unevenness(served: &[f64]) -> f64 {
    let most = served.iter().copied().fold(0.0, f64::max);
    mean(served).filter(|m| *m > 0.0).map_or(1.0, |m| most / m)
}

/// Section 4.1: remote shares of BT.
fn bt(shown: &mut Shown, seen: &[Seen], most: u32) {
    let share = |v| of(seen, v).map_or(f64::NAN, |s| 100.0 * s.remote_share());
    let (automatic, manual) = (share(Version::Automatic), share(Version::Manual));
    for (name, theirs, ours) in [("automatic", BT_REMOTE.0, automatic), ("manual", BT_REMOTE.1, manual)] {
        shown.judge(
            format!("BT, {name}: {theirs} % of the accesses are remote (4.1)"),
            at(most, (ours - theirs).abs() <= NEAR),
            format!("{ours:.1} %; within {NEAR} points counts"),
        );
    }
    shown.judge(
        "BT: manual distribution lowers the share of remote accesses (4.1)",
        Says::of(manual < automatic),
        format!("{automatic:.1} % to {manual:.1} % on {most}"),
    );
    let remote = |v| of(seen, v).map_or(0, |s| s.accesses().1);
    let (by_hand, online) = (remote(Version::Manual), remote(Version::Online));
    shown.judge(
        "BT: online has a few remote accesses fewer than manual (4.1.1)",
        at(most, online <= by_hand),
        format!("{online} and {by_hand} on {most}"),
    );
}

/// Section 4.1.2: MG's accesses.
fn mg(shown: &mut Shown, seen: &[Seen], most: u32) {
    let (Some(automatic), Some(manual), Some(online)) =
        (of(seen, Version::Automatic), of(seen, Version::Manual), of(seen, Version::Online))
    else {
        return;
    };
    let fewer = 100.0 * (1.0 - online.accesses().1 as f64 / automatic.accesses().1.max(1) as f64);
    shown.judge(
        format!("MG: online lowers the number of remote accesses by {MG_FEWER_REMOTE} % (4.1.2)"),
        at(most, (fewer - MG_FEWER_REMOTE).abs() <= NEAR),
        format!("{fewer:.1} %; within {NEAR} points counts"),
    );
    let uneven = |s: &Seen| {
        unevenness(&statistics::by_node(&s.outcome).iter().map(|n| n.served as f64).collect::<Vec<_>>())
    };
    let (by_hand, engine) = (uneven(manual), uneven(online));
    shown.judge(
        "MG: remote accesses are evenly balanced with manual and not with online (4.1.2)",
        at(most, engine > by_hand),
        format!("the busiest node serves {by_hand:.2} and {engine:.2} times the mean on {most}"),
    );
}

/// Section 4.1.2: Fig. 5.
fn doubled(shown: &mut Shown, name: &str, seen: &[Seen], most: u32) {
    let (Some(automatic), Some(online)) = (of(seen, Version::Automatic), of(seen, Version::Online)) else {
        return;
    };
    let (before, after) = (100.0 * automatic.remote_share(), 100.0 * online.remote_share());
    let numbers = format!("{before:.1} % with automatic, {after:.1} % with online on {most}");
    let (claim, holds) = match name {
        "MG" => (
            "MG: the share of remote accesses does not seem to decrease with online (4.1.2)",
            after > before - 10.0,
        ),
        _ => (
            "FT: more iterations let the engine settle: fewer remote accesses with online (4.1.2)",
            after < before,
        ),
    };
    shown.judge(claim, at(most, holds), numbers);
}

/// Section 4.1.2: pages that the engine moves in MG, at the paper's size.
fn moves(shown: &mut Shown, automatic: &Seen, online: &Seen, most: u32, shrunk: u64) {
    let ours = online.outcome.moved as f64;
    shown.judge(
        format!("MG: almost {MG_MOVES} pages move (4.1.2)"),
        if shrunk == 1 { at(most, near(ours, MG_MOVES)) } else { Says::Unknown },
        format!("{ours} pages of a class with 1/{shrunk} of the data; a run of {:.3} s", automatic.time),
    );
}

fn overhead_orders(shown: &mut Shown, all: &[(&str, u32, f64)], most: u32) {
    let get = |name, times| all.iter().find(|o| o.0 == name && o.1 == times).map(|o| o.2);
    if let (Some(mg), Some(ft)) = (get("MG", 1), get("FT", 1)) {
        let numbers = format!("{mg:.1} and {ft:.1} %");
        shown.judge("the engine takes more of MG than of FT (4.1.2)", at(most, mg > ft), numbers);
    }
    for program in PROGRAMS.iter().filter(|p| p.overhead_doubled.is_some()) {
        if let (Some(once), Some(twice)) = (get(program.name, 1), get(program.name, 2)) {
            let claim = format!("{}: twice the iterations lower its share (4.1.2)", program.name);
            shown.judge(claim, at(most, twice < once), format!("{once:.1} to {twice:.1} %"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_node_is_measured_against_the_mean() {
        assert_eq!(unevenness(&[2.0, 2.0]), 1.0);
        assert_eq!(unevenness(&[0.0, 4.0]), 2.0);
        assert_eq!(unevenness(&[]), 1.0);
    }

    #[test]
    fn fewer_processors_cannot_say_what_the_text_says_of_128() {
        assert_eq!(
            (at(128, true), at(128, false), at(64, true)),
            (Says::Holds, Says::DoesNot, Says::Unknown)
        );
    }

    #[test]
    fn each_reason_names_its_program() {
        for p in PROGRAMS {
            assert!(p.why.times.is_some(), "{}", p.name);
            for reason in [p.why.times, p.why.accesses, p.why.engine].into_iter().flatten() {
                assert_eq!(reason.split_once(": ").map(|r| r.0), Some(p.name));
            }
        }
    }
}
