//! Source text: what an allocation on a line is assigned to.
//!
//! Only what the text says without doubt is taken: `name = allocation` as a whole,
//! `allocate(name(…))`, a container's definition or a call of its method.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::rc::Rc;

pub(crate) mod c;
pub(crate) mod fortran;
mod target;

pub(crate) use target::Target;

/// Longest source file that is read, in bytes.
const LONGEST: u64 = 4 << 20;
/// Most bytes of source files that are kept.
const KEPT: u64 = 64 << 20;
/// Linux: opening a FIFO returns at once.
const O_NONBLOCK: i32 = 0o4000;

/// Source files that were read.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: BTreeMap<String, Option<Rc<Source>>>,
    bytes: u64,
}

/// A source file.
#[derive(Debug)]
pub(crate) enum Source {
    C(Vec<c::Token>),
    Fortran(String),
}

impl Sources {
    /// A file; `None` if it cannot be read, is no regular file, or is too long.
    pub(crate) fn get(&mut self, path: &str, fortran: bool) -> Option<Rc<Source>> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let text = (self.bytes < KEPT).then(|| read(Path::new(path))).flatten();
        self.bytes += text.as_ref().map_or(0, |t| t.len() as u64);
        let source = text
            .map(|text| Rc::new(if fortran { Source::Fortran(text) } else { Source::C(c::tokens(&text)) }));
        self.files.insert(path.to_owned(), source.clone());
        source
    }
}

fn read(path: &Path) -> Option<String> {
    let fits = |m: &fs::Metadata| m.is_file() && m.len() <= LONGEST;
    fs::metadata(path).ok().filter(fits)?;
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).ok()?;
    file.metadata().ok().filter(fits)?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
