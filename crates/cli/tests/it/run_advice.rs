//! The advice of `homenode run`, in the source's terms: arrays that one thread initialises and two
//! nodes use.

use std::path::Path;
use std::process::Command;

use homenode_runtime::nodes::Nodes;

use crate::support::{compilers, fresh, homenode, outcome};

const IN_C: &str = r#"#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 17 };
static double table[N];
int main(void) {
    double *plain = malloc(N * sizeof *plain);
    double *paged = valloc(N * sizeof *paged);
    double *rounded = pvalloc(N * sizeof *rounded);
    double *grown =
        reallocarray(NULL, N, sizeof *grown);
    double *arrays[5] = {plain, paged, rounded, grown, table};
    for (int a = 0; a < 5; a++)
        for (int i = 0; i < N; i++) arrays[a][i] = i;
    for (int it = 0; it < 12; it++)
        for (int a = 0; a < 5; a++) {
            double *p = arrays[a];
#pragma omp parallel for schedule(static)
            for (int i = 0; i < N; i++) p[i] += 1;
        }
    double s = 0;
    for (int a = 0; a < 5; a++)
        for (int i = 0; i < N; i++) s += arrays[a][i];
    printf("%.0f\n", s);
    free(plain), free(paged), free(rounded);
    volatile size_t too_many = (size_t)-1;
    if (reallocarray(grown, too_many, 2)) return 1;
    free(reallocarray(grown, 2 * N, sizeof *grown));
    return 0;
}
"#;

const IN_FORTRAN: &str = "
module fields
   implicit none
   integer, parameter :: n = 2**17
   real(8) :: u(n)
end module

program advice
   use fields
   implicit none
   real(8), allocatable :: a(:)
   real(8) :: x(n), y(n)
   common /grid/ x, y
   integer :: i, it
   allocate (a(n))
   do i = 1, n
      a(i) = i
      u(i) = i
      x(i) = i
      y(i) = i
   end do
   do it = 1, 12
!$omp parallel do schedule(static)
      do i = 1, n
         a(i) = a(i) + 1
         u(i) = u(i) + 1
         x(i) = x(i) + 1
         y(i) = y(i) + 1
      end do
   end do
   print '(i0)', int(sum(a) + sum(u) + sum(x) + sum(y), 8)
end program
";

/// A CPU of each of two pretended nodes, as `OMP_PLACES`.
pub fn a_cpu_of_each() -> Option<String> {
    let nodes = Nodes::here().pretend(2);
    let cpu = |n| nodes.cpus(homenode_model::NodeId(n)).first();
    Some(format!("{{{}}},{{{}}}", cpu(0)?, cpu(1)?))
}

/// Sizes of objects by name.
type Sizes = Vec<(String, u64)>;

/// The advice on a program as text and as JSON, which are the same, and the sizes of its objects by
/// name.
fn advice(dir: &Path, want: &str) -> Option<(Vec<String>, Sizes)> {
    let Some(places) = a_cpu_of_each() else {
        println!("skipped: there is one CPU");
        return None;
    };
    let report = |json: bool| {
        let mut run = homenode(dir);
        run.args(["run", "--force", "--budget", "100%+60s", "--pretend-nodes", "2", "--threads", "2"]);
        run.args(if json { &["--json"] } else { &["-v"] }).args(["--summary", "report", "--", "./advice"]);
        run.env("OMP_PLACES", &places).env("OMP_PROC_BIND", "close");
        assert_eq!(outcome(&run.output().unwrap()), (Some(0), format!("{want}\n"), String::new()));
        std::fs::read_to_string(dir.join("report")).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&report(true)).unwrap();
    let process = &json["processes"][0];
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let mut said: Vec<_> = process["advice"].as_array().unwrap().iter().map(text).collect();
    let objects = process["objects"].as_array().unwrap().iter();
    let objects = objects.map(|o| (text(&o["name"]), o["bytes"].as_u64().unwrap())).collect();
    let lines = report(false);
    let mut lines: Vec<_> =
        lines.lines().filter_map(|l| l.strip_prefix("  advice     ").map(str::to_owned)).collect();
    for list in [&mut said, &mut lines] {
        list.sort();
    }
    // How many pages each node touched may differ by one between two runs; the words do not.
    assert_eq!(said.len(), lines.len(), "{said:#?}{lines:#?}");
    for (a, b) in said.iter().zip(&lines) {
        assert_eq!(a.split_once(" (node"), b.split_once(" (node"), "{said:#?}{lines:#?}");
    }
    Some((said, objects))
}

/// The report names each array once.
fn each_is_told_of(said: &[String], names: &[&str]) {
    for name in names {
        let mine: Vec<_> = said.iter().filter(|s| s.starts_with(&format!("{name}, "))).collect();
        assert_eq!(mine.len(), 1, "{name}: {said:#?}");
        let says = &mine[0][name.len()..];
        assert!(says.starts_with(", first touched by one thread (node 0 had "), "{says}");
        assert!(says.contains("pages) and used by 2 nodes: initialise it in a parallel loop"), "{says}");
    }
    assert_eq!(said.len(), names.len(), "{said:#?}");
}

#[test]
fn arrays_of_c_are_named_by_variable_file_and_line() {
    let dir = fresh("run-advice-c");
    if !compilers() {
        return;
    }
    std::fs::write(dir.join("advice.c"), IN_C).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-fopenmp", "-o", "advice", "advice.c"]).current_dir(&dir);
    assert!(gcc.status().unwrap().success());
    let sum = 5_u64 * ((1 << 17) * ((1 << 17) - 1) / 2 + (1 << 17) * 12);
    let Some((said, objects)) = advice(&dir, &sum.to_string()) else { return };
    let names = [
        "array plain, allocated at advice.c:8",
        "array paged, allocated at advice.c:9",
        "array rounded, allocated at advice.c:10",
        // The variable stands on another line.
        "array grown, allocated at advice.c:12",
        "array table, static",
    ];
    each_is_told_of(&said, &names);
    for name in names {
        assert!(objects.contains(&(name.to_owned(), 1 << 20)), "{name}: {objects:?}");
    }
}

#[test]
fn arrays_of_fortran_are_named_allocated_in_modules_and_in_common_blocks() {
    let dir = fresh("run-advice-fortran");
    if !compilers() || Command::new("gfortran").arg("--version").output().is_err() {
        return println!("skipped: there is no gfortran");
    }
    std::fs::write(dir.join("advice.f90"), IN_FORTRAN).unwrap();
    let build = |extra: &[&str]| {
        let mut fc = Command::new("gfortran");
        fc.args(["-O1", "-fopenmp", "-o", "advice", "advice.f90"]).args(extra).current_dir(&dir);
        assert!(fc.status().unwrap().success());
    };
    let sum = 4_u64 * ((1 << 17) * ((1 << 17) + 1) / 2 + (1 << 17) * 12);
    build(&["-g"]);
    let Some((said, objects)) = advice(&dir, &sum.to_string()) else { return };
    let names =
        ["array a, allocated at advice.f90:15", "array fields::u, static", "common block /grid/ (x, y)"];
    each_is_told_of(&said, &names);
    assert!(objects.contains(&(names[2].to_owned(), 2 << 20)), "{objects:?}");
    // Without debugging information, as the linker knows them.
    build(&["-g0"]);
    let Some((said, _)) = advice(&dir, &sum.to_string()) else { return };
    each_is_told_of(&said, &["the array allocated at MAIN__", names[1], "array grid_, static"]);
}
