//! The files that are loaded in this process. All functions take the loader's lock.

use core::ffi::{CStr, c_int, c_void};

/// A loaded file, as the loader shows it.
#[derive(Clone, Copy)]
pub struct FileInMemory<'a>(&'a libc::dl_phdr_info);

impl<'a> FileInMemory<'a> {
    /// The difference between the file's addresses in memory and those in its headers.
    pub fn base(&self) -> u64 {
        self.0.dlpi_addr
    }

    /// The path by which it was loaded; empty for the program.
    pub fn path(&self) -> &'a CStr {
        let name = self.0.dlpi_name;
        // SAFETY: the loader's C string, which lives as long as its entry.
        if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } }
    }

    /// The program headers.
    pub fn headers(&self) -> &'a [libc::Elf64_Phdr] {
        if self.0.dlpi_phdr.is_null() {
            return &[];
        }
        // SAFETY: the loader has `dlpi_phnum` headers at `dlpi_phdr`.
        unsafe { core::slice::from_raw_parts(self.0.dlpi_phdr, usize::from(self.0.dlpi_phnum)) }
    }

    /// The loaded part, from its first byte to behind its last one, by the headers' addresses.
    /// `None`: nothing is loaded.
    pub fn extent(&self) -> Option<(u64, u64)> {
        let loaded = || self.headers().iter().filter(|h| h.p_type == libc::PT_LOAD);
        let low = loaded().map(|h| h.p_vaddr).min()?;
        let high = loaded().map(|h| h.p_vaddr + h.p_memsz).max()?;
        (low < high).then_some((low, high))
    }

    /// How many files the process has loaded so far.
    pub fn added(&self) -> u64 {
        self.0.dlpi_adds
    }

    /// How many files the process has unloaded so far.
    pub fn removed(&self) -> u64 {
        self.0.dlpi_subs
    }
}

unsafe extern "C" fn visit<F>(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int
where
    F: FnMut(FileInMemory<'_>) -> bool,
{
    // SAFETY: the loader's own entry; `data` is the function of `each`.
    let (info, f) = unsafe { (&*info, &mut *data.cast::<F>()) };
    c_int::from(!f(FileInMemory(info)))
}

/// Calls `f` with each loaded file, the program first, until `f` returns `false`. `f` loads no file
/// and looks no symbol up.
pub fn each<F: FnMut(FileInMemory<'_>) -> bool>(mut f: F) {
    // SAFETY: `visit` gets `f` and keeps nothing of it.
    unsafe { libc::dl_iterate_phdr(Some(visit::<F>), (&raw mut f).cast()) };
}

/// What the loader knows of the file that has an address: at least the address at which the file
/// begins.
pub fn containing(address: usize) -> Option<libc::Dl_info> {
    // SAFETY: dladdr reads the loader's tables and writes `info`.
    unsafe {
        let mut info = core::mem::zeroed::<libc::Dl_info>();
        (libc::dladdr(address as *const c_void, &raw mut info) != 0).then_some(info)
    }
}

/// The path of the file that has an address.
pub fn path_of(address: usize) -> Option<&'static CStr> {
    let name = containing(address)?.dli_fname;
    // SAFETY: the loader's C string. It lives as long as the file, and the caller's address is of
    // the file.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_first_file_and_has_this_code() {
        let here = each::<fn(FileInMemory<'_>) -> bool> as *const () as u64;
        let (mut files, mut first_has) = (0, false);
        each(|file| {
            if files == 0 {
                let (low, high) = file.extent().unwrap();
                first_has = (file.base() + low..file.base() + high).contains(&here);
                assert!(file.path().is_empty() && file.added() > 0 && !file.headers().is_empty());
            }
            files += 1;
            files < 2
        });
        assert!(files == 2 && first_has, "the walk ends when it is told to");
        assert!(containing(here as usize).is_some() && path_of(here as usize).is_some());
        assert!(containing(0).is_none() && path_of(0).is_none());
    }
}
