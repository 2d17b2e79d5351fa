//! `homenode view`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{fresh, homenode, run};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

#[test]
fn a_recording_becomes_one_file() {
    let dir = fresh("view-file");
    for name in ["dataset/v1", "recordings/lab-v1", "recordings/live-v1"] {
        let recording = fixture(name);
        let (status, out, err) = run(&dir, &["view", recording.to_str().unwrap(), "-o", "report.html"]);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{name}");
        assert!(out.starts_with("report.html: "), "{out}");
        let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.len() < 5_000_000, "{name}");
        assert!(page.contains("\"schema\":\"homenode/view/1\""));
    }
    let files = std::fs::read_dir(&dir).unwrap().count();
    assert_eq!(files, 1, "nothing else is left there");
}

#[test]
fn what_cannot_be_written_or_read_is_told() {
    let dir = fresh("view-wrong");
    let recording = fixture("dataset/v1");
    let recording = recording.to_str().unwrap();
    let (status, _, err) = run(&dir, &["view", recording, "-o", "no/such/folder/report.html"]);
    assert_eq!(status, Some(125));
    assert!(err.contains("cannot write no/such/folder/report.html"), "{err}");
    let (status, _, err) = run(&dir, &["view", "nothing.hnrec", "-o", "report.html"]);
    assert!(status != Some(0) && err.contains("nothing.hnrec"), "{err}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (status, out, err) = run(&dir, &["view", recording, "--port", &port]);
    assert_eq!((status, out.as_str()), (Some(125), ""));
    assert!(err.contains("in use") && err.contains("help: leave --port out"), "{err}");
    assert!(!dir.join("report.html").exists());
}

#[test]
fn the_server_prints_where_it_is_and_ends_with_ctrl_c() {
    let dir = fresh("view-server");
    let mut server = homenode(&dir)
        .args(["view", fixture("dataset/v1").to_str().unwrap(), "--no-browser"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let rest = url.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = rest.split_once('/').unwrap();
    let tunnel = lines.next().unwrap().unwrap();
    assert!(tunnel.contains(&format!("ssh -L {port}:127.0.0.1:{port} ")), "{tunnel}");
    let get = |path: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get(path).starts_with("HTTP/1.1 200 OK"));
    assert!(get("").starts_with("HTTP/1.1 403 Forbidden"));
    let killed = Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
