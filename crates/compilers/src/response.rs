//! Response files: `@FILE` on a command line stands for the words in FILE.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Files may name files; a chain longer than this is a loop.
const MAX_DEPTH: usize = 32;

/// A command line longer than this goes to the compiler in a response file (the kernel's limit for
/// all arguments and the environment is 2 MiB with the usual stack limit).
pub const LONG: usize = 256 * 1024;

/// Replaces each `@FILE`. As with GCC, one that cannot be read stays as it is.
pub fn expand(args: Vec<OsString>) -> Vec<OsString> {
    expand_to(args, 0)
}

fn expand_to(args: Vec<OsString>, depth: usize) -> Vec<OsString> {
    let mut out = Vec::with_capacity(args.len());
    for arg in args {
        let content = match arg.as_bytes() {
            [b'@', name @ ..] if depth < MAX_DEPTH => std::fs::read(OsStr::from_bytes(name)).ok(),
            _ => None,
        };
        match content {
            Some(text) => out.extend(expand_to(split(&text), depth + 1)),
            None => out.push(arg),
        }
    }
    out
}

/// The rules of libiberty: white space separates, quotes group, a backslash takes the next byte as
/// it is.
fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote: Option<u8> = None;
    let mut bytes = text.iter().copied();
    while let Some(b) = bytes.next() {
        match (b, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (_, Some(q)) if b == q => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(b),
            (b'\'' | b'"', None) => {
                quote = Some(b);
                word.get_or_insert_default();
            }
            _ if b.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(b),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

/// Writes words so that [`expand`], GCC and clang read them back.
pub fn write(file: &Path, args: &[OsString]) -> std::io::Result<()> {
    let mut text = Vec::new();
    for arg in args {
        if arg.is_empty() {
            text.extend(b"\"\"");
        }
        for &b in arg.as_bytes() {
            if b.is_ascii_whitespace() || matches!(b, b'\\' | b'\'' | b'"') {
                text.push(b'\\');
            }
            text.push(b);
        }
        text.push(b'\n');
    }
    std::fs::write(file, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_escapes() {
        let words = split(b"-c 'a b.c'\n \"-DX=\\\"1\\\"\" y\\ z ''");
        assert_eq!(words, ["-c", "a b.c", "-DX=\"1\"", "y z", ""].map(OsString::from));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let dir = std::env::temp_dir().join(format!("homenode-rsp-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a.rsp");
        let words = ["-DX=\"a b\"", "c\\d", "it's", "", "plain"].map(OsString::from);
        write(&file, &words).unwrap();
        let mut at = OsString::from("@");
        at.push(&file);
        assert_eq!(expand(vec![at]), words);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn an_unreadable_file_stays_an_argument() {
        assert_eq!(expand(vec!["@/no/such".into()]), vec![OsString::from("@/no/such")]);
    }
}
