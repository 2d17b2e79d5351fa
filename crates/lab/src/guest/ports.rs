//! The guest's ends of the ports.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens the port of this name.
///
/// # Errors
/// There is none of this name.
pub fn open(name: &str) -> io::Result<File> {
    for entry in fs::read_dir("/sys/class/virtio-ports")?.flatten() {
        let called = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if called.trim() == name {
            let device = Path::new("/dev").join(entry.file_name());
            return File::options().read(true).write(true).open(device);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no port '{name}'")))
}
