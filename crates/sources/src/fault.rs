//! The cost of a page fault that perf reports, measured on homenode's own memory.

use homenode_model::Ns;
use homenode_statistics::Sorted;
use homenode_sys::memory::ScratchMemory;
use homenode_sys::{PAGE, Result, call};

use crate::rings::Rings;

/// Pages of a round.
pub(crate) const PAGES: usize = 64;
/// Rounds of each kind.
const ROUNDS: usize = 5;
/// Assumed least time of a report, whatever a few of them seemed to take.
const LEAST: Ns = Ns(200);

/// The cost of a fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fault {
    /// With the report.
    pub whole: Ns,
    /// The report alone.
    pub telling: Ns,
}

/// Touches fresh memory, and returns how long that took.
pub(crate) fn fresh() -> Result<Ns> {
    let fresh = ScratchMemory::new(PAGES * PAGE)?;
    let begin = call::now();
    fresh.touch();
    Ok(call::now() - begin)
}

/// Measures a few rounds, in turns with the event off and on, and takes the medians. The event is
/// off afterwards. A round has [`PAGES`] faults and returns their total time.
pub(crate) fn measure(rings: &mut Rings, mut round: impl FnMut() -> Result<Ns>) -> Result<Fault> {
    let mut took = [[Ns::ZERO; ROUNDS]; 2];
    for n in 0..2 * ROUNDS {
        let told = n % 2;
        if told == 1 { rings.enable() } else { rings.disable() }?;
        took[told][n / 2] = round()?;
    }
    rings.disable()?;
    // The next owner of this memory must not get these touches.
    rings.drain(|_, _| {});
    let [silent, whole] = took.map(|all| {
        let median = Sorted::of(all).upper_median().unwrap_or(Ns::ZERO);
        Ns(median.0 / PAGES as u64)
    });
    Ok(Fault { whole, telling: Ns(whole.0.saturating_sub(silent.0)).max(LEAST) })
}
