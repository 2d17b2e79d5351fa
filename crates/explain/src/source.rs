//! Whether the source that an explanation names is still the one that the program was built from.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::explanation::Explanation;
use crate::place::Place;
use crate::warning::{Warning, WarningKind};

/// Most bytes of a source file whose lines are counted.
const MOST: u64 = 16 << 20;

/// A warning where a file that the explanation names is newer than the program, or has fewer lines
/// than it names. Only for a program of the person's own: of a recording, no path is opened.
pub fn moved(explanation: &Explanation, program: &Path) -> Option<Warning> {
    let built = fs::metadata(program).and_then(|m| m.modified()).ok()?;
    let mut places: BTreeSet<&Place> = BTreeSet::new();
    for finding in &explanation.findings {
        places.insert(&finding.touched);
        places.extend(finding.variables.iter().map(|v| &v.allocated));
        places.extend(finding.used.iter().map(|u| &u.place));
    }
    let text = |place: &Place| -> Option<String> {
        let (file, line) = (place.file.as_deref()?, place.line?);
        let meta = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
        let short = place.short()?;
        if meta.modified().is_ok_and(|changed| changed > built) {
            return Some(format!(
                "{short}: the file was changed after the program was built: lines may have moved; build again"
            ));
        }
        if meta.len() > MOST {
            return None;
        }
        let lines = fs::read(file).ok()?.split(|b| *b == b'\n').count();
        let lacks = (line as usize) > lines;
        lacks.then(|| format!("{short}: the file has {lines} lines: the program was built from another one"))
    };
    // Python's files are not built.
    let built = |p: &&Place| !p.file.as_deref().is_some_and(|f| f.ends_with(".py"));
    let text = places.into_iter().filter(built).find_map(text)?;
    Some(Warning::new(WarningKind::SourceMoved, text))
}
