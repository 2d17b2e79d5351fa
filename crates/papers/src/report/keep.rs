//! Results in a folder, each under a name made from everything that it depends on.

use std::fs;
use std::path::{Path, PathBuf};

use homenode_error::{Context, Result};
use serde_json::Value;

use crate::ask::Ask;
use crate::catalogue::Entry;

/// What measures this machine is done anew each time.
const THIS: &str = "this";

/// The folder.
pub(super) struct Keep {
    folder: PathBuf,
    /// Of this program and the kernels' sources.
    sources: Sum,
}

/// FNV-1a in 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum(u128);

impl Sum {
    const NEW: Self = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    const PRIME: u128 = (1 << 88) + 0x13b;

    /// With more bytes. Words of eight bytes at once: this program has some 100 MB.
    fn with(mut self, bytes: &[u8]) -> Self {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
            self.0 = (self.0 ^ u128::from(word)).wrapping_mul(Self::PRIME);
        }
        for byte in chunks.remainder() {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        }
        // The length, so that two texts are not one.
        self.0 = (self.0 ^ bytes.len() as u128).wrapping_mul(Self::PRIME);
        self
    }
}

impl Keep {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).context(|| format!("cannot make the folder {}", folder.display()))?;
        let mut sources = Sum::NEW;
        if let Ok(program) = std::env::current_exe().and_then(fs::read) {
            sources = sources.with(&program);
        }
        for kernel in homenode_kernels::all()?.iter().take(1) {
            let mut files = Vec::new();
            collect(&kernel.folder, &mut files);
            files.sort();
            for file in files {
                let text = fs::read(&file).context(|| format!("cannot read {}", file.display()))?;
                sources = sources.with(file.to_string_lossy().as_bytes()).with(&text);
            }
        }
        Ok(Self { folder: folder.to_owned(), sources })
    }

    /// The name of a result; none where it is measured on this machine.
    pub(super) fn name(&self, entry: &Entry, ask: &Ask) -> Result<Option<String>> {
        if ask.machine.as_deref() == Some(THIS) {
            return Ok(None);
        }
        // A machine is a file that may change.
        let machine = ask.machine.as_deref().map(homenode_schemes::machine).transpose()?;
        let sum = self.sources.with(entry.name.as_bytes()).with(ask.words().as_bytes());
        let sum = sum.with(format!("{machine:?}").as_bytes());
        Ok(Some(format!("{}-{:032x}.json", entry.name, sum.0)))
    }

    pub(super) fn get(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.folder.join(name)).ok()?).ok()
    }

    /// Written beside and renamed, so that a result is there whole or not at all.
    pub(super) fn put(&self, name: &str, result: &Value) -> Result<()> {
        let path = self.folder.join(name);
        let beside = self.folder.join(format!("{name}.{}", std::process::id()));
        let cannot = || format!("cannot keep the result {}", path.display());
        fs::write(&beside, result.to_string()).context(cannot)?;
        fs::rename(&beside, &path).context(cannot)
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_found_under_the_same_question_alone() {
        let folder = std::env::temp_dir().join(format!("homenode-papers-keep-{}", std::process::id()));
        let keep = Keep::new(&folder).unwrap();
        let ask = Ask::usual(PathBuf::new(), 1);
        let (a, b) = (Entry::find("lof-table1").unwrap(), Entry::find("lof-table2").unwrap());
        let name = keep.name(a, &ask).unwrap().unwrap();
        assert_eq!(keep.get(&name), None);
        keep.put(&name, &json!({ "x": 1 })).unwrap();
        // Where recordings lie and who simulates does not matter.
        let elsewhere = Ask { folder: "/elsewhere".into(), workers: 7, ..ask.clone() };
        assert_eq!(keep.name(a, &elsewhere).unwrap().as_deref(), Some(name.as_str()));
        assert_eq!(keep.get(&name), Some(json!({ "x": 1 })));
        for other in [
            keep.name(b, &ask),
            keep.name(a, &Ask { small: true, ..ask.clone() }),
            keep.name(a, &Ask { class: Some("W".into()), ..ask.clone() }),
            keep.name(a, &Ask { machine: Some("wildfire".into()), ..ask.clone() }),
        ] {
            assert_ne!(other.unwrap().unwrap(), name);
        }
        assert_eq!(keep.name(a, &Ask { machine: Some("this".into()), ..ask }).unwrap(), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn sums_differ_where_bytes_do() {
        let of = |parts: &[&[u8]]| parts.iter().fold(Sum::NEW, |s, p| s.with(p));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"12345678"]), of(&[b"12345679"]));
        assert_eq!(of(&[b"12345678x"]), of(&[b"12345678x"]));
    }
}
