//! The program's large static objects, from the symbols of its own file: whatever started it, a wrapper or a shell.

use std::cmp::Reverse;
use std::fs::File;
use std::os::fd::AsRawFd;

use homenode_runtime::driver::Driver;
use homenode_runtime::watch::{Origin, SMALLEST};
use object::{Object, ObjectSymbol, SymbolKind};

use crate::modules;

/// The program's file, mapped: to read it would change what the heap that it shares with the program does next.
struct Mapped {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Mapped {
    fn program() -> Option<Self> {
        let file = File::open("/proc/self/exe").ok()?;
        let bytes = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping, anywhere.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        (at != libc::MAP_FAILED).then_some(Self { at, bytes })
    }

    fn contents(&self) -> &[u8] {
        // SAFETY: mapped until it is dropped; the system lets nobody write to a file that runs.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped in `program`, and nobody borrows from it any more.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// Address and length of each large object of an ELF file; of those that overlap the first. Nothing of what is none.
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

/// Tells the driver of them. Before the program's `main`.
pub fn add(driver: &mut Driver) {
    let modules = modules::loaded();
    let (Some(program), Some(file)) = (modules.first(), Mapped::program()) else { return };
    for (address, bytes) in large(file.contents()) {
        let is_loaded =
            address >= program.low && address.checked_add(bytes).is_some_and(|end| end <= program.high);
        if is_loaded {
            driver.born((program.base + address) as usize, bytes as usize, Origin::Static(address));
        }
    }
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
