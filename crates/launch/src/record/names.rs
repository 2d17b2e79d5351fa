//! Names and paths of recordings, as a person types them.

use std::path::PathBuf;

/// A path as a person can type it again.
pub fn shown(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_=+,./:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The name that a recording gets by default, after a program.
pub fn stem(program: &std::ffi::OsStr) -> PathBuf {
    let name = std::path::Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    let clean: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '-' })
        .take(80)
        .collect();
    PathBuf::from(clean.trim_start_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recordings_name_is_easy_to_type() {
        for (program, name) in [("./app", "app"), ("/a b/x y", "x-y"), ("-odd", "odd"), (".hidden", "hidden")]
        {
            assert_eq!(stem(program.as_ref()), PathBuf::from(name));
        }
    }

    #[test]
    fn paths_are_quoted_when_they_must_be() {
        assert_eq!(shown("a.hnrec".as_ref()), "a.hnrec");
        assert_eq!(shown("a b".as_ref()), "'a b'");
        assert_eq!(shown("it's".as_ref()), r"'it'\''s'");
    }
}
