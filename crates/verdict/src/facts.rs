//! What the library in the program left behind, read back: [`Facts`].

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

use homenode_log::recording;
use homenode_wire::Message;
use homenode_wire::facts::{Facts, LoadedFile, Region};

use homenode_symbols::AddressList;

/// What processes left in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactsFolder<M> {
    /// What can be read.
    pub whole: Vec<M>,
    /// What is damaged, a sentence each.
    pub damaged: Vec<String>,
}

impl<M: Message> FactsFolder<M> {
    /// The messages in files whose names begin with `prefix` and go on with the number of a
    /// process.
    fn read(folder: &Path, prefix: &str) -> Self {
        let mut left = Self { whole: Vec::new(), damaged: Vec::new() };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|n| n.strip_prefix(prefix)?.parse::<u32>().ok());
            let Some(pid) = pid.filter(|_| entry.file_type().is_ok_and(|t| t.is_file())) else { continue };
            let Ok(mut file) = File::open(entry.path()) else { continue };
            match homenode_wire::read(&mut file) {
                Ok(message) => left.whole.push(message),
                Err(why) => left.damaged.push(format!("what process {pid} left cannot be read: {why}")),
            }
        }
        left.damaged.sort();
        left
    }
}

/// All reports in a folder, those with most regions first.
pub fn all(folder: &Path) -> FactsFolder<Facts> {
    let mut left = FactsFolder::<Facts>::read(folder, "report.");
    left.whole.sort_by_key(|f| (std::cmp::Reverse(f.regions.runs), f.pid));
    left
}

/// Addresses that want names.
pub fn addresses(facts: &Facts) -> AddressList {
    let region = |r: &Region| if r.function > 1 { r.function } else { r.caller };
    AddressList {
        sites: BTreeSet::new(),
        callers: facts.objects.most.iter().flat_map(|o| o.origin.frames()).copied().collect(),
        regions: facts.regions.longest.iter().map(region).collect(),
        accesses: BTreeSet::new(),
    }
}

/// Loaded files as a recording numbers them.
pub fn numbered(modules: &[LoadedFile]) -> Vec<recording::Module> {
    let one = |(index, m): (u64, &LoadedFile)| {
        let LoadedFile { base, low, high, path } = m.clone();
        recording::Module { index, base, low, high, path }
    };
    (0..).zip(modules).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_reports_are_read_and_damaged_ones_are_named() {
        let folder = std::env::temp_dir().join(format!("homenode-left-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let facts = |pid, runs| {
            let mut facts = Facts { pid, ..Facts::default() };
            facts.regions.runs = runs;
            facts
        };
        for (pid, runs) in [(7, 1), (8, 9), (9, 1)] {
            let bytes = homenode_wire::encode(&facts(pid, runs)).unwrap();
            fs::write(folder.join(Facts::file_name(pid)), bytes).unwrap();
        }
        fs::write(folder.join("report.x"), "").unwrap();
        fs::write(folder.join("new.7"), "half").unwrap();
        let file = folder.join(Facts::file_name(9));
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&file, bytes).unwrap();
        let left = all(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(left.whole, [facts(8, 9), facts(7, 1)]);
        assert_eq!(left.damaged.len(), 1);
        assert!(left.damaged[0].starts_with("what process 9 left cannot be read: "), "{:?}", left.damaged);
        assert!(left.damaged[0].contains("byte 0: it is damaged"), "{:?}", left.damaged);
    }
}
