//! Reports changes of the program's large memory without waiting for the driver.
//!
//! An allocator of the program changes mappings while it holds its own locks. The thread that has
//! the driver may be waiting for such a lock, because functions of the C library allocate, too. So
//! a front end reports at once only if nobody has the driver. Otherwise the next thread that gets
//! the driver reports first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use homenode_runtime::driver::Driver;
use homenode_runtime::moving;
use homenode_runtime::watch::Origin;
use homenode_runtime::watch::objects::FRAMES;

/// What happened to an object.
pub enum Told {
    /// It came to life.
    Born {
        /// Where it begins.
        address: usize,
        /// Its length.
        bytes: usize,
        /// Who allocated it.
        frames: [u64; FRAMES],
    },
    /// The one that begins here is gone.
    Died(usize),
}

/// In the order in which it happened. Who holds it waits for nothing but glibc's heap.
static WAITING: Mutex<Vec<Told>> = Mutex::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// Keeps it for whoever has the driver next.
pub fn keep(told: Told) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.push(told);
    ANY.store(true, Ordering::Release);
}

/// Tells the driver all that waits.
#[inline]
pub fn tell_all(driver: &mut Driver) {
    moving::about_to_list();
    if ANY.load(Ordering::Acquire) {
        tell_those(driver);
    }
}

#[cold]
fn tell_those(driver: &mut Driver) {
    let all = {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        ANY.store(false, Ordering::Release);
        std::mem::take(&mut *waiting)
    };
    all.into_iter().for_each(|told| tell(driver, told));
}

/// Tells the driver.
pub fn tell(driver: &mut Driver, told: Told) {
    match told {
        Told::Born { address, bytes, frames } => driver.born(address, bytes, Origin::Allocated(frames)),
        Told::Died(address) => driver.dies(address),
    }
}
