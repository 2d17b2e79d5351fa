//! What QEMU calls: when it translates, at every access, at every system call, at the end.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use homenode_log::Mark;
use homenode_recorder::channel::{self, ProgramMessage, Whose};
use homenode_recorder::state::{self, RecorderOptions};
use homenode_wire::monitor::EmulatorSettings;

use super::code::AddressMap;
use super::cpu::{ALWAYS, EmulatedThread};
use super::cpus::{self, with};
use super::fast;
use super::x86::{self, Does, InstructionAccess};
use crate::api::{Accessed, Api, Id, LOADS_AND_STORES, NO_REGISTERS};
use crate::word;

struct Plugin {
    api: Api,
    see: See,
    code: AddressMap,
    /// Nothing is loaded into the program: all that there is is the program's, and there are no
    /// marks.
    alone: bool,
    /// The guest library has told whose code is where.
    told: AtomicBool,
    /// Where the program break began, or 0.
    heap: AtomicU64,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

// System calls of x86-64.
const READ: i64 = 0;
const BREAK: i64 = 12;
const PREAD: i64 = 17;
const EXIT: i64 = 60;

/// Begins. `word` is an [`EmulatorSettings`], as the launcher writes it on QEMU's command line.
///
/// # Errors
/// What makes no sense or cannot be opened.
pub fn install(id: Id, version: c_int, word: &str) -> Result<(), String> {
    let api = Api::find(version).map_err(|name| format!("this QEMU has no {name}"))?;
    // SAFETY: both functions only look at the number.
    if !word::understood(|w| unsafe { (api.is_store)(w) }, |w| unsafe { (api.size_shift)(w) }) {
        return Err("this QEMU tells of accesses in words that are not known".into());
    }
    let config: EmulatorSettings = homenode_wire::decode_word(word).map_err(|e| e.to_string())?;
    let lines = config.filter_lines;
    let options =
        RecorderOptions { directory: config.recording, filter_lines: lines, count_only: false, claim: false };
    state::open(&options)?;
    // SAFETY: the handler only stores to an atomic.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    cpus::make();
    let plugin = Plugin {
        api,
        see: See::of(version, lines),
        code: AddressMap::new(),
        alone: config.alone,
        told: AtomicBool::new(false),
        heap: AtomicU64::new(0),
    };
    PLUGIN.set(plugin).map_err(|_| "it is loaded twice")?;
    // SAFETY: the functions are QEMU's, `id` is what it calls this plug-in.
    unsafe {
        (api.register_translation)(id, on_translation);
        (api.register_call)(id, on_call);
        (api.register_return)(id, on_return);
        (api.register_cpu)(id, on_cpu);
        (api.register_exit)(id, on_exit, std::ptr::null_mut());
    }
    Ok(())
}

extern "C" fn in_child() {
    state::stay_off();
}

extern "C" fn on_exit(_: Id, _: *mut c_void) {
    let _ = std::panic::catch_unwind(homenode_recorder::stop);
}

/// What is called at accesses, for a version of the interface.
struct See {
    /// Most bytes of an access.
    most: u64,
    frame: Accessed,
    system: Accessed,
}

impl See {
    /// Version 1 tells of 16 bytes as of two times 8, later ones as of 16; of more bytes always in
    /// pieces.
    const fn of(version: c_int, filter_lines: u32) -> Self {
        match (filter_lines, version) {
            (1, _) => {
                Self { most: ALWAYS, frame: on_frame_access::<ALWAYS>, system: on_system_access::<ALWAYS> }
            }
            (_, 1) => Self { most: 8, frame: on_frame_access::<8>, system: on_system_access::<8> },
            _ => Self { most: 16, frame: on_frame_access::<16>, system: on_system_access::<16> },
        }
    }

