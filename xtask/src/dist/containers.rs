//! The container images, without a container engine: the steps of their definitions, in clean
//! roots.
//!
//! hadolint and spython from PyPI read the definitions first. A root of Debian's base system takes
//! the place of the image `debian:12-slim`; chroot takes the place of the engine. Filters of system
//! calls and capabilities are no part of a definition, so `homenode doctor` is asked what it finds.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::base::{CommandResult, must, out, program, read, text_of};
use super::roots::{impossible, inside, place, with_network};
use super::{bare, recipes};
use crate::testing;

/// The image whose place a root of Debian 12 takes.
const IMAGE: &str = "debian:12-slim";
/// The numbers of the user whom the Containerfile makes.
const USER: &str = "1000:1000";

/// Both definitions.
pub fn all(folder: &Path, words: &[&str], answer: &str) -> CommandResult {
    if let Some(why) = impossible() {
        testing::skipped("dist", why);
        return Ok(());
    }
    let base = match bare::base(folder) {
        Ok(root) => root,
        Err(why) => {
            testing::skipped("dist", &format!("no base system for containers: {why}"));
            return Ok(());
        }
    };
    let (containerfile, definition) =
        (out().join("recipes/Containerfile"), out().join("recipes/homenode.def"));
    match recipes::python() {
        Ok(python) => {
            must(recipes::tool(&python, "hadolint").arg(&containerfile))?;
            // The script of that name has the path of a folder that was renamed.
            let spython = "from spython.client import main; main()";
            read(
                recipes::tool(&python, "python")
                    .args(["-c", spython, "recipe", "--parser", "singularity"])
                    .arg(&definition),
            )?;
        }
        Err(why) => testing::skipped("dist", &why),
    }
    let image = steps(&text_of(&containerfile)?)?;
    try_one("Containerfile", folder, &base, &image, words, answer)?;
    let image = sections(&text_of(&definition)?)?;
    try_one("homenode.def", folder, &base, &image, words, answer)
}

/// What a definition says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Image {
    from: String,
    /// Files of `target/dist`, each with its path in the image.
    copied: Vec<(String, String)>,
    /// Commands for a shell, in order.
    run: Vec<String>,
    /// The start of the command that the image runs.
    entry: Vec<String>,
    /// Commands that must succeed in the image.
    tests: Vec<String>,
}

/// A Containerfile's instructions; those that only name a user or a folder are not kept.
fn steps(text: &str) -> Result<Image, String> {
    let mut image = Image::default();
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with('#')).collect();
    for line in lines.join("\n").replace("\\\n", " ").lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (what, rest) = line.split_once(' ').ok_or_else(|| format!("no instruction: {line}"))?;
        match what {
            "FROM" => image.from = rest.to_owned(),
            "COPY" => image.copied.push(pair(rest)?),
            "RUN" => image.run.push(rest.to_owned()),
            "ENTRYPOINT" => {
                image.entry = serde_json::from_str(rest).map_err(|e| format!("{line}: {e}"))?;
            }
            "USER" | "WORKDIR" | "CMD" => {}
            _ => return Err(format!("an instruction that this check does not carry out: {line}")),
        }
    }
    Ok(image)
}

/// An Apptainer definition's sections.
fn sections(text: &str) -> Result<Image, String> {
    let mut image = Image::default();
    let mut parts = text.split("\n%");
    let header = parts.next().unwrap_or_default();
    image.from = header.lines().find_map(|l| l.strip_prefix("From: ")).unwrap_or_default().to_owned();
    for part in parts {
        let (name, body) = part.split_once('\n').ok_or_else(|| format!("an empty section: {part}"))?;
        match name.trim() {
            "files" => {
                for line in body.lines().filter(|l| !l.trim().is_empty()) {
                    image.copied.push(pair(line)?);
                }
            }
            // Apptainer ends the build at the first command that fails.
            "post" => image.run.push(format!("set -e\n{body}")),
            "test" => image.tests.push(format!("set -e\n{body}")),
            "runscript" => {
                image.entry = vec!["/bin/sh".into(), "-c".into(), body.to_owned(), "runscript".into()];
            }
            "labels" | "help" => {}
            _ => return Err(format!("a section that this check does not carry out: %{name}")),
        }
    }
    Ok(image)
}

