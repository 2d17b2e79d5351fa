//! Are the lines of frames fetched, kept, invalidated and given up as the module `frames` says?

use homenode_model::{
    Decision, DecisionBuf, Event, Interest, MigrationCost, MoveOutcome, MoveResult, NodeId, Ns, PageNo,
};
use homenode_policy::{Policy, Step};
use std::sync::{Arc, Mutex};

use super::super::{LineCounts, Memory, MoveWorker, Outcome};
use crate::memory::testing::{Machine, PAGE, Program, check, machine, whole};
use crate::stream::Cause;
use homenode_order::step::{ByteRange, Mark};

/// What the policy heard: frames that are gone, and refusals.
type Heard = Arc<Mutex<(Vec<(PageNo, NodeId)>, Vec<MoveResult>)>>;

/// At iteration mark n carries out the n-th of its orders; first touch otherwise.
struct Orders(Vec<Vec<Decision>>, Vec<Decision>, Heard);

impl Policy for Orders {
    fn interest(&self) -> Interest {
        Interest::default()
    }
    fn observe(&mut self, event: &Event) {
        match event {
            Event::Iteration { number } => self.1 = self.0.get(*number as usize).cloned().unwrap_or_default(),
            Event::FrameGone { page, node } => self.2.lock().unwrap().0.push((*page, *node)),
            _ => {}
        }
    }
    fn poll(&mut self, _: Ns, out: &mut DecisionBuf) -> Step {
        let any = !self.1.is_empty();
        self.1.drain(..).for_each(|d| out.push(d));
        if any { Step::Act } else { Step::Idle }
    }
    fn outcome(&mut self, outcome: &MoveOutcome) {
        if !matches!(outcome.result, MoveResult::Moved | MoveResult::Replicated) {
            self.2.lock().unwrap().1.push(outcome.result);
        }
    }
}

fn frame(page: u64, on: u16) -> Decision {
    Decision::ReplicateLines { page: PageNo(page), on: NodeId(on) }
}

fn run(m: &Machine, orders: &[&[Decision]], programs: &[Program]) -> (Outcome, Heard) {
    let heard = Heard::default();
    let orders = Orders(orders.iter().map(|o| o.to_vec()).collect(), vec![], heard.clone());
    let mut memory = Memory::new(&m.build(), &m.spread(), PAGE, Box::new(orders), &m.options).unwrap();
    memory.feed(&whole(programs)).unwrap();
    let outcome = memory.finish().unwrap();
    check(&outcome, m);
    (outcome, heard)
}

fn mark(number: u32) -> Mark {
    Mark::Iteration { number }
}

/// Thread 0 touches page 0, and the first orders are carried out.
fn begin() -> Program {
    Program::new().read(0).mark(mark(0)).signal(0)
}

fn read(p: Program, line: u64) -> Program {
    p.access(0, line, false, Cause::Capacity)
}

fn write(p: Program, line: u64) -> Program {
    p.access(0, line, true, Cause::Capacity)
}

/// (local, remote) accesses of a thread, and how long it waited for them.
fn of(out: &Outcome, t: usize) -> (u64, u64, u64) {
    (out.threads[t].local, out.threads[t].remote, out.threads[t].memory.0 / 1000)
}

#[test]
fn a_line_comes_from_the_home_once_and_is_local_then() {
    let p1 = read(read(read(Program::new().wait(0, 1), 3), 3), 4);
    let (out, _) = run(&machine(2), &[&[frame(0, 1)]], &[begin(), p1]);
    assert_eq!(of(&out, 1), (1, 2, 100 + 2 * 250));
    assert_eq!(out.lines, LineCounts { fetched: 2, ..LineCounts::default() });
    assert_eq!((out.replicated, out.collapsed, &out.used[..]), (1, 0, &[1, 1][..]));
}

#[test]
fn a_write_takes_its_line_from_the_other_frames_and_no_more() {
    let m = machine(3);
    let p0 = write(begin().wait(1, 2), 3).signal(2);
    let reader = || read(read(Program::new().wait(0, 1), 3), 4).signal(1).wait(2, 1);
    let again = |p| read(read(p, 3), 4);
    let (out, _) = run(&m, &[&[frame(0, 1), frame(0, 2)]], &[p0, again(reader()), again(reader())]);
    // Line 3 comes again, line 4 is there.
    assert_eq!([of(&out, 1), of(&out, 2)], [(1, 3, 850); 2]);
    assert_eq!(out.lines, LineCounts { fetched: 6, invalidated: 2, frames_given_up: 0 });
    // The home's write is local, and waits for the frames' answers.
    assert_eq!(of(&out, 0), (2, 0, 100 + 250));
    assert_eq!((out.collapsed, &out.used[..]), (0, &[1, 1, 1][..]));
}

#[test]
fn a_frame_that_owns_a_line_serves_its_node_and_the_home() {
    let m = machine(2);
    // Node 1 writes line 3 (from the home), and again; the home then reads it from node 1.
    let p1 = write(write(Program::new().wait(0, 1), 3), 3).signal(1).wait(2, 1);
    let p0 = read(begin().wait(1, 1), 3).signal(2);
    // Both have the line now. The next write asks the home.
    let (out, _) = run(&m, &[&[frame(0, 1)]], &[read(p0, 3), write(p1, 3)]);
    assert_eq!(of(&out, 0), (2, 1, 100 + 250 + 100));
    assert_eq!(of(&out, 1), (1, 2, 250 + 100 + 250));
    assert_eq!(out.lines.fetched, 1);
}

