//! Whose code a file or a function is, and names as the programmer wrote them.

use addr2line::gimli;

/// Folders of libraries that are not the program's own.
const SYSTEM: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];
/// Folders of headers that are not the program's own.
const SYSTEM_SOURCES: [&str; 2] = ["/usr/include/", "/usr/lib/"];
/// Whether a module is the program's own rather than the system's or homenode's.
pub(crate) fn own(path: &str) -> bool {
    let file = file_name(path);
    path.starts_with('/') && !SYSTEM.iter().any(|s| path.starts_with(s)) && !file.starts_with("libhomenode")
}

/// Whether a module is the Python interpreter. Its C variables say nothing about a Python program's
/// arrays.
pub(crate) fn python(path: &str) -> bool {
    let file = file_name(path);
    file.starts_with("python") || file.starts_with("libpython")
}

/// Whether a source file is the system's: code from there stands for the line that called it.
pub(crate) fn foreign(source: &str) -> bool {
    // clang writes /usr/bin/../lib/gcc/…/include/c++/12/vector.
    let plain = if source.contains("/../") { &without_dots(source) } else { source };
    SYSTEM_SOURCES.iter().any(|s| plain.starts_with(s))
}

/// A path without `..`, by its text alone.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        if part != ".." {
            parts.push(part);
        } else if parts.len() > 1 {
            parts.pop();
        }
    }
    parts.join("/")
}

/// A path's last part.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A linker's name as the programmer wrote it.
pub(crate) fn readable(name: &str) -> String {
    // gfortran: __module_MOD_variable
    if let Some((module, variable)) = name.strip_prefix("__").and_then(|n| n.split_once("_MOD_")) {
        return format!("{module}::{variable}");
    }
    addr2line::demangle(name, gimli::DW_LANG_C_plus_plus).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_modules_are_told_from_the_systems() {
        assert!(own("/home/me/app") && own("/opt/lib/libmine.so"));
        for other in
            ["/usr/lib/libc.so.6", "/lib/x86_64/libgomp.so.1", "linux-vdso.so.1", "/x/libhomenode_trace.so"]
        {
            assert!(!own(other), "{other}");
        }
        assert!(foreign("/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/vector"));
        assert!(!foreign("/home/me/../you/usr/include/x.h") && !foreign("x.c"));
        assert!(python("/usr/bin/python3.11") && !python("/home/me/python/app"));
    }

    #[test]
    fn names_read_as_written() {
        assert_eq!(readable("__grids_MOD_u"), "grids::u");
        assert_eq!(readable("_ZN4grid5tableE"), "grid::table");
        assert_eq!(readable("table"), "table");
        assert_eq!(readable("_Znot a name"), "_Znot a name");
    }
}
