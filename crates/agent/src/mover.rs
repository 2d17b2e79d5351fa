//! The mover of this process, and the source that tells who touches what.

use homenode_runtime::driver::{Arming, DriverSettings, Live, Mover};
use homenode_runtime::watch::ChosenSource;
use homenode_runtime::watch::choice::{self, Eyes};

/// Makes both, for real or pretended nodes; before the program's threads, for those that it starts
/// from now on are seen.
///
/// # Errors
/// There is nothing to move to.
pub fn make(settings: &DriverSettings) -> Result<(Box<dyn Mover>, Option<ChosenSource>), String> {
    if settings.machine.nodes() < 2 {
        return Err("this machine has one node: nothing to do".into());
    }
    if settings.arming != Arming::Watch {
        return Ok((Box::new(Live::start(settings, None, false)), None));
    }
    let chosen = choice::choose(settings.source, &settings.machine.cpu_nodes());
    let stay = matches!(chosen.eyes, Eyes::Armed);
    let live = Live::start(settings, chosen.eyes.mechanism(settings.pretend), stay);
    let chosen = chosen.if_possible(live.can_stay());
    Ok((Box::new(live), Some(chosen)))
}
