//! The lab: a virtual machine with as many NUMA nodes as one likes, on which an unmodified
//! distribution kernel runs an unmodified program.
//!
//! | step | module |
//! |---|---|
//! | The machine: nodes, CPUs, memory, distances | [`machine`] |
//! | The kernel: found, fetched or named; its modules | [`kernel`] |
//! | The program and all it needs | [`carry`] |
//! | The disk with the program | [`disk`] |
//! | The kernel's first file system | [`initramfs`], [`cpio`] |
//! | QEMU's command line | [`qemu`] |
//! | Whether KVM works here | [`trial`] |
//! | The monitor: its settings and its results | [`monitor`] |
//! | The recording of a run: a data set | [`recording`] |
//! | Running it all | [`run`], [`relay`], [`console`] |
//! | Messages between host and guest | [`wire`] |
//! | Copying files back | [`bring`] |
//! | The guest's side | [`guest`] |
//!
//! Everything works as an ordinary user: no mount, no network, and no device but `/dev/kvm`, if
//! that works.

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
pub mod trial;
pub mod wire;

pub use error::{Error, FailureKind, Result};
