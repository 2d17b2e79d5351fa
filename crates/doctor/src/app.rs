//! What of a program's file bears on `homenode run`.

use std::path::Path;

use homenode_launch::loadable::{Loadable, loadable, refuse_launcher};
use homenode_launch::program::{is_static, libraries};

use super::judge::{Health, Judgement};
use super::wheels;
use homenode_launch::raw_calls;

/// Libraries by the beginning of their names, and what in them can pin memory.
const PINNING: &[(&str, &str)] = &[
    ("libibverbs", "InfiniBand verbs register memory"),
    ("libcuda", "CUDA can pin memory"),
    ("libamdhip", "HIP can pin memory"),
    ("liburing", "io_uring can register buffers"),
    ("libfabric", "libfabric registers memory"),
    ("libxpmem", "xpmem lets other processes map memory"),
];

/// What was found in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct App {
    /// Its name.
    pub name: String,
    /// Why homenode cannot be loaded into it.
    pub refused: Option<String>,
    /// It is linked statically: no library can be loaded into it.
    pub is_static: bool,
    /// The OpenMP runtime that is in it.
    pub inside: Option<&'static str>,
    /// OpenMP libraries of the Python packages of this interpreter.
    pub wheels: Vec<String>,
    /// It is a launcher of jobs: the right order of words.
    pub launcher: Option<String>,
    /// Names of the libraries that it loads, as far as they are known before it runs.
    pub libraries: Vec<String>,
    /// The run-time in it that makes system calls past the C library.
    pub raw_calls: Option<&'static str>,
    /// It has no symbols: names in reports come from its dynamic symbols alone.
    pub stripped: bool,
}

/// Looks into a program.
pub fn look(path: &Path) -> App {
    App {
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        refused: match loadable(path) {
            Loadable::Yes => None,
            Loadable::No(why) => Some(why),
        },
        launcher: refuse_launcher(path.as_os_str(), &[]).err().and_then(|e| e.hint),
        is_static: is_static(path),
        inside: inside(path),
        wheels: if is_python(path) { wheels::copies(&wheels::folders(Some(path))) } else { Vec::new() },
        libraries: libraries(path),
        raw_calls: raw_calls::runtime(path),
        stripped: stripped(path),
    }
}

