//! The command line: what is split, passed on, refused; dependency files; autoconf and CMake; what
//! stays visible.

use crate::support::{Ended, driver, exists, fresh_dir, is_standin, lib_dir, run, run_with_stdin};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const MAIN: &str = "#include \"part.h\"\nint main(void) { return part() - 3; }\n";

fn families() -> Vec<&'static str> {
    ["gcc", "clang"]
        .into_iter()
        .filter(|c| {
            let there = exists(c);
            if !there {
                println!("skipped: {c} is not installed");
            }
            there
        })
        .collect()
}

fn cc(dir: &Path, compiler: &str, args: &str) -> Ended {
    run(driver("c", compiler).current_dir(dir).args(args.split_whitespace()), LIMIT)
}

/// Two sources and a header, in a folder of their own.
fn two_sources(name: &str) -> std::path::PathBuf {
    let dir = fresh_dir(name);
    fs::write(dir.join("main.c"), MAIN).unwrap();
    fs::write(dir.join("part.h"), "int part(void);\n").unwrap();
    fs::write(
        dir.join("part.c"),
        "#include \"part.h\"\nstatic int n[4] = {0, 3};\nint part(void) { return n[1]; }\n",
    )
    .unwrap();
    dir
}

fn assert_runs(dir: &Path, exe: &str) {
    let ended = run(Command::new(dir.join(exe)).current_dir(dir), LIMIT);
    assert!(ended.ok(), "{exe}: {ended:?}");
}

fn symbols(file: &Path) -> String {
    run(Command::new("nm").arg(file), LIMIT).stdout
}

#[test]
fn one_command_with_several_sources() {
    for compiler in families() {
        let dir = two_sources(&format!("several-{compiler}"));
        let ended = cc(&dir, compiler, "-Wall -Werror -O1 main.c -lm part.c -o prog");
        assert_eq!((ended.ok(), ended.stderr.as_str()), (true, ""), "{compiler}");
        assert_runs(&dir, "prog");
        let ended = cc(&dir, compiler, "main.c part.c");
        assert!(ended.ok(), "{}", ended.stderr);
        assert_runs(&dir, "a.out");
        assert!(symbols(&dir.join("a.out")).contains("homenode_read_passed"));
        assert!(!dir.join("main.o").exists());
    }
}

#[test]
fn static_libraries_keep_their_order() {
    for compiler in families() {
        let dir = two_sources(&format!("order-{compiler}"));
        assert!(cc(&dir, compiler, "-c part.c").ok());
        assert!(run(Command::new("ar").current_dir(&dir).args(["rcs", "libpart.a", "part.o"]), LIMIT).ok());
        assert!(cc(&dir, compiler, "main.c -L. -lpart -o prog").ok());
        assert_runs(&dir, "prog");
    }
}

#[test]
fn languages_and_standard_input() {
    for compiler in families() {
        let dir = two_sources(&format!("stdin-{compiler}"));
        fs::copy(dir.join("part.c"), dir.join("part.in")).unwrap();
        let mut command = driver("c", compiler);
        command.current_dir(&dir).args(["-I.", "-x", "c", "-", "part.in", "-x", "none", "-lm", "-o", "prog"]);
        command.stdin(Stdio::from(fs::File::open(dir.join("main.c")).unwrap()));
        let ended = run_with_stdin(&mut command, LIMIT);
        assert!(ended.ok(), "{}", ended.stderr);
        assert_runs(&dir, "prog");
    }
}

#[test]
fn response_files() {
    for compiler in families() {
        let dir = two_sources(&format!("response-{compiler}"));
        fs::write(dir.join("all.rsp"), "-DX='a b' main.c\n\"part.c\" @more.rsp").unwrap();
        fs::write(dir.join("more.rsp"), "-o prog").unwrap();
        let ended = cc(&dir, compiler, "@all.rsp");
        assert!(ended.ok(), "{}", ended.stderr);
        assert_runs(&dir, "prog");
        // Longer than what the driver passes on by arguments: it writes a response file of its own.
        assert!(cc(&dir, compiler, "-c part.c").ok());
        assert!(run(Command::new("ar").current_dir(&dir).args(["rcs", "lib part.a", "part.o"]), LIMIT).ok());
        let many = "'./././././././././././lib part.a'\n".repeat(20_000);
        fs::write(dir.join("long.rsp"), format!("main.c {many} -o long")).unwrap();
        let ended = cc(&dir, compiler, "@long.rsp");
        assert!(ended.ok(), "{}", ended.stderr);
        assert_runs(&dir, "long");
    }
}

