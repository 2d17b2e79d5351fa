//! Robertson and Rendell, "OpenMP and NUMA Architectures I: Investigating Memory Placement on the
//! SGI Origin 3000".
//!
//! The paper's C-bricks are this machine's nodes: brick 0 (in Figure 2, where the memory is on it,
//! brick 2) is the first node with CPUs and memory, brick 1 the nearest other, bricks 9 and 10 the
//! farthest. A row that needs more nodes than there are says so. Times and rates of machines twenty
//! years apart are not comparable: what is compared is each row's relation to the row in which
//! thread and memory are together.

mod heat;
mod modelled;
mod setting;
mod stand_ins;

use std::time::Duration;

use homenode_error::Result;
use homenode_measure::{
    Chase, Credibility, Measurement, NodePair, Op, PageSize, Stores, Streams, Subject, Visit,
};
use homenode_table::{Cell, Column, Table};
use homenode_task::Task;
pub use setting::Robertson;
use setting::{MACHINE, THIS};
use stand_ins::{Away, Bricks, StandIns, shown};

use crate::ask::Ask as Asked;
use crate::verdict::{Says, Shown};

/// Shares within this percentage of the paper's count as reached.
const NEAR: f64 = 25.0;

/// An experiment of Table 1: its number, its pairs, scale and triad in 10^6 bytes a second.
struct Bandwidths {
    number: &'static str,
    pairs: &'static [Bricks],
    scale: f64,
    triad: f64,
}

/// Table 1.
const TABLE_1: [Bandwidths; 8] = [
    Bandwidths { number: "1.1", pairs: &[(0, 0)], scale: 676.0, triad: 637.0 },
    Bandwidths { number: "1.2", pairs: &[(0, 1)], scale: 556.0, triad: 533.0 },
    Bandwidths { number: "1.3", pairs: &[(0, 9)], scale: 433.0, triad: 458.0 },
    Bandwidths { number: "2.1", pairs: &[(0, 0), (0, 0)], scale: 789.0, triad: 800.0 },
    Bandwidths { number: "2.2", pairs: &[(0, 0), (1, 1)], scale: 1196.0, triad: 1260.0 },
    Bandwidths { number: "2.3", pairs: &[(0, 1), (1, 0)], scale: 1044.0, triad: 1083.0 },
    Bandwidths { number: "2.4", pairs: &[(9, 0), (9, 0)], scale: 750.0, triad: 736.0 },
    Bandwidths { number: "2.5", pairs: &[(9, 0), (10, 1)], scale: 881.0, triad: 870.0 },
];

/// Figure 2, in the words of section 3: 50 % more one router away, twice as much two routers away.
const FIGURE_2: [(Away, f64); 3] = [(Away::Here, 1.0), (Away::OneRouter, 1.5), (Away::TwoRouters, 2.0)];

