//! `homenode run --align`: large allocations begin on pages, and the allocator's functions work on
//! them as before.

use std::path::Path;
use std::process::Command;

use crate::support::{compilers, fresh, homenode, outcome};

fn built(dir: &Path, compiler: &str, source: &Path) -> bool {
    let out = dir.join("app");
    let built = Command::new(compiler).args(["-O1", "-o"]).arg(out).arg(source).output();
    built.is_ok_and(|b| {
        assert!(b.status.success(), "{}", String::from_utf8_lossy(&b.stderr));
        true
    })
}

fn run(dir: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let mut command = homenode(dir);
    outcome(&command.arg("run").args(options).args(["--", "./app"]).output().unwrap())
}

#[test]
fn large_allocations_begin_on_pages_and_work_as_before() {
    let dir = fresh("run-align");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules/align.c");
    if !compilers() || !built(&dir, "gcc", &source) {
        return;
    }
    let off = |out: &str, what: &str| -> Vec<u64> {
        let lines = out.lines().filter_map(|l| l.strip_prefix(what)?.trim().parse().ok());
        lines.collect()
    };
    for nodes in [&[][..], &["--pretend-nodes", "2"]] {
        let (status, out, err) = run(&dir, &[nodes, &["--align"]].concat());
        assert_eq!((status, out.lines().last()), (Some(0), Some("done")), "{out}{err}");
        assert!(!err.contains("no process left a report"), "{err}");
        for what in ["malloc ", "realloc ", "posix_memalign ", "aligned_alloc ", "memalign "] {
            assert_eq!(off(&out, what), [0, 0, 0], "{what}{nodes:?}");
        }
        // The first one is fresh from the kernel.
        assert_eq!(off(&out, "calloc ")[0], 0, "{out}");
    }
    // Without the option glibc puts 16 bytes of its own in front.
    let (status, out, _) = run(&dir, &["--pretend-nodes", "2"]);
    assert_eq!((status, out.lines().last()), (Some(0), Some("done")));
    assert!(off(&out, "malloc ").iter().all(|o| *o != 0), "{out}");
}

#[test]
fn memory_of_new_begins_on_pages() {
    let dir = fresh("run-align-cpp");
    let source = dir.join("new.cpp");
    std::fs::write(
        &source,
        "#include <cstdint>\n#include <cstdio>\n#include <vector>\n\
         int main() {\n\
           std::vector<double> v(40000, 1.0);\n\
           double *a = new double[30000]();\n\
           double sum = 0;\n\
           for (int i = 0; i < 30000; i++) sum += a[i] + v[i];\n\
           v.resize(80000, 2.0);\n\
           for (double x : v) sum += x;\n\
           std::printf(\"%d %d %.0f\\n\", int(std::uintptr_t(a) % 4096), int(std::uintptr_t(v.data()) % 4096), sum);\n\
           delete[] a;\n\
         }\n",
    )
    .unwrap();
    if !compilers() || !built(&dir, "g++", &source) {
        return;
    }
    let (status, out, err) = run(&dir, &["--align"]);
    assert_eq!((status, out.as_str()), (Some(0), "0 0 150000\n"), "{err}");
}
