//! Data sets of several ranks that read as one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use homenode_dataset::merge::merge;
use homenode_dataset::synthetic::SyntheticSpec;
use homenode_dataset::tables::{ALL, Access, Iteration, Link, Node, Object, Residency, ThreadStay};
use homenode_dataset::{Dataset, DatasetMeta, DatasetWriter};
use homenode_model::NodeId;

struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("homenode-merge-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn make(folder: &Path, seed: u64, change: impl FnOnce(&mut DatasetMeta)) -> (PathBuf, Dataset) {
    let spec = SyntheticSpec { iterations: 8, blocks: 40, nodes: 4, seed, rank: None };
    let path = folder.join(format!("r{seed}"));
    let mut meta = spec.meta();
    change(&mut meta);
    let mut writer = DatasetWriter::create(&path, meta).unwrap();
    let ended = spec.fill(&mut writer, &mut |_, _| true).unwrap();
    writer.finish(ended).unwrap();
    (path.clone(), Dataset::open(&path).unwrap())
}

fn sum(set: &Dataset) -> u64 {
    set.rows::<Access>().filter_map(|a| a.tally.count()).map(|c| c.parts().0).sum()
}

#[test]
fn ranks_read_as_one_and_share_no_number() {
    let folder = Temporary::new("ranks");
    let sets = [1, 2, 3].map(|seed| make(&folder.0, seed, |_| {}));
    let out = folder.0.join("all");
    merge(&sets, &out, &mut |_| true).unwrap();
    let all = Dataset::open(&out).unwrap();
    assert_eq!(all.missing(), []);
    // Sums are those of the ranks.
    assert_eq!(sum(&all), sets.iter().map(|(_, s)| sum(s)).sum::<u64>());
    for table in ALL.iter().filter(|t| !matches!(t.name, "nodes" | "links")) {
        let rows = |set: &Dataset| set.checked_chunks(table).map(|c| c.rows()).sum::<usize>();
        assert_eq!(rows(&all), sets.iter().map(|(_, s)| rows(s)).sum::<usize>(), "{}", table.name);
        assert_eq!(all.meta().rows[table.name], rows(&all) as u64, "{}", table.name);
    }
    // One host: its nodes are there once.
    assert_eq!(all.rows::<Node>().map(|n| n.node.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(all.rows::<Link>().count(), 16);
    let objects: Vec<Object> = all.rows().collect();
    let numbers: BTreeSet<u32> = objects.iter().map(|o| o.object.0).collect();
    assert_eq!(numbers.len(), objects.len(), "each object has a number of its own");
    let grids: Vec<&Object> = objects.iter().filter(|o| o.name == "grid_old").collect();
    assert_eq!(grids.len(), 3, "the same id in each process");
    assert!(grids.iter().all(|o| o.id == grids[0].id));
    let processes: BTreeSet<u32> = grids.iter().map(|o| o.process).collect();
    assert_eq!(processes.len(), 3);
    // Accesses still point to their own objects.
    let per_rank = |set: &Dataset, name: &str, nth: usize| -> u64 {
        let object = set.rows::<Object>().filter(|o| o.name == name).nth(nth).unwrap().object;
        set.rows::<Access>().filter(|a| a.object == Some(object)).map(|a| a.tally.seen()).sum()
    };
    for (nth, (_, set)) in sets.iter().enumerate() {
        assert_eq!(per_rank(&all, "matrix", nth), per_rank(set, "matrix", 0));
    }
    let members = all.members();
    assert_eq!(members.iter().map(|m| m.meta().rank).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert_eq!(sum(&members[1]), sum(&sets[1].1));
    let first = |m: &Dataset| m.rows::<Object>().next().unwrap().object.0;
    assert!(first(&members[1]) > 0, "members have the numbers of the merged data set");
    assert_eq!(
        all.meta().ended.as_ref().unwrap().elapsed_ns,
        sets.iter().map(|(_, s)| s.meta().ended.as_ref().unwrap().elapsed_ns).max().unwrap()
    );
    let stays: BTreeSet<(u32, u32)> = all.rows::<ThreadStay>().map(|t| (t.thread.0, t.process)).collect();
    assert_eq!(stays.len(), 48);
    assert_eq!(all.rows::<Iteration>().map(|i| i.process).collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn hosts_have_nodes_of_their_own() {
    let folder = Temporary::new("hosts");
    let host = |name: &'static str, rank| {
        move |m: &mut DatasetMeta| (m.host, m.rank) = (Some(name.into()), Some(rank))
    };
    let sets = [
        make(&folder.0, 1, host("a", 4)),
        make(&folder.0, 2, host("b", 2)),
        make(&folder.0, 3, host("a", 7)),
    ];
    let out = folder.0.join("all");
    merge(&sets, &out, &mut |_| true).unwrap();
    let all = Dataset::open(&out).unwrap();
    assert_eq!(all.rows::<Node>().map(|n| n.node.0).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    let homes = |m: &Dataset| m.rows::<Residency>().map(|r| r.home).collect::<BTreeSet<NodeId>>();
    let members = all.members();
    assert!(homes(&members[0]).iter().all(|n| n.0 < 4));
    assert!(homes(&members[1]).iter().all(|n| n.0 >= 4));
    assert_eq!(homes(&members[0]), homes(&members[2]));
    assert_eq!((all.meta().host.clone(), all.meta().rank), (None, None));
    // Merging a merged one with another is merging all.
    let more = make(&folder.0, 4, host("b", 9));
    let again = folder.0.join("again");
    merge(&[(out, all), more], &again, &mut |_| true).unwrap();
    let ranks: Vec<_> =
        Dataset::open(&again).unwrap().members().iter().map(|m| m.meta().rank.unwrap()).collect();
    assert_eq!(ranks, [4, 2, 7, 9]);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = Temporary::new("refused");
    let one = make(&folder.0, 1, |m| m.rank = Some(1));
    let same = make(&folder.0, 2, |m| m.rank = Some(1));
    let pages = make(&folder.0, 3, |m| m.page_bytes = 65536);
    let kind = make(&folder.0, 4, |m| m.kind = homenode_dataset::RecordingKind::Run);
    let out = folder.0.join("all");
    for (other, why) in [(same, "both are rank 1"), (pages, "pages of 4096"), (kind, "one is 'synthetic'")] {
        let error = merge(&[one.clone(), other], &out, &mut |_| true).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!out.exists());
    }
    assert!(merge(&[], &out, &mut |_| true).is_err());
    let stopped = merge(std::slice::from_ref(&one), &out, &mut |_| false).unwrap_err().to_string();
    assert!(stopped.contains("stopped") && !out.exists());
    fs::create_dir(&out).unwrap();
    assert!(merge(&[one], &out, &mut |_| true).unwrap_err().to_string().contains("exists"));
}

#[test]
fn a_damaged_member_costs_itself_alone() {
    let folder = Temporary::new("damaged");
    let sets = [1, 2, 3].map(|seed| make(&folder.0, seed, |_| {}));
    // A rank whose objects are lost: its numbers must not become another rank's.
    fs::write(sets[0].0.join("tables/objects.hntable"), "lost").unwrap();
    let sets: Vec<_> = sets.iter().map(|(path, _)| (path.clone(), Dataset::open(path).unwrap())).collect();
    let out = folder.0.join("all");
    merge(&sets, &out, &mut |_| true).unwrap();
    let all = Dataset::open(&out).unwrap();
    let objects: BTreeSet<u32> = all.rows::<Object>().map(|o| o.object.0).collect();
    let lost = all.members()[0].rows::<Access>().filter_map(|a| a.object).all(|o| !objects.contains(&o.0));
    assert!(lost, "accesses of lost objects belong to nobody");
    assert!(all.missing().iter().any(|m| m.to_string().starts_with("members/0000/tables/objects.hntable")));
    // A member that is gone, one that is a symbolic link.
    fs::remove_dir_all(out.join("members/0001")).unwrap();
    fs::rename(out.join("members/0002"), folder.0.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.0.join("elsewhere"), out.join("members/0002")).unwrap();
    let all = Dataset::open(&out).unwrap();
    let missing: Vec<String> = all.missing().iter().map(ToString::to_string).collect();
    assert!(missing[0].contains("members/0001") && missing[1].contains("symbolic link"), "{missing:?}");
    assert_eq!(sum(&all), sum(&sets[0].1));
}
