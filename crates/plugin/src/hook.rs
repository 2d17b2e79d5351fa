//! What QEMU calls: at the start, when it translates, when an access or one of the special instructions is executed.
//!
//! Nothing of this may panic across the border, and nothing waits but for the model's lock.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use homenode_cache::{Agent, Line};

use crate::api::{Api, Id, Info, LOADS_AND_STORES, NO_REGISTERS};
use crate::config::Config;
use crate::front::Front;
use crate::monitor::{Monitor, Side};
use crate::translate::{PAGE_SHIFT, Translations};
use crate::{control, decode, emulator};

/// What one virtual CPU's call-backs use. A CPU executes on one thread at a time.
#[derive(Debug)]
struct Cpu {
    agent: Agent,
    translations: Translations,
    /// What the last access was: QEMU's word, a store, its bytes.
    last: (u32, bool, u64),
    /// Accesses counted: the program's side, the kernel's. Written by this CPU, read by whoever asks for the result.
    accesses: [AtomicU64; 2],
}

#[derive(Debug)]
struct Slot(UnsafeCell<Cpu>);

// SAFETY: each slot is used by the call-backs of one CPU, which QEMU never runs at the same time; of other threads only the
// atomic counters are read.
unsafe impl Sync for Slot {}

#[derive(Debug)]
struct Plugin {
    api: Api,
    cpus: Vec<Slot>,
    front: Front,
    monitor: Mutex<Monitor>,
    counting: AtomicBool,
    line_shift: u32,
    output: String,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

/// Marks that a program may make.
const BEGIN: u16 = 1;
const END: u16 = 2;
const INTERVAL: u16 = 3;

/// QEMU's entry: finds its functions, reads the configuration, asks to be called.
///
/// # Safety
/// Called by QEMU with what its documentation says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes `argc` C strings.
    let words = (0..argc as usize).filter_map(|i| unsafe { CStr::from_ptr(*argv.add(i)) }.to_str().ok());
    let words: Vec<&str> = words.collect();
    let value = |name: &str| words.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
    // SAFETY: QEMU passes a description of itself.
    let version = unsafe { (*info).version };
    let installed = match (value("recording"), value("config")) {
        (Some(_), _) => emulator::install(id, version, &value),
        (None, Some(path)) => install(id, version, path),
        (None, None) => Err("it needs config=FILE or recording=DIRECTORY".into()),
    };
    match installed {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("homenode's monitor: {why}");
            1
        }
    }
}

fn install(id: Id, version: c_int, path: &str) -> Result<(), String> {
    let api = Api::find(version).map_err(|name| format!("this QEMU has no {name}"))?;
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let config = Config::parse(&text).map_err(|e| format!("{path}: {e}"))?;
    let monitor = Monitor::new(&config)?;
    let cpu = |i| Cpu {
        agent: monitor.agent(i),
        translations: Translations::default(),
        last: (u32::MAX, false, 0),
        accesses: Default::default(),
    };
    let plugin = Plugin {
        api,
        cpus: (0..monitor.cpus()).map(|i| Slot(UnsafeCell::new(cpu(i)))).collect(),
        front: Front::new(monitor.agents(), monitor.sets()),
        line_shift: monitor.line_shift(),
        monitor: Mutex::new(monitor),
        counting: AtomicBool::new(false),
        output: config.output,
    };
    PLUGIN.set(plugin).map_err(|_| "it is loaded twice")?;
    // SAFETY: the launcher hands its end of a socket to QEMU for this plug-in alone.
    unsafe { control::listen(config.control, act) };
    // SAFETY: the functions are QEMU's, `id` is what it calls this plug-in.
    unsafe {
        (api.register_translation)(id, on_translation);
        (api.register_exit)(id, on_exit, std::ptr::null_mut());
    }
    Ok(())
}

fn act(word: &str) -> String {
    let Some(plugin) = PLUGIN.get() else { return "not ready".into() };
    let done = match word {
        "begin" => plugin.begin(),
        "end" => plugin.end(),
        _ => Err(format!("'{word}' means nothing")),
    };
    done.map_or_else(|why| format!("failed: {why}"), |()| "ok".into())
}

