//! The trace for Perfetto says what the tables say.

use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{Access, Iteration, Migration, Residency};
use homenode_dataset::{Dataset, MemoryDataset};
use homenode_export::perfetto::{self, WrittenTrace};
use homenode_model::NodeId;
use serde_json::Value;

fn set() -> Dataset {
    let spec = SyntheticSpec { iterations: 9, blocks: 64, nodes: 4, seed: 7, rank: None };
    let mut memory = MemoryDataset::default();
    let ended = spec.fill(&mut memory, &mut |_, _| true).unwrap();
    let mut meta = spec.meta();
    meta.ended = Some(ended);
    meta.command = vec!["<script>\"quoted\"".into()];
    Dataset::of_memory(meta, memory)
}

fn trace(set: &Dataset) -> (Value, WrittenTrace) {
    let mut bytes = Vec::new();
    let written = perfetto::write(set, &mut bytes, &mut |_| true).unwrap();
    (serde_json::from_slice(&bytes).unwrap(), written)
}

/// Events of a phase whose name begins so.
fn events<'a>(trace: &'a Value, phase: &str, name: &str) -> Vec<&'a Value> {
    let all = trace["traceEvents"].as_array().unwrap().iter();
    all.filter(|e| e["ph"] == phase && e["name"].as_str().unwrap().starts_with(name)).collect()
}

#[test]
fn every_event_has_the_form_that_perfetto_reads() {
    let (trace, written) = trace(&set());
    let all = trace["traceEvents"].as_array().unwrap();
    assert_eq!(all.len() as u64, written.events);
    for event in all {
        let has = |key: &str| event.get(key).is_some();
        assert_eq!(event["pid"], 1, "{event}");
        assert!(event["name"].is_string() && event["args"].is_object(), "{event}");
        match event["ph"].as_str().unwrap() {
            "M" => {}
            "X" => assert!(event["ts"].is_f64() && event["dur"].is_f64() && has("tid"), "{event}"),
            "i" => assert!(event["ts"].is_f64() && event["s"] == "t" && has("tid"), "{event}"),
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}"),
            other => panic!("{other} is no phase of ours"),
        }
    }
    assert_eq!(all[0]["args"]["name"], "<script>\"quoted\"", "a command is text");
}

#[test]
fn iterations_and_moves_are_those_of_the_tables() {
    let set = set();
    let (trace, _) = trace(&set);
    let rounds = events(&trace, "X", "iteration ");
    assert_eq!(rounds.len(), set.rows::<Iteration>().count());
    let first = set.rows::<Iteration>().next().unwrap();
    assert_eq!(rounds[0]["ts"], first.begin_ns.0 as f64 / 1000.0);
    assert_eq!(rounds[0]["dur"], (first.end_ns - first.begin_ns).0 as f64 / 1000.0);
    let moved: u64 = set.rows::<Migration>().map(|m| m.pages).sum();
    let told = events(&trace, "i", "").iter().map(|e| e["args"]["pages"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(told, moved);
    assert!(!events(&trace, "i", "ping-pong: 16 pages of queue from node").is_empty());
    assert!(!events(&trace, "X", "sweep solver.c:90").is_empty(), "a region");
}

#[test]
fn counters_are_sums_of_the_tables() {
    let set = set();
    let (trace, written) = trace(&set);
    for node in 0..4 {
        let counted = |remote: bool| {
            let rows =
                set.rows::<Access>().filter(|a| a.node == NodeId(node) && (a.node != a.home) == remote);
            rows.filter_map(|a| a.tally.count()).map(|c| c.parts().0).sum::<u64>()
        };
        let points = events(&trace, "C", &format!("accesses by node {node}"));
        let sum = |key: &str| points.iter().map(|e| e["args"][key].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("local"), sum("remote")), (counted(false), counted(true)), "node {node}");
        let last = set.rows::<Residency>().map(|r| r.until).max().unwrap();
        let lived = set.rows::<Residency>().filter(|r| r.home == NodeId(node) && r.until == last);
        let points = events(&trace, "C", &format!("pages on node {node}"));
        assert_eq!(
            points.last().unwrap()["args"]["pages"].as_u64().unwrap(),
            lived.map(|r| r.pages).sum::<u64>()
        );
    }
    // The queue has sightings, which are no counts.
    assert_eq!(written.coarsened, ["the counters hold no sightings, because a sighting is not a count"]);
}

#[test]
fn whoever_asks_to_stop_is_heard() {
    let spec = SyntheticSpec { iterations: 40, blocks: 1000, nodes: 4, seed: 7, rank: None };
    let mut memory = MemoryDataset::default();
    let ended = spec.fill(&mut memory, &mut |_, _| true).unwrap();
    let set = Dataset::of_memory(homenode_dataset::DatasetMeta { ended: Some(ended), ..spec.meta() }, memory);
    assert!(perfetto::write(&set, &mut Vec::new(), &mut |_| false).unwrap().stopped);
}
