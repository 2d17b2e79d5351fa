//! The recording's directory.
//!
//! | file | what |
//! |---|---|
//! | `meta.json` | [`Meta`]: what was recorded, how, and how it ended |
//! | `threads/NNNNN.hnlog` | a log a thread |
//! | `modules.txt` | which file's code and data lay where, written by the recorder |
//! | `python.txt` | lines of Python code that allocate, by number, written by the recorder |
//! | `symbols.json` | [`Symbols`]: names for addresses, resolved right after the run |
//! | `status` | why the recorder stopped early, if it did (room for it is taken before the run) |
//!
//! Paths in these files are text to be shown; none is ever opened.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use homenode_model::Bytes;
use homenode_model::json::Weights;
use serde::{Deserialize, Serialize};

use crate::LogError;
use crate::file::{LogReader, MARKS};
use crate::regular;
use crate::{Mark, VERSION, What};

/// Bytes reserved for `status`.
const STATUS: usize = 4096;
/// Most bytes of `meta.json` and `symbols.json` that are read.
const MAX_JSON: u64 = 64 << 20;
/// Memory that what a file beside the logs holds may take.
const MAX_HELD: Bytes = Bytes(192 << 20);
/// Most bytes of `status` that are read.
const MAX_STATUS: u64 = 1 << 20;

/// `meta.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Format version of the directory and its logs.
    pub format: u32,
    /// Version of homenode.
    pub homenode: String,
    /// `exact`: every access that passed the filter.
    pub kind: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment variables from the allow-list (OpenMP's).
    pub environment: BTreeMap<String, String>,
    /// Lines of the recorder's filter; 0: none.
    pub filter_lines: u32,
    /// How it ended; absent while it runs, and for ever if the machine went down.
    pub ended: Option<Ended>,
}

/// How a recorded program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// Signal, if one killed it.
    pub signal: Option<i32>,
    /// Elapsed time in nanoseconds, recording included.
    pub elapsed_ns: u64,
    /// Part of `elapsed_ns` in which no thread ran and one waited for input or output, from
    /// samples; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_wait_ns: Option<u64>,
}

/// `symbols.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbols {
    /// Static objects.
    pub statics: Vec<Static>,
    /// Places in the source by process address.
    pub places: BTreeMap<u64, SourcePlace>,
    /// Variables that hold allocations, where debugging information names one, by place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<Allocated>,
    /// Variables in Fortran's common blocks, by the block's address in the program's file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commons: BTreeMap<u64, Vec<String>>,
}

impl Symbols {
    /// The variable that holds what the call that returns to `site` allocated, in a function that
    /// returns to `caller`.
    pub fn variable(&self, site: u64, caller: u64) -> Option<&Allocated> {
        let at = self.allocated.binary_search_by_key(&(site, caller), |v| (v.site, v.caller)).ok()?;
        self.allocated.get(at)
    }
}

/// The variable that holds what one call allocates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocated {
    /// Return address of the allocating call.
    pub site: u64,
    /// Return address of the function with that call; 0: unknown.
    pub caller: u64,
    /// Name, as the source writes it: `u`, `grid->cells`.
    pub name: String,
    /// Its elements.
    #[serde(flatten)]
    pub elements: Elements,
}

/// What an array consists of, as far as debugging information tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elements {
    /// The type of one element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_type: Option<String>,
    /// Bytes of one element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_bytes: Option<u64>,
    /// Extents, slowest first; empty unless all of them are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extents: Vec<u64>,
    /// Fields of an element that is a structure, in their order in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<ElementField>,
}

/// A field of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementField {
    /// Its name.
    pub name: String,
    /// Its type as the source writes it.
    pub field_type: String,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Its size; 0 where it is not known.
    pub bytes: u64,
}

impl ElementField {
    /// Name, type, offset and size.
    pub fn into_parts(self) -> (String, String, u64, u64) {
        (self.name, self.field_type, self.offset, self.bytes)
    }
}

/// A static object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Static {
    /// Index of its module in `modules.txt`.
    pub module: u64,
    /// Address relative to the module's base.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// Name by the linker's symbols.
    pub name: String,
    /// Name as the source writes it, where debugging information has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Its elements.
    #[serde(flatten)]
    pub elements: Elements,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePlace {
    /// Function.
    pub function: Option<String>,
    /// File, as the compiler was given it.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_deref().and_then(|f| f.rsplit('/').next());
        match (file, self.line, self.function.as_deref()) {
            (Some(file), Some(line), _) => write!(f, "{file}:{line}"),
            (Some(file), None, _) => f.write_str(file),
            (None, _, Some(function)) => f.write_str(function),
            (None, _, None) => f.write_str("?"),
        }
    }
}

