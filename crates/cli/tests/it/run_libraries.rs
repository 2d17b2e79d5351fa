//! Static arrays of libraries under `homenode run`: of one that the program is linked with, and of
//! one that it opens, closes and opens again.

use std::path::Path;
use std::process::Command;

use crate::run_advice::a_cpu_of_each;
use crate::support::{compilers, fresh, homenode, outcome};

/// `FIELD` is the array's name, `SWEEP` the function's.
const LIBRARY: &str = r#"
enum { N = 1 << 17 };
static double FIELD[N];
double SWEEP(int times) {
    double s = 0;
    for (int i = 0; i < N; i++) FIELD[i] = i;
    for (int it = 0; it < times; it++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) FIELD[i] += 1;
    }
    for (int i = 0; i < N; i++) s += FIELD[i];
    return s;
}
"#;

const IN_FORTRAN: &str = "
subroutine blocks(total)
   implicit none
   integer, parameter :: n = 2**16
   real(8) :: x(n), y(n)
   common /grid/ x, y
   real(8), intent(out) :: total
   integer :: i
   integer(8) :: rounds, began, now, ticks
   do i = 1, n
      x(i) = i
      y(i) = i
   end do
   rounds = 0
   call system_clock(began, ticks)
   do
!$omp parallel do schedule(static)
      do i = 1, n
         x(i) = x(i) + 1
         y(i) = y(i) + 1
      end do
      rounds = rounds + 1
      call system_clock(now)
      if (now - began > ticks) exit
   end do
   total = sum(x) + sum(y) - 2 * n * real(rounds, 8)
end subroutine
";

/// Where the library was, others may come to lie: a thread's stack does.
const PROGRAM: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
double near(int);
#ifdef BLOCKS
void blocks_(double *);
#endif
static void *rests(void *unused) {
    volatile char on_the_stack[65536];
    for (int i = 0; i < 65536; i++) on_the_stack[i] = (char)i;
    return unused;
}
int main(void) {
    double s = near(12);
    for (int round = 0; round < 2; round++) {
        void *library = dlopen("./libfar.so", RTLD_NOW);
        if (!library) return puts(dlerror()), 1;
        double (*far)(int) = (double (*)(int))dlsym(library, "far");
        s += far(12);
        Dl_info at;
        dladdr((void *)far, &at);
        if (dlclose(library)) return 2;
        char *stack = mmap(at.dli_fbase, 1 << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_FIXED_NOREPLACE, -1, 0);
        if (stack != at.dli_fbase) return 3;
        pthread_attr_t on;
        pthread_t thread;
        pthread_attr_init(&on);
        pthread_attr_setstack(&on, stack, 1 << 20);
        if (pthread_create(&thread, &on, rests, NULL)) return 4;
        s += near(12);
        pthread_join(thread, NULL);
        munmap(stack, 1 << 20);
    }
#ifdef BLOCKS
    double t;
    blocks_(&t);
    s += t;
#endif
    printf("%.0f\n", s);
    return 0;
}
"#;

fn compile(compiler: &str, dir: &Path, file: &str, source: &str, flags: &[&str]) {
    std::fs::write(dir.join(file), source).unwrap();
    let mut command = Command::new(compiler);
    let output = command.args(["-O1", "-g", "-fopenmp", file]).args(flags).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn static_arrays_of_libraries_are_named_and_forgotten_when_they_go() {
    let dir = fresh("run-libraries");
    let Some(places) = a_cpu_of_each() else { return println!("skipped: there is one CPU") };
    if !compilers() {
        return;
    }
    let shared = ["-shared", "-fPIC", "-o"];
    for (name, flags) in
        [("near", ["-DFIELD=fixed", "-DSWEEP=near"]), ("far", ["-DFIELD=loaded", "-DSWEEP=far"])]
    {
        let library = format!("lib{name}.so");
        compile("gcc", &dir, &format!("{name}.c"), LIBRARY, &[&shared[..], &[&library], &flags].concat());
    }
    let fortran = Command::new("gfortran").arg("--version").output().is_ok();
    let mut flags = vec!["-o", "program", "-L.", "-Wl,-rpath,$ORIGIN", "-lnear", "-ldl"];
    if fortran {
        compile("gfortran", &dir, "blocks.f90", IN_FORTRAN, &["-shared", "-fPIC", "-o", "libblocks.so"]);
        flags.extend(["-DBLOCKS", "-lblocks"]);
    } else {
        println!("skipped: there is no gfortran");
    }
    compile("gcc", &dir, "program.c", PROGRAM, &flags);
    let sum_after = |rounds: u64, n: u64| n * (n - 1) / 2 + rounds * n;
    // The arrays of the common block get their pages long after the program's start. homenode looks
    // for such pages more rarely as time passes, so their loop goes on for a second. Its
    // rounds are subtracted.
    let blocks = u64::from(fortran) * 2 * (sum_after(0, 1 << 16) + (1 << 16));
    let sum = 5 * sum_after(12, 1 << 17) + blocks;
    let mut run = homenode(&dir);
    run.args(["run", "--force", "--budget", "100%+60s", "--pretend-nodes", "2", "--threads", "2", "--json"]);
    run.args(["--summary", "report", "--", "./program"]);
    run.env("OMP_PLACES", &places).env("OMP_PROC_BIND", "close");
    assert_eq!(outcome(&run.output().unwrap()), (Some(0), format!("{sum}\n"), String::new()));
    let report = std::fs::read_to_string(dir.join("report")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report).unwrap();
    let process = &json["processes"][0];
    let mut names = vec!["array fixed of libnear.so, static", "array loaded of libfar.so, static"];
    names.extend(fortran.then_some("common block /grid/ (x, y) of libblocks.so"));
    for name in &names {
        let objects = process["objects"].as_array().unwrap();
        let mine: Vec<_> = objects.iter().filter(|o| o["name"] == *name).collect();
        assert_eq!(mine.len(), 1, "{name}: {objects:#?}");
        assert_eq!((&mine[0]["bytes"], &mine[0]["static"]), (&(1 << 20).into(), &true.into()), "{name}");
        assert!(mine[0]["pages_moved"].as_u64() > Some(0), "{name}");
    }
    assert_eq!(process["objects_watched"], names.len() - 1, "what was closed is no object any more");
}
