//! A plan as a file: JSON with a schema, by object, so that it holds whatever addresses the next
//! run has.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use homenode_error::{Context, Error, Result};
use homenode_model::Bytes;
use homenode_model::json::MemoryWeights;

/// Schema and version.
pub const SCHEMA: &str = "homenode/plan/1";
/// What begins every version's schema.
const FAMILY: &str = "homenode/plan/";
/// A plan for a terabyte has fewer; what is larger is nobody's plan.
const LARGEST: u64 = 64 << 20;
/// Memory that what it holds may take.
const MOST_HELD: Bytes = Bytes(224 << 20);
/// Most nodes that a machine has.
const MOST_NODES: usize = 1024;
/// Most objects, and most stretches of one.
const MOST: usize = 1 << 20;

/// What names a plan; the rest is left out.
#[derive(Deserialize)]
struct Named {
    schema: Option<String>,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFile {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program that was recorded, and its arguments.
    pub command: Vec<String>,
    /// What the recording is: exact.
    pub counts: String,
    /// The machine that it was made for.
    pub machine: String,
    /// Its nodes' numbers, as the kernel counts them where it is a real machine.
    pub nodes: Vec<u16>,
    /// The nodes were pretended.
    pub pretended: bool,
    /// Bytes of a page.
    pub page: u64,
    /// Processes of the job.
    pub ranks: u32,
    /// Node of each thread.
    pub threads: Vec<u16>,
    /// Objects in order of birth.
    pub objects: Vec<PlanObject>,
}

/// An object: allocations of one place in the source, or a static variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanObject {
    /// For people.
    pub name: String,
    /// A static variable's name.
    #[serde(rename = "static", default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Where the allocating call stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<PlanSite>,
    /// Where the call of the function with that call stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<PlanSite>,
    /// Which allocation of this place it is, from 0.
    #[serde(default)]
    pub instance: u32,
    /// Number of allocations of the place, one after the other, that are alike.
    #[serde(default = "one")]
    pub count: u32,
    /// Which allocation of this size it is among all of the program, from 0.
    #[serde(default)]
    pub order: u32,
    /// Length.
    pub bytes: u64,
    /// Stretches: offset, length, node. Ascending; what lies between is left to first touch.
    pub homes: Vec<(u64, u64, u16)>,
}

