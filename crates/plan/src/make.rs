//! From homes by page to homes by object: what a next run, at other addresses, can find again.

use std::collections::BTreeMap;

use homenode_log::recording::SourcePlace;
use homenode_model::{NodeId, PageNo, Placement};
use homenode_order::Trace;
use homenode_order::space::{Birth, ObjectSource};
use homenode_schemes::LoadedRecording;

use super::file::{PlanObject, PlanSite};

/// Smaller objects share pages with others; `homenode run` does not follow them.
const SMALLEST: u64 = 64 << 10;

fn place(loaded: &LoadedRecording, pc: u64) -> Option<PlanSite> {
    let SourcePlace { function, file, line } = loaded.symbols.places.get(&pc)?.clone();
    // A library's name alone finds nothing again.
    (function.is_some() || line.is_some()).then_some(PlanSite { function, file, line })
}

/// The objects that are large enough, in order of birth, each with the homes that `placement` gives
/// its pages. `numbers`: the kernel's number of each node.
pub fn objects(
    loaded: &LoadedRecording,
    trace: &Trace,
    placement: &Placement,
    page: u64,
    numbers: &[u16],
) -> Vec<PlanObject> {
    let (mut instances, mut orders) = (BTreeMap::new(), BTreeMap::new());
    let mut all: Vec<PlanObject> = Vec::new();
    let names = loaded.names();
    for birth in trace.births.iter().filter(|b| b.bytes >= SMALLEST) {
        let Some(object) = trace.objects.get(birth.object.index()) else { continue };
        let mut new = PlanObject {
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
            ObjectSource::Static { name, .. } => new.variable = Some(name.clone()),
            ObjectSource::Site { pc, caller, .. } => {
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
        let alike = |old: &&mut PlanObject| {
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

/// How an object's pages lie on the nodes: `block` (a stretch a node), `cyclic` (in turns, as much
/// on each node), or `mixed`; `one-node` where one node has all.
pub fn shape(object: &PlanObject) -> &'static str {
    let mut by_node: BTreeMap<u16, u64> = BTreeMap::new();
    for (_, bytes, node) in &object.homes {
        *by_node.entry(*node).or_default() += bytes;
    }
    let (nodes, stretches) = (by_node.len(), object.homes.len());
    let all: u64 = by_node.values().sum();
    let fair = all / (nodes as u64).max(1);
    let even = by_node.values().all(|b| b.abs_diff(fair) * 4 <= fair);
    match () {
        () if nodes <= 1 => "one-node",
        // A page or two at a border may go either way.
        () if stretches <= 2 * nodes => "block",
        () if even && stretches >= 4 * nodes => "cyclic",
        () => "mixed",
    }
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
    fn homes_have_a_shape() {
        let object = |homes: Vec<(u64, u64, u16)>| PlanObject {
            name: "a".into(),
            variable: None,
            site: None,
            caller: None,
            instance: 0,
            count: 1,
            order: 0,
            bytes: 1 << 20,
            homes,
        };
        let stretches = |n: u64, bytes: u64, node: fn(u64) -> u16| {
            object((0..n).map(|i| (i * bytes, bytes, node(i))).collect())
        };
        assert_eq!(shape(&stretches(1, 1 << 20, |_| 1)), "one-node");
        assert_eq!(shape(&stretches(4, 1 << 18, |i| i as u16)), "block");
        assert_eq!(shape(&stretches(256, 4096, |i| (i % 4) as u16)), "cyclic");
        assert_eq!(shape(&stretches(257, 4096, |i| u16::from(i % 8 == 0))), "mixed");
    }

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
