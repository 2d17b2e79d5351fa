//! A recording that grows, gets its end, or vanishes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use homenode_dataset::layout::STREAMS;
use homenode_dataset::{Basis, DatasetMeta, DatasetWriter, Ended, RecordingKind};
use homenode_model::{Bytes, MoveResult, NodeId, Ns};
use homenode_top::display::End;
use homenode_top::glance::Glance;
use homenode_top::{Display, DisplayForm, SharedPicture, State, Watch, watch};
use homenode_wire::facts::Origin;
use homenode_wire::live::{
    self as wire, BUFFER, IntervalNo, IterationNo, LiveRecord, MoveOrigin, ObjectNo, Pages,
};

/// As long as a busy machine takes.
const LONG: Duration = Duration::from_secs(120);

fn fresh(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn append(file: &mut File, records: &[LiveRecord]) {
    let mut buffer = vec![0; BUFFER];
    let mut writer = wire::Writer::new(&mut buffer).unwrap();
    records.iter().for_each(|r| writer.add(r).unwrap());
    file.write_all(writer.finish()).unwrap();
}

fn start() -> Vec<LiveRecord> {
    let page = Bytes::kib(4);
    let node = |n: u16| LiveRecord::Node {
        node: NodeId(n),
        memory: Bytes::gib(1),
        cpus: vec![u32::from(n)],
        distances: vec![10, 20],
    };
    let object = LiveRecord::Object {
        number: ObjectNo(0),
        origin: Origin::Allocated([0; homenode_wire::facts::FRAMES]),
        address: 0x7f00_0000_0000,
        bytes: Bytes::mib(1),
        birth: Ns(1),
        python: Some("app.py:12 (main)".into()),
    };
    let start = LiveRecord::Start {
        clock: Ns(0),
        pid: 7,
        nodes: 2,
        pretended: false,
        page,
        policy: "next-touch".into(),
    };
    vec![start, node(0), node(1), object]
}

fn seen(interval: u32, node: u16, home: u16, told: u32) -> LiveRecord {
    LiveRecord::Seen {
        interval: IntervalNo(interval),
        region: None,
        object: ObjectNo(0),
        pages: Pages { first: 0, count: 256 },
        node: NodeId(node),
        home: NodeId(home),
        kind: None,
        told,
    }
}

fn round(number: u32) -> [LiveRecord; 2] {
    let (begin, end) = (Ns(u64::from(number) * 1000), Ns(u64::from(number) * 1000 + 900));
    let iteration = IterationNo(number);
    [
        LiveRecord::Interval { index: IntervalNo(number - 1), begin, end, iteration: Some(iteration) },
        LiveRecord::Iteration { number: iteration, begin, end, told: true },
    ]
}

/// A recording without an end, its writer and its stream.
fn recording(folder: &Path) -> (DatasetWriter, File) {
    let meta = DatasetMeta::new(RecordingKind::Run, Basis::Presence, vec!["./app".into(), "4".into()]);
    let writer = DatasetWriter::create(folder, meta).unwrap();
    fs::create_dir(folder.join(STREAMS)).unwrap();
    let mut stream = File::create(folder.join(STREAMS).join("live.7")).unwrap();
    append(&mut stream, &start());
    (writer, stream)
}

fn until(shown: &SharedPicture, holds: impl Fn(&Glance) -> bool) -> Arc<Glance> {
    let begun = Instant::now();
    loop {
        let glance = shown.get();
        if holds(&glance) {
            return glance;
        }
        assert!(begun.elapsed() < LONG, "{}", glance.json());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_recorded_is_shown_until_the_end() {
    let folder = fresh("top-watch").join("r.hnrec");
    let (writer, mut stream) = recording(&folder);
    let shown = SharedPicture::default();
    let (notes, command) = (vec!["a note".to_owned()], String::new());
    let watch = Watch { recording: folder.clone(), command, notes, process: None };
    let to = shown.clone();
    let watching = std::thread::spawn(move || watch.run(&to, &|| false));
    let first = until(&shown, |g| g.state == State::Runs && !g.objects.is_empty());
    assert_eq!((first.command.as_str(), first.notes[0].as_str()), ("./app 4", "a note"));
    assert_eq!(first.objects[0].name, "app.py:12");
    let migration = LiveRecord::Migration {
        time: Ns(950),
        object: ObjectNo(0),
        pages: Pages { first: 16, count: 32 },
        from: NodeId(0),
        to: NodeId(1),
        cause: MoveOrigin::NextTouch,
        region: None,
        cost: None,
        outcome: MoveResult::Moved,
    };
    append(&mut stream, &[seen(0, 1, 0, 30), seen(0, 0, 0, 10), migration]);
    append(&mut stream, &round(1));
    let told = until(&shown, |g| g.moves.len() == 1 && g.objects[0].remote.is_some_and(|r| r.whole == 40));
    assert_eq!(told.objects[0].remote.unwrap().part, 30);
    let pulse = told.pulse.as_ref().unwrap();
    assert_eq!((pulse.moved, pulse.sightings, pulse.remote, pulse.iterations), (32, 40, 30, 1));
    assert_eq!(
        (told.moves[0].page, told.moves[0].pages, told.moves[0].object.as_str()),
        (16, 32, "app.py:12")
    );
    let node = |n: u16| told.nodes.iter().find(|l| l.node == NodeId(n)).unwrap();
    assert_eq!((node(1).seen, node(1).remote, node(0).seen, node(0).remote), (Some(30), 30, Some(10), 0));

    // Without a terminal: a table now, and the last one when the recording has its end.
    let mut text = Vec::new();
    let display = |times| Display {
        shown: &shown,
        every: Duration::from_millis(100),
        times,
        output: &String::new,
        stop: &|| false,
    };
    let end = display(Some(1)).show(DisplayForm::Plain { to: &mut text, columns: 80 }).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(end, End::Counted);
    assert!(text.contains("32 pages moved · 75.0 % of 40 sightings remote"), "{text}");
    append(&mut stream, &[LiveRecord::End { whole: true }]);
    writer.finish(Ended { status: Some(0), signal: None, elapsed_ns: 5000 }).unwrap();
    let mut lines = Vec::new();
    let end = display(None).show(DisplayForm::Json(&mut lines)).unwrap();
    assert_eq!(end, End::Ended);
    let last = String::from_utf8(lines).unwrap();
    let last: serde_json::Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!((last["state"].as_str(), last["now"].is_null()), (Some("ended"), true));
    watching.join().unwrap();
}

/// As `homenode show` prints the sums of this recording.
#[test]
fn the_last_sums_are_those_of_the_whole_recording() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dataset/v1");
    // A program of less than a second ends before anybody has looked.
    let last = watch::last(&recording, &Glance::default());
    let sums = last.pulse.unwrap();
    assert_eq!((last.state, sums.time_ns, sums.iterations), (State::Ended, 92_824_479, 8));
    assert_eq!((sums.moved, sums.sightings, sums.remote), (416, 35_045_230, 6_089_294));
    assert_eq!((sums.own_ns, sums.cpu_ns), (464_122, 92_824_479));
}

#[test]
fn a_program_that_is_gone_leaves_a_recording_without_an_end() {
    let folder = fresh("top-gone").join("r.hnrec");
    let (_, mut stream) = recording(&folder);
    append(&mut stream, &round(1));
    let shown = SharedPicture::default();
    // The kernel gives no number as high as that.
    let process = Some(u32::MAX);
    let watch = Watch { recording: folder, command: "./app".into(), notes: Vec::new(), process };
    watch.run(&shown, &|| false);
    assert_eq!(shown.get().state, State::Gone);
    assert_eq!(shown.get().pulse.as_ref().map(|p| p.iterations), Some(1));
}

#[test]
fn a_recording_that_is_removed_ends_the_picture() {
    let folder = fresh("top-removed").join("r.hnrec");
    let (_writer, stream) = recording(&folder);
    let shown = SharedPicture::default();
    let watch = Watch { recording: folder.clone(), command: String::new(), notes: Vec::new(), process: None };
    let to = shown.clone();
    let watching = std::thread::spawn(move || watch.run(&to, &|| false));
    until(&shown, |g| g.state == State::Runs && !g.objects.is_empty());
    drop(stream);
    fs::remove_dir_all(&folder).unwrap();
    until(&shown, |g| g.state == State::Gone);
    watching.join().unwrap();
}
