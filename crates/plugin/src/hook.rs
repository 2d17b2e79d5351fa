//! What QEMU calls: at the start, when it translates, when an access or one of the special instructions is executed.
//!
//! Before the guest's side says that the program starts, only its marks are looked for, so that a boot costs nothing; then
//! everything is translated anew. Nothing of this may panic across the border, and nothing waits but for the model's lock.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::api::{Api, Id, Info, LOADS_AND_STORES, NO_REGISTERS};
use crate::config::Config;
use crate::cpu::{Behind, Cpu, Shared};
use crate::memory::Memory;
use crate::monitor::{Monitor, Reach};
use crate::place::Places;
use crate::process::Processes;
use crate::translate::PAGE_SHIFT;
use crate::{control, decode, emulator, word};

#[derive(Debug)]
struct Slot {
    own: UnsafeCell<Cpu>,
    shared: Shared,
    /// CPUs with the same first-level cache.
    siblings: Vec<usize>,
}

// SAFETY: `own` is used by the call-backs of one CPU, which QEMU never runs at the same time; the rest is atomic.
unsafe impl Sync for Slot {}

#[derive(Debug)]
struct Plugin {
    api: Api,
    cpus: Vec<Slot>,
    monitor: Mutex<Monitor>,
    places: Places,
    nodes: Vec<u64>,
    processes: RwLock<Processes>,
    /// Accesses are reported: everything has been translated for that.
    watching: AtomicBool,
    counting: AtomicBool,
    /// Accesses to places that are neither memory nor a device.
    lost: AtomicU64,
    /// What was in the way of the last beginning or end.
    trouble: Mutex<Option<String>>,
    line_shift: u32,
    output: String,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
/// The same, without a question.
static READY: AtomicPtr<Plugin> = AtomicPtr::new(std::ptr::null_mut());

/// Marks that a program may make.
const BEGIN: u16 = 1;
const END: u16 = 2;
const INTERVAL: u16 = 3;
/// Marks of the guest's side, around the program.
const START: u16 = 4;
const STOP: u16 = 5;

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
    // SAFETY: both functions only look at the number.
    if !word::understood(|w| unsafe { (api.is_store)(w) }, |w| unsafe { (api.size_shift)(w) }) {
        return Err("this QEMU tells of accesses in words that are not known".into());
    }
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let config = Config::parse(&text).map_err(|e| format!("{path}: {e}"))?;
    let monitor = Monitor::new(&config)?;
    let slot = |cpu| Slot {
        own: UnsafeCell::default(),
        shared: Shared::new(monitor.sets()),
        siblings: monitor.siblings(cpu),
    };
    let plugin = Plugin {
        api,
        cpus: (0..monitor.cpus()).map(slot).collect(),
        places: monitor.places().clone(),
        nodes: config.machine.nodes.iter().map(|n| n.memory.0).collect(),
        processes: RwLock::new(Processes::new(config.kernel)),
        line_shift: monitor.line_shift(),
        monitor: Mutex::new(monitor),
        watching: AtomicBool::new(false),
        counting: AtomicBool::new(false),
        lost: AtomicU64::new(0),
        trouble: Mutex::new(None),
        output: config.output,
    };
    PLUGIN.set(plugin).map_err(|_| "it is loaded twice")?;
    let plugin = PLUGIN.get().ok_or("it is not there")?;
    READY.store(std::ptr::from_ref(plugin).cast_mut(), Ordering::Release);
    // SAFETY: the launcher hands its end of a socket to QEMU for this plug-in alone.
    unsafe { control::listen(config.control, act) };
    on_reset(id);
    Ok(())
}

/// Asks to be called; at the start, and again after everything was forgotten so that it is translated anew.
extern "C" fn on_reset(id: Id) {
    let Some(plugin) = PLUGIN.get() else { return };
    ID.store(id, Ordering::Relaxed);
    // SAFETY: the functions are QEMU's, `id` is what it calls this plug-in.
    unsafe {
        (plugin.api.register_translation)(id, on_translation);
        (plugin.api.register_exit)(id, on_exit, std::ptr::null_mut());
    }
}

static ID: AtomicU64 = AtomicU64::new(0);

/// What the launcher asks: whether all went well, at the end.
fn act(word: &str) -> String {
    let Some(plugin) = PLUGIN.get() else { return "not ready".into() };
    let done = match word {
        "end" => plugin.end(),
        _ => Err(format!("'{word}' means nothing")),
    };
    let trouble = plugin.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
    match done.err().or(trouble) {
        None => "ok".into(),
        Some(why) => format!("failed: {why}"),
    }
}

impl Plugin {
    fn model(&self) -> MutexGuard<'_, Monitor> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program starts: everything is looked at from now on.
    fn start(&self) -> Result<(), String> {
        let memory = Memory::find(&self.nodes);
        self.processes.write().unwrap_or_else(PoisonError::into_inner).read_from(memory);
        if !self.watching.swap(true, Ordering::SeqCst) {
            // SAFETY: QEMU's function, on a thread of a CPU; `on_reset` is called once no CPU executes.
            unsafe { (self.api.reset)(ID.load(Ordering::Relaxed), on_reset) };
        }
        self.begin()
    }

