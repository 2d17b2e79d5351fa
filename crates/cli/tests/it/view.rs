//! `homenode view`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use homenode_dataset::DatasetWriter;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_model::Bytes;

use crate::support::{WAITS, fresh, homenode, instrumented, plain, run};

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

/// The whole answer of the server at `host`, with its head.
fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Ends a server as Ctrl-C does. Returns what it said on its standard error, if that is a pipe.
fn interrupted(mut server: Child) -> String {
    assert!(Command::new("kill").args(["-INT", &server.id().to_string()]).status().unwrap().success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    server.stderr.take().into_iter().for_each(|mut pipe| drop(pipe.read_to_string(&mut said)));
    said
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
    let get = |path: &str| get(&format!("127.0.0.1:{port}"), path);
    assert!(get(path).starts_with("HTTP/1.1 200 OK"));
    assert!(get("").starts_with("HTTP/1.1 403 Forbidden"));
    interrupted(server);
}

#[test]
fn without_a_browser_the_address_is_enough() {
    let dir = fresh("view-no-browser");
    std::fs::create_dir(dir.join("bin")).unwrap();
    // There is a screen, and nothing that could open a page on it.
    let mut server = homenode(&dir)
        .args(["view", fixture("dataset/v1").to_str().unwrap()])
        .env("DISPLAY", ":99")
        .env("PATH", dir.join("bin"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(get(address, path).starts_with("HTTP/1.1 200 OK"));
    let err = interrupted(server);
    assert_eq!(err, "", "it is nobody's error");
}

/// Files may not become larger than the pyramid of sums of this recording, as on a full disk.
#[test]
fn a_full_disk_leaves_the_page_and_no_file() {
    let dir = fresh("view-full");
    let spec = SyntheticSpec::of_size(Bytes::mib(24));
    let mut writer = DatasetWriter::create(&dir.join("r"), spec.meta()).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    let program = homenode(&dir).get_program().to_owned();
    let limited = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" view r --no-browser";
    let mut server = Command::new("sh")
        .args(["-c", limited])
        .arg(program)
        .current_dir(&dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let get =
        |what: &str| get(address, &format!("{path}{what}")).split_once("\r\n\r\n").unwrap().1.to_owned();
    let begun = std::time::Instant::now();
    let done = || {
        let progress: serde_json::Value = serde_json::from_str(&get("api/progress")).unwrap();
        progress["doing"] == "" && progress["version"].as_u64() > Some(0)
    };
    while !done() {
        assert!(begun.elapsed().as_secs() < 300, "{}", get("api/progress"));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let model: serde_json::Value = serde_json::from_str(&get("api/model")).unwrap();
    assert!(model["objects"].as_array().unwrap().len() > 5);
    assert!(model["findings"]["answer"][0].is_string(), "what to change is looked for, too");
    let err = interrupted(server);
    assert!(err.contains("view.pyramid cannot be written"), "{err}");
    let left: Vec<_> = std::fs::read_dir(dir.join("r")).unwrap().map(|e| e.unwrap().file_name()).collect();
    let of_pyramid = |n: &std::ffi::OsString| n.to_string_lossy().starts_with("view.pyramid");
    assert!(!left.iter().any(of_pyramid), "{left:?}");
}

/// What a page in a file is told.
fn model(page: &Path) -> serde_json::Value {
    let page = std::fs::read_to_string(page).unwrap();
    let json = page.split("id=\"model\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(json).unwrap()
}

/// The words of a text, whatever its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_says_what_explain_says() {
    let dir = fresh("view-explained");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/explain");
    let source = std::fs::read_to_string(programs.join("serial_first_touch.c")).unwrap();
    let Some(_) = instrumented(&dir, "stencil", &source) else { return };
    let machine = programs.join("two-nodes.toml");
    let machine = machine.to_str().unwrap();
    let (status, _, err) =
        run(&dir, &["record", "-o", "R", "--threads", "4", "--filter", "256", "--", "./stencil"]);
    assert_eq!(status, Some(0), "{err}");
    let (_, said, err) = run(&dir, &["explain", "-v", "-m", machine, "R"]);
    let (_, json, _) = run(&dir, &["explain", "--json", "-m", machine, "R"]);
    let told: serde_json::Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e} {err}"));
    let (status, _, err) = run(&dir, &["view", "R", "-m", machine, "-o", "report.html"]);
    assert_eq!(status, Some(0), "{err}");
    let page = model(&dir.join("report.html"));
    let findings = page["findings"]["findings"].as_array().unwrap();
    assert_eq!(findings.len(), told["findings"].as_array().unwrap().len());
    assert!(!findings.is_empty(), "{said}");
    let said = words(&said);
    for line in page["findings"]["answer"].as_array().unwrap() {
        assert!(said.contains(&words(line.as_str().unwrap())), "{line} is not in {said}");
    }
    for finding in findings {
        for text in ["touched", "used", "names"] {
            let text = words(finding[text].as_str().unwrap());
            assert!(said.contains(&text), "{text} is not in {said}");
        }
        assert!(finding["fixes"].as_array().unwrap()[0]["expected"].is_string(), "its effect was simulated");
        for fix in finding["fixes"].as_array().unwrap() {
            for text in [&fix["text"], &fix["expected"]] {
                assert!(text.as_str().is_none_or(|t| said.contains(&words(t))), "{text} is not in {said}");
            }
        }
    }
    // The variable of the finding is one that has a picture, and its lines stand beside it.
    let id = &findings[0]["variables"][0]["id"];
    assert!(page["objects"].as_array().unwrap().iter().any(|o| o["report"]["id"] == *id), "{id}");
    let lines = page["sources"][0]["lines"].as_array().unwrap();
    assert!(
        lines.iter().any(|l| l.as_str().unwrap().contains("grid[i * COLUMNS + j] = i == 0;")),
        "{lines:?}"
    );
    std::fs::create_dir(dir.join("elsewhere")).unwrap();
    run(&dir, &["view", "R", "-m", machine, "-o", "report.html", "--source", "elsewhere"]);
    assert_eq!(model(&dir.join("report.html"))["sources"], serde_json::json!([]), "the source is not there");

    // The same under another policy beside it.
    let both = ["view", "R", "-m", machine, "--against", "cyclic", "-o", "both.html"];
    let (status, _, err) = run(&dir, &both);
    assert_eq!(status, Some(0), "{err}");
    let page = model(&dir.join("both.html"));
    assert!(page["label"].as_str().unwrap().contains("first-touch"), "{}", page["label"]);
    assert!(page["against"]["label"].as_str().unwrap().contains("cyclic"), "{}", page["against"]["label"]);
    assert!(page["changes"][0].as_str().unwrap().starts_with("remote "), "{}", page["changes"]);
    let (status, _, err) = run(&dir, &["view", "R", "--against", "cyclc", "-o", "no.html"]);
    assert!(status == Some(2) && err.contains("cyclic"), "{err}");
}

#[test]
fn two_recordings_on_one_page() {
    let dir = fresh("view-against");
    let [before, after] = ["dataset/v1", "recordings/live-v1"].map(fixture);
    let [before, after] = [before.to_str().unwrap(), after.to_str().unwrap()];
    let (status, _, err) = run(&dir, &["view", before, "--against", after, "-o", "both.html"]);
    assert_eq!(status, Some(0), "{err}");
    let page = model(&dir.join("both.html"));
    assert!(page["label"].as_str().unwrap().starts_with("BEFORE: "));
    assert!(page["against"]["label"].as_str().unwrap().starts_with("AFTER: "));
    let (status, _, err) = run(&dir, &["view", before, "--against", "next-touch", "-o", "no.html"]);
    assert!(status == Some(2) && err.contains("there is no recording next-touch"), "{err}");
}

#[test]
fn a_run_shows_itself_and_ends_as_the_program_does() {
    let dir = fresh("view-run");
    let Some(_) = plain(&dir, "waits", WAITS) else { return };
    std::fs::write(dir.join("go"), "").unwrap();
    let mut run = homenode(&dir)
        .args(["run", "--view", "--pretend-nodes", "2", "--", "./waits"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    let url = url.strip_prefix("homenode: http://").unwrap().to_owned();
    let (host, path) = url.split_once('/').unwrap();
    let get = |what: &str| get(host, &format!("{path}{what}")).split_once("\r\n\r\n").unwrap().1.to_owned();
    let until = |holds: &dyn Fn(&serde_json::Value) -> bool| {
        let begun = std::time::Instant::now();
        loop {
            let progress: serde_json::Value = serde_json::from_str(&get("api/progress")).unwrap();
            if holds(&progress) {
                return progress;
            }
            assert!(begun.elapsed().as_secs() < 100, "{progress}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let first = until(&|p| p["pulse"]["intervals"].as_u64() > Some(0) && p["version"].as_u64() > Some(0));
    assert_eq!(first["ended"], false);
    until(&|p| p["pulse"]["time_ns"].as_u64() > first["pulse"]["time_ns"].as_u64());
    until(&|p| p["version"].as_u64() > first["version"].as_u64());
    std::fs::remove_file(dir.join("go")).unwrap();
    until(&|p| p["ended"] == true);
    let model: serde_json::Value = serde_json::from_str(&get("api/model")).unwrap();
    assert_eq!(model["summary"]["whole"], true, "{}", model["summary"]["missing"]);
    assert_eq!(model["summary"]["command"][0], "./waits");
    // Nobody asks any more: homenode ends, as the program did.
    assert_eq!(run.wait().unwrap().code(), Some(7));
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "the program's own line\n", "stdout is the program's");
    let left = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    assert!(left.iter().all(|n| !n.to_string_lossy().contains("hnrec")), "nothing is kept: {left:?}");
}
