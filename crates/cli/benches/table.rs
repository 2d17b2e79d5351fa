//! How long a large result takes to render in its three forms.

use std::hint::black_box;
use std::time::Instant;

use homenode_table::{Cell, Column, Table};
use homenode_text::table::{TableDetail, render};

/// A form of a table.
type Form = (&'static str, fn(&Table) -> String);

const ROWS: u32 = 5_000;

fn large() -> Table {
    let columns = vec![
        Column::text("name", "name"),
        Column::unit("time", "time", "s"),
        Column::unit("remote", "remote", "%"),
        Column::number("moves", "moves"),
    ];
    let mut table = Table::new("bench", 1, columns);
    for i in 0..ROWS {
        let share = f64::from(i) / f64::from(ROWS);
        table.row(vec![
            Cell::text(format!("object {i}")),
            Cell::float(share * 9.0, 3),
            Cell::percent(share, 1),
            Cell::int(i),
        ]);
    }
    table
}

fn main() {
    let table = large();
    let forms: [Form; 3] = [
        ("terminal", |t| render(t, TableDetail { colour: false, width: None, legend: false })),
        ("json", Table::to_json),
        ("csv", Table::to_csv),
    ];
    for (name, form) in forms {
        let best = (0..5)
            .map(|_| {
                let start = Instant::now();
                black_box(form(black_box(&table)));
                start.elapsed()
            })
            .min()
            .unwrap_or_default();
        println!("bench: table/{name}/{ROWS} {:.3} ms", best.as_secs_f64() * 1e3);
    }
}
