//! Ids and units as numbers of a serialised answer. The field's name says the unit.

use homenode_dataset::Missing;
use homenode_dataset::tables::{IntervalNo, IterationSource, MigrationCause, ObjectKind};
use homenode_model::{Bytes, NodeId, Ns, ObjectId, Ps, ThreadId};
use serde::Serializer;

/// A value that is one number.
pub trait Number {
    /// The number.
    fn number(&self) -> u64;
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl Number for $type {
            fn number(&self) -> u64 {
                u64::from(self.0)
            }
        }
    )* };
}

numbers!(NodeId ThreadId ObjectId IntervalNo Ns Ps Bytes);

/// A value that is one word.
pub trait OneWord {
    /// The word.
    fn word(&self) -> &'static str;
}

macro_rules! words {
    ($($type:ty)*) => { $(
        impl OneWord for $type {
            fn word(&self) -> &'static str {
                self.as_str()
            }
        }
    )* };
}

words!(ObjectKind MigrationCause IterationSource);

pub fn number<T: Number, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(value.number())
}

pub fn number_or_null<T: Number, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.serialize_some(&value.number()),
        None => s.serialize_none(),
    }
}

pub fn numbers<T: Number, S: Serializer>(values: &[T], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(values.iter().map(Number::number))
}

pub fn word<T: OneWord, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(value.word())
}

/// What is missing, a sentence each.
pub fn sentences<S: Serializer>(missing: &[Missing], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(missing.iter().map(ToString::to_string))
}
