//! Files of a crate do not use each other in circles.

use std::collections::BTreeMap;

use crate::map::Drawing;

/// A complaint for each circle of a crate.
pub fn check(drawings: &BTreeMap<String, Drawing>) -> Vec<String> {
    let of_crate = |(name, drawing): (&String, &Drawing)| -> Vec<String> {
        let tell = |files: &[String]| {
            format!(
                "{name}: {} use each other in a circle; 'cargo xtask map {name}' draws it",
                files.join(", ")
            )
        };
        drawing.graph.circles().into_iter().map(tell).collect()
    };
    drawings.iter().flat_map(of_crate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;
    use crate::tidy::file;

    fn complaints(sources: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = sources.iter().map(|(path, text)| file(path, text)).collect();
        check(&map::drawings(&files))
    }

    #[test]
    fn a_circle_is_refused_by_the_names_of_its_files() {
        let lib = ("crates/x/src/lib.rs", "mod a;\nmod b;\n");
        let a = ("crates/x/src/a.rs", "use crate::b::B;\npub struct A(B);\n");
        let below = ("crates/x/src/b.rs", "pub struct B;\n");
        assert!(complaints(&[lib, a, below]).is_empty());
        let back = ("crates/x/src/b.rs", "use crate::a::A;\npub struct B(Option<Box<A>>);\n");
        let told = complaints(&[lib, a, back]);
        assert!(
            told.len() == 1 && told[0].starts_with("x: a.rs, b.rs use each other in a circle"),
            "{told:?}"
        );
    }
}
