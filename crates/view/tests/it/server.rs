//! The server answers the person with the token, and nobody else.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use homenode_view::PyramidBudget;
use homenode_view::server::{ServedContent, ServedPage, Server};

use crate::support::{number_of, opened, synthetic};

struct Running {
    port: u16,
    path: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start() -> Self {
        let set = synthetic(8, 64);
        let opened = opened(set);
        let site = Arc::new(ServedContent::default());
        site.show(ServedPage::new(&opened.model(PyramidBudget::SERVER, &mut |_| true), &[opened]).unwrap());
        let server = Server::listen(0).unwrap();
        let (port, url) = (server.port(), server.url());
        let path = url.strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(&site, &|| asked.load(Ordering::Relaxed)));
        Self { port, path, stop, thread: Some(thread) }
    }

    /// Status, head, body.
    fn ask(&self, request: &str) -> (u16, String, String) {
        let (status, head, body) = self.bytes(request);
        (status, head, String::from_utf8(body).unwrap())
    }

    fn bytes(&self, request: &str) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let split = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..split].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[split + 4..].to_vec())
    }

    fn get(&self, path: &str, more: &str) -> (u16, String, String) {
        self.ask(&format!("GET {path} HTTP/1.1\nHost: 127.0.0.1:{}\n{more}\n", self.port))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn the_page_is_behind_the_token() {
    let server = Running::start();
    let (status, head, body) = server.get(&server.path, "");
    assert_eq!(status, 200);
    assert!(body.starts_with("<!doctype html>") && body.contains("data-finer=\"api\""));
    for said in [
        "Content-Security-Policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
    ] {
        assert!(head.contains(said), "{said} is missing in {head}");
    }
    assert_eq!(server.path.len(), 34, "128 bits");
    for path in ["/", "/index.html", "/00000000000000000000000000000000/", "/../../etc/passwd"] {
        let (status, head, body) = server.get(path, "");
        assert_eq!(status, 403, "{path}");
        assert!(head.contains("Content-Security-Policy") && !body.contains("model"), "{body}");
    }
    assert_eq!(server.get(&format!("{}../../etc/passwd", server.path), "").0, 404);
}

#[test]
fn other_hosts_and_other_origins_are_refused() {
    let server = Running::start();
    let path = &server.path;
    let host = |host: &str| server.ask(&format!("GET {path} HTTP/1.1\nHost: {host}\n\n")).0;
    assert_eq!(host("evil.example"), 403);
    assert_eq!(host(&format!("evil.example:{}", server.port)), 403);
    assert_eq!(host("localhost:8400"), 200, "a tunnel has another port");
    assert_eq!(server.ask(&format!("GET {path} HTTP/1.1\n\n")).0, 403);
    let own = format!("Origin: http://127.0.0.1:{}\n", server.port);
    assert_eq!(server.get(path, &own).0, 200);
    for origin in ["Origin: http://evil.example\n", "Origin: null\n", "Sec-Fetch-Site: cross-site\n"] {
        assert_eq!(server.get(path, origin).0, 403, "{origin}");
    }
    let post = format!("POST {path} HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n");
    assert_eq!(server.ask(&post).0, 405);
    assert_eq!(server.ask("nonsense\n\n").0, 400);
}

#[test]
fn it_draws_finer_pictures_and_tells_the_way_of_a_page() {
    let server = Running::start();
    let set = synthetic(8, 64);
    let queue = number_of(&set, "queue").0;
    let ask = |what: &str| server.get(&format!("{}api/{what}", server.path), "");
    let window = format!("finer?object={queue}&page=0&pages=4&first=2&intervals=8");
    let host = format!("Host: 127.0.0.1:{}", server.port);
    let (status, _, body) = server.bytes(&format!("GET {}api/{window} HTTP/1.1\n{host}\n\n", server.path));
    assert_eq!(status, 200);
    let head = 4 + u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    let finer: serde_json::Value = serde_json::from_slice(&body[4..head]).unwrap();
    let planes = ["home", "home_percent", "who", "who_percent", "who_nodes", "remote", "seen"];
    let planes = planes.map(|p| finer["levels"][0][p].as_u64().unwrap());
    assert!(planes.iter().all(|n| *n > 0));
    assert_eq!(head as u64 + planes.iter().sum::<u64>(), body.len() as u64);
    assert_eq!(finer["levels"][0]["bands"], 4);
    assert_eq!(finer["levels"][0]["columns"], 8);
    assert_eq!(finer["begin_ns"].as_array().unwrap().len(), 8);
    let (status, _, body) = ask(&format!("history?object={queue}&page=3"));
    assert_eq!(status, 200);
    let history: serde_json::Value = serde_json::from_str(&body).unwrap();
    let back = history["moves"].as_array().unwrap().iter().filter(|m| m[4] == 1).count();
    let told = set.rows::<homenode_dataset::tables::Migration>();
    let told = told.filter(|m| m.outcome == homenode_dataset::tables::MigrationOutcome::PingPong).count();
    assert!(back > 0 && back == told, "{back} of {told} ping-pongs of the queue's first block");
    assert_eq!(history["touch"]["node"], 1, "node 0 touched it first");
    for wrong in ["finer", "finer?object=x&page=0&pages=1&first=0&intervals=1", "history?object=0&page=-1"] {
        assert_eq!(ask(wrong).0, 400, "{wrong}");
    }
    for unknown in ["history?object=4000000000&page=1", "other"] {
        assert_eq!(ask(unknown).0, 404, "{unknown}");
    }
    let most = u64::MAX;
    let huge = format!("finer?object={queue}&page={most}&pages={most}&first={most}&intervals={most}");
    let huge = format!("GET {}api/{huge} HTTP/1.1\n{host}\n\n", server.path);
    assert_eq!(server.bytes(&huge).0, 200, "numbers that make no sense draw nothing, and do no harm");
}
