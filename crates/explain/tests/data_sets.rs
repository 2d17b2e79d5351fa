//! Findings from data sets made by hand: what a live run would have seen, and what a stranger might
//! send.

use homenode_dataset::tables::{
    Access, FirstTouch, Interval, IntervalNo, Node, Object, ObjectKind, Region, RegionKind, RegionNo,
    ThreadStay,
};
use homenode_dataset::{
    Basis, Dataset, DatasetMeta, Ended, MemoryDataset, RecordingKind, RowSink as _, SeenCount,
};
use homenode_explain::explanation::{Explanation, ReasonKind};
use homenode_explain::observed;
use homenode_explain::pattern::Pattern;
use homenode_explain::remedy::FixKind;
use homenode_explain::warning::WarningKind;
use homenode_model::{AccessKind, Bytes, NodeId, Ns, ObjectId, ThreadId};

const PAGES: u64 = 64;

struct Recording {
    memory: MemoryDataset,
    basis: Basis,
}

impl Recording {
    /// Two nodes, a region, an interval, one array.
    fn new(basis: Basis) -> Self {
        Self::of_pages(basis, PAGES)
    }

    /// The same with an array of `pages` pages.
    fn of_pages(basis: Basis, pages: u64) -> Self {
        let mut memory = MemoryDataset::default();
        for node in [0, 1] {
            memory.push(&Node { node: NodeId(node), memory_bytes: Some(Bytes::gib(1)), cpus: 4 }).unwrap();
        }
        let region = Region {
            region: RegionNo(0),
            kind: RegionKind::Parallel,
            function: Some("sweep._omp_fn.0".into()),
            file: Some("/src/heat.c".into()),
            line: Some(40),
            caller: None,
            build_id: None,
            runs: 10,
            time_ns: Ns(1000),
        };
        memory.push(&region).unwrap();
        let interval = Interval {
            interval: IntervalNo(0),
            begin_ns: Ns(0),
            end_ns: Ns(1000),
            iteration: Some(0),
            timed: true,
        };
        memory.push(&interval).unwrap();
        let object = Object {
            object: ObjectId(7),
            id: "heat.c:12 #0".into(),
            process: 0,
            name: "grid".into(),
            kind: ObjectKind::Allocated,
            element_type: None,
            element_bytes: None,
            dimensions: Vec::new(),
            fields: homenode_dataset::fields::Fields::default(),
            file: Some("/src/heat.c".into()),
            line: Some(12),
            function: Some("main".into()),
            stack: Vec::new(),
            bytes: Bytes(pages * 4096),
            address: 0,
            allocations: 1,
            birth_ns: None,
            death_ns: None,
        };
        memory.push(&object).unwrap();
        Self { memory, basis }
    }

    fn thread(&mut self, thread: u32, node: u16, bound: bool) {
        let stay = ThreadStay {
            thread: ThreadId(thread),
            process: 0,
            cpu: None,
            node: Some(NodeId(node)),
            from_ns: Ns(0),
            to_ns: Ns(1000),
            bound: Some(bound),
        };
        self.memory.push(&stay).unwrap();
    }

    fn touched(&mut self, page: u64, pages: u64, thread: u32, node: u16) {
        let touch = FirstTouch {
            object: ObjectId(7),
            page,
            pages,
            thread: Some(ThreadId(thread)),
            node: NodeId(node),
            time_ns: None,
            file: Some("/src/heat.c".into()),
            line: Some(20),
            function: Some("fill".into()),
        };
        self.memory.push(&touch).unwrap();
    }

    fn used(&mut self, page: u64, pages: u64, node: u16, home: u16, count: u64) {
        let access = Access {
            interval: IntervalNo(0),
            region: Some(RegionNo(0)),
            object: Some(ObjectId(7)),
            page,
            pages,
            node: NodeId(node),
            home: NodeId(home),
            kind: Some(AccessKind::Read),
            tally: SeenCount::new(count, self.basis),
        };
        self.memory.push(&access).unwrap();
    }

    fn explain(self) -> Explanation {
        self.explain_ended(Some(Ended { status: Some(0), signal: None, elapsed_ns: 1 }))
    }

    fn explain_ended(self, ended: Option<Ended>) -> Explanation {
        let meta =
            DatasetMeta { ended, ..DatasetMeta::new(RecordingKind::Live, self.basis, vec!["./heat".into()]) };
        observed::explain(&Dataset::of_memory(meta, self.memory), 5, "./heat")
    }
}

