//! `homenode machine`.

use homenode_error::Result;
use homenode_machine::{ASSUMED, Machine, PresetInfo, list, resolve, show_ns};
use homenode_model::{Matrix, NodeId};
use homenode_schemes as schemes;
use homenode_table::{Cell, Column, Table};
use serde_json::{Value, json};

use crate::args::machine::{MachineArgs, MachineCommand};
use crate::exit::Exit;
use crate::output::OutputArgs;

/// Nodes whose latencies are shown on a terminal.
const MOST: usize = 16;

impl MachineArgs {
    pub(super) fn run(self) -> Result<Exit> {
        match self.command {
            MachineCommand::List { output } => output.print(&all()),
            MachineCommand::Show { machine, output } => show(&schemes::machine(&machine)?, &output),
        }
    }
}

fn all() -> Table {
    let columns = vec![
        Column::text("machine", "machine"),
        Column::number("nodes", "nodes"),
        Column::number("cpus", "CPUs"),
        Column::text("latency", "latency"),
        Column::text("about", "about"),
    ];
    let mut table = Table::new("machine-list", 1, columns);
    for PresetInfo { name, about, nodes, cpus } in list() {
        let latency = resolve(name).ok().and_then(|m| latency(&m));
        table.row(vec![
            Cell::text(*name),
            Cell::int(*nodes as i128),
            Cell::int(*cpus as i128),
            latency.map_or_else(|| Cell::missing("none is given"), Cell::text),
            Cell::text(about.as_str()),
        ]);
    }
    table.row(match resolve("this") {
        Ok(m) => vec![
            Cell::text("this"),
            Cell::int(m.topology.nodes.len() as i128),
            Cell::int(m.topology.cpus.len() as i128),
            latency(&m).map_or_else(|| Cell::missing("none is given"), Cell::text),
            Cell::text("this machine, as hwloc knows it"),
        ],
        Err(e) => {
            let missing = || Cell::missing(e.to_string());
            vec![Cell::text("this"), missing(), missing(), missing(), Cell::text("this machine")]
        }
    });
    table.note("a file is a machine, too: 'homenode machine show FILE.toml'");
    table
}

/// `225 ns local, 415 ns remote`
fn latency(machine: &Machine) -> Option<String> {
    machine.values().into_iter().find(|v| v.path == "latency").map(|v| v.text)
}

fn show(machine: &Machine, output: &OutputArgs) -> Result<Exit> {
    let t = &machine.topology;
    let columns = vec![
        Column::text("number", "number"),
        Column::text("value", "value"),
        Column::text("source", "source"),
    ];
    let mut table = Table::new("machine", 1, columns);
    table.fact("machine", Cell::text(t.name.as_str()));
    table.fact("from", Cell::text(machine.origin.to_string()));
    table.fact("nodes", Cell::int(t.nodes.len() as i128));
    table.fact("cpus", Cell::int(t.cpus.len() as i128));
    if !machine.about.is_empty() {
        table.fact("about", Cell::text(machine.about.as_str()));
    }
    let values = machine.values();
    let (mut assumed, all) = (0, values.len());
    for value in values {
        assumed += usize::from(value.source.starts_with(ASSUMED));
        table.row([value.path, value.text, value.source].map(Cell::text).into());
    }
    if assumed > 0 {
        table.note(format!("{assumed} of {all} numbers are assumed: give a file with better ones"));
    }
    let more = [
        ("latency_ns", matrix(&t.latency, |ns| ns.0.into())),
        ("link_mb_per_s", matrix(&t.link, |mb| mb.0.into())),
    ];
    let below: Vec<Table> = latencies(machine).into_iter().collect();
    output.print_with(&table, &below, &more)
}

fn matrix<T: Copy>(matrix: &Matrix<T>, value: impl Fn(T) -> Value) -> Value {
    let rows = (0..matrix.len()).map(|n| matrix.row(NodeId(n as u16)));
    json!(rows.map(|row| row.iter().map(|v| value(*v)).collect::<Vec<_>>()).collect::<Vec<_>>())
}

/// The matrix for a terminal; `None` when one local and one remote latency say it all.
fn latencies(machine: &Machine) -> Option<Table> {
    const KEYS: [&str; MOST] = [
        "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15",
    ];
    let latency = &machine.topology.latency;
    let nodes = latency.len();
    let at = |a: usize, b: usize| latency.at(NodeId(a as u16), NodeId(b as u16));
    let uniform = nodes < 2
        || (0..nodes).all(|a| (0..nodes).all(|b| at(a, b) == if a == b { at(0, 0) } else { at(0, 1) }));
    if uniform {
        return None;
    }
    let shown = nodes.min(MOST);
    let mut columns = vec![Column::text("node", "latency from")];
    columns.extend((0..shown).map(|n| Column::number(KEYS[n], format!("to {n}"))));
    let mut table = Table::new("machine-latency", 1, columns);
    for a in 0..shown {
        let cells = (0..shown).map(|b| Cell::text(show_ns(at(a, b))));
        table.row(std::iter::once(Cell::text(format!("node {a}"))).chain(cells).collect());
    }
    if nodes > shown {
        table.note(format!("{shown} of {nodes} nodes; --json has all"));
    }
    Some(table)
}
