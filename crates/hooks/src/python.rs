//! The functions by which a Python interpreter tells its frames.

use core::ffi::{CStr, c_char, c_int, c_void};

/// `PyObject *`, and `PyFrameObject *`.
pub type PythonObject = *mut c_void;

/// The interpreter's functions, as in its headers since 3.9. What returns a new object is given up
/// by [`FrameFunctions::give_up`].
pub struct FrameFunctions {
    /// Whether there is an interpreter. Any thread may ask at any time.
    pub is_initialised: unsafe extern "C" fn() -> c_int,
    /// Whether the calling thread holds the interpreter's lock. Any thread may ask at any time.
    pub has_lock: unsafe extern "C" fn() -> c_int,
    /// The innermost frame, borrowed; null if no Python code runs.
    pub frame: unsafe extern "C" fn() -> PythonObject,
    /// The caller's frame, new; null if there is none.
    pub back: unsafe extern "C" fn(PythonObject) -> PythonObject,
    /// The frame's code, new.
    pub code: unsafe extern "C" fn(PythonObject) -> PythonObject,
    /// The frame's line.
    pub line: unsafe extern "C" fn(PythonObject) -> c_int,
    /// An attribute, new; null if there is none.
    pub attribute: unsafe extern "C" fn(PythonObject, *const c_char) -> PythonObject,
    /// The text of a `str`, which lives as long as the object; null if it has none.
    pub text: unsafe extern "C" fn(PythonObject) -> *const c_char,
    /// Gives an object up.
    pub give_up: unsafe extern "C" fn(PythonObject),
    /// Forgets the exception of a function that failed.
    pub clear_error: unsafe extern "C" fn(),
}

impl FrameFunctions {
    /// Looks them up in the global scope. `None`: one of them is missing. Takes the loader's lock.
    pub fn look() -> Option<Self> {
        // SAFETY: the types of the interpreter's headers.
        unsafe {
            Some(Self {
                is_initialised: symbol(c"Py_IsInitialized")?,
                has_lock: symbol(c"PyGILState_Check")?,
                frame: symbol(c"PyEval_GetFrame")?,
                back: symbol(c"PyFrame_GetBack")?,
                code: symbol(c"PyFrame_GetCode")?,
                line: symbol(c"PyFrame_GetLineNumber")?,
                attribute: symbol(c"PyObject_GetAttrString")?,
                text: symbol(c"PyUnicode_AsUTF8")?,
                give_up: symbol(c"Py_DecRef")?,
                clear_error: symbol(c"PyErr_Clear")?,
            })
        }
    }
}

/// The function of that name in the global scope. Takes the loader's lock.
///
/// # Safety
/// `F` is a function's type, and the function of this name has it in every version that has it.
pub unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a C string.
    let p = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: the caller's promise.
    (!p.is_null()).then(|| unsafe { core::mem::transmute_copy(&p) })
}

/// Whether a file is an interpreter, by the name in its path. Look-ups in a process without one
/// would be what the program's next `dlerror` tells of.
pub fn is_interpreter(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    name.starts_with(b"python") || name.starts_with(b"libpython")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_known_by_their_names() {
        assert!(is_interpreter(b"/usr/bin/python3.12") && is_interpreter(b"libpython3.11.so.1.0"));
        assert!(!is_interpreter(b"/opt/python3/lib/libc.so.6") && !is_interpreter(b""));
    }

    #[test]
    fn a_process_without_an_interpreter_has_no_functions() {
        assert!(FrameFunctions::look().is_none());
    }
}
