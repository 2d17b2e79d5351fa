//! `numactl` in front of a program: what its options mean for a simulation. numactl itself is not
//! run, for the machine at hand may have one node.

use std::ffi::OsString;
use std::path::Path;

/// The policy of a program under `numactl --interleave=all`.
pub const INTERLEAVED: &str = "round-robin";

/// What stands behind numactl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumactlCommand {
    /// All pages are dealt to all nodes.
    pub interleaved: bool,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

/// Whether a program is numactl.
pub fn is(program: &OsString) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "numactl")
}

/// Reads numactl's arguments.
///
/// # Errors
/// An option that a simulation has no answer for, or no program.
pub fn parse(args: &[OsString]) -> Result<NumactlCommand, String> {
    let mut interleaved = false;
    let mut rest = args.iter();
    while let Some(word) = rest.clone().next() {
        let text = word.to_string_lossy();
        if !text.starts_with('-') {
            return Ok(NumactlCommand { interleaved, words: rest.cloned().collect() });
        }
        rest.next();
        let nodes = match text.as_ref() {
            "--" => continue,
            "-l" | "--localalloc" => {
                interleaved = false;
                continue;
            }
            "-i" | "--interleave" => rest.next().map(|n| n.to_string_lossy().into_owned()),
            other => {
                let given = other.strip_prefix("--interleave=").or_else(|| other.strip_prefix("-i"));
                Some(given.ok_or_else(|| format!("numactl {other}"))?.to_owned())
            }
        };
        match nodes.as_deref() {
            Some("all") => interleaved = true,
            nodes => return Err(format!("numactl --interleave={}", nodes.unwrap_or(""))),
        }
    }
    Err("numactl without a program".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<(bool, String), String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let joined = |b: NumactlCommand| {
            let words: Vec<String> = b.words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
            (b.interleaved, words.join(" "))
        };
        parse(&words).map(joined)
    }

    #[test]
    fn interleaving_is_understood_in_each_spelling() {
        for line in [
            "-i all ./app -i 3",
            "-iall ./app -i 3",
            "--interleave=all -- ./app -i 3",
            "--interleave all ./app -i 3",
        ] {
            assert_eq!(of(line), Ok((true, "./app -i 3".into())), "{line}");
        }
        assert_eq!(of("--localalloc ./app"), Ok((false, "./app".into())));
    }

    #[test]
    fn what_cannot_be_simulated_is_named() {
        assert_eq!(of("--membind=0 ./app"), Err("numactl --membind=0".into()));
        assert_eq!(of("-i 0,1 ./app"), Err("numactl --interleave=0,1".into()));
        assert_eq!(of("-i all"), Err("numactl without a program".into()));
    }
}