#[test]
fn dependency_files_are_those_of_the_real_compiler() {
    for compiler in families() {
        let plain = two_sources(&format!("deps-plain-{compiler}"));
        let driven = two_sources(&format!("deps-driven-{compiler}"));
        for dir in [&plain, &driven] {
            fs::create_dir(dir.join("d")).unwrap();
        }
        for (args, file) in [
            ("-MMD main.c part.c -o prog", "prog.d"),
            ("-MMD part.c main.c -o d/prog.exe", "d/prog.d"),
            ("-MMD -MF own.d main.c part.c -o prog", "own.d"),
            ("-MMD -MP -MT target -MF mt.d main.c part.c -o prog", "mt.d"),
            ("-MMD -c main.c", "main.d"),
            ("-MMD -c main.c -o d/x.o", "d/x.d"),
            ("-MM main.c -o asked.d", "asked.d"),
        ] {
            assert!(run(Command::new(compiler).current_dir(&plain).args(args.split(' ')), LIMIT).ok());
            let ended = cc(&driven, compiler, args);
            assert!(ended.ok(), "{args}: {}", ended.stderr);
            let text =
                |dir: &Path| fs::read_to_string(dir.join(file)).unwrap_or_else(|e| panic!("{args}: {e}"));
            assert_eq!(text(&driven), text(&plain), "{compiler} {args}");
        }
    }
}

#[test]
fn files_beside_the_output_are_named_as_gcc_does() {
    let dir = two_sources("aux-gcc");
    assert!(cc(&dir, "gcc", "--coverage main.c part.c -o prog").ok());
    assert!(dir.join("prog-main.gcno").exists() && dir.join("prog-part.gcno").exists());
}

#[test]
fn a_shared_library_and_a_relocatable_object() {
    for compiler in families() {
        let dir = two_sources(&format!("shared-{compiler}"));
        assert!(cc(&dir, compiler, "-fPIC -shared part.c -o libpart.so").ok());
        let ended = cc(&dir, compiler, "main.c -L. -lpart -Wl,-rpath,. -o prog");
        assert!(ended.ok(), "{}", ended.stderr);
        assert_runs(&dir, "prog");
        let ended = cc(&dir, compiler, "-r -nostdlib main.c part.c -o both.o");
        assert!(ended.ok(), "{}", ended.stderr);
        assert!(cc(&dir, compiler, "both.o -o two").ok());
        assert_runs(&dir, "two");
    }
}

#[test]
fn questions_are_passed_on_unchanged() {
    for compiler in families() {
        let dir = two_sources(&format!("ask-{compiler}"));
        for args in
            ["--version", "-dumpmachine", "-print-prog-name=ld", "-E main.c", "-MM main.c", "-E -dM main.c"]
        {
            let plain = run(Command::new(compiler).current_dir(&dir).args(args.split(' ')), LIMIT);
            assert_eq!(cc(&dir, compiler, args), plain, "{compiler} {args}");
        }
    }
}

#[test]
fn failures_say_why() {
    for compiler in families() {
        let dir = two_sources(&format!("fail-{compiler}"));
        fs::write(dir.join("wrong.c"), "int main(void) { return x; }\n").unwrap();
        for (args, text) in [
            ("wrong.c part.c -o p", "wrong.c:1"),
            ("-static main.c part.c -o p", "homenode-cc: -static: the recorder is a shared library"),
            ("-fsanitize=address main.c -c", "homenode-cc: -fsanitize=address"),
            ("main.c -o p", "part"),
        ] {
            let ended = cc(&dir, compiler, args);
            assert_eq!(ended.code, Some(1), "{args}");
            assert!(ended.stderr.contains(text), "{args}: {}", ended.stderr);
            assert!(!dir.join("p").exists());
        }
    }
    let dir = two_sources("fail-place");
    let ended = run(
        driver("c", "gcc").current_dir(&dir).env("HOMENODE_LIB_DIR", "/no/such").args(["main.c", "part.c"]),
        LIMIT,
    );
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("cannot find libhomenode_trace.so"), "{}", ended.stderr);
    let ended = cc(&dir, "homenode-cc", "main.c");
    assert!(ended.stderr.contains("must name the real compiler"), "{}", ended.stderr);
    let ended = cc(&dir, "/no/such/gcc", "-c main.c");
    assert!(ended.stderr.contains("cannot run the compiler '/no/such/gcc'"), "{}", ended.stderr);
}

#[test]
fn verbose_shows_the_commands_and_the_compiler_can_be_an_option() {
    let dir = two_sources("verbose");
    let mut command = driver("c", "/no/such/compiler");
    command.current_dir(&dir).env("HOMENODE_CC_VERBOSE", "1");
    let ended = run(command.args(["--homenode-compiler=gcc", "main.c", "part.c", "-o", "prog"]), LIMIT);
    assert!(ended.ok(), "{}", ended.stderr);
    let lines: Vec<_> = ended.stderr.lines().filter(|l| l.starts_with("homenode-cc: gcc ")).collect();
    // Two sources, to assembly and from there; the recorder's block; the link.
    assert_eq!(lines.len(), 6, "{}", ended.stderr);
    assert!(lines[0].contains("-fsanitize=thread") && lines[2].contains("-fsanitize=thread"));
    assert!(!lines[5].contains("-fsanitize=thread") && lines[5].contains("--wrap=malloc"));
}

