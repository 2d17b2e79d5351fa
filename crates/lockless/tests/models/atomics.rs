//! Loom's atomic types, with or without a plant.

/// What is planted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// Nothing.
    None,
    /// Every ordering is `Relaxed`, and there are no fences.
    Unordered,
    /// `SeqCst` loads and stores are acquire and release, and there are no fences.
    Unfenced,
    /// A read-modify-write operation is a load and a store.
    Torn,
}

impl Plant {
    /// The ordering that counts.
    pub fn order(self, asked: loom::sync::atomic::Ordering) -> loom::sync::atomic::Ordering {
        if self == Self::Unordered { loom::sync::atomic::Ordering::Relaxed } else { asked }
    }

    /// Whether there are fences.
    pub fn has_fences(self) -> bool {
        matches!(self, Self::None | Self::Torn)
    }
}

/// The product's atomic types, for one plant.
macro_rules! atomics {
    ($plant:expr) => {
        pub use loom::sync::atomic::Ordering;

        atomics! { $plant; AtomicU32 u32, AtomicU64 u64, AtomicUsize usize }

        pub fn fence(order: Ordering) {
            if $plant.has_fences() {
                loom::sync::atomic::fence(order);
            }
        }
    };
    ($plant:expr; $($atomic:ident $value:ident),*) => { $(
        #[derive(Debug)]
        pub struct $atomic(loom::sync::atomic::$atomic);

        impl $atomic {
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$atomic::new(value))
            }
            pub fn load(&self, order: Ordering) -> $value {
                if order == Ordering::SeqCst {
                    fence(order);
                }
                self.0.load($plant.order(order))
            }
            pub fn store(&self, value: $value, order: Ordering) {
                self.0.swap(value, $plant.order(order));
            }
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.torn(|_| value).unwrap_or_else(|| self.0.swap(value, $plant.order(order)))
            }
            pub fn fetch_add(&self, n: $value, order: Ordering) -> $value {
                self.torn(|old| old + n).unwrap_or_else(|| self.0.fetch_add(n, $plant.order(order)))
            }
            pub fn fetch_sub(&self, n: $value, order: Ordering) -> $value {
                self.torn(|old| old - n).unwrap_or_else(|| self.0.fetch_sub(n, $plant.order(order)))
            }
            pub fn fetch_max(&self, n: $value, order: Ordering) -> $value {
                self.torn(|old| old.max(n)).unwrap_or_else(|| self.0.fetch_max(n, $plant.order(order)))
            }
            pub fn fetch_or(&self, bits: $value, order: Ordering) -> $value {
                self.torn(|old| old | bits).unwrap_or_else(|| self.0.fetch_or(bits, $plant.order(order)))
            }
            pub fn fetch_and(&self, bits: $value, order: Ordering) -> $value {
                self.torn(|old| old & bits).unwrap_or_else(|| self.0.fetch_and(bits, $plant.order(order)))
            }
            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                if $plant == Plant::Torn {
                    let found = self.0.load(Ordering::Acquire);
                    if found != old {
                        return Err(found);
                    }
                    self.0.store(new, Ordering::Release);
                    return Ok(found);
                }
                self.0.compare_exchange(old, new, $plant.order(order), $plant.order(failed))
            }
            fn torn(&self, f: impl Fn($value) -> $value) -> Option<$value> {
                if $plant != Plant::Torn {
                    return None;
                }
                let old = self.0.load(Ordering::Acquire);
                self.0.store(f(old), Ordering::Release);
                Some(old)
            }
        }
    )* };
}
