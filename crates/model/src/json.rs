//! How much memory a JSON text of a stranger's can take once it is read.
//!
//! A parser's memory is many times a hostile text: `[0,0,…` takes two bytes of text a value, and a
//! map of one entry takes the node of a tree. [`MemoryWeights::check`] counts what could become a
//! value before anything is parsed.

use core::fmt;

use crate::Bytes;

/// Bytes that values may take, whatever the allocator and growing lists add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryWeights {
    /// Of an object: what opens with a brace.
    pub object: u64,
    /// Of a list, and of a value in a list or object.
    pub value: u64,
}

impl MemoryWeights {
    /// Values of any shape, as `serde_json::Value`: a map of one entry takes a node of eleven.
    pub const ANY: Self = Self { object: 768, value: 128 };
    /// Values of types that are known before: records of numbers and texts.
    pub const TYPED: Self = Self { object: 320, value: 96 };

    /// Whether the values of `text`, and the text itself, fit `most` bytes of memory.
    ///
    /// # Errors
    /// They may not.
    pub fn check(self, text: &str, most: Bytes) -> Result<(), TooMuch> {
        if self.of(text) > most { Err(TooMuch(most)) } else { Ok(()) }
    }

    /// Bytes that the values of `text` may take, and the text itself. What stands in quotes is
    /// text.
    pub fn of(self, text: &str) -> Bytes {
        let (mut objects, mut values) = (0_u64, 1_u64);
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'{' => objects += 1,
                b'[' | b',' => values += 1,
                b'"' => {
                    while let Some(inside) = bytes.next() {
                        match inside {
                            b'"' => break,
                            b'\\' => drop(bytes.next()),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        let own = text.len() as u64;
        Bytes(own.saturating_add(objects.saturating_mul(self.object)).saturating_add(values * self.value))
    }
}

/// A text holds more than may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch(Bytes);

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it holds more values than fit {} MiB of memory", self.0.0 >> 20)
    }
}

impl core::error::Error for TooMuch {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_become_a_value_is_counted() {
        let w = MemoryWeights { object: 1000, value: 10 };
        for (text, objects, values) in [
            ("", 0, 1),
            ("7", 0, 1),
            ("[0,0,0]", 0, 4),
            ("{\"a\": 1, \"b\": [{}]}", 2, 3),
            ("\"[{,\\\",[\"", 0, 1),
            ("\"not closed [,{", 0, 1),
        ] {
            assert_eq!(w.of(text), Bytes(text.len() as u64 + 1000 * objects + 10 * values), "{text}");
        }
    }
}