#[test]
fn the_program_cannot_tell_by_its_macros() {
    let dir = fresh_dir("macros");
    let text = "#if defined __SANITIZE_THREAD__ || defined _FORTIFY_SOURCE\n#error seen\n#endif\nint main(void) { return 0; }\n";
    fs::write(dir.join("main.c"), text).unwrap();
    assert!(cc(&dir, "gcc", "-O2 -D_FORTIFY_SOURCE=2 -c main.c").ok());
}

#[test]
fn stores_of_every_shape_are_seen() {
    // A loop that clears, a strided one, a masked one, `omp simd`, copies of constant size: bytes
    // written in all.
    let source = "
#include <string.h>
#define N 4096
double a[3 * N], b[3 * N], c[N];
__attribute__((noinline)) static void clear(double *p, long n) { for (long i = 0; i < n; i++) p[i] = 0; }
__attribute__((noinline)) static void stride(double *p, const double *q, long n) {
    for (long i = 0; i < n; i++) p[i] = q[3 * i] + q[3 * i + 1]; }
__attribute__((noinline)) static void mask(double *restrict p, const double *restrict q, long n) {
    for (long i = 0; i < n; i++) if (q[i] == 0) p[i] = 1; }
__attribute__((noinline)) static void simd(double *p, const double *q, long n) {
    _Pragma(\"omp simd\") for (long i = 0; i < n; i++) p[i] = q[i]; }
__attribute__((noinline)) static void small(double *p, const double *q) { memcpy(p, q, 200); memset(p, 0, 56); }
int main(void) {
    clear(a, 3 * N); stride(c, a, N); mask(b, c, N); simd(b, a, 3 * N);
    for (int i = 0; i < 100; i++) small(b, a);
    return 0;
}";
    if !is_standin() {
        println!("skipped: only the stand-in counts bytes; this library is {}", lib_dir().display());
        return;
    }
    for compiler in families() {
        for level in ["-O0", "-O2", "-O3 -mavx2", "-O3 -march=skylake-avx512"] {
            let dir = fresh_dir("seen");
            fs::write(dir.join("main.c"), source).unwrap();
            // Rewritten code does not say how many bytes.
            let mut command = driver("c", compiler);
            command.current_dir(&dir).env("HOMENODE_CC_INLINE", "0").args(level.split(' '));
            let ended = run(command.args(["-ffast-math", "-fopenmp-simd", "main.c", "-o", "prog"]), LIMIT);
            assert!(ended.ok(), "{}", ended.stderr);
            if level.contains("avx512") && !is_x86_feature("avx512f") {
                println!("skipped: {level}: this processor has no AVX-512");
                continue;
            }
            let ended = run(Command::new(dir.join("prog")).env("HN_STANDIN_COUNT", "1"), LIMIT);
            let numbers: Vec<u64> = ended.stderr.split(' ').filter_map(|w| w.trim().parse().ok()).collect();
            let n = 4096 * 8;
            let written = 3 * n + n + n + 3 * n + 100 * (200 + 56);
            let read = 2 * n + n + 3 * n + 100 * 200;
            // At -O0 loop counters and parameters on the stack may be counted, too.
            assert!(numbers[1] >= read && numbers[2] >= written, "{compiler} {level}: {}", ended.stderr);
            if level != "-O0" {
                assert!(numbers[2] < written + 1000, "{compiler} {level}: {}", ended.stderr);
            }
        }
    }
}

fn is_x86_feature(name: &str) -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.split_whitespace().any(|w| w == name))
}

#[test]
fn autoconf_like_checks() {
    for compiler in families() {
        let dir = fresh_dir(&format!("conftest-{compiler}"));
        let file = dir.join("conftest.c");
        let check = |text: &str, args: &str| {
            fs::write(&file, text).unwrap();
            cc(&dir, compiler, args)
        };
        assert!(check("int main(void) { return 0; }", "-g -O2 conftest.c").ok());
        assert!(check("int main(void) { return 0; }", "-o conftest -g -O2 conftest.c -lm").ok());
        assert!(
            check(
                "char pthread_create(void); int main(void) { return pthread_create(); }",
                "-o conftest -w -fno-builtin conftest.c -lpthread"
            )
            .ok()
        );
        assert!(
            check(
                "char memcpy(void); int main(void) { return memcpy(); }",
                "-o conftest -w -fno-builtin conftest.c"
            )
            .ok()
        );
        assert!(
            !check("char no_such_f(void); int main(void) { return no_such_f(); }", "-o conftest conftest.c")
                .ok()
        );
        assert!(!check("int main(void) { return 0; }", "-Werror -fno-such-option -c conftest.c").ok());
        assert!(check("#include <stdio.h>\n#include <string.h>\n#include <stdatomic.h>\nint main(void) { char b[9]; memset(b, 0, 9); atomic_thread_fence(memory_order_seq_cst); return printf(\"%s\", b); }\n",
            "-Wall -Wextra -Wpedantic -Werror -O2 -c conftest.c").ok());
        assert!(check("int v;", "-c conftest.c -o out/conftest.o").code == Some(1));
        assert!(
            check("#include <stdio.h>\nint main(void) { return 0; }", "-E conftest.c -o conftest.i").ok()
        );
        assert!(check("", "-c conftest.i").ok());
    }
}

