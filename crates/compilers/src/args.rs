//! Reading a compiler's command line: which step it asks for, what its inputs are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What an argument is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A file to compile, in the language that `-x` says (none: by its name).
    Source {
        /// The language of the `-x` that holds here.
        language: Option<OsString>,
    },
    /// Anything else that is not an option: object, archive, library, linker script.
    LinkInput,
    /// `-lNAME`
    Library,
    /// `-o FILE`
    Output(OsString),
    /// `-x LANGUAGE`
    Language,
    /// `-MD`, `-MMD`: write the dependencies while compiling.
    DepRequest,
    /// `-MF FILE`
    DepFile,
    /// `-MT TARGET`, `-MQ TARGET`
    DepTarget,
    /// Any other option.
    Option,
}

/// One argument with the words that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// What it is.
    pub kind: ArgumentKind,
    /// Its words, as they were.
    pub words: Vec<OsString>,
}

/// What a command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerAction {
    /// Nothing that makes code: preprocess, ask for the version, …
    Ask,
    /// Compile and stop before the link.
    Compile,
    /// Link, after compiling the sources if there are any.
    Link,
}

/// A command line that was read.
#[derive(Clone, Debug)]
pub struct CompileRequest {
    /// The arguments in their order.
    pub args: Vec<Arg>,
    /// The step asked for.
    pub step: CompilerAction,
    /// `--homenode-compiler=PATH`, which is not among `args`.
    pub compiler: Option<OsString>,
    /// An option that a recording cannot do with, and why.
    pub refused: Option<String>,
    /// Whether some `-g…` is there.
    pub has_debug: bool,
    /// `-r`: the result is an object, to be linked again.
    pub relocatable: bool,
    /// What the OpenMP library is called, if it is asked for.
    pub openmp: Option<OpenMp>,
    /// Files beside the output are asked for whose names follow from its name (`--coverage`, …).
    pub aux_files: bool,
    /// `-fPIC`, `-fpic`: the code may be for a shared library.
    pub pic: bool,
    /// `-shared`
    pub shared: bool,
    /// An option with which the assembly is not to be rewritten: it is not plain AT&T x86-64, or
    /// more than an object comes of the compilation.
    pub odd_assembly: bool,
}

/// The OpenMP library of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenMp {
    /// The compiler's own (`-fopenmp`).
    Default,
    /// This one (`-fopenmp=libomp`, `-lomp`).
    Named(&'static str),
}

/// Options of GCC and clang whose value is the next word.
const WITH_VALUE: &[&str] = &[
    "-A",
    "-B",
    "-D",
    "-F",
    "-G",
    "-I",
    "-J",
    "-L",
    "-T",
    "-U",
    "-V",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-Xarch_device",
    "-Xarch_host",
    "-Xanalyzer",
    "-Xassembler",
    "-Xclang",
    "-Xlinker",
    "-Xopenmp-target",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-e",
    "-framework",
    "-gcc-toolchain",
    "-h",
    "-idirafter",
    "-iframework",
    "-imacros",
    "-imultilib",
    "-include",
    "-include-pch",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-ivfsoverlay",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-mllvm",
    "-resource-dir",
    "-rpath",
    "-serialize-diagnostics",
    "-target",
    "-u",
    "-wrapper",
    "-z",
    "--param",
    "--serialize-diagnostics",
    "--sysroot",
];

/// Options with which no code is made for the program.
fn only_asks(word: &str) -> bool {
    matches!(
        word,
        "-E" | "-M" | "-MM" | "-###" | "-fsyntax-only" | "-cc1" | "-cc1as" | "--version" | "--target-help"
    ) || word.starts_with("-print-")
        || word.starts_with("--print-")
        || word.starts_with("--help")
        || matches!(word, "-dumpversion" | "-dumpmachine" | "-dumpspecs" | "-dumpfullversion")
}

fn stops_before_link(word: &str) -> bool {
    matches!(word, "-c" | "-S" | "--precompile" | "-emit-ast" | "-fmodule-only")
}

