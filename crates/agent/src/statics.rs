//! The program's large static objects, from the symbols of its own file (whatever started it, a
//! wrapper or a shell) and of the libraries that it loads, at its start or by `dlopen`.
//!
//! Libraries are searched at the start, and at the first region after a file was loaded or
//! unloaded. Files with little data are not opened.

use std::cmp::Reverse;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use homenode_runtime::driver::Driver;
use homenode_runtime::moving::{self, InFlight, Span};
use homenode_runtime::watch::{Origin, SMALLEST};
use homenode_wire::facts::LoadedFile;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::told::Told;
use crate::{modules, state};

/// A file that has been looked through.
struct Known {
    base: u64,
    path: String,
    /// What is large of it, if it is a library.
    objects: Vec<Span>,
}

impl Known {
    fn is_among(&self, modules: &[LoadedFile]) -> bool {
        modules.iter().any(|m| m.base == self.base && m.path == self.path)
    }
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// What begins so is the system's or homenode's own, which know best where their data is.
const LEFT_OUT: [&[u8]; 9] =
    [b"ld-", b"libc.so", b"libc-", b"libm.so", b"libm-", b"libgomp", b"libomp", b"libiomp", b"libhomenode"];

fn is_left_out(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path).as_bytes();
    LEFT_OUT.iter().any(|start| file.starts_with(start))
}

/// A file, mapped, mapped: to read it would change what the heap that it shares with the program
/// does next.
struct Mapped {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Mapped {
    fn program() -> Option<Self> {
        Self::of(Path::new("/proc/self/exe"))
    }

    fn of(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let bytes = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping, anywhere.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        (at != libc::MAP_FAILED).then_some(Self { at, bytes })
    }

    fn contents(&self) -> &[u8] {
        // SAFETY: mapped until it is dropped; the system lets nobody write to a program that runs,
        // and who writes to a library that is in use has its program crash.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `of`, and nobody borrows from it any more.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Address and length of each large object of an ELF file. Of objects that overlap, only the first
/// counts. A file that is not ELF has none.
fn large(file: &[u8]) -> Vec<(u64, u64)> {
    let Ok(file) = object::File::parse(file) else { return Vec::new() };
    let is_object = |s: &object::Symbol<'_, '_>| {
        s.kind() == SymbolKind::Data && s.is_definition() && s.size() >= SMALLEST as u64
    };
    let symbols = file.symbols().chain(file.dynamic_symbols()).filter(is_object);
    let mut all: Vec<_> = symbols.map(|s| (s.address(), Reverse(s.size()))).collect();
    all.sort_unstable();
    let mut end = 0;
    let mut apart = Vec::new();
    for (address, Reverse(bytes)) in all {
        if address >= end {
            end = address.saturating_add(bytes);
            apart.push((address, bytes));
        }
    }
    apart
}

/// Whether a library brings an allocator: its tables are used at each allocation, with its locks
/// held.
fn allocates(file: &[u8]) -> bool {
    let Ok(file) = object::File::parse(file) else { return false };
    file.dynamic_symbols().any(|s| s.is_definition() && s.name_bytes() == Ok(b"malloc"))
}

/// Tells the driver of the program's, and of those of the libraries that it starts with. Before the
/// program's `main`.
pub fn add(driver: &mut Driver) {
    driver.look_up(all);
}

fn all(driver: &mut Driver) {
    let modules = modules::loaded();
    if let (Some(program), Some(file)) = (modules.first(), Mapped::program()) {
        for (address, bytes) in large(file.contents()) {
            let is_loaded =
                address >= program.low && address.checked_add(bytes).is_some_and(|end| end <= program.high);
            if is_loaded {
                driver.born((program.base + address) as usize, bytes as usize, Origin::Static(address));
            }
        }
    }
    compare(driver);
}

/// Files have come or gone.
#[cold]
pub fn look(driver: &mut Driver) {
    driver.look_up(compare);
}

/// Tells the driver what has come since the last time, and of what has gone. The program is the
/// first.
fn compare(driver: &mut Driver) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // With the lock held: what goes from now on is seen to go.
    let modules = modules::loaded();
    known.retain(|k| {
        let is_there = k.is_among(&modules);
        if !is_there {
            k.objects.iter().for_each(|o| {
                driver.dies(o.start);
                moving::retire(moving::before_change(*o));
            });
        }
        is_there
    });
    for (i, m) in modules.iter().enumerate() {
        if !known.iter().any(|k| k.base == m.base && k.path == m.path) {
            let objects = if i == 0 { Vec::new() } else { of_library(driver, m) };
            known.push(Known { base: m.base, path: m.path.clone(), objects });
        }
    }
}

fn of_library(driver: &mut Driver, library: &LoadedFile) -> Vec<Span> {
    let mut data = modules::writable(library.base);
    data.retain(|span| span.len() >= SMALLEST);
    if data.is_empty() || is_left_out(&library.path) {
        return Vec::new();
    }
    let Some(file) = Mapped::of(Path::new(&library.path)) else { return Vec::new() };
    let place = |(address, bytes): (u64, u64)| {
        let at = Span::new(library.base.wrapping_add(address) as usize, bytes as usize);
        data.iter().any(|span| span.start <= at.start && at.end <= span.end).then_some((address, at))
    };
    let found: Vec<_> = large(file.contents()).into_iter().filter_map(place).collect();
    if found.is_empty() || allocates(file.contents()) {
        return Vec::new();
    }
    let path: Arc<str> = library.path.as_str().into();
    for (address, at) in &found {
        driver.born(at.start, at.len(), Origin::Library(path.clone(), *address));
    }
    found.into_iter().map(|(_, at)| at).collect()
}

/// A library may be about to go: nothing static of libraries is armed until [`let_go`].
pub fn hold() -> Vec<InFlight> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().flat_map(|k| &k.objects).map(|o| moving::before_change(*o)).collect()
}

/// Those that have gone are no objects any more.
pub fn let_go(held: Vec<InFlight>) {
    let gone = state::guarded(|| {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let modules = modules::loaded();
        let gone = known.iter().filter(|k| !k.is_among(&modules));
        let gone: Vec<Span> = gone.flat_map(|k| k.objects.iter().copied()).collect();
        known.retain(|k| k.is_among(&modules));
        gone
    });
    let again = gone.into_iter().flatten().map(|memory| {
        state::tell(Told::Died(memory.start));
        // Nobody who has listed it by now will arm it, whoever gets the place.
        moving::before_free(memory)
    });
    let again: Vec<_> = again.collect();
    again.into_iter().chain(held).for_each(moving::retire);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[unsafe(no_mangle)]
    static mut HN_TEST_LARGE: [u8; 81920] = [0; 81920];

    #[test]
    fn this_test_has_a_large_object() {
        let at = (&raw mut HN_TEST_LARGE).addr() as u64;
        let file = Mapped::program().unwrap();
        let base = modules::loaded()[0].base;
        assert!(large(file.contents()).contains(&(at - base, 81920)), "{:x?}", large(file.contents()));
    }

    #[test]
    fn what_is_cut_off_or_changed_is_harmless() {
        let file = Mapped::program().unwrap();
        let whole = file.contents();
        for n in [0, 3, 16, 64, 4096, whole.len() / 2, whole.len() - 1] {
            large(&whole[..n]);
        }
        // Each byte of the header, and those of the last section headers.
        let mut bytes = whole.to_vec();
        for at in (0..64).chain(bytes.len() - 256..bytes.len()) {
            let was = std::mem::replace(&mut bytes[at], 0xff);
            large(&bytes);
            bytes[at] = was;
        }
    }
}
