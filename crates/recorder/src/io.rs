//! The few system calls that write a recording, made directly. The C library's functions are
//! cancellation points, and a cancelled thread must not unwind out of the recorder.

use std::ffi::CStr;

/// Opens `name` in the directory `dir`, close-on-exec; negative if it cannot be opened.
pub fn open_at(dir: i32, name: &CStr, flags: i32) -> i32 {
    // SAFETY: a C string and plain numbers.
    unsafe { libc::syscall(libc::SYS_openat, dir, name.as_ptr(), flags | libc::O_CLOEXEC, 0o600) as i32 }
}

/// Closes a descriptor.
pub fn close(fd: i32) {
    // SAFETY: the descriptor is ours.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Writes once. Returns the system's answer.
pub fn write(fd: i32, bytes: &[u8]) -> isize {
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::syscall(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) as isize }
}

/// Writes once at the file's beginning.
pub fn write_first(fd: i32, bytes: &[u8]) {
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::syscall(libc::SYS_pwrite64, fd, bytes.as_ptr(), bytes.len(), 0_i64) };
}

/// Writes everything.
///
/// # Errors
/// The system's answer to the first failing call.
pub fn write_all(fd: i32, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let n = write(fd, bytes);
        if n < 0 {
            let e = std::io::Error::last_os_error();
            if e.kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            return Err(e);
        }
        bytes = &bytes[n as usize..];
    }
    Ok(())
}