fn asks_for_aux_files(word: &str) -> bool {
    matches!(word, "--coverage" | "-fprofile-arcs" | "-ftest-coverage" | "-fstack-usage" | "-gsplit-dwarf")
        || ["-save-temps", "--save-temps", "-fdump-", "-fcallgraph-info", "-fopt-info"]
            .iter()
            .any(|start| word.starts_with(start))
}

fn makes_odd_assembly(word: &str) -> bool {
    matches!(
        word,
        "-m32"
            | "-mx32"
            | "-m16"
            | "-masm=intel"
            | "-mcmodel=large"
            | "-mcmodel=kernel"
            | "-mabi=ms"
            | "-S"
            | "--precompile"
            | "-emit-ast"
            | "-emit-llvm"
            | "-fmodule-only"
            | "-fsplit-stack"
            | "-wrapper"
            | "-dumpbase"
            | "-dumpbase-ext"
            | "-dumpdir"
            | "-no-integrated-cpp"
    ) || [
        "-fprofile",
        "-fcoverage",
        "-fembed-bitcode",
        "-fopenmp-targets",
        "-foffload",
        "--offload",
        "-fmodule",
        "-MJ",
        "-specs",
        "--specs",
        "-ffixed-",
        "-fcall-",
        "-fcs-profile",
        "-fsave-optimization-record",
        "-fbasic-block-sections",
        "-auxbase",
        "-aux-info",
        "-Wp,",
        "-Wa,-a",
    ]
    .iter()
    .any(|start| word.starts_with(start))
}

const SOURCE_SUFFIXES: &[&str] = &[
    "c", "i", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii", "m", "mi", "mm", "M", "mii", "f", "for",
    "ftn", "fpp", "F", "FOR", "FTN", "FPP", "f90", "f95", "f03", "f08", "F90", "F95", "F03", "F08", "s", "S",
    "sx", "ll", "bc", "cu", "go", "d", "adb",
];
const HEADER_SUFFIXES: &[&str] = &["h", "hh", "H", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];

fn suffix(file: &OsStr) -> Option<&str> {
    Path::new(file).extension().and_then(OsStr::to_str)
}

/// Whether a file holds assembly, into which nothing can be put.
pub fn is_assembly(file: &OsStr, language: Option<&OsStr>) -> bool {
    match language {
        Some(language) => language.as_bytes().starts_with(b"assembler"),
        None => matches!(suffix(file), Some("s" | "S" | "sx")),
    }
}

/// What a recording cannot be made of, and what to do instead.
fn refusal(word: &str) -> Option<String> {
    if matches!(word, "-static" | "--static" | "-static-pie") {
        return Some(format!(
            "{word}: the recorder is a shared library, so the program must be linked dynamically; leave {word} out"
        ));
    }
    let list = word.strip_prefix("-fsanitize=")?;
    let other = list.split(',').find(|s| {
        matches!(*s, "thread" | "address" | "leak" | "memory" | "hwaddress" | "dataflow" | "memtag")
    })?;
    Some(format!(
        "-fsanitize={other}: this driver uses the instrumentation of -fsanitize=thread for itself, and two \
         sanitizers cannot be in one program; leave it out, or build that with the plain compiler"
    ))
}

fn openmp_of(word: &str) -> Option<OpenMp> {
    match word {
        "-fopenmp" | "-fopenacc" | "-qopenmp" => Some(OpenMp::Default),
        "-fopenmp=libgomp" | "-lgomp" => Some(OpenMp::Named("gomp")),
        "-fopenmp=libomp" | "-lomp" => Some(OpenMp::Named("omp")),
        "-fopenmp=libiomp5" | "-liomp5" => Some(OpenMp::Named("iomp5")),
        _ if word.starts_with("-ftree-parallelize-loops=") => Some(OpenMp::Default),
        _ => None,
    }
}

