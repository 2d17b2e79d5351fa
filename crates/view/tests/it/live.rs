//! A recording under way, from its first frame to its end.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use homenode_dataset::layout::STREAMS;
use homenode_dataset::{Basis, DatasetMeta, DatasetWriter, Ended, RecordingKind};
use homenode_model::{Bytes, Ns};
use homenode_view::live::{Follow, Watching};
use homenode_view::server::Server;
use homenode_wire::live::{self as wire, BUFFER, IntervalNo, IterationNo, LiveRecord};

use crate::support::fresh;

/// As long as a busy machine takes.
const LONG: Duration = Duration::from_secs(120);

fn append(file: &mut File, records: &[LiveRecord]) {
    let mut buffer = vec![0; BUFFER];
    let mut writer = wire::Writer::new(&mut buffer).unwrap();
    records.iter().for_each(|r| writer.add(r).unwrap());
    file.write_all(writer.finish()).unwrap();
}

fn round(number: u32) -> [LiveRecord; 2] {
    let (begin, end) = (Ns(u64::from(number) * 1000), Ns(u64::from(number) * 1000 + 900));
    let iteration = IterationNo(number);
    [
        LiveRecord::Interval { index: IntervalNo(number - 1), begin, end, iteration: Some(iteration) },
        LiveRecord::Iteration { number: iteration, begin, end, told: true },
    ]
}

fn get(url: &str, what: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path}{what} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// What the page is told when that is true.
fn until(url: &str, what: &str, holds: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let begun = Instant::now();
    loop {
        let (status, body) = get(url, what);
        let value = serde_json::from_str(&body).unwrap_or_default();
        if status == 200 && holds(&value) {
            return value;
        }
        assert!(begun.elapsed() < LONG, "{what}: {body:.500}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn begin(folder: &Path) -> (DatasetWriter, File) {
    let meta = DatasetMeta::new(RecordingKind::Run, Basis::Presence, vec!["./app".into()]);
    let writer = DatasetWriter::create(folder, meta).unwrap();
    fs::create_dir(folder.join(STREAMS)).unwrap();
    let mut file = File::create(folder.join(STREAMS).join(LiveRecord::file_name(7))).unwrap();
    append(
        &mut file,
        &[LiveRecord::Start {
            clock: Ns(5),
            pid: 7,
            nodes: 0,
            pretended: true,
            page: Bytes::kib(4),
            policy: "next-touch".into(),
        }],
    );
    (writer, file)
}

#[test]
fn the_page_grows_with_the_recording_and_outlives_it() {
    let folder = fresh("live-grows").join("run.hnrec");
    let server = Server::listen(0).unwrap();
    let url = server.url();
    let follow = Follow { recording: folder.clone(), command: "./app".into(), source: None };
    let watching = Watching::start(server, follow);
    let waiting = until(&url, "api/progress", |p| p["doing"] == "waiting for the program");
    assert_eq!((&waiting["version"], &waiting["ended"]), (&0.into(), &false.into()));
    assert_eq!(get(&url, "api/model").0, 404, "there is nothing yet");
    assert!(get(&url, "").1.contains("data-finer=\"api\""), "but a page that asks");

    fs::create_dir_all(&folder).unwrap();
    fs::remove_dir(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let (mut writer, mut file) = begin(&folder);
    append(&mut file, &round(1));
    let first = until(&url, "api/progress", |p| p["pulse"]["iterations"] == 1 && p["version"] != 0);
    let model = until(&url, "api/model", |m| m["rounds"]["count"] == 1);
    assert_eq!(model["summary"]["whole"], true, "that it goes on is no lack");
    assert!(!model["answer"][0].as_str().unwrap().contains("not whole"), "{}", model["answer"]);
    for number in 2..=5 {
        append(&mut file, &round(number));
    }
    let later = until(&url, "api/progress", |p| p["pulse"]["iterations"] == 5);
    assert_eq!(later["pulse"]["last_iteration_ns"], 900);
    until(&url, "api/model", |m| m["rounds"]["count"] == 5);
    until(&url, "api/progress", |p| p["version"].as_u64() > first["version"].as_u64());

    append(&mut file, &[LiveRecord::End { whole: true }]);
    let mut meta = writer.meta().clone();
    homenode_observed::write(&folder.join(STREAMS), &mut writer, &mut meta).unwrap();
    *writer.meta() = meta;
    writer.finish(Ended { status: Some(0), signal: None, elapsed_ns: 9000 }).unwrap();
    fs::remove_dir_all(folder.join(STREAMS)).unwrap();
    let ended = until(&url, "api/progress", |p| p["ended"] == true);
    assert_eq!(ended["doing"], "");
    assert_eq!(until(&url, "api/model", |m| m["rounds"]["count"] == 5)["summary"]["whole"], true);
    watching.until(&|| true);
    assert!(TcpStream::connect(url[7..].split('/').next().unwrap()).is_err(), "nobody listens any more");
}

#[test]
fn a_program_that_was_killed_stays_on_the_page() {
    let folder = fresh("live-killed").join("run.hnrec");
    let (_, mut file) = begin(&folder);
    append(&mut file, &round(1));
    // Half a frame: the program was killed while it wrote.
    file.write_all(&[0x68, 0x6e, 1, 2, 3]).unwrap();
    let server = Server::listen(0).unwrap();
    let url = server.url();
    let follow = Follow { recording: folder, command: "./app".into(), source: None };
    let watching = Watching::start(server, follow);
    until(&url, "api/model", |m| m["rounds"]["count"] == 1);
    watching.until(&|| true);
}
