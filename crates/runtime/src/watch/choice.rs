//! Chooses the best source of this machine that tells who touches what, and says why better ones
//! were refused.

use crate::moving::Mechanism;
use homenode_sources::{AnswerKind, Cpus, Source, hinting::Hinting, pmu::Pmu, writes::WriteFaults};
pub use homenode_wire::settings::Wanted;

/// Who tells.
pub enum Eyes {
    /// A source of its own.
    Source(Box<dyn Source>),
    /// The mover, by armed pages that stay on their node.
    Armed,
    /// Nobody.
    Nobody,
}

/// The chosen source.
pub struct ChosenSource {
    /// What tells.
    pub eyes: Eyes,
    /// Better sources that were refused, one sentence each with the reason.
    pub refused: Vec<String>,
}

impl Eyes {
    /// In words for a person.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Source(s) => s.name(),
            Self::Armed => "pages taken away at random times, which stay on their node",
            Self::Nobody => "region marks alone",
        }
    }

    /// The kind of the answers; `None` without a source.
    pub fn says(&self) -> Option<AnswerKind> {
        match self {
            Self::Source(s) => Some(s.says()),
            Self::Armed => Some(AnswerKind::Presence { writers_only: false }),
            Self::Nobody => None,
        }
    }
}

type Open = fn(Cpus) -> Result<Box<dyn Source>, String>;

/// The sources with descriptors of their own, best first.
const SOURCES: [(Wanted, Open); 3] = [
    (Wanted::Pmu, |cpus| Pmu::open(cpus).map(|s| Box::new(s) as _)),
    (Wanted::Hinting, |cpus| Hinting::open(cpus).map(|s| Box::new(s) as _).map_err(|e| e.to_string())),
    (Wanted::Writes, |cpus| WriteFaults::open(cpus).map(|s| Box::new(s) as _).map_err(|e| e.to_string())),
];

impl Eyes {
    /// The mechanism that the mover needs, if the mover's pages are the source: protection, because
    /// the toucher then waits for nobody. On pretended nodes the mover also copies, and only
    /// userfaultfd copies without a risk.
    pub fn mechanism(&self, pretended: bool) -> Option<Mechanism> {
        (matches!(self, Self::Armed) && !pretended).then_some(Mechanism::Protect)
    }
}

impl ChosenSource {
    /// The choice, without the mover's pages if the mover cannot put them back in place.
    #[must_use]
    pub fn if_possible(mut self, can_stay: bool) -> Self {
        if matches!(self.eyes, Eyes::Armed) && !can_stay {
            self.eyes = Eyes::Nobody;
            self.refused.push(format!(
                "source {} not used: pages cannot be taken away and put back here",
                Wanted::Blocks
            ));
        }
        self
    }
}

/// The best source, or the `wanted` one, for threads that the caller starts from now on.
pub fn choose(wanted: Wanted, cpus: &Cpus) -> ChosenSource {
    let mut refused = Vec::new();
    for (name, open) in SOURCES {
        if wanted != Wanted::Auto && wanted != name {
            continue;
        }
        match open(cpus.clone()) {
            Ok(source) => return ChosenSource { eyes: Eyes::Source(source), refused },
            Err(why) => refused.push(format!("source {name} not used: {why}")),
        }
    }
    let eyes = if matches!(wanted, Wanted::Auto | Wanted::Blocks) { Eyes::Armed } else { Eyes::Nobody };
    ChosenSource { eyes, refused }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homenode_model::NodeId;

    #[test]
    fn what_is_not_to_be_had_is_said_and_the_next_best_taken() {
        let cpus = Cpus::new(vec![Some(NodeId(0))]);
        let chosen = choose(Wanted::Regions, &cpus);
        assert!(matches!(chosen.eyes, Eyes::Nobody) && chosen.refused.is_empty());
        let chosen = choose(Wanted::Blocks, &cpus).if_possible(false);
        assert!(matches!(chosen.eyes, Eyes::Nobody) && chosen.refused.len() == 1);
        let chosen = choose(Wanted::Blocks, &cpus).if_possible(true);
        assert!(matches!(chosen.eyes, Eyes::Armed) && chosen.refused.is_empty());
        let chosen = choose(Wanted::Auto, &cpus).if_possible(true);
        assert!(chosen.eyes.says().is_some());
        let before = match &chosen.eyes {
            Eyes::Source(s) if s.says().counts() => 0,
            Eyes::Source(s) if s.name().starts_with("the kernel's") => 1,
            Eyes::Source(_) => 2,
            _ => 3,
        };
        assert_eq!(chosen.refused.len(), before, "{:?}", chosen.refused);
    }
}
