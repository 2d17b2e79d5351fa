//! Prints the first rows of each table of a data set:
//! `cargo run -p homenode-dataset --example dump -- REC [ROWS]`.

use std::path::Path;

use homenode_dataset::Dataset;
use homenode_dataset::column::{Chunk, Values};
use homenode_dataset::tables::ALL;

fn cell(chunk: &Chunk, column: usize, row: usize) -> String {
    let column = &chunk.columns[column];
    if !column.has(row) {
        return "-".into();
    }
    match column.values() {
        Values::Ints(_) => column.int(row).map(|n| n.to_string()).unwrap_or_default(),
        Values::Texts(_) => column.text(row).unwrap_or_default().to_owned(),
        Values::IntLists(..) => format!("{:?}", column.ints(row).unwrap_or_default()),
        Values::TextLists(..) => column.texts(row).unwrap_or_default().join(" < "),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which data set?")?;
    let most: usize = args.next().map_or(Ok(5), |n| n.parse())?;
    let set = Dataset::open(Path::new(&path))?;
    println!("{:#?}", set.meta());
    for table in ALL {
        let columns = (table.columns)();
        let (mut rows, mut shown) = (0, Vec::new());
        for chunk in set.chunks_of(table.name, &columns) {
            for row in 0..chunk.rows() {
                if rows + row < most {
                    shown.push(
                        (0..columns.len()).map(|c| cell(&chunk, c, row)).collect::<Vec<_>>().join(" | "),
                    );
                }
            }
            rows += chunk.rows();
        }
        println!("\n{}: {rows} rows", table.name);
        println!("  {}", columns.iter().map(|c| c.name).collect::<Vec<_>>().join(" | "));
        shown.iter().for_each(|line| println!("  {line}"));
    }
    for missing in set.missing() {
        println!("! {missing}");
    }
    Ok(())
}
