//! Pinning: what in the process can pin memory, or makes others use it unseen. Nothing is armed
//! then.
//!
//! A device or io_uring goes on using the *page* that it has pinned. If the mover copies the
//! contents to another page, program and device no longer see the same memory, which corrupts data
//! silently. If a worker of the kernel comes to an armed page without having pinned it, it finds no
//! page and fails. That holds for blocks that are only inaccessible, too. The mover cannot ask for
//! either, page by page. So it ends next touch for good as soon as something in the process could
//! pin memory. The kernel's own moves go on: they refuse pinned pages.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use homenode_sys::file::File;
use homenode_sys::{maps, socket};

use super::disarm;

/// Prefixes of the names of such things in `/proc/self/fd` and `/proc/self/maps`, with a
/// description.
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

/// Sockets of these families pin memory that they are given.
const FAMILIES: &[(i32, &str)] = &[
    (libc::AF_XDP, "a socket that puts packets into the program's own pages (AF_XDP)"),
    (libc::AF_RDS, "a socket that can register memory (AF_RDS)"),
];
const ZEROCOPY: &str = "a socket that sends from the program's own pages (MSG_ZEROCOPY)";

/// Variables by which MPI tells that there are peers on this machine. Peers may read this memory
/// directly (process_vm_readv), and nobody can intercept that.
const PEERS: &[&CStr] = &[
    c"OMPI_COMM_WORLD_LOCAL_SIZE",
    c"MPI_LOCALNRANKS",
    c"PMIX_LOCAL_SIZE",
    c"MV2_COMM_WORLD_LOCAL_SIZE",
    c"SLURM_STEP_TASKS_PER_NODE",
];

static FOUND: OnceLock<&'static str> = OnceLock::new();

/// From a hook: the program is about to make something that pins memory. Armed memory is disarmed,
/// and nothing is armed from now on.
pub fn pins(what: &'static str) {
    // Even if something was found before: its finder may not have disarmed everything yet.
    let _ = FOUND.set(what);
    disarm::disarm_all();
}

/// A sentence that names what can pin memory in the process, if anything. Nothing is armed because
/// of it.
pub fn pinning() -> Option<String> {
    found().map(|what| format!("no page follows its next touch any more, for there is {what}"))
}

/// What has been found so far.
pub fn found() -> Option<&'static str> {
    FOUND.get().copied()
}

/// The description of a thing of this name, if it can pin memory.
fn named(name: &[u8]) -> Option<&'static str> {
    NAMES.iter().find(|(begin, _)| name.starts_with(begin.as_bytes())).map(|(_, what)| *what)
}

/// Checks the name of a mapping or descriptor.
pub fn see_mapping(name: &[u8]) {
    if let Some(what) = named(name) {
        let _ = FOUND.set(what);
    }
}

/// Checks a path that the program opens.
pub fn see_path(path: &[u8]) {
    if path.starts_with(b"/dev/")
        && let Some(what) = named(path)
    {
        pins(what);
    }
}

/// From the hook of `socket`: the program is about to make a socket of this family.
pub fn see_family(family: i32) {
    family_pins(family).into_iter().for_each(pins);
}

/// From the hook of `setsockopt`. The socket may have come from another process.
pub fn see_option(level: i32, name: i32) {
    match (level, name) {
        (libc::SOL_XDP, libc::XDP_UMEM_REG) => see_family(libc::AF_XDP),
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY) => pins(ZEROCOPY),
        _ => {}
    }
}

/// From the hooks that send with these flags. The kernel keeps the pages until the network is done
/// with them.
pub fn see_sending(flags: i32) {
    if flags & libc::MSG_ZEROCOPY != 0 {
        pins(ZEROCOPY);
    }
}

fn family_pins(family: i32) -> Option<&'static str> {
    FAMILIES.iter().find(|(f, _)| *f == family).map(|(_, what)| *what)
}

