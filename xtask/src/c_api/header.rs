//! The C header.

use std::fmt::Write as _;

use super::api::{CApi, Function, Item};
use super::comment::{WIDTH, filled};

const HEAD: &str = "\
/* homenode: tell the run-time system what it cannot see, and place threads and memory.
 *
 * A program may call every function on any machine, with one node or many, with or without homenode
 * watching, from any thread. Nodes and CPUs have the system's numbers. Each function returns a
 * code. hn_message is the code's text, and hn_last_error describes the last failure in this thread.
 * No function prints, exits or raises a signal.
 *
 * Made by 'cargo xtask c-api': do not edit.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef HOMENODE_H
#define HOMENODE_H

#include <stddef.h>
#include <stdint.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __cplusplus
extern \"C\" {
#endif
";

const END_OF_C: &str = "
#ifdef __cplusplus
}
#endif
";

/// Functions that do something without the library, too.
const ALONE: &str = include_str!("alone.h");
/// Functions for the calling thread.
const INLINE: &str = include_str!("inline.h");
/// Classes for C++.
const CPP: &str = include_str!("range.hpp");

/// All of it.
pub fn text(api: &CApi) -> Result<String, String> {
    let mut out = HEAD.to_owned();
    out += "\n/* Return codes, and what stands for a node where there is none. */\n";
    let width = api.codes.iter().map(|c| c.name.len() + digits(c.value)).max().unwrap_or(0);
    for c in &api.codes {
        let gap = width - c.name.len() - digits(c.value);
        let _ = writeln!(out, "#define {} {}{:gap$} /* {} */", c.name, value(c.value), "", plain(&c.about));
    }
    for s in &api.structs {
        out += &comment(&s.about);
        let _ = writeln!(out, "typedef struct {} {{", s.name);
        for (name, rust, about) in &s.fields {
            let _ = writeln!(out, "    {}; /* {} */", declare(rust, name)?, plain(about));
        }
        let _ = writeln!(out, "}} {};", s.name);
    }
    for item in &api.items {
        match item {
            Item::Heading(h) => {
                let _ = write!(out, "\n/* ---- {h} ---- */\n");
            }
            Item::Function(f) => out += &function(f)?,
        }
    }
    out += &header_only(api)?;
    Ok(out + INLINE + END_OF_C + CPP + "#endif\n")
}

/// The functions as a C file, for Fortran programs without the library.
pub fn alone(api: &CApi) -> Result<String, String> {
    let mut out = ALONE_HEAD.to_owned();
    for f in functions(api) {
        let types: Vec<String> =
            f.arguments.iter().map(|(name, rust)| declare(rust, name)).collect::<Result<_, _>>()?;
        let types = if types.is_empty() { "void".to_owned() } else { types.join(", ") };
        let names: Vec<&str> = f.arguments.iter().map(|(name, _)| name.as_str()).collect();
        let returns = if f.returns == "i32" { "int ".into() } else { declare(&f.returns, "")? };
        let _ = write!(
            out,
            "\n#undef {name}\n__attribute__((weak)) {returns}{name}({types}) {{\n    return {name}_found({names});\n}}\n",
            name = f.name,
            names = names.join(", "),
        );
    }
    Ok(out)
}

const ALONE_HEAD: &str = "\
/* The functions of homenode.h without the library: compile this file with a Fortran program that is
 * not linked with homenode. Each function calls the library that 'homenode run' loads, if there is
 * one. Do not link with -rdynamic: the functions would find themselves.
 *
 * Made by 'cargo xtask c-api': do not edit.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define HN_HEADER_ONLY
#include <homenode.h>
";

fn functions(api: &CApi) -> impl Iterator<Item = &Function> {
    api.items.iter().filter_map(|i| if let Item::Function(f) = i { Some(f) } else { None })
}

const ONLY: &str = "
/* ---- Without the library ---- */

/* If HN_HEADER_ONLY is defined before the #include, nothing has to be linked. Each function calls
 * the library that homenode run loads into the program. Without that library it places nothing, and
 * functions that return a code answer HN_IDLE; those that divide an array's indices among threads
 * still do. */
#ifdef HN_HEADER_ONLY
#include <dlfcn.h>
";

