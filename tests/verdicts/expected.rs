//! What `homenode run` must answer of a program of this folder, from the program's first line, and
//! whether a report does. `cargo xtask verdicts` reads it.
//!
//! ```text
//! run: pays array=grid,next rounds=270 lab=67
//! ```
//!
//! | word | meaning |
//! |---|---|
//! | first | the verdict with bound threads, as `processes[].worked` of `run --json` has it |
//! | `unbound` | the verdict of short runs with unbound threads; without it, `threads-not-bound` |
//! | `array` | names of which one must be the array of the first advice; without it, there is no advice |
//! | `rounds` | the program's argument on pretended nodes: some seconds of CPU time |
//! | `lab` | the program's argument in the lab |
//! | `lab-budget` | `run --budget` in the lab; without it, the default |

use std::path::{Path, PathBuf};

use serde_json::Value;

/// What a program's first line says.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The program's name: its file's without the ending.
    pub name: String,
    /// Its source.
    pub source: PathBuf,
    /// The verdict with bound threads.
    pub bound: String,
    /// The verdict with unbound threads.
    pub unbound: String,
    /// Names of which one is the array of the first advice. Empty: there is no advice.
    pub arrays: Vec<String>,
    /// Rounds on pretended nodes.
    pub rounds: u32,
    /// Rounds in the lab.
    pub lab: u32,
    /// What homenode may spend in the lab; `None`: the default.
    pub lab_budget: Option<String>,
}

impl Expected {
    /// Of a source.
    fn of(source: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
        let head = text.lines().next().unwrap_or_default();
        let wrong = |what: &str| format!("{}: its first line has {what}: {head}", source.display());
        let (_, words) = head.split_once("run: ").ok_or_else(|| wrong("no 'run: '"))?;
        let mut words = words.split_whitespace();
        let bound = words.next().ok_or_else(|| wrong("no verdict"))?.to_owned();
        let mut all = Self {
            name: source.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            source: source.to_owned(),
            bound,
            unbound: "threads-not-bound".to_owned(),
            arrays: Vec::new(),
            rounds: 0,
            lab: 0,
            lab_budget: None,
        };
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| wrong("a word without '='"))?;
            let number = || value.parse().map_err(|_| wrong("a wrong number"));
            match key {
                "unbound" => value.clone_into(&mut all.unbound),
                "array" => all.arrays = value.split(',').map(str::to_owned).collect(),
                "rounds" => all.rounds = number()?,
                "lab" => all.lab = number()?,
                "lab-budget" => all.lab_budget = Some(value.to_owned()),
                _ => return Err(wrong("an unknown key")),
            }
        }
        if all.rounds == 0 || all.lab == 0 { Err(wrong("no rounds= or no lab=")) } else { Ok(all) }
    }

    /// Of all programs, by name.
    pub fn all(folder: &Path) -> Result<Vec<Self>, String> {
        let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut sources: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        sources.retain(|path| compiler(path).is_some());
        sources.sort();
        sources.iter().map(|source| Self::of(source)).collect()
    }

    /// What a report of `run --json` says, and whether that is right.
    pub fn judges(&self, report: &Value, bound: bool) -> (String, bool) {
        let process = &report["processes"][0];
        let worked = process["worked"].as_str().unwrap_or("no verdict");
        let advice = process["advice"][0].as_str().and_then(|a| a.split(", ").next());
        let array = advice.map(|a| a.trim_start_matches("array ").to_owned());
        let (right, arrays) =
            if bound { (&self.bound, self.arrays.as_slice()) } else { (&self.unbound, [].as_slice()) };
        let is_named = match &array {
            Some(array) => arrays.contains(array),
            None => arrays.is_empty(),
        };
        let says = array.map_or_else(|| worked.to_owned(), |array| format!("{worked}, {array}"));
        (says, worked == right && is_named)
    }
}

/// The compiler of a source. `None`: the file is not a program that is compiled.
pub fn compiler(source: &Path) -> Option<&'static str> {
    match source.extension()?.to_str()? {
        "c" => Some("gcc"),
        "cpp" => Some("g++"),
        "F90" => Some("gfortran"),
        _ => None,
    }
}

/// The options of every compiler: optimised, with names, as a user's program has them.
pub const OPTIONS: [&str; 6] = ["-O2", "-g", "-fopenmp", "-pthread", "-w", "-o"];
