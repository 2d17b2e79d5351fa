//! Where the parts of a job meet: the folder `FILE.parts` beside the summary `FILE`, on a file
//! system that all ranks see.
//!
//! Each rank writes its part under its own name and then counts the parts. The rank that finds all
//! of them makes the summary. Two ranks may do so at once: they write the same bytes, and a rename
//! puts either in place. Parts of other jobs, such as those of a broken-off job, have other names
//! and are left alone.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use homenode_error::{Context, Result};
use homenode_launch::rank::Rank;

use crate::part::RankSummary;

/// Letters of a job's name in a file's name.
const NAME: usize = 60;

/// One rank's view of the meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    summary: PathBuf,
    folder: PathBuf,
    job: String,
    rank: Rank,
    of: u32,
}

impl Meeting {
    /// The meeting of a job whose ranks were all asked for the summary `path`. `None` where there
    /// is nobody to meet: one rank, a number of ranks that the launcher does not tell, or a path
    /// that differs from rank to rank.
    pub fn of(path: &Path, rank: Option<Rank>) -> Option<Self> {
        let rank = rank?;
        let of = rank.of.filter(|of| *of > 1)?;
        let text = path.to_str()?;
        if text.contains("%p") || text.contains("%r") || fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return None;
        }
        let mut folder = path.as_os_str().to_owned();
        folder.push(".parts");
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let job: String = rank.job.iter().flat_map(|j| j.chars()).map(plain).take(NAME).collect();
        let job = if job.is_empty() { "job".to_owned() } else { job };
        Some(Self { summary: path.to_owned(), folder: folder.into(), job, rank, of })
    }

    /// The rank that this process is.
    pub const fn rank(&self) -> &Rank {
        &self.rank
    }

    /// The summary's path.
    pub fn summary(&self) -> &Path {
        &self.summary
    }

    /// The folder with the parts.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("{}.{rank}.json", self.job))
    }

    /// Makes the folder, and removes what an earlier job of this name left: this rank's part and,
    /// by rank 0, the summary. Better known now than after an hour.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn open(&self) -> Result<()> {
        let failed = || format!("cannot write the summary {}", self.summary.display());
        self.put(&self.file(self.rank.number), b"").context(failed)?;
        fs::remove_file(self.file(self.rank.number)).context(failed)?;
        // The program may never start.
        let _ = fs::remove_dir(&self.folder);
        match fs::remove_file(&self.summary) {
            Err(e) if self.rank.number == 0 && e.kind() != ErrorKind::NotFound => Err(e).context(failed),
            _ => Ok(()),
        }
    }

    /// Leaves this rank's part. The last rank gets all parts, in the order of the ranks.
    ///
    /// # Errors
    /// The part cannot be written, or another cannot be read.
    pub fn leave(&self, part: &RankSummary) -> Result<Option<Vec<RankSummary>>> {
        let own = self.file(self.rank.number);
        let failed = || format!("cannot write this rank's part of the summary, {}", own.display());
        let bytes = serde_json::to_vec(part).context(failed)?;
        self.put(&own, &bytes).context(failed)?;
        if (0..self.of).any(|rank| !self.file(rank).is_file()) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for rank in 0..self.of {
            match RankSummary::read(&self.file(rank)) {
                Ok(part) => parts.push(part),
                // Another rank was here at the same time: it makes the summary, and clears up.
                Err(_) if !self.file(rank).exists() => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        Ok(Some(parts))
    }

    /// Writes the summary, and removes the parts.
    ///
    /// # Errors
    /// The summary cannot be written. The parts are kept then.
    pub fn finish(&self, text: &[u8]) -> Result<()> {
        let new = self.folder.join(format!("{}.{}.new", self.job, self.rank.number));
        let written = self.put(&new, text).and_then(|()| fs::rename(&new, &self.summary));
        written.context(|| format!("cannot write the summary {}", self.summary.display()))?;
        for rank in 0..self.of {
            let _ = fs::remove_file(self.file(rank));
        }
        // It stays while another job has parts in it.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// Writes a file whole or not at all. An earlier job may remove the folder at any time.
    fn put(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let new = path.with_extension(format!("{}-{}", self.rank.number, std::process::id()));
        let write = || {
            fs::create_dir_all(&self.folder)?;
            fs::write(&new, bytes)?;
            fs::rename(&new, path)
        };
        match write() {
            Err(e) if e.kind() == ErrorKind::NotFound => write(),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::*;
    use crate::place::RankBinding;

    fn rank(number: u32, of: Option<u32>, job: Option<&str>) -> Option<Rank> {
        Some(Rank { launcher: "x", number, of, job: job.map(Into::into) })
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("homenode-meeting-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn part(rank: &Rank) -> RankSummary {
        RankSummary::new(
            rank,
            RankBinding::default(),
            "./app".into(),
            ExitStatus::from_raw(0),
            Duration::from_millis(1),
        )
    }

    #[test]
    fn there_is_no_meeting_without_several_ranks_and_one_path() {
        let path = Path::new("summary");
        assert_eq!(Meeting::of(path, None), None);
        assert_eq!(Meeting::of(path, rank(0, Some(1), None)), None);
        assert_eq!(Meeting::of(path, rank(0, None, None)), None);
        assert_eq!(Meeting::of(Path::new("summary.%r"), rank(0, Some(2), None)), None);
        assert_eq!(Meeting::of(Path::new("/dev/null"), rank(0, Some(2), None)), None);
        assert!(Meeting::of(path, rank(0, Some(2), None)).is_some());
    }

    #[test]
    fn the_last_rank_gets_all_parts_in_order_and_leaves_the_summary_alone() {
        let base = folder("last");
        let path = base.join("summary.txt");
        // A job that was broken off, and one of another name that is under way.
        let stale = Meeting::of(&path, rank(1, Some(3), Some("41"))).unwrap();
        stale.open().unwrap();
        assert_eq!(stale.leave(&part(stale.rank())).unwrap(), None);
        let of = |n| Meeting::of(&path, rank(n, Some(3), Some("slurm/42.0"))).unwrap();
        let all: Vec<Meeting> = (0..3).map(of).collect();
        all.iter().for_each(|m| m.open().unwrap());
        for m in [&all[2], &all[0]] {
            assert_eq!(m.leave(&part(m.rank())).unwrap(), None);
            assert!(!path.exists());
        }
        let parts = all[1].leave(&part(all[1].rank())).unwrap().unwrap();
        assert_eq!(parts.iter().map(|p| p.rank).collect::<Vec<_>>(), [0, 1, 2]);
        all[1].finish(b"done").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"done");
        let left: Vec<_> = fs::read_dir(all[1].folder()).unwrap().flatten().map(|e| e.file_name()).collect();
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(left, ["41.1.json"]);
    }

    #[test]
    fn a_part_of_the_same_job_that_was_there_before_does_not_count() {
        let base = folder("before");
        let of = |n| Meeting::of(&base.join("summary"), rank(n, Some(2), None)).unwrap();
        of(0).open().unwrap();
        assert_eq!(of(0).leave(&part(of(0).rank())).unwrap(), None);
        // The same job once more.
        (0..2).for_each(|n| of(n).open().unwrap());
        assert_eq!(of(1).leave(&part(of(1).rank())).unwrap(), None);
        assert!(of(0).leave(&part(of(0).rank())).unwrap().is_some());
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_place_that_cannot_be_written_to_is_told_at_the_start() {
        let base = folder("refused");
        fs::write(base.join("file"), "").unwrap();
        let meeting = Meeting::of(&base.join("file/summary"), rank(1, Some(2), None)).unwrap();
        let error = meeting.open().unwrap_err().to_string();
        fs::remove_dir_all(&base).unwrap();
        assert!(error.contains("cannot write the summary"), "{error}");
    }

    #[test]
    fn ranks_that_end_at_once_make_one_summary() {
        let base = folder("at-once");
        let path = base.join("summary");
        let summaries: usize = std::thread::scope(|scope| {
            let one = |n| {
                let meeting = Meeting::of(&path, rank(n, Some(8), Some("7"))).unwrap();
                meeting.open().unwrap();
                move || {
                    let parts = meeting.leave(&part(meeting.rank())).unwrap();
                    parts.map(|p| meeting.finish(format!("{}", p.len()).as_bytes()).unwrap()).is_some()
                }
            };
            // All are open before the first one ends, as with MPI_Init.
            let ends: Vec<_> = (0..8).map(one).collect();
            let ends: Vec<_> = ends.into_iter().map(|end| scope.spawn(end)).collect();
            ends.into_iter().map(|end| usize::from(end.join().unwrap())).sum()
        });
        let (text, left) = (fs::read_to_string(&path).unwrap(), base.join("summary.parts").exists());
        fs::remove_dir_all(&base).unwrap();
        assert!(summaries >= 1 && text == "8" && !left, "{summaries} {text} {left}");
    }
}
