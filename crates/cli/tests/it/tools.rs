//! Debuggers and tools in front of the program, or around homenode: the program ends as it does
//! alone, and homenode helps or says why not.

use std::path::Path;
use std::process::Command;

use crate::support::{compilers, fresh, homenode, outcome};

/// Two threads add to an array in rounds.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 18 };
int main(void) {
    double *a = malloc(N * sizeof *a), sum = 0;
    if (!a) return 1;
    for (int i = 0; i < N; i++) a[i] = i;
    for (int r = 0; r < 6; r++) {
        #pragma omp parallel for num_threads(2)
        for (int i = 0; i < N; i++) a[i] += r;
    }
    for (int i = 0; i < N; i++) sum += a[i];
    printf("%.0f\n", sum);
    free(a);
    return 7;
}
"#;

const OUT: &str = "34363539456\n";

const RUN: [&str; 6] = ["run", "--pretend-nodes", "2", "--policy", "next-touch=region", "--"];

/// The program, built by this compiler with these flags; `None`: it cannot be.
fn built(dir: &Path, name: &str, compiler: &str, flags: &[&str]) -> bool {
    std::fs::write(dir.join("app.c"), PROGRAM).unwrap();
    let mut command = Command::new(compiler);
    command.args(["-O1", "-fopenmp", "-o"]).arg(dir.join(name)).arg(dir.join("app.c")).args(flags);
    let there = command.output().is_ok_and(|o| o.status.success());
    // A sanitizer may be there and not work, as where address spaces are laid out otherwise.
    let works = there
        && Command::new(dir.join(name))
            .output()
            .is_ok_and(|o| o.status.code() == Some(7) && String::from_utf8_lossy(&o.stdout) == OUT);
    if !works {
        println!("skipped: {compiler} {} makes no program that runs", flags.join(" "));
    }
    works
}

/// Whether the tool can be used here.
fn works(dir: &Path, words: &[&str]) -> bool {
    let works = Command::new(words[0]).args(&words[1..]).arg("true").current_dir(dir).output();
    let works = works.is_ok_and(|o| o.status.success());
    if !works {
        println!("skipped: `{} true` does not work here", words.join(" "));
    }
    works
}

const TOOLS: &[&[&str]] = &[
    &["strace", "-f", "-o", "trace"],
    &["perf", "stat", "-o", "counts"],
    &["perf", "record", "-q", "-o", "samples"],
    &["fakeroot"],
    &["stdbuf", "-oL"],
    &["valgrind", "-q", "--tool=none"],
];

#[test]
fn tools_in_front_of_the_program() {
    let dir = fresh("tools-inside");
    if !compilers() || !built(&dir, "app", "gcc", &[]) {
        return;
    }
    for tool in TOOLS.iter().filter(|t| works(&dir, t)) {
        let mut command = homenode(&dir);
        // Everything is armed every millisecond.
        command.args(RUN).args(*tool).arg("./app").env("HOMENODE_RUN_FORCE_ARM", "1");
        let (status, out, err) = outcome(&command.output().unwrap());
        assert_eq!((status, out.as_str()), (Some(7), OUT), "{tool:?}: {err}");
        if tool[0] == "valgrind" {
            assert!(err.contains("valgrind simulates the processor"), "{err}");
        }
    }
}

#[test]
fn tools_around_homenode() {
    let dir = fresh("tools-outside");
    if !compilers() || !built(&dir, "app", "gcc", &[]) {
        return;
    }
    // Nobody needs homenode's own launcher under valgrind.
    for tool in TOOLS.iter().filter(|t| t[0] != "valgrind" && works(&dir, t)) {
        let mut command = Command::new(tool[0]);
        command.args(&tool[1..]).arg(env!("CARGO_BIN_EXE_homenode")).args(RUN).arg("./app");
        command.current_dir(&dir).env("HOMENODE_RUN_FORCE_ARM", "1").env_remove("LD_LIBRARY_PATH");
        let (status, out, err) = outcome(&command.output().unwrap());
        assert_eq!((status, out.as_str()), (Some(7), OUT), "{tool:?}: {err}");
    }
}

#[test]
fn sanitized_programs_run_as_they_are_or_as_others() {
    let dir = fresh("tools-sanitizers");
    if !compilers() {
        return;
    }
    for compiler in ["gcc", "clang"] {
        for (name, flags) in [
            ("address", &["-fsanitize=address"][..]),
            ("address-static", &["-fsanitize=address", "-static-libasan"][..]),
            ("thread", &["-fsanitize=thread"][..]),
            ("undefined", &["-fsanitize=undefined"][..]),
        ] {
            let program = format!("{compiler}-{name}");
            // Threads' own reports of libgomp's and libomp's barriers are not about homenode.
            if !built(&dir, &program, compiler, flags) {
                continue;
            }
            let mut command = homenode(&dir);
            command.args(RUN).arg(format!("./{program}")).env("HOMENODE_RUN_FORCE_ARM", "1");
            let (status, out, err) = outcome(&command.output().unwrap());
            assert_eq!((status, out.as_str()), (Some(7), OUT), "{program}: {err}");
            let said = err.contains("Sanitizer") && err.contains("ran as it is");
            assert!(said || name == "undefined", "{program}: {err}");
        }
    }
}