    fn begin(&self) -> Result<(), String> {
        let mut monitor = self.model();
        for slot in &self.cpus {
            slot.shared.pending.take(|_| {});
            slot.shared.front.forget();
            slot.shared.accesses.iter().for_each(|a| a.store(0, Ordering::Relaxed));
        }
        monitor.restart()?;
        self.lost.store(0, Ordering::Relaxed);
        self.counting.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Hands a CPU's accesses to the model, which the caller has locked.
    fn hand_over(&self, monitor: &mut Monitor, cpu: usize) {
        let slot = &self.cpus[cpu];
        slot.shared.pending.take(|access| {
            let line = homenode_cache::Line(access.line);
            if monitor.access(cpu, access) == Reach::Others {
                for (_, other) in self.cpus.iter().enumerate().filter(|(i, _)| *i != cpu) {
                    other.shared.front.lose(line);
                }
            }
            for sibling in &slot.siblings {
                self.cpus[*sibling].shared.front.lose_set(line);
            }
        });
    }

    fn next_interval(&self) {
        let mut monitor = self.model();
        for cpu in 0..self.cpus.len() {
            self.hand_over(&mut monitor, cpu);
        }
        monitor.next_interval();
    }

    fn end(&self) -> Result<(), String> {
        if !self.counting.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let mut monitor = self.model();
        for cpu in 0..self.cpus.len() {
            self.hand_over(&mut monitor, cpu);
        }
        let met = self.processes.read().unwrap_or_else(PoisonError::into_inner).met();
        let accesses: Vec<Vec<u64>> = self
            .cpus
            .iter()
            .map(|c| {
                c.shared.accesses.iter().take(met.len() + 1).map(|a| a.load(Ordering::Relaxed)).collect()
            })
            .collect();
        let text = monitor.result(&met, &accesses, self.lost.load(Ordering::Relaxed));
        fs::write(&self.output, text).map_err(|e| format!("{}: {e}", self.output))
    }
}

impl Behind for Plugin {
    #[inline(always)]
    fn line_shift(&self) -> u32 {
        self.line_shift
    }

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
        let place = self.places.told(physical);
        if place.is_none() && !self.places.in_disk(physical) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        place.map(|p| p >> PAGE_SHIFT << PAGE_SHIFT | (address & ((1 << PAGE_SHIFT) - 1)))
    }

    #[cold]
    fn process(&self, cpu: usize) -> u16 {
        let processes = self.processes.read().unwrap_or_else(PoisonError::into_inner);
        processes.on(cpu, |physical| self.places.physical(physical))
    }

    fn flush(&self, cpu: usize) {
        let mut monitor = self.model();
        // It may have ended while this waited.
        if self.counting.load(Ordering::Relaxed) {
            self.hand_over(&mut monitor, cpu);
        }
        self.cpus[cpu].shared.pending.clear();
    }
}

extern "C" fn on_exit(_: Id, _: *mut c_void) {
    if let Some(plugin) = PLUGIN.get()
        && let Err(why) = plugin.end()
    {
        eprintln!("homenode's monitor: {why}");
    }
}

extern "C" fn on_translation(_: Id, block: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let api = &plugin.api;
    let watching = plugin.watching.load(Ordering::SeqCst);
    let nothing = std::ptr::null_mut();
    // SAFETY: QEMU passes the block that it translates, and its instructions are valid meanwhile.
    unsafe {
        for i in 0..(api.instructions)(block) {
            let instruction = (api.instruction)(block, i);
            let kernel = (api.address)(instruction) >> 63 != 0;
            let (bytes, size) = api.bytes(instruction);
            let bytes = &bytes[..size];
            if let Some(code) = decode::mark(bytes) {
                (api.on_execution)(instruction, on_mark, NO_REGISTERS, usize::from(code) as *mut c_void);
            }
            if !watching {
                continue;
            }
            if kernel && decode::invalidates(bytes) {
                (api.on_execution)(instruction, on_invalidation, NO_REGISTERS, nothing);
            }
            if !kernel && decode::synchronises(bytes) {
                (api.on_execution)(instruction, on_synchronisation, NO_REGISTERS, nothing);
            }
            let accessed = if kernel { on_kernel_access } else { on_user_access };
            (api.on_access)(instruction, accessed, NO_REGISTERS, LOADS_AND_STORES, nothing);
        }
    }
}

extern "C" fn on_invalidation(cpu: u32, _: *mut c_void) {
    if let Some(slot) = PLUGIN.get().and_then(|p| p.cpus.get(cpu as usize)) {
        // SAFETY: a call-back of this CPU.
        unsafe { (*slot.own.get()).forget(&slot.shared) };
    }
}

/// Before a locked instruction or a system call of a program: what it did is known to all before what follows.
extern "C" fn on_synchronisation(cpu: u32, _: *mut c_void) {
    if let Some(plugin) = PLUGIN.get()
        && let Some(slot) = plugin.cpus.get(cpu as usize)
        && !slot.shared.pending.is_empty()
    {
        plugin.flush(cpu as usize);
    }
}

extern "C" fn on_mark(_: u32, code: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let done = match code as usize as u16 {
        START => plugin.start(),
        BEGIN => plugin.begin(),
        END | STOP => plugin.end(),
        INTERVAL => {
            plugin.next_interval();
            Ok(())
        }
        _ => Ok(()),
    };
    if let Err(why) = done {
        *plugin.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

extern "C" fn on_user_access(cpu: u32, what: u32, address: u64, _: *mut c_void) {
    on_access(cpu, what, address, false);
}

extern "C" fn on_kernel_access(cpu: u32, what: u32, address: u64, _: *mut c_void) {
    on_access(cpu, what, address, true);
}

#[inline(always)]
fn on_access(cpu: u32, what: u32, address: u64, kernel: bool) {
    // SAFETY: call-backs are registered after it was set, and it stays.
    let plugin = unsafe { &*READY.load(Ordering::Relaxed) };
    if !plugin.counting.load(Ordering::Relaxed) {
        return;
    }
    let Some(slot) = plugin.cpus.get(cpu as usize) else { return };
    // SAFETY: a call-back of this CPU.
    let own = unsafe { &mut *slot.own.get() };
    own.access(&slot.shared, plugin, cpu as usize, what, address, kernel);
}
