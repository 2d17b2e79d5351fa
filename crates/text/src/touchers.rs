//! Who touched an object's pages first, in words.

use homenode_report::touch::FirstToucher;

use crate::human::glued;

/// Who touched most pages first.
pub fn touched_by(all: &[FirstToucher]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let nodes: std::collections::BTreeSet<_> = all.iter().map(|t| t.node).collect();
    let who = match nodes.len() {
        1 => format!("node {}", first.node.0),
        n => format!("{n} nodes"),
    };
    format!("{} {}", glued(&who), place(first)).trim_end().to_owned()
}

/// The file and line of the code that touched; else its function.
fn place(t: &FirstToucher) -> String {
    let file = t.file.as_deref().map(|f| f.rsplit('/').next().unwrap_or(f));
    match (file, t.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        (None, _) => t.function.clone().unwrap_or_default(),
    }
}
