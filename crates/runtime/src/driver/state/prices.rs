//! Prices: what work will cost, by what such work has cost before.
//!
//! Work does not begin unless the budget has room for its price. So each price must hold for the
//! next piece of work, not on average:
//!
//! - *A call that arms single pages.* A call looks at the process's mappings and descriptors, which
//!   takes the same time for one page as for a hundred. Each page adds a part. The price is at
//!   least the time of the dearest recent call with no more pages.
//! - *Bringing a page.* A page that comes alone is several times as dear as one that comes with its
//!   neighbours.

use std::collections::VecDeque;

use homenode_model::Ns;

use crate::driver::mover::BringingCost;

/// Recent calls that make the price of the next one.
const RECENT: usize = 8;
/// Assumed time of a call, and what each page adds, until a call is measured.
const CALL: Ns = Ns(200_000);
const PAGE: Ns = Ns(8_000);
/// Price of bringing a page alone, and among others, until enough pages are measured. Until then,
/// the price is at least this.
const ALONE: Ns = Ns(10_000);
const AROUND: Ns = Ns(4_000);
/// Pages that are enough to measure these two prices.
const ENOUGH: [u64; 2] = [16, 64];

/// What calls that arm single pages take.
#[derive(Debug, Default)]
pub struct ArmingPrice {
    /// Pages and times of recent calls.
    recent: VecDeque<(u64, Ns)>,
}

impl ArmingPrice {
    /// A call for this many pages took `time`.
    pub fn took(&mut self, pages: u64, time: Ns) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((pages, time));
    }

    /// The price of a call for this many pages.
    pub fn of(&self, pages: u64) -> Ns {
        let Some(call) = self.recent.iter().map(|(_, time)| *time).min() else {
            return CALL + PAGE.times(pages);
        };
        let added: u64 = self.recent.iter().map(|(_, time)| time.0 - call.0).sum();
        let all: u64 = self.recent.iter().map(|(pages, _)| *pages).sum();
        let line = call + Ns(added.saturating_mul(pages) / all.max(1));
        let dearest = self.recent.iter().filter(|(of, _)| *of <= pages).map(|(_, time)| *time).max();
        dearest.map_or(line, |dearest| line.max(dearest))
    }
}

/// The price of bringing a page alone, and of bringing one among others.
pub fn bringing(cost: &BringingCost) -> [Ns; 2] {
    let price = |(time, pages): (Ns, u64), assumed: Ns, enough| {
        let price = Ns(time.0 / pages.max(1));
        // A few pages say little about the price, except that it may be high.
        if pages >= enough { price } else { assumed.max(price) }
    };
    [price(cost.alone, ALONE, ENOUGH[0]), price(cost.around, AROUND, ENOUGH[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_as_dear_as_the_dearest_recent_one_with_no_more_pages() {
        let mut price = ArmingPrice::default();
        assert_eq!(price.of(10), Ns(280_000), "assumed");
        price.took(4, Ns(1_000_000));
        assert_eq!([1, 4, 64].map(|n| price.of(n)), [Ns(1_000_000); 3], "all of it is the call's");
        price.took(36, Ns(5_000_000));
        assert_eq!([1, 40, 400].map(|n| price.of(n)), [Ns(1_100_000), Ns(5_000_000), Ns(41_000_000)]);
        price.took(4, Ns(3_000_000));
        assert!(price.of(4) == Ns(3_000_000) && price.of(2) < Ns(3_000_000));
        (0..RECENT).for_each(|_| price.took(4, Ns(500_000)));
        assert_eq!(price.of(400), Ns(500_000), "what was dear is long ago");
    }

    #[test]
    fn pages_that_come_alone_have_a_price_of_their_own() {
        let cost = |alone, around| BringingCost { alone, around };
        assert_eq!(bringing(&BringingCost::default()), [ALONE, AROUND]);
        assert_eq!(bringing(&cost((Ns(160), 15), (Ns(640), 63))), [ALONE, AROUND], "too few");
        assert_eq!(bringing(&cost((Ns(300_000), 15), (Ns(0), 0))), [Ns(20_000), AROUND], "but dear");
        assert_eq!(bringing(&cost((Ns(320), 16), (Ns(640), 64))), [Ns(20), Ns(10)]);
    }
}
