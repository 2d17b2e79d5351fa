//! A policy, and when the library in the program arms pages for it.

use homenode_error::Result;
use homenode_model::Bytes;
use homenode_runtime::driver::LiveMachine;
use homenode_wire::facts::Arming;
use homenode_wire::settings;

use crate::policies;

/// The policy as the library in the program takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPolicy {
    /// Name and options.
    pub spec: String,
    /// When pages are armed.
    pub arming: Arming,
}

impl RunPolicy {
    /// The policy of a run that follows a plan: everything is decided.
    pub fn planned() -> Self {
        Self { spec: policies::NO_MOVES.into(), arming: Arming::Asked }
    }

    /// The policy of a recording that only watches.
    pub fn watching() -> Self {
        Self { spec: policies::NO_MOVES.into(), arming: Arming::Watch }
    }

    /// Of a name with options, as `--policy` takes it.
    ///
    /// # Errors
    /// It names no policy of a run; says which there are.
    pub fn of(text: &str) -> Result<Self> {
        let (spec, arming) = match text {
            "next-touch" | "next-touch=first" => ("next-touch", Some(Arming::First)),
            "next-touch=region" => ("next-touch", Some(Arming::Region)),
            "next-touch=asked" => ("next-touch", Some(Arming::Asked)),
            other => (other, None),
        };
        // Its name and options are right or wrong on any machine.
        let machine = settings::MachineNodes::even(2, 1, Bytes::gib(4), 20);
        let machine = LiveMachine::of(&machine).expect("a machine of two nodes");
        let policy = homenode_policy::build(spec, &machine.context(Bytes::kib(4)))
            .map_err(|e| policies::error(text, &e))?;
        let is_told = policy.interest().counts() || policy.interest().draws;
        let arming = match arming {
            None if is_told => Arming::Watch,
            None => Arming::First,
            Some(named) => named,
        };
        Ok(Self { spec: spec.into(), arming })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_before_the_program_runs() {
        let arming = |text: &str| RunPolicy::of(text).map(|p| p.arming);
        assert_eq!(arming("next-touch"), Ok(Arming::First));
        assert_eq!(arming("next-touch=region"), Ok(Arming::Region));
        assert_eq!(arming("round-robin"), Ok(Arming::First));
        assert_eq!(arming("presence:gap=5ms"), Ok(Arming::Watch));
        assert_eq!(
            [arming("competitive"), arming("daemon"), arming("out-w")],
            [const { Ok(Arming::Watch) }; 3]
        );
    }

    #[test]
    fn what_names_no_policy_is_told_which_there_are() {
        let error = |text: &str| RunPolicy::of(text).err().unwrap().to_string();
        for listed in
            [" first-touch,", " next-touch,", " next-touch=region,", " next-touch=asked,", " presence,"]
        {
            assert!(error("nonsense").contains(listed), "{listed}: {}", error("nonsense"));
        }
        assert!(!error("nonsense").contains("did you mean") && !error("nonsense").contains(" plan,"));
        assert!(error("nxt-touch").contains("did you mean 'next-touch'?"), "{}", error("nxt-touch"));
        assert!(error("next-touch=regions").contains("did you mean 'next-touch=region'?"));
        assert!(error("plan").contains("--plan FILE"), "{}", error("plan"));
        assert!(error("cyclic:page=4").contains("did you mean `pages`?"), "{}", error("cyclic:page=4"));
    }
}
