//! One small number a cell, packed for the page: runs of equal values, in base64.

use serde::{Serialize, Serializer};

/// One number a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plane {
    /// Runs: how many cells, of which value.
    runs: Vec<(u32, u32)>,
}

impl Plane {
    /// Adds a cell.
    pub fn push(&mut self, value: u32) {
        match self.runs.last_mut() {
            Some((n, last)) if *last == value && *n < u32::MAX => *n += 1,
            _ => self.runs.push((1, value)),
        }
    }

    /// All cells.
    pub fn values(&self) -> Vec<u32> {
        self.runs.iter().flat_map(|(n, v)| std::iter::repeat_n(*v, *n as usize)).collect()
    }

    /// Length and value of each run, seven bits a byte, the lowest first.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for mut n in self.runs.iter().flat_map(|(n, v)| [*n, *v]) {
            while n >= 0x80 {
                out.push(n as u8 | 0x80);
                n >>= 7;
            }
            out.push(n as u8);
        }
        out
    }
}

impl Serialize for Plane {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&base64(&self.bytes()))
    }
}

/// Base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= three.len() { letter.into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let of = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|t| base64(t.as_bytes()));
        assert_eq!(of, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn a_plane_packs_runs() {
        let mut plane = Plane::default();
        (0..200).for_each(|_| plane.push(300));
        plane.push(1);
        assert_eq!(plane.values().len(), 201);
        assert_eq!(plane.bytes(), [200, 1, 172, 2, 1, 1], "200 of 300, 1 of 1");
        assert_eq!(serde_json::to_string(&plane).unwrap(), "\"yAGsAgEB\"");
    }
}
