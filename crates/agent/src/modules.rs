//! Where each file's code and data lie.

use std::ffi::CStr;
use std::path::Path;

use homenode_runtime::driver::Driver;
use homenode_runtime::driver::plan::PlanTable;
use homenode_runtime::moving::Span;
use homenode_wire::facts::LoadedFile;

const MAX_MODULES: usize = 4096;

/// Where the loaded files lie, and how many have been loaded so far.
#[derive(Debug, Default)]
pub struct Places {
    spans: Vec<Span>,
    added: u64,
}

impl Places {
    /// As they are now.
    pub fn now() -> Self {
        let mut places = Self::default();
        // SAFETY: `note` gets the places and keeps nothing of them.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut places).cast()) };
        places
    }

    /// What lies nowhere any more of what these are, if nothing came in between: else another file
    /// may lie where one lay.
    pub fn gone(self, now: &Self) -> Option<Vec<Span>> {
        let gone = self.spans.into_iter().filter(|span| !now.spans.contains(span));
        (self.added == now.added).then(|| gone.collect())
    }
}

unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
    // SAFETY: the loader passes valid headers; `data` is what `Places::now` makes.
    unsafe {
        let (info, places) = (&*info, &mut *data.cast::<Places>());
        let (low, high) = extent(info);
        places.added = info.dlpi_adds;
        if low < high {
            places
                .spans
                .push(Span { start: (info.dlpi_addr + low) as usize, end: (info.dlpi_addr + high) as usize });
        }
    }
    0
}

/// The loaded part of a file, from its first to behind its last byte, before relocation.
unsafe fn extent(info: &libc::dl_phdr_info) -> (u64, u64) {
    let (mut low, mut high) = (u64::MAX, 0);
    for i in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: the caller's headers.
        let h = unsafe { &*info.dlpi_phdr.add(i) };
        if h.p_type == libc::PT_LOAD {
            low = low.min(h.p_vaddr);
            high = high.max(h.p_vaddr + h.p_memsz);
        }
    }
    (low, high)
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
    // SAFETY: the loader passes valid headers; `data` is the vector of `loaded`.
    unsafe {
        let (info, list) = (&*info, &mut *data.cast::<Vec<LoadedFile>>());
        let (low, high) = extent(info);
        let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
        let mut path = name.to_string_lossy().into_owned();
        if path.is_empty() && list.is_empty() {
            path = std::fs::read_link("/proc/self/exe").map_or_else(|_| path, |p| p.display().to_string());
        }
        if path.starts_with("./") || path.starts_with("../") {
            // As the program has named it, from the folder that it was in.
            path = std::fs::canonicalize(&path).map_or_else(|_| path, |p| p.display().to_string());
        }
        if low < high && list.len() < MAX_MODULES {
            list.push(LoadedFile { base: info.dlpi_addr, low, high, path });
        }
    }
    0
}

/// The loaded files, the program first.
pub fn loaded() -> Vec<LoadedFile> {
    let mut list = Vec::new();
    // SAFETY: `visit` gets the vector and keeps nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    list
}

/// How many files have come and gone so far.
pub fn changes() -> u64 {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
        // SAFETY: the loader's headers; `data` is the number below.
        unsafe { *data.cast::<u64>() = (*info).dlpi_adds.wrapping_add((*info).dlpi_subs) };
        1
    }
    let mut changes = 0_u64;
    // SAFETY: `first` keeps nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
    changes
}

/// What is loaded of a file and can be written, as addresses in memory.
pub fn writable(base: u64) -> Vec<Span> {
    struct Wanted {
        base: u64,
        found: Vec<Span>,
    }
    unsafe extern "C" fn of(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
        // SAFETY: the loader passes valid headers; `data` is what is wanted.
        let (info, wanted) = unsafe { (&*info, &mut *data.cast::<Wanted>()) };
        if info.dlpi_addr != wanted.base {
            return 0;
        }
        // SAFETY: the loader has `dlpi_phnum` headers at `dlpi_phdr`.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let data = headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W != 0);
        wanted.found =
            data.map(|h| Span::new((wanted.base + h.p_vaddr) as usize, h.p_memsz as usize)).collect();
        1
    }
    let mut wanted = Wanted { base, found: Vec::new() };
    // SAFETY: `of` keeps nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(of), (&raw mut wanted).cast()) };
    wanted.found
}

/// The launcher's table of a plan.
///
/// # Errors
/// It cannot be read.
pub fn plan(driver: &Driver, path: &Path) -> Result<PlanTable, String> {
    let modules = loaded();
    let base = |path: &str| modules.iter().find(|m| m.path == path).map(|m| m.base);
    PlanTable::read(path, driver.settings().machine.nodes(), base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_gone_is_known_if_nothing_has_come() {
        let places = |spans: &[usize], added| {
            let spans = spans.iter().map(|start| Span::new(*start, 0x1000)).collect();
            Places { spans, added }
        };
        let before = || places(&[0x1000, 0x8000], 2);
        assert_eq!(before().gone(&before()), Some(vec![]));
        assert_eq!(before().gone(&places(&[0x1000], 2)), Some(vec![Span::new(0x8000, 0x1000)]));
        assert_eq!(before().gone(&places(&[0x1000, 0x8000], 3)), None, "another may lie there");
        let now = Places::now();
        let here = Places::now as *const () as usize;
        assert!(now.added > 0 && now.spans.iter().any(|span| span.contains(here)));
    }
}
