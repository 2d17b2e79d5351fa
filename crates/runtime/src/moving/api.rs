//! What the driver and the front ends call.

use homenode_model::{Bytes, MoveResult, NodeId, Ns};

use super::{ArmReport, Counters, Options, Span, Started, Touch};

/// Probes the machine and stands in front of SIGBUS and SIGSEGV. Once a process; later calls answer as the first.
pub fn start(options: &Options) -> Started;
/// Disarms everything, for good. Whatever is called later answers that it is off.
pub fn stop();
/// Arms the whole pages of these spans (tracked objects), skipping what must not be. From any thread, not in a signal
/// handler; other threads may run and touch the memory all the while.
pub fn arm(spans: &[Span]) -> ArmReport;
/// Untouched pages of `span` stay where they are and are no longer armed.
pub fn disarm(span: Span);
/// The same for all memory.
pub fn disarm_all();
/// Takes out of user-space fault handling what has been touched altogether, and brings its huge pages back. At a
/// moment when the team sleeps.
pub fn settle();
/// How much is armed and untouched.
pub fn armed() -> Bytes;
/// Hands over what was touched since the last call, in the order in which it was.
pub fn drain(tell: impl FnMut(Touch));
/// The home of the page at each address; `None` for pages that are not there.
pub fn homes(pages: &[usize], out: &mut [Option<NodeId>]);
/// The node of the CPU that runs the caller.
pub fn current_node() -> NodeId;
/// A page (its address) and where it is to go; how it ended.
pub struct Move { pub page: usize, pub to: NodeId, pub result: MoveResult }
pub struct MoveReport { pub moved: Bytes, pub already: Bytes, pub busy: Bytes, pub no_memory: Bytes, pub no_page: Bytes, pub error: Option<homenode_sys::Error>, pub took: Ns }
/// Moves pages in the calling thread and sets each result: asked first, sorted by target, in chunks that take about `chunk` each.
pub fn move_pages(moves: &mut [Move], chunk: Ns) -> MoveReport;
/// Moves shared by a team: each thread calls `take_part`, and takes what goes to its node first, then helps out.
pub struct Moves { }
impl Moves { pub fn new(moves: Vec<Move>) -> Self; pub fn take_part(&self) -> MoveReport; pub fn finish(self) -> Vec<Move>; }
/// Buffers that the kernel is about to read or write: armed pages in them are brought over first, and none is armed
/// until the result is dropped.
pub fn publish(buffers: &[Span]) -> InFlight;
/// Memory that is never to be armed again.
pub fn exclude(span: Span);
/// The program is about to free, unmap, remap, protect, advise or lock this: disarms it.
pub fn before_change(span: Span);
/// The program is about to fork, start a program, or unload a library: disarms everything; nothing is armed until the result is dropped.
pub fn before_process() -> Quiet;
/// In a forked child: the mover is off there.
pub fn in_child();
/// What in the process can pin memory, if anything: a sentence.
pub fn pinning() -> Option<String>;
/// From a hook: the program has just made something that pins memory (io_uring, AIO). Copying is off from now on.
pub fn pins(what: &'static str);
/// So far.
pub fn counters() -> Counters;
