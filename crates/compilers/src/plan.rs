//! From a command line to the commands that are run instead. Nothing is run or looked up here.
//!
//! `-fsanitize=thread` must reach the compile step and must not reach the link, where it would
//! bring in the compiler's own runtime. A command that does both becomes one command for each
//! source and a link, in which each object stands where its source stood (the order matters among
//! libraries).

use crate::args::{Arg, ArgumentKind, CompileRequest, CompilerAction, OpenMp, is_assembly, is_header};
use crate::flags::{compile_flags, link_flags_after, link_flags_before};
use crate::toolchain::{Family, SourceLanguage, Toolchain};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where homenode's own files are.
#[derive(Clone, Debug, Default)]
pub struct OwnFiles {
    /// The folder of `libhomenode_trace.so`; needed for a link.
    pub lib_dir: Option<PathBuf>,
    /// The folder of `homenode.h` and the Fortran module, if there is one.
    pub include_dir: Option<PathBuf>,
}

/// A compile step, its commands without the compiler itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileStep {
    /// One command.
    Run(Vec<OsString>),
    /// To assembly, rewrite that, to an object.
    Rewrite {
        /// The command that writes `assembly`.
        compile: Vec<OsString>,
        /// The compiler's output.
        assembly: PathBuf,
        /// What it becomes.
        rewritten: PathBuf,
        /// The command that reads `rewritten`.
        assemble: Vec<OsString>,
    },
    /// The recorder's block for an executable: its text is written to the file, then the command
    /// runs.
    Block(PathBuf, Vec<OsString>),
}

/// The commands to run, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPlan {
    /// Compile steps; all are run, even if one fails.
    pub jobs: Vec<CompileStep>,
    /// The last command: the link, or the only one.
    pub last: Option<Vec<OsString>>,
}

/// Makes the plan. `scratch` is the folder for what is made on the way; folders `0`, `1`, … in it
/// must exist when the plan is run, one for each source. `inline`: rewrite where possible.
pub fn plan(
    request: &CompileRequest,
    driver: SourceLanguage,
    tool: &Toolchain,
    places: &OwnFiles,
    scratch: &Path,
    inline: bool,
) -> CommandPlan {
    let mut flags = compile_flags(tool, driver, request.has_debug);
    flags.extend(include_flags(driver, places));
    let inline = inline && can_rewrite(request, tool);
    let step = Compiling { request, tool, flags, scratch, inline };
    match request.step {
        CompilerAction::Ask => CommandPlan { jobs: Vec::new(), last: Some(all_words(request)) },
        CompilerAction::Compile if inline && splits(request) => {
            let jobs = request.source_args().enumerate().map(|(n, (_, source, language))| {
                let object = match request.output() {
                    Some(output) => PathBuf::from(output),
                    None => own_name(&source.words[0], "o"),
                };
                let names = (object.with_extension("d").into(), object.clone().into());
                step.job(n, source, language, &object, names)
            });
            CommandPlan { jobs: jobs.collect(), last: None }
        }
        CompilerAction::Compile => {
            let mut last = all_words(request);
            if request.sources().any(|(file, language)| !is_assembly(file, language)) {
                last.extend(step.flags);
            }
            CommandPlan { jobs: Vec::new(), last: Some(last) }
        }
        CompilerAction::Link => {
            let mut jobs = Vec::new();
            let mut objects = Vec::new();
            for (n, (index, source, language)) in request.source_args().enumerate() {
                let object = object_name(scratch, n, &source.words[0]);
                // The names that both compilers choose for a command that was not split.
                let names = dependency_names(&source.words[0], request.output());
                jobs.push(step.job(n, source, language, &object, names));
                objects.push((index, object));
            }
            // Objects that are linked may have been rewritten before, whatever holds for this
            // command's sources.
            let mut block = None;
            if makes_executable(request, tool, places) {
                let object = scratch.join("homenode-block.o");
                let text = object.with_extension("s");
                let mut words = assembler_words(request, tool);
                words.extend(["-c".into(), "-o".into(), object.clone().into(), text.clone().into()]);
                jobs.push(CompileStep::Block(text, words));
                block = Some(object);
            }
            let last = link_step(request, tool, places, &objects, block.as_deref());
            CommandPlan { jobs, last: Some(last) }
        }
    }
}

/// Whether a command's code may be rewritten: x86-64 for an executable, and nothing unusual.
fn can_rewrite(request: &CompileRequest, tool: &Toolchain) -> bool {
    tool.x86_64 && !request.pic && !request.shared && !request.odd_assembly && !request.aux_files
}

/// Whether a command that only compiles can be done source by source.
fn splits(request: &CompileRequest) -> bool {
    let sources = request.sources().count();
    let plain = request.args.iter().all(|a| match &a.kind {
        ArgumentKind::Source { language } => !is_special(&a.words[0], language.as_deref()),
        ArgumentKind::LinkInput => false,
        _ => true,
    });
    plain && (sources == 1 || request.output().is_none())
}

/// Not a source of the usual kind: standard input, assembly, a header.
fn is_special(file: &OsStr, language: Option<&OsStr>) -> bool {
    file == "-" || is_assembly(file, language) || is_header(file, language)
}

fn makes_executable(request: &CompileRequest, tool: &Toolchain, places: &OwnFiles) -> bool {
    tool.x86_64
        && places.lib_dir.is_some()
        && !request.shared
        && !request.relocatable
        && !request.args.iter().any(|a| matches!(a.words[0].to_str(), Some("-m32" | "-mx32" | "-m16")))
}

