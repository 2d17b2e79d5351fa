//! The id of an object: the same in every kind of recording and every run of the program.
//!
//! | object | id |
//! |---|---|
//! | variable of the program | `NAME` |
//! | variable of a library | `NAME@libfoo.so` |
//! | allocation | `SITE < CALLER #SLOT` |
//! | stack | `stack of thread N` |
//! | memory without a known object | `other memory` |
//!
//! *Site* is the place of the allocating call and *caller* that of the call of its function, each
//! as `file.c:12`, or as `libfoo.so+0x1a2b` without debug information. Neither depends on where
//! the system loads the program. A caller in a library of the system is left out ([`is_own`]):
//! who calls `main` says nothing of the program.
//!
//! *Slot* tells apart allocations of one site that live at the same time. A new allocation takes
//! the smallest slot that is free, so an array that is freed and allocated again in every round
//! stays one object.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use homenode_model::{Bytes, ObjectId};

use crate::fields::Fields;
use crate::tables::{Object, ObjectKind};

/// Slots that a site has. Of more allocations at once, all further ones share the last slot.
pub const MOST_SLOTS: u32 = 64;

/// The id of a variable; `library`: the file name of the library that it belongs to.
pub fn of_static(name: &str, library: Option<&str>) -> String {
    match library {
        Some(library) => format!("{name}@{library}"),
        None => name.to_owned(),
    }
}

/// The id of an allocation.
pub fn of_allocation(site: &str, caller: Option<&str>, slot: u32) -> String {
    match caller {
        Some(caller) => format!("{site} < {caller} #{slot}"),
        None => format!("{site} #{slot}"),
    }
}

/// The name that all objects of one site share: without the number that tells those apart that live
/// at the same time.
pub fn without_slot(name: &str) -> &str {
    match name.rsplit_once(" #") {
        Some((site, slot)) if !slot.is_empty() && slot.bytes().all(|b| b.is_ascii_digit()) => site,
        _ => name,
    }
}

/// The id of a thread's stack.
pub fn of_stack(thread: u32) -> String {
    format!("stack of thread {thread}")
}

/// The object that stands for all memory of a process without a known object: the small heap,
/// unknown mappings. Its pages are counted from address 0.
pub fn other_memory(object: ObjectId, process: u32) -> Object {
    Object {
        object,
        id: "other memory".into(),
        process,
        name: "(small heap, unknown mappings)".into(),
        kind: ObjectKind::Other,
        element_type: None,
        element_bytes: None,
        dimensions: Vec::new(),
        fields: Fields::default(),
        file: None,
        line: None,
        function: None,
        stack: Vec::new(),
        bytes: Bytes(0),
        address: 0,
        allocations: 0,
        birth_ns: None,
        death_ns: None,
    }
}

/// A place in a file without debug information: its file name, and the address in the file.
pub fn bare_place(path: &str, address: u64) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    format!("{file}+{address:#x}")
}

/// Folders of libraries that are not the program's own.
const SYSTEM: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];

/// Whether a loaded file is the program's own: neither the system's nor homenode's.
pub fn is_own(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    path.starts_with('/') && !SYSTEM.iter().any(|s| path.starts_with(s)) && !file.starts_with("libhomenode")
}

/// The slots of all sites: which allocation has which.
#[derive(Clone, Debug)]
pub struct Slots<S> {
    sites: BTreeMap<S, Site>,
}

#[derive(Clone, Debug, Default)]
struct Site {
    /// Slots that were given once and are free again.
    free: BinaryHeap<Reverse<u32>>,
    given: u32,
}

impl<S> Default for Slots<S> {
    fn default() -> Self {
        Self { sites: BTreeMap::new() }
    }
}

impl<S: Ord> Slots<S> {
    /// The slot of a new allocation at `site`.
    pub fn take(&mut self, site: S) -> u32 {
        let site = self.sites.entry(site).or_default();
        if let Some(Reverse(slot)) = site.free.pop() {
            return slot;
        }
        let slot = site.given;
        if slot + 1 < MOST_SLOTS {
            site.given += 1;
        }
        slot.min(MOST_SLOTS - 1)
    }

    /// An allocation of `site` that had `slot` is gone.
    pub fn give_back(&mut self, site: &S, slot: u32) {
        // The last slot is shared and never free.
        if slot + 1 < MOST_SLOTS
            && let Some(site) = self.sites.get_mut(site)
        {
            site.free.push(Reverse(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_come_again_keep_their_slot() {
        let mut slots = Slots::default();
        for _ in 0..1000 {
            let both = [slots.take("a.c:3"), slots.take("a.c:3")];
            assert_eq!(both, [0, 1]);
            assert_eq!(slots.take("a.c:9"), 0);
            // In whatever order they go.
            slots.give_back(&"a.c:3", 0);
            slots.give_back(&"a.c:9", 0);
            slots.give_back(&"a.c:3", 1);
        }
    }

    #[test]
    fn many_at_once_share_the_last_slot() {
        let mut slots = Slots::default();
        let all: Vec<_> = (0..200).map(|_| slots.take(1)).collect();
        assert_eq!(all[..3], [0, 1, 2]);
        assert!(all[63..].iter().all(|s| *s == 63));
        slots.give_back(&1, 63);
        slots.give_back(&1, 5);
        assert_eq!([slots.take(1), slots.take(1)], [5, 63]);
    }

    #[test]
    fn libraries_of_the_system_are_not_the_programs_own() {
        let own = ["/home/me/app", "/opt/x/libgrid.so"].map(is_own);
        let other = ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libm.so", "/opt/libhomenode.so", "[vdso]"];
        assert!(own.iter().all(|o| *o) && !other.iter().any(|path| is_own(path)));
    }

    #[test]
    fn ids_do_not_depend_on_where_the_program_is_loaded() {
        assert_eq!(of_allocation("heat.c:40", Some("main.c:9"), 1), "heat.c:40 < main.c:9 #1");
        assert_eq!(of_static("u", Some("libgrid.so")), "u@libgrid.so");
        assert_eq!(bare_place("/opt/x/libfoo.so", 0x1a2b), "libfoo.so+0x1a2b");
    }
}