impl CompileRequest {
    /// Reads the arguments (without the program's name, response files expanded).
    pub fn parse(words: Vec<OsString>) -> CompileRequest {
        let mut request = CompileRequest {
            args: Vec::with_capacity(words.len()),
            step: CompilerAction::Link,
            compiler: None,
            refused: None,
            has_debug: false,
            relocatable: false,
            openmp: None,
            aux_files: false,
            pic: false,
            shared: false,
            odd_assembly: false,
        };
        let mut asks = false;
        let mut stops = false;
        let mut header = false;
        let mut language: Option<OsString> = None;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy().into_owned();
            if let Some(path) = text.strip_prefix("--homenode-compiler=") {
                request.compiler = Some(path.into());
                continue;
            }
            let mut arg = Arg { kind: ArgumentKind::Option, words: vec![word] };
            if text == "-" || !text.starts_with('-') {
                header |= is_header(&arg.words[0], language.as_deref());
                arg.kind = input_kind(&arg.words[0], language.as_ref());
            } else if let Some(rest) = joined_or_next(&text, "-o", &mut arg, &mut words) {
                arg.kind = ArgumentKind::Output(rest);
            } else if let Some(rest) = joined_or_next(&text, "-x", &mut arg, &mut words) {
                language = (rest != "none").then_some(rest);
                arg.kind = ArgumentKind::Language;
            } else if joined_or_next(&text, "-l", &mut arg, &mut words).is_some() {
                arg.kind = ArgumentKind::Library;
            } else if matches!(text.as_str(), "-MD" | "-MMD") {
                arg.kind = ArgumentKind::DepRequest;
            } else if joined_or_next(&text, "-MF", &mut arg, &mut words).is_some() {
                arg.kind = ArgumentKind::DepFile;
            } else if joined_or_next(&text, "-MT", &mut arg, &mut words).is_some()
                || joined_or_next(&text, "-MQ", &mut arg, &mut words).is_some()
            {
                arg.kind = ArgumentKind::DepTarget;
            } else if WITH_VALUE.contains(&text.as_str()) {
                arg.words.extend(words.next());
            }
            asks |= only_asks(&text);
            stops |= stops_before_link(&text);
            request.note(&text);
            request.args.push(arg);
        }
        let has_input = request.args.iter().any(|a| {
            matches!(a.kind, ArgumentKind::Source { .. } | ArgumentKind::LinkInput | ArgumentKind::Library)
        });
        request.step = if asks || !has_input {
            CompilerAction::Ask
        } else if stops || header {
            CompilerAction::Compile
        } else {
            CompilerAction::Link
        };
        request
    }

    /// Notes what an option says about the whole command.
    fn note(&mut self, text: &str) {
        self.relocatable |= text == "-r" || text == "-Wl,-r";
        self.aux_files |= asks_for_aux_files(text);
        match text {
            "-fPIC" | "-fpic" => self.pic = true,
            "-fPIE" | "-fpie" | "-fno-PIC" | "-fno-pic" => self.pic = false,
            "-shared" | "--shared" | "-Wl,-shared" | "-Wl,--shared" => self.shared = true,
            _ => {}
        }
        self.odd_assembly |= makes_odd_assembly(text);
        self.has_debug |= text.starts_with("-g") && !text.starts_with("-gcc-");
        if self.refused.is_none() {
            self.refused = refusal(text);
        }
        match openmp_of(text) {
            Some(OpenMp::Default) if self.openmp.is_some() => {}
            Some(found) => self.openmp = Some(found),
            None if text == "-fno-openmp" => self.openmp = None,
            None => {}
        }
    }

    /// The value of the last `-o`.
    pub fn output(&self) -> Option<&OsStr> {
        self.args.iter().rev().find_map(|a| match &a.kind {
            ArgumentKind::Output(file) => Some(file.as_os_str()),
            _ => None,
        })
    }

    /// The sources as arguments: where each stands, itself, its language.
    pub fn source_args(&self) -> impl Iterator<Item = (usize, &Arg, Option<&OsStr>)> {
        self.args.iter().enumerate().filter_map(|(index, a)| match &a.kind {
            ArgumentKind::Source { language } => Some((index, a, language.as_deref())),
            _ => None,
        })
    }

    /// The sources with their languages.
    pub fn sources(&self) -> impl Iterator<Item = (&OsStr, Option<&OsStr>)> {
        self.args.iter().filter_map(|a| match &a.kind {
            ArgumentKind::Source { language } => Some((a.words[0].as_os_str(), language.as_deref())),
            _ => None,
        })
    }
}

