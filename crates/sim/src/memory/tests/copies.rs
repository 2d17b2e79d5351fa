//! Are copies of pages made, used, charged for and given up as the module says?

use std::collections::VecDeque;

use homenode_model::{
    Decision, DecisionBuf, Event, Interest, MigrationCost, MoveOutcome, NodeId, Ns, PageNo, Ps,
};
use homenode_policy::{Policy, Step};

use super::super::{Memory, MemoryOptions, Outcome};
use crate::memory::testing::{Machine, PAGE, Program, check, machine, whole};
use crate::stream::Cause;
use homenode_order::step::Mark;

const COST: MigrationCost =
    MigrationCost { fixed: Ns(2_000), per_kib: Ns(100), shootdown: Ns(0), serialised: false, stops: false };

/// At each iteration mark carries out the next of its orders; first touch otherwise.
struct Orders(VecDeque<Vec<Decision>>, Vec<Decision>);

impl Policy for Orders {
    fn interest(&self) -> Interest {
        Interest::default()
    }
    fn observe(&mut self, event: &Event) {
        if let Event::Iteration { .. } = event {
            self.1 = self.0.pop_front().unwrap_or_default();
        }
    }
    fn poll(&mut self, _: Ns, out: &mut DecisionBuf) -> Step {
        let any = !self.1.is_empty();
        self.1.drain(..).for_each(|d| out.push(d));
        if any { Step::Act } else { Step::Idle }
    }
    fn outcome(&mut self, _: &MoveOutcome) {}
}

fn copy(page: u64, on: u16) -> Decision {
    Decision::Replicate { page: PageNo(page), on: NodeId(on) }
}

fn run(m: &Machine, orders: &[&[Decision]], programs: &[Program]) -> Outcome {
    let orders = Orders(orders.iter().map(|o| o.to_vec()).collect(), vec![]);
    let options = MemoryOptions::default();
    let mut memory = Memory::new(&m.build(), &m.spread(), PAGE, Box::new(orders), &options).unwrap();
    memory.feed(&whole(programs)).unwrap();
    let outcome = memory.finish().unwrap();
    check(&outcome, m);
    outcome
}

fn mark(number: u32) -> Mark {
    Mark::Iteration { number }
}

#[test]
fn reads_of_a_node_with_a_copy_are_local_and_others_go_home() {
    let m = Machine { migration: COST, ..machine(3) };
    let p0 = Program::new().read(0).mark(mark(0)).signal(0);
    let reader = || Program::new().wait(0, 1).read(0).access(0, 3, false, Cause::Coherence);
    let out = run(&m, &[&[copy(0, 1)]], &[p0, reader(), reader()]);
    assert_eq!((out.replicated, out.collapsed, out.moved), (1, 0, 0));
    let pairs = [(0, 0), (1, 1), (1, 0), (2, 0)].map(|(n, h)| out.counts.accesses(NodeId(n), NodeId(h)));
    assert_eq!(pairs, [1, 2, 0, 2]);
    assert_eq!(out.used, [1, 1, 0]);
    // The copy costs what a move costs, and thread 0 paid.
    assert_eq!(out.threads[0].moving, Ns(2_400).ps());
    assert_eq!(out.migration, Ns(2_400).ps());
}

#[test]
fn a_write_collapses_the_copies_and_the_writer_pays_all_but_the_copying() {
    let m = Machine { migration: COST, ..machine(3) };
    let p0 = Program::new().read(0).mark(mark(0)).signal(0);
    let p1 = Program::new().wait(0, 1).read(0).access(0, 0, true, Cause::Upgrade).read(0).signal(1);
    let p2 = Program::new().wait(1, 1).read(0);
    let out = run(&m, &[&[copy(0, 1), copy(0, 2)]], &[p0, p1, p2]);
    assert_eq!((out.replicated, out.collapsed), (2, 1));
    assert_eq!(out.threads[1].moving, Ns(2_000).ps());
    assert_eq!((out.threads[1].local, out.threads[1].remote), (1, 1));
    assert_eq!((out.threads[2].local, out.threads[2].remote), (0, 1));
    assert_eq!(out.used, [1, 0, 0], "given back");
}

#[test]
fn moving_and_freeing_a_page_gives_its_copies_back() {
    let m = machine(3);
    let range = homenode_order::step::ByteRange { first: 0, bytes: PAGE.0 };
    let object = homenode_model::ObjectId(0);
    let to = |n| Decision::Move { page: PageNo(0), to: NodeId(n) };
    let p0 = Program::new().reads(0..2, 1).mark(mark(0)).mark(mark(1)).mark(mark(2));
    let p0 = p0.mark(Mark::Free { object, range });
    let out = run(&m, &[&[copy(0, 1), copy(1, 2)], &[to(1)], &[copy(0, 2)]], &[p0]);
    assert_eq!((out.replicated, out.moved, out.collapsed), (3, 1, 0));
    assert_eq!(out.used, [1, 0, 1]);
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let m = Machine { pages: vec![9, 1, 0], ..machine(3) };
    let p0 = Program::new().reads(0..2, 1).mark(mark(0));
    let orders = [copy(7, 1), copy(0, 0), copy(0, 2), copy(0, 70), copy(0, 1), copy(0, 1), copy(1, 1)];
    let out = run(&m, &[&orders], &[p0]);
    assert_eq!((out.replicated, out.moves_refused), (1, 6));
}

#[test]
fn copies_make_room_for_pages_without_a_home() {
    let m = Machine { pages: vec![3, 1], ..machine(2) };
    let p0 = Program::new().reads(0..2, 1).mark(mark(0)).reads(2..4, 1);
    let out = run(&m, &[&[copy(0, 1), copy(1, 1)]], &[p0]);
    assert_eq!((out.replicated, out.collapsed, out.moves_refused), (1, 1, 1));
    assert_eq!(out.used, [3, 1]);
}

#[test]
fn a_write_back_goes_home_and_collapses_nothing() {
    let m = machine(2);
    let p0 = Program::new().read(0).mark(mark(0)).access(0, 5, true, Cause::WriteBack);
    let out = run(&m, &[&[copy(0, 1)]], &[p0]);
    assert_eq!((out.collapsed, out.counts.at(NodeId(0), NodeId(0), Cause::WriteBack)), (0, 1));
    assert_eq!(out.time, Ns(100).ps() + Ps(0));
}