    /// For an instruction that does this.
    fn usual(&self, does: Does) -> Accessed {
        match (does, self.most) {
            (_, ALWAYS) => on_access::<ALWAYS>,
            (Does::Load(bytes), most) => fast::load(bytes.min(most)),
            (Does::Store(bytes), most) => fast::store(bytes.min(most)),
            (Does::Any, 8) => on_access::<8>,
            (Does::Any, _) => on_access::<16>,
        }
    }
}

/// As [`with`], with the plug-in.
#[inline(always)]
fn with_all(cpu: u32, f: impl FnOnce(&Plugin, &mut EmulatedThread)) {
    // SAFETY: call-backs are registered after it was set.
    let plugin = unsafe { PLUGIN.get().unwrap_unchecked() };
    with(cpu, |own| f(plugin, own));
}

extern "C" fn on_cpu(_: Id, cpu: u32) {
    with_all(cpu, |plugin, own| {
        if plugin.alone {
            own.start(0, 0, 0);
        }
    });
}

extern "C" fn on_translation(_: Id, block: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let api = &plugin.api;
    // SAFETY: QEMU passes the block that it translates, and its instructions are valid meanwhile.
    unsafe {
        for i in 0..(api.instructions)(block) {
            let instruction = (api.instruction)(block, i);
            let pc = (api.address)(instruction);
            let (bytes, size) = api.bytes(instruction);
            let (access, does) = x86::access(&bytes[..size], pc);
            let see = match plugin.whose(pc) {
                Whose::Recorder => continue,
                Whose::System if access == InstructionAccess::No => continue,
                Whose::System => plugin.see.system,
                Whose::Program => match access {
                    InstructionAccess::No => continue,
                    InstructionAccess::Fixed(to) if plugin.code.constant(to) => continue,
                    InstructionAccess::Fence => {
                        (api.on_execution)(instruction, on_fence, NO_REGISTERS, std::ptr::null_mut());
                        continue;
                    }
                    InstructionAccess::Frame => plugin.see.frame,
                    InstructionAccess::Atomic => on_atomic,
                    InstructionAccess::Fixed(_) | InstructionAccess::Usual => plugin.see.usual(does),
                },
            };
            (api.on_access)(instruction, see, NO_REGISTERS, LOADS_AND_STORES, pc as *mut c_void);
        }
    }
}

impl Plugin {
    fn whose(&self, pc: u64) -> Whose {
        if self.alone {
            return Whose::Program;
        }
        match self.code.whose(pc) {
            Some(whose) => whose,
            // Before anything is known the loader and the libraries' constructors run.
            None if !self.told.load(Ordering::Acquire) => Whose::System,
            None => Whose::Program,
        }
    }

    fn tell(&self, cpu: &mut EmulatedThread, message: ProgramMessage) {
        match message {
            ProgramMessage::Start { id, stack_low, stack_high } => cpu.start(id, stack_low, stack_high),
            ProgramMessage::End => cpu.end(),
            ProgramMessage::Stop => homenode_recorder::stop(),
            ProgramMessage::Synchronise { interval } => cpu.synchronise(Some(interval)),
            ProgramMessage::Constant { low, high } => self.code.add_constant(low, high),
            ProgramMessage::Code { low, high, whose } => {
                self.code.add(low, high, whose);
                self.told.store(true, Ordering::Release);
            }
            ProgramMessage::Mark(Mark::Heap { .. }) => {
                cpu.mark(&Mark::Heap { address: self.heap.load(Ordering::Relaxed) });
            }
            ProgramMessage::Mark(mark) => {
                match mark {
                    Mark::Alloc { address, bytes, .. } => self.code.born(address, bytes),
                    Mark::Free { address, .. } => self.code.dies(address),
                    _ => {}
                }
                cpu.mark(&channel::numbered(mark, state::order));
            }
        }
    }
}

extern "C" fn on_access<const MOST: u64>(cpu: u32, what: u32, address: u64, pc: *mut c_void) {
    with(cpu, |own| own.access::<MOST>(what, address, pc as u64));
}

extern "C" fn on_frame_access<const MOST: u64>(cpu: u32, what: u32, address: u64, pc: *mut c_void) {
    with(cpu, |own| {
        if !own.in_stack(address) {
            own.access::<MOST>(what, address, pc as u64);
        }
    });
}

extern "C" fn on_system_access<const MOST: u64>(cpu: u32, what: u32, address: u64, pc: *mut c_void) {
    with_all(cpu, |plugin, own| {
        if own.in_object(&plugin.code, address) {
            own.library_access::<MOST>(what, address, pc as u64);
        }
    });
}

extern "C" fn on_atomic(cpu: u32, what: u32, address: u64, _: *mut c_void) {
    with(cpu, |own| own.atomic(what, address));
}

extern "C" fn on_fence(cpu: u32, _: *mut c_void) {
    with(cpu, |own| {
        own.mark(&Mark::Flush {});
        own.synchronise(None);
    });
}

#[allow(clippy::too_many_arguments)] // QEMU's
extern "C" fn on_call(
    _: Id,
    cpu: u32,
    number: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    _: u64,
    _: u64,
) {
    with_all(cpu, |plugin, own| {
        (own.filling, own.breaking) = (None, false);
        match number {
            channel::CALL => {
                if let Some(message) = ProgramMessage::of([a, b, c, d, e, f]) {
                    // An error of ours must not end the program.
                    let tell = std::panic::AssertUnwindSafe(|| plugin.tell(own, message));
                    if std::panic::catch_unwind(tell).is_err() {
                        state::switch_off("stopped: internal error; the program goes on unrecorded");
                    }
                }
            }
            READ | PREAD => own.filling = Some(b),
            BREAK => own.breaking = true,
            EXIT => own.end(),
            _ => {}
        }
    });
}

extern "C" fn on_return(_: Id, cpu: u32, _: i64, result: i64) {
    with_all(cpu, |plugin, own| {
        if own.breaking && plugin.heap.load(Ordering::Relaxed) == 0 {
            plugin.heap.store(result as u64, Ordering::Relaxed);
        }
        if let (Some(to), Ok(bytes)) = (own.filling.take(), u64::try_from(result))
            && (plugin.alone || own.in_object(&plugin.code, to))
        {
            own.filled(to, bytes);
        }
    });
}
