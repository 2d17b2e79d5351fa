//! QEMU's plug-in functions, looked up in the process that loads this library.
//!
//! Their names and types are those of QEMU's documentation (docs/devel/tcg-plugins). Nothing is
//! linked, so that one binary serves every version: what a version lacks, or has with another
//! signature, is decided in [`Api::find`].

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::AtomicI32;

/// What QEMU calls a plug-in.
pub type Id = u64;

/// The beginning of what QEMU tells about itself.
#[repr(C)]
#[derive(Debug)]
pub struct Info {
    /// Kind of machine, such as `x86_64`.
    pub target: *const c_char,
    /// The oldest version of the interface that it serves.
    pub oldest: c_int,
    /// The version that it has.
    pub version: c_int,
    /// A machine, not a process.
    pub system: bool,
    /// Virtual CPUs at the start.
    pub cpus: c_int,
    /// At most.
    pub max_cpus: c_int,
}

type Translated = extern "C" fn(Id, *mut c_void);
type Executed = extern "C" fn(u32, *mut c_void);
/// What is called at an access: CPU, QEMU's word for it, address, what was given when it was asked
/// for.
pub type Accessed = extern "C" fn(u32, u32, u64, *mut c_void);
type AtExit = extern "C" fn(Id, *mut c_void);
type Call = extern "C" fn(Id, u32, i64, u64, u64, u64, u64, u64, u64, u64, u64);
type Return = extern "C" fn(Id, u32, i64, i64);
type Started = extern "C" fn(Id, u32);
type Simple = extern "C" fn(Id);

/// No registers are read or written by a call-back.
pub const NO_REGISTERS: c_int = 0;
/// Loads and stores. QEMU 7.2's other filters fire on the wrong ones.
pub const LOADS_AND_STORES: c_int = 3;

/// QEMU's functions.
#[derive(Clone, Copy, Debug)]
pub struct Api {
    pub(crate) register_translation: unsafe extern "C" fn(Id, Translated),
    pub(crate) register_exit: unsafe extern "C" fn(Id, AtExit, *mut c_void),
    pub(crate) reset: unsafe extern "C" fn(Id, Simple),
    pub(crate) instructions: unsafe extern "C" fn(*const c_void) -> usize,
    pub(crate) instruction: unsafe extern "C" fn(*const c_void, usize) -> *mut c_void,
    pub(crate) address: unsafe extern "C" fn(*const c_void) -> u64,
    pub(crate) size: unsafe extern "C" fn(*const c_void) -> usize,
    pub(crate) on_access: unsafe extern "C" fn(*mut c_void, Accessed, c_int, c_int, *mut c_void),
    pub(crate) on_execution: unsafe extern "C" fn(*mut c_void, Executed, c_int, *mut c_void),
    pub(crate) is_store: unsafe extern "C" fn(u32) -> bool,
    pub(crate) size_shift: unsafe extern "C" fn(u32) -> u32,
    pub(crate) physical: unsafe extern "C" fn(u32, u64) -> *mut c_void,
    pub(crate) is_device: unsafe extern "C" fn(*const c_void) -> bool,
    pub(crate) physical_address: unsafe extern "C" fn(*const c_void) -> u64,
    pub(crate) register_call: unsafe extern "C" fn(Id, Call),
    pub(crate) register_return: unsafe extern "C" fn(Id, Return),
    pub(crate) register_cpu: unsafe extern "C" fn(Id, Started),
    bytes: *mut c_void,
    /// Version of the interface.
    pub version: c_int,
}

