//! The C library's slots for `malloc` and its kin. If the program links an allocator and so defines
//! `malloc` itself, the C library calls it directly, past this library's front ends. Then this
//! module leads the C library's slots through homenode, so that the C library's memory is
//! recognised ([`crate::clib`]).

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_hooks::loaded;
use homenode_runtime::moving::Span;

use crate::{clib, modules};

/// The C library's functions for memory, and this library's replacements.
static NAMES: [&CStr; 3] = [c"malloc", c"calloc", c"realloc"];
/// The program's own functions of these names.
static THEIRS: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;

unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the slot holds the C library's function of this type.
    let f = unsafe { std::mem::transmute::<usize, Malloc>(THEIRS[0].load(Ordering::Relaxed)) };
    // SAFETY: the caller's arguments.
    clib::keep(unsafe { f(bytes) }, bytes)
}

unsafe extern "C" fn calloc(n: usize, each: usize) -> *mut c_void {
    // SAFETY: the slot holds the C library's function of this type.
    let f = unsafe { std::mem::transmute::<usize, Calloc>(THEIRS[1].load(Ordering::Relaxed)) };
    // SAFETY: the caller's arguments.
    clib::keep(unsafe { f(n, each) }, n.saturating_mul(each))
}

unsafe extern "C" fn realloc(p: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the slot holds the C library's function of this type.
    let f = unsafe { std::mem::transmute::<usize, Realloc>(THEIRS[2].load(Ordering::Relaxed)) };
    // SAFETY: the caller's arguments.
    clib::keep(unsafe { f(p, bytes) }, bytes)
}

/// Redirects the slots, unless the C library's calls come to this library anyway.
pub fn lead() {
    let (low, high) = modules::own_code();
    for (name, theirs) in NAMES.iter().zip(&THEIRS) {
        // SAFETY: a C string; the global scope.
        theirs.store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize, Ordering::Relaxed);
    }
    let is_theirs = |f: &AtomicUsize| {
        let f = f.load(Ordering::Relaxed);
        f != 0 && !(low..high).contains(&f)
    };
    if THEIRS.iter().all(is_theirs)
        && let Some(library) = Library::with(clib::library())
    {
        let ours =
            [malloc as *const () as usize, calloc as *const () as usize, realloc as *const () as usize];
        // SAFETY: the library's own tables; our functions do what theirs do.
        unsafe { library.replace(&NAMES, &ours) };
    }
}

/// An entry of the dynamic section (`Elf64_Dyn`).
#[repr(C)]
struct Dynamic {
    tag: usize,
    value: usize,
}

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

// <elf.h>
const DT_PLTRELSZ: usize = 2;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_RELA: usize = 7;
const DT_RELASZ: usize = 8;
const DT_JMPREL: usize = 23;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;

/// A loaded file.
struct Library {
    base: usize,
    dynamic: *const Dynamic,
    /// The part that the loader made read-only after writing it.
    sealed: Span,
}

const PAGE: usize = 4096;

impl Library {
    /// The file with this function.
    fn with(function: usize) -> Option<Self> {
        let mut library = Self { base: 0, dynamic: std::ptr::null(), sealed: Span::EMPTY };
        let mut found = false;
        loaded::each(|file| {
            let base = file.base() as usize;
            let span = |h: &libc::Elf64_Phdr| Span::new(base + h.p_vaddr as usize, h.p_memsz as usize);
            let mut code = file.headers().iter().filter(|h| h.p_type == libc::PT_LOAD);
            found = code.any(|h| span(h).contains(function));
            if found {
                library.base = base;
                file.headers().iter().for_each(|h| library.note(h, span(h)));
            }
            !found
        });
        (found && !library.dynamic.is_null()).then_some(library)
    }

    /// Notes where a part of the file lies that its header `h` names.
    fn note(&mut self, h: &libc::Elf64_Phdr, span: Span) {
        match h.p_type {
            libc::PT_DYNAMIC => self.dynamic = span.start as *const Dynamic,
            // Includes the last page only if it is a whole one (elf/dl-reloc.c, _dl_protect_relro).
            libc::PT_GNU_RELRO => {
                let down = |at: usize| at & !(PAGE - 1);
                self.sealed = Span { start: down(span.start), end: down(span.end) };
            }
            _ => {}
        }
    }

    /// An entry of its dynamic section. The loader has turned file offsets into addresses.
    unsafe fn entry(&self, tag: usize) -> Option<usize> {
        let mut at = self.dynamic;
        // SAFETY: the section ends with an entry whose tag is 0.
        unsafe {
            while (*at).tag != 0 {
                if (*at).tag == tag {
                    return Some((*at).value);
                }
                at = at.add(1);
            }
        }
        None
    }

    unsafe fn address(&self, tag: usize) -> Option<usize> {
        // SAFETY: as `entry`.
        let value = unsafe { self.entry(tag) }?;
        Some(if value < self.base { self.base + value } else { value })
    }

    unsafe fn relocations(&self, table: usize, bytes: usize) -> &[Relocation] {
        // SAFETY: the loader has worked through the table.
        unsafe {
            match (self.address(table), self.entry(bytes)) {
                (Some(at), Some(bytes)) => {
                    std::slice::from_raw_parts(at as *const Relocation, bytes / size_of::<Relocation>())
                }
                _ => &[],
            }
        }
    }

    /// Makes its calls of `names` go to `functions`.
    unsafe fn replace(&self, names: &[&CStr], functions: &[usize]) {
        // SAFETY: the tables of a loaded file; slots are aligned words of it.
        unsafe {
            let (Some(symbols), Some(text)) = (self.address(DT_SYMTAB), self.address(DT_STRTAB)) else {
                return;
            };
            let tables = [self.relocations(DT_JMPREL, DT_PLTRELSZ), self.relocations(DT_RELA, DT_RELASZ)];
            for r in tables.into_iter().flatten() {
                if !matches!(r.info as u32, R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT) {
                    continue;
                }
                let symbol = &*(symbols as *const libc::Elf64_Sym).add((r.info >> 32) as usize);
                let name = CStr::from_ptr((text + symbol.st_name as usize) as *const _);
                if let Some(n) = names.iter().position(|n| *n == name) {
                    self.write(self.base + r.offset, functions[n]);
                }
            }
        }
    }

    unsafe fn write(&self, slot: usize, function: usize) {
        let page = (slot & !(PAGE - 1)) as *mut c_void;
        let sealed = self.sealed.contains(slot);
        // SAFETY: the slot's page is the loader's, and ends as it was.
        unsafe {
            if sealed && libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                return;
            }
            (*(slot as *const AtomicUsize)).store(function, Ordering::Release);
            if sealed {
                libc::mprotect(page, PAGE, libc::PROT_READ);
            }
        }
    }
}