/// `python`, `python3`, `python3.11`
fn is_python(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("python").is_some_and(|v| v.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// The runtime whose entry the program itself defines, which the symbols of a program that is not
/// stripped tell.
fn inside(path: &Path) -> Option<&'static str> {
    use object::{Object, ObjectSymbol};
    let file = std::fs::File::open(path).ok()?;
    let cache = object::ReadCache::new(file);
    let parsed = object::File::parse(&cache).ok()?;
    let entry = |name: &str| match name {
        "GOMP_parallel" => Some("libgomp"),
        "__kmpc_fork_call" => Some("libomp"),
        _ => None,
    };
    parsed.symbols().filter(ObjectSymbol::is_definition).find_map(|s| entry(s.name().ok()?))
}

fn stripped(path: &Path) -> bool {
    use object::{Object, ObjectSymbol};
    let Ok(file) = std::fs::File::open(path) else { return false };
    let cache = object::ReadCache::new(file);
    object::File::parse(&cache).is_ok_and(|f| !f.symbols().any(|s| s.is_definition()))
}

/// What follows for a program, from what was found alone.
pub fn judge(app: &App) -> Vec<Judgement> {
    let mut found = Vec::new();
    let name = &app.name;
    if let Some(order) = &app.launcher {
        found.push(Judgement::new(
            "launcher",
            Health::No,
            format!("{name} starts the program elsewhere"),
            order,
        ));
    }
    match &app.refused {
        Some(why) => found.push(Judgement::new(
            "loading",
            Health::No,
            why.clone(),
            "build it for this machine, linked dynamically, without setuid and without sanitizers",
        )),
        None => found.push(Judgement::works("loading", format!("homenode can be loaded into {name}"))),
    }
    found.push(if app.is_static {
        Judgement::new(
            "linking",
            Health::No,
            format!("{name} is linked statically: 'homenode run' would run it as it is"),
            "link it dynamically: leave out -static",
        )
    } else {
        Judgement::works("linking", format!("{name} loads {} libraries at its start", app.libraries.len()))
    });
    found.push(openmp(app));
    if app.stripped {
        found.push(Judgement::new(
            "symbols",
            Health::Less,
            format!("{name} is stripped: static arrays and source lines have no names"),
            "build it with -g and without -s",
        ));
    }
    if let Some(runtime) = app.raw_calls {
        found.push(Judgement::new(
            "system calls",
            Health::Less,
            format!("{runtime} makes system calls past the C library, so no page follows its next touch"),
            "nothing: pages still move where the kernel moves them",
        ));
    }
    for (begin, why) in PINNING {
        if app.libraries.iter().any(|l| l.starts_with(begin)) {
            found.push(Judgement::new(
                "pinned memory",
                Health::Less,
                format!("{begin} is linked: {why}, so no page follows its next touch once it does"),
                "nothing: pages still move where the kernel moves them",
            ));
        }
    }
    found
}

fn openmp(app: &App) -> Judgement {
    let has = |names: &[&str]| app.libraries.iter().any(|l| names.iter().any(|n| l.starts_with(n)));
    let gnu = has(&["libgomp"]);
    let llvm = has(&["libomp", "libiomp5"]);
    if let (Some(runtime), false) = (app.inside, gnu || llvm) {
        return Judgement::new(
            "OpenMP",
            Health::Less,
            format!("{runtime} is built into the program: its regions are not seen"),
            "link the runtime as a library: leave out -static and -static-libgomp",
        );
    }
    if !app.wheels.is_empty() && !gnu && !llvm {
        let text = format!("of the Python packages that are installed: {}", app.wheels.join(", "));
        return Judgement::works("OpenMP", text);
    }
    match (gnu, llvm) {
        (true, true) => Judgement::new(
            "OpenMP",
            Health::Less,
            "libgomp and libomp are both linked: threads of the two compete",
            "link one of them (clang: -fopenmp=libomp; libomp also runs code of GCC's)",
        ),
        (true, false) => Judgement::works("OpenMP", "libgomp: regions are seen at its entries"),
        (false, true) => Judgement::works("OpenMP", "libomp: regions are seen through OMPT"),
        (false, false) => Judgement::new(
            "OpenMP",
            Health::Less,
            "no OpenMP library is linked: unless one is loaded later, there are no regions",
            "build it with -fopenmp; hn_next_touch and --policy next-touch=asked work without",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(libraries: &[&str]) -> App {
        let libraries = libraries.iter().map(|l| (*l).to_owned()).collect();
        App { name: "app".into(), libraries, ..App::default() }
    }

    fn state(app: &App, topic: &str) -> Option<Health> {
        judge(app).into_iter().find(|f| f.topic == topic).map(|f| f.state)
    }

    #[test]
    fn one_openmp_library_is_right_and_two_or_none_are_told() {
        assert_eq!(state(&of(&["libgomp.so.1"]), "OpenMP"), Some(Health::Works));
        assert_eq!(state(&of(&["libomp.so.5"]), "OpenMP"), Some(Health::Works));
        assert_eq!(state(&of(&["libgomp.so.1", "libiomp5.so"]), "OpenMP"), Some(Health::Less));
        assert_eq!(state(&of(&["libc.so.6"]), "OpenMP"), Some(Health::Less));
    }

    #[test]
    fn static_programs_and_pythons_are_told() {
        let app = App { is_static: true, inside: Some("libgomp"), ..of(&[]) };
        assert_eq!(state(&app, "linking"), Some(Health::No));
        assert!(judge(&app).iter().any(|f| f.text.starts_with("libgomp is built into the program")));
        assert_eq!(state(&of(&["libgomp.so.1"]), "linking"), Some(Health::Works));
        let python = App { wheels: vec!["numpy.libs/libgomp-1.so".into()], ..of(&["libc.so.6"]) };
        assert_eq!(state(&python, "OpenMP"), Some(Health::Works));
        assert!(is_python("/v/bin/python3.11".as_ref()) && !is_python("/v/bin/python-config".as_ref()));
    }

    #[test]
    fn what_cannot_be_loaded_or_pins_is_told() {
        let app = App { refused: Some("app is setuid".into()), stripped: true, ..of(&["libibverbs.so.1"]) };
        assert_eq!(state(&app, "loading"), Some(Health::No));
        assert_eq!(state(&app, "symbols"), Some(Health::Less));
        assert_eq!(state(&app, "pinned memory"), Some(Health::Less));
        let go = App { raw_calls: Some("Go"), ..of(&[]) };
        assert_eq!(state(&go, "system calls"), Some(Health::Less));
        assert_eq!(state(&of(&[]), "system calls"), None);
        let srun = App { launcher: Some("put srun in front".into()), ..of(&[]) };
        assert_eq!(state(&srun, "launcher"), Some(Health::No));
        assert_eq!(state(&of(&[]), "launcher"), None);
    }

    #[test]
    fn this_program_is_looked_into() {
        let app = look(&std::env::current_exe().unwrap());
        assert!(app.refused.is_none() && !app.stripped);
        assert!(app.libraries.iter().any(|l| l.starts_with("libc.so")), "{app:?}");
    }
}
