//! Data sets to look at.

use std::path::PathBuf;

use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::Object;
use homenode_dataset::{Dataset, MemoryDataset, RowSink as _, TableRow as _};
use homenode_model::ObjectId;
use homenode_report::RecordingReport;
use homenode_view::{Opened, PageModel, PyramidBudget, build};

/// A text that would be markup if anybody took it for such.
pub const HOSTILE: &str = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>";

/// A synthetic data set.
pub fn synthetic(iterations: u64, blocks: u64) -> Dataset {
    let spec = SyntheticSpec { iterations, blocks, nodes: 4, seed: 7, rank: None };
    let mut memory = MemoryDataset::default();
    let ended = spec.fill(&mut memory, &mut |_, _| true).unwrap();
    let mut meta = spec.meta();
    meta.ended = Some(ended);
    Dataset::of_memory(meta, memory)
}

/// A data set whose every name is hostile.
pub fn hostile() -> Dataset {
    let set = named(HOSTILE);
    let mut meta = set.meta().clone();
    meta.command = vec![HOSTILE.into()];
    meta.machine = HOSTILE.into();
    meta.notes = vec![HOSTILE.into()];
    Dataset::of_memory(meta, tables(&set, |_| {}))
}

/// A data set whose objects have this name, and are of files and functions of this name.
pub fn named(name: &str) -> Dataset {
    let set = synthetic(8, 64);
    let rename = |object: &mut Object| {
        for text in [&mut object.name, &mut object.id] {
            name.clone_into(text);
        }
        object.file = Some(name.into());
        object.function = Some(name.into());
        object.element_type = Some(name.into());
    };
    Dataset::of_memory(set.meta().clone(), tables(&set, rename))
}

/// The tables of a data set, with other objects.
pub fn tables(set: &Dataset, change: impl Fn(&mut Object)) -> MemoryDataset {
    let mut memory = MemoryDataset::default();
    for info in homenode_dataset::tables::ALL.iter().filter(|t| t.name != Object::NAME) {
        for chunk in set.chunks_of(info.name, &(info.columns)()) {
            push(&mut memory, info.name, &chunk);
        }
    }
    for mut object in set.rows::<Object>() {
        change(&mut object);
        memory.push(&object).unwrap();
    }
    memory
}

/// Copies a chunk of the table of that name.
fn push(to: &mut MemoryDataset, name: &str, chunk: &homenode_dataset::column::Chunk) {
    use homenode_dataset::tables as t;
    macro_rules! copy {
        ($($table:ty)*) => { match name {
            $(<$table>::NAME => to.push_chunk::<$table>(chunk),)*
            other => panic!("the table {other} is not known here"),
        } };
    }
    copy!(t::Node t::Link t::ThreadStay t::FirstTouch t::Region t::Interval t::RegionTime t::Iteration
        t::Access t::Residency t::Migration t::Sample t::OwnCost)
    .unwrap();
}

/// The program that made the synthetic data sets.
pub fn opened(set: Dataset) -> Opened {
    Opened::read(set, &mut |_| {}).explained("synthetic")
}

/// What a page gets of a data set.
pub fn model(set: &Dataset, budget: PyramidBudget) -> PageModel {
    let mut model = build(set, &RecordingReport::of(set), budget, &mut |_| true);
    model.answer = vec!["the answer".into()];
    model
}

/// The object of that name.
pub fn number_of(set: &Dataset, name: &str) -> ObjectId {
    set.rows::<Object>().find(|o| o.name == name).unwrap().object
}

/// An empty folder for one test.
pub fn fresh(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
