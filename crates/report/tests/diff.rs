//! What changed between two recordings.

mod support;

use homenode_dataset::tables::{Object, ObjectKind};
use homenode_dataset::{Basis, Dataset, DatasetMeta, MemoryDataset, RecordingKind, RowSink};
use homenode_model::{Bytes, ObjectId};
use homenode_report::RecordingReport;
use homenode_report::compared::Compared;
use homenode_report::diff::{Diff, Matched, Unlike};
use support::{Heat, Placement};

fn diff(before: &Heat, after: &Heat) -> Diff {
    Diff::of(&RecordingReport::of(&before.dataset()), &RecordingReport::of(&after.dataset()))
}

fn moved() -> Heat {
    Heat { placement: Placement::NextTouch, ..Heat::default() }
}

#[test]
fn what_changed_most_comes_first() {
    let diff = diff(&Heat::default(), &moved());
    let names: Vec<_> = diff.objects.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["temperature_old", "temperature_new", "residual", ""]);
    let old = &diff.objects[0];
    assert_eq!(old.matched, Some(Matched::Id));
    // Nineteen of twenty iterations are local afterwards.
    assert_eq!(old.change.remote, Some(-19 * 384 * 320));
    assert_eq!((old.change.accesses, old.change.pages_moved), (Some(0), 386));
    assert_eq!(old.change.remote_per_million, Some(37_500 - 750_000));
    assert_eq!(old.change.memory_time_ps, Some(-19 * 384 * 320 * (220_000 - 96_000)));
    assert_eq!(diff.iteration_ns, Some(12_020_000 - 21_020_000));
    assert_eq!((diff.pages_moved_before, diff.pages_moved_after, diff.unlike.len()), (0, 770, 0));
    assert!(old.is_changed() && !diff.objects[2].is_changed());
}

#[test]
fn nothing_differs_from_itself() {
    let diff = diff(&moved(), &moved());
    assert!(diff.objects.iter().all(|o| o.matched == Some(Matched::Id) && !o.is_changed()));
    assert_eq!((diff.total.remote, diff.iteration_ns), (Some(0), Some(0)));
}

#[test]
fn an_array_is_found_though_its_address_and_line_changed() {
    let after = Heat { address: 0x7f00_0000_0000, line: 99, ..moved() };
    let with_names = diff(&Heat::default(), &after);
    assert_eq!(with_names.objects[0].matched, Some(Matched::Name));
    assert_eq!(with_names.objects[0].before.as_ref().unwrap().id, "heat.c:28 < main.c:9 #0");
    assert_eq!(with_names.objects[0].after.as_ref().unwrap().id, "heat.c:99 < main.c:9 #0");
    let nameless = |heat: Heat| Heat { names: false, ..heat };
    let by_place = diff(&nameless(Heat::default()), &nameless(after));
    let found: Vec<_> = by_place.objects.iter().map(|o| (o.name.as_str(), o.matched)).collect();
    assert_eq!(found[..2], [("heat.c:99", Some(Matched::Place)), ("heat.c:100", Some(Matched::Place))]);
    assert_eq!(by_place.objects[0].change, with_names.objects[0].change);
}

#[test]
fn a_name_counts_more_than_an_id_that_another_variable_had() {
    // A line more at the top: the first array now has the id that the second one had.
    let (before, after) = (Heat::default(), Heat { line: Heat::default().line + 1, ..moved() });
    let diff = diff(&before, &after);
    let named = |o: &&homenode_report::diff::ObjectDiff| o.name.starts_with("temperature");
    let pairs: Vec<_> = diff.objects.iter().filter(named).collect();
    assert_eq!(pairs.len(), 2);
    for o in pairs {
        let (before, after) = (o.before.as_ref().unwrap(), o.after.as_ref().unwrap());
        assert_eq!(before.name, after.name);
        assert_ne!(before.id, after.id);
        assert_eq!(o.matched, Some(Matched::Name));
    }
}

#[test]
fn a_presence_is_never_subtracted_from_a_count() {
    let presence = Heat { basis: Basis::Presence, kind: RecordingKind::Live, ..Heat::default() };
    let diff = self::diff(&presence, &moved());
    assert_eq!(diff.unlike, [Unlike::CountsAndPresence, Unlike::Clock]);
    let changes = diff.objects.iter().map(|o| &o.change).chain([&diff.total]);
    for change in changes {
        let numbers = [change.accesses, change.remote, change.remote_per_million, change.memory_time_ps];
        assert_eq!(numbers, [None; 4]);
    }
    assert_eq!(diff.iteration_ns, None, "one clock is the wall's");
    // The shares of both are there, for whoever reads.
    let old = diff.objects.iter().find(|o| o.name == "temperature_old").unwrap();
    assert_eq!(old.before.as_ref().and_then(|s| s.remote.per_million()), Some(750_000));
    let both = self::diff(&presence, &Heat { placement: Placement::Parallel, ..presence.clone() });
    assert_eq!(both.objects[0].change.remote_per_million, Some(-750_000), "shares of sightings compare");
    assert_eq!(both.objects[0].change.remote, None);
}

#[test]
fn counts_of_two_bases_are_said_to_be() {
    let sampled = Heat { basis: Basis::Sampled { one_in: 64 }, ..moved() };
    let diff = diff(&Heat::default(), &sampled);
    assert_eq!(diff.unlike, [Unlike::Basis]);
    assert_eq!(diff.objects[0].change.accesses, Some(0));
}

