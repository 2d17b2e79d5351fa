//! `HOMENODE_RUN_FORCE_ARM=MS`: every `MS` milliseconds a thread arms all objects, or moves and
//! watches pages of each, without asking policy or guard. Tests use it on hostile programs.

use std::time::Duration;

use homenode_model::Ns;
use homenode_runtime::moving::{self, Span};
use homenode_runtime::own_thread::{self, own_threads};

use crate::{start, state};

/// The variable.
const FORCE_ARM: &str = "HOMENODE_RUN_FORCE_ARM";

/// `HOMENODE_RUN_FORCE_ERROR=1`: an error of homenode's own, a moment after the start. For tests of
/// what becomes of the program.
const FORCE_ERROR: &str = "HOMENODE_RUN_FORCE_ERROR";

/// Of these threads' stacks; Rust's own for a thread.
const STACK: usize = 2 << 20;

#[allow(clippy::panic)]
fn fail(after: Duration) {
    std::thread::sleep(after);
    state::with(|_| panic!("{FORCE_ERROR} is set"));
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) {
    state::guarded(|| {
        if let Err(e) = own_thread::start(name, STACK, run) {
            state::complain(&format!("{name}: cannot start a thread: {e}"));
        }
    });
}

fn for_ever(every: Duration) {
    let mut rounds = 0_u64;
    while own_threads::sleep(Ns(every.as_nanos() as u64)) {
        if !state::running() {
            continue;
        }
        // With the driver held: no object goes before it is armed.
        state::with(|d| {
            rounds += 1;
            if d.wants_ticks() {
                return d.shake(rounds);
            }
            let spans: Vec<Span> = d.objects().live().map(|o| Span::new(o.address, o.bytes)).collect();
            moving::arm(&spans);
            match rounds % 8 {
                3 => moving::settle(),
                7 => moving::disarm_all(),
                _ => {}
            }
        });
    }
}

extern "C" fn constructor() {
    start::start();
    if !state::running() {
        return;
    }
    let every = std::env::var(FORCE_ARM).ok().and_then(|v| v.parse::<f64>().ok());
    if let Some(every) = every.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok()) {
        start_thread("homenode-force", move || for_ever(every));
    }
    if std::env::var(FORCE_ERROR).is_ok_and(|v| v == "1") {
        start_thread("homenode-error", || fail(Duration::from_millis(20)));
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
