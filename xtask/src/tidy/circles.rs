//! Files of a crate do not use each other in circles.
//!
//! Some crates still have circles. The table says how many of their files are in one. A number may
//! only fall.

use std::collections::BTreeMap;

use crate::map::Drawing;

/// Files in circles by crate, as `cargo xtask map` prints them. Other crates have none.
const LEFT: &[(&str, usize)] = &[("agent", 12), ("tracer", 10)];

/// Compares each crate's drawing with the table.
pub fn check(drawings: &BTreeMap<String, Drawing>) -> Vec<String> {
    let left: BTreeMap<&str, usize> = LEFT.iter().copied().collect();
    let complaint = |(name, drawing): (&String, &Drawing)| {
        let allowed = left.get(name.as_str()).copied().unwrap_or(0);
        compare(name, drawing.graph.circles().concat().len(), allowed)
    };
    let gone = left.keys().filter(|name| !drawings.contains_key(**name));
    let gone = gone.map(|name| format!("xtask/src/tidy/circles.rs: there is no crate {name}"));
    drawings.iter().filter_map(complaint).chain(gone).collect()
}

fn compare(name: &str, found: usize, allowed: usize) -> Option<String> {
    let map = format!("'cargo xtask map {name}' names them");
    if found > allowed {
        return Some(format!("crates/{name}: {found} files use each other in circles, {allowed} may; {map}"));
    }
    let lower = format!(
        "xtask/src/tidy/circles.rs: {name} has {found} files in circles; say so instead of {allowed}"
    );
    (found < allowed).then_some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_circles_are_refused_and_fewer_are_written_down() {
        assert!(compare("sim", 3, 3).is_none());
        assert!(compare("sim", 4, 3).is_some_and(|c| c.contains("4 files use each other in circles, 3 may")));
        assert!(compare("sim", 0, 3).is_some_and(|c| c.contains("say so instead of 3")));
    }
}
