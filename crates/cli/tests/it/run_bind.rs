//! `homenode run --bind`: where the team's threads may run, as the program sees it.

use std::path::Path;

use homenode_runtime::nodes::{Nodes, numbers};

use crate::support::{fresh, homenode, outcome, plain};

/// Each thread's CPUs, by its number.
const WHERE: &str = r#"
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
int main(void) {
#pragma omp parallel
#pragma omp for ordered schedule(static, 1)
    for (int i = 0; i < omp_get_num_threads(); i++) {
        cpu_set_t set;
        sched_getaffinity(0, sizeof set, &set);
#pragma omp ordered
        {
            for (int c = 0; c < CPU_SETSIZE; c++)
                if (CPU_ISSET(c, &set)) printf("%d ", c);
            printf("\n");
        }
    }
    return 0;
}
"#;

/// CPUs of each thread, and what homenode said.
fn cpus(dir: &Path, words: &[&str], settings: &[(&str, &str)]) -> (Vec<Vec<u32>>, String) {
    let mut run = homenode(dir);
    run.args(["run", "-v", "--pretend-nodes", "2", "--threads", "2"]).args(words).args(["--", "./where"]);
    let (status, out, err) = outcome(&run.envs(settings.iter().copied()).output().unwrap());
    assert_eq!(status, Some(0), "{out}{err}");
    let thread = |line: &str| line.split_whitespace().map(|c| c.parse().unwrap()).collect();
    (out.lines().map(thread).collect(), err)
}

#[test]
fn threads_are_bound_when_asked_and_as_the_environment_says() {
    let dir = fresh("run-bind");
    let Some(_) = plain(&dir, "where", WHERE) else { return };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = numbers(status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap());
    let (Some(first), Some(last)) = (allowed.first(), allowed.last()) else { panic!("no CPU is allowed") };
    if first == last {
        return println!("skipped: there is one CPU");
    }
    let says_so = |err: &str| err.contains("--bind: the environment says already where threads are bound");

    let (all, err) = cpus(&dir, &[], &[]);
    assert_eq!(all, [allowed.clone(), allowed.clone()], "nothing is bound unasked");
    assert!(!says_so(&err), "{err}");

    // A CPU a thread, node by node.
    let nodes = Nodes::here().pretend(2);
    let cpu: Vec<u32> = nodes.usable().into_iter().flat_map(|n| nodes.cpus(n).to_vec()).collect();
    let (bound, err) = cpus(&dir, &["--bind"], &[]);
    assert!(!says_so(&err), "{err}");
    assert_eq!(bound, [vec![cpu[0]], vec![cpu[1]]], "{err}");

    let (unbound, err) = cpus(&dir, &["--bind"], &[("OMP_PROC_BIND", "false")]);
    assert!(says_so(&err), "{err}");
    assert_eq!(unbound, [allowed.clone(), allowed.clone()]);

    let places = format!("{{{last}}},{{{first}}}");
    for name in ["OMP_PLACES", "GOMP_CPU_AFFINITY"] {
        let value = if name == "OMP_PLACES" { places.clone() } else { format!("{last} {first}") };
        let (theirs, err) = cpus(&dir, &["--bind"], &[(name, &value)]);
        assert!(says_so(&err), "{err}");
        assert_eq!(theirs, [vec![*last], vec![*first]], "{name}={value}");
    }
    // Empty: not said.
    assert_eq!(cpus(&dir, &["--bind"], &[("OMP_PROC_BIND", "")]).0, bound);
}
