//! Writes two data sets of a grid, before and after its pages followed their users. The numbers
//! are made up: `show` and `diff` are tried on them.
//!
//! ```text
//! cargo run -p homenode-report --example heat -- FOLDER
//! homenode show FOLDER/before.hnrec
//! homenode diff FOLDER/before.hnrec FOLDER/after.hnrec
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::PathBuf;

use support::{Heat, Placement};

fn main() {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: heat FOLDER");
        std::process::exit(2);
    };
    std::fs::create_dir_all(&folder).unwrap();
    let before = Heat::default();
    // The program was edited in between: its arrays are allocated elsewhere.
    let after = Heat { placement: Placement::NextTouch, address: 0x7f00_0000, line: 31, ..before.clone() };
    let wide = Heat { nodes: 8, pages: 4096, placement: Placement::NextTouch, ..before.clone() };
    wide.write(&folder.join("eight-nodes.hnrec"));
    before.write(&folder.join("before.hnrec"));
    after.write(&folder.join("after.hnrec"));
}
