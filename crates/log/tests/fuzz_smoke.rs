//! Hostile logs: what `fuzz/` does for hours, here for a second and always with the same mutations.

use std::path::Path;

/// The fuzzer's own body and its way to make damaged chunks pass the CRC.
#[path = "../../../fuzz/fuzz_targets/read.rs"]
mod read;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

/// One of the things that happen to files, or that somebody might do to them.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.below(bytes.len());
    let len = rng.below(40).min(bytes.len() - at);
    match rng.below(8) {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 31, 30, 0x60][rng.below(8)],
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..at + len)),
        4 => {
            let again = bytes[at..at + len].to_vec();
            bytes.splice(at..at, again);
        }
        5 => {
            let from = rng.below(other.len());
            let piece = &other[from..(from + 200).min(other.len())];
            bytes.splice(at..at + len.min(piece.len()), piece.iter().copied());
        }
        6 => bytes[at..at + len].fill(0xff),
        _ if bytes.len() >= at + 4 => {
            let value = [0, 1, u32::MAX, 1 << 31, 0xffff][rng.below(5)];
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        _ => {}
    }
}

fn smoke(rounds: u64) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/logs/v1");
    let mut logs = Vec::new();
    for name in ["locks", "sor", "unfiltered"] {
        for thread in ["00000", "00001"] {
            logs.push(std::fs::read(fixtures.join(name).join(format!("{thread}.hnlog"))).unwrap());
        }
    }
    for log in &logs {
        assert!(read::log(log) > 20, "a fixture is read");
        assert_eq!(read::log(&read::repaired(log)), read::log(log), "repairing changes no sound log");
    }
    let (mut changed, mut deep) = (0, 0);
    for round in 0..rounds {
        let mut rng = Rng(0x9e37_79b9_7f4a_7c15 ^ (round + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (which, other) = (rng.below(logs.len()), rng.below(logs.len()));
        // Half of the mutations go below the compression, or nothing but the decompressor would
        // ever see them.
        let below = rng.below(2) == 0;
        let mut bytes = if below { read::unpacked(&logs[which]) } else { logs[which].clone() };
        for _ in 0..1 + rng.below(4) {
            if !bytes.is_empty() {
                mutate(&mut bytes, &logs[other], &mut rng);
            }
        }
        let bytes = if below { read::packed(&bytes) } else { read::repaired(&bytes) };
        let records = read::log(&bytes);
        changed += u64::from(bytes != logs[which]);
        deep += u64::from(records > 0 && bytes != logs[which]);
    }
    println!("{rounds} logs, {changed} of them damaged, {deep} of these partly readable");
    assert!(deep > rounds / 8, "the mutations reach the records");
}

#[test]
fn mutated_logs_are_refused_or_read() {
    smoke(4000);
}

#[test]
#[ignore = "long: make test-long"]
fn many_mutated_logs_are_refused_or_read() {
    smoke(400_000);
}
