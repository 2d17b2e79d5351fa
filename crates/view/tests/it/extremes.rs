//! Recordings at the edge of what there can be: the page stays small, and nothing is lost without a
//! word.

use std::fs::OpenOptions;

use homenode_dataset::layout::TABLES;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{Access, Interval, Migration, MigrationOutcome, Node, Object};
use homenode_dataset::{Basis, Dataset, DatasetWriter, MemoryDataset, RowSink as _, SeenCount};
use homenode_model::{NodeId, Ns, ObjectId};
use homenode_view::tiles::nodes::RecordedNodes;
use homenode_view::{PageModel, PyramidBudget, history, page};

use crate::support::{fresh, model, number_of, synthetic, tables};

/// The synthetic data set with more in it.
fn with(more: impl FnOnce(&Dataset, &mut MemoryDataset)) -> Dataset {
    let set = synthetic(8, 64);
    let mut memory = tables(&set, |_| {});
    more(&set, &mut memory);
    Dataset::of_memory(set.meta().clone(), memory)
}

/// The page in a file, which has to be small.
fn small(model: &mut PageModel) -> String {
    let page = page::write_file(model, page::MOST_BYTES).unwrap();
    assert!(page.len() <= page::MOST_BYTES, "{} bytes", page.len());
    page
}

#[test]
fn a_hundred_thousand_objects() {
    let set = with(|set, memory| {
        let object = set.rows::<Object>().next().unwrap();
        let access = set.rows::<Access>().last().unwrap();
        for number in 0..100_000 {
            let number = ObjectId(1000 + number);
            memory
                .push(&Object { object: number, id: format!("many {}", number.0), ..object.clone() })
                .unwrap();
            memory.push(&Access { object: Some(number), page: 0, pages: 1, ..access.clone() }).unwrap();
        }
    });
    let mut model = model(&set, PyramidBudget::FILE);
    assert!(model.objects_in_all > 100_000);
    let shown = model.objects.len() as u64;
    assert!(shown <= PyramidBudget::FILE.objects as u64 && shown + model.objects_without_picture >= 100_000);
    let few = crate::support::model(&synthetic(8, 64), PyramidBudget::FILE);
    assert_eq!(model.objects[0].report.name, few.objects[0].report.name, "the most remote one stays first");
    small(&mut model);
}

#[test]
fn a_thousand_nodes() {
    let set = with(|set, memory| {
        let node = set.rows::<Node>().next().unwrap();
        let access = set.rows::<Access>().last().unwrap();
        for number in 4..1000 {
            let number = NodeId(number);
            memory.push(&Node { node: number, ..node.clone() }).unwrap();
            memory.push(&Access { node: number, ..access.clone() }).unwrap();
        }
    });
    let mut model = model(&set, PyramidBudget::FILE);
    assert_eq!(model.nodes.len(), 1000);
    let from = |node: u64| model.traffic.by_object.iter().any(|t| t[2] == node);
    assert!(from(3) && from(999), "the last one is told apart");
    small(&mut model);
}

#[test]
fn a_page_that_moved_ten_thousand_times() {
    let queue = number_of(&synthetic(8, 64), "queue");
    let set = with(|set, memory| {
        let of_queue = |m: &Migration| m.object == Some(queue) && m.outcome == MigrationOutcome::PingPong;
        let row = set.rows::<Migration>().find(of_queue).unwrap();
        for n in 0..10_000_u64 {
            let (from_node, to_node) =
                if n % 2 == 0 { (NodeId(0), NodeId(1)) } else { (NodeId(1), NodeId(0)) };
            let time_ns = Ns(row.time_ns.0 + n);
            memory
                .push(&Migration { time_ns, from_node, to_node, page: 5, pages: 1, ..row.clone() })
                .unwrap();
        }
    });
    let mut model = model(&set, PyramidBudget::FILE);
    let object = model.objects.iter().find(|o| o.report.object == Some(queue)).unwrap();
    for level in &object.levels {
        assert!(level.moves.iter().map(|m| m[3]).sum::<u64>() >= 10_000, "at every level");
    }
    let report = homenode_report::RecordingReport::of(&set);
    let timeline = homenode_report::time::Timeline::of(&set);
    let way = history::of(&set, &timeline, &RecordedNodes::of(&set, &report), queue, 5);
    assert_eq!(way.moves.len() as u64 + way.more_moves, 10_000 + others(&set, queue));
    small(&mut model);
}

/// Moves of that page which the synthetic data set has by itself.
fn others(set: &Dataset, object: ObjectId) -> u64 {
    let holds = |m: &Migration| m.object == Some(object) && m.page <= 5 && 5 < m.page + m.pages;
    set.rows::<Migration>().filter(holds).count() as u64 - 10_000
}

#[test]
fn one_interval_and_no_move() {
    let set = synthetic(8, 64);
    let mut memory = MemoryDataset::default();
    for object in set.rows::<Object>() {
        memory.push(&object).unwrap();
    }
    let interval = set.rows::<Interval>().next().unwrap();
    memory.push(&Interval { timed: true, ..interval.clone() }).unwrap();
    let first = set.rows::<Access>().next().unwrap();
    let tally = SeenCount::new(1, Basis::Exact);
    memory.push(&Access { interval: interval.interval, tally, ..first }).unwrap();
    let set = Dataset::of_memory(set.meta().clone(), memory);
    let mut model = model(&set, PyramidBudget::FILE);
    assert_eq!((model.time.intervals, model.moves.rows, model.objects.len()), (1, 0, 1));
    assert_eq!(model.objects[0].levels[0].columns, 1);
    small(&mut model);
}

#[test]
fn a_damaged_table_says_what_is_missing() {
    let folder = fresh("extremes-damaged").join("set.hnrec");
    let spec = SyntheticSpec { iterations: 8, blocks: 64, nodes: 4, seed: 7, rank: None };
    let mut writer = DatasetWriter::create(&folder, spec.meta()).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    let table = folder.join(TABLES).join("accesses.hntable");
    let file = OpenOptions::new().write(true).open(&table).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    let opened = homenode_view::Opened::read(Dataset::open(&folder).unwrap(), &mut |_| {});
    let mut model = opened.model(PyramidBudget::FILE, &mut |_| true);
    assert!(model.answer[0].starts_with("not whole: "), "{:?}", model.answer);
    assert!(!model.objects.is_empty(), "what is whole is shown");
    assert!(small(&mut model).contains("accesses.hntable"));
}
