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
//!
//! A recording whose `meta.json` is damaged still opens if the header of a log is whole
//! ([`Recording::damage`]).

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use homenode_model::Bytes;
use homenode_model::json::MemoryWeights;
use homenode_salvage::Damaged;
use serde::{Deserialize, Serialize};

use crate::LogError;
use crate::file::{LogHeader, LogReader, MARKS};
use crate::regular;
use crate::{Mark, VERSION};

/// The recording's description.
const META: &str = "meta.json";
/// What [`Meta::kind`] may be. The last one is the weakest.
const KINDS: [&str; 2] = ["exact", "emulated"];
/// Fields of a damaged `meta.json` without which a reader has to assume something.
const NEEDED: [&str; 5] = ["homenode", "kind", "command", "environment", "ended"];
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
    /// The rank of a job that the program was, if a launcher of jobs started it as one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<RankOf>,
    /// How it ended; absent while it runs, and for ever if the machine went down.
    pub ended: Option<RecordedEnd>,
}

/// A rank of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankOf {
    /// Its number, from 0 on.
    pub rank: u32,
    /// The job, as its launcher calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Name of the machine that the rank ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// How a recorded program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEnd {
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
    /// The call whose result it holds: 0 the allocating call, 1 that of the function with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub call: usize,
    /// Its elements.
    #[serde(flatten)]
    pub elements: Elements,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(n: &usize) -> bool {
    *n == 0
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
    pub fields: Vec<FieldRecord>,
}

/// A field of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldRecord {
    /// Its name.
    pub name: String,
    /// Its type as the source writes it.
    pub field_type: String,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Its size; 0 where it is not known.
    pub bytes: u64,
}

impl FieldRecord {
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file or directory cannot be read or written.
    #[error("cannot {tried} {}: {error}", path.display())]
    Io {
        /// What was tried.
        tried: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The directory is not a recording.
    #[error("{} is not a recording of homenode: {why}", path.display())]
    NotARecording {
        /// The path.
        path: PathBuf,
        /// What is missing or wrong.
        why: String,
    },
    /// A log is damaged.
    #[error("{0}")]
    Log(LogError),
}

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
    /// What `meta.json` does not tell because it is damaged, in words. `None`: it is whole.
    pub damage: Option<String>,
}

/// Why `meta.json` cannot be read as it is.
enum Unread {
    /// The system refuses the file, or it is no regular one.
    File(RecordingError),
    /// The file is not what homenode writes. The text, and what is wrong with it.
    Text(String, String),
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
    try_json(path).map_err(|unread| match unread {
        Unread::File(error) => error,
        Unread::Text(_, why) => RecordingError::NotARecording { path: path.into(), why },
    })
}

