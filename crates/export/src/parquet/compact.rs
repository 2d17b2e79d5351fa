//! Thrift's compact protocol, as far as Parquet's page headers and footer need it.
//!
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// Types of fields and of a list's elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Adds a number of seven bits a byte.
pub fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Small magnitudes first.
pub const fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// Writes one struct. Fields come in the order of their numbers.
pub struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

impl Struct<'_> {
    /// Adds a struct with the fields that `fill` adds.
    pub fn write(out: &mut Vec<u8>, fill: impl FnOnce(&mut Struct)) {
        fill(&mut Struct { out, last: 0 });
        out.push(0);
    }

    fn field(&mut self, id: i16, kind: u8) {
        // All numbers of fields here are less than 15 apart.
        debug_assert!((1..=15).contains(&(id - self.last)), "field {id} behind {}", self.last);
        self.out.push(((id - self.last) as u8) << 4 | kind);
        self.last = id;
    }

    pub fn i32(&mut self, id: i16, value: i32) {
        self.field(id, I32);
        varint(self.out, zigzag(i64::from(value)));
    }

    pub fn i64(&mut self, id: i16, value: i64) {
        self.field(id, I64);
        varint(self.out, zigzag(value));
    }

    pub fn binary(&mut self, id: i16, value: &[u8]) {
        self.field(id, BINARY);
        binary(self.out, value);
    }

    pub fn text(&mut self, id: i16, value: &str) {
        self.binary(id, value.as_bytes());
    }

    pub fn inner(&mut self, id: i16, fill: impl FnOnce(&mut Struct)) {
        self.field(id, STRUCT);
        Struct::write(self.out, fill);
    }

    fn list(&mut self, id: i16, kind: u8, len: usize) {
        self.field(id, LIST);
        if len < 15 {
            self.out.push((len as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(self.out, len as u64);
        }
    }

    pub fn i32s(&mut self, id: i16, values: &[i32]) {
        self.list(id, I32, values.len());
        values.iter().for_each(|v| varint(self.out, zigzag(i64::from(*v))));
    }

    pub fn texts(&mut self, id: i16, values: &[&str]) {
        self.list(id, BINARY, values.len());
        values.iter().for_each(|v| binary(self.out, v.as_bytes()));
    }

    pub fn structs<T>(&mut self, id: i16, values: &[T], mut fill: impl FnMut(&mut Struct, &T)) {
        self.list(id, STRUCT, values.len());
        values.iter().for_each(|v| Struct::write(self.out, |s| fill(s, v)));
    }
}

fn binary(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
