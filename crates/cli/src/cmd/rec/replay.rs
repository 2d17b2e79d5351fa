//! `homenode rec replay-policy`: whether a policy decides on this machine what it decided when its
//! journal was written.

use std::io::Read as _;
use std::path::Path;

use homenode_checks::journal::{ask, check};
use homenode_error::{Context, Error, FailureKind, Result};
use homenode_log::regular;
use homenode_policy::journal::JournalError;

use crate::exit::Exit;
use crate::output::OutputArgs;

/// Journals from here on are refused: they are read as a whole.
const MOST: u64 = 4 << 30;

pub(super) fn run(path: &Path, policy: Option<&str>, limit: usize, output: &OutputArgs) -> Result<Exit> {
    let bytes = read(path)?;
    match policy {
        None => {
            let (table, same) = check(&bytes).map_err(|e| refused(path, e))?;
            let exit = output.print(&table)?;
            Ok(if same { exit } else { Exit::ConditionHeld })
        }
        Some(spec) => output.print(&ask(&bytes, spec, limit).map_err(|e| refused(path, e))?),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read the journal {}", path.display());
    let mut file = regular::open(path).context(cannot).map_err(|e| e.kind(FailureKind::Usage))?;
    let length = file.metadata().context(cannot)?.len();
    if length > MOST {
        return Err(Error::usage(cannot())
            .tried(format!("it is of {length} bytes, more than {MOST}"))
            .hint("name a file that 'homenode run --journal' wrote"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MOST).read_to_end(&mut bytes).context(cannot)?;
    Ok(bytes)
}

fn refused(path: &Path, why: JournalError) -> Error {
    Error::usage(format!("cannot replay {}", path.display()))
        .tried(why)
        .hint("name a file that 'homenode run --journal' or 'compare --journal' wrote")
}
