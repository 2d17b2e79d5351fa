//! Every placement policy explains itself, and each property it claims has a test.

use super::TextFile;

/// What a policy's module doc says, in this order.
const HEADINGS: [&str; 5] = ["Problem", "Approach", "Terms", "Algorithm", "Properties"];

const FOLDER: &str = "crates/policy/src/";

/// The files in `crates/policy/src` that define a policy have all headings, and a test for each
/// property.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let root = files.iter().find(|f| f.path == format!("{FOLDER}lib.rs")).map_or("", |f| &f.text);
    let only_for_tests = |f: &TextFile| {
        let module = f.path.strip_prefix(FOLDER).and_then(|p| p.strip_suffix(".rs")).unwrap_or_default();
        root.contains(&format!("#[cfg(test)]\nmod {module};"))
    };
    let policies = files
        .iter()
        .filter(|f| f.path.starts_with(FOLDER) && defines_one(&f.text))
        .filter(|f| !only_for_tests(f));
    policies.flat_map(|f| complaints(&f.text).into_iter().map(|c| format!("{}: {c}", f.path))).collect()
}

/// Whether it implements the trait, or the rule of those that count accesses, at the top level, in
/// code that is not only for tests. What is generic over a policy or a rule holds another's and is
/// none itself.
fn defines_one(text: &str) -> bool {
    text.lines().filter(|l| l.starts_with("impl")).any(|l| {
        let Some((left, _)) = l.split_once(" for ") else { return false };
        let (parameters, of) = left.rsplit_once([' ', '>']).unwrap_or_default();
        let holds_one = [": Policy", ": Rule"].iter().any(|bound| parameters.contains(bound));
        matches!(of, "Policy" | "Rule") && !holds_one
    })
}

fn complaints(text: &str) -> Vec<String> {
    let doc: Vec<&str> = text.lines().map_while(|l| l.strip_prefix("//!")).map(str::trim).collect();
    let mut complaints = Vec::new();
    let mut after = 0;
    let mut missing = Vec::new();
    for heading in HEADINGS {
        match doc[after..].iter().position(|l| *l == format!("# {heading}")) {
            Some(at) => after += at + 1,
            None => missing.push(heading),
        }
    }
    if !missing.is_empty() {
        let (missing, all) = (missing.join(", "), HEADINGS.join(", "));
        complaints.push(format!("the module doc lacks '# {missing}'; in this order: {all}"));
    }
    if complaints.is_empty() {
        let names: Vec<&str> = doc[after..].iter().filter_map(|l| property(l)).collect();
        if names.is_empty() {
            complaints.push("no property: write them as '- `name`: what always holds'".to_owned());
        }
        let untested = names.iter().filter(|name| !text.contains(&format!("fn {name}(")));
        complaints.extend(untested.map(|name| format!("property '{name}' has no test of that name")));
    }
    complaints
}

/// The name in "- `name`: …".
fn property(line: &str) -> Option<&str> {
    line.strip_prefix("- `")?.split_once('`').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    const GOOD: &str = "//! X.\n//!\n//! # Problem\n//! # Approach\n//! # Terms\n//! # Algorithm\n//! # Properties\n\
                        //! - `stays`: it does.\n\nimpl Policy for X {\n}\nfn stays() {}\n";

    fn of(text: &str) -> Vec<String> {
        check(&[file("crates/policy/src/x.rs", text)])
    }

    #[test]
    fn a_policy_that_explains_itself_passes() {
        assert_eq!(of(GOOD), Vec::<String>::new());
    }

    #[test]
    fn a_missing_heading_is_named() {
        let complaints = of(&GOOD.replace("# Terms", "Terms"));
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("crates/policy/src/x.rs: the module doc lacks '# Terms'"));
    }

    #[test]
    fn a_property_needs_its_test() {
        assert_eq!(
            of(&GOOD.replace("fn stays", "fn goes")),
            ["crates/policy/src/x.rs: property 'stays' has no test of that name"]
        );
        assert_eq!(of(&GOOD.replace("//! - `stays`", "//! `stays`")).len(), 1);
    }

    #[test]
    fn what_is_only_there_for_tests_needs_nothing() {
        let helper = file("crates/policy/src/testing.rs", "impl Policy for X {}");
        let lib = |text| file("crates/policy/src/lib.rs", text);
        assert_eq!(check(&[lib("#[cfg(test)]\nmod testing;\n"), helper]), Vec::<String>::new());
        let helper = file("crates/policy/src/testing.rs", "impl Policy for X {}");
        assert_eq!(check(&[lib("mod testing;\n"), helper]).len(), 1);
    }

    #[test]
    fn what_defines_no_policy_needs_nothing() {
        assert_eq!(
            of("//! Helpers.\n#[cfg(test)]\nmod tests {\n    impl Policy for X {}\n}"),
            Vec::<String>::new()
        );
        assert_eq!(of("impl<P: Policy + ?Sized> Policy for Box<P> {}"), Vec::<String>::new());
        assert_eq!(of("impl<R: Rule> Policy for Counting<R> {}"), Vec::<String>::new());
        assert_eq!(of("impl<P: Policy> Driver<P> {}"), Vec::<String>::new());
        assert_eq!(of("impl Rule for X {}").len(), 1);
        assert_eq!(check(&[file("crates/sim/src/x.rs", "impl Policy for X {}")]), Vec::<String>::new());
    }
}
