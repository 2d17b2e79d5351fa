//! `HOMENODE_RUN_FORCE_ARM=MS`: arms all objects, or moves and watches some of each, every so many milliseconds, whatever policy and guard say. For tests of
//! programs that are hard on homenode.

use std::time::Duration;

use homenode_runtime::moving::{self, Span};

use crate::state;

/// The variable.
const FORCE_ARM: &str = "HOMENODE_RUN_FORCE_ARM";

fn for_ever(every: Duration) {
    let mut rounds = 0_u64;
    loop {
        std::thread::sleep(every);
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
    state::start();
    let every = std::env::var(FORCE_ARM).ok().and_then(|v| v.parse().ok());
    if let (Some(ms), true) = (every, state::running()) {
        state::guarded(|| {
            let made = std::thread::Builder::new()
                .name("homenode-force".to_owned())
                .spawn(move || for_ever(Duration::from_millis(ms)));
            if let Err(e) = made {
                state::complain(&format!("{FORCE_ARM}: cannot start a thread: {e}"));
            }
        });
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;
