//! Which file's code and data lie where.

use std::ffi::CStr;
use std::path::Path;

use homenode_runtime::driver::Driver;
use homenode_runtime::driver::plan::Table;
use homenode_runtime::report::Module;

const MAX_MODULES: usize = 4096;

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut libc::c_void) -> i32 {
    // SAFETY: the loader passes valid headers; `data` is the vector of `loaded`.
    unsafe {
        let (info, list) = (&*info, &mut *data.cast::<Vec<Module>>());
        let (mut low, mut high) = (u64::MAX, 0);
        for i in 0..usize::from(info.dlpi_phnum) {
            let h = &*info.dlpi_phdr.add(i);
            if h.p_type == libc::PT_LOAD {
                low = low.min(h.p_vaddr);
                high = high.max(h.p_vaddr + h.p_memsz);
            }
        }
        let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
        let mut path = name.to_string_lossy().into_owned();
        if path.is_empty() && list.is_empty() {
            path = std::fs::read_link("/proc/self/exe").map_or_else(|_| path, |p| p.display().to_string());
        }
        if low < high && list.len() < MAX_MODULES {
            list.push(Module { base: info.dlpi_addr, low, high, path });
        }
    }
    0
}

/// The loaded files, the program first.
pub fn loaded() -> Vec<Module> {
    let mut list = Vec::new();
    // SAFETY: `visit` gets the vector and keeps nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut list).cast()) };
    list
}

/// The launcher's table of a plan.
///
/// # Errors
/// It cannot be read.
pub fn plan(driver: &Driver, path: &Path) -> Result<Table, String> {
    let modules = loaded();
    let base = |path: &str| modules.iter().find(|m| m.path == path).map(|m| m.base as usize);
    Table::read(path, driver.settings().machine.nodes(), base)
}