/// A line of `modules.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Number in the marks.
    pub index: u64,
    /// Address in the process minus address in the file.
    pub base: u64,
    /// Lowest address, relative to `base`.
    pub low: u64,
    /// One past the highest.
    pub high: u64,
    /// The file, as the loader knew it.
    pub path: String,
}

/// What can go wrong with the directory.
#[derive(Debug)]
pub enum RecordingError {
    /// A file or directory cannot be read or written.
    Io {
        /// What was tried.
        tried: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The directory is not a recording.
    NotARecording {
        /// The path.
        path: PathBuf,
        /// What is missing or wrong.
        why: String,
    },
    /// A log is damaged.
    Log(LogError),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { tried, path, error } => write!(f, "cannot {tried} {}: {error}", path.display()),
            Self::NotARecording { path, why } => {
                write!(f, "{} is not a recording of homenode: {why}", path.display())
            }
            Self::Log(e) => write!(f, "{e}"),
        }
    }
}

impl std::error::Error for RecordingError {}

impl From<LogError> for RecordingError {
    fn from(e: LogError) -> Self {
        Self::Log(e)
    }
}

/// A recording on disk.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Its directory.
    pub path: PathBuf,
    /// What it says of itself.
    pub meta: Meta,
}

fn io<'a>(tried: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> RecordingError + 'a {
    move |error| RecordingError::Io { tried, path: path.into(), error }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RecordingError> {
    // Written beside and renamed, so that a reader never sees half of it.
    let new = path.with_extension("new");
    let text = serde_json::to_string_pretty(value).map_err(|e| RecordingError::Io {
        tried: "write",
        path: path.into(),
        error: e.into(),
    })?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .map_err(io("create", &new))?;
    file.write_all(text.as_bytes()).map_err(io("write", &new))?;
    fs::rename(&new, path).map_err(io("rename to", path))
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, RecordingError> {
    let file = regular::open_within(path).map_err(io("read", path))?;
    let text = regular::text(file, MAX_JSON).map_err(io("read", path))?;
    let not = |why| RecordingError::NotARecording { path: path.into(), why };
    Weights::TYPED.check(&text, MAX_HELD).map_err(|e| not(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| not(format!("line {}: {e}", e.line())))
}

impl Recording {
    /// Makes the directory for a new recording, mode 0700.
    ///
    /// # Errors
    /// It exists already or cannot be made.
    pub fn create(path: &Path, meta: Meta) -> Result<Self, RecordingError> {
        fs::DirBuilder::new().mode(0o700).create(path).map_err(io("create the directory", path))?;
        let threads = path.join("threads");
        fs::DirBuilder::new().mode(0o700).create(&threads).map_err(io("create the directory", &threads))?;
        let status = path.join("status");
        fs::write(&status, [b'\n'; STATUS]).map_err(io("create", &status))?;
        let recording = Self { path: path.into(), meta };
        recording.save_meta()?;
        Ok(recording)
    }

    /// Opens a recording.
    ///
    /// # Errors
    /// It is not one, or of a version that this homenode does not know.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let not = |why: String| RecordingError::NotARecording { path: path.into(), why };
        if !fs::metadata(path).map_err(io("open", path))?.is_dir() {
            return Err(not("it is no directory".into()));
        }
        let meta_path = path.join("meta.json");
        match fs::symlink_metadata(&meta_path) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(not("it has no meta.json".into())),
            // The folder is at fault, not the file.
            Err(e) => return Err(io("look into the folder", path)(e)),
        }
        let meta: Meta = read_json(&meta_path)?;
        if meta.format == 0 || meta.format > VERSION {
            return Err(not(format!("format {}, but this homenode knows 1 to {VERSION}", meta.format)));
        }
        Ok(Self { path: path.into(), meta })
    }

    /// Writes `meta.json` again.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_meta(&self) -> Result<(), RecordingError> {
        write_json(&self.path.join("meta.json"), &self.meta)
    }

    /// Writes `symbols.json`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_symbols(&self, symbols: &Symbols) -> Result<(), RecordingError> {
        write_json(&self.path.join("symbols.json"), symbols)
    }

    /// Names for addresses; none if the recording was never finished.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn symbols(&self) -> Result<Symbols, RecordingError> {
        let path = self.path.join("symbols.json");
        match fs::symlink_metadata(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Symbols::default()),
            _ => read_json(&path),
        }
    }

    /// Why the recorder stopped early; `None` if it did not.
    pub fn stopped(&self) -> Option<String> {
        let path = self.path.join("status");
        let text = match regular::open_within(&path).and_then(|f| regular::text(f, MAX_STATUS)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return None,
            Err(e) => format!("cannot read {}: {e}", path.display()),
            Ok(text) => text,
        };
        let text = text.trim();
        (!text.is_empty()).then(|| text.chars().filter(|c| !c.is_control()).take(1000).collect())
    }

    /// The threads' logs, by name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn logs(&self) -> Result<Vec<PathBuf>, RecordingError> {
        let dir = self.path.join("threads");
        let mut list = Vec::new();
        regular::folder(&dir).map_err(io("read", &dir))?;
        for entry in fs::read_dir(&dir).map_err(io("read", &dir))? {
            let path = entry.map_err(io("read", &dir))?.path();
            if path.extension().is_some_and(|e| e == "hnlog") {
                list.push(path);
            }
        }
        list.sort();
        Ok(list)
    }

    /// Bytes of all logs.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn log_bytes(&self) -> Result<u64, RecordingError> {
        Ok(self.logs()?.iter().filter_map(|p| fs::symlink_metadata(p).ok()).map(|m| m.len()).sum())
    }

    /// The modules that the recorder wrote down; lines that make no sense are left out.
    pub fn modules(&self) -> Vec<Module> {
        let file = regular::open_within(&self.path.join("modules.txt"));
        let text = file.and_then(|f| regular::text(f, MAX_JSON)).unwrap_or_default();
        text.lines().filter_map(parse_module).collect()
    }

    /// Places of Python code that allocates, by their number ([`crate::PYTHON`] and up).
    pub fn python(&self) -> BTreeMap<u64, SourcePlace> {
        let file = regular::open_within(&self.path.join("python.txt"));
        let text = file.and_then(|f| regular::text(f, MAX_JSON)).unwrap_or_default();
        text.lines().filter_map(parse_python).collect()
    }

    /// All marks of all threads, in the order of the files; a damaged log ends early.
    ///
    /// # Errors
    /// A log cannot be opened.
    pub fn for_marks(&self, mut f: impl FnMut(Mark)) -> Result<(), RecordingError> {
        for path in self.logs()? {
            let Some(log) = LogReader::open_begun(&path)? else { continue };
            let mut log = log.only(MARKS);
            while let Ok(Some(record)) = log.next_record() {
                if let What::Mark(mark) = record.what {
                    f(mark);
                }
            }
        }
        Ok(())
    }
}

