//! Files and texts of strangers: what is read is a regular file of bounded size, and what is
//! shown holds nothing that a terminal obeys.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Longest text that is kept of a foreign file, in bytes.
pub const LONGEST: usize = 4096;

/// Opens a regular file for reading. A symbolic link, a FIFO, a device or a folder is refused
/// without waiting for anybody.
///
/// # Errors
/// What the system said, or what the path holds instead.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| match e {
        rustix::io::Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"),
        e => e.into(),
    })?;
    let file = File::from(fd);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Whether the path is a folder itself, and not a symbolic link to one.
///
/// # Errors
/// It is not, or the system refuses.
pub fn folder(path: &Path) -> io::Result<()> {
    let kind = std::fs::symlink_metadata(path)?.file_type();
    match () {
        () if kind.is_dir() => Ok(()),
        () if kind.is_symlink() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "its folder is a symbolic link"))
        }
        () => Err(io::Error::new(io::ErrorKind::InvalidInput, "its folder is none")),
    }
}

/// Reads a regular file of at most `most` bytes as text; bytes that are no text are replaced.
///
/// # Errors
/// As [`open`], or the file is longer.
pub fn read(path: &Path, most: u64) -> io::Result<String> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is longer than the {most} bytes that are read"),
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a terminal obeys the character, or it turns the direction of text around.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A foreign text for showing: control characters, invisible ones and marks of direction become
/// U+FFFD, and what is longer than [`LONGEST`] bytes ends with an ellipsis.
pub fn clean(text: &str) -> String {
    let short = text.len() <= LONGEST;
    if short && !text.chars().any(is_obeyed) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(LONGEST));
    for c in text.chars() {
        if out.len() + c.len_utf8() > LONGEST - '…'.len_utf8() && !short {
            out.push('…');
            break;
        }
        out.push(if is_obeyed(c) { '\u{fffd}' } else { c });
    }
    out
}

/// As [`clean`]; a text that is clean already is not copied.
pub fn cleaned(text: &str) -> Cow<'_, str> {
    match text.len() <= LONGEST && !text.chars().any(is_obeyed) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(clean(text)),
    }
}

/// Whole output without what only foreign text brings along: every control character but the ends
/// of lines, tabs and the escape character of our own colours. It becomes U+FFFD.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}'))
}

/// As [`printable`], for output without colours: the escape character goes, too.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\r' | '\t'))
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&is_bad) {
        true => Cow::Owned(text.replace(is_bad, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(clean("a\x1b[31mb\nc\u{202e}d"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d");
        assert_eq!(clean("größe[3] 変数"), "größe[3] 変数");
        let long = clean(&"é".repeat(10 << 20));
        assert!(long.len() <= LONGEST && long.ends_with('…'));
    }

    #[test]
    fn whole_output_keeps_its_lines_and_colours() {
        assert_eq!(printable("\x1b[1ma\x1b[0m\t\u{9b}31m\r\n"), "\x1b[1ma\x1b[0m\t\u{fffd}31m\r\n");
        assert_eq!(without_escapes("a\x1b[0m\n"), "a\u{fffd}[0m\n");
        assert!(matches!(printable("größe\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_regular_files_are_opened() {
        assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular"));
        assert!(open(Path::new("/proc")).is_err());
        assert!(open(Path::new("/proc/self/exe")).unwrap_err().to_string().contains("symbolic"));
        let own = std::env::current_exe().unwrap();
        assert!(open(&own).is_ok());
        assert!(read(&own, 10).unwrap_err().to_string().contains("longer"));
    }
}