impl Plugin {
    fn begin(&self) -> Result<(), String> {
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        monitor.restart()?;
        self.front.clear();
        for counter in self.cpus.iter().flat_map(counters) {
            counter.store(0, Ordering::Relaxed);
        }
        self.counting.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn end(&self) -> Result<(), String> {
        if !self.counting.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        let accesses: Vec<[u64; 2]> =
            self.cpus.iter().map(|c| counters(c).each_ref().map(|a| a.load(Ordering::Relaxed))).collect();
        let text = monitor.result(&accesses);
        fs::write(&self.output, text).map_err(|e| format!("{}: {e}", self.output))
    }
}

fn counters(slot: &Slot) -> &[AtomicU64; 2] {
    // SAFETY: the counters are atomic, and no exclusive reference to them is ever made.
    unsafe { &(*slot.0.get()).accesses }
}

extern "C" fn on_exit(_: Id, _: *mut c_void) {
    if let Some(plugin) = PLUGIN.get()
        && let Err(why) = plugin.end()
    {
        eprintln!("homenode's monitor: {why}");
    }
}

/// The side of an instruction, as a call-back's user data.
const KERNEL: usize = 1;

extern "C" fn on_translation(_: Id, block: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let api = &plugin.api;
    // SAFETY: QEMU passes the block that it translates, and its instructions are valid meanwhile.
    unsafe {
        for i in 0..(api.instructions)(block) {
            let instruction = (api.instruction)(block, i);
            let kernel = (api.address)(instruction) >> 63 != 0;
            let (bytes, size) = api.bytes(instruction);
            let bytes = &bytes[..size];
            if kernel && decode::invalidates(bytes) {
                (api.on_execution)(instruction, on_invalidation, NO_REGISTERS, std::ptr::null_mut());
            }
            if let Some(code) = decode::mark(bytes) {
                (api.on_execution)(instruction, on_mark, NO_REGISTERS, usize::from(code) as *mut c_void);
            }
            let side = if kernel { KERNEL } else { 0 } as *mut c_void;
            (api.on_access)(instruction, on_access, NO_REGISTERS, LOADS_AND_STORES, side);
        }
    }
}

extern "C" fn on_invalidation(cpu: u32, _: *mut c_void) {
    if let Some(slot) = PLUGIN.get().and_then(|p| p.cpus.get(cpu as usize)) {
        // SAFETY: a call-back of this CPU.
        unsafe { (*slot.0.get()).translations.forget() };
    }
}

extern "C" fn on_mark(_: u32, code: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let done = match code as usize as u16 {
        BEGIN => plugin.begin(),
        END => plugin.end(),
        INTERVAL => {
            plugin.monitor.lock().unwrap_or_else(PoisonError::into_inner).next_interval();
            Ok(())
        }
        _ => Ok(()),
    };
    if let Err(why) = done {
        eprintln!("homenode's monitor: {why}");
    }
}

extern "C" fn on_access(cpu: u32, what: u32, address: u64, side: *mut c_void) {
    // SAFETY: call-backs are registered after it was set.
    let plugin = unsafe { PLUGIN.get().unwrap_unchecked() };
    if !plugin.counting.load(Ordering::Relaxed) {
        return;
    }
    let Some(slot) = plugin.cpus.get(cpu as usize) else { return };
    // SAFETY: a call-back of this CPU; the counters are only read elsewhere.
    let own = unsafe { &mut *slot.0.get() };
    if own.last.0 != what {
        // SAFETY: QEMU's functions, with the word that it passed.
        own.last = unsafe { (what, (plugin.api.is_store)(what), 1 << (plugin.api.size_shift)(what)) };
    }
    let (_, write, size) = own.last;
    let which = side as usize;
    let counter = &own.accesses[which];
    // One writer: no need for a locked addition.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);

    let page = address >> PAGE_SHIFT;
    let base = match own.translations.get(page) {
        Some(base) => base,
        None => match plugin.translate(what, address) {
            Some(base) => {
                own.translations.put(page, base);
                base
            }
            None => return,
        },
    };
    let offset = base | (address & ((1 << PAGE_SHIFT) - 1));
    let line = offset >> plugin.line_shift;
    if !plugin.front.hit(own.agent, Line(line), write) {
        plugin.slow(cpu as usize, offset, page, write, which);
    }
    // The part of an unaligned access that lies in the next line; in the next page it is left out.
    let end = offset + size - 1;
    if end >> plugin.line_shift != line
        && end >> PAGE_SHIFT == offset >> PAGE_SHIFT
        && !plugin.front.hit(own.agent, Line(end >> plugin.line_shift), write)
    {
        plugin.slow(cpu as usize, end, page, write, which);
    }
}

impl Plugin {
    /// First byte of the page in the guest's memory; `None` for devices.
    #[cold]
    fn translate(&self, what: u32, address: u64) -> Option<u64> {
        // SAFETY: QEMU's functions, within the call-back of this access.
        let physical = unsafe {
            let handle = (self.api.physical)(what, address);
            if handle.is_null() || (self.api.is_device)(handle) {
                return None;
            }
            (self.api.physical_address)(handle)
        };
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = monitor.offset(physical);
        if offset.is_none() {
            monitor.lose();
        }
        offset.map(|o| o >> PAGE_SHIFT << PAGE_SHIFT)
    }

    #[cold]
    fn slow(&self, cpu: usize, offset: u64, page: u64, write: bool, which: usize) {
        let side = if which == KERNEL { Side::Kernel } else { Side::User };
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended while this waited.
        if self.counting.load(Ordering::Relaxed) {
            monitor.access(cpu, &self.front, offset, page, write, side);
        }
    }
}
