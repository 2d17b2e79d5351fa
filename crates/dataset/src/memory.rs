//! A data set that was never written: what a simulation fills.

use std::collections::BTreeMap;

use crate::column::Chunk;
use crate::error::DatasetError;
use crate::file::ROWS;
use crate::schema::{RowSink, TableRow};

/// Chunks by table.
#[derive(Clone, Debug, Default)]
pub struct MemoryDataset {
    tables: BTreeMap<&'static str, Vec<Chunk>>,
}

impl MemoryDataset {
    /// The chunks of a table.
    pub fn chunks(&self, table: &str) -> &[Chunk] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }
}

impl RowSink for MemoryDataset {
    fn push<T: TableRow>(&mut self, row: &T) -> Result<(), DatasetError> {
        let chunks = self.tables.entry(T::NAME).or_default();
        if chunks.last().is_none_or(|c| c.rows() >= ROWS) {
            chunks.push(T::chunk());
        }
        if let Some(last) = chunks.last_mut() {
            row.put(last);
        }
        Ok(())
    }

    fn push_chunk<T: TableRow>(&mut self, chunk: &Chunk) -> Result<(), DatasetError> {
        self.tables.entry(T::NAME).or_default().push(chunk.clone());
        Ok(())
    }
}