#[test]
fn lines_are_written_back_to_the_frame_that_owns_them() {
    let p1 = write(Program::new().wait(0, 1), 3);
    let back = |p: Program, line| p.access(0, line, true, Cause::WriteBack);
    let (out, _) = run(&machine(2), &[&[frame(0, 1)]], &[begin(), back(back(p1, 3), 4)]);
    let at = |home| out.counts.at(NodeId(1), NodeId(home), Cause::WriteBack);
    assert_eq!((at(1), at(0)), (1, 1));
}

#[test]
fn a_full_node_gives_up_the_frame_that_has_not_missed_for_longest() {
    let m = Machine { pages: vec![9, 2], ..machine(2) };
    let p0 = Program::new().reads(0..3, 1).mark(mark(0)).signal(0).wait(1, 1).mark(mark(1)).signal(2);
    // Page 0 misses last, so page 1 goes, though its frame is younger.
    let p1 = Program::new().wait(0, 1).read(1).read(0).signal(1).wait(2, 1).read(0).read(1).read(2);
    let (out, heard) = run(&m, &[&[frame(0, 1), frame(1, 1)], &[frame(2, 1)]], &[p0, p1]);
    assert_eq!(heard.lock().unwrap().0, [(PageNo(1), NodeId(1))]);
    assert_eq!(out.lines, LineCounts { fetched: 3, invalidated: 0, frames_given_up: 1 });
    // Page 0 is still there; page 1 is remote again, and page 2's line comes for the first time.
    assert_eq!(of(&out, 1), (1, 4, 100 + 4 * 250));
    assert_eq!((out.replicated, &out.used[..]), (3, &[3, 2][..]));
}

#[test]
fn a_page_without_a_home_takes_the_memory_of_a_frame() {
    let m = Machine { pages: vec![2, 1], ..machine(2) };
    let p0 = Program::new().reads(0..2, 1).mark(mark(0)).signal(0).wait(1, 1).read(2);
    let p1 = write(Program::new().wait(0, 1), 3).signal(1);
    let (out, heard) = run(&m, &[&[frame(0, 1)]], &[p0, p1]);
    assert_eq!(heard.lock().unwrap().0, [(PageNo(0), NodeId(1))]);
    assert_eq!(out.lines.frames_given_up, 1);
    assert_eq!((out.placement.home(PageNo(2)), &out.used[..]), (Some(NodeId(1)), &[2, 1][..]));
}

#[test]
fn moving_and_freeing_a_page_gives_its_frames_back() {
    let object = homenode_model::ObjectId(0);
    let range = ByteRange { first: 0, bytes: PAGE.0 };
    let to = Decision::Move { page: PageNo(0), to: NodeId(1) };
    let p0 = Program::new().reads(0..2, 1).mark(mark(0)).mark(mark(1)).mark(mark(2));
    let p0 = p0.mark(Mark::Free { object, range });
    let orders: [&[Decision]; 3] = [&[frame(0, 1), frame(1, 2)], &[to], &[frame(0, 2)]];
    let (out, _) = run(&machine(3), &orders, &[p0]);
    assert_eq!((out.replicated, out.moved), (3, 1));
    assert_eq!(out.used, [1, 0, 1]);
}

#[test]
fn what_cannot_have_a_frame_is_refused() {
    let m = Machine { pages: vec![9, 1, 0], ..machine(3) };
    let p0 = Program::new().reads(0..2, 1).mark(mark(0));
    let copy = Decision::Replicate { page: PageNo(0), on: NodeId(1) };
    let orders = [frame(7, 1), frame(0, 0), frame(0, 2), frame(0, 70), frame(0, 1), frame(0, 1), copy];
    let (out, heard) = run(&m, &[&orders], std::slice::from_ref(&p0));
    use MoveResult::{AlreadyThere, NoMemory, NoPage, Unsupported};
    assert_eq!(
        heard.lock().unwrap().1,
        [NoPage, AlreadyThere, NoMemory, Unsupported, AlreadyThere, MoveResult::Busy]
    );
    assert_eq!(out.replicated, 1);
    let uncached = Machine { remote_cacheable: false, ..machine(2) };
    let (_, heard) = run(&uncached, &[&[frame(0, 1)]], &[p0]);
    assert_eq!(heard.lock().unwrap().1, [Unsupported]);
}

#[test]
fn a_frame_costs_what_a_move_costs_less_the_copying_on_the_time_of_the_mover() {
    let cost = MigrationCost { fixed: Ns(2_000), per_kib: Ns(100), ..MigrationCost::default() };
    let mut m = Machine { migration: cost, ..machine(2) };
    let cost = |m: &Machine| {
        let (out, _) = run(m, &[&[frame(0, 1)]], &[begin()]);
        (out.migration, out.threads[0].moving)
    };
    assert_eq!(cost(&m), (Ns(2_000).ps(), Ns(2_000).ps()));
    m.options.mover = MoveWorker::Apart;
    assert_eq!(cost(&m), (Ns(2_000).ps(), homenode_model::Ps::ZERO));
}
