//! Python: an interpreter needs its standard library, and a virtual environment needs its
//! interpreter.

use std::fs;
use std::path::{Path, PathBuf};

use super::Carry;

/// If the interpreter named `path`, which is really `real`, is Python: adds its files.
pub fn interpreter(path: &Path, real: &Path, carry: &mut Carry) {
    let Some(version) = version(real) else { return };
    // If the name is a virtual environment's, it is that environment.
    if let Some(folder) = path.parent().and_then(Path::parent)
        && folder.join("pyvenv.cfg").is_file()
        && !carry.items.contains_key(&folder.join("pyvenv.cfg"))
    {
        let _ = carry.add_all(folder);
    }
    let Some(prefix) = real.parent().and_then(Path::parent) else { return };
    let library = prefix.join("lib").join(&version);
    if library.is_dir() && !carry.items.contains_key(&library.join("os.py")) {
        let _ = carry.add_all(&library);
        // Debian's own packages are in a folder beside it.
        let packages = prefix.join("lib/python3/dist-packages");
        if packages.is_dir() {
            let _ = carry.add_all(&packages);
        }
        let configuration = Path::new("/etc").join(&version);
        if prefix == Path::new("/usr") && configuration.is_dir() {
            let _ = carry.add_all(&configuration);
        }
    }
}

/// Adds the interpreter behind the virtual environment in `folder`.
pub fn environment(folder: &Path, carry: &mut Carry) {
    let text = fs::read_to_string(folder.join("pyvenv.cfg")).unwrap_or_default();
    let value = |key: &str| {
        text.lines().find_map(|l| l.split_once('=').filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim()))
    };
    let home = value("home").map(PathBuf::from);
    let names = [value("executable").map(PathBuf::from), home.map(|h| h.join("python3"))];
    for name in names.into_iter().flatten().filter(|n| n.is_file()) {
        if carry.program(&name).is_ok() {
            return;
        }
    }
}

/// `python3.11` for an interpreter of that name.
fn version(real: &Path) -> Option<String> {
    let name = real.file_name()?.to_str()?;
    let number = name.strip_prefix("python3.")?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then(|| format!("python3.{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_known_by_their_names() {
        assert_eq!(version(Path::new("/usr/bin/python3.11")), Some("python3.11".into()));
        assert_eq!(version(Path::new("/usr/bin/python3.13t")), Some("python3.13".into()));
        assert_eq!(version(Path::new("/usr/bin/perl")), None);
    }
}
