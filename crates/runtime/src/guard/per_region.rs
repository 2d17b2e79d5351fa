//! Next touch at every region: which regions are worth an arming.
//!
//! Löf asks whether next touch could be transparent at the start of every parallel region. It costs
//! an arming each time, and a fault for each block. It gains only if the pattern has changed. So a
//! region must earn its next arming: a region that moved nothing, or moved pages back and forth,
//! waits twice as long.

/// What is known of one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionGuard {
    /// Armings at its start.
    pub armings: u64,
    /// Pages that moved after these armings.
    pub moved: u64,
    /// Pages of these that returned to their former home.
    pub ping_pongs: u64,
    /// Starts left before the next arming.
    wait: u64,
    /// Length of the next wait, if an arming gains nothing.
    patience: u64,
}

/// Longest wait, in starts of the region.
const LONGEST: u64 = 1 << 20;

impl RegionGuard {
    /// Whether memory may be armed at this start of the region.
    pub fn lets(&mut self) -> bool {
        if self.wait > 0 {
            self.wait -= 1;
            return false;
        }
        true
    }

    /// Notes the result of an arming.
    pub fn armed(&mut self, moved: u64, ping_pongs: u64) {
        self.armings += 1;
        self.moved += moved;
        self.ping_pongs += ping_pongs;
        let gained = moved > 2 * ping_pongs;
        self.patience = if gained { 0 } else { (self.patience * 2).clamp(1, LONGEST) };
        self.wait = self.patience;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armings(starts: u64, moved: u64, ping_pongs: u64) -> u64 {
        let mut g = RegionGuard::default();
        for _ in 0..starts {
            if g.lets() {
                g.armed(moved, ping_pongs);
            }
        }
        g.armings
    }

    #[test]
    fn a_settled_region_is_armed_ever_more_rarely() {
        assert_eq!(armings(1000, 10, 0), 1000);
        assert_eq!(armings(1000, 0, 0), 10, "after 1, 2, 4, … starts");
        assert_eq!(armings(1000, 10, 8), 10);
    }
}
