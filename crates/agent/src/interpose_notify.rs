//! Call-backs in threads that the C library makes by itself (`SIGEV_THREAD`).
//!
//! glibc makes these threads without the exported `pthread_create`, so no front end sees their
//! start. A thread for a timer or a message queue begins with every signal blocked, and would die
//! at an armed page. So the C library gets a function of homenode's in place of the program's. That
//! function unblocks the two faults, takes a stack for handlers, and calls the program's function.
//! Faults of the program's own, and signals sent to the thread, find the signals blocked.
//!
//! Threads for `aio_*` and `getaddrinfo_a` begin with no signal blocked, but the workers behind
//! them block all signals. The workers read and write the program's requests directly, so requests
//! are never armed.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use homenode_runtime::moving::deaf_threads::{Workers, expect_workers};
use homenode_runtime::moving::{self, handler_stack, signals};

use crate::interpose::{front, span, text};
use crate::next::next;
use crate::{helper_threads, start, state};

/// `struct sigevent` of <bits/types/sigevent_t.h>, as far as `SIGEV_THREAD` uses it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    value: usize,
    signal: i32,
    notify: i32,
    function: usize,
    attributes: *const libc::pthread_attr_t,
    rest: [usize; 4],
}

const _: () = assert!(size_of::<Event>() == size_of::<libc::sigevent>());

/// The program's function and its argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Work {
    function: usize,
    value: usize,
}

/// Each distinct `Work`, never freed: nothing says when the C library has called it for the last
/// time.
fn kept(work: Work) -> Option<&'static Work> {
    static ALL: Mutex<Option<HashMap<Work, &'static Work>>> = Mutex::new(None);
    state::guarded(|| {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_with(HashMap::new);
        *all.entry(work).or_insert_with(|| Box::leak(Box::new(work)))
    })
}

/// Runs in the thread that the C library has made, and calls the program's function, which may end
/// the thread by `pthread_exit`.
unsafe extern "C-unwind" fn called(work: *const Work) {
    let before = signals::admit_faults();
    if start::may_arm() {
        state::guarded(handler_stack::give);
    }
    signals::hold(before);
    helper_threads::thread_begins();
    // SAFETY: `kept` made it; the program's function with its argument.
    unsafe {
        let Work { function, value } = *work;
        let function = std::mem::transmute::<usize, unsafe extern "C-unwind" fn(usize)>(function);
        function(value);
    }
    signals::block_as(before);
}

/// The event that the C library gets: `event`, or for `SIGEV_THREAD` a copy with homenode's
/// function in place of the program's.
///
/// # Safety
/// Null or a `struct sigevent`.
unsafe fn passed(
    event: *const libc::sigevent,
    copy: &mut Option<Event>,
    by: Workers,
) -> *const libc::sigevent {
    // SAFETY: null or the caller's structure, of the same size.
    let Some(mut own) = (unsafe { event.cast::<Event>().as_ref() }).copied() else { return event };
    if own.notify != libc::SIGEV_THREAD || own.function == 0 || !start::may_arm() {
        return event;
    }
    expect_workers(by);
    let Some(work) = kept(Work { function: own.function, value: own.value }) else { return event };
    own.function = called as *const () as usize;
    own.value = std::ptr::from_ref(work) as usize;
    std::ptr::from_ref::<Event>(copy.insert(own)).cast()
}

/// `timer_create`.
///
/// # Safety
/// As `timer_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn timer_create(
    clock: i32,
    how: *mut libc::sigevent,
    timer: *mut libc::timer_t,
) -> i32 {
    type Real = unsafe extern "C-unwind" fn(i32, *const libc::sigevent, *mut libc::timer_t) -> i32;
    let Some(f) = next!(timer_create: Real) else { return -1 };
    let mut copy = None;
    let flight = moving::publish(&[span(how, 1), span(timer, 1)]);
    // SAFETY: the caller's arguments.
    let result = unsafe { f(clock, passed(how, &mut copy, Workers::Timers), timer) };
    moving::retire(flight);
    result
}

/// `mq_notify`.
///
/// # Safety
/// As `mq_notify`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mq_notify(queue: i32, how: *const libc::sigevent) -> i32 {
    type Real = unsafe extern "C-unwind" fn(i32, *const libc::sigevent) -> i32;
    let Some(f) = next!(mq_notify: Real) else { return -1 };
    let mut copy = None;
    let flight = moving::publish(&[span(how, 1)]);
    // SAFETY: the caller's arguments.
    let result = unsafe { f(queue, passed(how, &mut copy, Workers::Queues)) };
    moving::retire(flight);
    result
}

