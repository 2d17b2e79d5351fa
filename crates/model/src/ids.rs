//! Ids as types, so that one kind is never passed for another.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The id as an index into a dense table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A NUMA node: memory, CPUs, or both. Dense from 0 within a [`crate::Topology`].
    NodeId(u16), "node "
);
id!(
    /// A CPU (hardware thread). Dense from 0 within a [`crate::Topology`], not the kernel's number.
    CpuId(u32), "cpu "
);
id!(
    /// A thread of the program in the order in which it first appears in its recording; 0 is the
    /// initial thread.
    ThreadId(u32), "thread "
);
id!(
    /// An object: a variable, or all allocations made at one place.
    ObjectId(u32), "object "
);
id!(
    /// A page number: canonical address divided by the page size in force.
    PageNo(u64), "page "
);
id!(
    /// A cache-line number: address divided by [`LineNo::BYTES`].
    LineNo(u64), "line "
);

impl LineNo {
    /// log2 of the recorder's line size.
    pub const SHIFT: u32 = 6;
    /// The recorder's line size in bytes. Machines with longer lines group these.
    pub const BYTES: u64 = 1 << Self::SHIFT;
}
