//! `docs/cli.md` is the help of every command, and pages of `docs` call commands that exist.
//!
//! `HOMENODE_BLESS=1 cargo test -p homenode-cli --lib reference` writes `docs/cli.md` anew.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::args::compare::joined;
use crate::cmd::{command_line, command_line_in};

const HEAD: &str = "\
# Every command and option

Each section is what `homenode COMMAND --help` prints. A test compares this page with the command line.
";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The help of a command and of those below it.
fn section(out: &mut String, path: &str, command: &clap::Command) {
    let mut command = command.clone().bin_name(path);
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(out, "\n## {path}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    for below in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        section(out, &format!("{path} {}", below.get_name()), below);
    }
}

#[test]
fn the_reference_is_the_help_of_the_commands() {
    let mut made = HEAD.to_owned();
    section(&mut made, "homenode", &command_line_in(crate::help::USUAL));
    let path = docs().join("cli.md");
    if std::env::var_os("HOMENODE_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap();
    let differ = written.lines().zip(made.lines()).position(|(a, b)| a != b);
    assert!(written == made, "docs/cli.md differs from line {differ:?} on: write it with HOMENODE_BLESS=1");
}

/// The words of a line of shell, up to the end of its first command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (' ', None) => words.extend(word.take()),
            ('#', None) if word.is_none() => break,
            ('|' | ';' | '&' | '>' | '<', None) => {
                // The number before a redirection belongs to it.
                word = word.filter(|w| c != '>' || !w.bytes().all(|b| b.is_ascii_digit()));
                break;
            }
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Calls of `homenode` in the shell blocks of a page, with the number of the line.
fn calls(text: &str) -> Vec<(usize, Vec<String>)> {
    let (mut shell, mut calls, mut open) = (false, Vec::new(), String::new());
    for (i, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            shell = !shell && matches!(language, "sh" | "bash" | "console");
            continue;
        }
        if !shell {
            continue;
        }
        open.push_str(line.trim().trim_start_matches("$ "));
        if open.ends_with('\\') {
            open.pop();
            continue;
        }
        let mut words = words(&std::mem::take(&mut open));
        // Variables of the environment come before the command.
        let first = words.iter().position(|w| !w.contains('=')).unwrap_or(words.len());
        words.drain(..first);
        if words.first().is_some_and(|w| w == "homenode") {
            calls.push((i + 1, words));
        }
    }
    calls
}

#[test]
fn pages_call_commands_as_they_are() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(docs())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|x| x == "md"))
        .collect();
    pages.push(docs().join("../README.md"));
    pages.sort();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in &pages {
        for (line, words) in calls(&std::fs::read_to_string(page).unwrap()) {
            seen += 1;
            // What is left out cannot be parsed.
            if words.iter().any(|w| w.contains('…') || w.starts_with('[')) {
                continue;
            }
            let words_of_os: Vec<OsString> = words.iter().map(OsString::from).collect();
            if let Err(error) = command_line().try_get_matches_from(joined(&words_of_os))
                && error.use_stderr()
            {
                let name = page.file_name().unwrap_or_default().to_string_lossy();
                let why = error.to_string();
                wrong.push(format!(
                    "{name}:{line}: {}: {}",
                    words.join(" "),
                    why.lines().next().unwrap_or("")
                ));
            }
        }
    }
    assert!(seen > 50, "{seen} calls found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_call_ends_where_the_shell_ends_it() {
    let text = "```sh\nA=1 homenode show 'a b' \\\n  --map 2>err   # why\nhomenode man | man -l -\nls\n```\n```text\nhomenode x\n```\n";
    let found = calls(text);
    let lines: Vec<String> =
        found.iter().map(|(line, words)| format!("{line} {}", words.join("|"))).collect();
    assert_eq!(lines, ["3 homenode|show|a b|--map", "4 homenode|man"]);
}
