//! What QEMU calls: at the start, when it translates, when an access or one of the special
//! instructions is executed.
//!
//! Before the guest's side says that the program starts, only its marks are looked for, so that a
//! boot costs nothing; then everything is translated anew. Nothing of this may panic across the
//! border, and nothing waits but for the model's lock.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use homenode_wire::monitor::MonitorCommand;

use crate::api::{Accessed, Api, Id, Info, LOADS_AND_STORES, NO_REGISTERS};
use crate::config;
use crate::cpu::{Backend, Desk, Shared, VirtualCpu};
use crate::decode::InstructionOwner;
use crate::firsts::FirstStores;
use crate::memory::GuestMemory;
use crate::monitor::{AccessesByCpu, Monitor, Reach};
use crate::place::PhysicalMap;
use crate::process::Processes;
use crate::translate::PAGE_SHIFT;
use crate::word::WRITE;
use crate::{control, decode, emulator, word};

#[derive(Debug)]
struct Slot {
    own: UnsafeCell<VirtualCpu>,
    shared: &'static Shared,
    /// CPUs with the same first-level cache.
    siblings: Vec<usize>,
}

// SAFETY: `own` is used by the call-backs of one CPU, which QEMU never runs at the same time; the
// rest is atomic.
unsafe impl Sync for Slot {}

#[derive(Debug)]
struct Plugin {
    api: Api,
    cpus: Vec<Slot>,
    monitor: Mutex<Monitor>,
    places: PhysicalMap,
    nodes: Vec<u64>,
    processes: RwLock<Processes>,
    firsts: FirstStores,
    /// Accesses are reported: everything has been translated for that.
    watching: AtomicBool,
    counting: AtomicBool,
    /// Accesses to places that are neither memory nor a device.
    lost: AtomicU64,
    /// What was in the way of the last beginning or end.
    trouble: Mutex<Option<String>>,
    line_shift: u32,
    output: PathBuf,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
/// One for each CPU that QEMU may have, for ever: call-backs are registered after they were made.
static DESKS: AtomicPtr<Desk> = AtomicPtr::new(std::ptr::null_mut());

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
    let (version, cpus) = unsafe { ((*info).version, (*info).max_cpus) };
    let installed = match (value("emulator"), value("config")) {
        (Some(word), _) => emulator::install(id, version, word),
        (None, Some(path)) => install(id, version, cpus.max(1) as usize, path),
        (None, None) => Err("it needs config=FILE or emulator=WORD".into()),
    };
    match installed {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("homenode's monitor: {why}");
            1
        }
    }
}

fn install(id: Id, version: c_int, cpus: usize, path: &str) -> Result<(), String> {
    let api = Api::find(version).map_err(|name| format!("this QEMU has no {name}"))?;
    // SAFETY: both functions only look at the number.
    if !word::understood(|w| unsafe { (api.is_store)(w) }, |w| unsafe { (api.size_shift)(w) }) {
        return Err("this QEMU tells of accesses in words that are not known".into());
    }
    let bytes = fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let config = config::parse(&bytes).map_err(|e| format!("{path}: {e}"))?;
    let monitor = Monitor::new(&config)?;
    if cpus > monitor.cpus() {
        return Err(format!("QEMU has {cpus} CPUs and {path} {}", monitor.cpus()));
    }
    let slot = |cpu| Slot {
        own: UnsafeCell::default(),
        shared: Box::leak(Box::new(Shared::new(monitor.front(cpu)))),
        siblings: monitor.siblings(cpu),
    };
    let cpus: Vec<Slot> = (0..monitor.cpus()).map(slot).collect();
    let desks: Box<[Desk]> = cpus.iter().map(|slot| Desk::of(slot.shared)).collect();
    DESKS.store(Box::leak(desks).as_mut_ptr(), Ordering::Release);
    let plugin = Plugin {
        api,
        cpus,
        places: monitor.places().clone(),
        nodes: config.machine.nodes.iter().map(|n| n.memory.0).collect(),
        processes: RwLock::new(Processes::new(config.kernel)),
        firsts: FirstStores::new(monitor.places().pages()),
        line_shift: monitor.line_shift(),
        monitor: Mutex::new(monitor),
        watching: AtomicBool::new(false),
        counting: AtomicBool::new(false),
        lost: AtomicU64::new(0),
        trouble: Mutex::new(None),
        output: config.output,
    };
    PLUGIN.set(plugin).map_err(|_| "it is loaded twice")?;
    // SAFETY: the launcher hands its end of a socket to QEMU for this plug-in alone.
    unsafe { control::listen(config.control, act) };
    on_reset(id);
    Ok(())
}

