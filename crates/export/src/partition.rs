//! Hive partitions: `host=H/job=J/rank=R`.
//!
//! A value may come from a stranger's recording. Everything but letters, digits, `-`, `_` and `.`
//! is written as `%XX`, as Hive does and as DuckDB and Polars read it.

use homenode_dataset::DatasetMeta;

/// What a recording is where it does not say its host.
const NO_HOST: &str = "local";
/// What it is where it does not say its job.
const NO_JOB: &str = "0";
/// Longest value, in bytes of the folder's name. File systems take 255 with the key.
const LONGEST: usize = 200;

/// A value as part of a folder's name.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let next = if plain { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        if out.len() + next.len() > LONGEST {
            break;
        }
        out += &next;
    }
    out
}

/// The partition of a recording, relative to its table: `host=n1/job=17/rank=3`.
pub fn of(meta: &DatasetMeta) -> String {
    let or = |value: &Option<String>, none: &str| {
        escaped(value.as_deref().filter(|v| !v.is_empty()).unwrap_or(none))
    };
    let (host, job) = (or(&meta.host, NO_HOST), or(&meta.job, NO_JOB));
    format!("host={host}/job={job}/rank={}", meta.rank.unwrap_or(0))
}

/// Whether `name` is a folder of a partition: with `key` 0 for the host, 1 for the job, 2 for the
/// rank.
pub(crate) fn is(name: &str, key: usize) -> bool {
    ["host=", "job=", "rank="].get(key).is_some_and(|k| name.starts_with(k))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_dataset::{Basis, RecordingKind};

    fn meta(host: Option<&str>, job: Option<&str>, rank: Option<u32>) -> DatasetMeta {
        let mut meta = DatasetMeta::new(RecordingKind::Run, Basis::Exact, vec![]);
        (meta.host, meta.job, meta.rank) = (host.map(Into::into), job.map(Into::into), rank);
        meta
    }

    #[test]
    fn what_is_not_said_has_a_value() {
        assert_eq!(of(&meta(None, None, None)), "host=local/job=0/rank=0");
        assert_eq!(of(&meta(Some("n1.site"), Some("17"), Some(3))), "host=n1.site/job=17/rank=3");
    }

    #[test]
    fn no_value_leaves_its_folder() {
        let of = |host: &str| of(&meta(Some(host), None, None));
        assert_eq!(of("../../etc"), "host=..%2F..%2Fetc/job=0/rank=0");
        assert_eq!(of("a=b c\u{0}%"), "host=a%3Db%20c%00%25/job=0/rank=0");
        assert_eq!(of(""), "host=local/job=0/rank=0");
        assert!(of(&"é".repeat(4000)).len() < 255);
    }
}
