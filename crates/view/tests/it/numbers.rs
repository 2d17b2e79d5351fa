//! What the page is told is what the tables say.

use std::collections::BTreeMap;

use homenode_dataset::tables::{Access, Interval, Migration, MigrationOutcome, Residency};
use homenode_view::PyramidBudget;

use crate::support::{model, number_of, synthetic};

#[test]
fn moves_are_all_there_at_every_level_and_in_the_sums() {
    let set = synthetic(20, 400);
    let model = model(&set, PyramidBudget::FILE);
    let mut moved: BTreeMap<u32, u64> = BTreeMap::new();
    for m in set.rows::<Migration>().filter(|m| m.outcome != MigrationOutcome::Refused) {
        *moved.entry(m.object.unwrap().0).or_default() += m.pages;
    }
    assert!(!moved.is_empty());
    for object in &model.objects {
        let number = object.report.object.unwrap().0;
        let expected = moved.get(&number).copied().unwrap_or(0);
        for level in &object.levels {
            let sum: u64 = level.moves.iter().map(|m| m[2]).sum();
            assert_eq!(sum, expected, "{} at {} bands", object.report.name, level.bands);
        }
        let in_sums = model.moves.sums.iter().filter(|s| s[1] == u64::from(number) + 1 && s[5] != 2);
        assert_eq!(in_sums.map(|s| s[7]).sum::<u64>(), expected);
    }
}

#[test]
fn traffic_is_that_of_the_timed_intervals() {
    let set = synthetic(12, 200);
    let model = model(&set, PyramidBudget::FILE);
    let timed: Vec<bool> = set.rows::<Interval>().map(|i| i.timed).collect();
    let mut seen = 0;
    let mut remote = 0;
    for a in set.rows::<Access>().filter(|a| timed[a.interval.0 as usize]) {
        seen += a.tally.seen();
        remote += if a.node == a.home { 0 } else { a.tally.seen() };
    }
    assert_eq!(model.traffic.left_out, [0, 0]);
    for sums in [&model.traffic.by_object, &model.traffic.by_region] {
        assert_eq!(sums.iter().map(|s| s[4]).sum::<u64>(), seen);
        assert_eq!(sums.iter().filter(|s| s[2] != s[3]).map(|s| s[4]).sum::<u64>(), remote);
    }
}

#[test]
fn every_cell_has_the_home_that_the_residency_tells() {
    let set = synthetic(10, 64);
    let budget = PyramidBudget { numbers: 1 << 24, columns: 1000, ..PyramidBudget::SERVER };
    let model = model(&set, budget);
    let object = number_of(&set, "grid_old");
    let drawn = model.objects.iter().find(|o| o.report.object == Some(object)).unwrap();
    let level = &drawn.levels[0];
    assert_eq!((level.page_shift, level.time_shift), (0, 0), "a page and an interval a cell");
    let homes = level.home.values();
    let mut cells = 0;
    for run in set.rows::<Residency>().filter(|r| r.object == Some(object)) {
        for page in run.page..run.page + run.pages {
            for interval in run.interval.0..=run.until.0 {
                let cell = homes[page as usize * level.columns + interval as usize];
                assert_eq!(model.nodes[cell as usize - 1], run.home.0, "page {page}, interval {interval}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, level.bands * level.columns);
}

#[test]
fn a_smaller_budget_gives_fewer_cells_and_no_fewer_moves() {
    let set = synthetic(40, 2000);
    let of = |numbers| {
        let model = model(&set, PyramidBudget { numbers, ..PyramidBudget::FILE });
        let cells: usize = model.objects.iter().map(|o| o.levels[0].bands * o.levels[0].columns).sum();
        (cells, model.moves.sums.iter().map(|s| s[7]).sum::<u64>())
    };
    let (many, few) = (of(1 << 20), of(1 << 14));
    assert!(few.0 <= (1 << 14) / 5 + 84 * 10, "{} cells", few.0);
    assert!(few.0 < many.0 / 4);
    assert_eq!(few.1, many.1);
}

#[test]
fn few_intervals_do_not_make_the_page_large() {
    let set = synthetic(8, 2000);
    let model = model(&set, PyramidBudget { bands: 100, ..PyramidBudget::FILE });
    let bands: usize = model.objects.iter().map(|o| o.profile.len()).sum();
    assert!(bands <= 100 + model.objects.len(), "{bands} bands");
    assert!(model.objects[0].profile.len() > 4);
}
