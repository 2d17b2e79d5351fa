//! The guest's memory, as QEMU has mapped it.
//!
//! The launcher makes the nodes' memory and gives it names, so that it is found among the mappings
//! of this process. It is read only, a word at a time: the guest may write meanwhile.

use std::fs;
use std::ptr;

/// Names of the nodes' memory, with the node's number behind.
pub const NAME: &str = "homenode-node";

/// A node's memory: its place in the guest's memory, its bytes, where it is mapped here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    offset: u64,
    bytes: u64,
    here: usize,
}

/// The guest's memory.
#[derive(Clone, Debug, Default)]
pub struct GuestMemory(Vec<Block>);

impl GuestMemory {
    /// Finds the memory of `nodes`, given by their sizes in bytes. Finds nothing where QEMU was
    /// started without such names.
    pub fn find(nodes: &[u64]) -> Self {
        let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self::among(&text, nodes)
    }

    fn among(maps: &str, nodes: &[u64]) -> Self {
        let mut blocks = Vec::new();
        let mut offset = 0;
        for (i, bytes) in nodes.iter().enumerate().filter(|(_, b)| **b > 0) {
            let name = format!("/memfd:{NAME}{i} (deleted)");
            let line = maps.lines().find(|l| l.ends_with(&name));
            let Some(here) = line.and_then(|l| whole(l, *bytes)) else { return Self::default() };
            blocks.push(Block { offset, bytes: *bytes, here });
            offset += bytes;
        }
        Self(blocks)
    }

    /// Whether it was found.
    pub const fn found(&self) -> bool {
        !self.0.is_empty()
    }

    /// These words, as the guest's memory from its beginning on.
    #[cfg(test)]
    pub fn at(words: &[u64]) -> Self {
        Self(vec![Block { offset: 0, bytes: 8 * words.len() as u64, here: words.as_ptr() as usize }])
    }

    /// Eight bytes at a place in the guest's memory, a multiple of 8.
    pub fn word(&self, offset: u64) -> Option<u64> {
        let block = self.0.iter().find(|b| offset >= b.offset && offset - b.offset < b.bytes)?;
        let within = (offset - block.offset) as usize;
        // SAFETY: the mapping is QEMU's for as long as it runs, the place is inside and a multiple
        // of 8; other threads write it, so that it is read whole and once.
        (within.is_multiple_of(8)).then(|| unsafe { ptr::read_volatile((block.here + within) as *const u64) })
    }

    /// Four bytes at a multiple of 4.
    pub fn half(&self, offset: u64) -> Option<u32> {
        let word = self.word(offset & !7)?;
        Some((word >> ((offset & 4) * 8)) as u32)
    }
}

/// The address of a mapping of exactly this number of bytes.
fn whole(line: &str, bytes: u64) -> Option<usize> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let (_rights, from) = (words.next()?, words.next()?);
    ((end - start) as u64 == bytes && u64::from_str_radix(from, 16) == Ok(0)).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_their_names() {
        let maps = "7f00-7f10 rw-s 00000000 00:01 5 /memfd:homenode-node1 (deleted)\n\
                    1000-1010 rw-s 00000000 00:01 5 /memfd:homenode-node0 (deleted)\n";
        let memory = GuestMemory::among(maps, &[16, 16]);
        let block = |offset, here| Block { offset, bytes: 16, here };
        assert_eq!(memory.0, [block(0, 0x1000), block(16, 0x7f00)]);
        assert!(!GuestMemory::among(maps, &[16, 32]).found(), "a part of it");
        assert!(!GuestMemory::among(maps, &[16, 16, 16]).found(), "one is missing");
    }

    #[test]
    fn words_are_read_where_they_are() {
        let data = [1_u64, 0x1111_2222_3333_4444];
        let memory = GuestMemory(vec![Block { offset: 4096, bytes: 16, here: data.as_ptr() as usize }]);
        assert_eq!((memory.word(4096), memory.word(4104)), (Some(1), Some(data[1])));
        assert_eq!((memory.half(4104), memory.half(4108)), (Some(0x3333_4444), Some(0x1111_2222)));
        assert_eq!((memory.word(4112), memory.word(4095), memory.word(4100)), (None, None, None));
    }
}
