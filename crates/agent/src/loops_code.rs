//! Which file of the program a loop is in, and which build of the file.

use std::path::Path;

use homenode_hooks::loaded::{FileInMemory, each};
use homenode_wire::facts::LoadedFile;
use homenode_wire::schedule::{CODES, CodeFile};

use crate::modules;

/// Return addresses are below; above are the loops that the program has named with `hn_loop`.
pub const NAMED: usize = 1 << 63;

/// Bytes of a file's instructions that tell its build from others.
const LOOKED_AT: usize = 16 << 20;

/// Where the loaded files lie.
pub struct Places(Vec<LoadedFile>);

impl Places {
    /// As they are now.
    pub fn now() -> Self {
        let mut loaded = modules::loaded();
        loaded.truncate(CODES);
        Self(loaded)
    }

    /// The index of the file that has an address, and where there, from its first byte.
    /// A loop that the program has named is the first file's, by its name.
    pub fn index(&self, address: usize) -> Option<(u32, u64)> {
        if address >= NAMED {
            return (!self.0.is_empty()).then_some((0, address as u64));
        }
        let has = |m: &LoadedFile| (m.low..m.high).contains(&(address as u64).wrapping_sub(m.base));
        let at = self.0.iter().position(has)?;
        Some((at as u32, (address as u64).wrapping_sub(self.0[at].base)))
    }
}

/// The loaded files, in the order of [`Places`].
pub fn codes() -> Vec<CodeFile> {
    Places::now().0.iter().map(code).collect()
}

/// The hash of the file that has an address, and where there.
pub fn place(address: usize) -> Option<(u64, u64)> {
    let places = Places::now();
    let (index, offset) = places.index(address)?;
    Some((code(&places.0[index as usize]).hash, offset))
}

fn code(module: &LoadedFile) -> CodeFile {
    let (mut bytes, mut hash) = (0, 0xcbf2_9ce4_8422_2325);
    each(|file| {
        if file.base() == module.base {
            (bytes, hash) = instructions(file, hash);
        }
        file.base() != module.base
    });
    let name = Path::new(&module.path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    CodeFile { name, bytes, hash }
}

/// How many bytes of instructions a file has, and `hash` with them added: FNV-1a by words.
fn instructions(file: FileInMemory<'_>, mut hash: u64) -> (u64, u64) {
    let mut all = 0;
    for h in file.headers() {
        let readable = libc::PF_R | libc::PF_X;
        if h.p_type != libc::PT_LOAD || h.p_flags & (readable | libc::PF_W) != readable {
            continue;
        }
        all += h.p_filesz;
        let start = (file.base() + h.p_vaddr) as *const u8;
        // SAFETY: loaded, readable, and nobody writes there.
        let text = unsafe { std::slice::from_raw_parts(start, (h.p_filesz as usize).min(LOOKED_AT)) };
        for word in text.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            hash = (hash ^ u64::from_le_bytes(bytes)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (all, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_in_its_file_and_the_file_has_a_hash() {
        let here = place as *const () as usize;
        let (index, offset) = Places::now().index(here).unwrap();
        assert!(index == 0 && offset > 0);
        let codes = codes();
        assert_eq!(place(here), Some((codes[0].hash, offset)));
        assert!(codes[0].bytes > 0 && codes.iter().skip(1).all(|c| c.hash != codes[0].hash));
        assert_eq!(Places::now().index(8), None);
    }
}
