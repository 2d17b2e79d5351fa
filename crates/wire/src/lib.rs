//! What homenode's processes say to each other, as types with one encoding.
//!
//! | conversation | types |
//! |---|---|
//! | launcher → library in the program: what to do | [`settings`], [`plan`] |
//! | launcher ⇄ library: which thread executed which iterations | [`schedule`] |
//! | library → launcher: what happened, once, at the end | [`facts`] |
//! | library → launcher: what happens, while the program runs | [`live`] |
//! | host ⇄ guest of the lab | [`lab`] |
//! | launcher ⇄ QEMU's plug-in | [`monitor`] |
//!
//! Every message is a frame ([`frame`]): magic, kind, version, length, checksum, and a payload that
//! postcard encodes from the type. [`encode`] and [`decode`] are the only way in and out. The crate
//! starts no thread and opens no file, because it is loaded into foreign programs.
//!
//! # Hostile input
//!
//! A reader checks the frame's length against the bound of its kind before it allocates. Each list
//! and each text inside has a bound of its own ([`bounded`]). Damage and unknown versions are an
//! [`Error`] that names the kind and the offset.

#![forbid(unsafe_code)]

pub mod bounded;
pub mod facts;
pub mod frame;
pub mod lab;
pub mod live;
pub mod monitor;
pub mod plan;
pub mod schedule;
pub mod settings;

pub use frame::{Conversation, Error, FrameFault, Message, decode, decode_word, encode, encode_word, read};
