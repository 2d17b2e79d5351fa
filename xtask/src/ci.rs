//! Every check that must pass.

use std::time::Instant;

use crate::process::{self, cargo, present, program};
use crate::{Outcome, root, testing, tidy};

/// A step: its name and what it does. They run in this order; the first that fails ends it.
type Step = (&'static str, fn() -> Outcome);

const STEPS: &[Step] = &[
    ("format", || process::run(cargo().args(["fmt", "--all", "--check"]))),
    ("tidy", || tidy::run(&[])),
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
    ("test", || testing::run(cargo().args(["test", "--workspace", "--locked", "--", "--show-output"]))),
    ("kernels", || {
        let folder = root().join("target/kernels");
        process::run(program("bash").arg(root().join("kernels/test.sh")).arg(folder))
    }),
    ("documentation", || {
        let mut doc = cargo();
        doc.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
        process::run(&mut doc)
    }),
];

/// What `--long` does after them: ignored tests too, optimised, and many more cases of each property.
const LONG: Step = ("test, long", || {
    // Tests record programs with the compilers and libraries of their own profile.
    process::run(cargo().args(["build", "--workspace", "--locked", "--release", "--quiet"]))?;
    let mut test = cargo();
    test.args(["test", "--workspace", "--locked", "--release", "--", "--include-ignored", "--show-output"]);
    testing::run(test.env("PROPTEST_CASES", std::env::var("PROPTEST_CASES").as_deref().unwrap_or("4096")))
});

fn all(steps: impl Iterator<Item = Step>) -> Outcome {
    let start = Instant::now();
    let done = in_order(steps);
    testing::tell();
    done?;
    eprintln!("── all checks passed, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn in_order(steps: impl Iterator<Item = Step>) -> Outcome {
    for (name, step) in steps {
        let begin = Instant::now();
        eprintln!("── {name}");
        step().map_err(|why| format!("{name}: {why}"))?;
        eprintln!("── {name}: ok, {:.1} s", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Runs the steps.
pub fn run(args: &[String]) -> Outcome {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all(STEPS.iter().copied()),
        ["--long"] => all(STEPS.iter().copied().chain([LONG])),
        _ => Err("takes nothing but --long".to_owned()),
    }
}

/// Shell scripts parse; where shellcheck is installed, it has nothing to say.
fn scripts() -> Outcome {
    let mut scripts = vec![root().join(".ci/run")];
    let folder = root().join("scripts");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
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
