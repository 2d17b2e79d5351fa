//! The answer on a run in three lines of at most [`COLUMNS`] columns: whether it worked, what it
//! cost, what to do next.

use homenode_dataset::foreign;
use homenode_model::Ns;
use homenode_wire::facts::{Facts, Samples};

use crate::advice::{self, SourceNames};
use crate::schedule;
use crate::text::{COLUMNS, first_that_fits, mib, percent, seconds};
use crate::worked::{SMALL_PAGE, compared, looked_at_loops_alone};
pub use crate::worked::{Worked, worked};

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
        FRAMES, Guard, MoverCounters, ObjectFacts, ObjectTotals, Origin, Regions, ThreadNodes, Verdict,
        WatchFacts,
    };

    use crate::worked::LOOKS;

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
