//! An event to count, and the descriptor that counts it.

use crate::call::raw;
use crate::error::check;
use crate::{Error, Result, Span, descriptor};

/// `struct perf_event_attr` as of Linux 5.13 (`PERF_ATTR_SIZE_VER7`); older kernels accept the
/// zeros behind what they know.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    fields: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    registers: u64,
    stack: u32,
    clock: i32,
    registers_at_interrupt: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
    aux_sample: u32,
    reserved2: u32,
    signal: u64,
}

const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const FREQUENCY: u64 = 1 << 10;
const PRECISE: u32 = 15;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK: u64 = 1 << 25;
/// Linux 5.13: threads alone, not child processes.
const INHERIT_THREAD: u64 = 1 << 35;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_AT_EXEC: usize = 1 << 3;
/// `_IO('$', 0)`, `_IO('$', 1)`, `_IO('$', 3)`; the argument of the first two is 0: this event
/// alone, and what inherited it.
const ENABLE: usize = 0x2400;
const DISABLE: usize = 0x2401;
/// `_IO('$', 5)`; the argument is a descriptor.
const SET_OUTPUT: usize = 0x2405;

/// The kind of an event: one that every kernel has, or one of a device that
/// `/sys/bus/event_source/devices` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKind(pub u32);

impl EventKind {
    /// Counted by the kernel itself.
    pub const SOFTWARE: Self = Self(1);
}

/// Words of the stack that a sample with [`SampleFields::STACK`] has, from the top on.
pub const STACK_WORDS: usize = 8;

/// `PERF_COUNT_SW_PAGE_FAULTS`.
pub const PAGE_FAULTS: u64 = 2;

/// The sampling rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// One in this many events.
    Period(u64),
    /// This many a second, as far as the kernel manages.
    Frequency(u64),
}

/// The fields of a sample (`PERF_SAMPLE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleFields(pub u64);

impl SampleFields {
    /// The instruction.
    pub const IP: Self = Self(1 << 0);
    /// Process and thread.
    pub const THREAD: Self = Self(1 << 1);
    /// The time.
    pub const TIME: Self = Self(1 << 2);
    /// The address of the data.
    pub const ADDRESS: Self = Self(1 << 3);
    /// The CPU.
    pub const CPU: Self = Self(1 << 7);
    /// The top of the thread's stack (`PERF_SAMPLE_STACK_USER`).
    pub const STACK: Self = Self(1 << 13);
    /// The duration, in the processor's own units.
    pub const WEIGHT: Self = Self(1 << 14);
    /// Load or store, and where the data came from.
    pub const SOURCE: Self = Self(1 << 15);
    /// The fields of software events: who touched what, where.
    pub const TOUCH: Self = Self(Self::IP.0 | Self::THREAD.0 | Self::TIME.0 | Self::ADDRESS.0 | Self::CPU.0);
    /// The owner of a stretch of a processor's own trace.
    pub const TRACE: Self = Self(Self::THREAD.0 | Self::TIME.0 | Self::CPU.0);
    /// The fields of a processor's address sampling.
    pub const ACCESS: Self = Self(Self::TOUCH.0 | Self::WEIGHT.0 | Self::SOURCE.0);

    /// Whether these fields include all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSpec {
    /// The kind of the event.
    pub kind: EventKind,
    /// The event; its meaning depends on the kind.
    pub config: u64,
    /// More of it.
    pub config1: u64,
    /// More of it.
    pub config2: u64,
    /// How often a sample is taken.
    pub rate: Rate,
    /// How exact the address of the instruction must be, 0 to 3.
    pub precise: u8,
    /// The fields of a sample.
    pub fields: SampleFields,
    /// Whether the kernel's own events are left out; ordinary users must ask for that.
    pub user_only: bool,
    /// Bytes of a processor's own trace after which the kernel reports them, before the thread
    /// leaves the CPU; 0: half of the AUX buffer.
    pub watermark: u32,
}

impl CounterSpec {
    /// Every page fault of a program, the kernel's hinting faults among them.
    pub const fn page_faults() -> Self {
        Self {
            kind: EventKind::SOFTWARE,
            config: PAGE_FAULTS,
            config1: 0,
            config2: 0,
            rate: Rate::Period(1),
            precise: 0,
            fields: SampleFields::TOUCH,
            user_only: true,
            watermark: 0,
        }
    }

    /// As [`CounterSpec::page_faults`], with the top of the stack.
    pub const fn page_faults_with_stack() -> Self {
        Self { fields: SampleFields(SampleFields::TOUCH.0 | SampleFields::STACK.0), ..Self::page_faults() }
    }
}

/// The threads whose events count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTarget {
    /// A thread, by the kernel's number; 0: the caller.
    pub thread: i32,
    /// On this CPU alone.
    pub cpu: Option<u32>,
    /// Whether threads that it starts from now on count, too.
    pub inherit: bool,
}

/// An event, not counted yet; it ends when this is dropped.
#[derive(Debug)]
pub struct PerfEvent {
    fd: i32,
    fields: SampleFields,
}

impl PerfEvent {
    /// Opens an event. The leader of a `group` decides when its events count.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` if `perf_event_paranoid` forbids it, `ENOENT`, `ENODEV` or `EOPNOTSUPP`
    /// if there is no such event.
    pub fn open(spec: &CounterSpec, target: EventTarget, group: Option<&Self>) -> Result<Self> {
        let threads = Self::open_as(spec, target, group, INHERIT | INHERIT_THREAD);
        match threads {
            // Before Linux 5.13. Events of child processes are then reported, too, under their own
            // number.
            Err(e) if target.inherit && e.errno.0 == libc::EINVAL => {
                Self::open_as(spec, target, group, INHERIT)
            }
            done => done,
        }
    }

