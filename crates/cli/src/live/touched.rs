//! Who was seen where, as the library in the program left it for a recording (`homenode_runtime::report::touched`), read back.

use std::fs;
use std::path::Path;

use homenode_log::recording::Module;
use homenode_runtime::report::touched::FIRST;

use super::facts::{Facts, Object, Origin, number, numbers, origin};

/// What its answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Says {
    /// None.
    #[default]
    Nothing,
    /// Each stands for so many accesses.
    Sampled(u64),
    /// That somebody was there.
    Presence,
    /// That somebody wrote there.
    Writers,
}

/// A line of what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The object, by its place in the list.
    pub object: usize,
    /// First page, counted from the object's first whole one.
    pub page: u64,
    /// Where it is.
    pub home: u16,
    /// Who was there.
    pub node: u16,
    /// `load`, `store` or `-`.
    pub kind: String,
    /// How often that was told.
    pub told: u64,
}

/// What one process left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The process.
    pub pid: u32,
    /// The program had come to its end.
    pub whole: bool,
    /// Nanoseconds from the start of the library.
    pub elapsed: u64,
    /// CPU time: homenode's own and the process's, in nanoseconds.
    pub own: [u64; 2],
    /// Number of nodes.
    pub nodes: u64,
    /// What its answers are.
    pub says: Says,
    /// What told.
    pub source: String,
    /// Touches told, pages asked for, touches lost.
    pub told: [u64; 3],
    /// Bytes of homenode's memory, and of what was watched.
    pub state: [u64; 2],
    /// Pages that are told of together.
    pub together: u64,
    /// Objects with their addresses.
    pub objects: Vec<(u64, Object)>,
    /// What was seen.
    pub seen: Vec<Seen>,
    /// What could not be done.
    pub notes: Vec<String>,
    /// Loaded files.
    pub modules: Vec<Module>,
}

/// Rows are bounded, and so is what they take.
const LONGEST: u64 = 64 << 20;

/// Of all processes that left something, by number.
pub fn all(folder: &Path) -> Vec<Touched> {
    let one = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.strip_prefix("touched.")?.parse().ok()?;
        let short = entry.metadata().ok()?.len() <= LONGEST;
        short.then(|| parse(&fs::read_to_string(entry.path()).ok()?, pid)).flatten()
    };
    let mut list: Vec<Touched> =
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(one).collect();
    list.sort_by_key(|t| t.pid);
    list
}

/// `None`: it is something else, or was cut off.
fn parse(text: &str, pid: u32) -> Option<Touched> {
    let mut lines = text.lines();
    if lines.next() != Some(FIRST) {
        return None;
    }
    let mut touched = Touched { pid, ..Touched::default() };
    for line in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "end" {
            touched.whole = rest == "whole";
            return Some(touched);
        }
        touched.line(word, rest)?;
    }
    None
}

impl Touched {
    fn line(&mut self, word: &str, rest: &str) -> Option<()> {
        match word {
            "elapsed" => self.elapsed = number(rest)?,
            "own" => self.own = numbers(rest)?,
            "nodes" => self.nodes = number(rest)?,
            "source" => {
                let mut fields = rest.splitn(3, ' ');
                let (says, one_in) = (fields.next()?, number(fields.next()?)?);
                self.says = match says {
                    "sampled" => Says::Sampled(one_in),
                    "presence" => Says::Presence,
                    "writers" => Says::Writers,
                    _ => Says::Nothing,
                };
                fields.next()?.clone_into(&mut self.source);
            }
            "told" => self.told = numbers(rest)?,
            "state" => self.state = numbers(rest)?,
            "together" => self.together = number(rest)?,
            "object" => {
                let mut fields = rest.split(' ');
                let origin = origin(fields.next()?)?;
                let (address, bytes) = (number(fields.next()?)?, number(fields.next()?)?);
                self.objects.push((address, Object::bare(origin, bytes)));
            }
            "file" => {
                if let Origin::Library(path, _) = &mut self.objects.last_mut()?.1.origin {
                    rest.clone_into(path);
                }
            }
            "python" => self.objects.last_mut()?.1.python = Some(rest.to_owned()),
            "seen" => {
                let f: Vec<&str> = rest.split(' ').collect();
                let [object, page, home, node, kind, told] = f[..] else { return None };
                self.seen.push(Seen {
                    object: object.parse().ok().filter(|o| *o < self.objects.len())?,
                    page: number(page)?,
                    home: home.parse().ok()?,
                    node: node.parse().ok()?,
                    kind: kind.to_owned(),
                    told: number(told)?,
                });
            }
            "note" => self.notes.push(rest.to_owned()),
            "module" => self.modules.push(super::facts::module(rest, self.modules.len())?),
            _ => return None,
        }
        Some(())
    }

    /// As facts, for names are made of those.
    pub fn facts(&self) -> Facts {
        Facts {
            pid: self.pid,
            most: self.objects.iter().map(|(_, o)| o.clone()).collect(),
            modules: self.modules.clone(),
            ..Facts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "homenode-touched 1\nelapsed 1000\nown 3 90\nnodes 2\nsource presence 0 pages taken away\ntold 5 6 1\n\
        state 100 4096\ntogether 2\nobject alloc:0x30,0x40 0x7f0000001010 81920\npython a.py:3 (f)\n\
        object static:0x4000 0x5000 65536\nobject library:0x80 0x6000 65536\nfile /a b/lib.so\nseen 0 2 0 1 - 3\nseen 1 0 1 1 store 2\nnote a b\n\
        module 0x1000 0x0 0x500 /a b/app\nend early\n";

    #[test]
    fn what_was_left_is_read() {
        let t = parse(TEXT, 7).unwrap();
        assert_eq!((t.pid, t.whole, t.nodes, t.says), (7, false, 2, Says::Presence));
        assert_eq!((t.source.as_str(), t.told, t.together), ("pages taken away", [5, 6, 1], 2));
        assert_eq!(
            (t.objects[0].0, t.objects[0].1.python.as_deref()),
            (0x7f00_0000_1010, Some("a.py:3 (f)"))
        );
        assert_eq!(t.objects[1].1.origin, Origin::Static(0x4000));
        assert_eq!(t.objects[2].1.origin, Origin::Library("/a b/lib.so".into(), 0x80));
        let last = t.seen.last().unwrap();
        assert_eq!((last.object, last.home, last.node, last.kind.as_str(), last.told), (1, 1, 1, "store", 2));
        assert_eq!((t.notes.len(), t.modules[0].path.as_str()), (1, "/a b/app"));
    }

    #[test]
    fn what_is_cut_off_or_strange_is_nothing() {
        for at in 0..TEXT.find("end").unwrap() {
            assert_eq!(parse(&TEXT[..at], 1), None);
        }
        for (good, bad) in
            [("seen 1", "seen 3"), ("told 5", "told x"), ("note", "what"), ("touched 1", "touched 2")]
        {
            assert_eq!(parse(&TEXT.replacen(good, bad, 1), 1), None, "{bad}");
        }
    }
}