#[test]
fn serial_first_touch_is_seen_in_presence_and_promises_nothing() {
    let mut recording = Recording::new(Basis::Presence);
    recording.thread(0, 0, true);
    recording.thread(1, 1, true);
    recording.touched(0, PAGES, 0, 0);
    for page in 0..PAGES {
        recording.used(page, 1, u16::from(page >= PAGES / 2), 0, 1);
    }
    let it = recording.explain();
    assert!(it.warnings.is_empty() && it.no_finding.is_none(), "{it:?}");
    let [finding] = &it.findings[..] else { panic!("{it:?}") };
    assert_eq!(finding.pattern, Pattern::SerialFirstTouch);
    assert_eq!(finding.touched.short().as_deref(), Some("heat.c:20"));
    assert_eq!(finding.used[0].place.function.as_deref(), Some("sweep"));
    assert_eq!(finding.remote.percent(), Some(50.0));
    assert_eq!(finding.fixes[0].kind, FixKind::ParallelFirstTouch);
    assert!(finding.fixes.iter().all(|f| f.effect.is_none()));
    assert!(it.evidence.text.contains("a live run") && it.evidence.text.contains("effects unknown"));
}

#[test]
fn a_recording_of_many_pages_takes_neighbours_together_and_says_so() {
    let pages = 300_000;
    let recording = |far: fn(u64) -> bool| {
        let mut recording = Recording::of_pages(Basis::Presence, pages);
        recording.thread(0, 0, true);
        recording.thread(1, 1, true);
        recording.touched(0, pages, 0, 0);
        for page in 0..pages {
            recording.used(page, 1, u16::from(far(page)), 0, 1);
        }
        let meta = DatasetMeta::new(RecordingKind::Live, recording.basis, vec!["./heat".into()]);
        Dataset::of_memory(meta, recording.memory)
    };
    let set = recording(|page| page >= 150_000);
    let it = observed::explain(&set, 5, "./heat");
    assert_eq!(it.findings[0].pattern, Pattern::SerialFirstTouch);
    assert_eq!(it.findings[0].remote.percent(), Some(50.0), "no access is lost");
    assert_eq!(it.notes[0], "the recording has many pages: 4 neighbouring pages are taken for one");
    // What only single pages tell is not told.
    let dealt = observed::explain(&recording(|page| page % 2 == 1), 5, "./heat");
    assert_eq!(dealt.findings[0].pattern, Pattern::SharedPages);
    // Somebody may stop it, in either pass.
    for last in [0, 300_000] {
        let mut asked = Vec::new();
        let mut more = |rows: u64| {
            asked.push(rows);
            rows < last
        };
        assert!(observed::explain_watched(&set, 5, "./heat", &mut more).is_none(), "{asked:?}");
        assert!(asked.is_sorted() && asked.len() > 1 - usize::from(last == 0), "{asked:?}");
    }
}

#[test]
fn pages_that_somebody_put_elsewhere_are_told_apart() {
    let mut recording = Recording::new(Basis::Exact);
    recording.thread(0, 0, true);
    recording.thread(1, 1, true);
    let half = PAGES / 2;
    recording.touched(0, half, 0, 0);
    recording.touched(half, half, 1, 1);
    for page in 0..PAGES {
        recording.used(page, 1, u16::from(page >= half), (page % 2) as u16, 100);
    }
    let it = recording.explain();
    assert_eq!(it.findings[0].pattern, Pattern::Misplaced);
    assert_eq!(it.findings[0].fixes[0].kind, FixKind::FirstTouch);
}

#[test]
fn a_data_set_without_an_end_is_cut_off() {
    let mut recording = Recording::new(Basis::Exact);
    recording.touched(0, PAGES, 0, 0);
    recording.used(0, PAGES, 0, 0, 100);
    let it = recording.explain_ended(None);
    assert_eq!(it.missing, ["the recording was cut off: it has no end"]);
    assert_eq!(it.warnings[0].kind, WarningKind::CutOff);
}

#[test]
fn threads_that_wander_are_a_warning() {
    let mut recording = Recording::new(Basis::Exact);
    for node in [0, 1] {
        recording.thread(0, node, false);
        recording.thread(1, node, false);
    }
    recording.touched(0, PAGES, 0, 0);
    recording.used(0, PAGES, 0, 0, 100);
    let it = recording.explain();
    let kinds: Vec<WarningKind> = it.warnings.iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::Unbound]);
    assert!(
        it.warnings[0].text.starts_with("2 of 2 threads") && it.warnings[0].text.contains("OMP_PROC_BIND")
    );
    assert_eq!(it.no_finding.unwrap().kind, ReasonKind::Local);
}

#[test]
fn nothing_seen_is_a_reason() {
    let it = Recording::new(Basis::Exact).explain();
    assert_eq!(it.no_finding.unwrap().kind, ReasonKind::NothingRecorded);
}

#[test]
fn numbers_of_strangers_do_not_overflow() {
    let mut recording = Recording::new(Basis::Exact);
    recording.thread(0, 0, true);
    recording.thread(1, 1, true);
    for (page, thread) in [(0, 0), (u64::MAX, 1), (1, 1)] {
        recording.touched(page, u64::MAX, thread, thread as u16);
    }
    for page in [0, 1, u64::MAX] {
        for node in [0, 1, u16::MAX] {
            recording.used(page, u64::MAX, node, 0, u64::MAX);
        }
    }
    let it = recording.explain();
    assert!(serde_json::to_string(&it).is_ok());
    assert!(!it.findings.is_empty());
}
