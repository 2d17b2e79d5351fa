//! Reads files and folders of `/proc` and `/sys`, without allocation.

use std::ffi::CStr;

use crate::call::raw;
use crate::error::check;
use crate::{Result, Span, descriptor};

/// An open file or folder, for reading; closed at exec.
#[derive(Debug)]
pub struct File {
    fd: i32,
}

impl File {
    /// Opens for reading.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn open(path: &CStr) -> Result<Self> {
        Self::open_with(path, libc::O_RDONLY)
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn folder(path: &CStr) -> Result<Self> {
        Self::open_with(path, libc::O_RDONLY | libc::O_DIRECTORY)
    }

    fn open_with(path: &CStr, flags: i32) -> Result<Self> {
        let (at, flags) = (libc::AT_FDCWD as usize, (flags | libc::O_CLOEXEC) as usize);
        // SAFETY: a C string and plain numbers.
        let fd = unsafe { raw(libc::SYS_openat, [at, path.as_ptr() as usize, flags, 0, 0, 0]) };
        check("openat", Span::EMPTY, fd).map(|fd| {
            descriptor::note(fd as i32);
            Self { fd: fd as i32 }
        })
    }

    /// The descriptor's number.
    pub const fn fd(&self) -> i32 {
        self.fd
    }

    /// Reads once; how much. Interrupted reads are made again.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn read(&self, into: &mut [u8]) -> Result<usize> {
        loop {
            let (at, n) = (into.as_mut_ptr() as usize, into.len());
            // SAFETY: the buffer is valid for its length.
            let r = unsafe { raw(libc::SYS_read, [self.fd as usize, at, n, 0, 0, 0]) };
            if r != -(libc::EINTR as isize) {
                return check("read", Span::EMPTY, r);
            }
        }
    }

    /// Reads at an offset, once; how much.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize> {
        let (at, n) = (into.as_mut_ptr() as usize, into.len());
        // SAFETY: the buffer is valid for its length.
        let r = unsafe { raw(libc::SYS_pread64, [self.fd as usize, at, n, offset as usize, 0, 0]) };
        check("pread64", Span::EMPTY, r)
    }

    /// Fills `into` as far as the file goes; how much.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn read_all(&self, into: &mut [u8]) -> Result<usize> {
        let mut have = 0;
        while have < into.len() {
            match self.read(&mut into[have..])? {
                0 => break,
                n => have += n,
            }
        }
        Ok(have)
    }

    /// Calls `see` with each name in the folder, until it returns `false`.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn entries(&self, mut see: impl FnMut(&CStr) -> bool) -> Result<()> {
        /// Offsets of the length and the name in a record (`struct linux_dirent64`).
        const LENGTH: usize = 16;
        const NAME: usize = 19;
        let mut buffer = Buffer([0; 4096]);
        loop {
            let (at, n) = (buffer.0.as_mut_ptr() as usize, buffer.0.len());
            // SAFETY: the buffer is valid for its length.
            let r = unsafe { raw(libc::SYS_getdents64, [self.fd as usize, at, n, 0, 0, 0]) };
            let have = check("getdents64", Span::EMPTY, r)?;
            if have == 0 {
                return Ok(());
            }
            let mut rest = &buffer.0[..have];
            while rest.len() > NAME {
                let length =
                    usize::from(u16::from_ne_bytes([rest[LENGTH], rest[LENGTH + 1]])).min(rest.len());
                let Some(name) = rest.get(NAME..length) else { break };
                if CStr::from_bytes_until_nul(name).is_ok_and(|name| !see(name)) {
                    return Ok(());
                }
                rest = &rest[length..];
            }
        }
    }

    /// The target of the link `name` in this folder, as far as it fits.
    pub fn link<'a>(&self, name: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
        let (fd, name) = (self.fd as usize, name.as_ptr() as usize);
        let (at, n) = (into.as_mut_ptr() as usize, into.len());
        // SAFETY: a C string; the buffer is valid for its length.
        let r = unsafe { raw(libc::SYS_readlinkat, [fd, name, at, n, 0, 0]) };
        if r < 0 { None } else { into.get(..r as usize) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        descriptor::close(self.fd);
    }
}

#[repr(align(8))]
struct Buffer([u8; 4096]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_of_a_process_are_seen() {
        let file = File::open(c"/proc/self/status").unwrap();
        let folder = File::folder(c"/proc/self/fd").unwrap();
        let mut found = false;
        folder
            .entries(|name| {
                let mut link = [0; 64];
                let is = folder.link(name, &mut link).is_some_and(|l| l.ends_with(b"/status"));
                found |= is && name.to_str() == Ok(file.fd().to_string().as_str());
                true
            })
            .unwrap();
        assert!(found);
        let mut text = [0; 64];
        assert_eq!(file.read_all(&mut text), Ok(64));
        assert!(text.starts_with(b"Name:"));
    }

    #[test]
    fn what_is_not_there_says_so() {
        let e = File::open(c"/proc/self/no-such").unwrap_err();
        assert_eq!(e.to_string(), "openat: no such thing (ENOENT)");
    }
}
