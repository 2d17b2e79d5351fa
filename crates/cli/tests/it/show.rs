//! `homenode show` of data sets: the answer, the table, the picture; of damaged ones, too.

use std::fs;
use std::path::Path;

use homenode_dataset::tables::{Access, Interval, Object, Residency};
use homenode_dataset::{Basis, Dataset, DatasetMeta, DatasetWriter, RecordingKind, RowSink};
use homenode_model::Bytes;

use crate::heat::{Heat, Placement};
use crate::support::{fresh, homenode, outcome, run};

/// Columns of the longest line, escape sequences left out.
fn widest(text: &str) -> usize {
    text.lines().map(|l| without_colours(l).chars().count()).max().unwrap_or(0)
}

fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split('\x1b');
    out += parts.next().unwrap_or_default();
    for part in parts {
        out += part.split_once('m').map_or("", |(_, rest)| rest);
    }
    out
}

fn moved() -> Heat {
    Heat { placement: Placement::NextTouch, ..Heat::default() }
}

fn json(dir: &Path, words: &[&str]) -> (Option<i32>, serde_json::Value) {
    let (status, out, err) = run(dir, words);
    (status, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}{err}")))
}

#[test]
fn the_answer_comes_first_and_fits_eighty_columns() {
    let dir = fresh("show-answer");
    moved().write(&dir.join("r"));
    let (status, out, err) = run(&dir, &["show", "r"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "remote: 3.8 % of 3 934 800 accesses (exact)",
            "83.1 % of these to temperature_old, first touched by node 0 heat.c:41",
            "770 pages moved (1 back again); iterations took 21.0 ms before, 12.0 ms after",
            "",
        ]
    );
    assert!(widest(&out) <= 80, "{out}");
    for whole in ["temperature_old", "temperature_new", "3 276 800", "heat.c:41", "whole"] {
        assert!(out.contains(whole), "{whole} is missing in\n{out}");
    }
    assert!(!out.contains('\x1b') && !out.contains('\u{a0}'));
    let (_, verbose, _) = run(&dir, &["show", "r", "-v"]);
    assert!(widest(&verbose) <= 80, "{verbose}");
    for more in ["double [512][512]", "avoidable", "allocated", "grid_init"] {
        assert!(verbose.contains(more) && !out.contains(more), "{more}\n{verbose}");
    }
    let (_, one, _) = run(&dir, &["show", "r", "--top", "1"]);
    assert!(!one.contains("temperature_new") && one.contains("3 more objects: --top lists them"), "{one}");
}