const fn one() -> u32 {
    1
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlanSite {
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl PlanFile {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// It cannot be read, is no plan, is of another version, or contradicts itself.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let cannot = || format!("cannot read the plan {shown}");
        let mut text = String::new();
        let file = homenode_log::regular::open(path)
            .context(cannot)
            .map_err(|e| e.hint("homenode plan REC -o FILE makes one"))?;
        let read = file.take(LARGEST + 1).read_to_string(&mut text);
        let not = |why: String| {
            Error::usage(format!("{shown} is not a plan of homenode"))
                .tried(why)
                .hint("homenode plan REC -o FILE makes one")
        };
        match read {
            Ok(n) if n as u64 > LARGEST => {
                return Err(not(format!("it is larger than {} MiB", LARGEST >> 20)));
            }
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                return Err(not("it is not text".into()));
            }
            read => read.context(cannot)?,
        };
        MemoryWeights::TYPED.check(&text, MOST_HELD).map_err(|e| not(e.to_string()))?;
        let named: Named = serde_json::from_str(&text).map_err(|e| not(format!("read it as JSON: {e}")))?;
        match named.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(s) if s.starts_with(FAMILY) => {
                return Err(Error::usage(format!("{shown} is a plan of another version of homenode"))
                    .tried(format!("its schema is {s}, this homenode reads {SCHEMA}"))
                    .hint("plan anew: homenode plan REC -o FILE"));
            }
            Some(s) => return Err(not(format!("its schema is {s:.80}"))),
            None => return Err(not("it names no schema".into())),
        }
        let plan: Self = serde_json::from_str(&text).map_err(|e| {
            Error::usage(format!("the plan {shown} is damaged"))
                .tried(e)
                .hint("plan anew: homenode plan REC -o FILE")
        })?;
        plan.check().map_err(|why| {
            Error::usage(format!("the plan {shown} is damaged"))
                .tried(why)
                .hint("plan anew: homenode plan REC -o FILE")
        })?;
        Ok(plan)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).context(|| "cannot put the plan into words".into())?;
        fs::write(path, text + "\n").context(|| format!("cannot write the plan {}", path.display()))
    }

    /// Whether it makes sense; says what does not.
    fn check(&self) -> std::result::Result<(), String> {
        let known = |n: &u16| self.nodes.contains(n);
        if self.nodes.is_empty() || self.nodes.len() > MOST_NODES {
            return Err(format!("it has {} nodes", self.nodes.len()));
        }
        if !self.page.is_power_of_two() || self.page < 4096 {
            return Err(format!("pages of {} bytes", self.page));
        }
        if let Some(n) = self.threads.iter().find(|n| !known(n)) {
            return Err(format!("a thread is on node {n}, which is not one of its nodes"));
        }
        if self.threads.is_empty() || self.objects.len() > MOST {
            return Err(format!("it has {} threads and {} objects", self.threads.len(), self.objects.len()));
        }
        self.objects.iter().try_for_each(|o| {
            let mut end = 0;
            if o.variable.is_none() && o.site.is_none() && o.bytes == 0 || o.homes.len() > MOST {
                return Err(format!("the object {:.80} cannot be found again", o.name));
            }
            o.homes.iter().try_for_each(|(offset, bytes, node)| {
                let this =
                    offset.checked_add(*bytes).filter(|e| *offset >= end && *bytes > 0 && *e <= o.bytes);
                match this {
                    Some(e) if known(node) => end = e,
                    Some(_) => {
                        return Err(format!(
                            "a page of {:.80} is on node {node}, which is not one of its nodes",
                            o.name
                        ));
                    }
                    None => return Err(format!("stretches of {:.80} overlap or lie outside of it", o.name)),
                }
                Ok(())
            })
        })
    }

    /// Bytes that have a home.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().flat_map(|o| &o.homes).map(|(_, bytes, _)| bytes).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two threads, one array, half on either node.
    pub fn plan() -> PlanFile {
        let place = |function: &str, line| PlanSite {
            function: Some(function.into()),
            file: Some("/src/a.c".into()),
            line: Some(line),
        };
        PlanFile {
            schema: SCHEMA.into(),
            command: vec!["app".into()],
            counts: "exact".into(),
            machine: "two nodes".into(),
            nodes: vec![0, 1],
            pretended: true,
            page: 4096,
            ranks: 1,
            threads: vec![0, 1],
            objects: vec![PlanObject {
                name: "a".into(),
                variable: None,
                site: Some(place("main", 3)),
                caller: None,
                instance: 0,
                count: 1,
                order: 0,
                bytes: 1 << 20,
                homes: vec![(0, 1 << 19, 0), (1 << 19, 1 << 19, 1)],
            }],
        }
    }

    fn read(text: &str) -> Error {
        let path = std::env::temp_dir().join(format!("homenode-plan-{}-{}", std::process::id(), text.len()));
        fs::write(&path, text).unwrap();
        let error = PlanFile::read(&path).unwrap_err();
        fs::remove_file(path).unwrap();
        error
    }

    #[test]
    fn a_plan_survives_its_file() {
        let path = std::env::temp_dir().join(format!("homenode-plan-{}", std::process::id()));
        plan().write(&path).unwrap();
        assert_eq!(PlanFile::read(&path).unwrap(), plan());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_no_plan_is_told() {
        for (text, part) in [
            ("", "is not a plan"),
            ("hello", "is not a plan"),
            ("{}", "names no schema"),
            (r#"{"schema":"homenode/run/1"}"#, "its schema is homenode/run/1"),
            (r#"{"schema":"homenode/plan/9"}"#, "another version"),
            (r#"{"schema":"homenode/plan/1","nodes":[0]}"#, "is damaged"),
        ] {
            let error = read(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(PlanFile::read(Path::new("/no/plan")).unwrap_err().to_string().contains("No such file"));
        assert!(PlanFile::read(Path::new("/")).is_err());
    }

    #[test]
    fn a_plan_that_contradicts_itself_is_told() {
        let damaged = |change: fn(&mut PlanFile)| {
            let mut plan = plan();
            change(&mut plan);
            plan.check().unwrap_err()
        };
        assert!(damaged(|p| p.nodes.clear()).contains("0 nodes"));
        assert!(damaged(|p| p.page = 5000).contains("5000"));
        assert!(damaged(|p| p.threads[1] = 7).contains("node 7"));
        assert!(damaged(|p| p.threads.clear()).contains("0 threads"));
        assert!(damaged(|p| p.objects[0].homes[1].2 = 9).contains("node 9"));
        assert!(damaged(|p| p.objects[0].homes[1].0 = 5).contains("overlap"));
        assert!(damaged(|p| p.objects[0].homes[1].1 = u64::MAX).contains("outside"));
        assert_eq!(plan().check(), Ok(()));
    }
}