    fn open_as(spec: &CounterSpec, target: EventTarget, group: Option<&Self>, inherit: u64) -> Result<Self> {
        let (period, by_frequency) = match spec.rate {
            Rate::Period(n) => (n, 0),
            Rate::Frequency(n) => (n, FREQUENCY),
        };
        let user = if spec.user_only { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR } else { 0 };
        let attributes = Attributes {
            kind: spec.kind.0,
            size: size_of::<Attributes>() as u32,
            config: spec.config,
            config1: spec.config1,
            config2: spec.config2,
            period,
            fields: spec.fields.0,
            flags: DISABLED
                | SAMPLE_ID_ALL
                | USE_CLOCK
                | by_frequency
                | user
                | if target.inherit { inherit } else { 0 }
                | u64::from(spec.precise & 3) << PRECISE,
            clock: libc::CLOCK_MONOTONIC,
            aux_watermark: spec.watermark,
            stack: if spec.fields.has(SampleFields::STACK) {
                (STACK_WORDS * size_of::<u64>()) as u32
            } else {
                0
            },
            ..Attributes::default()
        };
        let at = &raw const attributes as usize;
        let cpu = target.cpu.map_or(usize::MAX, |c| c as usize);
        let group = group.map_or(usize::MAX, |g| g.fd as usize);
        // SAFETY: the structure is complete and of the size that it says.
        let fd = unsafe {
            raw(libc::SYS_perf_event_open, [at, target.thread as usize, cpu, group, CLOSE_AT_EXEC, 0])
        };
        let fd = check("perf_event_open", Span::EMPTY, fd)?;
        Ok(Self { fd: descriptor::keep(fd as i32), fields: spec.fields })
    }

    /// The descriptor's number.
    pub const fn fd(&self) -> i32 {
        self.fd
    }

    /// The fields of its samples.
    pub const fn fields(&self) -> SampleFields {
        self.fields
    }

    /// Starts counting, in all threads that inherited the event.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn enable(&self) -> Result<()> {
        self.order("ioctl(PERF_EVENT_IOC_ENABLE)", ENABLE, 0)
    }

    /// Stops counting.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn disable(&self) -> Result<()> {
        self.order("ioctl(PERF_EVENT_IOC_DISABLE)", DISABLE, 0)
    }

    /// Sends the event's records to the ring of `other`, an event of the same CPU, and to that
    /// event's AUX buffer.
    ///
    /// # Errors
    /// The kernel's answer: `EINVAL` if this event has a ring itself, or if the two have different
    /// CPUs or clocks.
    pub fn write_to(&self, other: &Self) -> Result<()> {
        self.order("ioctl(PERF_EVENT_IOC_SET_OUTPUT)", SET_OUTPUT, other.fd as usize)
    }

    fn order(&self, what: &'static str, number: usize, argument: usize) -> Result<()> {
        // SAFETY: the argument is 0, a descriptor, or the address of a number that the kernel
        // reads.
        let r = unsafe { raw(libc::SYS_ioctl, [self.fd as usize, number, argument, 0, 0, 0]) };
        check(what, Span::EMPTY, r).map(drop)
    }

    /// Number of events while it counted.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn count(&self) -> Result<u64> {
        let mut n = 0_u64;
        // SAFETY: writes 8 bytes.
        let r = unsafe { raw(libc::SYS_read, [self.fd as usize, &raw mut n as usize, 8, 0, 0, 0]) };
        let short = Error { call: "read(perf event)", on: Span::EMPTY, errno: crate::Errno(libc::EIO) };
        match check("read(perf event)", Span::EMPTY, r)? {
            8 => Ok(n),
            _ => Err(short),
        }
    }
}

impl Drop for PerfEvent {
    fn drop(&mut self) {
        descriptor::close(self.fd);
    }
}

const _: () = assert!(size_of::<Attributes>() == 128);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Protection, map, unmap};
    use crate::{Errno, PAGE};

    const ME: EventTarget = EventTarget { thread: 0, cpu: None, inherit: false };

    #[test]
    fn page_faults_are_counted_while_enabled() {
        let event = match PerfEvent::open(&CounterSpec::page_faults(), ME, None) {
            Ok(event) => event,
            Err(e) => return println!("skipped: {e}"),
        };
        let touch = |pages: usize| {
            let m = map(pages * PAGE, Protection::ReadWrite).unwrap();
            // Huge pages would take one fault for all.
            let _ = crate::memory::prefer_huge(m, false);
            for page in m.pieces(PAGE) {
                // SAFETY: this test's mapping.
                unsafe { (page.start as *mut u8).write_volatile(1) };
            }
            // SAFETY: the same.
            unsafe { unmap(m).unwrap() };
        };
        touch(50);
        assert_eq!(event.count(), Ok(0), "not enabled yet");
        event.enable().unwrap();
        touch(100);
        event.disable().unwrap();
        let counted = event.count().unwrap();
        assert!(counted >= 100, "{counted}");
        touch(50);
        assert_eq!(event.count(), Ok(counted));
    }

    #[test]
    fn an_event_that_there_is_not_says_so() {
        let spec = CounterSpec { config: 12_345, ..CounterSpec::page_faults() };
        let e = PerfEvent::open(&spec, ME, None).unwrap_err();
        let known = [libc::ENOENT, libc::EINVAL, libc::EACCES, libc::EPERM, libc::ENOSYS];
        assert!(e.call == "perf_event_open" && known.map(Errno).contains(&e.errno), "{e}");
    }
}
