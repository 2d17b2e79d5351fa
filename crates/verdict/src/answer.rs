//! The answer on a run in three lines of at most [`COLUMNS`] columns: whether it worked, what it
//! cost, what to do next.
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

use homenode_dataset::foreign;
use homenode_model::Ns;
use homenode_wire::facts::{Arming, Facts, Guard, Samples, Verdict};

use crate::advice::{self, SourceNames};
use crate::report::mib;
use crate::schedule;
use crate::text::{COLUMNS, first_that_fits, percent, seconds};

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
const LOOKS: u64 = 500;

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

/// Samples of both groups, in the longest form that is left room for.
fn groups(f: &Facts) -> [String; 2] {
    let (a, (b, of)) = (f.guard.moved, compared(f));
    let share = |s: Samples| percent(s.remote, s.all);
    [
        format!("remote {} of {} moved, {} of {} {of}", share(a), a.all, share(b), b.all),
        format!("remote {} moved, {} {of}", share(a), share(b)),
    ]
}

/// Whether it worked, in forms that become shorter.
fn says(f: &Facts) -> Vec<String> {
    let moved = f.objects.moved;
    let with = |begin: &str| groups(f).map(|g| format!("{begin}: {g}")).to_vec();
    match worked(f) {
        Worked::Stopped => {
            vec![format!("stopped: {}", f.stopped.as_deref().map(foreign::clean).unwrap_or_default())]
        }
        Worked::NothingSeen => {
            vec!["nothing to do: no parallel region was seen".into()]
        }
        Worked::Pays if f.pretended => with("moving would pay"),
        Worked::Pays => with("moving pays"),
        Worked::Kept => with("no gain shows, pages stay"),
        Worked::Evener => with("spread more evenly, no other gain"),
        Worked::NoDifference => with("moving makes no difference, undone"),
        Worked::Harms => with("moving harms, undone"),
        Worked::NothingToGain => {
            let Samples { remote, all } = f.touched();
            vec![format!("nothing to gain: {remote} of {all} touched pages had another home before")]
        }
        Worked::Contested => {
            let size = mib(f.guard.contested / SMALL_PAGE);
            vec![format!("no placement lasts: {size} are used by another node each time")]
        }
        Worked::ThreadsChange | Worked::ThreadsNotBound => {
            vec![format!("not judged: {moved} pages moved"), "not judged".into()]
        }
        Worked::NothingAsked => vec!["no page was moved: the program asked for none by hn_next_touch".into()],
        Worked::Planned => {
            let p = f.plan.as_ref().map(|p| p.progress).unwrap_or_default();
            vec![format!("{} of {} planned pages are at home", percent(p.at_home, p.pages), p.pages)]
        }
        Worked::NothingMoved => {
            let Samples { remote, all } = f.touched();
            let seen = format!("{} of {all} touched pages had another home", percent(remote, all));
            let told = (remote > 0).then(|| format!("no page was moved: {seen}"));
            told.into_iter().chain(["no page was moved".into()]).collect()
        }
        Worked::TooFew => {
            let (a, b) = (f.guard.moved.all, f.guard.held.all);
            vec![
                format!("cannot tell whether it pays: {moved} pages moved, {a} and {b} samples are too few"),
                format!("cannot tell whether it pays: {moved} pages moved, too few samples"),
            ]
        }
        Worked::NotJudged => vec![format!("{moved} pages moved; whether that pays was not judged")],
    }
}

/// Whether nothing but loops was looked at: where there is one node, nothing can move.
pub(crate) fn looked_at_loops_alone(f: &Facts) -> bool {
    f.schedule.is_some() && f.nodes == 1
}

/// The three lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it worked, with its numbers.
    pub worked: String,
    /// What it cost.
    pub cost: String,
    /// What to do next.
    pub next: String,
}