impl Robertson<'_> {
    /// Figure 2: latency of one brick's memory from all bricks.
    ///
    /// # Errors
    /// No node has both CPUs and memory.
    pub fn figure2(mut self) -> Result<Shown> {
        let stand_ins = StandIns::of(&self.host)?;
        let memory = stand_ins.first();
        let mut items = Vec::new();
        for page in [PageSize::Small, PageSize::Huge] {
            for cpu in self.host.with_cpus() {
                let time = Duration::from_secs(2);
                let chase = Chase { buffer: self.buffer, stride: 256, page, laps: 0, time };
                items.push(Visit::Latency { pair: NodePair { cpu, memory }, chase });
            }
        }
        let m = self.measure(items);
        let columns = vec![
            Column::text("class", "thread's brick"),
            Column::number("paper", "paper"),
            Column::text("node", "here: thread's node"),
            Column::number("slit", "SLIT"),
            Column::unit("latency", "latency", "ns"),
            Column::number("ours", "ours"),
            Column::unit("difference", "difference", "%"),
        ];
        let mut table = Table::new("robertson-fig2", 1, columns);
        self.facts(&mut table);
        let local = m.latency(NodePair { cpu: memory, memory });
        let mut means = Vec::new();
        for (away, theirs) in FIGURE_2 {
            let mut ratios = Vec::new();
            let nodes = stand_ins.nodes(away);
            for cpu in &nodes {
                let pair = NodePair { cpu: *cpu, memory };
                let why = || missing(&m, |s| matches!(s, Subject::Latency { pair: p, .. } if *p == pair));
                let ns = m.latency(pair);
                let ours = ns.zip(local).map(|(a, b)| a / b);
                ratios.extend(ours);
                let of = |v: Option<f64>, digits| {
                    v.map_or_else(|| Cell::missing(why()), |v| Cell::float(v, digits))
                };
                let slit = self.host.distance(*cpu, memory);
                table.row(vec![
                    Cell::text(away.words()),
                    Cell::float(theirs, 2),
                    Cell::text(cpu.to_string()),
                    slit.map_or_else(|| Cell::missing("not given by firmware"), Cell::int),
                    of(ns, 1),
                    of(ours, 2),
                    of(ours.map(|o| 100.0 * (o / theirs - 1.0)), 1),
                ]);
            }
            means.push((away, theirs, mean(&ratios)));
            if nodes.is_empty() {
                let why = stand_ins.lacking(away);
                let mut row = vec![Cell::text(away.words()), Cell::float(theirs, 2)];
                row.extend((row.len()..table.width()).map(|_| Cell::missing(why.clone())));
                table.row(row);
                table.note(format!("{}: {why}", away.words()));
            }
        }
        table.note(
            "the paper prints a graph on a busy machine; its numbers are those of section 3: about 50 % more one router \
             away, about twice as much two routers away",
        );
        table.note(format!(
            "ours: memory on {memory}, a random cycle through {} MiB, with the largest pages that could be had",
            self.buffer >> 20
        ));
        let mut shown = Shown::new(table);
        figure2_verdicts(&mut shown, &means, &stand_ins);
        if self.host.synthetic {
            shown.lacks.push("other jobs: the paper's machine was busy; the ratio 1 : 1.5 : 2 of the preset is this figure's");
        }
        Ok(shown)
    }

    /// Table 1: scale and triad with up to two pairs at once.
    ///
    /// # Errors
    /// No node has both CPUs and memory.
    pub fn table1(mut self) -> Result<Shown> {
        let stand_ins = StandIns::of(&self.host)?;
        let mut items = Vec::new();
        for row in &TABLE_1 {
            if let Ok(pairs) = stand_ins.pairs(row.pairs) {
                items.push(Visit::Bandwidth(Streams {
                    ops: vec![Op::Scale, Op::Triad],
                    ..Streams::triad(&pairs, self.buffer / 8)
                }));
            }
        }
        let m = self.measure(items);
        let columns = vec![
            Column::text("experiment", "exp."),
            Column::text("bricks", "bricks"),
            Column::text("nodes", "nodes here"),
            Column::text("loop", "loop"),
            Column::unit("paper", "paper", "MB/s"),
            Column::unit("ours", "ours", "MB/s"),
            Column::number("paper_relative", "paper / 1.1"),
            Column::number("ours_relative", "ours / 1.1"),
            Column::unit("difference", "difference", "%"),
        ];
        let mut table = Table::new("robertson-table1", 3, columns);
        self.facts(&mut table);
        let mut triads = Vec::new();
        let mut errors = Vec::new();
        let base = |op| stand_ins.pairs(TABLE_1[0].pairs).ok().and_then(|p| together(&m, &p, op)?.value);
        for row in &TABLE_1 {
            for (op, theirs, first) in
                [(Op::Scale, row.scale, TABLE_1[0].scale), (Op::Triad, row.triad, TABLE_1[0].triad)]
            {
                let pairs = stand_ins.pairs(row.pairs);
                let value = pairs.as_ref().map_err(Clone::clone).and_then(|p| {
                    together(&m, p, op).and_then(|c| c.value).ok_or_else(|| {
                        missing(&m, |s| matches!(s, Subject::Bandwidth { pairs, .. } if pairs == p))
                    })
                });
                let relative = value.clone().and_then(|v| {
                    base(op).map(|b| v / b).ok_or_else(|| "experiment 1.1 was not measured".to_owned())
                });
                let paper = theirs / first;
                let number = |v: std::result::Result<f64, String>, digits| {
                    v.map_or_else(Cell::missing, |v| Cell::float(v, digits))
                };
                errors.extend(value.clone().ok().map(|v| 100.0 * (v / theirs - 1.0)));
                if op == Op::Triad {
                    triads.push((row.number, theirs, value.clone().ok()));
                }
                table.row(vec![
                    Cell::text(row.number),
                    Cell::text(stand_ins::words(row.pairs)),
                    pairs.map_or_else(Cell::missing, |p| Cell::text(shown(&p))),
                    Cell::text(op.name()),
                    Cell::float(theirs, 0),
                    number(value, 0),
                    Cell::float(paper, 2),
                    number(relative.clone(), 2),
                    number(relative.map(|r| 100.0 * (r / paper - 1.0)), 1),
                ]);
            }
        }
        self.rows_that_cannot_be(&mut table, &stand_ins, TABLE_1.iter().map(|r| (r.number, r.pairs)));
        self.table1_notes(&mut table, &errors);
        let mut shown = Shown::new(table);
        table1_verdicts(&mut shown, &triads);
        if self.host.synthetic {
            shown.lacks.extend(LACKS_OF_TABLE_1);
        }
        Ok(shown)
    }

    /// What the numbers of Table 1 are. `errors`: how far ours are from the paper's, in percent.
    fn table1_notes(&self, table: &mut Table, errors: &[f64]) {
        table.note(format!(
            "both: the best of several rounds, all threads together; ours: arrays of {} MiB each, 4 KiB pages, regular stores",
            self.buffer >> 20
        ));
        if self.host.synthetic {
            table.note(
                "ours: a latency for the lines that a CPU misses at once, then these lines and the written ones on the bus that \
                 neighbouring CPUs share; memory, ports and links limit the result (crates/measure/src/streaming.rs)",
            );
            table.note("two threads on a brick share a bus here; the paper does not say which CPUs of a brick it used");
        }
        let range = |from: f64, pick: fn(f64, f64) -> f64| errors.iter().copied().fold(from, pick);
        if self.host.synthetic && !errors.is_empty() {
            table.note(format!(
                "ours differ from the paper's by {:+.0} to {:+.0} %; 'difference' compares the relations to row 1.1",
                range(f64::INFINITY, f64::min),
                range(f64::NEG_INFINITY, f64::max)
            ));
        }
    }
}

