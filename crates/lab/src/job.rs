//! What the guest is told to do: a file on its disk.
//!
//! Fields are byte strings with their lengths in front; nothing is quoted, nothing can be misread.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Where it is in the guest.
pub const PATH: &str = "/.homenode/job";

/// Standard input, output and error of a program that runs apart.
pub const STREAMS: [&str; 3] = ["/.homenode/stdin", "/.homenode/stdout", "/.homenode/stderr"];

const MAGIC: &[u8] = b"homenode job 2\n";

/// What to run in the guest, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The program's path in the guest.
    pub program: PathBuf,
    /// What it is called (`argv[0]`).
    pub name: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment, all of it.
    pub env: BTreeMap<OsString, OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Whose files are watched for changes; `None`: nobody's.
    pub sync: Option<PathBuf>,
    /// Whom it runs as: user and group.
    pub user: (u32, u32),
    /// Nothing comes in or goes out while it runs: its streams are files, [`STREAMS`].
    pub apart: bool,
    /// The folder in which the program's processes write their marks; it comes back.
    pub marks: Option<PathBuf>,
}

impl Job {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut field = |bytes: &OsStr| {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes.as_bytes());
        };
        let number = |n: usize| OsString::from(n.to_string());
        field(self.program.as_os_str());
        field(&self.name);
        field(self.cwd.as_os_str());
        field(self.sync.as_ref().map_or(OsStr::new(""), |s| s.as_os_str()));
        field(&number(self.user.0 as usize));
        field(&number(self.user.1 as usize));
        field(&number(usize::from(self.apart)));
        field(self.marks.as_ref().map_or(OsStr::new(""), |m| m.as_os_str()));
        field(&number(self.args.len()));
        self.args.iter().for_each(|a| field(a));
        field(&number(self.env.len()));
        for (name, value) in &self.env {
            field(name);
            field(value);
        }
        out
    }

    /// From bytes; `None` when they are not a job.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut field = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (this, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            Some(OsString::from_vec(this.to_vec()))
        };
        let number = |f: Option<OsString>| f?.to_str()?.parse::<u32>().ok();
        let mut job = Self {
            program: field()?.into(),
            name: field()?,
            cwd: field()?.into(),
            sync: field().map(|s| (!s.is_empty()).then(|| s.into()))?,
            user: (number(field())?, number(field())?),
            apart: number(field())? != 0,
            marks: field().map(|m| (!m.is_empty()).then(|| m.into()))?,
            ..Self::default()
        };
        for _ in 0..number(field())? {
            job.args.push(field()?);
        }
        for _ in 0..number(field())? {
            job.env.insert(field()?, field()?);
        }
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_and_damage_does_not() {
        let job = Job {
            program: "/bin/x".into(),
            name: "x".into(),
            args: vec!["".into(), OsString::from_vec(vec![b'\n', 0xff, b'"'])],
            env: [("A".into(), "b=c\n".into())].into(),
            cwd: "/w".into(),
            sync: Some("/w".into()),
            user: (1000, 100),
            apart: true,
            marks: Some("/m".into()),
        };
        let bytes = job.encode();
        assert_eq!(Job::decode(&bytes), Some(job));
        for n in 0..bytes.len() {
            assert_eq!(Job::decode(&bytes[..n]), None, "{n}");
        }
    }
}
