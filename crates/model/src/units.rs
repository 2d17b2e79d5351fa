//! Units as types. Arithmetic saturates: a modelled clock that overflows is wrong, one that wraps
//! is dangerous.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident, $suffix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Nothing of it.
            pub const ZERO: Self = Self(0);
            /// The largest value; saturated sums stop here.
            pub const MAX: Self = Self(u64::MAX);

            /// `self * n`, saturating.
            #[inline]
            pub const fn times(self, n: u64) -> Self {
                Self(self.0.saturating_mul(n))
            }
        }
        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, o: Self) -> Self {
                Self(self.0.saturating_add(o.0))
            }
        }
        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, o: Self) {
                *self = *self + o;
            }
        }
        impl Sub for $name {
            type Output = Self;
            /// Zero where it would be negative.
            #[inline]
            fn sub(self, o: Self) -> Self {
                Self(self.0.saturating_sub(o.0))
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(it: I) -> Self {
                it.fold(Self::ZERO, Add::add)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{} ", $suffix), self.0)
            }
        }
    };
}

unit!(
    /// Nanoseconds.
    Ns, "ns"
);
unit!(
    /// Picoseconds: the simulator's clock, so that a fraction of a nanosecond an access is an
    /// integer.
    Ps, "ps"
);
unit!(
    /// Bytes.
    Bytes, "B"
);
unit!(
    /// Bandwidth in 10^6 bytes per second.
    MbPerS, "MB/s"
);
unit!(
    /// The recorder's clock: accesses executed by a thread, hits in the filter included.
    Ticks, "accesses"
);

impl Ns {
    /// As picoseconds.
    #[inline]
    pub const fn ps(self) -> Ps {
        Ps(self.0.saturating_mul(1000))
    }
}

impl Ps {
    /// As whole nanoseconds, rounded down.
    #[inline]
    pub const fn ns(self) -> Ns {
        Ns(self.0 / 1000)
    }
    /// As seconds, for printing only.
    #[inline]
    pub fn secs(self) -> f64 {
        self.0 as f64 * 1e-12
    }
}

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

impl MbPerS {
    /// How long `bytes` occupy something of this bandwidth; nothing at all when the bandwidth is
    /// not limited (0).
    #[inline]
    pub const fn occupancy(self, bytes: Bytes) -> Ps {
        if self.0 == 0 {
            return Ps::ZERO;
        }
        // bytes / (MB/s · 10^6) s = bytes · 10^6 / (MB/s) ps
        Ps(bytes.0.saturating_mul(1_000_000) / self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_at_2_4_gb_per_s_takes_26_666_ps() {
        assert_eq!(MbPerS(2400).occupancy(Bytes(64)), Ps(26_666));
    }

    #[test]
    fn unlimited_bandwidth_costs_nothing() {
        assert_eq!(MbPerS(0).occupancy(Bytes::gib(1)), Ps::ZERO);
    }

    #[test]
    fn sums_saturate_and_differences_stop_at_zero() {
        assert_eq!(Ns::MAX + Ns(1), Ns::MAX);
        assert_eq!(Ns(1) - Ns(2), Ns::ZERO);
    }
}