/// Words that also hold when assembly is assembled.
fn assembler_words(request: &CompileRequest, tool: &Toolchain) -> Vec<OsString> {
    let mut words = Vec::new();
    for arg in request.args.iter().filter(|a| a.kind == ArgumentKind::Option) {
        let text = arg.words[0].to_string_lossy();
        let wanted = text == "-Xassembler"
            || text == "-pipe"
            || text.starts_with("-m") && text != "-mllvm"
            || [
                "-Wa,",
                "-B",
                "-gz",
                "-target",
                "--target=",
                "-gcc-toolchain",
                "--gcc-toolchain",
                "--sysroot",
            ]
            .iter()
            .any(|start| text.starts_with(start))
            || matches!(&*text, "-fno-integrated-as" | "-fintegrated-as" | "-no-integrated-as");
        if wanted {
            words.extend(arg.words.iter().cloned());
        }
    }
    if tool.family == Family::Clang {
        words.push("-Qunused-arguments".into());
    }
    words
}

fn all_words(request: &CompileRequest) -> Vec<OsString> {
    request.args.iter().flat_map(|a| a.words.iter().cloned()).collect()
}

fn include_flags(driver: SourceLanguage, places: &OwnFiles) -> Vec<OsString> {
    let Some(dir) = &places.include_dir else {
        return Vec::new();
    };
    // After the system's folders, so that nothing of the user's is hidden. Modules have no such
    // option.
    let option = if driver == SourceLanguage::Fortran { "-I" } else { "-idirafter" };
    vec![option.into(), dir.clone().into_os_string()]
}

/// A source's name in the current folder, with another ending.
fn own_name(source: &OsStr, extension: &str) -> PathBuf {
    PathBuf::from(Path::new(source).file_name().unwrap_or(source)).with_extension(extension)
}

fn object_name(scratch: &Path, index: usize, source: &OsStr) -> PathBuf {
    let name = if source == "-" { "stdin.o".into() } else { own_name(source, "o") };
    scratch.join(index.to_string()).join(name)
}

/// What all compile steps of a command have in common.
struct Compiling<'a> {
    request: &'a CompileRequest,
    tool: &'a Toolchain,
    flags: Vec<OsString>,
    scratch: &'a Path,
    inline: bool,
}

impl Compiling<'_> {
    /// `names`: of the dependency file and its target, unless the user names them.
    fn job(
        &self,
        number: usize,
        source: &Arg,
        language: Option<&OsStr>,
        object: &Path,
        names: (OsString, OsString),
    ) -> CompileStep {
        let assembly_source = is_assembly(&source.words[0], language);
        if !self.inline || assembly_source {
            let flags: &[OsString] = if assembly_source { &[] } else { &self.flags };
            return CompileStep::Run(self.command("-c", source, language, object, flags, names));
        }
        let folder = self.scratch.join(number.to_string());
        let (assembly, rewritten) = (folder.join("compiled.s"), folder.join("rewritten.s"));
        let compile = self.command("-S", source, language, &assembly, &self.flags, names);
        let mut assemble = assembler_words(self.request, self.tool);
        assemble.extend(["-c".into(), "-o".into(), object.into(), rewritten.clone().into()]);
        CompileStep::Rewrite { compile, assembly, rewritten, assemble }
    }

    fn command(
        &self,
        step: &str,
        source: &Arg,
        language: Option<&OsStr>,
        to: &Path,
        flags: &[OsString],
        names: (OsString, OsString),
    ) -> Vec<OsString> {
        let Self { request, tool, .. } = self;
        let mut words: Vec<OsString> = Vec::new();
        let mut dep_request = false;
        let mut dep_file = false;
        let mut dep_target = false;
        for arg in &request.args {
            match arg.kind {
                ArgumentKind::Source { .. }
                | ArgumentKind::LinkInput
                | ArgumentKind::Library
                | ArgumentKind::Output(_)
                | ArgumentKind::Language => {
                    continue;
                }
                ArgumentKind::DepRequest => dep_request = true,
                ArgumentKind::DepFile => dep_file = true,
                ArgumentKind::DepTarget => dep_target = true,
                ArgumentKind::Option if arg.words[0] == "-c" => continue,
                ArgumentKind::Option => {}
            }
            words.extend(arg.words.iter().cloned());
        }
        words.extend(flags.iter().cloned());
        if dep_request {
            let (file, target) = names;
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
        words.extend([step.into(), "-o".into(), to.as_os_str().to_os_string()]);
        if let Some(language) = language {
            words.extend(["-x".into(), language.to_os_string()]);
        }
        words.push(source.words[0].clone());
        words
    }
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
    request: &CompileRequest,
    tool: &Toolchain,
    places: &OwnFiles,
    objects: &[(usize, PathBuf)],
    block: Option<&Path>,
) -> Vec<OsString> {
    let ours = places.lib_dir.as_deref().filter(|_| !request.relocatable);
    let mut words = ours.map(link_flags_before).unwrap_or_default();
    if let Some(block) = block {
        words.extend(["-Wl,--export-dynamic-symbol=homenode_exe_tls".into(), block.into()]);
    }
    let mut objects = objects.iter().peekable();
    for (index, arg) in request.args.iter().enumerate() {
        match arg.kind {
            ArgumentKind::Source { .. } => {
                if let Some((_, object)) = objects.next_if(|(at, _)| *at == index) {
                    words.push(object.clone().into_os_string());
                }
            }
            // With -x an object would be read as a source; dependencies were written in the compile
            // steps.
            ArgumentKind::Language
            | ArgumentKind::DepRequest
            | ArgumentKind::DepFile
            | ArgumentKind::DepTarget => {}
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

fn openmp_library(request: &CompileRequest, tool: &Toolchain) -> Option<&'static str> {
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
