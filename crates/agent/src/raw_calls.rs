//! Run-times that make system calls past the C library, by their own instructions.
//!
//! No front end sees such calls, and a call that meets an armed page fails. So nothing is armed if
//! such a run-time is loaded. The kernel's own moves go on.

use homenode_hooks::loaded::{self, FileInMemory};
use homenode_runtime::moving;

/// The notes by which such run-times are recognised in their files.
const NOTES: &[(&[u8], &str)] = &[(b"Go", "the run-time of Go, which makes system calls past the C library")];

/// Checks the loaded files. If one has such a run-time, nothing is armed from now on.
pub fn look() {
    let mut found: Option<&'static str> = None;
    loaded::each(|file| {
        found = in_notes(file);
        found.is_none()
    });
    found.into_iter().for_each(moving::pins);
}

/// The run-time that a file's notes name.
fn in_notes(file: FileInMemory<'_>) -> Option<&'static str> {
    let headers = file.headers();
    let mapped = |at: u64, n: u64| {
        headers.iter().any(|h| {
            h.p_type == libc::PT_LOAD && h.p_vaddr <= at && at.saturating_add(n) <= h.p_vaddr + h.p_memsz
        })
    };
    headers.iter().filter(|h| h.p_type == libc::PT_NOTE && mapped(h.p_vaddr, h.p_memsz)).find_map(|h| {
        let at = (file.base() + h.p_vaddr) as *const u8;
        // SAFETY: the notes lie in a segment that is loaded.
        among(unsafe { std::slice::from_raw_parts(at, h.p_memsz as usize) })
    })
}

/// The run-time named in a segment's notes. A note has the lengths of name and text, a kind, the
/// name and the text, padded to four bytes.
fn among(mut notes: &[u8]) -> Option<&'static str> {
    const HEAD: usize = 12;
    while let Some((head, rest)) = notes.split_at_checked(HEAD) {
        let length = |at: usize| {
            let bytes: [u8; 4] = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            u32::from_le_bytes(bytes) as usize
        };
        let (name, text) = (length(0), length(4));
        let owner = rest.get(..name)?;
        let owner = owner.split(|c| *c == 0).next().unwrap_or_default();
        if let Some((_, what)) = NOTES.iter().find(|(of, _)| *of == owner) {
            return Some(what);
        }
        notes = rest.get(name.next_multiple_of(4) + text.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_to_their_end_and_no_further() {
        let note = |name: &[u8], text: &[u8]| {
            let mut note = Vec::new();
            for n in [name.len(), text.len(), 4] {
                note.extend((n as u32).to_le_bytes());
            }
            for part in [name, text] {
                note.extend(part);
                note.resize(note.len().next_multiple_of(4), 0);
            }
            note
        };
        let (gnu, go) = (note(b"GNU\0", b"12345"), note(b"Go\0\0", b"an id"));
        assert_eq!(among(&gnu), None);
        assert!(among(&go).is_some() && among(&[gnu.clone(), go.clone()].concat()).is_some());
        for n in 0..12 + 4 {
            assert_eq!(among(&go[..n.min(14)]), None, "{n}");
        }
        assert_eq!(among(&[255; 64]), None);
        look();
    }
}
