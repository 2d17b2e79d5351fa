//! A share in whole percent.

use std::fmt;
use std::str::FromStr;

/// 0 to 100 percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// All.
    pub const ALL: Self = Self(100);

    /// `percent`; above 100 there is none.
    pub const fn new(percent: u8) -> Option<Self> {
        if percent <= 100 { Some(Self(percent)) } else { None }
    }
    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
    /// `value` less this share of it, rounded up.
    #[inline]
    pub const fn off(self, value: u64) -> u64 {
        let rest = 100 - self.0 as u64;
        (value / 100) * rest + ((value % 100) * rest).div_ceil(100)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl FromStr for Percent {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim_end_matches('%').trim().parse().ok().and_then(Self::new).ok_or("a number from 0 to 100")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_taken_off() {
        assert_eq!([0, 30, 100].map(|p| Percent(p).off(1001)), [1001, 701, 0]);
        assert_eq!(Percent::ALL.off(u64::MAX), 0);
        assert_eq!("42 %".parse(), Ok(Percent(42)));
        assert!("101".parse::<Percent>().is_err() && "-1".parse::<Percent>().is_err());
    }
}
