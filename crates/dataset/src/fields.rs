//! The fields of an array's element, if the element is a structure: four columns with a list each.

use crate::column::{ColumnData, ColumnKind};
use crate::schema::{ColumnPart, Field, RowContradiction};

/// Fields of an element, in their order in memory. Empty if the element is no structure, and where
/// nobody knows its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<ElementField>);

/// A field of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementField {
    /// Its name.
    pub name: String,
    /// Its type as the source writes it.
    pub field_type: String,
    /// Bytes from the start of the structure.
    pub offset: u64,
    /// Its size; 0 where it is not known.
    pub bytes: u64,
}

impl Fields {
    /// Of name, type, offset and size of each field.
    pub fn of(all: impl IntoIterator<Item = (String, String, u64, u64)>) -> Self {
        let field = |(name, field_type, offset, bytes)| ElementField { name, field_type, offset, bytes };
        Self(all.into_iter().map(field).collect())
    }
}

impl Field for Fields {
    const PARTS: &'static [ColumnPart] = &[
        ColumnPart::named(
            "field_names",
            ColumnKind::Texts,
            true,
            "Fields of an element, in their order in memory. Null unless the element is a structure with known fields.",
            "",
        ),
        ColumnPart::named(
            "field_types",
            ColumnKind::Texts,
            true,
            "The type of each field as the source writes it.",
            "",
        ),
        ColumnPart::named(
            "field_offsets",
            ColumnKind::Ints,
            true,
            "Where each field begins, from the element's first byte.",
            "bytes",
        ),
        ColumnPart::named(
            "field_bytes",
            ColumnKind::Ints,
            true,
            "Size of each field; 0 where it is not known.",
            "bytes",
        ),
    ];

    fn put(&self, to: &mut [ColumnData]) {
        if self.0.is_empty() {
            to.iter_mut().for_each(ColumnData::push_none);
            return;
        }
        let texts =
            |of: fn(&ElementField) -> &String| self.0.iter().map(|f| of(f).clone()).collect::<Vec<_>>();
        to[0].push_texts(&texts(|f| &f.name));
        to[1].push_texts(&texts(|f| &f.field_type));
        to[2].push_ints(&self.0.iter().map(|f| f.offset).collect::<Vec<_>>());
        to[3].push_ints(&self.0.iter().map(|f| f.bytes).collect::<Vec<_>>());
    }

    fn take(from: &[ColumnData], row: usize) -> Result<Self, RowContradiction> {
        if from.iter().all(|column| !column.has(row)) {
            return Ok(Self::default());
        }
        let lists = (from[0].texts(row), from[1].texts(row), from[2].ints(row), from[3].ints(row));
        let (Some(names), Some(types), Some(offsets), Some(bytes)) = lists else {
            return Err(RowContradiction("some columns of its fields are missing"));
        };
        if [types.len(), offsets.len(), bytes.len()] != [names.len(); 3] {
            return Err(RowContradiction("its fields have not as many types, offsets and sizes as names"));
        }
        let all = names.into_iter().zip(types).zip(offsets.iter().zip(bytes));
        Ok(Self::of(all.map(|((name, of), (offset, bytes))| (name, of, *offset, *bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<ColumnData> {
        Fields::PARTS.iter().map(|part| ColumnData::new(part.kind)).collect()
    }

    fn field(name: &str, offset: u64) -> ElementField {
        ElementField { name: name.into(), field_type: "double".into(), offset, bytes: 8 }
    }

    #[test]
    fn fields_come_back_as_they_went_in_and_none_is_null() {
        let rows =
            [Fields(vec![field("x", 0), field("y", 8)]), Fields::default(), Fields(vec![field("z", 16)])];
        let mut to = columns();
        rows.iter().for_each(|row| row.put(&mut to));
        let back: Vec<_> = (0..3).map(|row| Fields::take(&to, row).unwrap()).collect();
        assert_eq!(back, rows);
        assert!(to.iter().all(|column| !column.has(1)));
    }

    #[test]
    fn lists_of_different_lengths_are_refused() {
        let mut to = columns();
        Fields(vec![field("x", 0), field("y", 8)]).put(&mut to);
        to[3] = ColumnData::new(ColumnKind::Ints);
        to[3].push_ints(&[8]);
        assert!(Fields::take(&to, 0).is_err());
        to[3] = ColumnData::new(ColumnKind::Ints);
        to[3].push_none();
        assert!(Fields::take(&to, 0).is_err());
    }
}
