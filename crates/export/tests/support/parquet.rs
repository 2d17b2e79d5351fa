//! A reader of the Parquet files that this crate writes, as far as tests need one: written from the
//! format's specification, apart from the writer.

use std::collections::BTreeMap;

/// A value of Thrift's compact protocol.
#[derive(Clone, Debug)]
pub enum Thrift {
    Int(i64),
    Bytes(Vec<u8>),
    List(Vec<Thrift>),
    Struct(BTreeMap<i16, Thrift>),
}

impl Thrift {
    pub fn at(&self, id: i16) -> &Thrift {
        self.get(id).unwrap_or_else(|| panic!("no field {id} in {self:?}"))
    }
    pub fn get(&self, id: i16) -> Option<&Thrift> {
        match self {
            Self::Struct(fields) => fields.get(&id),
            other => panic!("{other:?} is no struct"),
        }
    }
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(n) => *n,
            other => panic!("{other:?} is no number"),
        }
    }
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(b) => b,
            other => panic!("{other:?} are no bytes"),
        }
    }
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
    pub fn list(&self) -> &[Thrift] {
        match self {
            Self::List(all) => all,
            other => panic!("{other:?} is no list"),
        }
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let byte = self.0[0];
        self.0 = &self.0[1..];
        byte
    }
    fn take(&mut self, n: usize) -> Vec<u8> {
        let taken = self.0[..n].to_vec();
        self.0 = &self.0[n..];
        taken
    }
    fn varint(&mut self) -> u64 {
        let (mut n, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            n |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return n;
            }
        }
    }
    fn zigzag(&mut self) -> i64 {
        let n = self.varint();
        (n >> 1) as i64 ^ -((n & 1) as i64)
    }
    fn value(&mut self, kind: u8) -> Thrift {
        match kind {
            1 | 2 => Thrift::Int(i64::from(kind == 1)),
            4..=6 => Thrift::Int(self.zigzag()),
            8 => {
                let length = self.varint() as usize;
                Thrift::Bytes(self.take(length))
            }
            9 => {
                let head = self.byte();
                let length = if head >> 4 == 15 { self.varint() as usize } else { usize::from(head >> 4) };
                Thrift::List((0..length).map(|_| self.value(head & 15)).collect())
            }
            12 => {
                let (mut fields, mut last) = (BTreeMap::new(), 0);
                loop {
                    let head = self.byte();
                    if head == 0 {
                        return Thrift::Struct(fields);
                    }
                    assert!(head >> 4 != 0, "long field numbers do not occur");
                    last += i16::from(head >> 4);
                    fields.insert(last, self.value(head & 15));
                }
            }
            other => panic!("type {other}"),
        }
    }
    /// `width` bits a value, in runs and groups of eight.
    fn hybrid(&mut self, width: u32, count: usize) -> Vec<u32> {
        let mut out = Vec::new();
        while out.len() < count {
            let head = self.varint();
            if head & 1 == 0 {
                let bytes = self.take(width.div_ceil(8) as usize);
                let value = bytes.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b));
                out.extend(std::iter::repeat_n(value, (head >> 1) as usize));
            } else {
                let groups = (head >> 1) as usize;
                let bytes = self.take(groups * width as usize);
                out.extend((0..groups * 8).map(|i| bits(&bytes, i * width as usize, width) as u32));
            }
        }
        // The last group may be padded.
        out.truncate(count);
        out
    }
    fn deltas(&mut self) -> Vec<i64> {
        let (block, minis, count) = (self.varint() as usize, self.varint() as usize, self.varint() as usize);
        let mut out = vec![self.zigzag()];
        while out.len() < count {
            let least = self.zigzag();
            let widths = self.take(minis);
            for width in widths {
                if out.len() >= count {
                    break;
                }
                let bytes = self.take(block / minis * usize::from(width) / 8);
                for i in 0..block / minis {
                    let step = bits(&bytes, i * usize::from(width), u32::from(width));
                    let next = out.last().unwrap().wrapping_add(least).wrapping_add(step as i64);
                    out.push(next);
                }
            }
        }
        out.truncate(count);
        out
    }
    fn text(&mut self) -> String {
        let length = u32::from_le_bytes(self.take(4).try_into().unwrap());
        String::from_utf8(self.take(length as usize)).unwrap()
    }
}

fn bits(bytes: &[u8], from: usize, width: u32) -> u64 {
    (0..width as usize).fold(0, |v, i| {
        let bit = from + i;
        v | u64::from(bytes[bit / 8] >> (bit % 8) & 1) << i
    })
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    Int(i64),
    Flag(bool),
    Text(String),
    List(Vec<Cell>),
}

