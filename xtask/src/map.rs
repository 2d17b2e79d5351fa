//! `cargo xtask map`: which file of a crate uses which, as text.
//!
//! *Arrow*: a file names an item of another file of its crate. A re-export (`pub use`) is no arrow,
//! and a name that comes through one counts for the file that defines it. Code for tests alone does
//! not count. *Circle*: files that use each other, directly or through others. *Floor*: one more
//! than the highest floor of the files that a file uses; a circle has one floor.
//!
//! The command reads text. It does not expand macros, and it does not follow methods.

mod graph;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use crate::texts::{self, TextFile};
use crate::{CommandResult, root};

pub use graph::Graph;
pub use read::public_types;

/// The drawing of one crate.
pub struct Drawing {
    /// Files from the crate's `src`, with their number of lines.
    pub files: BTreeMap<String, usize>,
    /// Which file uses which.
    pub graph: Graph,
}

/// The drawings of all crates, by name. Files of `bin` folders are left out: each is a crate of its
/// own.
pub fn drawings(files: &[TextFile]) -> BTreeMap<String, Drawing> {
    let mut crates: BTreeMap<String, Vec<(String, &str)>> = BTreeMap::new();
    for file in files {
        let Some((name, inner)) = crate_and_file(&file.path) else { continue };
        crates.entry(name.to_owned()).or_default().push((inner.to_owned(), &file.text));
    }
    crates.into_iter().map(|(name, sources)| (name, drawing(&sources))).collect()
}

/// `crates/sim/src/memory/mod.rs` is `memory/mod.rs` of `sim`.
pub fn crate_and_file(path: &str) -> Option<(&str, &str)> {
    let (folder, inner) = path.split_once("/src/")?;
    let name = folder.strip_prefix("crates/").or_else(|| (folder == "xtask").then_some(folder))?;
    let is_source = inner.ends_with(".rs") && !inner.starts_with("bin/") && !name.contains('/');
    is_source.then_some((name, inner))
}

fn drawing(sources: &[(String, &str)]) -> Drawing {
    let arrows = read::arrows(sources);
    let files = sources.iter().map(|(file, text)| (file.clone(), text.lines().count())).collect();
    let names: BTreeSet<String> = sources.iter().map(|(file, _)| file.clone()).collect();
    Drawing { files, graph: Graph::new(names, arrows) }
}

impl Drawing {
    /// One line a crate: files, arrows, circles.
    fn line(&self, name: &str) -> String {
        let circles = self.graph.circles();
        let within: usize = circles.iter().map(|circle| circle.len()).sum();
        let (files, arrows) = (self.files.len(), self.graph.arrows());
        format!("{name:<12} {files:>4} {arrows:>6} {:>7} {within:>15}", circles.len())
    }

    /// All floors from the top down, each file with the files that it uses.
    fn floors(&self) -> String {
        let mut text = String::new();
        for (floor, files) in self.graph.floors().iter().enumerate().rev() {
            for file in files {
                let uses: Vec<&str> = self.graph.uses(file).collect();
                let arrow = if uses.is_empty() { "" } else { " → " };
                let lines = self.files.get(file.as_str()).copied().unwrap_or_default();
                text += &format!("{floor:>3}  {file} ({lines}){arrow}{}\n", uses.join(", "));
            }
        }
        for (number, circle) in self.graph.circles().iter().enumerate() {
            text += &format!("circle {}: {}\n", number + 1, circle.join(", "));
        }
        text
    }
}

/// What `map` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct MapArgs {
    /// Crates to draw; without any, one line for each crate
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

/// Prints the drawing of each named crate, or one line for each crate.
pub fn run(args: &MapArgs) -> CommandResult {
    let drawings = drawings(&texts::collect(&root())?);
    if args.crates.is_empty() {
        println!("crate       files arrows circles files in circles");
        drawings.iter().for_each(|(name, drawing)| println!("{}", drawing.line(name)));
        return Ok(());
    }
    for name in &args.crates {
        let known = || drawings.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let drawing =
            drawings.get(name).ok_or_else(|| format!("no crate '{name}'; there are {}", known()))?;
        println!("{name}: floor, file (lines) → files that it uses\n{}", drawing.floors());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sources: &[(&str, &str)]) -> Drawing {
        drawing(&sources.iter().map(|(file, text)| ((*file).to_owned(), *text)).collect::<Vec<_>>())
    }

    fn uses<'a>(drawing: &'a Drawing, file: &str) -> Vec<&'a str> {
        drawing.graph.uses(file).collect()
    }

    #[test]
    fn an_arrow_goes_to_the_file_that_defines_the_name() {
        let d = drawn(&[
            ("lib.rs", "mod a; mod b; mod c; pub use b::inner::Thing; pub use c::*;"),
            ("a.rs", "use crate::Thing; fn f() -> Thing { crate::helps() }"),
            ("b/mod.rs", "pub mod inner;"),
            ("b/inner.rs", "use super::super::c; pub struct Thing(c::Other);"),
            ("c.rs", "pub struct Other; pub fn helps() {} /* crate::a::f() */"),
        ]);
        assert_eq!(uses(&d, "a.rs"), ["b/inner.rs", "c.rs"]);
        assert_eq!(uses(&d, "b/inner.rs"), ["c.rs"]);
        assert!(uses(&d, "lib.rs").is_empty(), "re-exports are no arrows");
        assert!(d.graph.circles().is_empty());
        assert_eq!(d.graph.floors()[0], ["b/mod.rs", "c.rs", "lib.rs"]);
    }

    #[test]
    fn a_circle_is_named_and_tests_do_not_make_one() {
        let d = drawn(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::{self, B as Renamed}; pub struct A; fn f(_: Renamed) { b::g() }"),
            ("b.rs", "pub struct B; pub fn g() { super::c::h() }"),
            (
                "c.rs",
                "pub fn h() { let s = \"crate::b\"; crate::a::f2!() } #[cfg(test)] mod tests { use super::super::b; }",
            ),
        ]);
        assert_eq!(d.graph.circles().concat(), ["a.rs", "b.rs", "c.rs"]);
        let apart = drawn(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub fn f() {} #[cfg(test)] use crate::b::g; #[cfg(test)] mod tests { use crate::b; }"),
            ("b.rs", "use super::a; pub fn g() { a::f() }"),
        ]);
        assert!(apart.graph.circles().is_empty());
        assert_eq!(uses(&apart, "b.rs"), ["a.rs"]);
    }

    #[test]
    fn a_parent_that_uses_its_child_and_is_used_by_it_is_a_circle() {
        let d = drawn(&[
            ("lib.rs", "mod parent;"),
            ("parent/mod.rs", "mod child; pub struct P; impl P { fn f() { child::g() } }"),
            ("parent/child.rs", "use super::P; pub fn g() { _ = P }"),
        ]);
        assert_eq!(d.graph.circles().concat(), ["parent/child.rs", "parent/mod.rs"]);
    }

    #[test]
    fn files_outside_of_crates_are_left_out() {
        assert_eq!(crate_and_file("crates/sim/src/memory/mod.rs"), Some(("sim", "memory/mod.rs")));
        assert_eq!(crate_and_file("xtask/src/map.rs"), Some(("xtask", "map.rs")));
        for path in
            ["crates/sim/tests/it.rs", "crates/lab/src/bin/guest.rs", "fuzz/src/lib.rs", "crates/sim/src/a.c"]
        {
            assert_eq!(crate_and_file(path), None, "{path}");
        }
    }
}