fn try_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Unread> {
    let file = regular::open_within(path).and_then(|file| regular::bytes(file, MAX_JSON));
    let bytes = file.map_err(|e| Unread::File(io("read", path)(e)))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let why = format!("byte {} is no UTF-8", e.utf8_error().valid_up_to());
        Unread::Text(String::from_utf8_lossy(e.as_bytes()).into_owned(), why)
    })?;
    let parsed = match MemoryWeights::TYPED.check(&text, MAX_HELD) {
        Err(e) => Err(e.to_string()),
        Ok(()) => serde_json::from_str(&text).map_err(|e| format!("line {}: {e}", e.line())),
    };
    parsed.map_err(|why| Unread::Text(text, why))
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
        let recording = Self { path: path.into(), meta, damage: None };
        recording.save_meta()?;
        Ok(recording)
    }

    /// Opens a recording. Of a damaged `meta.json` it reads the fields that are whole, if the
    /// header of a log is whole.
    ///
    /// # Errors
    /// It is not one, or of a version that this homenode does not know.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let not = |why: String| RecordingError::NotARecording { path: path.into(), why };
        if !fs::metadata(path).map_err(io("open", path))?.is_dir() {
            return Err(not("it is no directory".into()));
        }
        let meta_path = path.join(META);
        match fs::symlink_metadata(&meta_path) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(not("it has no meta.json".into())),
            // The folder is at fault, not the file.
            Err(e) => return Err(io("look into the folder", path)(e)),
        }
        let unread = match try_json::<Meta>(&meta_path) {
            Ok(meta) if meta.format == 0 || meta.format > VERSION => {
                return Err(not(format!("format {}, but this homenode knows 1 to {VERSION}", meta.format)));
            }
            Ok(meta) if KINDS.contains(&meta.kind.as_str()) => {
                return Ok(Self { path: path.into(), meta, damage: None });
            }
            Ok(meta) => {
                let why = format!("its kind is '{}', and neither exact nor emulated", meta.kind);
                Unread::Text(serde_json::to_string(&meta).unwrap_or_default(), why)
            }
            Err(unread) => unread,
        };
        match Self::described_by_logs(path, &unread) {
            Some(recording) => Ok(recording),
            None => Err(match unread {
                Unread::File(error) => error,
                Unread::Text(_, why) => RecordingError::NotARecording { path: meta_path, why },
            }),
        }
    }

    /// The recording with what its damaged `meta.json` and the header of a log tell. `None`: no
    /// header is whole.
    fn described_by_logs(path: &Path, unread: &Unread) -> Option<Self> {
        let header = Self::header_of(path)?;
        let assumed = Meta {
            format: header.version,
            homenode: "unknown".into(),
            // What is counted under emulation claims less than what instrumented code counts.
            kind: KINDS[1].into(),
            command: Vec::new(),
            environment: BTreeMap::new(),
            filter_lines: header.filter_lines,
            rank: None,
            ended: None,
        };
        let (text, why) = match unread {
            Unread::File(error) => (None, error.to_string()),
            Unread::Text(text, why) => (Some(text.as_str()), why.clone()),
        };
        let damaged = Damaged { file: META, text, why: &why };
        let mut salvaged = damaged.read(assumed, &NEEDED, &["format", "filter_lines"]);
        if !KINDS.contains(&salvaged.value.kind.as_str()) {
            salvaged.value.kind = KINDS[1].into();
            salvaged.untold.push("kind");
        }
        let mut said = salvaged.words();
        if salvaged.untold.contains(&"kind") {
            said += "; its counts are read as emulated";
        }
        let shown = said.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        Some(Self { path: path.into(), meta: salvaged.value, damage: Some(shown) })
    }

    /// The header of the first log that has a whole one.
    fn header_of(path: &Path) -> Option<LogHeader> {
        logs_in(path).ok()?.iter().find_map(|log| LogReader::open(log).ok()).map(|log| log.header())
    }

    /// Writes `meta.json` again.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save_meta(&self) -> Result<(), RecordingError> {
        write_json(&self.path.join(META), &self.meta)
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
        logs_in(&self.path)
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
    pub fn for_marks(&self, f: impl FnMut(Mark)) -> Result<(), RecordingError> {
        self.marks_from(|_| Ok(()), f)
    }

    /// The marks in the last chunk of each log, where a thread's totals are; the other chunks are
    /// not read.
    ///
    /// # Errors
    /// A log cannot be opened.
    pub fn for_last_marks(&self, f: impl FnMut(Mark)) -> Result<(), RecordingError> {
        self.marks_from(LogReader::skip_to_last_chunk, f)
    }

    fn marks_from(
        &self,
        skip: impl Fn(&mut LogReader) -> Result<(), LogError>,
        mut f: impl FnMut(Mark),
    ) -> Result<(), RecordingError> {
        for path in self.logs()? {
            let Some(log) = LogReader::open_begun(&path)? else { continue };
            let mut log = log.only(MARKS);
            skip(&mut log)?;
            while let Ok(Some(mark)) = log.next_mark() {
                f(mark);
            }
        }
        Ok(())
    }
}