#[test]
fn cmake_configures_builds_and_tests() {
    if !exists("cmake") {
        println!("skipped: cmake is not installed");
        return;
    }
    for compiler in families() {
        let dir = fresh_dir(&format!("cmake-{compiler}"));
        let cxx = if compiler == "gcc" { "g++" } else { "clang++" };
        let id = if compiler == "gcc" { "GNU" } else { "Clang" };
        let fortran = compiler == "gcc" && exists("gfortran");
        let languages = if fortran { "C CXX Fortran" } else { "C CXX" };
        let list = format!(
            "cmake_minimum_required(VERSION 3.13)\nproject(t {languages})\n\
             if(NOT CMAKE_C_COMPILER_ID STREQUAL \"{id}\" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL \"{id}\")\n\
             message(FATAL_ERROR \"${{CMAKE_C_COMPILER_ID}} ${{CMAKE_CXX_COMPILER_ID}}\")\nendif()\n\
             include(CheckFunctionExists)\ninclude(CheckCSourceRuns)\ninclude(CheckTypeSize)\n\
             check_function_exists(memcpy HAS_MEMCPY)\ncheck_function_exists(no_such_f HAS_NONE)\n\
             check_c_source_runs(\"int main(void) {{ return 0; }}\" RUNS)\ncheck_type_size(long LONG)\n\
             find_package(Threads REQUIRED)\nfind_package(OpenMP REQUIRED COMPONENTS C CXX)\n\
             if(NOT HAS_MEMCPY OR HAS_NONE OR NOT RUNS OR NOT LONG EQUAL 8)\nmessage(FATAL_ERROR checks)\nendif()\n\
             add_library(part SHARED part.c)\nadd_library(st STATIC st.cc)\nadd_executable(prog main.cc)\n\
             target_link_libraries(prog part st OpenMP::OpenMP_CXX Threads::Threads)\n{}",
            if fortran { "add_executable(f f.f90)\n" } else { "" }
        );
        fs::write(dir.join("CMakeLists.txt"), list).unwrap();
        fs::write(dir.join("part.c"), "int part(int n) { return n + 1; }\n").unwrap();
        fs::write(
            dir.join("st.cc"),
            "#include <string>\nstd::string st(int n) { return std::to_string(n); }\n",
        )
        .unwrap();
        fs::write(
            dir.join("main.cc"),
            "#include <string>\n#include <cstdio>\nextern \"C\" int part(int);\nstd::string st(int);\nint main() { int s = 0;\n\
             #pragma omp parallel for reduction(+:s)\nfor (int i = 0; i < 100; i++) s += part(i);\n\
             std::puts(st(s).c_str()); return s != 5050; }\n",
        )
        .unwrap();
        fs::write(dir.join("f.f90"), "program f\nprint *, 'f'\nend program f\n").unwrap();
        let mut configure = Command::new("cmake");
        configure.args(["-S", ".", "-B", "b", "-DCMAKE_BUILD_TYPE=Release"]).current_dir(&dir);
        let with_drivers = |command: &mut Command| {
            command
                .env("CC", env!("CARGO_BIN_EXE_homenode-cc"))
                .env("CXX", env!("CARGO_BIN_EXE_homenode-cxx"))
                .env("FC", env!("CARGO_BIN_EXE_homenode-fc"))
                .env("HOMENODE_CC", compiler)
                .env("HOMENODE_CXX", cxx)
                .env("HOMENODE_LIB_DIR", lib_dir());
        };
        with_drivers(&mut configure);
        let ended = run(&mut configure, LIMIT);
        assert!(ended.ok(), "{compiler}: {}{}", ended.stdout, ended.stderr);
        let mut build = Command::new("cmake");
        build.args(["--build", "b"]).current_dir(&dir);
        with_drivers(&mut build);
        let ended = run(&mut build, LIMIT);
        assert!(ended.ok(), "{compiler}: {}{}", ended.stdout, ended.stderr);
        assert_runs(&dir, "b/prog");
        assert!(symbols(&dir.join("b/libpart.so")).contains("__tsan_init"));
    }
}
