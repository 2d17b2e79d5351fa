//! Programs with a sanitizer that stands no library in front of its own.
//!
//! AddressSanitizer refuses to start unless its library comes first, ThreadSanitizer dies while it
//! is loaded behind another library, and all of these keep notes about every page of the program's
//! memory, which moving pages by faults would upset. So such a program is recognised from its file
//! and its environment, and runs without homenode. UndefinedBehaviorSanitizer and the stand-alone
//! LeakSanitizer do not mind.
//!
//! | how the run-time is linked | what tells |
//! |---|---|
//! | as a library | the program's list of libraries (`libasan`, `libclang_rt.asan-x86_64`) |
//! | into the program, with symbols or exported | a symbol that every object file asks for (`__asan_init`) |
//! | into the program, stripped | functions that run before all constructors (`.preinit_array`), and the run-time's own name |
//! | loaded by hand | `LD_PRELOAD` |

use std::fs::File;
use std::path::Path;

use object::elf::SHT_PREINIT_ARRAY;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache, SectionFlags, SectionKind};

use crate::program::needed;

/// A sanitizer.
struct Sanitizer {
    name: &'static str,
    /// What its library's name has behind `lib` or `libclang_rt.`.
    library: &'static str,
    /// What object files ask for.
    symbol: &'static str,
}

const SANITIZERS: [Sanitizer; 5] = [
    Sanitizer { name: "AddressSanitizer", library: "asan", symbol: "__asan_init" },
    Sanitizer { name: "ThreadSanitizer", library: "tsan", symbol: "__tsan_init" },
    Sanitizer { name: "MemorySanitizer", library: "msan", symbol: "__msan_init" },
    Sanitizer { name: "HWAddressSanitizer", library: "hwasan", symbol: "__hwasan_init" },
    Sanitizer { name: "DataFlowSanitizer", library: "dfsan", symbol: "__dfsan_init" },
];

/// The sanitizer that a program is built with, or that the environment loads into it.
pub fn sanitizer(path: &Path) -> Option<&'static str> {
    let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
    by_libraries(preloaded.split([':', ' ']).filter_map(|l| l.rsplit('/').next()))
        .or_else(|| by_libraries(needed(path).iter().map(String::as_str)))
        .or_else(|| by_file(path))
}

fn by_libraries<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    names.filter_map(of_library).next()
}

fn of_library(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("libclang_rt.").or_else(|| name.strip_prefix("lib"))?;
    let is = |s: &&Sanitizer| {
        rest.strip_prefix(s.library).is_some_and(|r| r.is_empty() || r.starts_with(['.', '-', '_']))
    };
    SANITIZERS.iter().find(is).map(|s| s.name)
}

fn by_file(path: &Path) -> Option<&'static str> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let of_symbol = |name: &str| SANITIZERS.iter().find(|s| s.symbol == name).map(|s| s.name);
    let named = |s: object::Symbol<'_, '_, _>| of_symbol(s.name().ok()?);
    let symbols = file.symbols().filter_map(named).next();
    symbols.or_else(|| file.dynamic_symbols().filter_map(named).next()).or_else(|| by_texts(&file))
}

/// A stripped one: only run-times of this kind have functions that run before all constructors, and
/// each prints its name.
fn by_texts<'a, R: object::ReadRef<'a>>(file: &object::File<'a, R>) -> Option<&'static str> {
    let early = |s: &object::Section<'a, '_, R>| {
        s.name() == Ok(".preinit_array") || matches!(s.flags(), SectionFlags::Elf { .. }) && is_preinit(s)
    };
    file.sections().find(early)?;
    let texts = file
        .sections()
        .filter(|s| matches!(s.kind(), SectionKind::ReadOnlyData | SectionKind::ReadOnlyString));
    let said = |s: &Sanitizer, data: &[u8]| data.windows(s.name.len()).any(|w| w == s.name.as_bytes());
    texts.filter_map(|t| t.data().ok()).find_map(|data| {
        // "AddressSanitizer" is a part of "HWAddressSanitizer".
        SANITIZERS.iter().rev().find(|s| said(s, data)).map(|s| s.name)
    })
}

fn is_preinit<'a, R: object::ReadRef<'a>>(section: &object::Section<'a, '_, R>) -> bool {
    section.kind() == SectionKind::Elf(SHT_PREINIT_ARRAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn libraries_are_known_by_their_names() {
        for (name, of) in [
            ("libasan.so.8", Some("AddressSanitizer")),
            ("libtsan.so.2", Some("ThreadSanitizer")),
            ("libhwasan.so.0", Some("HWAddressSanitizer")),
            ("libclang_rt.asan-x86_64.so", Some("AddressSanitizer")),
            ("libclang_rt.tsan.so", Some("ThreadSanitizer")),
            ("libclang_rt.ubsan_standalone-x86_64.so", None),
            ("libubsan.so.1", None),
            ("liblsan.so.0", None),
            ("libasanyone.so", None),
            ("libc.so.6", None),
            ("", None),
        ] {
            assert_eq!(of_library(name), of, "{name}");
        }
    }

    #[test]
    fn programs_of_each_compiler_are_recognised_and_their_likes_are_not() {
        let folder = std::env::temp_dir().join(format!("homenode-sanitized-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join("a.c"),
            "#include <stdlib.h>\nint main(void){free(malloc(9));return 0;}\n",
        )
        .unwrap();
        let mut built = 0;
        for (compiler, options, strip, of) in [
            ("gcc", "-fsanitize=address", false, Some("AddressSanitizer")),
            ("gcc", "-fsanitize=address -static-libasan", false, Some("AddressSanitizer")),
            ("gcc", "-fsanitize=address -static-libasan", true, Some("AddressSanitizer")),
            ("gcc", "-fsanitize=thread", false, Some("ThreadSanitizer")),
            ("gcc", "-fsanitize=thread -static-libtsan", true, Some("ThreadSanitizer")),
            ("gcc", "-fsanitize=undefined", false, None),
            ("gcc", "-fsanitize=leak", false, None),
            ("gcc", "-O1", true, None),
            ("clang", "-fsanitize=address", false, Some("AddressSanitizer")),
            ("clang", "-fsanitize=address", true, Some("AddressSanitizer")),
            ("clang", "-fsanitize=memory", false, Some("MemorySanitizer")),
            ("clang", "-fsanitize=thread", true, Some("ThreadSanitizer")),
        ] {
            let mut command = Command::new(compiler);
            command.current_dir(&folder).args(options.split(' ')).args(["a.c", "-o", "a"]);
            if !command.output().is_ok_and(|o| o.status.success()) {
                println!("skipped: {compiler} {options} builds nothing here");
                continue;
            }
            let program = folder.join("a");
            if strip {
                assert!(Command::new("strip").arg(&program).status().unwrap().success());
            }
            assert_eq!(sanitizer(&program), of, "{compiler} {options} {strip}");
            built += 1;
        }
        let _ = std::fs::remove_dir_all(&folder);
        assert!(built > 0 || Command::new("gcc").arg("--version").output().is_err());
        assert_eq!(sanitizer(Path::new("/nowhere/at/all")), None);
        assert_eq!(sanitizer(Path::new("/etc/passwd")), None);
    }
}
