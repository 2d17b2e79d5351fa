//! What a run came to: whether moving pages paid.
//!
//! # What a verdict says
//!
//! A verdict never contradicts the numbers beside it. The guard compares how often pages that
//! moved, and pages that it held back, are touched from remote nodes (presence samples, see
//! [`homenode_wire::facts::Guard`]).
//!
//! | says | when |
//! |---|---|
//! | moving pays (*would pay* on pretended nodes) | the guard says so, and the remote share of moved pages is below that of held-back ones |
//! | nothing to gain | nearly all touched pages were at home before anything moved |
//! | no placement lasts | the guard does not say that moving pays, and other nodes use the memory each time: an object's pilots were used by another node, or its pages went back and forth |
//! | not judged, threads change nodes | the guard does not say that moving pays, and some threads change nodes |
//! | not judged, threads are not bound | threads that are not bound were seen fewer than [`LOOKS`] times each, or all on one node |
//! | cannot be told | there are too few samples |
//!
//! Threads that change nodes are named first, whatever the verdict: where they run decides what is
//! remote.

use homenode_wire::facts::{Arming, Facts, Guard, Samples, Verdict};

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// An error of homenode's own left nothing but its text.
    Stopped,
    /// No parallel region was seen.
    NothingSeen,
    /// Moving pays.
    Pays,
    /// What moved is used where it is now; that this is better than before does not show.
    Kept,
    /// Pages are spread more evenly over the nodes.
    Evener,
    /// Moving made no difference, and went back.
    NoDifference,
    /// Moving did harm, and went back.
    Harms,
    /// Nearly all pages were where they are used.
    NothingToGain,
    /// Several nodes use the same pages, and no placement would last.
    Contested,
    /// Threads change nodes, and it cannot be told.
    ThreadsChange,
    /// Threads are not bound, and where they ran is chance: hardly seen, or all on one node.
    ThreadsNotBound,
    /// Nothing moved, for the program asked for nothing.
    NothingAsked,
    /// A plan was carried out.
    Planned,
    /// Nothing moved.
    NothingMoved,
    /// Pages moved, and too few samples tell whether that pays.
    TooFew,
    /// Pages moved, and nobody was to judge.
    NotJudged,
}

impl Worked {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::NothingSeen => "nothing-seen",
            Self::Pays => "pays",
            Self::Kept => "kept",
            Self::Evener => "evener",
            Self::NoDifference => "no-difference",
            Self::Harms => "harms",
            Self::NothingToGain => "nothing-to-gain",
            Self::Contested => "contested",
            Self::ThreadsChange => "threads-change-nodes",
            Self::ThreadsNotBound => "threads-not-bound",
            Self::NothingAsked => "nothing-asked",
            Self::Planned => "planned",
            Self::NothingMoved => "nothing-moved",
            Self::TooFew => "too-few-samples",
            Self::NotJudged => "not-judged",
        }
    }
}

/// Touched pages that it takes to say that there is nothing to gain.
const ENOUGH: u64 = 24;
/// There is nothing to gain if at most one touched page in `HARDLY_ANY` had another home.
const HARDLY_ANY: u64 = 50;
/// Bytes of a page as counts of pages mean it.
pub(crate) const SMALL_PAGE: u64 = 4096;

/// Many pages move if at least one touched page in `MANY_MOVE` had another home.
const MANY_MOVE: u64 = 5;

/// Whether moved pages stay with their new nodes, and many of all touched pages had another home
/// before. Few blocks are held back, so by chance all of them may lie where they are used.
fn came_home(f: &Facts) -> bool {
    let (moved, before) = (f.guard.moved, f.touched());
    let many_moved = before.all >= ENOUGH && before.remote.saturating_mul(MANY_MOVE) >= before.all;
    let moved_share = u128::from(moved.remote) * u128::from(before.all);
    many_moved && moved_share * 2 < u128::from(before.remote) * u128::from(moved.all)
}

/// The touches that moved pages are compared with, and what they are of: the pages held back, or
/// all pages before if the others do not show the gain.
pub(crate) fn compared(f: &Facts) -> (Samples, &'static str) {
    let Guard { moved, held, .. } = f.guard;
    match is_better(moved, held) || worked(f) != Worked::Pays {
        true => (held, "held back"),
        false => (f.touched(), "before"),
    }
}