/// Excludes a request for asynchronous I/O and its buffer from arming for ever: workers of the C
/// library use both.
unsafe fn exclude_order(order: *const libc::aiocb) {
    expect_workers(Workers::Orders);
    // SAFETY: null or the caller's order.
    if let Some(order) = unsafe { order.as_ref() } {
        moving::exclude(span(order, 1));
        moving::exclude(span(order.aio_buf.cast_const(), order.aio_nbytes));
    }
}

/// Excludes several requests, and the list of them.
unsafe fn exclude_orders(orders: *const *mut libc::aiocb, n: i32) {
    let n = n.max(0) as usize;
    if !orders.is_null() {
        moving::exclude(span(orders, n));
        for i in 0..n {
            // SAFETY: the caller's list; null entries are ignored.
            unsafe { exclude_order(*orders.add(i)) };
        }
    }
}

type Order = *mut libc::aiocb;

front! {
    /// The request is never armed again.
    // SAFETY: the caller's order.
    aio_read(order: Order) -> i32, unsafe { exclude_order(order) };
    /// The request is never armed again.
    // SAFETY: as for `aio_read`.
    aio_read64(order: Order) -> i32, unsafe { exclude_order(order) };
    /// The request is never armed again.
    // SAFETY: as for `aio_read`.
    aio_write(order: Order) -> i32, unsafe { exclude_order(order) };
    /// The request is never armed again.
    // SAFETY: as for `aio_read`.
    aio_write64(order: Order) -> i32, unsafe { exclude_order(order) };
    /// The request is never armed again.
    // SAFETY: as for `aio_read`.
    aio_fsync(how: i32, order: Order) -> i32, unsafe { exclude_order(order) };
    /// The request is never armed again.
    // SAFETY: as for `aio_read`.
    aio_fsync64(how: i32, order: Order) -> i32, unsafe { exclude_order(order) };
}

/// `struct gaicb` of <netdb.h>.
#[repr(C)]
pub struct Question {
    name: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
    answer: *mut libc::addrinfo,
    code: i32,
    reserved: [i32; 5],
}

/// Excludes the questions from arming: a worker of the C library reads them and writes the answers.
unsafe fn exclude_questions(list: *const *mut Question, n: i32) {
    let n = n.max(0) as usize;
    if list.is_null() {
        return;
    }
    expect_workers(Workers::Orders);
    moving::exclude(span(list, n));
    for i in 0..n {
        // SAFETY: the caller's list; null entries are ignored. Strings are null or end.
        unsafe {
            let Some(question) = (*list.add(i)).as_ref() else { continue };
            moving::exclude(span(question, 1));
            moving::exclude(span(question.hints, 1));
            moving::exclude(text(question.name));
            moving::exclude(text(question.service));
        }
    }
}

macro_rules! lists {
    ($($name:ident($item:ty) $exclude:ident;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`: what the list names is never armed again, and the callback's thread can fault.")]
        ///
        /// # Safety
        /// As the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            mode: i32, list: *const *mut $item, n: i32, how: *mut libc::sigevent
        ) -> i32 {
            type Real = unsafe extern "C-unwind" fn(i32, *const *mut $item, i32, *const libc::sigevent) -> i32;
            let Some(f) = next!($name: Real) else { return -1 };
            let mut copy = None;
            // SAFETY: the caller's arguments.
            unsafe {
                $exclude(list, n);
                f(mode, list, n, passed(how, &mut copy, Workers::Orders))
            }
        }
    )* };
}

lists! {
    lio_listio(libc::aiocb) exclude_orders;
    lio_listio64(libc::aiocb) exclude_orders;
    getaddrinfo_a(Question) exclude_questions;
}

/// `aio_suspend`. The waiting thread reads the requests; the kernel reads the timeout.
///
/// # Safety
/// As `aio_suspend`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aio_suspend(
    list: *const *const libc::aiocb,
    n: i32,
    wait: *const libc::timespec,
) -> i32 {
    type Real = unsafe extern "C-unwind" fn(*const *const libc::aiocb, i32, *const libc::timespec) -> i32;
    let Some(f) = next!(aio_suspend: Real) else { return -1 };
    let flight = moving::publish(&[span(list, n.max(0) as usize), span(wait, 1)]);
    // SAFETY: the caller's arguments.
    let result = unsafe { f(list, n, wait) };
    moving::retire(flight);
    result
}
