//! What the library in the program left behind (`homenode_runtime::report`), read back.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use homenode_log::recording::Module;
use homenode_runtime::report::FIRST;

use crate::symbols::Addresses;

/// Where an object comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Allocated: return addresses, innermost first.
    Allocated(Vec<u64>),
    /// A static object: its address in the program's file.
    Static(u64),
    /// The same of a library: its file, and the address in that.
    Library(String, u64),
}

/// An object that was armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it comes from.
    pub origin: Origin,
    /// Its size.
    pub bytes: u64,
    /// Pages moved.
    pub moved: u64,
    /// Pages moved back to where they had come from.
    pub ping_pongs: u64,
    /// Pages by home when it was first armed.
    pub homes: Vec<u64>,
    /// Pages by the node that touched them after an arming: presence.
    pub touched: Vec<u64>,
    /// The Python code that allocated it, `file:line (function)`, innermost first, with ` < ` between.
    pub python: Option<String>,
}

impl Object {
    /// Of which no more is known.
    pub const fn bare(origin: Origin, bytes: u64) -> Self {
        Self { origin, bytes, moved: 0, ping_pongs: 0, homes: Vec::new(), touched: Vec::new(), python: None }
    }
}

/// A region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// The outlined function; 0: not known.
    pub function: u64,
    /// Where it was started.
    pub caller: u64,
    /// How often it ran.
    pub runs: u64,
    /// Nanoseconds, all runs together.
    pub time: u64,
    /// Armings at its start.
    pub armings: u64,
    /// Pages that moved in it.
    pub moved: u64,
    /// Of these, back.
    pub ping_pongs: u64,
}

/// Times of rounds of the iteration, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Rounds.
    pub rounds: u64,
    /// First quartile.
    pub low: u64,
    /// Median.
    pub median: u64,
    /// Third quartile.
    pub high: u64,
    /// The median's 95 % interval by order statistics; zeros with fewer than six rounds.
    pub interval: (u64, u64),
}

/// What one process left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The process.
    pub pid: u32,
    /// Nanoseconds from the start of the library to the program's end.
    pub elapsed: u64,
    /// Nanoseconds of homenode's own, over all threads.
    pub own: u64,
    /// Of these, the ones that the program's team or a caller waited for.
    pub waited: u64,
    /// Nanoseconds of CPU time of the process, all threads.
    pub cpu: u64,
    /// The last part of the run, in which nothing armed was touched: own and all CPU time in nanoseconds, regions.
    pub settled: Option<[u64; 3]>,
    /// Budget: permille, nanoseconds.
    pub budget: (u64, u64),
    /// The policy's spec.
    pub policy: String,
    /// When memory was armed unasked.
    pub arming: String,
    /// Number of nodes.
    pub nodes: u64,
    /// They are pretended.
    pub pretended: bool,
    /// Calls that armed memory.
    pub arms: u64,
    /// Pages armed.
    pub armed_pages: u64,
    /// Faults on armed pages.
    pub faults: u64,
    /// Pages copied by their toucher.
    pub copies: u64,
    /// Pages moved by the kernel.
    pub kernel_moves: u64,
    /// Touches that were not told.
    pub lost_touches: u64,
    /// Regions of the source that ran.
    pub regions: u64,
    /// How often regions ran.
    pub region_runs: u64,
    /// Barriers in them that the program's text has, and ends of loops and sections, as the team's first thread left them.
    pub barriers: u64,
    /// Those that took longest.
    pub longest: Vec<Region>,
    /// Rounds of the iteration.
    pub rounds: u64,
    /// Times before anything was armed.
    pub before: Times,
    /// Times afterwards, of rounds in which nothing moved.
    pub after: Times,
    /// What holding back showed: off, open, pays, at-home, evener, no-gain, harms.
    pub verdict: String,
    /// Samples of moved pages: remote, all.
    pub moved_samples: (u64, u64),
    /// Samples of pages held back: remote, all.
    pub held_samples: (u64, u64),
    /// Objects watched at the end, objects armed, their pages, pages moved, ping-pongs.
    pub objects: [u64; 5],
    /// Objects that moved most.
    pub most: Vec<Object>,
    /// What was watched: touches told, pages asked for, touches lost, nanoseconds a sample, bytes of homenode's, bytes of the program's,
    /// blocks that a policy was told of by proportions, touches before anything moved: remote, all.
    pub watch: Option<[u64; 9]>,
    /// What told, and what its answers are.
    pub source: String,
    /// What became of a plan: objects planned, met, met with another size, pages looked at, those at home, those never touched,
    /// stretches with a policy.
    pub plan: Option<[u64; 7]>,
    /// The program's own number of threads is another than the plan's, and what that means.
    pub scaled: Option<String>,
    /// Why nothing was armed any more.
    pub stopped: Option<String>,
    /// What could not be done.
    pub notes: Vec<String>,
    /// Loaded files.
    pub modules: Vec<Module>,
    /// The last line is there.
    pub complete: bool,
}

