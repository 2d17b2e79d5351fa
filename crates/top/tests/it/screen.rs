//! Pictures of the screen, character by character. `HOMENODE_BLESS=1` writes them anew.

use std::collections::BTreeMap;
use std::path::Path;

use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::{Dataset, MemoryDataset};
use homenode_model::{Bytes, NodeId, Ns};
use homenode_report::RecordingReport;
use homenode_text::human;
use homenode_top::display::{draw, press};
use homenode_top::glance::{Glance, Now, ObjectLine, State};
use homenode_top::lines::{self, Choice, SortOrder};
use homenode_top::screen::Key;
use homenode_view::live::Pulse;
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

fn set() -> Dataset {
    let spec = SyntheticSpec { iterations: 12, blocks: 200, nodes: 4, seed: 7, rank: None };
    let mut memory = MemoryDataset::default();
    let ended = spec.fill(&mut memory, &mut |_, _| true).unwrap();
    let mut meta = spec.meta();
    meta.ended = Some(ended);
    Dataset::of_memory(meta, memory)
}

fn glance(set: &Dataset) -> Glance {
    let pulse = Pulse {
        processes: 1,
        time_ns: 12_300_000_000,
        intervals: 44,
        iterations: 41,
        last_iteration_ns: Some(280_000_000),
        moved: 4110,
        refused: 12,
        sightings: 12_345,
        remote: 10_111,
        own_ns: 24_000_000,
        cpu_ns: 2_000_000_000,
    };
    let now = Now { over: Ns(2_000_000_000), moved: 312, sightings: 1200, remote: 144 };
    let mut glance = Glance {
        command: "./solver input.dat".into(),
        state: State::Runs,
        pulse: Some(pulse),
        now: Some(now),
        ..Glance::default()
    };
    glance.read(set);
    let traffic = [((0, 0), 900), ((0, 1), 100), ((1, 0), 800), ((1, 1), 200), ((3, 3), 50)];
    let traffic: BTreeMap<_, _> =
        traffic.into_iter().map(|((node, home), n)| ((NodeId(node), NodeId(home)), n)).collect();
    glance.see(&traffic);
    glance
}

/// What stands on a screen of that size.
fn drawn(glance: &Glance, columns: u16, rows: u16, choice: &Choice) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    draw(&mut terminal, glance, choice).unwrap();
    let buffer = terminal.backend().buffer();
    let cell = |x: u16, y: u16| buffer.cell((x, y)).unwrap().symbol().to_owned();
    let line = |y: u16| (0..columns).map(|x| cell(x, y)).collect::<String>().trim_end().to_owned();
    (0..rows).map(line).collect()
}

