//! Python: an interpreter needs its standard library, and a virtual environment needs its
//! interpreter.

use std::fs;
use std::path::{Path, PathBuf};

/// Files of one installation of Python.
#[derive(Debug, PartialEq, Eq)]
pub struct PythonFiles {
    /// A file among them: if it travels, all of them do.
    pub known_by: PathBuf,
    /// The folders that hold them.
    pub folders: Vec<PathBuf>,
}

/// The files that the interpreter named `path`, which is really `real`, needs. None if it is not
/// Python.
pub fn files(path: &Path, real: &Path) -> Vec<PythonFiles> {
    let mut all = Vec::new();
    let Some(version) = version(real) else { return all };
    // If the name is a virtual environment's, it is that environment.
    if let Some(folder) = path.parent().and_then(Path::parent) {
        let known_by = folder.join("pyvenv.cfg");
        if known_by.is_file() {
            all.push(PythonFiles { known_by, folders: vec![folder.to_owned()] });
        }
    }
    let Some(prefix) = real.parent().and_then(Path::parent) else { return all };
    let library = prefix.join("lib").join(&version);
    if library.is_dir() {
        let known_by = library.join("os.py");
        let mut folders = vec![library];
        // Debian's own packages are in a folder beside it.
        folders.extend(Some(prefix.join("lib/python3/dist-packages")).filter(|packages| packages.is_dir()));
        let configuration = Path::new("/etc").join(&version);
        folders.extend(Some(configuration).filter(|c| prefix == Path::new("/usr") && c.is_dir()));
        all.push(PythonFiles { known_by, folders });
    }
    all
}

/// The names of the interpreter behind the virtual environment in `folder`, the best first.
pub fn interpreters(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let text = fs::read_to_string(folder.join("pyvenv.cfg")).unwrap_or_default();
    let value = |key: &str| {
        text.lines().find_map(|l| l.split_once('=').filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim()))
    };
    let home = value("home").map(PathBuf::from);
    let names = [value("executable").map(PathBuf::from), home.map(|h| h.join("python3"))];
    names.into_iter().flatten().filter(|n| n.is_file())
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
    use homenode_scratch::Scratch;

    #[test]
    fn interpreters_are_known_by_their_names() {
        assert_eq!(version(Path::new("/usr/bin/python3.11")), Some("python3.11".into()));
        assert_eq!(version(Path::new("/usr/bin/python3.13t")), Some("python3.13".into()));
        assert_eq!(version(Path::new("/usr/bin/perl")), None);
    }

    #[test]
    fn a_virtual_environment_names_its_interpreter() {
        let folder = Scratch::new("lab").unwrap();
        let python = folder.path().join("python3");
        fs::write(&python, "").unwrap();
        let names = format!("home = {0}\nexecutable = {0}/gone\n", folder.path().display());
        fs::write(folder.path().join("pyvenv.cfg"), names).unwrap();
        assert_eq!(interpreters(folder.path()).collect::<Vec<_>>(), [python]);
        assert_eq!(interpreters(Path::new("/nowhere")).count(), 0);
    }

    #[test]
    fn an_interpreter_needs_its_library_and_its_environment() {
        let folder = Scratch::new("lab").unwrap();
        let (environment, prefix) = (folder.path().join("env"), folder.path().join("usr"));
        let library = prefix.join("lib/python3.11");
        fs::create_dir_all(&library).unwrap();
        fs::create_dir_all(environment.join("bin")).unwrap();
        let (name, real) = (environment.join("bin/python"), prefix.join("bin/python3.11"));
        let of_library = PythonFiles { known_by: library.join("os.py"), folders: vec![library] };
        assert_eq!(files(&name, &real), [of_library], "without pyvenv.cfg it is no environment");
        fs::write(environment.join("pyvenv.cfg"), "").unwrap();
        assert_eq!(files(&name, &real)[0].folders, [environment]);
        assert_eq!(files(&name, Path::new("/usr/bin/perl")), []);
    }
}
