//! Memory of C++ programs under `homenode run`: `new` in its forms, containers, and `mmap`; with
//! the C++ library's `operator new`, with an allocator's own, and where nobody but a module that
//! was loaded later knows the C++ library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run_advice::a_cpu_of_each;
use crate::support::{compilers, fresh, homenode, outcome};

const ARRAYS: &str = r#"#include <cstdio>
#include <new>
#include <vector>
#include <sys/mman.h>
constexpr int N = 1 << 17;
struct alignas(4096) Line { double v[512]; };
int main() {
    std::vector<double> held(N);
    double *many = new double[N];
    Line *aligned = new Line[N / 512];
    double *quiet = new (std::nothrow) double[N];
    void *at = mmap(nullptr, N * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double *arrays[5] = {held.data(), many, aligned[0].v, quiet, static_cast<double *>(at)};
    for (double *p : arrays)
        for (int i = 0; i < N; i++) p[i] = i;
    for (int it = 0; it < 12; it++)
        for (double *p : arrays) {
#pragma omp parallel for schedule(static)
            for (int i = 0; i < N; i++) p[i] += 1;
        }
    double s = 0;
    for (double *p : arrays)
        for (int i = 0; i < N; i++) s += p[i];
    std::printf("%.0f\n", s);
    munmap(at, N * 8);
    delete[] aligned;
    delete[] many;
    operator delete[](quiet, std::nothrow);
}
"#;

/// Every form of `new` without memory, and of `delete`; the second is built as a module, too.
const FORMS: &str = r#"#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
static int asked;
static void handler() {
    asked++;
    std::set_new_handler(nullptr);
}
// What the compiler may not work out.
static void *volatile kept;
static volatile std::size_t too_much = std::size_t(-1) / 2;
template <class F> static bool throws(F f) {
    try {
        kept = f();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}
extern "C" int forms(void) {
    using std::align_val_t, std::nothrow;
    int wrong = 0;
    std::set_new_handler(handler);
    wrong += !throws([] { return operator new(too_much); });
    wrong += asked != 1;
    wrong += !throws([] { return operator new[](too_much); });
    wrong += !throws([] { return operator new(too_much, align_val_t(128)); });
    wrong += !throws([] { return operator new[](too_much, align_val_t(128)); });
    wrong += operator new(too_much, nothrow) != nullptr;
    wrong += operator new[](too_much, nothrow) != nullptr;
    wrong += operator new(too_much, align_val_t(128), nothrow) != nullptr;
    wrong += operator new[](too_much, align_val_t(128), nothrow) != nullptr;
    for (std::size_t n : {std::size_t(0), std::size_t(24), std::size_t(1) << 20}) {
        void *all[8] = {
            operator new(n), operator new[](n), operator new(n, nothrow), operator new[](n, nothrow),
            operator new(n, align_val_t(128)), operator new[](n, align_val_t(128)),
            operator new(n, align_val_t(128), nothrow), operator new[](n, align_val_t(128), nothrow),
        };
        for (void *p : all) wrong += !p, std::memset(p, 1, n);
        for (int i = 4; i < 8; i++) wrong += reinterpret_cast<std::size_t>(all[i]) % 128 != 0;
        operator delete(all[0]), operator delete[](all[1], n);
        operator delete(all[2], nothrow), operator delete[](all[3], nothrow);
        operator delete(all[4], align_val_t(128)), operator delete[](all[5], n, align_val_t(128));
        operator delete(all[6], align_val_t(128), nothrow), operator delete[](all[7], align_val_t(128), nothrow);
        operator delete(operator new(n), n), operator delete[](operator new[](n));
        operator delete(operator new(n, align_val_t(128)), n, align_val_t(128));
        operator delete[](operator new[](n, align_val_t(128)), align_val_t(128));
    }
    std::printf("%d wrong\n", wrong);
    std::fflush(stdout);
    return wrong;
}
#ifdef PROGRAM
int main() { return forms(); }
#endif
"#;

/// A program that is no C++ loads a module that is, and keeps its names to it.
const LOADS: &str = r#"#include <dlfcn.h>
int main(void) {
    void *module = dlopen("./forms.so", RTLD_NOW | RTLD_LOCAL);
    if (!module) return 100;
    int (*forms)(void) = (int (*)(void))dlsym(module, "forms");
    return forms ? forms() : 101;
}
"#;

fn allocators() -> Vec<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let find = |name: &&str| folders.iter().map(|f| Path::new(f).join(name)).find(|p| p.exists());
    let names = ["libjemalloc.so.2", "libmimalloc.so.2"];
    names.iter().filter(|n| find(n).is_none()).for_each(|n| println!("skipped: there is no {n}"));
    names.iter().filter_map(find).collect()
}

fn is_there(compiler: &str) -> bool {
    let there = compilers() && Command::new(compiler).arg("--version").output().is_ok();
    if !there {
        println!("skipped: there is no {compiler}");
    }
    there
}

fn compile(compiler: &str, dir: &Path, file: &str, source: &str, flags: &[&str]) {
    std::fs::write(dir.join(file), source).unwrap();
    let mut command = Command::new(compiler);
    let output = command.args(["-O1", "-g", file]).args(flags).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn arrays_of_cplusplus_and_mappings_are_named_whatever_the_allocator() {
    let dir = fresh("run-cpp");
    let Some(places) = a_cpu_of_each() else { return println!("skipped: there is one CPU") };
    if !is_there("g++") {
        return;
    }
    compile("g++", &dir, "arrays.cpp", ARRAYS, &["-std=c++17", "-fopenmp", "-o", "arrays"]);
    let sum = 5_u64 * ((1 << 17) * ((1 << 17) - 1) / 2 + (1 << 17) * 12);
    for allocator in [None].into_iter().chain(allocators().into_iter().map(Some)) {
        let mut run = homenode(&dir);
        run.args([
            "run",
            "--force",
            "--budget",
            "100%+60s",
            "--pretend-nodes",
            "2",
            "--threads",
            "2",
            "--json",
        ]);
        run.args(["--summary", "report", "--", "./arrays"]);
        run.env("OMP_PLACES", &places).env("OMP_PROC_BIND", "close");
        run.envs(allocator.iter().map(|path| ("LD_PRELOAD", path)));
        assert_eq!(outcome(&run.output().unwrap()), (Some(0), format!("{sum}\n"), String::new()));
        let report = std::fs::read_to_string(dir.join("report")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&report).unwrap();
        let objects = json["processes"][0]["objects"].as_array().unwrap();
        for (name, line) in [
            ("array held,", 8),
            ("array many,", 9),
            ("array aligned,", 10),
            ("array quiet,", 11),
            ("array at,", 12),
        ] {
            let name = format!("{name} allocated at arrays.cpp:{line}");
            let mine: Vec<_> = objects.iter().filter(|o| o["name"] == name.as_str()).collect();
            assert_eq!(mine.len(), 1, "{name}, {allocator:?}: {objects:#?}");
            assert_eq!(mine[0]["bytes"], 1 << 20, "{name}, {allocator:?}");
            assert!(mine[0]["pages_moved"].as_u64() > Some(0), "{name}, {allocator:?}");
        }
    }
}

#[test]
fn all_forms_of_new_and_delete_do_what_they_did() {
    let dir = fresh("run-cpp-forms");
    if !is_there("g++") {
        return;
    }
    compile("g++", &dir, "forms.cpp", FORMS, &["-std=c++17", "-DPROGRAM", "-o", "forms"]);
    compile("g++", &dir, "module.cpp", FORMS, &["-std=c++17", "-shared", "-fPIC", "-o", "forms.so"]);
    compile("gcc", &dir, "loads.c", LOADS, &["-o", "loads", "-ldl"]);
    // mimalloc of Debian is built as C, and ends a program where C++ throws.
    let throws = allocators().into_iter().filter(|path| path.ends_with("libjemalloc.so.2"));
    for allocator in [None].into_iter().chain(throws.map(Some)) {
        for program in ["./forms", "./loads"] {
            let mut run = homenode(&dir);
            run.args(["run", "--pretend-nodes", "2", "--summary", "report", "--", program]);
            run.envs(allocator.iter().map(|path| ("LD_PRELOAD", path)));
            let said = outcome(&run.output().unwrap());
            assert_eq!(said, (Some(0), "0 wrong\n".into(), String::new()), "{program}, {allocator:?}");
        }
    }
}
