//! Where a kernel keeps the process that a CPU executes.
//!
//! The answer comes from the image alone: exported symbols (`__ksymtab`, `__ksymtab_gpl`, with
//! relative places) and the kernel's type information (BTF). Addresses hold without randomisation,
//! which the lab turns off.

use std::fs;
use std::path::Path;

use homenode_wire::monitor::KernelLayout;
use object::{Object, ObjectSection, ObjectSegment};

/// The layout of an uncompressed kernel; `None` if the image does not have it.
pub fn of(image: &Path) -> Option<KernelLayout> {
    let bytes = fs::read(image).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let section = |name: &str| file.section_by_name(name)?.data().ok();
    let symbols = Symbols::read(&file)?;
    let types = Types::new(section(".BTF")?)?;
    let (task, place) = (types.structure("task_struct")?, |name| symbols.find(name));
    Some(KernelLayout {
        areas: physical(&file, place("__per_cpu_offset")?)?,
        // A variable of its own, except in Linux 6.2 to 6.14.
        current: match (place("current_task"), place("const_current_task"), place("pcpu_hot")) {
            (Some(at), _, _) | (None, Some(at), _) => at,
            (None, None, hot) => hot? + types.member(types.structure("pcpu_hot")?, "current_task")?,
        },
        direct: physical(&file, place("page_offset_base")?)?,
        process: types.member(task, "tgid")?,
        name: types.member(task, "comm")?,
    })
}

/// The physical address of a virtual one of the image.
fn physical(file: &object::File, address: u64) -> Option<u64> {
    let object::File::Elf64(elf) = file else { return None };
    let endian = elf.endian();
    let headers = elf.elf_program_headers().iter();
    let mut loaded = headers.filter(|h| h.p_type.get(endian) == object::elf::PT_LOAD);
    loaded.find_map(|h| {
        let (start, size) = (h.p_vaddr.get(endian), h.p_memsz.get(endian));
        let within = address.checked_sub(start).filter(|w| *w < size)?;
        Some(h.p_paddr.get(endian) + within)
    })
}

/// Exported symbols: name and address.
struct Symbols(Vec<(String, u64)>);

impl Symbols {
    fn read(file: &object::File) -> Option<Self> {
        let mut all = Vec::new();
        for name in ["__ksymtab", "__ksymtab_gpl"] {
            let Some(section) = file.section_by_name(name) else { continue };
            // include/linux/export-internal.h: value, name, name space, each relative to its own
            // address.
            for (i, entry) in section.data().ok()?.chunks_exact(12).enumerate() {
                let at = section.address() + 12 * i as u64;
                let relative = |n: usize| {
                    let word = i32::from_le_bytes(entry[4 * n..4 * n + 4].try_into().ok()?);
                    Some((at + 4 * n as u64).wrapping_add_signed(i64::from(word)))
                };
                all.push((text(file, relative(1)?)?, relative(0)?));
            }
        }
        Some(Self(all))
    }

    fn find(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, at)| *at)
    }
}

/// The zero-terminated text at an address.
fn text(file: &object::File, address: u64) -> Option<String> {
    let segment = file.segments().find(|s| address.checked_sub(s.address()).is_some_and(|w| w < s.size()))?;
    let data = segment.data().ok()?.get((address - segment.address()) as usize..)?;
    let end = data.iter().position(|b| *b == 0)?;
    Some(String::from_utf8_lossy(&data[..end]).into_owned())
}

/// BTF (Documentation/bpf/btf.rst).
struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
}

/// `BTF_KIND_STRUCT`.
const STRUCTURE: u32 = 4;
/// Bytes of a type without its tail, and of a member.
const TYPE: usize = 12;
const MEMBER: usize = 12;

impl<'a> Types<'a> {
    fn new(data: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize);
        if data.get(..3)? != [0x9f, 0xeb, 1] {
            return None;
        }
        let body = data.get(word(4)?..)?;
        let part = |at: usize| body.get(word(at)?..)?.get(..word(at + 4)?);
        Some(Self { types: part(8)?, strings: part(16)? })
    }

    fn name(&self, at: u32) -> &[u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.split(|b| *b == 0).next().unwrap_or_default()
    }

    /// The members of a structure.
    fn structure(&self, name: &str) -> Option<&'a [u8]> {
        let mut rest = self.types;
        while let Some(head) = rest.get(..TYPE) {
            let (called, info) = (word(head, 0)?, word(head, 4)?);
            let (kind, n) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let more = match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                STRUCTURE | 5 | 15 | 19 => MEMBER * n,
                6 | 13 => 8 * n,
                _ => 0,
            };
            let body = rest.get(TYPE..TYPE + more)?;
            if kind == STRUCTURE && self.name(called) == name.as_bytes() {
                return Some(body);
            }
            rest = &rest[TYPE + more..];
        }
        None
    }

    /// The offset of a member, in bytes.
    fn member(&self, members: &[u8], name: &str) -> Option<u64> {
        let mut all = members.chunks_exact(MEMBER);
        let found = all.find(|m| word(m, 0).is_some_and(|n| self.name(n) == name.as_bytes()))?;
        // The offset is in bits. With bit fields, the upper eight bits are the width.
        Some(u64::from(word(found, 8)? & 0xff_ffff) / 8)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer, then a structure "ab" with members "c" at 0 and "d" at 8 bytes.
    fn types() -> Vec<u8> {
        let strings = b"\0ab\0c\0d\0";
        let words = [[0, 1 << 24, 4, 32].as_slice(), &[1, 4 << 24 | 2, 16, 4, 1, 0, 6, 1, 64]].concat();
        let mut data = vec![0x9f, 0xeb, 1, 0];
        for n in [24, 0, 4 * words.len(), 4 * words.len(), strings.len()] {
            data.extend((n as u32).to_le_bytes());
        }
        words.iter().for_each(|w: &u32| data.extend(w.to_le_bytes()));
        data.extend(strings);
        data
    }

    #[test]
    fn members_are_found_and_damage_is_none() {
        let data = types();
        let place = |data: &[u8], name: &str| {
            let types = Types::new(data)?;
            types.member(types.structure("ab")?, name)
        };
        assert_eq!((place(&data, "c"), place(&data, "d"), place(&data, "e")), (Some(0), Some(8), None));
        for n in 0..data.len() - 3 {
            assert_ne!(place(&data[..n], "d"), Some(1), "no panic at {n}");
        }
        assert!(of(Path::new("/etc/passwd")).is_none() && of(Path::new("/no/such")).is_none());
    }
}