/// A report of a few hundred lines; more is not ours.
const LONGEST: u64 = 16 << 20;

/// All reports in a folder, those with most regions first.
pub fn all(folder: &Path) -> Vec<Facts> {
    let mut list: Vec<Facts> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let pid = name.to_str()?.strip_prefix("report.")?.parse().ok()?;
            if entry.metadata().ok()?.len() > LONGEST {
                return None;
            }
            parse(&fs::read_to_string(entry.path()).ok()?, pid)
        })
        .collect();
    list.sort_by_key(|f| (std::cmp::Reverse(f.region_runs), f.pid));
    list
}

fn parse(text: &str, pid: u32) -> Option<Facts> {
    let mut lines = text.lines();
    if lines.next() != Some(FIRST) {
        return None;
    }
    let mut facts = Facts { pid, ..Facts::default() };
    for line in lines {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        // A line that is not understood was cut off, or is of a later version: the others still hold.
        let _ = facts.line(word, rest);
    }
    Some(facts)
}

pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(super) fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut all = [0; N];
    let mut fields = text.split(' ');
    for n in &mut all {
        *n = number(fields.next()?)?;
    }
    Some(all)
}

fn list(text: &str) -> Option<Vec<u64>> {
    if text == "-" { Some(Vec::new()) } else { text.split(',').map(number).collect() }
}

impl Facts {
    fn line(&mut self, word: &str, rest: &str) -> Option<()> {
        match word {
            "elapsed" => self.elapsed = number(rest)?,
            "own" => self.own = number(rest)?,
            "waited" => self.waited = number(rest)?,
            "cpu" => self.cpu = number(rest)?,
            "settled" => self.settled = Some(numbers(rest)?),
            "watch" => self.watch = Some(numbers(rest)?),
            "source" => rest.clone_into(&mut self.source),
            "budget" => self.budget = numbers(rest).map(|[p, ns]| (p, ns))?,
            "policy" => rest.clone_into(&mut self.policy),
            "arming" => rest.clone_into(&mut self.arming),
            "nodes" => {
                let (n, how) = rest.split_once(' ')?;
                (self.nodes, self.pretended) = (number(n)?, how == "pretended");
            }
            "counters" => {
                [
                    self.arms,
                    self.armed_pages,
                    self.faults,
                    self.copies,
                    self.kernel_moves,
                    self.lost_touches,
                ] = numbers(rest)?;
            }
            "regions" => [self.regions, self.region_runs, self.barriers] = numbers(rest)?,
            "region" => {
                let [function, caller, runs, time, armings, moved, ping_pongs] = numbers(rest)?;
                self.longest.push(Region { function, caller, runs, time, armings, moved, ping_pongs });
            }
            "rounds" => self.rounds = number(rest)?,
            "before" => self.before = times(rest)?,
            "after" => self.after = times(rest)?,
            "hold" => {
                let (verdict, samples) = rest.split_once(' ')?;
                let [a, b, c, d] = numbers(samples)?;
                verdict.clone_into(&mut self.verdict);
                (self.moved_samples, self.held_samples) = ((a, b), (c, d));
            }
            "objects" => self.objects = numbers(rest)?,
            "object" => self.most.push(object(rest)?),
            "file" => {
                if let Origin::Library(path, _) = &mut self.most.last_mut()?.origin {
                    rest.clone_into(path);
                }
            }
            "python" => self.most.last_mut()?.python = Some(rest.to_owned()),
            "plan" => self.plan = Some(numbers(rest)?),
            "scaled" => self.scaled = Some(rest.to_owned()),
            "stopped" => self.stopped = Some(rest.to_owned()),
            "note" => self.notes.push(rest.to_owned()),
            "module" => {
                self.modules.push(module(rest, self.modules.len())?);
            }
            "end" => self.complete = true,
            _ => return None,
        }
        Some(())
    }