fn parse_module(line: &str) -> Option<Module> {
    let mut it = line.splitn(5, ' ');
    let index = it.next()?.parse().ok()?;
    let mut hex = || u64::from_str_radix(it.next()?.strip_prefix("0x")?, 16).ok();
    let (base, low, high) = (hex()?, hex()?, hex()?);
    Some(Module { index, base, low, high, path: it.next()?.to_owned() })
}

fn parse_python(line: &str) -> Option<(u64, SourcePlace)> {
    let mut it = line.splitn(4, '\t');
    let number =
        u64::from_str_radix(it.next()?.strip_prefix("0x")?, 16).ok().filter(|n| *n >= crate::PYTHON)?;
    let (line, function) = (it.next()?.parse().ok()?, it.next()?.to_owned());
    let place = SourcePlace { file: Some(it.next()?.to_owned()), line: Some(line), function: Some(function) };
    Some((number, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_lines_are_parsed_or_left_out() {
        let (number, place) = parse_python("0x8000000000000001\t12\tblur\t/a b/blur.py").unwrap();
        assert_eq!((number, place.line), (crate::PYTHON + 1, Some(12)));
        assert_eq!((place.file.as_deref(), place.function.as_deref()), (Some("/a b/blur.py"), Some("blur")));
        for bad in ["", "0x10\t1\tf\tx.py", "0x8000000000000001\tx\tf\tx.py", "0x8000000000000001\t1\tf"] {
            assert_eq!(parse_python(bad), None, "{bad}");
        }
    }

    #[test]
    fn module_lines_are_parsed_or_left_out() {
        let m = parse_module("3 0x1000 0x0 0x80 /a path/with spaces").unwrap();
        assert_eq!((m.index, m.base, m.high, m.path.as_str()), (3, 0x1000, 0x80, "/a path/with spaces"));
        for bad in ["", "x 0x1 0x2 0x3 /p", "1 0x1 0x2", "1 5 0x2 0x3 /p"] {
            assert_eq!(parse_module(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_directory_without_meta_is_named() {
        let e = Recording::open(Path::new("/")).unwrap_err().to_string();
        assert!(e.contains("not a recording") && e.contains("meta.json"), "{e}");
        let e = Recording::open(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(e.contains("cannot open /nowhere/at/all"), "{e}");
    }
}
