//! The output of Arm's Statistical Profiling Extension: packets make records, and records make
//! samples.
//!
//! | step | module |
//! |---|---|
//! | One packet from bytes | [`packet`] |
//! | A record from packets, and what to do with damaged bytes | [`record`] |
//! | A sample from a record: address, load or store, where the data came from | [`access`] |
//!
//! The processor picks one operation in a period, follows it, and writes its course to a buffer by
//! itself. The kernel reports which stretch of the buffer was written while which thread ran
//! ([`crate::traces`]). The packets are those of the Arm Architecture Reference Manual for
//! A-profile (DDI 0487), chapter *Statistical Profiling Extension Sample Record Specification*.

pub mod access;
pub mod packet;
pub mod record;

pub use access::ProcessorModel;
pub use packet::Packet;
pub use record::{Decoder, SpeRecord};