fn is_as_before(name: &str, lines: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots").join(name);
    let now = lines.join("\n") + "\n";
    if std::env::var_os("HOMENODE_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(now == before, "{} is not as it was (HOMENODE_BLESS=1 writes it anew):\n{now}", path.display());
}

#[test]
fn eighty_columns() {
    is_as_before("80x24.txt", &drawn(&glance(&set()), 80, 24, &Choice::default()));
}

#[test]
fn a_hundred_and_twenty_columns() {
    let choice = Choice { output: "step 40, residual 1.2e-3".into(), ..Choice::default() };
    is_as_before("120x40.txt", &drawn(&glance(&set()), 120, 40, &choice));
}

#[test]
fn the_keys() {
    let choice = Choice { help: true, ..Choice::default() };
    is_as_before("help.txt", &drawn(&glance(&set()), 80, 24, &choice));
}

#[test]
fn numbers_are_those_of_the_report() {
    let set = set();
    let (report, glance) = (RecordingReport::of(&set), glance(&set));
    let lines = drawn(&glance, 120, 40, &Choice::default());
    let shown = report.objects.iter().filter(|o| o.remote.part > 0).count();
    assert!(shown > 3);
    let mut last = 0;
    for o in report.objects.iter().take(shown) {
        let at = lines.iter().position(|l| l.starts_with(&format!("{} ", o.name))).unwrap();
        assert!(at > last, "most remote ones first");
        last = at;
        let numbers = [
            human::plain(&human::bytes(o.bytes)),
            human::plain(&human::count(o.accesses.units().1)),
            human::percent(o.remote.percent().unwrap()),
        ];
        for number in numbers {
            assert!(lines[at].contains(&number), "{number} is not in {}", lines[at]);
        }
    }
    let pages: u64 = report.objects.iter().flat_map(|o| &o.residency).map(|r| r.pages).sum();
    assert_eq!(glance.nodes.iter().filter_map(|n| n.pages).sum::<u64>(), pages);
    let json = glance.json();
    assert_eq!(json["schema"], "homenode/top/1");
    assert_eq!(json["objects"][0]["remote"]["part"], report.objects[0].remote.part);
    assert_eq!(json["nodes"][1]["sightings"], 1000);
    assert_eq!(json["nodes"][1]["remote"], 800);
    assert_eq!(json["nodes"][2]["sightings"], serde_json::Value::Null, "nobody was seen there");
}

#[test]
fn every_size_of_a_terminal_is_filled_and_none_fails() {
    let glance = glance(&set());
    for (columns, rows) in [(1, 1), (7, 3), (20, 5), (40, 12), (80, 10), (300, 100)] {
        for help in [false, true] {
            let choice = Choice { help, ..Choice::default() };
            assert_eq!(drawn(&glance, columns, rows, &choice).len(), usize::from(rows));
            drawn(&Glance::default(), columns, rows, &choice);
        }
    }
}

#[test]
fn no_line_of_eighty_columns_is_wider() {
    let glance = glance(&set());
    for line in lines::screen(&glance, 80, 24, &Choice::default()) {
        assert!(human::width(&line.text) <= 80, "{}", line.text);
    }
    for line in lines::text(&glance, 80).lines() {
        assert!(human::width(line) <= 80, "{line}");
    }
}

#[test]
fn keys_scroll_order_and_quit() {
    let glance = glance(&set());
    let objects = glance.objects.len();
    let mut choice = Choice::default();
    for key in [Key::Down, Key::Down, Key::Up] {
        assert!(!press(key, &mut choice, objects));
    }
    assert_eq!(choice.first, 1);
    let second = &glance.objects[1].name;
    let lines = drawn(&glance, 120, 40, &choice);
    assert!(!lines.iter().any(|l| l.starts_with(&glance.objects[0].name)), "it is scrolled away");
    assert!(lines.iter().any(|l| l.starts_with(second)) && lines[39].contains("from object 2"));
    for _ in 0..1000 {
        press(Key::PageDown, &mut choice, objects);
    }
    assert_eq!(choice.first, objects - 1);
    press(Key::Char('o'), &mut choice, objects);
    assert_eq!((choice.order, choice.first), (SortOrder::Moved, 0));
    press(Key::Char('p'), &mut choice, objects);
    assert!(choice.paused && press(Key::Char('q'), &mut choice, objects));
    press(Key::Home, &mut choice, 0);
    press(Key::Down, &mut choice, 0);
    assert_eq!(choice.first, 0);
}

#[test]
fn orders_differ() {
    let object = |name: &str, bytes, moved| ObjectLine {
        name: name.into(),
        bytes: Some(Bytes(bytes)),
        moved,
        ..ObjectLine::default()
    };
    let objects = vec![object("first", 1, 5), object("second", 9, 0), object("third", 4, 7)];
    let glance = Glance { objects, ..Glance::default() };
    let names = |order| {
        let choice = Choice { order, ..Choice::default() };
        let lines = lines::objects(&glance, 80, 20, &choice);
        let name = |l: &lines::DisplayLine| l.text.split(' ').next().unwrap().to_owned();
        lines.iter().skip(2).map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(SortOrder::Remote), ["first", "second", "third"]);
    assert_eq!(names(SortOrder::Moved), ["third", "first", "second"]);
    assert_eq!(names(SortOrder::Size), ["second", "third", "first"]);
}