/// Asks to be called; at the start, and again after everything was forgotten so that it is
/// translated anew.
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
fn act(order: MonitorCommand) -> Result<(), String> {
    let plugin = PLUGIN.get().ok_or("not ready")?;
    let done = match order {
        MonitorCommand::End => plugin.end(),
    };
    let trouble = plugin.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
    done.and(trouble.map_or(Ok(()), Err))
}

impl Plugin {
    fn model(&self) -> MutexGuard<'_, Monitor> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program starts: everything is looked at from now on.
    fn start(&self) -> Result<(), String> {
        let memory = GuestMemory::find(&self.nodes);
        self.processes.write().unwrap_or_else(PoisonError::into_inner).read_from(memory);
        if !self.watching.swap(true, Ordering::SeqCst) {
            // SAFETY: QEMU's function, on a thread of a CPU; `on_reset` is called once no CPU
            // executes.
            unsafe { (self.api.reset)(ID.load(Ordering::Relaxed), on_reset) };
        }
        self.begin()
    }

    fn begin(&self) -> Result<(), String> {
        let mut monitor = self.model();
        for slot in &self.cpus {
            slot.shared.pending.take(|_| {});
            slot.shared.front.clear();
        }
        monitor.restart(self.accesses())?;
        self.firsts.restart();
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
                    let (front, heard) = (&other.shared.front, other.shared.pending.heard());
                    if access.write { front.lose(line, heard) } else { front.share(line, heard) }
                }
            }
            for sibling in &slot.siblings {
                self.cpus[*sibling].shared.front.lose_set(line);
            }
        });
    }

    /// All accesses so far. They are never set back: their CPUs count on meanwhile.
    fn accesses(&self) -> AccessesByCpu {
        let of = |slot: &Slot| slot.shared.accesses.iter().map(|a| a.load(Ordering::Relaxed)).collect();
        self.cpus.iter().map(of).collect()
    }

    fn next_interval(&self) {
        let mut monitor = self.model();
        for cpu in 0..self.cpus.len() {
            self.hand_over(&mut monitor, cpu);
        }
        monitor.next_interval(&self.accesses());
        self.firsts.next_interval();
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
        let mut found = monitor.result(&met, &self.accesses(), self.lost.load(Ordering::Relaxed));
        (found.codes, found.firsts) = self.firsts.found();
        // What is known would be counted without a question.
        self.cpus.iter().for_each(|slot| slot.shared.front.clear());
        let bytes = homenode_wire::encode(&found).map_err(|e| e.to_string())?;
        fs::write(&self.output, bytes).map_err(|e| format!("{}: {e}", self.output.display()))
    }
}

impl Backend for Plugin {
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

    #[cold]
    fn stores(&self, cpu: usize, process: u16, (page, physical): (u64, u64), at: u64) {
        // SAFETY: there is a desk for each CPU; within a call-back of this CPU.
        let code = || unsafe { (*DESKS.load(Ordering::Relaxed).add(cpu)).code(at) };
        self.firsts.store((process, page, physical), cpu, code);
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
            let at = (api.address)(instruction);
            let kernel = at >> 63 != 0;
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
            let place = if kernel { InstructionOwner::Kernel } else { decode::flow(bytes) };
            let accessed = on_access(api.version, place);
            // A call is known by where it returns to.
            let told = if place == InstructionOwner::Call { at + size as u64 } else { at };
            (api.on_access)(
                instruction,
                accessed,
                NO_REGISTERS,
                LOADS_AND_STORES,
                told as usize as *mut c_void,
            );
        }
    }
}

