//! From a command line to the commands that are run instead. Nothing is run or looked up here.
//!
//! `-fsanitize=thread` must reach the compile step and must not reach the link, where it would bring in
//! the compiler's own runtime. A command that does both becomes one command for each source and a link, in
//! which each object stands where its source stood (the order matters among libraries).

use crate::args::{Arg, Kind, OpenMp, Request, Step, is_assembly};
use crate::flags::{compile_flags, link_flags_after, link_flags_before};
use crate::toolchain::{Driver, Family, Toolchain};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where homenode's own files are.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The folder of `libhomenode_trace.so`; needed for a link.
    pub lib_dir: Option<PathBuf>,
    /// The folder of `homenode.h` and the Fortran module, if there is one.
    pub include_dir: Option<PathBuf>,
}

/// The arguments of the commands to run, in order, each without the compiler itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Compile steps of a command that was split; all are run, even if one fails.
    pub compiles: Vec<Vec<OsString>>,
    /// The last command: the link, or the only one.
    pub last: Vec<OsString>,
}

/// Makes the plan. `scratch` is the folder for objects of a split command; folders `0`, `1`, … in it must
/// exist when the plan is run, one for each compile step.
pub fn plan(request: &Request, driver: Driver, tool: &Toolchain, places: &Places, scratch: &Path) -> Plan {
    let extra = || {
        let mut flags = compile_flags(tool, driver, request.has_debug);
        flags.extend(include_flags(driver, places));
        flags
    };
    match request.step {
        Step::Ask => Plan { compiles: Vec::new(), last: all_words(request) },
        Step::Compile => {
            let mut last = all_words(request);
            if request.sources().any(|(file, language)| !is_assembly(file, language)) {
                last.extend(extra());
            }
            Plan { compiles: Vec::new(), last }
        }
        Step::Link => {
            let mut compiles = Vec::new();
            let mut objects = Vec::new();
            for (index, source) in request.args.iter().enumerate() {
                if let Kind::Source { language } = &source.kind {
                    let object = object_name(scratch, compiles.len(), &source.words[0]);
                    let flags =
                        if is_assembly(&source.words[0], language.as_deref()) { Vec::new() } else { extra() };
                    compiles.push(compile_step(request, tool, source, language.as_deref(), &object, flags));
                    objects.push((index, object));
                }
            }
            let last = link_step(request, tool, places, &objects);
            Plan { compiles, last }
        }
    }
}

fn all_words(request: &Request) -> Vec<OsString> {
    request.args.iter().flat_map(|a| a.words.iter().cloned()).collect()
}

fn include_flags(driver: Driver, places: &Places) -> Vec<OsString> {
    let Some(dir) = &places.include_dir else {
        return Vec::new();
    };
    // After the system's folders, so that nothing of the user's is hidden. Modules have no such option.
    let option = if driver == Driver::Fortran { "-I" } else { "-idirafter" };
    vec![option.into(), dir.clone().into_os_string()]
}

fn object_name(scratch: &Path, index: usize, source: &OsStr) -> PathBuf {
    let stem = match Path::new(source).file_stem() {
        Some(stem) if source != "-" => stem,
        _ => OsStr::new("stdin"),
    };
    let mut name = stem.to_os_string();
    name.push(".o");
    scratch.join(index.to_string()).join(name)
}

fn compile_step(
    request: &Request,
    tool: &Toolchain,
    source: &Arg,
    language: Option<&OsStr>,
    object: &Path,
    flags: Vec<OsString>,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut dep_request = false;
    let mut dep_file = false;
    let mut dep_target = false;
    for arg in &request.args {
        match arg.kind {
            Kind::Source { .. } | Kind::LinkInput | Kind::Library | Kind::Output(_) | Kind::Language => {
                continue;
            }
            Kind::DepRequest => dep_request = true,
            Kind::DepFile => dep_file = true,
            Kind::DepTarget => dep_target = true,
            Kind::Option => {}
        }
        words.extend(arg.words.iter().cloned());
    }
    words.extend(flags);
    if dep_request {
        // The names that both compilers choose for a command that was not split.
        let (file, target) = dependency_names(&source.words[0], request.output());
        if !dep_file {
            words.extend(["-MF".into(), file]);
        }
        if !dep_target {
            words.extend(["-MQ".into(), target]);
        }
    }
    if request.aux_files && tool.family == Family::Gcc {
        words.extend(["-dumpdir".into(), aux_prefix(request.output())]);
    }
    if tool.family == Family::Clang {
        // Options of the link stand in this command, and those of this step in the link.
        words.push("-Qunused-arguments".into());
    }
    words.extend(["-c".into(), "-o".into(), object.as_os_str().to_os_string()]);
    if let Some(language) = language {
        words.extend(["-x".into(), language.to_os_string()]);
    }
    words.push(source.words[0].clone());
    words
}

/// The dependency file and its target for `source` compiled and linked in one command.
fn dependency_names(source: &OsStr, output: Option<&OsStr>) -> (OsString, OsString) {
    let base = PathBuf::from(Path::new(source).file_name().unwrap_or(source));
    match output {
        Some(output) => (Path::new(output).with_extension("d").into(), output.to_os_string()),
        None => (base.with_extension("d").into(), base.with_extension("o").into()),
    }
}

/// GCC's prefix for files beside the output: `prog-` for `-o prog` or `-o prog.exe`, `a-` for none.
fn aux_prefix(output: Option<&OsStr>) -> OsString {
    let mut prefix = match output {
        Some(file) if Path::new(file).extension().is_some_and(|e| e == "exe" || e == "out") => {
            Path::new(file).with_extension("").into_os_string()
        }
        Some(file) => file.to_os_string(),
        None => "a".into(),
    };
    prefix.push("-");
    prefix
}

fn link_step(
    request: &Request,
    tool: &Toolchain,
    places: &Places,
    objects: &[(usize, PathBuf)],
) -> Vec<OsString> {
    let ours = places.lib_dir.as_deref().filter(|_| !request.relocatable);
    let mut words = ours.map(link_flags_before).unwrap_or_default();
    let mut objects = objects.iter().peekable();
    for (index, arg) in request.args.iter().enumerate() {
        match arg.kind {
            Kind::Source { .. } => {
                if let Some((_, object)) = objects.next_if(|(at, _)| *at == index) {
                    words.push(object.clone().into_os_string());
                }
            }
            // With -x an object would be read as a source; dependencies were written in the compile steps.
            Kind::Language | Kind::DepRequest | Kind::DepFile | Kind::DepTarget => {}
            _ => words.extend(arg.words.iter().cloned()),
        }
    }
    if ours.is_some() {
        words.extend(link_flags_after(openmp_library(request, tool)));
    } else {
        words.push("-fno-lto".into());
    }
    if tool.family == Family::Clang && request.sources().next().is_some() {
        words.push("-Qunused-arguments".into());
    }
    words
}

fn openmp_library(request: &Request, tool: &Toolchain) -> Option<&'static str> {
    match (request.openmp.as_ref()?, tool.family) {
        (OpenMp::Named(name), _) => Some(name),
        (OpenMp::Default, Family::Gcc) => Some("gomp"),
        (OpenMp::Default, Family::Clang) => Some("omp"),
    }
}

/// The length of a command line as the kernel counts it, roughly.
pub fn length(words: &[OsString]) -> usize {
    words.iter().map(|w| w.as_bytes().len() + 1 + size_of::<usize>()).sum()
}