impl Answer {
    /// Of processes, the first of which has run most regions. `command` is what was run.
    pub fn of(processes: &[Facts], names: &[SourceNames], command: &str) -> Option<Self> {
        let first = processes.first()?;
        if looked_at_loops_alone(first) {
            let dealt = schedule::of(processes).map(|d| schedule::line(d, ROOM));
            return Some(Self {
                worked: dealt.unwrap_or_else(|| "no loop was met".into()),
                cost: "one node with memory: no page can move; cost not measured".into(),
                next: "next: compare the program's times with and without --schedule".into(),
            });
        }
        let advice = names.first().map(|n| advice::all(first, n)).unwrap_or_default();
        let others = processes.iter().filter(|f| f.regions.runs > 0 || f.counters.arms > 0).count();
        Some(Self {
            worked: worked_line(first, others),
            cost: cost(processes),
            next: next(first, &advice, command),
        })
    }

    /// As they are printed.
    pub fn lines(&self) -> [String; 3] {
        [&self.worked, &self.cost, &self.next].map(|line| format!("{PREFIX}{line}"))
    }
}

/// Stands before each line: they share a terminal with the program's.
pub const PREFIX: &str = "homenode: ";
/// Columns that are left.
const ROOM: usize = COLUMNS - PREFIX.len();

fn worked_line(f: &Facts, processes: usize) -> String {
    let mut heads = Vec::new();
    let t = f.threads;
    let not_bound = worked(f) == Worked::ThreadsNotBound;
    if t.changed_nodes > 0 && !not_bound {
        heads.push(format!("{} of {} threads changed nodes; ", t.changed_nodes, t.threads));
    }
    if not_bound {
        heads.push(format!("{} of {} threads are not bound; ", t.unbound, t.threads));
    }
    let head = match (heads.pop(), processes) {
        (Some(threads), _) => threads,
        (None, 2..) => format!("process {} of {processes}: ", f.pid),
        (None, _) => String::new(),
    };
    let forms: Vec<String> = says(f).into_iter().map(|text| format!("{head}{text}")).collect();
    first_that_fits(&forms, ROOM)
}

fn cost(processes: &[Facts]) -> String {
    let sum = |of: fn(&Facts) -> Ns| Ns(processes.iter().map(|f| of(f).0).fold(0, u64::saturating_add));
    let (own, cpu, waited) = (sum(|f| f.own), sum(|f| f.cpu), sum(|f| f.waited));
    let share = percent(own.0, cpu.0);
    let held = match waited {
        Ns::ZERO => "did not wait".into(),
        _ => format!("waited {} for it", seconds(waited)),
    };
    let own = seconds(own);
    first_that_fits(
        &[
            format!("cost {own} of CPU time ({share}); the program {held}"),
            format!("cost {own} of CPU time ({share})"),
        ],
        ROOM,
    )
}

