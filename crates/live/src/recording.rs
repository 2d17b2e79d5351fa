//! A data set of a program that runs here: made before the program starts, filled from its streams
//! afterwards.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use homenode_dataset::{Basis, DatasetMeta, DatasetWriter, Ended, RecordingKind};
use homenode_error::{Context, Result};
use homenode_launch::child::Ran;
use homenode_launch::rank;
use homenode_launch::record::directory::{self, RecordingTarget};
use homenode_observed::{STREAMS, StreamsSummary};

/// See the module.
pub struct LiveRecording {
    writer: DatasetWriter,
    streams: PathBuf,
}

impl LiveRecording {
    /// Makes the folder, with a data set in it that has no end yet, and room for the streams.
    ///
    /// # Errors
    /// Something is there already, or the system refuses.
    pub fn make(target: &RecordingTarget, kind: RecordingKind, command: Vec<String>) -> Result<Self> {
        let folder = directory::make_folder(target)?;
        let failed = || format!("cannot make the recording {}", folder.display());
        let streams = folder.join(STREAMS);
        fs::DirBuilder::new().mode(0o700).create(&streams).context(failed)?;
        // The program may change its folder.
        let streams = fs::canonicalize(streams).context(failed)?;
        let mut meta = DatasetMeta { machine: host(), ..DatasetMeta::new(kind, Basis::Presence, command) };
        if let Some(member) = rank::member() {
            (meta.host, meta.job, meta.rank) = (member.host, member.job, Some(member.rank));
        }
        let writer = DatasetWriter::create(&folder, meta).context(failed)?;
        Ok(Self { writer, streams })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.writer.path()
    }

    /// Where the library in the program writes its streams.
    pub fn streams(&self) -> &Path {
        &self.streams
    }

    /// The program could not be started: nothing is kept.
    pub fn discard(self) {
        let path = self.path().to_owned();
        let _ = fs::remove_dir(&self.streams);
        let _ = directory::remove(&path);
    }

    /// Fills the tables. `complete` adds facts to the data set's description.
    ///
    /// # Errors
    /// The tables cannot be written. The streams are then kept and can still be read.
    pub fn finish(
        mut self,
        ran: &Ran,
        complete: impl FnOnce(&mut DatasetMeta),
    ) -> Result<(PathBuf, StreamsSummary)> {
        let path = self.path().to_owned();
        let failed = || format!("cannot finish the recording {}", path.display());
        let mut meta = self.writer.meta().clone();
        complete(&mut meta);
        let summary = homenode_observed::write(&self.streams, &mut self.writer, &mut meta).context(failed)?;
        *self.writer.meta() = meta;
        let elapsed_ns = u64::try_from(ran.elapsed.as_nanos()).unwrap_or(u64::MAX);
        let ended = Ended { status: ran.status.code(), signal: ran.status.signal(), elapsed_ns };
        self.writer.finish(ended).context(failed)?;
        // All of it is in the tables now.
        let _ = fs::remove_dir_all(&self.streams);
        Ok((path, summary))
    }
}

/// The name of this machine.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("this machine ({})", name.trim())
}