/// The cell of all pairs together.
fn together<'m>(
    m: &'m Measurement,
    wanted: &[NodePair],
    wanted_op: Op,
) -> Option<&'m homenode_measure::MeasuredCell> {
    m.cells.iter().find(|c| match &c.subject {
        Subject::Bandwidth { pairs, share: None, op, stores: Stores::Regular, .. } => {
            pairs == wanted && *op == wanted_op
        }
        _ => false,
    })
}

/// Why there is no number for a subject.
fn missing(m: &Measurement, subject: impl Fn(&Subject) -> bool) -> String {
    let why = m.cells.iter().filter(|c| subject(&c.subject)).find_map(|c| match &c.verdict {
        Credibility::Failed { why } => Some(why.clone()),
        Credibility::Absent { why, remedy } => Some(format!("{why}; {remedy}")),
        _ => None,
    });
    why.unwrap_or_else(|| "stopped before it was measured".into())
}

/// Table 2: heat diffusion, simulated on a description or run on this machine.
///
/// # Errors
/// As [`Robertson::new`]; the kernel cannot be built, recorded, simulated or run.
pub fn table2(ask: &Asked, task: &dyn Task) -> Result<Shown> {
    match ask.machine.as_deref().unwrap_or(MACHINE) {
        THIS => heat::table2(&Robertson::new(ask, task)?, ask.runs),
        machine => modelled::table2(&homenode_schemes::machine(machine)?, ask, task),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Judges the paper's relations of latencies. `means`: distance, the paper's and our mean relation.
fn figure2_verdicts(shown: &mut Shown, means: &[(Away, f64, Option<f64>)], stand_ins: &StandIns) {
    for &(away, theirs, ours) in means {
        if let Some(ours) = ours.filter(|_| away != Away::Here) {
            let near = (100.0 * (ours / theirs - 1.0)).abs() <= NEAR;
            let claim = format!("{}: about {theirs} times the latency (section 3)", away.words());
            shown.judge(claim, Says::of(near), format!("{ours:.2} times; within {NEAR} % counts"));
        } else if away != Away::Here {
            let claim = format!("{}: about {theirs} times the latency (section 3)", away.words());
            shown.judge(claim, Says::Unknown, stand_ins.lacking(away));
        }
    }
}

/// Why the rates that follow from the description are not the paper's.
const LACKS_OF_TABLE_1: [&str; 2] = [
    "2.1: the paper does not say which CPUs of a brick it used; here both share an interface of 1.6 GB/s, and with one \
     each they would have twice what 1.1 has",
    "all rows: idle cycles of the bus between two lines, and the other jobs of the paper's machine, make triad slower there",
];

/// What section 4 concludes from Table 1, judged by triad.
fn table1_verdicts(shown: &mut Shown, triads: &[(&str, f64, Option<f64>)]) {
    let get = |number: &'static str| triads.iter().find(|t| t.0 == number).and_then(|t| t.2);
    let mut say = |claim: &str, numbers: [&'static str; 2], holds: fn(f64, f64) -> bool| {
        let (says, text) = match numbers.map(get) {
            [Some(a), Some(b)] => (
                Says::of(holds(a, b)),
                format!("{a:.0} and {b:.0} MB/s in {} and {}", numbers[0], numbers[1]),
            ),
            _ => (Says::Unknown, "a row was not measured".to_owned()),
        };
        shown.judge(format!("{claim} (section 4)"), says, text);
    };
    say("one router between thread and memory takes about 20 % off", ["1.1", "1.2"], |a, b| {
        (0.65..=0.95).contains(&(b / a))
    });
    say("two routers take off still more", ["1.2", "1.3"], |a, b| b < a);
    say("two threads with their memory on one brick are little better than one", ["1.1", "2.1"], |a, b| {
        b > a && b < 1.5 * a
    });
    say("on two bricks they have nearly twice as much as one", ["1.1", "2.2"], |a, b| {
        (1.6..=2.1).contains(&(b / a))
    });
    say("memory on each other's brick gives nearly the same", ["2.2", "2.3"], |a, b| {
        (b / a - 1.0).abs() < 0.25
    });
    say("both threads far from both memories are as slow as all on one brick", ["2.1", "2.4"], |a, b| {
        (b / a - 1.0).abs() < 0.25
    });
    say("all on different bricks is slightly better than all on one", ["2.1", "2.5"], |a, b| b > a);
    say("bandwidth varies by a factor of two", ["2.4", "2.2"], |a, b| b > 1.5 * a);
}

#[cfg(test)]
mod tests {
    use homenode_machine::Machine;
    use homenode_task::Unattended;

    use super::*;

    fn on(machine: &Machine) -> Robertson<'static> {
        Robertson::described(machine, None, &Unattended)
    }

    fn value(t: &Table, row: usize, key: &str) -> Option<f64> {
        let column = t.columns().iter().position(|c| c.key == key).unwrap();
        t.rows()[row].cells[column].number()
    }

    #[test]
    fn the_papers_own_machine_has_the_papers_shape() {
        let machine = homenode_machine::resolve("origin3000").unwrap();
        let figure = on(&machine).figure2().unwrap();
        assert!(figure.verdicts.iter().all(|v| v.says == Says::Holds), "{figure:?}");
        let figure = figure.table;
        assert_eq!(figure.rows().len(), 16, "a row a brick");
        assert_eq!(value(&figure, 0, "ours"), Some(1.0));
        for row in 1..16 {
            assert!(value(&figure, row, "difference").unwrap().abs() < 1.0, "{figure:?}");
        }
        let t = on(&machine).table1().unwrap();
        assert!(t.verdicts.iter().all(|v| v.says == Says::Holds), "{t:?}");
        let t = t.table;
        assert_eq!(t.rows().len(), 16);
        assert!((0..16).all(|r| value(&t, r, "ours").is_some()), "{t:?}");
        // Each row's relation to row 1.1 of the same loop.
        let far = (0..16).filter(|r| value(&t, *r, "difference").unwrap().abs() > 30.0).count();
        assert_eq!(far, 0, "{t:?}");
    }

    #[test]
    fn one_node_has_three_rows_and_says_what_is_missing() {
        let one = "pack:1 [numa(memory=8GB)] core:2 pu:1";
        let machine = homenode_machine::host::from_synthetic(one).unwrap();
        let t = on(&machine).table1().unwrap();
        assert!(t.verdicts.iter().any(|v| v.says == Says::Unknown), "{t:?}");
        let t = t.table;
        let there: Vec<usize> = (0..16).filter(|r| value(&t, *r, "ours").is_some()).collect();
        assert_eq!(there, [0, 1, 6, 7], "1.1 and 2.1, two loops each");
        assert!(
            t.notes().iter().any(|n| n.starts_with("1.2, 1.3, 2.2, 2.3, 2.4, 2.5 cannot be had")),
            "{t:?}"
        );
        let figure = on(&machine).figure2().unwrap().table;
        assert_eq!(figure.rows().len(), 3);
        assert_eq!(value(&figure, 1, "ours"), None);
    }
}
