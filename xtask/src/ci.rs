//! Every check that must pass.

use std::time::Instant;

use crate::process::{self, cargo, present, program};
use crate::{CommandResult, book, dist, miri, python, root, testing, tidy};

/// A step: its name and what it does.
type Step = (&'static str, fn() -> CommandResult);

/// Steps run in order. A failure before this one ends the run; from this one on all steps run
/// before the verdict.
const FIRST_TEST: &str = "test";

const STEPS: &[Step] = &[
    ("format", || process::run(cargo().args(["fmt", "--all", "--check"]))),
    ("tidy", || tidy::run()),
    ("scripts", scripts),
    ("clippy", || {
        process::run(cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("build", || process::run(cargo().args(["build", "--workspace", "--locked", "--quiet"]))),
    ("test", || testing::run(&[], &[], &[])),
    ("kernels", || {
        let folder = root().join("target/kernels");
        process::run(program("bash").arg(root().join("kernels/test.sh")).arg(folder))
    }),
    ("python", python::test),
    ("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
        process::run(&mut doc)
    }),
];

/// What `--long` does after them: ignored tests too, optimised, and many more cases of each
/// property. Then unsafe code under Miri, and what people install, in clean roots.
const LONG: [Step; 4] =
    [("test, long", test_long), ("miri", miri::run), ("book", book::make), ("dist", dist::test)];

fn test_long() -> CommandResult {
    // Tests record programs with the compilers and libraries of their own profile.
    process::run(cargo().args(["build", "--workspace", "--locked", "--release", "--quiet"]))?;
    let cases = std::env::var("PROPTEST_CASES").unwrap_or_else(|_| "4096".to_owned());
    testing::run(&["--release"], &["--include-ignored"], &[("PROPTEST_CASES", &cases)])
}

fn all(steps: impl Iterator<Item = Step>) -> CommandResult {
    let start = Instant::now();
    let done = in_order(steps);
    testing::tell();
    done?;
    eprintln!("── all checks passed, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn in_order(steps: impl Iterator<Item = Step>) -> CommandResult {
    let (mut failed, mut testing) = (Vec::new(), false);
    for (name, step) in steps {
        testing |= name == FIRST_TEST;
        let begin = Instant::now();
        eprintln!("── {name}");
        match step() {
            Ok(()) => eprintln!("── {name}: ok, {:.1} s", begin.elapsed().as_secs_f64()),
            Err(why) => {
                eprintln!("── {name}: FAILED, {:.1} s: {why}", begin.elapsed().as_secs_f64());
                failed.push(format!("{name}: {why}"));
                if !testing {
                    break;
                }
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// What `ci` takes.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct CiArgs {
    /// Also run what takes an hour: ignored tests, packages, benchmarks
    #[arg(long)]
    long: bool,
}

/// Runs the steps.
pub fn run(args: CiArgs) -> CommandResult {
    if args.long { all(STEPS.iter().copied().chain(LONG)) } else { all(STEPS.iter().copied()) }
}

/// Shell scripts parse; where shellcheck is installed, it has nothing to say.
fn scripts() -> CommandResult {
    let mut scripts = vec![root().join(".ci/run")];
    let folder = root().join("scripts");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let ci = root().join("packaging/ci/placement.sh");
    scripts.push(ci);
    scripts.extend(entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "sh")));
    scripts.sort();
    for script in &scripts {
        process::run(program("bash").arg("-n").arg(script))?;
    }
    if present("shellcheck") {
        return process::run(program("shellcheck").args(&scripts));
    }
    eprintln!("shellcheck skipped: it is not installed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_before_the_tests_ends_it_and_later_failures_are_collected() {
        let bad: fn() -> CommandResult = || Err("no".to_owned());
        let never: fn() -> CommandResult = || unreachable!("a step after a failed one");
        assert_eq!(in_order([("clippy", bad), ("build", never)].into_iter()), Err("clippy: no".into()));
        let all = [("build", (|| Ok(())) as fn() -> CommandResult), (FIRST_TEST, bad), ("kernels", bad)];
        assert_eq!(in_order(all.into_iter()), Err("test: no; kernels: no".into()));
    }
}
