//! Whose code is where, and where the program's objects are.
//!
//! The program's own code (its file, its libraries, code made at run time) is recorded. The
//! system's libraries' code is recorded as far as it works on the program's objects: its static
//! data, and allocations that are told as objects. So `memset`, `memcpy`, `read` and BLAS count,
//! and a library's own tables, buffers and locks do not. The recorder's own code is left out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use homenode_recorder::channel::Whose;

#[derive(Debug, Default)]
struct Map {
    code: Vec<(u64, u64, Whose)>,
    constant: Vec<(u64, u64)>,
    /// Objects: first address to one past the last.
    objects: BTreeMap<u64, u64>,
}

/// All that is known of the address space.
#[derive(Debug, Default)]
pub struct AddressMap {
    map: RwLock<Map>,
    /// Changes when an object comes or goes.
    generation: AtomicU64,
}

/// A piece of the address space that lies in an object or between objects, and for which generation
/// that was said.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddressPiece {
    low: u64,
    high: u64,
    generation: u64,
    object: bool,
}

impl AddressPiece {
    /// Nothing is known.
    pub const NONE: Self = Self { low: 0, high: 0, generation: 0, object: false };
}

impl AddressMap {
    /// Nothing is known: all code is whose it says.
    pub const fn new() -> Self {
        Self {
            map: RwLock::new(Map { code: Vec::new(), constant: Vec::new(), objects: BTreeMap::new() }),
            generation: AtomicU64::new(1),
        }
    }

    fn change(&self, f: impl FnOnce(&mut Map)) {
        f(&mut self.map.write().unwrap_or_else(PoisonError::into_inner));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Code lies there; the program's brings static data.
    pub fn add(&self, low: u64, high: u64, whose: Whose) {
        self.change(|map| {
            map.code.push((low, high, whose));
            if whose == Whose::Program {
                map.objects.insert(low, high);
            }
        });
    }

    /// Nobody writes there.
    pub fn add_constant(&self, low: u64, high: u64) {
        self.change(|map| map.constant.push((low, high)));
    }

    /// An object begins.
    pub fn born(&self, address: u64, bytes: u64) {
        self.change(|map| {
            map.objects.insert(address, address.saturating_add(bytes));
        });
    }

    /// An object ends.
    pub fn dies(&self, address: u64) {
        self.change(|map| {
            map.objects.remove(&address);
        });
    }

    /// Whose the code at an address is; `None` where nobody has said.
    pub fn whose(&self, address: u64) -> Option<Whose> {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.code.iter().find(|(low, high, _)| (*low..*high).contains(&address)).map(|c| c.2)
    }

    /// Whether an address is one that nobody writes.
    pub fn constant(&self, address: u64) -> bool {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.constant.iter().any(|(low, high)| (*low..*high).contains(&address))
    }

    /// Whether an address lies in an object of the program. `last` is what was found before.
    #[inline]
    pub fn in_object(&self, address: u64, last: &mut AddressPiece) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        if last.generation != generation || address < last.low || address >= last.high {
            *last = self.piece(address, generation);
        }
        last.object
    }

    fn piece(&self, address: u64, generation: u64) -> AddressPiece {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        let before = map.objects.range(..=address).next_back().map(|(low, high)| (*low, *high));
        let after = map.objects.range(address.saturating_add(1)..).next().map_or(u64::MAX, |(low, _)| *low);
        match before {
            Some((low, high)) if address < high => {
                AddressPiece { low, high: high.min(after), generation, object: true }
            }
            Some((_, high)) => AddressPiece { low: high, high: after, generation, object: false },
            None => AddressPiece { low: 0, high: after, generation, object: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_and_go() {
        let code = AddressMap::new();
        let mut last = AddressPiece::default();
        assert!(!code.in_object(100, &mut last));
        code.born(100, 50);
        code.born(200, 10);
        let inside: Vec<u64> = (90..220).step_by(10).filter(|a| code.in_object(*a, &mut last)).collect();
        assert_eq!(inside, [100, 110, 120, 130, 140, 200]);
        code.dies(100);
        assert!(!code.in_object(120, &mut last) && code.in_object(209, &mut last));
        assert!(!code.in_object(u64::MAX, &mut last));
    }

    #[test]
    fn the_programs_file_is_an_object_and_the_systems_are_not() {
        let code = AddressMap::new();
        code.add(1000, 2000, Whose::Program);
        code.add(3000, 4000, Whose::System);
        code.add_constant(1000, 1100);
        assert_eq!(
            [1500, 3000, 5000].map(|a| code.whose(a)),
            [Some(Whose::Program), Some(Whose::System), None]
        );
        let mut last = AddressPiece::default();
        assert!(code.in_object(1999, &mut last) && !code.in_object(3500, &mut last));
        assert!(code.constant(1099) && !code.constant(1100));
    }
}