/// Whether moved pages are touched remotely less often than those held back.
fn is_better(moved: Samples, held: Samples) -> bool {
    u128::from(moved.remote) * u128::from(held.all) < u128::from(held.remote) * u128::from(moved.all)
}

/// Whether nearly all pages were where they are used.
fn is_at_home(before: Samples) -> bool {
    before.all >= ENOUGH && before.remote.saturating_mul(HARDLY_ANY) <= before.all
}

/// Looks at each thread that it takes to say that the thread stays on its node. Looks are at least
/// 20 ms apart, so that takes ten seconds. In shorter runs the system's scheduler decided the
/// verdict.
pub(crate) const LOOKS: u64 = 500;

/// Whether most threads could run on any node and were hardly seen. The next run may place them
/// otherwise, so a verdict would be chance. A bound team beside a few helper threads is judged.
fn are_hardly_seen(f: &Facts) -> bool {
    let t = f.threads;
    let most_are_free = t.unbound > 1 && t.unbound > t.threads / 2;
    f.nodes > 1 && most_are_free && t.looks < LOOKS.saturating_mul(t.threads)
}

/// Whether several threads could run on any node and were all on one: in the next run they may be
/// on several.
fn are_together(f: &Facts) -> bool {
    let t = f.threads;
    f.nodes > 1 && t.unbound > 1 && t.nodes == 1
}

/// Whether other nodes use half or more of the memory each time. Who comes first is then chance,
/// and so is the guard's comparison.
const fn is_mostly_contested(f: &Facts) -> bool {
    f.guard.contested > 0 && f.guard.contested / SMALL_PAGE * 2 >= f.objects.pages
}

/// Why the verdict of threads that are not bound is left open, for the long report.
pub(crate) fn why_not_bound(f: &Facts) -> &'static str {
    match are_hardly_seen(f) {
        true => "the program was too short to see where they run",
        false => "all were seen on one node",
    }
}

/// What a process's run came to.
pub fn worked(f: &Facts) -> Worked {
    let (moved, held) = (f.guard.moved, f.guard.held);
    let verdict = (!f.guard.off).then_some(f.guard.verdict);
    let judged = match verdict {
        Some(Verdict::Pays | Verdict::AtHome) if is_better(moved, held) || came_home(f) => Some(Worked::Pays),
        Some(Verdict::Pays | Verdict::AtHome) => Some(Worked::Kept),
        Some(Verdict::Evener) => Some(Worked::Evener),
        Some(Verdict::NoGain) => Some(Worked::NoDifference),
        Some(Verdict::Harms) => Some(Worked::Harms),
        _ => None,
    };
    match judged {
        _ if f.nodes == 0 && f.stopped.is_some() => Worked::Stopped,
        _ if f.regions.runs == 0 && f.counters.arms == 0 => Worked::NothingSeen,
        _ if are_hardly_seen(f) && f.plan.is_none() => Worked::ThreadsNotBound,
        Some(Worked::Pays) => Worked::Pays,
        _ if f.threads.changed_nodes > 0 && f.plan.is_none() => Worked::ThreadsChange,
        _ if are_together(f) && f.plan.is_none() => Worked::ThreadsNotBound,
        _ if is_at_home(f.touched()) && f.plan.is_none() => Worked::NothingToGain,
        Some(_) if is_mostly_contested(f) => Worked::Contested,
        Some(judged) => judged,
        None if f.plan.is_some() => Worked::Planned,
        None if f.guard.contested > 0 && verdict.is_some() => Worked::Contested,
        None if f.objects.moved == 0 && f.arming == Arming::Asked && f.counters.arms == 0 => {
            Worked::NothingAsked
        }
        None if f.objects.moved == 0 => Worked::NothingMoved,
        None if verdict.is_some() => Worked::TooFew,
        None => Worked::NotJudged,
    }
}

/// Whether nothing but loops was looked at: where there is one node, nothing can move.
pub(crate) fn looked_at_loops_alone(f: &Facts) -> bool {
    f.schedule.is_some() && f.nodes == 1
}