/// A file: its footer and its columns by name.
pub struct File {
    pub footer: Thrift,
    pub columns: BTreeMap<String, Vec<Cell>>,
}

/// A column of the schema.
struct Leaf {
    name: String,
    optional: bool,
    list: bool,
}

fn leaves(schema: &[Thrift]) -> Vec<Leaf> {
    let mut all = Vec::new();
    let mut at = 1;
    while at < schema.len() {
        let list = schema[at].get(5).is_some();
        all.push(Leaf { name: schema[at].at(4).text(), optional: schema[at].at(3).int() == 1, list });
        at += if list { 3 } else { 1 };
    }
    all
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> File {
    let end = bytes.len();
    assert_eq!((&bytes[..4], &bytes[end - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
    let length = u32::from_le_bytes(bytes[end - 8..end - 4].try_into().unwrap()) as usize;
    let footer = Input(&bytes[end - 8 - length..end - 8]).value(12);
    let leaves = leaves(footer.at(2).list());
    let mut columns: BTreeMap<String, Vec<Cell>> = leaves.iter().map(|l| (l.name.clone(), vec![])).collect();
    for group in footer.at(4).list() {
        assert_eq!(group.at(1).list().len(), leaves.len());
        for (leaf, chunk) in leaves.iter().zip(group.at(1).list()) {
            let cells = column(bytes, leaf, chunk.at(3));
            assert_eq!(cells.len() as i64, group.at(3).int(), "{}", leaf.name);
            columns.get_mut(&leaf.name).unwrap().extend(cells);
        }
    }
    File { footer, columns }
}

fn column(bytes: &[u8], leaf: &Leaf, meta: &Thrift) -> Vec<Cell> {
    assert_eq!(meta.at(4).int(), 6, "zstd");
    let start = meta.get(11).map_or(meta.at(9).int(), Thrift::int) as usize;
    let mut input = Input(&bytes[start..start + meta.at(7).int() as usize]);
    let (mut dictionary, mut rows, mut values) = (Vec::new(), Vec::new(), 0);
    while !input.0.is_empty() {
        let header = input.value(12);
        let packed = input.take(header.at(3).int() as usize);
        let mut page = vec![0; header.at(2).int() as usize];
        let length = zstd_safe::decompress(&mut page[..], &packed).unwrap();
        assert_eq!(length, page.len());
        let mut body = Input(&page);
        if header.at(1).int() == 2 {
            let count = header.at(7).at(1).int();
            dictionary = (0..count).map(|_| Cell::Text(body.text())).collect();
            continue;
        }
        let data = header.at(5);
        let count = data.at(1).int() as usize;
        values += count;
        let most = u32::from(leaf.optional) + u32::from(leaf.list);
        let mut levels = |most: u32| {
            if most == 0 {
                return vec![0; count];
            }
            let length = u32::from_le_bytes(body.take(4).try_into().unwrap()) as usize;
            let bytes = body.take(length);
            let all = Input(&bytes).hybrid(u32::BITS - most.leading_zeros(), count);
            assert!(all.iter().all(|l| *l <= most));
            all
        };
        let repetitions = levels(u32::from(leaf.list));
        let definitions = levels(most);
        let present = definitions.iter().filter(|d| **d == most).count();
        let mut cells: Vec<Cell> = match (data.at(2).int(), meta.at(1).int()) {
            (5, 2) if present == 0 => vec![],
            (5, 2) => body.deltas().into_iter().map(Cell::Int).collect(),
            (0, 0) => (0..present).map(|i| Cell::Flag(body.0[i / 8] >> (i % 8) & 1 == 1)).collect(),
            (0, 6) => (0..present).map(|_| Cell::Text(body.text())).collect(),
            (8, 6) => {
                let width = u32::from(body.byte());
                body.hybrid(width, present).into_iter().map(|i| dictionary[i as usize].clone()).collect()
            }
            other => panic!("encoding {other:?}"),
        };
        assert_eq!(cells.len(), present, "{}", leaf.name);
        let mut cells = cells.drain(..);
        for (repetition, definition) in repetitions.into_iter().zip(definitions) {
            let value = (definition == most).then(|| cells.next().unwrap());
            match (leaf.list, value) {
                (false, value) => rows.push(value.unwrap_or(Cell::Null)),
                (true, None) if leaf.optional && definition == 0 => rows.push(Cell::Null),
                (true, None) => rows.push(Cell::List(vec![])),
                (true, Some(value)) => match rows.last_mut() {
                    Some(Cell::List(all)) if repetition == 1 => all.push(value),
                    _ => rows.push(Cell::List(vec![value])),
                },
            }
        }
    }
    assert_eq!(values as i64, meta.at(5).int());
    rows
}
