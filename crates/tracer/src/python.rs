//! Where Python code allocates, in an emulated program: the line of the innermost frame that is not
//! a package's.
//!
//! All objects of Python code have the same allocating call, in the interpreter or in numpy. So the
//! recorder asks the interpreter for its frames during the allocation. The place gets a number from
//! [`homenode_log::PYTHON`] on, which stands in the log as the allocating call. `python.txt` in the
//! recording says what each number means.
//!
//! Only a thread that holds the interpreter's lock asks, with the garbage collector off, and never
//! while the interpreter makes one of its arenas, which are mappings and come through `mmap`.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use homenode_hooks::python::{FrameFunctions, PythonObject, symbol};
use homenode_log::PYTHON as FIRST;
use homenode_recorder::{io, state};

use crate::{emulator, modules};

/// Frames searched for one that is not a package's.
const FRAMES: usize = 24;
/// Most places with numbers.
const PLACES: usize = 1 << 12;
/// The interpreter's functions, as in its headers since 3.9; those of the garbage collector since
/// 3.10.
struct Interpreter {
    of_frames: FrameFunctions,
    /// Borrowed; null without a pending exception.
    error: unsafe extern "C" fn() -> PythonObject,
    collector: Option<[unsafe extern "C" fn() -> c_int; 2]>,
}

impl Interpreter {
    /// The process's interpreter, if there is one that exports its functions. Programs without one
    /// are checked ever more rarely.
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Interpreter> = OnceLock::new();
        static LOOKED: AtomicUsize = AtomicUsize::new(0);
        if let Some(found) = FOUND.get() {
            return Some(found);
        }
        if !(LOOKED.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() || !modules::has_python() {
            return None;
        }
        let found = Self::look()?;
        Some(FOUND.get_or_init(|| found))
    }

    fn look() -> Option<Self> {
        // SAFETY: the types of the interpreter's headers.
        unsafe {
            let collector = symbol(c"PyGC_Disable").zip(symbol(c"PyGC_Enable"));
            Some(Self {
                of_frames: FrameFunctions::look()?,
                error: symbol(c"PyErr_Occurred")?,
                collector: collector.map(|(off, on)| [off, on]),
            })
        }
    }

    /// An attribute of the frame's code.
    ///
    /// # Safety
    /// The calling thread holds the interpreter's lock and the code.
    unsafe fn attribute(&self, code: PythonObject, name: &CStr) -> Option<String> {
        // SAFETY: the caller's promise; what is new is given up again.
        unsafe {
            let value = (self.of_frames.attribute)(code, name.as_ptr());
            if value.is_null() {
                (self.of_frames.clear_error)();
                return None;
            }
            let text = (self.of_frames.text)(value);
            let known = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
            if known.is_none() {
                (self.of_frames.clear_error)();
            }
            (self.of_frames.give_up)(value);
            known
        }
    }

    /// File, line and function of a frame.
    ///
    /// # Safety
    /// The calling thread holds the interpreter's lock and the frame.
    unsafe fn describe(&self, frame: PythonObject) -> Option<(String, u32, String)> {
        // SAFETY: the caller's promise; the code is given up again.
        unsafe {
            let code = (self.of_frames.code)(frame);
            let file = self.attribute(code, c"co_filename");
            let function = self.attribute(code, c"co_name");
            let line = u32::try_from((self.of_frames.line)(frame)).ok().filter(|line| *line > 0);
            (self.of_frames.give_up)(code);
            Some((file?, line?, function?))
        }
    }