/// The logs of a recording's directory, by name.
fn logs_in(path: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let dir = path.join("threads");
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

    /// A recording with one log, in a folder of its own.
    struct Sound(PathBuf);

    impl Sound {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("homenode-log-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            let recording = Recording::create(&path, meta()).unwrap();
            let header = LogHeader { version: VERSION, filter_lines: 512, line_shift: 6 };
            fs::write(path.join("threads/00000.hnlog"), header.bytes()).unwrap();
            Self(recording.path)
        }

        fn text(&self) -> String {
            fs::read_to_string(self.0.join(META)).unwrap()
        }

        fn with(&self, text: impl AsRef<[u8]>) -> Result<Recording, String> {
            fs::write(self.0.join(META), text).unwrap();
            Recording::open(&self.0).map_err(|e| e.to_string())
        }
    }

    impl Drop for Sound {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn meta() -> Meta {
        Meta {
            format: VERSION,
            homenode: "0.1.0".into(),
            kind: "exact".into(),
            command: vec!["./app".into(), "-n \"7\"".into()],
            environment: [("OMP_NUM_THREADS".into(), "4".into())].into(),
            filter_lines: 512,
            rank: Some(RankOf { rank: 3, job: Some("77.0".into()), host: None }),
            ended: Some(RecordedEnd { status: Some(0), signal: None, elapsed_ns: 9, io_wait_ns: None }),
        }
    }

    #[test]
    fn a_description_that_is_cut_off_keeps_the_fields_before() {
        let sound = Sound::new("cut");
        let text = sound.text();
        assert_eq!(sound.with(&text).unwrap().damage, None);
        for end in 0..text.len() - 1 {
            let found = sound.with(&text[..end]).unwrap();
            let said = found.damage.expect("it is damaged");
            assert!(said.starts_with("meta.json is damaged"), "{end}: {said}");
            let told = |field: &str| !said.contains(field);
            let kind = if told("kind") { "exact" } else { "emulated" };
            assert_eq!((found.meta.kind.as_str(), found.meta.filter_lines), (kind, 512), "{end}: {said}");
            assert_eq!(found.meta.command.len(), if told("command") { 2 } else { 0 }, "{end}: {said}");
            assert_eq!(found.meta.ended.is_some(), told("ended"), "{end}: {said}");
        }
        assert_eq!(sound.with("").unwrap().damage.unwrap().matches("homenode, kind, command").count(), 1);
    }

    #[test]
    fn a_flipped_bit_costs_the_field_that_it_is_in() {
        let sound = Sound::new("flip");
        let text = sound.text();
        let (mut damaged, mut refused) = (0, 0);
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let Ok(found) = sound.with(&bytes) else {
                    refused += 1;
                    continue;
                };
                let Meta { kind, command, environment, .. } = found.meta;
                assert!(KINDS.contains(&kind.as_str()), "byte {at}, bit {bit}: {kind}");
                let Some(said) = found.damage else { continue };
                damaged += 1;
                assert!(!said.contains(char::is_control), "byte {at}, bit {bit}: {said:?}");
                assert!(said.contains("command") || command.len() == 2, "byte {at}, bit {bit}: {said}");
                assert!(
                    said.contains("environment") || environment.len() == 1,
                    "byte {at}, bit {bit}: {said}"
                );
            }
        }
        // Another version is no damage: seven bits of its digit make another digit, or a letter.
        assert!(damaged > 1000 && refused < 8, "{damaged} damaged, {refused} refused");
    }

    #[test]
    fn a_description_that_is_no_file_is_said_and_without_a_whole_log_nothing_is_read() {
        let sound = Sound::new("none");
        fs::remove_file(sound.0.join(META)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", sound.0.join(META)).unwrap();
        let said = Recording::open(&sound.0).unwrap().damage.unwrap();
        assert!(said.contains("cannot be read") && said.contains("symbolic link"), "{said}");
        fs::remove_file(sound.0.join(META)).unwrap();
        let log = sound.0.join("threads/00000.hnlog");
        fs::write(&log, "HNLO").unwrap();
        assert!(sound.with("{").unwrap_err().contains("line 1: EOF"));
        fs::remove_file(&log).unwrap();
        assert!(sound.with("{").unwrap_err().contains("line 1: EOF"));
        assert!(sound.with("{\"format\": 1").unwrap_err().contains("line 1: EOF"));
    }

    #[test]
    fn a_newer_version_is_no_damage() {
        let sound = Sound::new("newer");
        let text = sound.text().replace("\"format\": 1", "\"format\": 99");
        let error = sound.with(text).unwrap_err();
        assert!(error.contains("format 99, but this homenode knows 1"), "{error}");
    }
}