fn object(number: u32, id: &str, name: &str, pages: u64, type_: &str) -> Object {
    Object {
        object: ObjectId(number),
        id: id.into(),
        process: 0,
        name: name.into(),
        kind: ObjectKind::Allocated,
        element_type: Some(type_.into()),
        element_bytes: None,
        dimensions: Vec::new(),
        fields: homenode_dataset::fields::Fields::default(),
        file: None,
        line: Some(number),
        function: None,
        stack: Vec::new(),
        bytes: Bytes(pages * 4096),
        address: u64::from(number) << 20,
        allocations: 1,
        birth_ns: None,
        death_ns: None,
    }
}

fn of(objects: &[Object]) -> RecordingReport {
    let mut memory = MemoryDataset::default();
    objects.iter().for_each(|o| memory.push(o).unwrap());
    RecordingReport::of(&Dataset::of_memory(
        DatasetMeta::new(RecordingKind::Simulated, Basis::Exact, Vec::new()),
        memory,
    ))
}

#[test]
fn type_and_size_tell_equal_names_apart() {
    let before = [
        object(0, "a #0", "work", 10, "double"),
        object(1, "a #1", "work", 20, "double"),
        object(2, "a #2", "work", 20, "int"),
        object(3, "gone", "gone", 1, "int"),
    ];
    let after = [
        object(5, "b #0", "work", 20, "int"),
        object(6, "b #1", "work", 20, "double"),
        object(7, "b #2", "work", 11, "double"),
        object(8, "new", "new", 2, "int"),
    ];
    let diff = Diff::of(&of(&before), &of(&after));
    let mut pairs: Vec<_> = diff
        .objects
        .iter()
        .map(|o| (o.before.as_ref().map(|s| s.id.as_str()), o.after.as_ref().map(|s| s.id.as_str())))
        .collect();
    pairs.sort_unstable();
    assert_eq!(
        pairs,
        [
            (None, Some("new")),
            (Some("a #0"), Some("b #2")),
            (Some("a #1"), Some("b #1")),
            (Some("a #2"), Some("b #0")),
            (Some("gone"), None),
        ]
    );
}

#[test]
fn processes_with_the_same_objects_are_paired_in_their_order() {
    let process = |p: u32| Object { process: p, ..object(p, "a #0", "work", 4, "double") };
    let before: Vec<_> = (0..3).map(process).collect();
    let after: Vec<_> = (10..13).map(process).collect();
    let diff = Diff::of(&of(&before), &of(&after));
    let mut pairs: Vec<_> = diff
        .objects
        .iter()
        .map(|o| (o.before.as_ref().unwrap().object, o.after.as_ref().unwrap().object))
        .collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [0, 1, 2].map(|n| (Some(ObjectId(n)), Some(ObjectId(n + 10)))));
}

const BEFORE: &str = r#"{"schema": "homenode/compare/1",
  "columns": [{"key": "scheme", "title": "scheme", "unit": null}, {"key": "time", "title": "model time", "unit": "s"},
              {"key": "remote", "title": "remote", "unit": "%"}, {"key": "moved", "title": "pages moved", "unit": null}],
  "rows": [{"scheme": "SI", "time": 2.5, "remote": 88.0, "moved": 0}, {"scheme": "PI", "time": 1.5, "remote": 3.0, "moved": 0},
           {"scheme": "floor", "time": 1.0, "remote": null, "moved": null}],
  "missing": [{"row": 2, "column": "remote", "why": "a number, not a run"}]}"#;

#[test]
fn results_of_compare_go_together_by_scheme() {
    let before = Compared::from_json(BEFORE).unwrap();
    let after = BEFORE.replace("2.5", "2.0").replace("\"PI\"", "\"RR\"").replace("88.0", "44.0");
    let diff = before.diff(&Compared::from_json(&after).unwrap());
    let rows: Vec<_> = diff.rows.iter().map(|r| (r.scheme.as_str(), r.in_both)).collect();
    assert_eq!(rows, [("SI", true), ("PI", false), ("floor", true), ("RR", false)]);
    let pair = |row: usize, column: usize| {
        (diff.rows[row].numbers[column].before, diff.rows[row].numbers[column].after)
    };
    assert_eq!(diff.columns.iter().map(|c| c.key.as_str()).collect::<Vec<_>>(), ["time", "remote", "moved"]);
    assert_eq!(
        [pair(0, 0), pair(0, 1), pair(1, 0), pair(2, 1)],
        [(Some(2.5), Some(2.0)), (Some(88.0), Some(44.0)), (Some(1.5), None), (None, None)]
    );
}

#[test]
fn what_is_no_result_of_compare_is_named() {
    let error = |text: &str| Compared::from_json(text).unwrap_err().to_string();
    assert!(error("{").contains("EOF"));
    assert!(error("[]").contains("no schema"));
    assert!(error(&BEFORE.replace("compare/1", "compare/9")).contains("compare/9"));
    let hostile = error(r#"{"schema": "\u001b[31mred"}"#);
    assert!(!hostile.contains('\x1b') && hostile.contains("red"), "{hostile}");
    assert!(error(r#"{"schema": "homenode/compare/1", "rows": [3, {"scheme": 4}]}"#).contains("no schemes"));
    assert!(Compared::is(BEFORE) && !Compared::is("{}"));
}
