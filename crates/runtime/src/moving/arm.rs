//! Arming: pages move to the thread that touches them next.

use std::sync::atomic::Ordering;

use homenode_model::Bytes;
use homenode_sys::{PAGE, Span, call};

use super::candidates::{ArmingPlan, Candidate};
use super::group::Group;
use super::lock::Locked;
use super::mechanism::{Manner, Mechanism};
use super::reports::{ArmReport, Why};
use super::state::{self, count};
use super::{deaf_threads, disarm, events, inflight, pinning, signals};

/// Whether [`Manner::Stays`] is possible: the mover can put the pages themselves back.
pub fn can_stay() -> bool {
    match state::mechanism() {
        Mechanism::UserFault => state::TAKE_BACK.load(Ordering::Relaxed),
        Mechanism::Protect | Mechanism::CopyRemap => true,
        Mechanism::None => false,
    }
}

/// Arms the whole pages of these spans, and skips those that must not be armed. From any thread,
/// but not in a signal handler. All threads may go on touching the memory.
pub fn arm(spans: &[Span]) -> ArmReport {
    arm_as(spans, Manner::Around)
}

/// As [`arm`], in this manner. If other pages of a block are armed to go to their toucher, all
/// armed pages of the block do.
pub fn arm_as(spans: &[Span], manner: Manner) -> ArmReport {
    let begin = call::now();
    let mut report = ArmReport::default();
    let all: usize = spans.iter().map(|s| s.len()).sum();
    let stack = own_stack();
    let reads = state::mechanism() != Mechanism::UserFault || events::has_reader();
    match Locked::new() {
        _ if state::mechanism() == Mechanism::None => {
            report.skip(if pinning::found().is_some() { Why::Pinning } else { Why::Off }, all);
        }
        None => report.skip(Why::InFlight, all),
        Some(_) if !reads => report.skip(Why::Failed, all),
        Some(_) if manner == Manner::Stays && !can_stay() => report.skip(Why::Off, all),
        Some(lock) => arm_locked(&lock, spans, stack, manner, &mut report),
    }
    if report.armed != Bytes::ZERO {
        count(&state::ARMS, 1);
        count(&state::ARMED, report.armed.0);
    }
    report.took = call::now() - begin;
    report
}

fn arm_locked(lock: &Locked, spans: &[Span], stack: Span, manner: Manner, report: &mut ArmReport) {
    let pages: usize = spans.iter().map(|s| s.inner(PAGE).len()).sum();
    let all: usize = spans.iter().map(|s| s.len()).sum();
    report.skip(Why::Partial, all - pages);
    if !signals::are_ours() {
        return report.skip(Why::Off, pages);
    }
    if pages > 0 && deaf_threads::any(lock) {
        // Workers of io_uring are deaf threads, too. In that case io_uring is the reason.
        let pins = pinning::look_at_descriptors().is_some();
        if pins {
            end(lock)
        } else {
            disarm::everything(lock)
        }
        return report.skip(if pins { Why::Pinning } else { Why::Deaf }, pages);
    }
    let changes = inflight::changes();
    let plan = match ArmingPlan::make(lock, spans) {
        Ok(plan) => plan,
        Err(e) => return report.fail(e, pages),
    };
    // Only now: the mappings, which were just read, may include a device's.
    if pinning::look(&plan.fixed).is_some() {
        end(lock);
        return report.skip(Why::Pinning, pages);
    }
    report.skip(Why::NotAnonymous, pages - plan.bytes());
    let candidates = plan.candidates;
    let mut group = Group::new(lock, plan, changes, manner, report);
    for (number, candidate) in candidates.iter().enumerate() {
        match why_not(candidate, stack) {
            Some(Why::Inaccessible) => {
                // Protected blocks, or pages that the program itself has made inaccessible.
                let ours = disarm::armed_in(candidate.span);
                group.skip(Why::Armed, ours);
                group.skip(Why::Inaccessible, candidate.span.len() - ours);
            }
            Some(why) => group.skip(why, candidate.span.len()),
            None => group.add(number),
        }
    }
    group.arm();
    // Something that pins memory may have appeared meanwhile.
    if pinning::found().is_some() {
        end(lock);
        let armed = std::mem::take(&mut report.armed);
        report.skip(Why::Pinning, armed.0 as usize);
    }
}

fn why_not(candidate: &Candidate, stack: Span) -> Option<Why> {
    if candidate.span.overlaps(stack) { Some(Why::Stack) } else { candidate.not }
}

/// The calling thread's stack; the initial thread's has its own name in the mappings.
fn own_stack() -> Span {
    // SAFETY: the attributes are initialised by pthread_getattr_np before they are read, and
    // destroyed after.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if call::thread_id() as u32 == std::process::id()
            || libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0
        {
            return Span::EMPTY;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let got = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        if got == 0 { Span::new(low as usize, size) } else { Span::EMPTY }
    }
}

/// Something can pin memory: nothing is armed any more, by whatever mechanism. Pages that are only
/// inaccessible for a while would be as wrong as copies: the kernel refuses them to a worker of
/// io_uring, a device or a peer, and nobody learns of it. The kernel goes on moving pages with
/// known targets.
fn end(lock: &Locked) {
    disarm::everything(lock);
    state::turn_off();
}