/// What can pin memory, found without looking at descriptors (except the first time). `fixed`: what
/// the kernel accounts for.
pub fn look(fixed: &maps::Fixed) -> Option<&'static str> {
    static FIRST: AtomicBool = AtomicBool::new(false);
    if let Some(what) = found() {
        return Some(what);
    }
    if fixed.pinned > homenode_sources::rings::pinned() {
        let _ = FOUND.set("pinned memory (VmPin)");
    }
    if !FIRST.swap(true, Ordering::Relaxed) {
        if has_peers() {
            let _ = FOUND.set("another rank on this machine, which may read this memory (process_vm_readv)");
        }
        descriptors();
    }
    found()
}

/// Looks at the process's descriptors. Whatever pins memory has a descriptor before it does so. So
/// a look finds everything that may have pinned pages before, if it comes after the pages were
/// taken away or made inaccessible, and before anybody can touch them.
pub fn look_at_descriptors() -> Option<&'static str> {
    if found().is_none() {
        descriptors();
    }
    found()
}

/// Whether a launcher says that the process is one of several ranks on this machine. MPI libraries
/// read one another's memory past the C library, so no memory may be away from its place. Peers
/// cannot notice moves by the kernel.
pub fn has_peers() -> bool {
    PEERS.iter().any(|name| is_several(name))
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
    if let Some(what) = among_descriptors(c"/proc/self/fd") {
        let _ = FOUND.set(what);
    }
}

/// What can pin memory among the descriptors in this folder of links, if anything.
fn among_descriptors(folder: &CStr) -> Option<&'static str> {
    // An unknown descriptor may pin memory.
    let Ok(folder) = File::folder(folder) else {
        return Some("descriptors that cannot be looked at (/proc is not readable)");
    };
    let mut what = None;
    let read = folder.entries(|name| {
        let mut link = [0; 64];
        let Some(link) = folder.link(name, &mut link) else { return true };
        what = if link.starts_with(b"anon_inode:[userfaultfd]") && !is_own_userfaultfd(name) {
            Some("user-space page faults of the program's own (userfaultfd)")
        } else if link.starts_with(b"socket:") {
            number(name).and_then(socket_pins)
        } else {
            named(link)
        };
        what.is_none()
    });
    what.or_else(|| read.err().map(|_| "descriptors that cannot be looked at (/proc is not readable)"))
}

fn number(descriptor: &CStr) -> Option<i32> {
    descriptor.to_str().ok()?.parse().ok()
}

fn is_own_userfaultfd(descriptor: &CStr) -> bool {
    number(descriptor).is_some_and(homenode_sys::descriptor::is_own)
}

