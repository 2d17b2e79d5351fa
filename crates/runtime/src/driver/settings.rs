//! The launcher's settings, as the driver uses them.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use homenode_wire::settings::FILE;
pub use homenode_wire::settings::RUN_DIR;
use homenode_wire::{Error, FrameFault, settings};

use super::machine::LiveMachine;

/// The launcher's settings, and what follows from them.
#[derive(Clone, Debug)]
pub struct DriverSettings {
    /// The folder of the run, for reports.
    pub folder: PathBuf,
    /// The nodes with lookup tables. Use this one, not the launcher's.
    pub machine: LiveMachine,
    /// The launcher's settings as sent.
    asked: settings::Settings,
}

impl Deref for DriverSettings {
    type Target = settings::Settings;

    fn deref(&self) -> &settings::Settings {
        &self.asked
    }
}

impl DriverSettings {
    /// Settings for a run whose folder is `folder`.
    ///
    /// # Errors
    /// The machine makes no sense.
    pub fn of(folder: &Path, asked: settings::Settings) -> Result<Self, String> {
        let machine = LiveMachine::of(&asked.machine).ok_or("its nodes are no machine")?;
        Ok(Self { folder: folder.to_owned(), machine, asked })
    }

    /// The CPUs of all nodes, as the launcher saw them.
    pub fn asked_cpus(&self) -> impl Iterator<Item = u32> {
        self.asked.machine.nodes.iter().flat_map(|node| node.cpus.iter().copied())
    }

    /// Reads the settings from the folder of a run. `None`: the folder is gone, because the
    /// launcher has ended.
    ///
    /// # Errors
    /// The folder has no settings, or they are damaged or make no sense.
    pub fn read(folder: &Path) -> Option<Result<Self, String>> {
        let path = folder.join(FILE);
        let failed = |why: &dyn std::fmt::Display| Some(Err(format!("{}: {why}", path.display())));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound && !folder.exists() => return None,
            Err(e) => return failed(&e),
        };
        match homenode_wire::read(&mut file) {
            Ok(asked) => match Self::of(folder, asked) {
                Ok(settings) => Some(Ok(settings)),
                Err(why) => failed(&why),
            },
            Err(Error { fault: FrameFault::Io(kind), .. }) => failed(&kind),
            Err(why) => failed(&why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::Bytes;
    use std::fs;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("homenode-settings-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_is_set_is_read() {
        let folder = folder("read");
        let machine = settings::MachineNodes::even(2, 1, Bytes::mib(100), 20);
        let asked = settings::Settings { policy: "p".into(), machine, force: true, ..Default::default() };
        fs::write(folder.join(FILE), homenode_wire::encode(&asked).unwrap()).unwrap();
        let read = DriverSettings::read(&folder).unwrap().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((&read.asked, read.machine.nodes(), &read.folder), (&asked, 2, &folder));
        assert!(DriverSettings::read(&folder).is_none(), "the launcher is gone");
    }

    #[test]
    fn nonsense_is_told_with_its_file() {
        let folder = folder("nonsense");
        let error = || DriverSettings::read(&folder).unwrap().unwrap_err();
        assert!(error().contains("settings: "), "{}", error());
        fs::write(folder.join(FILE), b"something else, and long enough").unwrap();
        assert!(error().contains("settings: the settings, byte 0: it is something else"), "{}", error());
        let none = homenode_wire::encode(&settings::Settings::default()).unwrap();
        fs::write(folder.join(FILE), none).unwrap();
        assert!(error().contains("no machine"), "{}", error());
        fs::remove_dir_all(&folder).unwrap();
    }
}
