//! A file: row groups, then the footer.

use std::io::{self, Write};

use homenode_dataset::column::{Chunk, ColumnKind};
use homenode_dataset::schema::ColumnInfo;

use super::column::{ChunkInfo, ColumnWriter, format};
use super::compact::Struct;
use super::pack::Packer;

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group.
const GROUP_ROWS: u64 = 1 << 20;
/// Bytes that wait for a row group's end at most, about.
const GROUP_BYTES: usize = 64 << 20;

struct Group {
    columns: Vec<ChunkInfo>,
    rows: u64,
}

/// What a file became.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenFile {
    /// Its rows.
    pub rows: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Numbers above 2⁶³−1, which SQL's integers cannot hold: they are written as 2⁶³−1.
    pub clipped: u64,
}

/// Writes a Parquet file. It holds one row group in memory.
pub struct FileWriter<W> {
    to: W,
    offset: u64,
    columns: Vec<ColumnInfo>,
    writers: Vec<ColumnWriter>,
    groups: Vec<Group>,
    /// Rows of the row group that is being written.
    rows: u64,
    packer: Packer,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file with these columns.
    ///
    /// # Errors
    /// What the system said.
    pub fn new(mut to: W, columns: &[ColumnInfo]) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        Ok(Self {
            to,
            offset: MAGIC.len() as u64,
            columns: columns.to_vec(),
            writers: columns.iter().map(ColumnWriter::new).collect(),
            groups: Vec::new(),
            rows: 0,
            packer: Packer::new()?,
        })
    }

    /// Adds the rows of a chunk, which has the file's columns.
    ///
    /// # Errors
    /// What the system said.
    pub fn add(&mut self, chunk: &Chunk) -> io::Result<()> {
        for (writer, column) in self.writers.iter_mut().zip(&chunk.columns) {
            writer.add(column, &mut self.packer)?;
        }
        self.rows += chunk.rows() as u64;
        let waits: usize = self.writers.iter().map(ColumnWriter::waits).sum();
        if self.rows >= GROUP_ROWS || waits >= GROUP_BYTES {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut columns = Vec::new();
        for writer in &mut self.writers {
            let info = writer.finish(&mut self.to, self.offset, &mut self.packer)?;
            self.offset += info.stored as u64;
            columns.push(info);
        }
        self.groups.push(Group { columns, rows: std::mem::take(&mut self.rows) });
        Ok(())
    }

    /// Ends the file; `about` becomes its key-value metadata.
    ///
    /// # Errors
    /// What the system said.
    pub fn finish(mut self, about: &[(String, String)]) -> io::Result<WrittenFile> {
        self.end_group()?;
        let mut footer = Vec::new();
        self.footer(&mut footer, about);
        let length = (footer.len() as u32).to_le_bytes();
        footer.extend_from_slice(&length);
        footer.extend_from_slice(MAGIC);
        self.to.write_all(&footer)?;
        self.to.flush()?;
        Ok(WrittenFile {
            rows: self.groups.iter().map(|g| g.rows).sum(),
            bytes: self.offset + footer.len() as u64,
            clipped: self.writers.iter().map(ColumnWriter::clipped).sum(),
        })
    }

    fn footer(&self, out: &mut Vec<u8>, about: &[(String, String)]) {
        let leaves: Vec<Leaf> = self.columns.iter().map(Leaf::of).collect();
        let mut schema = vec![Element::Root(self.columns.len())];
        self.columns.iter().zip(&leaves).for_each(|(c, leaf)| leaf.elements(c, &mut schema));
        Struct::write(out, |file| {
            file.i32(1, 2);
            file.structs(2, &schema, |s, element| element.write(s));
            file.i64(3, self.groups.iter().map(|g| g.rows as i64).sum());
            file.structs(4, &self.groups, |g, group| {
                g.structs(1, &group.columns, |c, info| {
                    let at = group.columns.iter().position(|i| std::ptr::eq(i, info)).unwrap_or(0);
                    column_chunk(c, info, &leaves[at]);
                });
                g.i64(2, group.columns.iter().map(|c| c.full).sum());
                g.i64(3, group.rows as i64);
                let first = group.columns.first().map_or(0, |c| c.dictionary.unwrap_or(c.data));
                g.i64(5, first);
                g.i64(6, group.columns.iter().map(|c| c.stored).sum());
            });
            file.structs(5, about, |kv, (key, value)| {
                kv.text(1, key);
                kv.text(2, value);
            });
            file.text(6, concat!("homenode version ", env!("CARGO_PKG_VERSION")));
            // Bounds are in the order of the type.
            file.structs(7, &leaves, |order, _| order.inner(1, |_| {}));
        });
    }
}

fn column_chunk(c: &mut Struct, info: &ChunkInfo, leaf: &Leaf) {
    c.i64(2, 0);
    c.inner(3, |m| {
        m.i32(1, leaf.kind);
        m.i32s(2, &info.encodings);
        m.texts(3, &leaf.path);
        m.i32(4, format::ZSTD);
        m.i64(5, info.values);
        m.i64(6, info.full);
        m.i64(7, info.stored);
        m.i64(9, info.data);
        if let Some(at) = info.dictionary {
            m.i64(11, at);
        }
        m.inner(12, |s| {
            s.i64(3, info.nulls);
            if let Some((least, most)) = info.bounds {
                s.binary(5, &most.to_le_bytes());
                s.binary(6, &least.to_le_bytes());
            }
        });
    });
}

/// What holds a column's values.
struct Leaf {
    path: Vec<&'static str>,
    kind: i32,
    text: bool,
}

impl Leaf {
    fn of(column: &ColumnInfo) -> Self {
        let list = matches!(column.kind, ColumnKind::Ints | ColumnKind::Texts);
        let path = if list { vec![column.name, "list", "element"] } else { vec![column.name] };
        let (kind, text) = match column.kind {
            ColumnKind::Int | ColumnKind::Ints => (format::INT64, false),
            ColumnKind::Flag => (format::BOOLEAN, false),
            ColumnKind::Word(_) | ColumnKind::Text | ColumnKind::Texts => (format::BYTE_ARRAY, true),
        };
        Self { path, kind, text }
    }

    fn elements(&self, column: &ColumnInfo, all: &mut Vec<Element>) {
        let value = |name, optional| Element::Value { name, optional, kind: self.kind, text: self.text };
        match self.path.len() {
            1 => all.push(value(column.name, column.optional)),
            _ => all.extend([
                Element::List { name: column.name, optional: column.optional },
                Element::Repeated,
                value("element", false),
            ]),
        }
    }
}

/// A node of the schema's tree, in its order.
enum Element {
    Root(usize),
    Value { name: &'static str, optional: bool, kind: i32, text: bool },
    List { name: &'static str, optional: bool },
    Repeated,
}

impl Element {
    fn write(&self, s: &mut Struct) {
        match *self {
            Self::Root(columns) => {
                s.text(4, "homenode");
                s.i32(5, columns as i32);
            }
            Self::Value { name, optional, kind, text } => {
                s.i32(1, kind);
                s.i32(3, i32::from(optional));
                s.text(4, name);
                if text {
                    s.i32(6, 0);
                    s.inner(10, |logical| logical.inner(1, |_| {}));
                }
            }
            Self::List { name, optional } => {
                s.i32(3, i32::from(optional));
                s.text(4, name);
                s.i32(5, 1);
                s.i32(6, 3);
                s.inner(10, |logical| logical.inner(3, |_| {}));
            }
            Self::Repeated => {
                s.i32(3, 2);
                s.text(4, "list");
                s.i32(5, 1);
            }
        }
    }
}