    /// The innermost frame of the user's own code.
    ///
    /// # Safety
    /// The calling thread holds the interpreter's lock.
    unsafe fn place(&self) -> Option<(String, u32, String)> {
        // SAFETY: the caller's promise. The first frame is borrowed, those behind it are new.
        unsafe {
            let mut frame = (self.of_frames.frame)();
            let mut found = None;
            for i in 0..FRAMES {
                if frame.is_null() {
                    break;
                }
                let place = self.describe(frame).filter(|(file, ..)| is_own(file));
                let outer = if place.is_none() { (self.of_frames.back)(frame) } else { std::ptr::null_mut() };
                if i > 0 {
                    (self.of_frames.give_up)(frame);
                }
                frame = outer;
                found = place;
                if found.is_some() {
                    break;
                }
            }
            if !frame.is_null() {
                (self.of_frames.give_up)(frame);
            }
            found
        }
    }
}

/// Whether a file is the user's own: not a package's, not the interpreter's, and not a compiled
/// text.
fn is_own(file: &str) -> bool {
    let library =
        |part: &str| part == "site-packages" || part == "dist-packages" || part.starts_with("python3.");
    !file.starts_with('<') && !file.split('/').any(library)
}

thread_local! {
    /// Whether the interpreter is being asked. Its allocations for that belong to nobody.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// The number of the Python line that allocates. `None` if no Python code allocates, or the thread
/// may not ask.
pub fn site() -> Option<u64> {
    if !emulator::active() || ASKING.replace(true) {
        return None;
    }
    let found = Interpreter::get().and_then(ask);
    ASKING.set(false);
    found
}

fn ask(python: &'static Interpreter) -> Option<u64> {
    // SAFETY: both may be asked by any thread at any time; all else with the interpreter's lock
    // held and no exception under way.
    let (file, line, function) = unsafe {
        if (python.of_frames.is_initialised)() == 0
            || (python.of_frames.has_lock)() == 0
            || !(python.error)().is_null()
        {
            return None;
        }
        let was_on = python.collector.is_some_and(|[off, _]| off() != 0);
        let place = python.place();
        if let (true, Some([_, on])) = (was_on, python.collector) {
            on();
        }
        place?
    };
    number(&file, line, &function)
}

/// The number of a place. A new place is written to the recording.
fn number(file: &str, line: u32, function: &str) -> Option<u64> {
    static KNOWN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
    let mut hasher = DefaultHasher::new();
    (file, line, function).hash(&mut hasher);
    let key = hasher.finish().max(1);
    // The owner of the interpreter's lock is the only one here.
    let at = KNOWN.iter().position(|k| [0, key].contains(&k.load(Ordering::Relaxed)))?;
    let site = FIRST + at as u64;
    if KNOWN[at].swap(key, Ordering::Relaxed) == 0 {
        let one_line = |text: &str| text.replace(['\n', '\t'], "\u{fffd}");
        let mut text = String::new();
        let _ = writeln!(text, "{site:#x}\t{line}\t{}\t{}", one_line(function), one_line(file));
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
        let fd = io::open_at(state::dir(), c"python.txt", flags);
        if fd >= 0 {
            let _ = io::write_all(fd, text.as_bytes()); // without it the object has no name, which shows
            io::close(fd);
        }
    }
    Some(site)
}

/// Bytes of the interpreter's arenas for small objects, in 3.9 and since 3.10.
const ARENAS: [usize; 2] = [256 << 10, 1 << 20];

/// Whether a mapping is one of the interpreter's arenas, which are no objects.
pub fn is_arena(bytes: usize, prot: i32, flags: i32) -> bool {
    ARENAS.contains(&bytes)
        && prot == libc::PROT_READ | libc::PROT_WRITE
        && flags & libc::MAP_ANONYMOUS != 0
        && emulator::active()
        && Interpreter::get().is_some()
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn packages_are_not_the_persons_own() {
        assert!(is_own("blur.py") && is_own("/home/a/work/blur.py"));
        for file in [
            "/usr/lib/python3.11/threading.py",
            "/v/lib/python3.12/site-packages/numpy/core/numeric.py",
            "/usr/lib/python3/dist-packages/numpy/x.py",
            "<frozen importlib._bootstrap>",
        ] {
            assert!(!is_own(file), "{file}");
        }
    }
}
