//! The CPU time that homenode may spend, as a person writes it: `1%+2s`.

use std::fmt;
use std::str::FromStr;

use homenode_model::Ns;
use homenode_wire::facts;

/// What homenode may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunBudget {
    /// Thousandths of the run time.
    pub permille: u64,
    /// Milliseconds that homenode may always spend in addition.
    pub milliseconds: u64,
}

impl Default for RunBudget {
    fn default() -> Self {
        Self { permille: 10, milliseconds: 2000 }
    }
}

impl FromStr for RunBudget {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut budget = Self { permille: 0, milliseconds: 0 };
        for part in text.split('+') {
            let part = part.trim();
            let number = |unit: &str, scale: f64| {
                let n: f64 = part.strip_suffix(unit)?.trim().parse().ok()?;
                (0.0..1e9).contains(&n).then_some((n * scale).round() as u64)
            };
            // "ms" before "s": the one ends like the other.
            match (number("%", 10.0), number("ms", 1.0).or_else(|| number("s", 1000.0))) {
                (Some(p), _) if p <= 1000 => budget.permille += p,
                (None, Some(t)) => budget.milliseconds += t,
                _ => return Err("it is a share and a time, such as 1%+2s, 0.5% or 500ms".into()),
            }
        }
        Ok(budget)
    }
}

impl fmt::Display for RunBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.permille as f64 / 10.0;
        match self.milliseconds {
            0 => write!(f, "{percent}%"),
            ms if ms % 1000 == 0 => write!(f, "{percent}%+{}s", ms / 1000),
            ms => write!(f, "{percent}%+{ms}ms"),
        }
    }
}

impl From<RunBudget> for facts::Budget {
    fn from(b: RunBudget) -> Self {
        Self { permille: b.permille, fixed: Ns(b.milliseconds.saturating_mul(1_000_000)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_share_and_a_time() {
        let read = |text: &str| text.parse::<RunBudget>().map(|b| (b.permille, b.milliseconds));
        assert_eq!(read("1%+2s"), Ok((10, 2000)));
        assert_eq!([read("0.5%"), read("500ms"), read("0%")], [Ok((5, 0)), Ok((0, 500)), Ok((0, 0))]);
        for bad in ["", "1", "%", "200%", "-1s", "1%+", "x s", "1e30s"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for text in ["1%+2s", "0.5%+500ms", "3%"] {
            assert_eq!(text.parse::<RunBudget>().unwrap().to_string(), text);
        }
    }
}