extern "C" fn on_invalidation(cpu: u32, _: *mut c_void) {
    if let Some(slot) = PLUGIN.get().and_then(|p| p.cpus.get(cpu as usize)) {
        // SAFETY: a call-back of this CPU.
        unsafe { (*slot.own.get()).forget(slot.shared) };
    }
}

/// Before a locked instruction or a system call of a program: what it did is known to all before
/// what follows.
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

/// What is called at an access. Version 1 tells of 16 bytes as of two times 8, later ones as of 16;
/// of more bytes always in pieces.
const fn on_access(version: c_int, place: InstructionOwner) -> Accessed {
    match (version, place) {
        (1, InstructionOwner::Kernel) => on_kernel_access::<8>,
        (1, InstructionOwner::Program) => on_user_access::<8>,
        (1, InstructionOwner::Call) => on_call::<8>,
        (1, InstructionOwner::Return) => on_return::<8>,
        (_, InstructionOwner::Kernel) => on_kernel_access::<16>,
        (_, InstructionOwner::Program) => on_user_access::<16>,
        (_, InstructionOwner::Call) => on_call::<16>,
        (_, InstructionOwner::Return) => on_return::<16>,
    }
}

extern "C" fn on_user_access<const MOST: u64>(cpu: u32, what: u32, address: u64, at: *mut c_void) {
    // SAFETY: there is one for each CPU, as was made sure before call-backs were registered.
    let desk = unsafe { &*DESKS.load(Ordering::Relaxed).add(cpu as usize) };
    if !desk.answers(MOST, what, address, false) {
        behind_the_desk(cpu, what, address, at);
    }
}

extern "C" fn on_kernel_access<const MOST: u64>(cpu: u32, what: u32, address: u64, at: *mut c_void) {
    // SAFETY: as above.
    let desk = unsafe { &*DESKS.load(Ordering::Relaxed).add(cpu as usize) };
    if !desk.answers(MOST, what, address, true) {
        behind_the_desk(cpu, what, address, at);
    }
}

/// A call of the program's, which stores its return address. It may load the function's before.
extern "C" fn on_call<const MOST: u64>(cpu: u32, what: u32, address: u64, back: *mut c_void) {
    // SAFETY: as above; a call-back of this CPU.
    let desk = unsafe { &*DESKS.load(Ordering::Relaxed).add(cpu as usize) };
    if what & WRITE != 0 {
        // SAFETY: as above.
        unsafe { desk.enter(address, back as u64) };
    }
    // The return address may be another line's.
    on_user_access::<MOST>(cpu, what, address, back.wrapping_byte_sub(1));
}

/// A return of the program's, which loads its address.
extern "C" fn on_return<const MOST: u64>(cpu: u32, what: u32, address: u64, at: *mut c_void) {
    // SAFETY: as above; a call-back of this CPU.
    unsafe { (*DESKS.load(Ordering::Relaxed).add(cpu as usize)).leave(address) };
    on_user_access::<MOST>(cpu, what, address, at);
}

/// An access that the desk does not answer, as all do while nothing is counted, by the instruction
/// at `at`. A C function, because nothing unwinds out of these: so a call-back need not keep a
/// frame for it, but ends by jumping here.
#[inline(never)]
extern "C" fn behind_the_desk(cpu: u32, what: u32, address: u64, at: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    if !plugin.counting.load(Ordering::Relaxed) {
        return;
    }
    let Some(slot) = plugin.cpus.get(cpu as usize) else { return };
    // SAFETY: there is one for each CPU; a call-back of this CPU.
    let (desk, own) = unsafe { (&*DESKS.load(Ordering::Relaxed).add(cpu as usize), &mut *slot.own.get()) };
    own.access((slot.shared, desk), plugin, cpu as usize, (what, address), at as u64);
}