/// What this socket pins memory for, if it does. Its name does not tell. A socket that was closed
/// meanwhile holds none.
fn socket_pins(fd: i32) -> Option<&'static str> {
    let family = socket::option(fd, libc::SO_DOMAIN);
    if family.is_err_and(|e| ![libc::EBADF, libc::ENOTSOCK].contains(&e.errno.0)) {
        return Some("a socket that does not tell what it is");
    }
    // Without the option, no socket sends from the program's pages.
    let sends = || socket::option(fd, libc::SO_ZEROCOPY).is_ok_and(|on| on != 0).then_some(ZEROCOPY);
    family_pins(family.ok()?).or_else(sends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicUsize;

    /// A folder like `/proc/self/fd`, gone in the end.
    struct Descriptors(PathBuf);

    impl Descriptors {
        /// With numbers that none of this process has.
        fn new(links: &[&str]) -> Self {
            Self::numbered(links.iter().zip(1 << 24..).map(|(link, fd)| (fd, *link)))
        }

        fn numbered<'a>(links: impl Iterator<Item = (i32, &'a str)>) -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("homenode-pinning-{}-{n}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir(&folder).unwrap();
            for (fd, link) in links {
                symlink(link, folder.join(fd.to_string())).unwrap();
            }
            Self(folder)
        }

        fn pins(&self) -> Option<&'static str> {
            among_descriptors(&CString::new(self.0.as_os_str().as_bytes()).unwrap())
        }
    }

    impl Drop for Descriptors {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// What every program may have open.
    const HARMLESS: &[&str] = &[
        "/dev/null",
        "/dev/pts/3",
        "/dev/shm/nvidia",
        "/dev/nvme0n1",
        "/dev/urandom",
        "/home/me/dev/kfd",
        "anon_inode:[eventfd]",
        "anon_inode:[eventpoll]",
        "anon_inode:[perf_event]",
        "anon_inode:[pidfd]",
        "pipe:[4711]",
        "socket:[4712]",
        "/memfd:x (deleted)",
        "/a/path/that/is/longer/than/what/is/read/of/a/link/namely/sixty-four/bytes/at/most",
    ];

    #[test]
    fn what_pins_is_known_by_its_descriptor_among_others() {
        for (link, says) in [
            ("/dev/infiniband/uverbs0", "InfiniBand"),
            ("/dev/infiniband/rdma_cm", "InfiniBand"),
            ("/dev/nvidia0", "NVIDIA"),
            ("/dev/nvidiactl", "NVIDIA"),
            ("/dev/nvidia-uvm", "NVIDIA"),
            ("/dev/kfd", "AMD"),
            ("/dev/dri/renderD128", "graphics"),
            ("/dev/accel/accel0", "accelerator"),
            ("/dev/vfio/vfio", "vfio"),
            ("/dev/vfio/17", "vfio"),
            ("/dev/iommu", "iommufd"),
            ("/dev/xpmem", "xpmem"),
            ("/dev/knem", "knem"),
            ("/dev/hfi1_0", "Omni-Path"),
            ("/dev/cxi0", "Slingshot"),
            ("/dev/udmabuf", "udmabuf"),
            ("/dmabuf:", "dma-buf"),
            ("/dev/kvm", "virtual machine"),
            ("anon_inode:kvm-vm", "virtual machine"),
            ("anon_inode:[io_uring]", "io_uring"),
            ("/[aio] (deleted)", "asynchronous I/O"),
            // Not one of this process's own.
            ("anon_inode:[userfaultfd]", "userfaultfd"),
        ] {
            let mut links = HARMLESS.to_vec();
            links.insert(links.len() / 2, link);
            let found = Descriptors::new(&links).pins();
            assert!(found.is_some_and(|what| what.contains(says)), "{link}: {found:?}");
        }
        assert_eq!(Descriptors::new(HARMLESS).pins(), None);
        assert_eq!(Descriptors::new(&[]).pins(), None);
    }

    #[test]
    fn sockets_are_asked_what_they_are() {
        let plain = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(socket_pins(plain.as_raw_fd()), None);
        let on = 1_i32;
        // SAFETY: a number of that length.
        let set = unsafe {
            let (of, value) = (plain.as_raw_fd(), (&raw const on).cast());
            libc::setsockopt(of, libc::SOL_SOCKET, libc::SO_ZEROCOPY, value, size_of::<i32>() as u32)
        };
        assert_eq!(set, 0);
        assert_eq!(socket_pins(plain.as_raw_fd()), Some(ZEROCOPY));
        let among = [(plain.as_raw_fd(), "socket:[4713]"), (1 << 24, "pipe:[4711]")];
        assert_eq!(Descriptors::numbered(among.into_iter()).pins(), Some(ZEROCOPY));
        drop(plain);
        // SAFETY: plain numbers; what is made is owned by nobody else.
        let express = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW, 0) };
        if express < 0 {
            return println!("skipped: no AF_XDP here");
        }
        // SAFETY: as above.
        let express = unsafe { OwnedFd::from_raw_fd(express) };
        assert!(socket_pins(express.as_raw_fd()).is_some_and(|what| what.contains("AF_XDP")));
    }

    #[test]
    fn each_name_is_met_and_no_folder_is_not_safe() {
        for (begin, what) in NAMES {
            assert_eq!(named(begin.as_bytes()), Some(*what), "{begin} is behind another that begins so");
            assert_eq!(named(&begin.as_bytes()[..begin.len() - 1]), None, "{begin}");
        }
        let nowhere = Path::new("/nowhere/fd").as_os_str().as_bytes();
        let found = among_descriptors(&CString::new(nowhere).unwrap());
        assert!(found.is_some_and(|what| what.contains("not readable")), "{found:?}");
    }
}
