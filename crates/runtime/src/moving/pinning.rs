//! What in the process can pin memory, or has others read it behind our back: then pages are not copied.
//!
//! A device or io_uring that has pinned a page goes on using *that* page. If its contents are copied to another one,
//! the program and the device no longer see the same memory: silent corruption. What pins cannot be asked for page by page; so
//! copying is off, for good, as soon as something in the process could.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use homenode_model::Bytes;
use homenode_sys::file::File;
use homenode_sys::maps;

/// Beginnings of what `/proc/self/fd` and `/proc/self/maps` call such things, and what they are.
const NAMES: &[(&str, &str)] = &[
    ("anon_inode:[io_uring]", "io_uring, which can register buffers"),
    ("/[aio]", "asynchronous I/O (io_setup)"),
    ("/dev/infiniband/", "InfiniBand verbs, which register memory"),
    ("/dev/nvidia", "an NVIDIA device, which can pin memory"),
    ("/dev/kfd", "an AMD device, which can pin memory"),
    ("/dev/dri/", "a graphics device, which can pin memory"),
    ("/dev/accel/", "an accelerator, which can pin memory"),
    ("/dev/vfio/", "a device driven from user space (vfio)"),
    ("/dev/iommu", "a device driven from user space (iommufd)"),
    ("/dev/xpmem", "memory that other processes map (xpmem)"),
    ("/dev/knem", "memory that other processes copy (knem)"),
    ("/dev/hfi1", "Omni-Path, which pins memory"),
    ("/dev/cxi", "Slingshot, which pins memory"),
    ("/dev/udmabuf", "buffers shared with devices (udmabuf)"),
    ("/dmabuf:", "buffers shared with devices (dma-buf)"),
    ("anon_inode:kvm", "a virtual machine, whose memory this is"),
    ("/dev/kvm", "a virtual machine, whose memory this is"),
];

/// Variables by which MPI tells that there are peers on this machine; they may read this memory directly
/// (process_vm_readv), which nobody can intercept.
const PEERS: &[&CStr] = &[
    c"OMPI_COMM_WORLD_LOCAL_SIZE",
    c"MPI_LOCALNRANKS",
    c"PMIX_LOCAL_SIZE",
    c"MV2_COMM_WORLD_LOCAL_SIZE",
    c"SLURM_STEP_TASKS_PER_NODE",
];

static FOUND: OnceLock<&'static str> = OnceLock::new();

/// From a hook: the program has just made something that pins memory. Copying is off from now on; what is armed is disarmed.
pub fn pins(what: &'static str) {
    if FOUND.set(what).is_ok() {
        super::disarm::disarm_all();
    }
}

/// What in the process can pin memory, if anything, as part of a sentence: copying is off because of it.
pub fn pinning() -> Option<String> {
    found().map(|what| format!("pages are not copied: there is {what}"))
}

/// What was found so far.
pub fn found() -> Option<&'static str> {
    FOUND.get().copied()
}

/// A name of a mapping or descriptor is seen.
pub fn see_mapping(name: &[u8]) {
    if let Some((_, what)) = NAMES.iter().find(|(begin, _)| name.starts_with(begin.as_bytes())) {
        let _ = FOUND.set(what);
    }
}

/// A path is opened by the program.
pub fn see_path(path: &[u8]) {
    if path.starts_with(b"/dev/")
        && let Some((_, what)) = NAMES.iter().find(|(begin, _)| path.starts_with(begin.as_bytes()))
    {
        pins(what);
    }
}

/// What is known without looking at descriptors, but for the first time; `fixed` is what the kernel accounts for.
pub fn look(fixed: &maps::Fixed) -> Option<&'static str> {
    static FIRST: AtomicBool = AtomicBool::new(false);
    if let Some(what) = found() {
        return Some(what);
    }
    if fixed.pinned != Bytes::ZERO {
        let _ = FOUND.set("pinned memory (VmPin)");
    }
    if !FIRST.swap(true, Ordering::Relaxed) {
        if PEERS.iter().any(|name| is_several(name)) {
            let _ = FOUND.set("other ranks on this machine, which may read this memory (process_vm_readv)");
        }
        descriptors();
    }
    found()
}

/// Looks at the process's descriptors. What pins memory has one before it does: who looks after pages have gone from where the program
/// has them, and before they are copied, sees whatever may have pinned them before.
pub fn look_at_descriptors() -> Option<&'static str> {
    if found().is_none() {
        descriptors();
    }
    found()
}

/// Whether an environment variable says a number above one.
fn is_several(name: &CStr) -> bool {
    // SAFETY: looks the environment up, as every program does; the text is read at once.
    let value = unsafe {
        let p = libc::getenv(name.as_ptr());
        if p.is_null() { return false } else { CStr::from_ptr(p) }
    };
    let digits = value.to_bytes().iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0_u64, |n, c| n.saturating_mul(10).saturating_add(u64::from(c - b'0'))) > 1
}

fn descriptors() {
    let Ok(folder) = File::folder(c"/proc/self/fd") else {
        // Not knowing is not being safe.
        let _ = FOUND.set("descriptors that cannot be looked at (/proc is not readable)");
        return;
    };
    let _ = folder.entries(|name| {
        let mut link = [0; 64];
        let Some(link) = folder.link(name, &mut link) else { return true };
        if link.starts_with(b"anon_inode:[userfaultfd]")
            && !name.to_str().ok().and_then(|n| n.parse().ok()).is_some_and(homenode_sys::descriptor::is_own)
        {
            let _ = FOUND.set("user-space page faults of the program's own (userfaultfd)");
        } else {
            see_mapping(link);
        }
        found().is_none()
    });
}
