//! From homes by page to homes by object: what a next run, at other addresses, can find again.

use std::collections::BTreeMap;

use homenode_log::recording::SourcePlace;
use homenode_model::{NodeId, PageNo, Placement};
use homenode_order::Trace;
use homenode_order::space::{Birth, ObjectKind};
use homenode_schemes::Loaded;

use super::file::{Object, Place};

/// Smaller objects share pages with others; `homenode run` does not follow them.
const SMALLEST: u64 = 64 << 10;

fn place(loaded: &Loaded, pc: u64) -> Option<Place> {
    let SourcePlace { function, file, line } = loaded.symbols.places.get(&pc)?.clone();
    // A library's name alone finds nothing again.
    (function.is_some() || line.is_some()).then_some(Place { function, file, line })
}

/// The objects that are large enough, in order of birth, each with the homes that `placement` gives
/// its pages. `numbers`: the kernel's number of each node.
pub fn objects(
    loaded: &Loaded,
    trace: &Trace,
    placement: &Placement,
    page: u64,
    numbers: &[u16],
) -> Vec<Object> {
    let (mut instances, mut orders) = (BTreeMap::new(), BTreeMap::new());
    let mut all: Vec<Object> = Vec::new();
    let names = loaded.names();
    for birth in trace.births.iter().filter(|b| b.bytes >= SMALLEST) {
        let Some(object) = trace.objects.get(birth.object.index()) else { continue };
        let mut new = Object {
            name: names.object(object).name,
            variable: None,
            site: None,
            caller: None,
            instance: 0,
            count: 1,
            order: 0,
            bytes: birth.bytes,
            homes: homes(birth, placement, page, numbers),
        };
        match &object.kind {
            ObjectKind::Static { name, .. } => new.variable = Some(name.clone()),
            ObjectKind::Site { pc, caller, .. } => {
                (new.site, new.caller) = (place(loaded, *pc), place(loaded, *caller));
                let next = |n: &mut u32| std::mem::replace(n, *n + 1);
                new.instance = next(instances.entry((new.site.clone(), new.caller.clone())).or_insert(0));
                new.order = next(orders.entry(new.bytes).or_insert(0));
            }
        }
        if new.homes.is_empty() {
            continue;
        }
        // A loop that allocates and frees gets the same memory each time.
        let alike = |old: &&mut Object| {
            old.variable.is_none()
                && (&old.site, &old.caller, old.bytes) == (&new.site, &new.caller, new.bytes)
                && (old.instance + old.count, old.order + old.count) == (new.instance, new.order)
                && old.homes == new.homes
        };
        match all.iter_mut().rev().find(alike) {
            Some(old) => old.count += 1,
            None => all.push(new),
        }
    }
    all
}

/// Stretches of a birth by home: offset, length, node.
fn homes(birth: &Birth, placement: &Placement, page: u64, numbers: &[u16]) -> Vec<(u64, u64, u16)> {
    let mut all: Vec<(u64, u64, u16)> = Vec::new();
    let mut offset = 0;
    for range in &birth.ranges {
        let end = range.first + range.bytes;
        let mut at = range.first;
        while at < end {
            let next = ((at / page + 1) * page).min(end);
            if let Some(NodeId(n)) = placement.home(PageNo(at / page))
                && let Some(node) = numbers.get(usize::from(n))
            {
                let (from, bytes) = (offset + (at - range.first), next - at);
                match all.last_mut() {
                    // What nobody accesses in between may as well go along.
                    Some((first, length, same)) if same == node => *length = from + bytes - *first,
                    _ => all.push((from, bytes, *node)),
                }
            }
            at = next;
        }
        offset += range.bytes;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::ObjectId;
    use homenode_order::step::ByteRange;

    #[test]
    fn pages_become_stretches_of_the_object() {
        let mut placement = Placement::new();
        for (page, node) in [(1, 0), (2, 0), (4, 0), (5, 1), (9, 1)] {
            placement.set(PageNo(page), NodeId(node));
        }
        // Starts in the middle of page 1; its second piece is page 9.
        let ranges = vec![
            ByteRange { first: 4096 + 16, bytes: 5 * 4096 - 16 },
            ByteRange { first: 9 * 4096, bytes: 100 },
        ];
        let birth = Birth { object: ObjectId(0), bytes: 5 * 4096 - 16 + 100, ranges };
        let stretches = homes(&birth, &placement, 4096, &[0, 3]);
        let first = 4 * 4096 - 16;
        assert_eq!(stretches, [(0, first, 0), (first, 4096 + 100, 3)]);
    }
}
