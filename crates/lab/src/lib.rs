//! The lab: a virtual machine with as many NUMA nodes as one likes, on which an unmodified
//! distribution kernel runs an unmodified program.
//!
//! | step | where |
//! |---|---|
//! | the machine: nodes, CPUs, memory, distances | [`machine`] |
//! | a kernel: found, fetched or named; its modules | [`kernel`] |
//! | the program and all it needs | [`carry`] |
//! | the disk on which that travels | [`disk`] |
//! | what the guest starts with | [`initramfs`], [`cpio`] |
//! | QEMU's command line | [`qemu`] |
//! | is KVM any good here | [`trial`] |
//! | the monitor: what it is told, what it found | [`monitor`] |
//! | what a run leaves: a data set | [`recording`] |
//! | running it all | [`run`], [`relay`], [`console`] |
//! | what host and guest say to each other | [`wire`] |
//! | files coming back | [`bring`] |
//! | the guest's side | [`guest`] |
//!
//! Everything works as an ordinary user: no mount, no network, no device but `/dev/kvm` where it is
//! any good.

#![forbid(unsafe_code)]

pub mod bring;
pub mod carry;
pub mod console;
pub mod cpio;
pub mod disk;
pub mod error;
pub mod guest;
pub mod initramfs;
pub mod kernel;
pub mod machine;
pub mod monitor;
pub mod qemu;
pub mod recording;
pub mod relay;
pub mod run;
pub mod scratch;
pub mod trial;
pub mod wire;

pub use error::{Error, Failure, Result};
