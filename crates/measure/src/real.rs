//! The prober that measures: memory placed by policy, threads bound, both read back.

mod bandwidth;
mod core;
mod latency;
mod loaded;
mod migration;
mod next_touch;
mod place;
mod pool;
mod proof;
mod team;
mod trouble;

use crate::axes::NodeNumber;
use crate::cell::MeasuredCell;
use crate::host::Host;
use crate::item::Visit;
use crate::prober::Prober;
use pool::Pool;

/// A fault that is put in on purpose, to show that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Memory is placed on another node than is said.
    Misplace,
    /// A page moves to another node after the placement was checked.
    Migrate,
}

/// Measures this machine.
#[derive(Debug)]
pub struct HostMeasurer {
    host: Host,
    pool: Pool,
    sabotage: Option<Sabotage>,
    random: Random,
}

impl HostMeasurer {
    /// A prober for this machine as `host` describes it.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), pool: Pool::default(), sabotage: None, random: Random::new(1) }
    }

    /// The same, with a fault put in.
    #[must_use]
    pub fn with_sabotage(self, sabotage: Option<Sabotage>) -> Self {
        Self { sabotage, ..self }
    }

    /// Another node with memory than `node`, where a sabotaged page goes.
    fn elsewhere(&self, node: NodeNumber) -> Option<NodeNumber> {
        let all = self.host.with_memory();
        let after = all.iter().copied().find(|n| *n > node);
        after.or_else(|| all.first().copied()).filter(|n| *n != node)
    }
}

impl Prober for HostMeasurer {
    fn probe(&mut self, item: &Visit, stop: &dyn Fn() -> bool) -> Vec<MeasuredCell> {
        match item {
            Visit::Latency { pair, chase } => vec![self.latency(*pair, chase, stop)],
            Visit::Bandwidth(streams) => self.bandwidth(streams, stop),
            Visit::Loaded(load) => self.loaded(load, stop),
            Visit::Core(core) => vec![self.core(core, stop)],
            Visit::Migration(of) => vec![self.migration(of, stop)],
            Visit::NextTouch(of) => vec![self.next_touch(of, stop)],
        }
    }

    fn anew(&mut self) {
        self.pool = Pool::default();
    }
}

/// Numbers without a pattern (xorshift64*, Vigna 2016), the same in every run.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(seed)
    }
    const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// Below `n`.
    fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }
    /// `0 .. n` in an order that is as likely as any other (Fisher and Yates).
    fn shuffle(&mut self, order: &mut Vec<u32>, n: u32) {
        order.clear();
        order.extend(0..n);
        for i in (1..n).rev() {
            order.swap(i as usize, self.below(i + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_has_every_number_once_and_another_order_each_time() {
        let mut random = Random::new(1);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        random.shuffle(&mut first, 1000);
        random.shuffle(&mut second, 1000);
        assert_ne!(first, second);
        for mut order in [first, second] {
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..1000));
        }
    }
}
