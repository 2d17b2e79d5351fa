//! Where each file's code and data lie.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_hooks::loaded::each;
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
        each(|file| {
            places.added = file.added();
            if let Some((low, high)) = file.extent() {
                let at = |address: u64| (file.base() + address) as usize;
                places.spans.push(Span { start: at(low), end: at(high) });
            }
            true
        });
        places
    }

    /// What lies nowhere any more of what these are, if nothing came in between: else another file
    /// may lie where one lay.
    pub fn gone(self, now: &Self) -> Option<Vec<Span>> {
        let gone = self.spans.into_iter().filter(|span| !now.spans.contains(span));
        (self.added == now.added).then(|| gone.collect())
    }
}

/// The loaded files, the program first.
pub fn loaded() -> Vec<LoadedFile> {
    let mut list = Vec::new();
    each(|file| {
        let mut path = file.path().to_string_lossy().into_owned();
        if path.is_empty() && list.is_empty() {
            path = std::fs::read_link("/proc/self/exe").map_or_else(|_| path, |p| p.display().to_string());
        }
        if path.starts_with("./") || path.starts_with("../") {
            // As the program has named it, from the folder that it was in.
            path = std::fs::canonicalize(&path).map_or_else(|_| path, |p| p.display().to_string());
        }
        if let Some((low, high)) = file.extent()
            && list.len() < MAX_MODULES
        {
            list.push(LoadedFile { base: file.base(), low, high, path });
        }
        true
    });
    list
}

/// Where this library's code lies.
pub fn own_code() -> (usize, usize) {
    static LOW: AtomicUsize = AtomicUsize::new(0);
    static HIGH: AtomicUsize = AtomicUsize::new(0);
    if LOW.load(Ordering::Relaxed) == 0 {
        let here = own_code as *const () as u64;
        let modules = loaded();
        let own = modules.iter().find(|m| (m.base + m.low..m.base + m.high).contains(&here));
        if let Some(m) = own {
            HIGH.store((m.base + m.high) as usize, Ordering::Relaxed);
            LOW.store((m.base + m.low) as usize, Ordering::Relaxed);
        }
    }
    (LOW.load(Ordering::Relaxed), HIGH.load(Ordering::Relaxed))
}

/// How many files have come and gone so far.
pub fn changes() -> u64 {
    let mut changes = 0_u64;
    each(|file| {
        changes = file.added().wrapping_add(file.removed());
        false
    });
    changes
}

/// What is loaded of a file and can be written, as addresses in memory.
pub fn writable(base: u64) -> Vec<Span> {
    let mut found = Vec::new();
    each(|file| {
        if file.base() != base {
            return true;
        }
        let data = file.headers().iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W != 0);
        found = data.map(|h| Span::new((base + h.p_vaddr) as usize, h.p_memsz as usize)).collect();
        false
    });
    found
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