#[test]
fn the_documentation_shows_what_is_printed() {
    let dir = fresh("show-documentation");
    Heat::default().write(&dir.join("before.hnrec"));
    Heat { address: 0x7f00_0000, line: 31, ..moved() }.write(&dir.join("after.hnrec"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/show.md");
    let text = fs::read_to_string(page).unwrap();
    let examples: Vec<&str> = text.split("```text\n$ homenode ").skip(1).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let (words, rest) = example.split_once('\n').unwrap();
        let expected = rest.split("```").next().unwrap();
        let (_, out, err) = run(&dir, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(out, expected, "docs/show.md, {words}: {err}");
    }
}

#[test]
fn json_has_the_numbers_of_the_tables() {
    let dir = fresh("show-json");
    moved().write(&dir.join("r"));
    let (status, shown) = json(&dir, &["show", "r", "--json"]);
    assert_eq!((status, &shown["schema"]), (Some(0), &"homenode/show/2".into()));
    let set = Dataset::open(&dir.join("r")).unwrap();
    let timed: Vec<_> = set.rows::<Interval>().filter(|i| i.timed).map(|i| i.interval).collect();
    let count = |of: &dyn Fn(&Access) -> bool| -> u64 {
        let rows = set.rows::<Access>().filter(|a| timed.contains(&a.interval) && of(a));
        rows.map(|a| a.tally.count().unwrap().parts().0).sum()
    };
    assert_eq!(shown["summary"]["accesses"]["count"], count(&|_| true));
    assert_eq!(shown["summary"]["remote"]["part"], count(&|a| a.node != a.home));
    for object in set.rows::<Object>() {
        let all = shown["objects"].as_array().unwrap();
        let found = all.iter().find(|o| o["object"] == object.object.0).unwrap();
        assert_eq!(found["bytes"], object.bytes.0, "bytes are bytes");
        assert_eq!(found["dimensions"], serde_json::json!(object.dimensions), "lists are lists");
        assert_eq!(found["accesses"]["count"], count(&|a| a.object == Some(object.object)));
        assert_eq!(found["accesses"]["basis"], "exact");
        let remote = count(&|a| a.object == Some(object.object) && a.node != a.home);
        assert_eq!(found["remote"]["part"], remote);
    }
    assert_eq!(shown["objects_in_all"], 4);
    assert_eq!(shown["moves"]["pages"], 770);
    assert_eq!(shown["moves"]["reasons"][0]["cause"], "next touch");
    assert_eq!(json(&dir, &["show", "r", "--json", "--top", "2"]).1["objects"].as_array().unwrap().len(), 2);
}

#[test]
fn csv_and_conditions_have_plain_numbers() {
    let dir = fresh("show-csv");
    moved().write(&dir.join("r"));
    let (status, out, _) = run(&dir, &["show", "r", "--csv"]);
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    assert_eq!(status, Some(0));
    assert!(
        lines[0].starts_with("object,id,kind,bytes,type,dimensions,accesses,basis,seen,remote,"),
        "{out}"
    );
    assert!(lines[1].starts_with(
        "temperature_old,heat.c:28 < main.c:9 #0,allocated,2097152,double,512x512,3276800,exact,3276800,3.75,"
    ));
    assert!(
        lines[1].ends_with(",386,1,0:512,0:819200 1:819200 2:819200 3:819200,0:128 1:128 2:128 3:128"),
        "{out}"
    );
    let (status, ..) = run(&dir, &["show", "r", "--fail-if", "temperature_old:remote>3"]);
    assert_eq!(status, Some(1));
    assert_eq!(run(&dir, &["show", "r", "--fail-if", "temperature_old:remote>4"]).0, Some(0));
}

#[test]
fn presence_is_never_shown_as_a_count() {
    let dir = fresh("show-presence");
    Heat { basis: Basis::Presence, kind: RecordingKind::Live, ..Heat::default() }.write(&dir.join("r"));
    let (status, out, _) = run(&dir, &["show", "r"]);
    assert_eq!(status, Some(0));
    assert!(out.starts_with("remote: 73.9 % of 1380 sightings (presence, not counts)\n"), "{out}");
    let table: String = out.lines().skip_while(|l| !l.starts_with("name")).take(2).collect();
    assert!(
        table.contains("sightings") && table.contains("presence") && !out.contains("accesses  "),
        "{out}"
    );
    assert!(!out.contains("avoidable") && !out.contains("would save"), "{out}");
    let (_, shown) = json(&dir, &["show", "r", "--json"]);
    assert_eq!(shown["summary"]["accesses"]["count"], serde_json::Value::Null);
    assert_eq!(shown["objects"][0]["memory_time_ps"], serde_json::Value::Null);
    let (_, csv, _) = run(&dir, &["show", "r", "--csv"]);
    assert!(csv.lines().nth(1).unwrap().contains("512x512,,presence,640,75,,,"), "{csv}");
}

#[test]
fn samples_are_counts_with_their_rate() {
    let dir = fresh("show-sampled");
    Heat { basis: Basis::Sampled { one_in: 64 }, kind: RecordingKind::Live, ..Heat::default() }
        .write(&dir.join("r"));
    let (_, out, _) = run(&dir, &["show", "r"]);
    assert!(out.contains("accesses (sampled)") && out.contains("one sample stands for 64 accesses"), "{out}");
    let (_, shown) = json(&dir, &["show", "r", "--json"]);
    let accesses = &shown["objects"][0]["accesses"];
    assert_eq!((&accesses["basis"], &accesses["one_in"]), (&"sampled".into(), &64.into()));
}

#[test]
fn what_is_cut_off_is_said_in_the_first_line() {
    let dir = fresh("show-cut");
    Heat { ended: false, ..moved() }.write(&dir.join("r"));
    for words in [&["show", "r"][..], &["show", "r", "-v"], &["show", "r", "--map"]] {
        let (status, out, _) = run(&dir, words);
        assert_eq!(status, Some(3), "{words:?}");
        assert!(out.starts_with("not whole: the recording was cut off: it has no end\n"), "{out}");
        assert!(out.contains("temperature_old"), "what there is is shown");
    }
    let (_, out, _) = run(&dir, &["show", "r"]);
    assert_eq!(out.lines().nth(3), Some(""), "three lines of answer: {out}");
    let (status, shown) = json(&dir, &["show", "r", "--json"]);
    assert_eq!((status, &shown["summary"]["whole"]), (Some(3), &false.into()));
    assert_eq!(run(&dir, &["show", "r", "--csv"]).0, Some(3));
}

#[test]
fn damage_is_named_and_the_rest_is_shown() {
    let dir = fresh("show-damage");
    for (table, cut) in [("accesses", true), ("region_times", false), ("objects", true), ("intervals", false)]
    {
        let recording = dir.join(table);
        moved().write(&recording);
        let file = recording.join(format!("tables/{table}.hntable"));
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        if cut {
            bytes.truncate(middle);
        } else {
            bytes[middle] ^= 4;
        }
        fs::write(&file, bytes).unwrap();
        for words in [&["show", table][..], &["show", table, "--map"], &["show", table, "--json"]] {
            let (status, out, err) = run(&dir, words);
            assert_eq!((status, err.as_str()), (Some(3), ""), "{table}: {out}");
            assert!(out.contains(&format!("tables/{table}.hntable")), "{out}");
            assert!(words.len() == 3 || out.starts_with("not whole: "), "{out}");
        }
    }
    // What hangs or is not there is no table either.
    let fifo = dir.join("accesses/tables/accesses.hntable");
    fs::remove_file(&fifo).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (status, out, _) = run(&dir, &["show", "accesses"]);
    assert!(status == Some(3) && out.contains("not a regular file"), "{out}");
}

#[test]
fn names_of_strangers_do_not_reach_the_terminal_as_they_are() {
    let dir = fresh("show-names");
    let heat = moved();
    let mut memory = homenode_dataset::MemoryDataset::default();
    heat.fill(&mut memory);
    let set = Dataset::of_memory(heat.meta(), memory);
    let meta = DatasetMeta {
        command: vec!["./a\x1b[31m".into(), "x\ny".into()],
        machine: "m\x1b]0;title\x07".into(),
        notes: vec!["\x1b[2Jnote".into()],
        ended: None,
        ..heat.meta()
    };
    let mut writer = DatasetWriter::create(&dir.join("r"), meta).unwrap();
    let names =
        ["\x1b[2Jred\nline", &"x".repeat(10 << 20), "std::vector<std::pair<long,double>>::_M_realloc_insert"];
    for (mut object, name) in set.rows::<Object>().zip(names) {
        object.name = name.into();
        object.file = Some("\x1b[5m/src/\u{202e}c.c".into());
        object.bytes = Bytes(u64::MAX);
        writer.push(&object).unwrap();
    }
    set.rows::<Access>().for_each(|r| writer.push(&r).unwrap());
    set.rows::<Interval>().for_each(|r| writer.push(&r).unwrap());
    set.rows::<Residency>().for_each(|r| writer.push(&r).unwrap());
    writer.finish(heat.meta().ended.unwrap()).unwrap();
    for words in
        [&["show", "r"][..], &["show", "r", "-v"], &["show", "r", "--map"], &["diff", "r", "r", "--all"]]
    {
        let (status, out, err) = run(&dir, words);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
        assert!(widest(&out) <= 80, "{words:?}\n{out}");
        assert!(!out.contains(['\x1b', '\x07', '\u{202e}', '\r']), "{out:?}");
        assert!(out.contains('…'), "long names lose their middle\n{out}");
    }
    let (_, text, _) = run(&dir, &["show", "r", "--json"]);
    assert!(!text.contains(['\x1b', '\x07']) && !text.contains("\\u001b"), "also not for programs");
}

#[test]
fn the_picture_fits_its_width_with_letters_and_with_colours() {
    let dir = fresh("show-map");
    Heat { nodes: 8, pages: 4096, ..moved() }.write(&dir.join("r"));
    for (width, each) in [("80", 3), ("120", 4)] {
        let (status, out, err) = run(&dir, &["show", "r", "--map", "--width", width]);
        assert_eq!((status, err.as_str()), (Some(0), ""));
        let most: usize = width.parse().unwrap();
        assert!(widest(&out) <= most && widest(&out) > most - 25, "{out}");
        // An interval of initialisation, one iteration, then each eighth has its own home.
        let row = |label: &str, home: &str| {
            format!("{label:>10} {}{}\n", "0".repeat(2 * each), home.repeat(20 * each))
        };
        assert!(out.contains(&row("page 512", "1")) && out.contains(&row("page 3584", "7")), "{out}");
        assert!(out.contains(&format!("{:>10} {}+", "moves", " ".repeat(2 * each))), "{out}");
        for word in ["|0 s", "|433 ms", "iteration", "7 node 7", "+ pages moved", "x some of them back again"]
        {
            assert!(out.contains(word), "{word}\n{out}");
        }
        let (_, coloured, _) = run(&dir, &["show", "r", "--map", "--width", width, "--color", "always"]);
        assert!(coloured.contains("\x1b[30;48;5;214m"), "{coloured:?}");
        assert!(widest(&coloured) <= most, "{coloured}");
        let bands =
            |text: &str| text.lines().filter(|l| l.contains("page ")).map(|l| l.chars().count()).max();
        assert_eq!(bands(&without_colours(&coloured)), bands(&out), "colours take no columns");
    }
    let never = run(&dir, &["show", "r", "--map", "--color", "never"]).1;
    assert_eq!(never, run(&dir, &["show", "r", "--map"]).1, "no terminal, no colours");
    let mut with = homenode(&dir);
    with.args(["show", "r", "--map"]).env("NO_COLOR", "1");
    assert_eq!(outcome(&with.output().unwrap()).1, never);
    let (status, shown) = json(&dir, &["show", "r", "--map", "--json"]);
    assert_eq!((status, &shown["schema"]), (Some(0), &"homenode/map/1".into()));
    assert_eq!(shown["map"]["homes"], serde_json::json!([0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(shown["map"]["objects"][0]["bands"][7]["cells"][21]["home"], 7);
}

#[test]
fn many_nodes_are_letters_even_with_colours() {
    let dir = fresh("show-map-many");
    Heat { nodes: 16, pages: 64, ..moved() }.write(&dir.join("sixteen"));
    let (_, out, _) = run(&dir, &["show", "sixteen", "--map", "--height", "40", "--color", "always"]);
    assert!(!out.contains('\x1b'), "{out:?}");
    let band = format!("{:>10} AAAAAA{}\n", "page 60", "P".repeat(60));
    assert!(out.contains("A node 0   ") && out.contains("P node 15") && out.contains(&band), "{out}");
    let (_, mixed, _) = run(&dir, &["show", "sixteen", "--map", "--height", "6"]);
    assert!(mixed.contains("~~~") && mixed.contains("~ no node has 3/4 of the pages"), "{mixed}");
    Heat { nodes: 1000, pages: 4000, iterations: 3, ..moved() }.write(&dir.join("thousand"));
    for words in [&["show", "thousand"][..], &["show", "thousand", "--map"]] {
        let (status, out, err) = run(&dir, words);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
        assert!(widest(&out) <= 80, "{out}");
    }
    assert!(run(&dir, &["show", "thousand"]).1.contains("1000 nodes"));
}

#[test]
fn a_recording_of_nothing_is_shown_as_one() {
    let dir = fresh("show-nothing");
    let meta = DatasetMeta::new(RecordingKind::Run, Basis::Exact, vec!["./app".into()]);
    let ended = Heat::default().meta().ended.unwrap();
    DatasetWriter::create(&dir.join("r"), meta).unwrap().finish(ended).unwrap();
    let (status, out, _) = run(&dir, &["show", "r"]);
    assert_eq!(status, Some(0));
    assert!(out.starts_with("no accesses are recorded\nno page moved; no iterations are known\n"), "{out}");
    let (status, out, _) = run(&dir, &["show", "r", "--map"]);
    assert_eq!((status, out.as_str()), (Some(0), "the recording does not tell where pages lived\n"));
}

#[test]
fn what_is_no_recording_is_explained() {
    let dir = fresh("show-wrong");
    moved().write(&dir.join("kept/epyc-SI.hnrec"));
    let (status, _, err) = run(&dir, &["show", "kept"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("holds 1 recordings") && err.contains("kept/epyc-SI.hnrec"), "{err}");
    let (status, _, err) = run(&dir, &["show", "kept/epyc-SI.hnrec", "-m", "sf15k"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("is not simulated") && err.contains("leave --machine"), "{err}");
    let (status, _, err) = run(&dir, &["show", "nothing"]);
    assert_eq!(status, Some(2), "{err}");
    fs::write(dir.join("kept/epyc-SI.hnrec/dataset.json"), "{\"format\": 77}").unwrap();
    let (status, _, err) = run(&dir, &["show", "kept/epyc-SI.hnrec"]);
    assert!(status == Some(2) && err.contains("format 77"), "{err}");
}
