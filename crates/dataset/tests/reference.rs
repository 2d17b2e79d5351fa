//! `docs/dataset.md` has each table and column, as the code declares them.
//!
//! `HOMENODE_BLESS=1 cargo test -p homenode-dataset --test reference` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use homenode_dataset::column::ColumnKind;
use homenode_dataset::tables::{ALL, META};

const BEGIN: &str = "<!-- columns: begin -->";
const END: &str = "<!-- columns: end -->";

fn kind(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Int => "integer".into(),
        ColumnKind::Flag => "boolean".into(),
        ColumnKind::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        ColumnKind::Text => "text".into(),
        ColumnKind::Ints => "list of integers".into(),
        ColumnKind::Texts => "list of texts".into(),
    }
}

fn columns() -> String {
    let mut out = String::new();
    for table in [&META].into_iter().chain(ALL) {
        let _ = write!(out, "\n### {}\n\n{}\n\n", table.name, table.doc);
        out.push_str("| column | type | unit | null | meaning |\n|---|---|---|---|---|\n");
        for c in (table.columns)() {
            let null = if c.optional { "yes" } else { "" };
            let _ = writeln!(out, "| `{}` | {} | {} | {null} | {} |", c.name, kind(c.kind), c.unit, c.doc);
        }
    }
    out.push('\n');
    out
}

#[test]
fn the_documentation_has_the_columns_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dataset.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page marks where the columns begin");
    let (written, after) = rest.split_once(END).expect("the page marks where the columns end");
    if std::env::var_os("HOMENODE_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", columns())).unwrap();
        return;
    }
    assert!(written == columns(), "docs/dataset.md differs: write it anew with HOMENODE_BLESS=1");
}
