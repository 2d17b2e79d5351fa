//! Regions of the source, numbered in the order in which they first run.

use super::RegionId;

/// Identifies a region of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionKey {
    /// The outlined function; 0 where the run-time system does not say.
    pub function: usize,
    /// Return address of the call that starts the team.
    pub caller: usize,
}

const PLACES: usize = 4096;
/// Regions that get a number of their own. Further regions share this number. At most half of the
/// table's places are used.
pub const MOST: usize = PLACES / 2;
const EMPTY: u32 = u32::MAX;

/// Numbers by key. Open addressing, allocated once.
#[derive(Debug)]
pub struct RegionTable {
    places: Vec<(RegionKey, u32)>,
    known: u32,
}

impl Default for RegionTable {
    fn default() -> Self {
        Self::new()
    }
}

impl RegionTable {
    /// No region is known.
    pub fn new() -> Self {
        Self { places: vec![(RegionKey { function: 0, caller: 0 }, EMPTY); PLACES], known: 0 }
    }

    /// Number of a region, a new one when it is seen for the first time.
    pub fn id(&mut self, key: RegionKey) -> RegionId {
        let mixed = (key.function ^ key.caller.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (mixed >> 40) % PLACES;
        loop {
            let place = &mut self.places[at];
            if place.1 == EMPTY {
                if self.known as usize >= MOST {
                    return RegionId(self.known);
                }
                *place = (key, self.known);
                self.known += 1;
                return RegionId(self.known - 1);
            }
            if place.0 == key {
                return RegionId(place.1);
            }
            at = (at + 1) % PLACES;
        }
    }

    /// Regions seen.
    pub fn len(&self) -> usize {
        self.known as usize
    }

    /// Whether none was seen.
    pub fn is_empty(&self) -> bool {
        self.known == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_keeps_its_number() {
        let mut table = RegionTable::new();
        let key = |n: usize| RegionKey { function: n * 64, caller: n };
        for n in 0..3000 {
            assert_eq!(table.id(key(n)), RegionId(n.min(PLACES / 2) as u32));
        }
        assert_eq!(table.id(key(77)), RegionId(77));
        assert_eq!(table.len(), PLACES / 2);
    }
}
