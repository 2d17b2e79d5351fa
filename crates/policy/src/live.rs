//! Options that a policy has in a program that runs, unless the user sets them.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::POLICIES;

/// The spec of a policy in a program that runs: `spec`, and the [`crate::LiveValue`] of each option
/// that it does not set. `draws`: the source tells presence. A spec that names no policy stays as
/// it is.
pub fn live_spec(spec: &str, draws: bool) -> String {
    let (name, options) = spec.split_once(':').unwrap_or((spec, ""));
    let policy = POLICIES.iter().find(|p| p.name == name);
    let mut all: Vec<String> = options.split(',').filter(|o| !o.is_empty()).map(str::to_owned).collect();
    let given = all.len();
    for option in policy.map_or(&[][..], |p| p.options) {
        let is_set = |o: &String| o.split_once('=').map_or(&**o, |(name, _)| name) == option.name;
        if let Some(live) = option.live
            && (draws || !live.by_draws)
            && !all[..given].iter().any(is_set)
        {
            all.push(format!("{}={}", option.name, live.value));
        }
    }
    if all.len() == given { spec.to_owned() } else { format!("{name}:{}", all.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_gets_draws_of_a_few_blocks_does_not_end() {
        let of = |spec: &str| live_spec(spec, true);
        assert_eq!(of("competitive:at=region"), "competitive:at=region,quiet=0");
        assert_eq!(of("competitive-balanced:gain=5,at=10ms"), "competitive-balanced:gain=5,at=10ms,quiet=0");
        assert_eq!(of("competitive:quiet=3,at=iteration"), "competitive:quiet=3,at=iteration", "as asked");
        assert_eq!([of("presence"), of("daemon:rate=8")], ["presence", "daemon:rate=8"]);
        assert_eq!(of("no-such-policy:at=1"), "no-such-policy:at=1");
    }

    #[test]
    fn policies_of_iterations_decide_at_regions_until_one_is_known() {
        let of = |spec: &str| live_spec(spec, false);
        assert_eq!(of("competitive"), "competitive:at=either");
        assert_eq!(of("competitive-balanced:gain=5"), "competitive-balanced:gain=5,at=either");
        assert_eq!(of("competitive:at=iteration"), "competitive:at=iteration");
        assert_eq!(live_spec("competitive", true), "competitive:at=either,quiet=0");
        assert_eq!(of("out-u"), "out-u");
    }

    #[test]
    fn every_live_value_is_one_that_the_policy_takes() {
        let context = crate::testing::machine(&crate::testing::roomy());
        for policy in POLICIES {
            for draws in [false, true] {
                let spec = live_spec(policy.name, draws);
                if spec != policy.name {
                    assert!(crate::build(&spec, &context).is_ok(), "{spec}");
                }
            }
        }
    }
}
