//! `homenode` as a person or a script meets it.

use std::fs;
use std::process::{Command, Output, Stdio};

fn homenode(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_homenode")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn help_and_version_go_to_stdout_and_are_no_errors() {
    for option in ["--help", "-h", "--version"] {
        let out = homenode(&[option]);
        assert_eq!(out.status.code(), Some(0), "{option}");
        assert!(text(&out.stdout).contains("homenode"), "{option}");
        assert!(out.stderr.is_empty(), "{option}");
    }
}

#[test]
fn a_wrong_word_is_status_2_and_the_nearest_is_named() {
    let out = homenode(&["complitions", "bash"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(out.stdout.is_empty());
    assert!(text(&out.stderr).contains("completions"), "{}", text(&out.stderr));
}

#[test]
fn no_word_at_all_is_usage() {
    let out = homenode(&[]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("Usage: homenode"));
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let out = homenode(&["completions", shell]);
        assert_eq!(out.status.code(), Some(0), "{shell}");
        assert!(text(&out.stdout).contains("completions"), "{shell}");
    }
}

#[test]
fn man_writes_a_page_for_each_command() {
    let page = homenode(&["man"]);
    assert_eq!(page.status.code(), Some(0));
    assert!(text(&page.stdout).contains(".TH homenode 1"));

    let dir = std::env::temp_dir().join(format!("homenode-man-{}", std::process::id()));
    let out = homenode(&["man", dir.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    for page in ["homenode.1", "homenode-man.1", "homenode-completions.1"] {
        assert!(fs::metadata(dir.join(page)).is_ok_and(|m| m.len() > 0), "{page}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_page_that_cannot_be_written_is_explained() {
    let out = homenode(&["man", "/dev/null/x"]);
    assert_eq!(out.status.code(), Some(125));
    let error = text(&out.stderr);
    assert!(
        error.starts_with("homenode: cannot write the manual pages to /dev/null/x\n  tried: "),
        "{error}"
    );
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_homenode"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), out.stderr.len()), (Some(0), 0));
}
