//! Where each file's code and data lie: `modules.txt` (index, load bias, lowest and highest address
//! relative to it, path), and a mark for each file. Written at the start, and at exit for files
//! that were loaded later.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use homenode_hooks::loaded::each;
use homenode_hooks::python::is_interpreter;
use homenode_log::Mark;
use homenode_model::is_runtime_library;
use homenode_recorder::channel::{ProgramMessage, Whose};
use homenode_recorder::{io, state};

use crate::{emulator, thread};

const MAX_MODULES: usize = 512;

struct Module {
    base: u64,
    low: u64,
    high: u64,
    path: Vec<u8>,
    /// Ranges that nobody writes once the program runs, relative to `base`.
    constant: Vec<(u64, u64)>,
}

fn loaded() -> Vec<Module> {
    let mut list = Vec::new();
    each(|file| {
        let is_constant = |h: &&libc::Elf64_Phdr| {
            h.p_type == libc::PT_GNU_RELRO || h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W == 0
        };
        let constant = file.headers().iter().filter(is_constant);
        let constant = constant.map(|h| (h.p_vaddr, h.p_vaddr + h.p_memsz)).collect();
        let mut path = file.path().to_bytes().to_vec();
        if path.is_empty() && list.is_empty() {
            path = std::fs::read_link("/proc/self/exe")
                .map_or(vec![], |p| p.into_os_string().into_encoded_bytes());
        }
        if let Some((low, high)) = file.extent()
            && list.len() < MAX_MODULES
        {
            list.push(Module { base: file.base(), low, high, path, constant });
        }
        true
    });
    list
}

/// Writes the modules that have not been written before.
pub fn write_new() {
    static BASES: [AtomicU64; MAX_MODULES] = [const { AtomicU64::new(u64::MAX) }; MAX_MODULES];
    let known = |m: &Module| BASES.iter().any(|b| b.load(Ordering::Relaxed) == m.base + m.low);
    let mut text = String::new();
    for m in loaded() {
        if known(&m) {
            continue;
        }
        let Some(index) = BASES.iter().position(|b| b.load(Ordering::Relaxed) == u64::MAX) else { break };
        BASES[index].store(m.base + m.low, Ordering::Relaxed);
        let path = String::from_utf8_lossy(&m.path).replace('\n', "\u{fffd}");
        let _ = writeln!(text, "{index} {:#x} {:#x} {:#x} {path}", m.base, m.low, m.high);
        thread::mark(|| Mark::Module { index: index as u64, base: m.base, low: m.low, high: m.high });
        if emulator::outside() {
            let whose = whose(&m, &path);
            if emulator::active() {
                tell(&m, whose);
            }
            if whose == Whose::Program {
                remember(&m);
            }
        }
    }
    let fd = io::open_at(state::dir(), c"modules.txt", libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND);
    if fd >= 0 {
        let _ = io::write_all(fd, text.as_bytes()); // the logs will meet and tell of the same trouble
        io::close(fd);
    }
}

/// Folders of libraries that are not the program's own.
const SYSTEM: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];
fn whose(module: &Module, path: &str) -> Whose {
    let here = whose as *const () as u64;
    if (module.base + module.low..module.base + module.high).contains(&here) {
        Whose::Recorder
    } else if SYSTEM.iter().any(|s| path.starts_with(s)) || is_runtime_library(path.as_bytes()) {
        Whose::System
    } else {
        Whose::Program
    }
}

/// The program's own modules, if it was built without the recorder: first address, one past the
/// last.
static PROGRAM: [(AtomicU64, AtomicU64); MAX_MODULES] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; MAX_MODULES];

/// Whether code is the program's own. Known for programs built without the recorder.
pub fn is_program(pc: usize) -> bool {
    let pc = pc as u64;
    let ranges =
        PROGRAM.iter().map(|(low, high)| (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed)));
    ranges.take_while(|(_, high)| *high != 0).any(|(low, high)| (low..high).contains(&pc))
}

/// Whether one of the loaded files is a Python interpreter, by its name.
pub fn has_python() -> bool {
    loaded().iter().any(|m| is_interpreter(&m.path))
}

/// Tells the emulator's plug-in who owns which code.
fn tell(module: &Module, whose: Whose) {
    let at = |(low, high): (u64, u64)| (module.base + low, module.base + high);
    for (low, high) in module.constant.iter().copied().map(at) {
        emulator::tell(&ProgramMessage::Constant { low, high });
    }
    let (low, high) = at((module.low, module.high));
    emulator::tell(&ProgramMessage::Code { low, high, whose });
}

fn remember(module: &Module) {
    if let Some((from, to)) = PROGRAM.iter().find(|(_, to)| to.load(Ordering::Relaxed) == 0) {
        from.store(module.base + module.low, Ordering::Relaxed);
        to.store(module.base + module.high, Ordering::Relaxed);
    }
}

/// Start of the program break's segment, sent once at the start.
pub fn heap_start() -> u64 {
    // The kernel gives the first byte as field 47 of stat, `start_brk`.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_ascii_whitespace().nth(44).and_then(|f| f.parse().ok()).unwrap_or(0)
}
