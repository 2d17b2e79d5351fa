//! Does damaged or hostile input end in an error that says what to do?

use homenode_model::{Bytes, CpuId, ObjectId, PageNo, ThreadId};
use homenode_policy::{PolicyContext, build};

use crate::memory::testing::{Machine, PAGE, Program, machine};
use crate::memory::{Memory, MemoryError, MemoryOptions};
use homenode_order::step::{ByteRange, Mark};

fn start(binding: &[CpuId], page: Bytes) -> MemoryError {
    let topology = machine(2).build();
    let policy = build("first-touch", &PolicyContext::of(&topology, PAGE)).unwrap();
    Memory::new(&topology, binding, page, policy, &MemoryOptions::default()).map(drop).unwrap_err()
}

#[test]
fn bindings_and_page_sizes_are_checked() {
    let cpu = CpuId(3);
    assert_eq!(start(&[cpu, CpuId(0), cpu], PAGE), MemoryError::SharedCpu { cpu, thread: ThreadId(2) });
    assert_eq!(start(&[CpuId(8)], PAGE), MemoryError::NoSuchCpu { thread: ThreadId(0), cpu: CpuId(8) });
    assert_eq!(start(&[cpu], Bytes(5000)), MemoryError::PageSize(Bytes(5000)));
    let m = machine(1);
    let error = m.try_run(&m.spread(), "first-touch", &[Program::new(), Program::new()]).unwrap_err();
    assert_eq!(error, MemoryError::Unbound { thread: ThreadId(1), bound: 1 });
}

#[test]
fn a_full_machine_is_an_error() {
    let m = Machine { pages: vec![2, 3], ..machine(2) };
    let error = m.try_run(&m.spread()[..1], "first-touch", &[Program::new().reads(0..9, 1)]).unwrap_err();
    assert_eq!(error, MemoryError::OutOfMemory { page: PageNo(5), node: homenode_model::NodeId(0) });
    assert_eq!(
        error.to_string(),
        "no node has memory left for page 5, touched by node 0; choose a machine with more"
    );
}

#[test]
fn far_addresses_are_refused_and_far_pages_cost_little() {
    let m = machine(1);
    let far = m.run(&m.spread(), "first-touch", &[Program::new().read((1 << 30) - 1)]);
    assert_eq!(far.faults, 1);
    let run = |p: Program| m.try_run(&m.spread(), "first-touch", &[p]).unwrap_err();
    assert!(matches!(run(Program::new().read(1 << 30)), MemoryError::Address { .. }));
    let range = ByteRange { first: 1 << 50, bytes: u64::MAX };
    for mark in [
        Mark::Alloc { object: ObjectId(0), range },
        Mark::Free { object: ObjectId(0), range },
        Mark::NextTouch { range },
    ] {
        assert!(matches!(run(Program::new().mark(mark)), MemoryError::Address { .. }), "{mark:?}");
    }
}

#[test]
fn a_clock_that_overflows_is_an_error() {
    let m = machine(1);
    let error =
        m.try_run(&m.spread(), "first-touch", &[Program::new().compute(u64::MAX / 2).read(0)]).unwrap_err();
    assert_eq!(error, MemoryError::Clock { thread: ThreadId(0) });
}