// SAFETY: the pointers are to functions of QEMU, which stay where they are and may be called from
// any of its threads.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string, and RTLD_DEFAULT is a handle.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The function of this name.
///
/// # Safety
/// `F` is the type of that function.
unsafe fn find<F: Copy>(name: &CStr) -> Result<F, String> {
    let found = look_up(name);
    if found.is_null() {
        return Err(name.to_string_lossy().into_owned());
    }
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: both are pointers, and the caller knows the type.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

impl Api {
    /// Finds the functions.
    ///
    /// # Errors
    /// The name of one that is missing.
    pub fn find(version: c_int) -> Result<Self, String> {
        // SAFETY: each field has the type that QEMU documents for the function of the name it is
        // found by.
        let api = unsafe {
            Self {
                register_translation: find(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
                register_exit: find(c"qemu_plugin_register_atexit_cb")?,
                reset: find(c"qemu_plugin_reset")?,
                instructions: find(c"qemu_plugin_tb_n_insns")?,
                instruction: find(c"qemu_plugin_tb_get_insn")?,
                address: find(c"qemu_plugin_insn_vaddr")?,
                size: find(c"qemu_plugin_insn_size")?,
                on_access: find(c"qemu_plugin_register_vcpu_mem_cb")?,
                on_execution: find(c"qemu_plugin_register_vcpu_insn_exec_cb")?,
                is_store: find(c"qemu_plugin_mem_is_store")?,
                size_shift: find(c"qemu_plugin_mem_size_shift")?,
                physical: find(c"qemu_plugin_get_hwaddr")?,
                is_device: find(c"qemu_plugin_hwaddr_is_io")?,
                physical_address: find(c"qemu_plugin_hwaddr_phys_addr")?,
                register_call: find(c"qemu_plugin_register_vcpu_syscall_cb")?,
                register_return: find(c"qemu_plugin_register_vcpu_syscall_ret_cb")?,
                register_cpu: find(c"qemu_plugin_register_vcpu_init_cb")?,
                bytes: find(c"qemu_plugin_insn_data")?,
                version,
            }
        };
        Ok(api)
    }

    /// The first bytes of an instruction: all of it, or as many as fit.
    ///
    /// # Safety
    /// `instruction` is one that QEMU is translating now.
    pub unsafe fn bytes(&self, instruction: *const c_void) -> ([u8; 16], usize) {
        // SAFETY: the caller's promise; `bytes` is the function that this version has.
        unsafe {
            let size = (self.size)(instruction).min(16);
            (first_bytes(self.version, self.bytes, instruction, size), size)
        }
    }
}

/// The first `size` bytes of an instruction, by the function `qemu_plugin_insn_data` of a version
/// of the interface.
///
/// # Safety
/// The function is that version's, the instruction has `size` bytes or more, and they are at most
/// 16.
unsafe fn first_bytes(
    version: c_int,
    function: *mut c_void,
    instruction: *const c_void,
    size: usize,
) -> [u8; 16] {
    let mut out = [0; 16];
    if version >= 3 {
        type Copy = unsafe extern "C" fn(*const c_void, *mut c_void, usize) -> usize;
        // SAFETY: since version 3 the function copies; `out` has room for `size` bytes.
        unsafe {
            let copy = std::mem::transmute::<*mut c_void, Copy>(function);
            copy(instruction, out.as_mut_ptr().cast(), size);
        }
    } else {
        type Point = unsafe extern "C" fn(*const c_void) -> *const u8;
        // SAFETY: before, it pointed to at least `size` bytes, valid while the instruction is being
        // translated.
        unsafe {
            let point = std::mem::transmute::<*mut c_void, Point>(function);
            std::ptr::copy_nonoverlapping(point(instruction), out.as_mut_ptr(), size);
        }
    }
    out
}

/// The version that is asked for: newer QEMUs, which have scoreboards, refuse version 1; older ones
/// know no other.
const fn asked(scoreboards: bool) -> i32 {
    if scoreboards { 2 } else { 1 }
}

/// The version of the interface that QEMU reads from a plug-in before it calls anything.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = {
    extern "C" fn choose() {
        // Came with version 2.
        let version = asked(!look_up(c"qemu_plugin_scoreboard_new").is_null());
        qemu_plugin_version.store(version, std::sync::atomic::Ordering::Relaxed);
    }
    choose
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    const CODE: [u8; 3] = [0x0f, 0x22, 0xd8];

    unsafe extern "C" fn point(instruction: *const c_void) -> *const u8 {
        instruction.cast()
    }

    unsafe extern "C" fn copy(instruction: *const c_void, to: *mut c_void, bytes: usize) -> usize {
        // SAFETY: the test's own arrays.
        unsafe { std::ptr::copy_nonoverlapping(instruction.cast::<u8>(), to.cast(), bytes) };
        bytes
    }

    #[test]
    fn an_instructions_bytes_are_read_by_every_version() {
        for (version, function) in [
            (1, point as *mut c_void),
            (2, point as *mut c_void),
            (3, copy as *mut c_void),
            (4, copy as *mut c_void),
        ] {
            // SAFETY: the functions have the types of these versions.
            let bytes = unsafe { first_bytes(version, function, CODE.as_ptr().cast(), CODE.len()) };
            assert_eq!((&bytes[..3], &bytes[3..]), (&CODE[..], &[0; 13][..]), "version {version}");
        }
    }

    #[test]
    fn the_version_is_chosen_when_the_library_is_loaded() {
        assert_eq!((asked(true), asked(false)), (2, 1));
        assert_eq!(qemu_plugin_version.load(Ordering::Relaxed), 1, "this test is no QEMU");
    }

    #[test]
    fn what_a_qemu_lacks_is_named() {
        assert_eq!(Api::find(2).unwrap_err(), "qemu_plugin_register_vcpu_tb_trans_cb");
    }
}