fn pair(words: &str) -> Result<(String, String), String> {
    match words.split_whitespace().collect::<Vec<_>>()[..] {
        [from, to] => Ok((from.to_owned(), to.to_owned())),
        _ => Err(format!("one file and one path are copied, not: {words}")),
    }
}

/// Makes the image, and asks homenode in it as its user.
fn try_one(
    name: &str,
    folder: &Path,
    base: &Path,
    image: &Image,
    words: &[&str],
    answer: &str,
) -> CommandResult {
    if image.from != IMAGE {
        return Err(format!("{name} starts from {}, and a root stands for {IMAGE}", image.from));
    }
    let root = place(folder).join("image");
    if root.exists() {
        remove(&root)?;
    }
    must(program("cp").arg("--archive").arg(base).arg(&root))?;
    // A container engine gives its own.
    must(program("cp").args(["--dereference", "/etc/resolv.conf"]).arg(root.join("etc/resolv.conf")))?;
    for (from, to) in &image.copied {
        let to = root.join(to.trim_start_matches('/'));
        fs::copy(out().join(from), &to).map_err(|e| format!("{from}: {e}"))?;
    }
    for step in &image.run {
        quiet(with_network(&root).env("DEBIAN_FRONTEND", "noninteractive").args(["/bin/sh", "-c", step]))?;
    }
    must(program("mkdir").arg("--parents").arg(root.join("home/user")))?;
    must(program("chown").arg(USER).arg(root.join("home/user")))?;
    for test in &image.tests {
        quiet(inside(&root, Some(USER)).args(["/bin/sh", "-c", test]))?;
    }
    // The user's home folder, as the engines set it.
    let mut asked = inside(&root, Some(USER));
    let told = read(asked.arg("HOME=/home/user").args(&image.entry).args(words))?;
    if !told.contains(answer) {
        return Err(format!("{name}: the answer lacks '{answer}': {told}"));
    }
    let doctor = inside(&root, Some(USER)).args(&image.entry).arg("doctor").output();
    let doctor = String::from_utf8_lossy(&doctor.map_err(|e| e.to_string())?.stdout).into_owned();
    if !doctor.contains("what to change") {
        return Err(format!("{name}: 'homenode doctor' says nothing of what to change: {doctor}"));
    }
    println!("{name}: its steps make an image whose user explains a kernel");
    remove(&root)
}

fn remove(root: &Path) -> CommandResult {
    must(program("rm").args(["--recursive", "--one-file-system"]).arg(root))
}

/// Runs a step whose output is shown only when it fails.
fn quiet(command: &mut Command) -> CommandResult {
    let out = command.output().map_err(|e| e.to_string())?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    let last: Vec<&str> = said.lines().rev().take(10).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("a step failed ({}): {}", out.status, last.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packaged(name: &str) -> String {
        text_of(&crate::root().join("packaging").join(name)).unwrap()
    }

    #[test]
    fn both_definitions_are_read_whole() {
        let (file, def) = (packaged("Containerfile"), packaged("homenode.def"));
        let (file, def) = (steps(&file).unwrap(), sections(&def).unwrap());
        for image in [&file, &def] {
            assert_eq!(image.from, IMAGE);
            assert_eq!(image.copied[0].1, "/tmp/homenode.deb");
            assert_eq!(image.run.len(), 1);
            assert!(image.run[0].contains("apt-get install") && !image.run[0].contains('\\'));
        }
        assert_eq!(file.entry, ["homenode"]);
        assert!(def.entry[2].contains("exec homenode \"$@\"") && def.tests.len() == 1);
    }

    #[test]
    fn what_is_not_carried_out_is_refused() {
        assert!(steps("FROM x\nADD a b\n").unwrap_err().contains("ADD a b"));
        assert!(sections("From: x\n%setup\n  touch a\n").unwrap_err().contains("%setup"));
    }
}
