//! Values as bytes.
//!
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>

use super::compact::{varint, zigzag};

/// Values of a block of [`delta`]; each has four miniblocks.
const BLOCK: usize = 128;
const MINI: usize = 32;

/// Bits that a value up to `most` needs.
pub const fn width(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// Adds values of `width` bits each, the lowest bit first.
fn packed(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    if width == 0 {
        return;
    }
    let (mut word, mut bits) = (0_u64, 0_u32);
    for v in values {
        word |= v << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            bits -= 64;
            // What of the value did not fit.
            word = if bits == 0 { 0 } else { v >> (width - bits) };
        }
    }
    let rest = bits.div_ceil(8) as usize;
    out.extend_from_slice(&word.to_le_bytes()[..rest]);
}

/// `DELTA_BINARY_PACKED`: differences, in blocks of as few bits as their spread needs.
pub fn delta(out: &mut Vec<u8>, values: &[i64]) {
    varint(out, BLOCK as u64);
    varint(out, (BLOCK / MINI) as u64);
    varint(out, values.len() as u64);
    varint(out, zigzag(values.first().copied().unwrap_or(0)));
    let mut steps = [0_i64; BLOCK];
    let mut before = values.first().copied().unwrap_or(0);
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        for (step, value) in steps.iter_mut().zip(block) {
            *step = value.wrapping_sub(before);
            before = *value;
        }
        let used = &steps[..block.len()];
        let least = used.iter().copied().min().unwrap_or(0);
        varint(out, zigzag(least));
        let above = |step: &i64| step.wrapping_sub(least) as u64;
        let at = out.len();
        out.extend_from_slice(&[0; BLOCK / MINI]);
        for (i, mini) in used.chunks(MINI).enumerate() {
            let width = width(mini.iter().map(above).fold(0, |all, v| all | v));
            out[at + i] = width as u8;
            let padding = std::iter::repeat_n(0, MINI - mini.len());
            packed(out, mini.iter().map(above).chain(padding), width);
        }
    }
}

/// `RLE`: runs of equal values, and values of `width` bits in groups of eight between them.
pub fn runs(out: &mut Vec<u8>, values: &[u32], width: u32) {
    let literal = |out: &mut Vec<u8>, values: &[u32]| {
        if !values.is_empty() {
            let groups = values.len().div_ceil(8);
            varint(out, (groups as u64) << 1 | 1);
            let padding = std::iter::repeat_n(0, groups * 8 - values.len());
            packed(out, values.iter().map(|v| u64::from(*v)).chain(padding), width);
        }
    };
    let (mut start, mut at) = (0, 0);
    while let Some(value) = values.get(at) {
        let run = values[at..].iter().take_while(|v| *v == value).count();
        // Only the last group of a literal may be padded.
        let fill = (at - start).next_multiple_of(8) - (at - start);
        if run >= fill + 8 {
            literal(out, &values[start..at + fill]);
            varint(out, ((run - fill) as u64) << 1);
            out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
            start = at + run;
        }
        at += run;
    }
    literal(out, &values[start..]);
}

/// `PLAIN` booleans: a bit each.
pub fn bits(out: &mut Vec<u8>, values: &[bool]) {
    packed(out, values.iter().map(|v| u64::from(*v)), 1);
}

/// A `PLAIN` text: its length, then its bytes.
pub fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_those_of_the_formats_examples() {
        // The specification's example 2: 7, 5, 3, 1, 2, 3, 4, 5 in blocks of 8. Ours are of 128.
        let mut out = Vec::new();
        delta(&mut out, &[7, 5, 3, 1, 2, 3, 4, 5]);
        // 128, 4, 8 values, first 7; least -2; widths; six bytes of differences above the least.
        assert_eq!(out[..6], [0x80, 1, 4, 8, 14, 3]);
        assert_eq!(out[6..10], [2, 0, 0, 0]);
        // -2 -2 -2 1 1 1 1 above -2: 0 0 0 3 3 3 3, two bits each, the lowest first.
        assert_eq!(out[10..], [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn runs_are_those_of_the_formats_examples() {
        let mut out = Vec::new();
        runs(&mut out, &[0, 1, 2, 3, 4, 5, 6, 7], 3);
        assert_eq!(out, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010], "the specification's example");
        out.clear();
        runs(&mut out, &[4; 100], 3);
        assert_eq!(out, [200, 1, 4], "a run of 100");
        out.clear();
        runs(&mut out, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1);
        assert_eq!(out, [0b11, 1, 9 << 1, 0], "a group of eight, then a run of nine");
    }

    #[test]
    fn widths() {
        assert_eq!([0, 1, 2, 255, 256, u64::MAX].map(width), [0, 1, 2, 8, 9, 64]);
    }
}
