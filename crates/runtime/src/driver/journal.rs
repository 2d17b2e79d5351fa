//! The policy's journal as a file, so that its decisions can be replayed.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{FromRawFd as _, IntoRawFd as _};
use std::path::Path;

use homenode_policy::journal::{Journalled, Sink};
use homenode_policy::{Policy, PolicyContext};
use homenode_sys::descriptor;

/// A file that ignores write errors: a full disk ends the journal, not the program.
struct Disk(Option<File>);

impl Sink for Disk {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(file) = &mut self.0
            && file.write_all(bytes).is_err()
        {
            self.close();
        }
    }
}

/// The same file under a descriptor that the program does not close.
fn kept(file: File) -> File {
    // SAFETY: the descriptor is the file's own, which is given up for it.
    unsafe { File::from_raw_fd(descriptor::keep(file.into_raw_fd())) }
}

impl Disk {
    fn close(&mut self) {
        if let Some(file) = self.0.take() {
            descriptor::close(file.into_raw_fd());
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

/// Builds a policy from `spec` and `context`, with a journal in `folder`.
///
/// # Errors
/// If the file cannot be made: the policy without a journal, and the reason.
pub fn journalled(
    policy: Box<dyn Policy>,
    spec: &str,
    context: &PolicyContext,
    folder: &Path,
) -> Result<Box<dyn Policy>, (Box<dyn Policy>, String)> {
    let path = folder.join(format!("{}.hnpj", std::process::id()));
    match File::create(&path) {
        Ok(file) => Ok(Box::new(Journalled::new(policy, spec, context, Disk(Some(kept(file)))))),
        Err(e) => Err((policy, format!("no journal of the policy: {}: {e}", path.display()))),
    }
}
