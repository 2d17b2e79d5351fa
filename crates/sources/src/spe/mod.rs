//! What Arm's Statistical Profiling Extension writes: packets, which make records, which make
//! samples.
//!
//! | what | where |
//! |---|---|
//! | one packet from bytes | [`packet`] |
//! | a record from packets, and what to do where the bytes are none | [`record`] |
//! | a sample from a record: address, load or store, where the data came from | [`access`] |
//!
//! The processor picks one operation in so many, follows it, and writes what became of it to a
//! buffer by itself; the kernel tells which stretch of the buffer was written while which thread
//! ran ([`crate::traces`]). The packets are those of the Arm Architecture Reference Manual for
//! A-profile (DDI 0487), chapter *Statistical Profiling Extension Sample Record Specification*.

pub mod access;
pub mod packet;
pub mod record;

pub use access::Model;
pub use packet::Packet;
pub use record::{Decoder, Record};
