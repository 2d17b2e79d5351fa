//! What happens to texts, or what somebody might do to them: the same mutations for each seed. The
//! tests of formats that are text include this file.

/// Pseudo-random numbers by xorshift.
pub struct Rng(pub u64);

impl Rng {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

/// What stands in place of a piece of text.
const HOSTILE: &[&str] = &[
    "18446744073709551615",
    "-1",
    "1e999",
    "0",
    "null",
    "\"\"",
    "[]",
    "{}",
    "\"\\u001b]0;x\\u0007\"",
    "\"\\u202e\"",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "\u{1b}[31m",
    "\u{0}",
    "true",
    "9999999999999999999999999999",
];

/// The text with one to three changes: a bit, a truncation, a gap, a repeated piece, a piece of
/// `other`, or a hostile value in the place of a word.
pub fn mutated(text: &str, other: &str, rng: &mut Rng) -> Vec<u8> {
    mutated_bytes(text.as_bytes(), other.as_bytes(), rng)
}

/// The same for a file that is no text.
pub fn mutated_bytes(of: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = of.to_vec();
    for _ in 0..=rng.below(3) {
        let at = rng.below(bytes.len());
        let end = (at + rng.below(40)).min(bytes.len());
        match rng.below(7) {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            1 if rng.below(4) == 0 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                let from = rng.below(other.len());
                let piece = &other[from..(from + 100).min(other.len())];
                bytes.splice(at..end, piece.iter().copied());
            }
            _ => {
                // From the next word to its end.
                let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'"' | b'_');
                let start = bytes[at..].iter().position(is_word).map_or(bytes.len(), |n| at + n);
                let length = bytes[start..].iter().position(|b| !is_word(b)).unwrap_or(bytes.len() - start);
                let value = HOSTILE[rng.below(HOSTILE.len())];
                bytes.splice(start..start + length, value.bytes());
            }
        }
    }
    bytes
}
