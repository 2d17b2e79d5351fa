//! The tables of `--statistics`: what the papers print beside times.

use homenode_schemes::{SchemeCells, SchemeGrid};
use homenode_sim::memory::Outcome;
use homenode_sim::statistics;
use homenode_table::{Cell, Column, Table};

/// Moves by kind, accesses by node, iterations.
pub fn tables(plan: &SchemeGrid, cells: &SchemeCells) -> Vec<Table> {
    let runs = || {
        cells.iter().filter_map(|((m, s), cell)| {
            let outcome = cell.as_ref().ok()?;
            Some((plan.machines[*m].name.as_str(), plan.schemes[*s].name.as_str(), outcome.as_ref()))
        })
    };
    vec![moves(runs()), nodes(runs()), rounds(runs())]
}

type Run<'a> = (&'a str, &'a str, &'a Outcome);

fn table(name: &'static str, columns: impl IntoIterator<Item = Column>) -> Table {
    let mut all = vec![Column::text("machine", "machine"), Column::text("scheme", "scheme")];
    all.extend(columns);
    Table::new(name, 1, all)
}

fn row(machine: &str, scheme: &str, cells: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
    let mut all = vec![Cell::text(machine), Cell::text(scheme)];
    all.extend(cells);
    all
}

/// Tao et al., Table 1, and Nikolopoulos et al., Fig. 3.
fn moves<'a>(runs: impl Iterator<Item = Run<'a>>) -> Table {
    let mut table = table(
        "moves",
        [
            Column::number("migrations", "migrations"),
            Column::number("ping_pongs", "ping-pongs"),
            Column::number("multiple", "multiple"),
            Column::number("incorrect", "incorrect"),
            Column::number("copies", "copies"),
            Column::number("collapsed", "collapsed"),
            Column::unit("engine", "moving", "%"),
        ],
    );
    let mut unlisted = 0;
    for (machine, scheme, outcome) in runs {
        let m = statistics::moves(outcome);
        unlisted += m.unlisted;
        let counts =
            [m.migrations, m.ping_pongs, m.multiple, m.incorrect, outcome.replicated, outcome.collapsed];
        let counts = counts.map(Cell::int);
        let share = Cell::percent(statistics::overhead(outcome), 2);
        table.row(row(machine, scheme, counts.into_iter().chain([share])));
    }
    table.explain("ping-pong: back to where the page came from; multiple: on to a third node; incorrect: away from its main user");
    table.explain("copies: of pages that several nodes read, made on one of them; collapsed: gone because somebody wrote");
    table.explain("moving: share of all threads' time, waiting for other moves included");
    if unlisted > 0 {
        table.note(format!("{unlisted} moves beyond the first million of a scheme are in migrations alone"));
    }
    table
}

/// Nikolopoulos et al., Fig. 2.
fn nodes<'a>(runs: impl Iterator<Item = Run<'a>>) -> Table {
    let mut table = table(
        "nodes",
        [
            Column::number("node", "node"),
            Column::number("local", "local"),
            Column::number("remote", "remote"),
            Column::number("served", "served to others"),
        ],
    );
    for (machine, scheme, outcome) in runs {
        for (node, n) in (0u64..).zip(statistics::by_node(outcome)) {
            table.row(row(machine, scheme, [node, n.local, n.remote, n.served].map(Cell::int)));
        }
    }
    table.note("main-memory accesses of the timed part");
    table
}

/// Löf et al., Figs. 1 to 3; Tao et al., migrations over time.
fn rounds<'a>(runs: impl Iterator<Item = Run<'a>>) -> Table {
    let mut table = table(
        "iterations",
        [
            Column::number("iteration", "iteration"),
            Column::unit("time", "time", "s"),
            Column::number("moves", "moves"),
        ],
    );
    for (machine, scheme, outcome) in runs {
        for round in statistics::rounds(outcome) {
            let cells = [Cell::int(round.number), Cell::float(round.time.secs(), 4), Cell::int(round.moves)];
            table.row(row(machine, scheme, cells));
        }
    }
    table
}
