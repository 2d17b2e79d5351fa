//! The Fortran module.

use std::fmt::Write as _;

use super::api::{CApi, Function, Item};
use super::comment::{WIDTH, filled};

const HEAD: &str = "\
! homenode: tell the run-time system what it cannot see, and place threads and memory. See
! homenode.h.
!
! Addresses are c_loc(array), lengths are in bytes. Arguments that may be null in C are optional
! here. hn_text turns a text of hn_message or hn_last_error into a string.
!
! Made by 'cargo xtask c-api': do not edit.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module homenode
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_double_complex, c_f_pointer, c_float, c_int, &
      c_int32_t, c_int64_t, c_loc, c_ptr, c_size_t
   implicit none
   private
";

/// Functions that the module has in Fortran's own form: dimensions from 1, ranges with both ends.
/// The C function has another name there.
const OWN: [&str; 3] = ["hn_distribute", "hn_redistribute", "hn_alloc_padded"];
/// Other functions of the module.
const MORE: [&str; 5] = ["hn_cyclic", "hn_range", "hn_next", "hn_bind_share", "hn_text"];
/// The functions that [`OWN`] and [`MORE`] name.
const DISTRIBUTE: &str = include_str!("distribute.f90");

const TAIL: &str = "   end interface

   interface hn_distribute
      procedure :: distribute_r4, distribute_r8, distribute_i4, distribute_i8, distribute_c8
   end interface
   interface hn_range
      procedure :: range_i4, range_i8
   end interface
   interface hn_next
      procedure :: next_i4, next_i8
   end interface

contains

   ! The characters of a text of hn_message or hn_last_error.
   function hn_text(text) result(string)
      type(c_ptr), intent(in) :: text
      character(len=:), allocatable :: string
      ! Longer than any text of homenode's.
      integer, parameter :: longest = 4096
      character(kind=c_char), pointer :: letters(:)
      integer :: i, n
      call c_f_pointer(text, letters, [longest])
      n = 0
      do while (n < longest)
         if (letters(n + 1) == achar(0)) exit
         n = n + 1
      end do
      allocate (character(len=n) :: string)
      do i = 1, n
         string(i:i) = letters(i)
      end do
   end function
";

/// All of it.
pub fn text(api: &CApi) -> Result<String, String> {
    let mut out = HEAD.to_owned();
    let names = api.codes.iter().map(|c| &c.name).chain(api.structs.iter().map(|s| &s.name));
    let functions = api.items.iter().filter_map(|i| match i {
        Item::Function(f) => Some(f),
        Item::Heading(_) => None,
    });
    for name in names.chain(functions.clone().map(|f| &f.name)) {
        let _ = writeln!(out, "   public :: {name}");
    }
    for name in MORE {
        let _ = writeln!(out, "   public :: {name}");
    }
    for c in &api.codes {
        let _ = write!(
            out,
            "\n   ! {}\n   integer(c_int), parameter :: {} = {}\n",
            plain(&c.about),
            c.name,
            c.value
        );
    }
    for s in &api.structs {
        out += "\n";
        comment(&mut out, "   ", &s.about);
        let _ = writeln!(out, "   type, bind(c) :: {}", s.name);
        for (name, rust, about) in &s.fields {
            let _ = writeln!(out, "      ! {}\n      {}", plain(about), field(rust, name)?);
        }
        out += "   end type\n";
    }
    out += "\n   interface\n";
    for f in functions {
        function(&mut out, f)?;
    }
    Ok(out + TAIL + DISTRIBUTE + "end module\n")
}

fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn comment(out: &mut String, indent: &str, lines: &[String]) {
    let lines: Vec<String> = lines.iter().map(|l| plain(l)).collect();
    for line in filled(&lines, WIDTH - indent.len() - 2) {
        out.push_str(format!("{indent}! {line}").trim_end());
        out.push('\n');
    }
}