fn next(f: &Facts, advice: &[advice::Advice], command: &str) -> String {
    let command = foreign::clean(command);
    let run = |words: &str| {
        first_that_fits(
            &[format!("next: homenode {words} -- {command}"), format!("next: homenode {words} -- APP")],
            ROOM,
        )
    };
    let worked = worked(f);
    let by_chance = worked == Worked::NothingMoved && f.threads.unbound > 1 && f.counters.arms > 0;
    if f.threads.changed_nodes > 0 || worked == Worked::ThreadsNotBound || by_chance {
        return match f.pretended {
            true => run(&format!("run --bind --pretend-nodes {}", f.nodes)),
            false => run("run --bind"),
        };
    }
    match (worked, advice) {
        (Worked::NothingSeen, _) => run("record --on live"),
        (Worked::NothingToGain, _) => "next: nothing to do; -v has the numbers".into(),
        (Worked::Stopped, _) => "next: report this text as a bug of homenode's".into(),
        (Worked::Harms | Worked::NoDifference, _) => {
            "next: leave the pages where they are; -v has the numbers".into()
        }
        (_, [first, rest @ ..]) => {
            let remedy = first.remedy();
            let more = match rest.len() {
                0 => "-v says why".to_owned(),
                n => format!("-v: {n} more"),
            };
            let brief = first.brief();
            first_that_fits(
                &[
                    format!("next: {remedy} ({more})"),
                    format!("next: {remedy}"),
                    format!("next: {brief} ({more})"),
                    format!("next: {brief}"),
                ],
                ROOM,
            )
        }
        (Worked::NothingMoved, _) if f.stopped.is_some() || !f.notes.is_empty() => {
            "next: -v says what stood in the way".into()
        }
        (Worked::TooFew, _) => "next: a longer run tells more; -v has the numbers".into(),
        (Worked::NotJudged, _) if f.guard.off => {
            "next: without --force it is judged; -v has the numbers".into()
        }
        _ => "next: nothing to change; -v has the numbers".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::Bytes;
    use homenode_wire::facts::{
        FRAMES, Guard, MoverCounters, ObjectFacts, ObjectTotals, Origin, Regions, ThreadNodes, WatchFacts,
    };

    fn ran() -> Facts {
        let regions = Regions { in_source: 2, runs: 40, ..Regions::default() };
        Facts { nodes: 2, regions, cpu: Ns(2_000_000_000), own: Ns(20_000_000), ..Facts::default() }
    }

    fn samples(remote: u64, all: u64) -> Samples {
        Samples { remote, all }
    }

    fn judged(verdict: Verdict, moved: Samples, held: Samples) -> Facts {
        let objects = ObjectTotals { moved: 500, ..ObjectTotals::default() };
        Facts { guard: Guard { off: false, verdict, moved, held, contested: 0 }, objects, ..ran() }
    }

    fn object(moved: u64, touched: Vec<u64>) -> ObjectFacts {
        let homes = vec![touched.iter().sum()];
        ObjectFacts { moved, homes, touched, ..ObjectFacts::bare(Origin::Static(1), Bytes::mib(1)) }
    }

    fn lines(f: &Facts) -> [String; 3] {
        let mut names = SourceNames::default();
        names.statics.insert(1, "grid".into());
        let answer = Answer::of(std::slice::from_ref(f), &[names], "./app").unwrap();
        let lines = answer.lines();
        assert!(lines.iter().all(|l| l.chars().count() <= COLUMNS), "{lines:#?}");
        lines
    }

    #[test]
    fn held_back_blocks_of_one_node_do_not_hide_a_gain() {
        let mut f = judged(Verdict::AtHome, samples(0, 48), samples(0, 24));
        f.objects.moved = 1039;
        f.objects.most = vec![object(1039, vec![1254, 1039])];
        assert_eq!(worked(&f), Worked::Pays);
        assert_eq!(lines(&f)[0], "homenode: moving pays: remote 0.0 % of 48 moved, 45.3 % of 2293 before");
        f.guard.moved = samples(24, 48);
        assert_eq!(worked(&f), Worked::Kept, "moved pages are touched remotely as often as before");
        f.guard.moved = samples(0, 48);
        (f.objects.moved, f.objects.most[0].moved) = (200, 200);
        assert_eq!(worked(&f), Worked::Kept, "few pages moved");
    }

    #[test]
    fn a_verdict_agrees_with_its_numbers() {
        for verdict in [Verdict::Pays, Verdict::AtHome] {
            // Shares that were printed beside "pays".
            for (moved, held) in [(80, 28), (348, 0), (312, 312)] {
                let f = judged(verdict, samples(moved, 1000), samples(held, 1000));
                assert_eq!(worked(&f), Worked::Kept, "{moved} {held}");
                assert!(!lines(&f)[0].contains("pays"), "{:?}", lines(&f));
            }
            let f = judged(verdict, samples(0, 32), samples(6, 24));
            assert_eq!(
                lines(&f)[0],
                "homenode: moving pays: remote 0.0 % of 32 moved, 25.0 % of 24 held back"
            );
            let f = Facts { pretended: true, ..f };
            assert!(lines(&f)[0].starts_with("homenode: moving would pay: remote 0.0 %"));
        }
        let f = judged(Verdict::Open, samples(1, 3), samples(0, 2));
        assert_eq!(lines(&f)[0], "homenode: cannot tell whether it pays: 500 pages moved, too few samples");
        // Whatever the numbers, a verdict says "pays" only where they do.
        for verdict in [Verdict::Evener, Verdict::NoGain, Verdict::Harms] {
            let f = judged(verdict, samples(90, 100), samples(10, 100));
            assert!(!lines(&f)[0].contains("pays"), "{:?}", lines(&f));
        }
    }

    #[test]
    fn what_is_at_home_already_is_nothing_to_gain() {
        let most = vec![object(3, vec![2000, 2094])];
        let objects = ObjectTotals { moved: 3, most, ..ObjectTotals::default() };
        let f = Facts { objects, pretended: true, ..ran() };
        assert_eq!(
            lines(&f),
            [
                "homenode: nothing to gain: 3 of 4094 touched pages had another home before",
                "homenode: cost 20.00 ms of CPU time (1.0 %); the program did not wait",
                "homenode: next: nothing to do; -v has the numbers",
            ]
        );
    }

    #[test]
    fn threads_that_change_nodes_come_first_and_take_no_gain_away() {
        let threads = ThreadNodes { threads: 4, unbound: 4, changed_nodes: 3, nodes: 2, looks: 4 * LOOKS };
        for verdict in [Verdict::Harms, Verdict::NoGain, Verdict::Open, Verdict::AtHome] {
            let f = Facts { threads, ..judged(verdict, samples(20, 24), samples(2, 24)) };
            let [first, _, next] = lines(&f);
            assert_eq!(first, "homenode: 3 of 4 threads changed nodes; not judged: 500 pages moved");
            assert_eq!(next, "homenode: next: homenode run --bind -- ./app");
        }
        let f = Facts { threads, ..judged(Verdict::Pays, samples(1, 24), samples(12, 24)) };
        assert!(lines(&f)[0].starts_with("homenode: 3 of 4 threads changed nodes; moving pays: remote"));
    }

    #[test]
    fn what_was_seen_is_told_although_nothing_moved() {
        let watch = WatchFacts { before: samples(373, 746), ..WatchFacts::default() };
        let seen = Facts { watch: Some(watch), ..ran() };
        assert_eq!(worked(&seen), Worked::NothingMoved);
        assert_eq!(
            lines(&seen)[0],
            "homenode: no page was moved: 50.0 % of 746 touched pages had another home"
        );
        assert_eq!(lines(&ran())[0], "homenode: no page was moved");
    }

    #[test]
    fn threads_that_shared_a_node_by_chance_are_no_reason_to_say_that_nothing_is_to_be_gained() {
        let threads = ThreadNodes { threads: 2, unbound: 2, changed_nodes: 0, nodes: 1, looks: 2 * LOOKS };
        let most = vec![object(0, vec![4096])];
        let f = Facts {
            threads,
            objects: ObjectTotals { most, ..ObjectTotals::default() },
            pretended: true,
            ..ran()
        };
        let [first, _, next] = lines(&f);
        assert_eq!(first, "homenode: 2 of 2 threads are not bound; not judged: 0 pages moved");
        assert_eq!(next, "homenode: next: homenode run --bind --pretend-nodes 2 -- ./app");
        // Armed, and nobody came from elsewhere: that may be chance, too.
        let counters = MoverCounters { arms: 1, ..MoverCounters::default() };
        let some = ThreadNodes { nodes: 2, ..threads };
        let apart = Facts { threads: some, counters, objects: ObjectTotals::default(), ..f.clone() };
        assert_eq!(lines(&apart)[0], "homenode: no page was moved");
        assert!(lines(&apart)[2].contains("run --bind"));
        for threads in [ThreadNodes { unbound: 0, ..threads }, ThreadNodes { nodes: 2, ..threads }] {
            assert_eq!(worked(&Facts { threads, ..f.clone() }), Worked::NothingToGain);
        }
    }

    #[test]
    fn a_short_run_of_threads_that_are_not_bound_says_the_same_every_time() {
        // Where such threads ran is chance. So are the guard's verdict and the changes of nodes.
        let seen = ThreadNodes { threads: 2, unbound: 2, changed_nodes: 0, nodes: 2, looks: 2 * LOOKS - 1 };
        for threads in
            [seen, ThreadNodes { changed_nodes: 1, ..seen }, ThreadNodes { nodes: 1, looks: 4, ..seen }]
        {
            for verdict in [Verdict::Pays, Verdict::Harms, Verdict::NoGain, Verdict::Open] {
                let f = Facts { threads, ..judged(verdict, samples(1, 24), samples(12, 24)) };
                let [first, _, next] = lines(&f);
                assert_eq!(first, "homenode: 2 of 2 threads are not bound; not judged: 500 pages moved");
                assert_eq!(next, "homenode: next: homenode run --bind -- ./app");
            }
        }
        // Once they are seen often enough, or bound, the guard's verdict counts. Two helper threads
        // of a bound team do not matter.
        let helped = ThreadNodes { threads: 10, looks: 40, ..seen };
        for threads in
            [ThreadNodes { looks: 2 * LOOKS, ..seen }, ThreadNodes { unbound: 0, looks: 4, ..seen }, helped]
        {
            let f = Facts { threads, ..judged(Verdict::Pays, samples(1, 24), samples(12, 24)) };
            assert_eq!(worked(&f), Worked::Pays);
        }
    }

    #[test]
    fn memory_that_several_nodes_use_each_time_is_named_and_nothing_more_is_said_of_moving() {
        let f = judged(Verdict::Open, Samples::default(), Samples::default());
        let f = Facts { guard: Guard { contested: 8 << 20, ..f.guard }, ..f };
        assert_eq!(worked(&f), Worked::Contested);
        assert_eq!(lines(&f)[0], "homenode: no placement lasts: 8.0 MiB are used by another node each time");
        // Against moving, the guard's numbers are chance where most memory is such.
        for verdict in [Verdict::Harms, Verdict::NoGain, Verdict::AtHome] {
            let harms = judged(verdict, samples(20, 24), samples(2, 24));
            let objects = ObjectTotals { pages: 2048, ..harms.objects.clone() };
            let of = |contested| Facts {
                guard: Guard { contested, ..harms.guard },
                objects: objects.clone(),
                ..harms.clone()
            };
            assert_eq!(worked(&of(8 << 20)), Worked::Contested);
            assert_ne!(worked(&of(1 << 20)), Worked::Contested);
        }
        // Other memory of the program may pay.
        let pays = judged(Verdict::Pays, samples(1, 24), samples(12, 24));
        assert_eq!(
            worked(&Facts { guard: Guard { contested: 8 << 20, ..pays.guard }, ..pays }),
            Worked::Pays
        );
    }

    #[test]
    fn what_to_do_next_names_array_and_remedy() {
        let f = judged(Verdict::Pays, samples(1, 24), samples(12, 24));
        let most = vec![object(500, vec![500, 500])];
        let f = Facts { objects: ObjectTotals { moved: 500, most, ..ObjectTotals::default() }, ..f };
        assert_eq!(lines(&f)[2], "homenode: next: initialise grid in a parallel loop (-v says why)");
        // Nothing is seen of a program without OpenMP.
        let none = Facts { nodes: 2, ..Facts::default() };
        assert_eq!(lines(&none)[2], "homenode: next: homenode record --on live -- ./app");
        assert!(lines(&none)[0].contains("no parallel region was seen"));
        assert_eq!(worked(&Facts::of_an_error(1, "an error (x.rs:1:2: y)")), Worked::Stopped);
        assert!(lines(&Facts::of_an_error(1, &"long ".repeat(80)))[0].ends_with('…'));
        assert_eq!(FRAMES, 6);
    }
}
