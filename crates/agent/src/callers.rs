//! Finds the OpenMP runtime that a call is meant for.
//!
//! Python packages bring private copies of libgomp, under mangled names and loaded `RTLD_LOCAL`; a
//! process may hold several. If a call is forwarded to another copy than the caller's, results are
//! silently wrong. So this module looks the copy up as the loader would for the calling object:
//! first in the global scope, then among the object's own dependencies. It keeps the answer by
//! object, so that all calls of an object go to one copy, and by call site, so that a call costs
//! one look-up in a table.

use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use homenode_hooks::loaded;
use homenode_runtime::moving::Span;

use crate::next::next;

/// The target of an object's calls of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The function.
    pub function: usize,
    /// Whether it belongs to LLVM's libomp, which exports libgomp's names and reports its regions
    /// by OMPT.
    pub libomp: bool,
}

const PLACES: usize = 1 << 13;
const PROBES: usize = 16;

struct Place {
    /// Call site and entry point, mixed; 0 if the place is free.
    key: AtomicUsize,
    /// The function. Functions may be unaligned, so the lowest bit cannot say whether it is
    /// libomp's; that is kept apart.
    function: AtomicUsize,
    libomp: AtomicUsize,
}

static PLACE: [Place; PLACES] = [const {
    Place { key: AtomicUsize::new(0), function: AtomicUsize::new(0), libomp: AtomicUsize::new(0) }
}; PLACES];

fn key(caller: usize, entry: usize) -> usize {
    caller.wrapping_mul(256).wrapping_add(entry + 1)
}

fn caller_of(key: usize) -> usize {
    (key - 1) / 256
}

/// The target of the call at `caller` of entry point number `entry`, named `name`.
#[inline]
pub fn target(caller: usize, entry: usize, name: &CStr) -> Option<Target> {
    let key = key(caller, entry);
    let first = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 51;
    for i in 0..PROBES {
        let place = &PLACE[(first + i) % PLACES];
        match place.key.load(Ordering::Acquire) {
            0 => break,
            k if k == key => {
                let function = place.function.load(Ordering::Acquire);
                if function != 0 {
                    return Some(Target { function, libomp: place.libomp.load(Ordering::Relaxed) != 0 });
                }
                break;
            }
            _ => {}
        }
    }
    look(caller, key, first, name)
}

/// Objects with a known copy: the object's base, and the handle by which the copy was found (null:
/// the global scope).
static OBJECTS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

#[cold]
fn look(caller: usize, key: usize, first: usize, name: &CStr) -> Option<Target> {
    let function = resolve(caller, name)?;
    let target = Target { function, libomp: is_libomp(function) };
    for i in 0..PROBES {
        let place = &PLACE[(first + i) % PLACES];
        let mine = match place.key.compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(k) => k == key,
        };
        if mine {
            place.libomp.store(target.libomp.into(), Ordering::Relaxed);
            place.function.store(function, Ordering::Release);
            break;
        }
    }
    Some(target)
}

/// The target that the loader would have chosen for a call of `name` at `caller` without this
/// library.
pub fn resolve(caller: usize, name: &CStr) -> Option<usize> {
    // SAFETY: asks the loader; `info` is filled when it returns non-zero. A handle that is got is
    // kept for ever: the object that called is loaded, and its dependencies stay as long as it
    // does.
    unsafe {
        let file = loaded::containing(caller);
        let base = file.map_or(0, |file| file.dli_fbase as usize);
        let mut objects = OBJECTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, handle)) = objects.iter().find(|(b, _)| *b == base) {
            let found = through(*handle as *mut c_void, name);
            if found.is_some() {
                return found;
            }
        }
        let global = through(std::ptr::null_mut(), name);
        let path = file.map_or(std::ptr::null(), |file| file.dli_fname);
        if global.is_some() || path.is_null() {
            objects.push((base, 0));
            return global;
        }
        let handle = libc::dlopen(path, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if handle.is_null() {
            return None;
        }
        let found = through(handle, name);
        if found.is_some() {
            objects.push((base, handle as usize));
        }
        found
    }
}

/// Looks a name up in an object and its dependencies, or behind this library in the global scope.
unsafe fn through(handle: *mut c_void, name: &CStr) -> Option<usize> {
    let scope = if handle.is_null() { libc::RTLD_NEXT } else { handle };
    // SAFETY: a handle that is open, and a C string.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) } as usize;
    (found != 0).then_some(found)
}

fn is_libomp(function: usize) -> bool {
    // Calls the real function: this library's front end would look all call sites up again.
    let close = next!(dlclose: unsafe extern "C" fn(*mut c_void) -> i32);
    // SAFETY: as in `resolve`; a library's own entry is found through the library itself.
    unsafe {
        let Some(path) = loaded::path_of(function) else { return false };
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if handle.is_null() {
            return false;
        }
        let own = !libc::dlsym(handle, c"__kmpc_fork_call".as_ptr()).is_null();
        if let Some(close) = close {
            close(handle);
        }
        own
    }
}

/// Objects were unloaded, which lay in these places (`None`: it is not known where): others may
/// come to lie there.
pub fn forget(gone: Option<&[Span]>) {
    if gone.is_some_and(<[Span]>::is_empty) {
        return;
    }
    let is_gone = |address: usize| gone.is_none_or(|gone| gone.iter().any(|span| span.contains(address)));
    let mut objects = OBJECTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    objects.retain(|(base, _)| !is_gone(*base));
    for place in &PLACE {
        let key = place.key.load(Ordering::Relaxed);
        if key != 0 && (is_gone(caller_of(key)) || is_gone(place.function.load(Ordering::Relaxed))) {
            place.function.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lay_elsewhere_is_still_known() {
        let (caller, entry, name) = (forget as *const () as usize, 200, c"strlen");
        let known = || {
            let key = key(caller, entry);
            let place = PLACE.iter().find(|p| p.key.load(Ordering::Relaxed) == key);
            place.is_some_and(|p| p.function.load(Ordering::Relaxed) != 0)
        };
        assert_eq!(caller_of(key(caller, entry)), caller);
        let function = target(caller, entry, name).unwrap().function;
        assert!(known());
        forget(Some(&[]));
        forget(Some(&[Span::new(1 << 20, 1 << 20)]));
        assert!(known(), "nothing of it has gone");
        for gone in [Some([Span::new(caller, 1)]), Some([Span::new(function, 1)]), None] {
            forget(gone.as_ref().map(<[Span; 1]>::as_slice));
            assert!(!known(), "{gone:?}");
            assert_eq!(target(caller, entry, name).unwrap().function, function);
            assert!(known(), "it was looked up again");
        }
    }
}