fn function(out: &mut String, f: &Function) -> Result<(), String> {
    comment(out, "      ", &f.about);
    let names: Vec<&str> = f.arguments.iter().map(|(name, _)| name.as_str()).collect();
    let result = if f.returns == "i32" { "code" } else { "text" };
    // A dummy argument may have the name of the result.
    let result = if names.contains(&result) { "outcome" } else { result };
    let (name, c) = match OWN.contains(&f.name.as_str()) {
        true => (format!("{}_c", f.name), format!("bind(c, name='{}')", f.name)),
        false => (f.name.clone(), "bind(c)".to_owned()),
    };
    let head = format!("      function {name}({}) {c} result({result})", names.join(", "));
    // A line has at most 132 columns.
    out.push_str(&head.replace(") bind", ") &\n         bind"));
    out.push('\n');
    out.push_str("         import\n");
    for (i, (name, rust)) in f.arguments.iter().enumerate() {
        let many = f.arguments.get(i + 1).is_some_and(|(next, _)| next == "capacity");
        let _ = writeln!(out, "         {}", argument(name, rust, many)?);
    }
    let returns = if f.returns == "i32" { "integer(c_int)".into() } else { scalar(&f.returns)? };
    let _ = writeln!(out, "         {returns} :: {result}\n      end function");
    Ok(())
}

/// A field of a type.
fn field(rust: &str, name: &str) -> Result<String, String> {
    match rust.strip_prefix('[').and_then(|r| r.strip_suffix(']')?.split_once("; ")) {
        Some((of, count)) => Ok(format!("{} :: {name}({count})", scalar(of)?)),
        None => Ok(format!("{} :: {name}", scalar(rust)?)),
    }
}

/// An array, when its `capacity` follows.
fn argument(name: &str, rust: &str, many: bool) -> Result<String, String> {
    match rust {
        "*mut c_void" => return Ok(format!("type(c_ptr), value :: {name}")),
        // Read and written.
        "*mut hn_distribution" | "*mut u64" => {
            let to = rust.trim_start_matches("*mut ");
            return Ok(format!("{}, intent(inout) :: {name}", scalar(to)?));
        }
        "*const hn_distribution" => return Ok(format!("type(hn_distribution), intent(in) :: {name}")),
        "*const usize" | "*const i64" => {
            let to = rust.trim_start_matches("*const ");
            return Ok(format!("{}, intent(in) :: {name}(*)", scalar(to)?));
        }
        _ => {}
    }
    match rust.strip_prefix("*mut ") {
        Some(to) if many => Ok(format!("{}, intent(out), optional :: {name}(*)", scalar(to)?)),
        Some(to) => Ok(format!("{}, intent(out), optional :: {name}", scalar(to)?)),
        None => Ok(format!("{}, value :: {name}", scalar(rust)?)),
    }
}

fn scalar(rust: &str) -> Result<String, String> {
    Ok(match rust {
        // Fortran's integers have signs; no number here needs the last bit.
        "i32" | "u32" => "integer(c_int32_t)".into(),
        "i64" | "u64" => "integer(c_int64_t)".into(),
        "usize" => "integer(c_size_t)".into(),
        "*const c_void" | "*mut c_void" | "*const c_char" => "type(c_ptr)".into(),
        own if own.starts_with("hn_") => format!("type({own})"),
        other => return Err(format!("xtask/src/c_api/fortran.rs: no Fortran type for '{other}'")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_optional_answers_and_arrays_have_a_capacity() {
        let argument = |rust, many| argument("x", rust, many).unwrap();
        assert_eq!(argument("*mut i32", true), "integer(c_int32_t), intent(out), optional :: x(*)");
        assert_eq!(argument("*mut hn_node", false), "type(hn_node), intent(out), optional :: x");
        assert_eq!(argument("*const c_void", false), "type(c_ptr), value :: x");
        assert!(scalar("f64").is_err());
    }

    #[test]
    fn a_result_has_a_name_of_its_own() {
        let f = Function {
            name: "hn_f".into(),
            about: vec!["F.".into()],
            arguments: vec![("code".into(), "i32".into())],
            returns: "i32".into(),
        };
        let mut out = String::new();
        function(&mut out, &f).unwrap();
        assert!(out.contains("function hn_f(code) &\n         bind(c) result(outcome)"), "{out}");
    }
}