/// The value of `-oFILE` or `-o FILE`; in the second case the word is taken.
fn joined_or_next(
    text: &str,
    option: &str,
    arg: &mut Arg,
    words: &mut std::vec::IntoIter<OsString>,
) -> Option<OsString> {
    let rest = text.strip_prefix(option)?;
    if rest.is_empty() {
        let value = words.next()?;
        arg.words.push(value.clone());
        return Some(value);
    }
    // Bytes, not text: a file's name need not be UTF-8.
    Some(OsStr::from_bytes(&arg.words[0].as_bytes()[option.len()..]).to_os_string())
}

fn input_kind(file: &OsStr, language: Option<&OsString>) -> ArgumentKind {
    if language.is_some() || file == "-" || suffix(file).is_some_and(|s| SOURCE_SUFFIXES.contains(&s)) {
        ArgumentKind::Source { language: language.cloned() }
    } else if is_header(file, None) {
        ArgumentKind::Source { language: None }
    } else {
        ArgumentKind::LinkInput
    }
}

/// A header as an input asks for a precompiled header.
pub fn is_header(file: &OsStr, language: Option<&OsStr>) -> bool {
    match language {
        Some(language) => language.as_bytes().ends_with(b"-header"),
        None => suffix(file).is_some_and(|s| HEADER_SUFFIXES.contains(&s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> CompileRequest {
        CompileRequest::parse(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn steps() {
        for (line, step) in [
            ("-c a.c", CompilerAction::Compile),
            ("-S a.c -o -", CompilerAction::Compile),
            ("-E a.c", CompilerAction::Ask),
            ("-c -M a.c", CompilerAction::Ask),
            ("--version", CompilerAction::Ask),
            ("-v", CompilerAction::Ask),
            ("-print-prog-name=ld", CompilerAction::Ask),
            ("a.c", CompilerAction::Link),
            ("a.o -o a", CompilerAction::Link),
            ("-MD a.c -o a", CompilerAction::Link),
            ("-x c++-header a.hpp", CompilerAction::Compile),
            ("a.h", CompilerAction::Compile),
            ("-x c -", CompilerAction::Link),
            ("-lfoo", CompilerAction::Link),
        ] {
            assert_eq!(parse(line).step, step, "{line}");
        }
    }

    #[test]
    fn the_value_of_an_option_is_not_an_input() {
        let r = parse("-I inc.c -include x.c -MF y.c -Xlinker z.c --param q.c a.c -o b.c");
        assert_eq!(r.sources().map(|s| s.0).collect::<Vec<_>>(), ["a.c"]);
        assert_eq!(r.output(), Some(OsStr::new("b.c")));
    }

    #[test]
    fn the_language_holds_until_the_next_one() {
        let r = parse("-x c a.in -xnone b.o c.cc");
        let found: Vec<_> = r.sources().collect();
        assert_eq!(found, [(OsStr::new("a.in"), Some(OsStr::new("c"))), (OsStr::new("c.cc"), None)]);
        assert_eq!(r.args.iter().filter(|a| a.kind == ArgumentKind::LinkInput).count(), 1);
    }

    #[test]
    fn a_static_program_and_other_sanitizers_are_refused() {
        assert!(parse("-static a.c").refused.is_some());
        assert!(parse("-fsanitize=undefined,address a.c").refused.unwrap().contains("address"));
        assert!(parse("-static-libgcc -fsanitize=undefined a.c").refused.is_none());
    }

    #[test]
    fn the_openmp_library() {
        assert_eq!(parse("-fopenmp a.c").openmp, Some(OpenMp::Default));
        assert_eq!(parse("a.o -lomp").openmp, Some(OpenMp::Named("omp")));
        assert_eq!(parse("a.o").openmp, None);
        assert_eq!(parse("-lomp -fopenmp a.o").openmp, Some(OpenMp::Named("omp")));
    }
}