/// Functions that look for the library when they are called first.
fn header_only(api: &CApi) -> Result<String, String> {
    let mut out = ONLY.to_owned() + ALONE;
    for f in functions(api) {
        let types: Vec<String> =
            f.arguments.iter().map(|(name, rust)| declare(rust, name)).collect::<Result<_, _>>()?;
        let types = if types.is_empty() { "void".to_owned() } else { types.join(", ") };
        let names: Vec<&str> = f.arguments.iter().map(|(name, _)| name.as_str()).collect();
        let (returns, nothing) = match f.returns.as_str() {
            "i32" => ("int ".to_owned(), "HN_IDLE"),
            text => (declare(text, "")?, "\"homenode is not there\""),
        };
        let has_own = ALONE.contains(&format!("int {}_alone(", f.name));
        let nothing =
            if has_own { format!("{}_alone({})", f.name, names.join(", ")) } else { nothing.to_owned() };
        let names_unused = if has_own { Vec::new() } else { names.clone() };
        let unused: String = names_unused.iter().map(|name| format!("(void)({name}), ")).collect();
        let _ = write!(
            out,
            "\nstatic inline {returns}{name}_found({types}) {{\n    static {returns}(*f)({types});\n    static char \
             asked;\n    if (!asked) {{\n        *(void **)(&f) = dlsym((void *)0, \"{name}\");\n        asked = 1;\n    }}\n    return f ? f({arguments}) : ({unused}{nothing});\n}}\n#define \
             {name} {name}_found\n",
            name = f.name,
            arguments = names.join(", "),
        );
    }
    Ok(out + "#endif\n")
}

fn digits(n: i32) -> usize {
    value(n).len()
}

fn value(n: i32) -> String {
    if n < 0 { format!("({n})") } else { n.to_string() }
}

/// Without the quotes that mark code in Rust's comments.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn comment(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|l| plain(l)).collect();
    // Both marks, or the first one only.
    let ends = lines.last().is_none_or(|l| l.chars().count() + 6 <= WIDTH);
    let lines = filled(&lines, WIDTH - if ends { 3 } else { 6 });
    format!("\n/* {} */\n", lines.join("\n * ").replace("\n * \n", "\n *\n"))
}

fn function(f: &Function) -> Result<String, String> {
    let arguments: Vec<String> =
        f.arguments.iter().map(|(name, rust)| declare(rust, name)).collect::<Result<_, _>>()?;
    let arguments = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
    let returns = if f.returns == "i32" { "int ".into() } else { declare(&f.returns, "")? };
    Ok(format!("{}{returns}{}({arguments});\n", comment(&f.about), f.name))
}

/// `rust` as C declares `name` to be it.
fn declare(rust: &str, name: &str) -> Result<String, String> {
    if let Some((of, count)) = rust.strip_prefix('[').and_then(|r| r.strip_suffix(']')?.split_once("; ")) {
        return Ok(format!("{} {name}[{count}]", base(of)?));
    }
    if let Some(to) = rust.strip_prefix("*mut ") {
        return Ok(format!("{} *{name}", base(to)?));
    }
    if let Some(to) = rust.strip_prefix("*const ") {
        return Ok(format!("const {} *{name}", base(to)?));
    }
    Ok(format!("{} {name}", base(rust)?))
}

fn base(rust: &str) -> Result<String, String> {
    Ok(match rust {
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "c_void" => "void",
        "c_char" => "char",
        own if own.starts_with("hn_") => own,
        other => return Err(format!("xtask/src/c_api/header.rs: no C type for '{other}'")),
    }
    .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_c() {
        assert_eq!(declare("*const c_void", "address").unwrap(), "const void *address");
        assert_eq!(declare("*mut hn_node", "node").unwrap(), "hn_node *node");
        assert_eq!(declare("usize", "length").unwrap(), "size_t length");
        assert!(declare("f64", "x").is_err());
    }

    #[test]
    fn a_function_stands_below_its_comment() {
        let f = Function {
            name: "hn_f".into(),
            about: vec!["Does `it`.".into(), String::new(), "Well.".into()],
            arguments: vec![],
            returns: "*const c_char".into(),
        };
        assert_eq!(function(&f).unwrap(), "\n/* Does it.\n *\n * Well. */\nconst char *hn_f(void);\n");
    }
}
