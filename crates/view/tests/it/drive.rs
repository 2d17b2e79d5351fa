//! A person at the page: clicks, keys, a lost connection, by playwright-core.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homenode_dataset::tables::{Migration, MigrationOutcome, Object, Residency};
use homenode_dataset::{Dataset, RowSink as _};
use homenode_model::Ns;
use homenode_report::RecordingReport;
use homenode_view::page;
use homenode_view::server::{ServedContent, ServedPage, Server};
use homenode_view::{Opened, PyramidBudget};

use crate::browser::browser;
use crate::support::{fresh, model, number_of, opened, synthetic, tables};

/// What every script begins with: a browser without WebGL, as an old one is; a page, the views,
/// waiting for a condition as long as a busy machine takes.
const BEGIN: &str = r##"
import { chromium } from "PLAYWRIGHT";
const browser = await chromium.launch({
  executablePath: "BROWSER", timeout: 120000,
  args: ["--no-sandbox", "--disable-gpu", "--disable-3d-apis", "--disable-dev-shm-usage"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
const page = await context.newPage();
page.setDefaultTimeout(120000);
const wrong = [];
await page.goto("about:blank");
if (await page.evaluate(() => document.createElement("canvas").getContext("webgl"))) throw new Error("there is WebGL");
page.on("pageerror", (e) => wrong.push(String(e)));
const VIEWS = ["findings", "residency", "moves", "locations", "structures", "machine", "pay"];
const open = async (hash) => {
  await page.goto("about:blank");
  await page.goto("URL#" + hash);
  await page.waitForSelector("html[data-ready=yes]");
};
const until = (test, arg) => page.waitForFunction(test, arg, { timeout: 120000, polling: 50 });
const text = async (selector) => (await page.locator(selector).allTextContents()).join("\n").replace(/[\u202f\u00a0]/g, " ");
const result = {};
"##;

/// Runs a script, and returns what it put into `result`; says why a test is skipped.
pub fn drive(url: &str, script: &str) -> Option<serde_json::Value> {
    let chromium = browser()?;
    let playwright =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../viewer/node_modules/playwright-core/index.mjs");
    let Some(playwright) = playwright.canonicalize().ok() else {
        eprintln!("skipped: viewer/node_modules is not there ('scripts/viewer.sh' fetches it)");
        return None;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let chromium = std::env::split_paths(&path).map(|p| p.join(chromium)).find(|p| p.is_file())?;
    let begin = BEGIN
        .replace("PLAYWRIGHT", playwright.to_str().unwrap())
        .replace("BROWSER", chromium.to_str().unwrap())
        .replace("URL", url);
    let end = "\nresult.wrong = wrong;\nconsole.log(JSON.stringify(result));\nawait browser.close();\n";
    let mut node = Command::new("node")
        .args(["--input-type=module", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all((begin + script + end).as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let result: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(result["wrong"], serde_json::json!([]), "the page's program failed");
    Some(result)
}

/// A page in a file, for one test.
pub fn file(name: &str, page: &str) -> String {
    let file = fresh(name).join("report.html");
    std::fs::write(&file, page).unwrap();
    format!("file://{}", file.display())
}

fn page_of(set: &homenode_dataset::Dataset) -> String {
    page::write_file(&mut model(set, PyramidBudget::FILE), page::MOST_BYTES).unwrap()
}

#[test]
fn a_ping_pong_is_found_from_the_top_in_three_clicks() {
    let set = synthetic(12, 200);
    let script = r##"
await open("");
await page.click("#tab-moves");
const row = page.locator("tr", { hasText: "ping-pong" }).filter({ has: page.locator("button") }).first();
await row.locator("button").click();
await until(() => document.querySelector("[aria-label='History of a page'] table"));
result.history = await text("[aria-label='History of a page']");
result.hash = await page.evaluate(() => location.hash);
"##;
    let Some(result) = drive(&file("drive-ping-pong", &page_of(&set)), script) else { return };
    let queue = number_of(&set, "queue");
    let hash = result["hash"].as_str().unwrap();
    assert!(hash.contains("view=residency") && hash.contains(&format!("object={}", queue.0)), "{hash}");
    let back = set.rows::<Migration>().filter(|m| m.outcome == MigrationOutcome::PingPong && m.page == 0);
    let history = result["history"].as_str().unwrap();
    assert_eq!(history.matches("(back again: ping-pong)").count(), back.count(), "{history}");
}

#[test]
fn hovering_a_page_reads_its_home_its_count_and_the_cause_of_its_move() {
    let set = synthetic(12, 200);
    let grid = number_of(&set, "grid_old");
    let script = r##"
await open("view=residency&object=GRID");
const box = await page.locator("canvas").boundingBox();
// The last column of the first pages: the axis of pages is 170 pixels wide, the right margin 14.
await page.mouse.move(box.x + box.width - 16, box.y + 20);
await until(() => !document.querySelector(".tip").hidden);
result.tip = await text(".tip");
await page.mouse.click(box.x + box.width - 16, box.y + 20);
await until(() => document.querySelector("[aria-label='History of a page'] table"));
result.history = await text("[aria-label='History of a page']");
"##;
    let script = script.replace("GRID", &grid.0.to_string());
    let Some(result) = drive(&file("drive-hover", &page_of(&set)), &script) else { return };
    let tip = result["tip"].as_str().unwrap();
    let last = set.rows::<Residency>().filter(|r| r.object == Some(grid) && r.page == 0);
    let home = last.max_by_key(|r| r.until).unwrap().home;
    assert!(tip.contains(&format!("home: node {} (100 % of the pages)", home.0)), "{tip}");
    assert!(tip.contains("accesses (sampled, one in 101)"), "{tip}");
    let count = tip.split_once("accesses: ").unwrap().1;
    assert!(count.starts_with(|c: char| ('1'..='9').contains(&c)), "{tip}");
    let holds =
        |m: &Migration| m.object == Some(grid) && m.page == 0 && m.outcome != MigrationOutcome::Refused;
    let moves: Vec<Migration> = set.rows::<Migration>().filter(holds).collect();
    let history = result["history"].as_str().unwrap();
    for m in &moves {
        let way = format!("moved from node {} to node {}", m.from_node.0, m.to_node.0);
        assert!(history.contains(&way) && history.contains(m.cause.as_str()), "{way}: {history}");
    }
    assert!(history.contains("first touched by thread 0 on node 0 in initialise solver.c:"), "{history}");
}

#[test]
fn moves_of_neighbouring_pages_are_one_row() {
    let set = synthetic(12, 200);
    let grid = number_of(&set, "grid_old");
    let all: Vec<Migration> = set.rows::<Migration>().collect();
    let first = all.iter().find(|m| m.object == Some(grid)).unwrap();
    // Page by page, the last one first; and one page that is apart.
    let mut memory = tables(&set, |_| {});
    for page in (1000..1040).rev().chain([1041]) {
        let cost_ns = Some(Ns(1000));
        memory.push(&Migration { page, pages: 1, cost_ns, ..first.clone() }).unwrap();
    }
    let set = Dataset::of_memory(set.meta().clone(), memory);
    let script = r##"
await open("view=moves&object=GRID");
result.rows = await page.locator('[aria-label^="Moves in the order of time"] tbody tr').evaluateAll((all) =>
  all.map((row) => [...row.children].map((c) => c.textContent.replace(/[\u202f\u00a0]/g, " "))));
"##;
    let script = script.replace("GRID", &grid.0.to_string());
    let Some(result) = drive(&file("drive-neighbours", &page_of(&set)), &script) else { return };
    let rows = result["rows"].as_array().unwrap();
    let of = |pages: &str| rows.iter().find(|r| r[2] == pages).unwrap_or_else(|| panic!("{pages}: {rows:?}"));
    assert_eq!((&of("1 000–1 039")[3], &of("1 000–1 039")[8]), (&"40".into(), &"40 µs".into()));
    assert_eq!((&of("1 041")[3], &of("1 041")[8]), (&"1".into(), &"1 µs".into()));
    assert_eq!(rows.len(), all.iter().filter(|m| m.object == Some(grid)).count() + 2);
}

#[test]
fn the_keyboard_alone_reaches_everything() {
    let set = synthetic(12, 200);
    let script = r##"
result.views = {};
for (const [i, view] of VIEWS.entries()) {
  await open("view=findings");
  await page.keyboard.press(String(i + 1));
  await until((v) => location.hash.includes("view=" + v), view);
  // What is to be reached: whatever a mouse can use.
  const wanted = await page.evaluate(() => {
    const all = document.querySelectorAll("button, select, input, summary, .scroll, pre, canvas[tabindex]");
    const shown = (e) => e.checkVisibility({ contentVisibilityProperty: true }) && !e.disabled && e.tabIndex >= 0;
    // Of radio buttons the arrows reach the others.
    const radio = (e) => e.type === "radio" && !e.checked;
    [...all].filter((e) => shown(e) && !radio(e)).forEach((e, n) => e.setAttribute("data-wanted", n));
    return document.querySelectorAll("[data-wanted]").length;
  });
  const reached = new Set();
  for (let step = 0; step < wanted + 5; step++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => document.activeElement?.getAttribute("data-wanted"));
    if (at !== null) reached.add(at);
  }
  const hovered = await page.evaluate(() =>
    [...document.querySelectorAll("#panel canvas")].filter((c) => c.parentElement.querySelector(".tip")).every((c) => c.tabIndex === 0));
  result.views[view] = [wanted, reached.size, hovered];
}
await open("view=pay");
await page.focus("canvas");
await page.keyboard.press("ArrowRight");
await page.keyboard.press("ArrowRight");
result.pay = await text(".tip");
await page.keyboard.press("Enter");
await until(() => location.hash.includes("time="));
"##;
    let Some(result) = drive(&file("drive-keys", &page_of(&set)), script) else { return };
    for (view, found) in result["views"].as_object().unwrap() {
        assert!(found[0].as_u64().unwrap() > 5 && found[0] == found[1], "{view}: {found}");
        assert_eq!(found[2], true, "{view}: a picture that tells more can be reached");
    }
    assert!(result["pay"].as_str().unwrap().contains("iteration"), "{result}");
}

/// Two recordings of one program, of which the second one has more iterations.
fn two() -> [Opened; 2] {
    [opened(synthetic(8, 64)), opened(synthetic(16, 64))]
}

#[test]
fn two_recordings_stand_on_the_same_axes() {
    let [before, after] = two();
    let of = |one: &Opened| one.model(PyramidBudget::FILE.halved(), &mut |_| true);
    let mut model = before.beside(of(&before), &after, of(&after));
    let end = model.against.as_ref().unwrap().time.end_ns.max(model.time.end_ns);
    let objects = before.set.rows::<Object>().count();
    assert!(!model.pairs.is_empty() && model.pairs.len() <= objects);
    let page = page::write_file(&mut model, page::MOST_BYTES).unwrap();
    assert!(page.len() <= page::MOST_BYTES);
    let script = r##"
result.sides = {};
for (const view of VIEWS) {
  await open("view=" + view);
  await until(() => document.querySelectorAll("#panel .side").length === 2);
  result.sides[view] = [await text("#panel .side:nth-of-type(1) h2:first-child"), await text("#panel .side:nth-of-type(2) h2:first-child")];
}
await open("view=findings");
result.changes = await text("#panel > .answer");
await open("view=pay");
result.paid = await text("#panel .side:nth-of-type(2) .lead");
await open("view=findings");
result.remote = await text("#panel .side .answer");
await open("view=machine");
await page.selectOption("#sel-object", { label: "queue" });
await until(() => document.querySelector("#panel").textContent.includes("to queue"));
result.leads = await text("#panel .side .lead");
// A moment that only the longer one has is on the axis of both.
await open("view=residency");
const boxes = [];
for (const canvas of await page.locator("canvas").all()) {
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width - 15, box.y + 30);
  boxes.push([box.width, await canvas.evaluate((c) => c.parentElement.querySelector(".tip").textContent)]);
}
result.boxes = boxes;
"##;
    let Some(result) = drive(&file("drive-against", &page), script) else { return };
    for (view, sides) in result["sides"].as_object().unwrap() {
        let says = |i: usize, word: &str| sides[i].as_str().unwrap().contains(word);
        assert!(says(0, "BEFORE: ") && says(1, "AFTER: "), "{view}: {sides}");
    }
    let changes = result["changes"].as_str().unwrap();
    assert!(changes.starts_with("remote "), "{changes}");
    let median = |o: &Opened| o.report.summary.iterations.unwrap().median_ns.0;
    let (a, b) = (median(&before) as f64, median(&after) as f64);
    let paid = result["paid"].as_str().unwrap();
    let change = format!("{:.1} % {}.", 100.0 * (a - b).abs() / a, if b <= a { "less" } else { "more" });
    assert!(paid.contains("An iteration takes ") && paid.contains(&change), "{change}: {paid}");
    let percent = |o: &Opened| format!("{:.1} %", o.report.summary.remote.percent().unwrap());
    for side in [&before, &after] {
        assert!(result["remote"].as_str().unwrap().contains(&percent(side)), "{}", percent(side));
    }
    assert_eq!(result["leads"].as_str().unwrap().matches("to queue").count(), 2, "{result}");
    assert_eq!(result["boxes"][0][0], result["boxes"][1][0], "as wide");
    assert!(end > 0);
}

#[test]
fn the_page_follows_what_is_shown_and_survives_a_lost_connection() {
    let site = Arc::new(ServedContent::empty(&["./app".to_owned()], "reading the tables"));
    site.tell(|p| p.done = Some(340));
    let server = Server::listen(0).unwrap();
    let url = server.url();
    let stop = Arc::new(AtomicBool::new(false));
    let (asked, served) = (Arc::clone(&stop), Arc::clone(&site));
    let thread = std::thread::spawn(move || server.run(&served, &|| asked.load(Ordering::Relaxed)));
    // The script asks for the next step by the title of an unknown object: a page that does not
    // exist.
    let steps = Arc::clone(&site);
    let (seen, over) = (Arc::new(AtomicBool::new(false)), Arc::clone(&stop));
    let stepping = std::thread::spawn(move || {
        // Version 1 once a page has asked; version 2 once somebody has seen version 1 for a while.
        for iterations in [8, 16] {
            let before = std::time::Instant::now();
            while !over.load(Ordering::Relaxed)
                && steps.asked().is_none_or(|at| at < before + std::time::Duration::from_secs(2))
            {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let opened = opened(synthetic(iterations, 64));
            steps
                .show(ServedPage::new(&opened.model(PyramidBudget::FILE, &mut |_| true), &[opened]).unwrap());
            seen.store(true, Ordering::Relaxed);
        }
        steps.tell(|p| (p.doing, p.ended) = (String::new(), true));
    });
    let script = r##"
await page.goto("URL");
await until(() => document.querySelector("progress")?.value === 340);
result.cold = await text(".live");
await until(() => document.documentElement.dataset.version === "1");
await page.keyboard.press("7");
await until(() => location.hash.includes("view=pay"));
await until(() => document.documentElement.dataset.version === "2");
result.view = await page.evaluate(() => document.querySelector("[aria-selected=true]").id);
await until(() => document.querySelector(".top").textContent.includes("has ended"));
await context.setOffline(true);
await until(() => document.querySelector(".top").textContent.includes("does not answer"));
await page.keyboard.press("1");
await until(() => document.querySelector("#panel .answer"));
result.offline = await text("#panel .answer");
await context.setOffline(false);
await until(() => !document.querySelector(".top").textContent.includes("does not answer"));
"##;
    let result = drive(&url, &script.replace("URL", &url));
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    stepping.join().unwrap();
    let Some(result) = result else { return };
    assert!(result["cold"].as_str().unwrap().contains("reading the tables"), "{result}");
    assert_eq!(result["view"], "tab-pay", "what was chosen stays");
    let percent = RecordingReport::of(&synthetic(16, 64)).summary.remote.percent().unwrap();
    assert!(result["offline"].as_str().unwrap().contains(&format!("{percent:.1} %")), "{result}");
}
