//! Which process a CPU executes: read from the kernel's own memory.
//!
//! Each CPU has a variable that points to the task it runs; a task has the number and the name of
//! its process in it. Where these lie says the kernel's image (its exported symbols and its type
//! information), which the launcher has read.

use std::sync::{Mutex, PoisonError};

use homenode_wire::monitor::{KernelLayout, Process};

use crate::memory::GuestMemory;

/// Processes that are told apart; further ones are one.
pub const MOST: usize = 1024;
/// Bytes of a name.
const NAME: usize = 16;

/// The guest's processes, numbered from 1 in the order in which they were met.
#[derive(Debug, Default)]
pub struct Processes {
    memory: GuestMemory,
    layout: Option<KernelLayout>,
    met: Mutex<Vec<Process>>,
}

impl Processes {
    /// Of a kernel that keeps things so.
    pub fn new(layout: Option<KernelLayout>) -> Self {
        Self { layout, ..Self::default() }
    }

    /// The guest's memory is mapped now.
    pub fn read_from(&mut self, memory: GuestMemory) {
        self.memory = memory;
    }

    /// The number of the process that a CPU executes; that of process 0 where it cannot be known.
    pub fn on(&self, cpu: usize, offset: impl Fn(u64) -> Option<u64>) -> u16 {
        let process = self.read(cpu, offset).unwrap_or_default();
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match met.iter().position(|p| p.id == process.id) {
            Some(at) => at,
            None if met.len() + 1 < MOST => {
                met.push(Process::default());
                met.len() - 1
            }
            None => return MOST as u16 - 1,
        };
        met[at] = process;
        at as u16 + 1
    }

    /// All that were met.
    pub fn met(&self) -> Vec<Process> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read(&self, cpu: usize, offset: impl Fn(u64) -> Option<u64>) -> Option<Process> {
        let layout = self.layout?;
        let word = |physical: u64| self.memory.word(offset(physical)?);
        let direct = word(layout.direct)?;
        let area = word(layout.areas + 8 * cpu as u64)?;
        // Both the areas and the tasks are in the mapping of all memory.
        let task = word(area.wrapping_add(layout.current).wrapping_sub(direct))?.wrapping_sub(direct);
        let id = self.memory.half(offset(task.wrapping_add(layout.process))?)?;
        let mut name = [0; NAME];
        for (i, byte) in name.iter_mut().enumerate() {
            let at = task.wrapping_add(layout.name + i as u64);
            *byte = (word(at & !7)? >> (8 * (at & 7))) as u8;
        }
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        Some(Process { id, name: String::from_utf8_lossy(name).replace(char::is_whitespace, "_") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest's memory of 4 KiB: areas' addresses at 0x100, the direct mapping's at 0x80, an area
    /// at 0x200, a task at 0x400.
    fn guest() -> Vec<u64> {
        let direct = 0xffff_8880_0000_0000_u64;
        let mut words = vec![0_u64; 512];
        words[0x80 / 8] = direct;
        words[0x108 / 8] = direct + 0x200;
        words[0x240 / 8] = direct + 0x400;
        words[0x410 / 8] = 77 << 32;
        words[0x418 / 8] = u64::from_le_bytes(*b"abc\0efgh") << 8;
        words
    }

    #[test]
    fn a_process_is_read_from_the_kernels_memory() {
        let words = guest();
        let layout = KernelLayout { areas: 0x100, current: 0x40, direct: 0x80, process: 0x14, name: 0x19 };
        let mut processes = Processes::new(Some(layout));
        assert_eq!(processes.on(1, Some), 1, "no memory yet");
        assert_eq!(processes.met(), [Process::default()]);
        processes.read_from(GuestMemory::at(&words));
        assert_eq!((processes.on(1, Some), processes.on(1, Some)), (2, 2));
        assert_eq!(processes.met()[1], Process { id: 77, name: "abc".into() });
        assert_eq!(processes.on(0, Some), 1, "an area that is nowhere");
    }
}