    /// Addresses that want names.
    pub fn addresses(&self) -> Addresses {
        let frames = self.most.iter().filter_map(|o| match &o.origin {
            Origin::Allocated(frames) => Some(frames),
            Origin::Static(_) | Origin::Library(..) => None,
        });
        let region = |r: &Region| if r.function > 1 { r.function } else { r.caller };
        Addresses {
            sites: BTreeSet::new(),
            callers: frames.flatten().copied().collect(),
            regions: self.longest.iter().map(region).collect(),
        }
    }

    /// Pages of which it is known who touched them after an arming (presence), and those of them that another node had. Where touches
    /// are told and move nothing: those before anything moved.
    pub fn touched(&self) -> (u64, u64) {
        if let Some([.., remote, all]) = self.watch {
            return (all, remote);
        }
        let touched = self.most.iter().flat_map(|o| &o.touched).sum();
        (touched, self.objects[3].min(touched))
    }
}

fn times(rest: &str) -> Option<Times> {
    let [rounds, low, median, high, from, to] = numbers(rest)?;
    Some(Times { rounds, low, median, high, interval: (from, to) })
}

/// A loaded file, the `index`-th.
pub(super) fn module(rest: &str, index: usize) -> Option<Module> {
    let [base, low, high] = numbers(rest)?;
    let path = rest.splitn(4, ' ').nth(3)?.to_owned();
    Some(Module { index: index as u64, base, low, high, path })
}

pub(super) fn origin(text: &str) -> Option<Origin> {
    let (kind, what) = text.split_once(':')?;
    Some(match kind {
        "static" => Origin::Static(number(what)?),
        "library" => Origin::Library(String::new(), number(what)?),
        _ => Origin::Allocated(what.split(',').filter_map(number).collect()),
    })
}

fn object(rest: &str) -> Option<Object> {
    let mut fields = rest.split(' ');
    let origin = origin(fields.next()?)?;
    let mut next = || fields.next().and_then(number);
    let (bytes, moved, ping_pongs) = (next()?, next()?, next()?);
    Some(Object {
        origin,
        bytes,
        moved,
        ping_pongs,
        homes: list(fields.next()?)?,
        touched: list(fields.next()?)?,
        python: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "homenode-run 1\nelapsed 1000\nwaited 20\nwatch 5 6 0 3000 100 4096 1 3 4\nsource x; presence (order only)\npolicy next-touch\nnodes 2 pretended\ncounters 1 20 3 16 0 0 5\n\
        regions 2 40 3\nregion 0x10 0x20 20 500 0 0 0\nbefore 18 1 2 3 1 3\nhold pays 1 24 9 24\nobjects 3 1 20 10 0\n\
        object alloc:0x30,0x40 81920 10 0 20 10,10\npython a.py:3 (f) < a b.py:7 (<module>)\nobject static:0x4000 65536 0 0 16 -\n\
        object library:0x80 65536 0 0 16 -\nfile /a b/lib.so\nnote a b c\n\
        module 0x1000 0x0 0x500 /a b/app\nend\n";

    #[test]
    fn a_report_is_read() {
        let f = parse(TEXT, 7).unwrap();
        assert!(f.complete && f.pretended && (f.elapsed, f.waited) == (1000, 20));
        assert_eq!((f.regions, f.barriers), (2, 3));
        assert_eq!((f.copies, f.region_runs, f.before.median, f.held_samples), (16, 40, 2, (9, 24)));
        assert_eq!(f.most[0].origin, Origin::Allocated(vec![0x30, 0x40]));
        assert_eq!((f.most[0].touched.as_slice(), f.most[1].touched.len()), ([10, 10].as_slice(), 0));
        let python = f.most.iter().map(|o| o.python.as_deref()).collect::<Vec<_>>();
        assert_eq!(python, [Some("a.py:3 (f) < a b.py:7 (<module>)"), None, None]);
        assert_eq!(f.most[2].origin, Origin::Library("/a b/lib.so".into(), 0x80));
        assert_eq!((f.notes[0].as_str(), f.modules[0].path.as_str()), ("a b c", "/a b/app"));
        assert_eq!(f.touched(), (4, 3), "what was told before anything moved");
        assert_eq!(Facts { watch: None, ..f.clone() }.touched(), (20, 10));
        assert_eq!(
            (f.watch, f.source.as_str()),
            (Some([5, 6, 0, 3000, 100, 4096, 1, 3, 4]), "x; presence (order only)")
        );
    }

    #[test]
    fn what_is_cut_off_or_strange_does_no_harm() {
        for at in 0..TEXT.len() {
            let facts = parse(&TEXT[..at], 1);
            assert!(facts.is_none_or(|f| !f.complete || at + 1 == TEXT.len()));
        }
        assert_eq!(parse("something else", 1), None);
    }
}
