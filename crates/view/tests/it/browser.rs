//! What a browser shows: numbers on the page against those of the tables.

use std::path::Path;
use std::process::Command;

use homenode_dataset::tables::{Migration, MigrationOutcome, Residency};
use homenode_dataset::{Basis, Dataset, MemoryDataset, RecordingKind};
use homenode_report::RecordingReport;
use homenode_view::PyramidBudget;
use homenode_view::page;

use crate::support::{HOSTILE, fresh, hostile, model, number_of, synthetic};

/// The browser; says why a test is skipped.
pub fn browser() -> Option<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| there(name));
    if found.is_none() {
        eprintln!("skipped: there is no chromium");
    }
    found
}

/// The elements of the page at an address, after its program ran.
fn elements(browser: &str, folder: &Path, page: &str, hash: &str) -> String {
    let file = folder.join("report.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--window-size=1280,800", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}#{hash}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(dom.contains("data-ready=\"yes\""), "the page's program did not run: {output:?}");
    // What is shown stands before the data and the program. Numbers have narrow spaces in them.
    let shown = dom.split("<script").next().unwrap();
    shown.replace(['\u{202f}', '\u{a0}'], " ")
}

#[test]
fn every_view_draws_and_says_its_basis() {
    let Some(browser) = browser() else { return };
    let folder = fresh("browser-views");
    let set = synthetic(12, 200);
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    let shown = [
        ("findings", "the answer"),
        ("residency", "Home of most pages of a cell"),
        ("moves", "Flows between nodes, in pages"),
        ("locations", "First and last home"),
        ("structures", "double["),
        ("machine", "accesses by \\ memory of"),
        ("pay", "The guard's verdict: moving pays."),
    ];
    for (view, text) in shown {
        let dom = elements(browser, &folder, &page, &format!("view={view}"));
        let panel = dom.split("id=\"panel\"").nth(1).unwrap();
        assert!(panel.contains(text), "{view} lacks '{text}'");
        assert!(dom.contains("basis: sampled, one in 101; exact; presence"), "{view}");
    }
}

#[test]
fn a_recording_of_nothing_draws_too() {
    let Some(browser) = browser() else { return };
    let folder = fresh("browser-empty");
    let meta = homenode_dataset::DatasetMeta::new(RecordingKind::Live, Basis::Presence, vec!["./app".into()]);
    let set = Dataset::of_memory(meta, MemoryDataset::default());
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    for view in ["findings", "residency", "moves", "locations", "structures", "machine", "pay"] {
        let dom = elements(
            browser,
            &folder,
            &page,
            &format!("view={view}&object=7&pages=1-2&time=3-4&region=9&node=5"),
        );
        assert!(dom.contains("Not whole: "), "{view}: it has no end");
        assert!(dom.contains("this object has no picture"), "{view}");
        assert!(dom.split("id=\"panel\"").nth(1).unwrap().contains("<section"), "{view}");
    }
}

#[test]
fn numbers_on_the_page_are_those_of_the_tables() {
    let Some(browser) = browser() else { return };
    let folder = fresh("browser-numbers");
    let set = synthetic(12, 200);
    let report = RecordingReport::of(&set);
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    let moved: u64 =
        set.rows::<Migration>().filter(|m| m.outcome != MigrationOutcome::Refused).map(|m| m.pages).sum();
    let dom = elements(browser, &folder, &page, "view=moves");
    let digits = |n: u64| if n < 1000 { n.to_string() } else { format!("{} {:03}", n / 1000, n % 1000) };
    assert!(dom.contains(&format!("{} pages moved", digits(moved))), "{moved}");

    let remote = report.summary.remote.percent().unwrap();
    let dom = elements(browser, &folder, &page, "view=machine");
    assert!(dom.contains(&format!("{remote:.1} % of")), "{remote}");

    // The way of a page: each ping-pong of the queue's first block.
    let queue = number_of(&set, "queue");
    let holds = |m: &Migration| m.object == Some(queue) && m.page <= 3 && 3 < m.page + m.pages;
    let back =
        set.rows::<Migration>().filter(|m| holds(m) && m.outcome == MigrationOutcome::PingPong).count();
    let hash = format!("view=residency&object={}&pages=3-4", queue.0);
    let dom = elements(browser, &folder, &page, &hash);
    let history = dom.split("History of a page").nth(1).unwrap();
    assert!(back > 0);
    assert_eq!(history.matches("(back again: ping-pong)").count(), back);
    assert!(history.contains("first touched by thread 0 on node 0 in initialise solver.c:62"));
}

#[test]
fn the_keyboard_alone_reads_a_cell() {
    let Some(browser) = browser() else { return };
    let folder = fresh("browser-keys");
    let set = synthetic(12, 200);
    let page = page::write_file(&mut model(&set, PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    // The page's policy lets no other program in: this copy has none.
    let policy = page.find("<meta http-equiv").unwrap();
    let end = policy + page[policy..].find('>').unwrap() + 1;
    let keys = "<script>setTimeout(() => {
        const canvas = document.querySelector('canvas');
        const press = (key) => canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        for (let i = 0; i < 8; i++) press('ArrowRight');
        press('ArrowDown'); press('ArrowUp');
    }, 100)</script></body>";
    let copy = format!("{}{}", &page[..policy], &page[end..]).replace("</body>", keys);
    let object = number_of(&set, "grid_old");
    let dom = elements(browser, &folder, &copy, &format!("view=residency&object={}", object.0));
    let readout = dom.split("class=\"readout\"").nth(1).unwrap();
    let readout = readout.split('>').nth(1).unwrap().split('<').next().unwrap();
    assert!(readout.starts_with("grid_old, pages 0 to 3. "), "{readout}");
    let first = |r: &Residency| r.page == 0 && r.pages >= 4;
    let lives =
        |r: &Residency| r.object == Some(object) && first(r) && (r.interval.0..=r.until.0).contains(&8);
    let home = set.rows::<Residency>().find(lives).unwrap().home;
    assert!(readout.contains(&format!("home: node {} (100 % of the pages)", home.0)), "{readout}");
    assert!(readout.contains("accesses (sampled, one in 101)"), "{readout}");
}

#[test]
fn a_hostile_name_is_text() {
    let Some(browser) = browser() else { return };
    let folder = fresh("browser-hostile");
    let page = page::write_file(&mut model(&hostile(), PyramidBudget::FILE), page::MOST_BYTES).unwrap();
    let shown = HOSTILE.replace('<', "&lt;").replace('>', "&gt;");
    for view in ["findings&object=0", "structures", "moves&object=0", "locations"] {
        let dom = elements(browser, &folder, &page, &format!("view={view}"));
        let body = dom.split("<body>").nth(1).unwrap();
        assert!(body.contains(&shown), "{view}: the name is there");
        assert!(!dom.contains("<title>owned") && !body.contains("<img"), "{view}: as text");
    }
}

#[test]
fn a_first_look_says_which_part_was_read() {
    let Some(browser) = browser() else { return };
    let folder = fresh("browser-first-look");
    let mut model = model(&synthetic(12, 200), PyramidBudget::FILE);
    let page = page::write_file(&mut model, page::MOST_BYTES).unwrap();
    assert!(!elements(browser, &folder, &page, "").contains("A first look"), "all was read");
    model.one_in = Some(1234);
    let page = page::write_file(&mut model, page::MOST_BYTES).unwrap();
    for view in ["findings", "residency", "machine"] {
        let dom = elements(browser, &folder, &page, &format!("view={view}"));
        assert!(dom.contains("A first look at one in 1234 of the accesses."), "{view}");
    }
}
