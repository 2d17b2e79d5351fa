//! A first look at a large recording, before all of it is read.
//!
//! Reading all accesses of a recording of 10 GB twice takes minutes. A first look reads a few
//! chunks of them, spread over the whole table, and all of the small tables. So the homes of pages,
//! moves and iterations are complete at once; shares of accesses are estimates, and their counts
//! are of the part that was read. The page says which part that is.

use std::path::Path;
use std::sync::Arc;

use homenode_dataset::{Dataset, TableRow as _, tables};

use crate::model::PageModel;
use crate::opened::Opened;
use crate::tiles::build::PyramidBudget;
use crate::tiles::pyramid::{Pyramid, PyramidWriter};

/// Bytes of accesses from which on a first look is taken: reading them all takes half a minute.
const LARGE: u64 = 256 << 20;
/// Chunks of accesses that a first look reads: 6.5 million rows, which take about two seconds.
const CHUNKS: u32 = 400;

/// A first look at a data set; nothing where all of it is read soon, or where it is not one folder.
pub fn first_look(set: &Dataset, source: Option<&Path>) -> Option<(PageModel, Opened)> {
    if set.size_of(tables::Access::NAME) < LARGE {
        return None;
    }
    look(set, source, CHUNKS)
}

fn look(set: &Dataset, source: Option<&Path>, chunks: u32) -> Option<(PageModel, Opened)> {
    let mut read = 0;
    let mut opened = Opened::read(set.glance(chunks)?, &mut |rows| read = rows);
    opened.source = source.map(Path::to_owned);
    let (mut model, pyramid) =
        opened.model_with(PyramidBudget::SERVER, &mut PyramidWriter::in_memory, &mut |_| true);
    // Without a pyramid, finer pictures are drawn from the same chunks.
    opened.pyramid = pyramid.and_then(|p| Pyramid::of(p.finish("", &mut |_| true)?)).ok().map(Arc::new);
    model.one_in = Some(opened.rows().div_ceil(read.max(1)));
    Some((model, opened))
}

#[cfg(test)]
mod tests {
    use homenode_dataset::DatasetWriter;
    use homenode_dataset::synthetic::SyntheticSpec;

    use super::*;

    #[test]
    fn a_first_look_has_all_homes_and_moves_and_a_part_of_the_accesses() {
        let folder = std::env::temp_dir().join(format!("homenode-glance-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let spec = SyntheticSpec { iterations: 200, blocks: 256, nodes: 4, seed: 7, rank: None };
        let mut writer = DatasetWriter::create(&folder, spec.meta()).unwrap();
        let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
        writer.finish(ended).unwrap();
        let set = Dataset::open(&folder).unwrap();
        assert!(first_look(&set, None).is_none(), "all of it is read soon");
        let (model, _) = look(&set, None, 8).unwrap();
        let whole = Opened::read(set, &mut |_| {}).model(PyramidBudget::SERVER, &mut |_| true);
        std::fs::remove_dir_all(&folder).unwrap();

        let part = model.one_in.unwrap();
        assert!((2..100).contains(&part), "{part}");
        assert_eq!(whole.one_in, None);
        let moved = |m: &PageModel| m.moved.as_ref().map(|m| m.pages);
        assert_eq!(moved(&model), moved(&whole));
        let homes = |m: &PageModel| -> Vec<_> {
            let mut all: Vec<_> =
                m.objects.iter().map(|o| (o.report.object, o.report.residency.clone())).collect();
            all.sort_by_key(|(object, _)| *object);
            all
        };
        let (some, all) = (homes(&model), homes(&whole));
        assert!(!some.is_empty() && some.iter().all(|o| all.contains(o)), "{some:?}");
        assert!(
            model.summary.missing.is_empty(),
            "what is not read is not lost: {:?}",
            model.summary.missing
        );
    }
}
