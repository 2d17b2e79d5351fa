//! Recorded schedules on their way into the folder of a run, and out of it.

use std::fs::{self, File};
use std::path::Path;

use homenode_error::{Context, Error, Result};
use homenode_wire::schedule::{FROM, Schedules};

fn read(path: &Path) -> Result<Schedules> {
    let failed = || format!("cannot read the schedules {}", path.display());
    let mut file = File::open(path).context(failed)?;
    homenode_wire::read(&mut file).map_err(|e| {
        Error::failed(failed())
            .tried(e.to_string())
            .hint("record them with homenode run --schedule record --schedule-to FILE -- APP")
    })
}

fn write(path: &Path, schedules: &Schedules) -> Result<()> {
    let failed = || format!("cannot write the schedules {}", path.display());
    let bytes = homenode_wire::encode(schedules).map_err(|e| Error::failed(failed()).tried(e.to_string()))?;
    fs::write(path, bytes).context(failed)
}

/// Lays recorded schedules into the folder of a run.
///
/// # Errors
/// The file cannot be read, or is none of recorded schedules.
pub fn lay(from: &Path, folder: &Path) -> Result<()> {
    write(&folder.join(FROM), &read(from)?)
}

/// Takes the schedules that a run has recorded: those of the process with most. Returns how many.
///
/// # Errors
/// The file cannot be written.
pub fn take(folder: &Path, to: &Path) -> Result<usize> {
    let prefix = "schedules.";
    let is_of_process = |name: &str| name.strip_prefix(prefix).is_some_and(|pid| pid.parse::<u32>().is_ok());
    let mut found: Vec<Schedules> = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_of_process) {
            found.extend(read(&entry.path()).ok());
        }
    }
    let most = found.into_iter().max_by_key(|s| s.loops.len()).unwrap_or_default();
    write(to, &most).map(|()| most.loops.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_wire::schedule::Loop;

    #[test]
    fn the_process_with_most_loops_is_kept_and_laid_into_the_next_run() {
        let folder = std::env::temp_dir().join(format!("homenode-schedules-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let with = |n: usize| {
            let one = Loop { code: 0, offset: 1, first: 0, step: 1, bound: 9, chunk: 1, threads: Vec::new() };
            Schedules { codes: Vec::new(), loops: vec![one; n] }
        };
        for (pid, loops) in [(7, 1), (8, 3)] {
            write(&folder.join(Schedules::file_name(pid)), &with(loops)).unwrap();
        }
        let file = folder.join("mine.sched");
        assert_eq!(take(&folder, &file).unwrap(), 3);
        lay(&file, &folder).unwrap();
        assert_eq!(read(&folder.join(FROM)).unwrap(), with(3));
        fs::write(&file, "nonsense, and long enough for a header").unwrap();
        let why = lay(&file, &folder).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(why.contains("cannot read the schedules") && why.contains("something else"), "{why}");
    }
}
