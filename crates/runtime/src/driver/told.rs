//! Adapts a policy's options to the source that it gets.

use crate::watch::Chosen;

/// Policies that decide at iterations, and end for good after a few iterations without a move.
const BY_ITERATION: [&str; 2] = ["competitive", "competitive-balanced"];

/// The spec of a policy that learns from the `chosen` source who touches what.
///
/// Unless the user asked for another time, the policy decides at the end of regions until an
/// iteration is known: some programs have few iterations, or none. It gets draws of a few blocks at
/// a time. If none of these moves, that says nothing of other blocks. So the policy goes on unless
/// the user asked it to end. Blocks that stay where they are rest ever longer.
pub(super) fn spec_for(spec: &str, chosen: Option<&Chosen>) -> String {
    let Some(eyes) = chosen.map(|c| &c.eyes) else { return spec.to_owned() };
    let (name, options) = spec.split_once(':').unwrap_or((spec, ""));
    if !BY_ITERATION.contains(&name) {
        return spec.to_owned();
    }
    let draws = eyes.says().is_some_and(|says| !says.counts());
    let asked = |option: &str| options.split(',').any(|o| o.starts_with(option));
    let mut all: Vec<&str> = options.split(',').filter(|o| !o.is_empty()).collect();
    if !asked("at=") {
        all.push("at=either");
    }
    if draws && !asked("quiet=") {
        all.push("quiet=0");
    }
    if all.is_empty() { name.to_owned() } else { format!("{name}:{}", all.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::choice::Eyes;

    #[test]
    fn what_is_told_piece_by_piece_does_not_end_a_policy() {
        let blocks = Chosen { eyes: Eyes::Armed, refused: Vec::new() };
        let of = |spec: &str| spec_for(spec, Some(&blocks));
        assert_eq!(of("competitive:at=region"), "competitive:at=region,quiet=0");
        assert_eq!(of("competitive-balanced:gain=5,at=10ms"), "competitive-balanced:gain=5,at=10ms,quiet=0");
        assert_eq!(of("competitive:quiet=3,at=iteration"), "competitive:quiet=3,at=iteration", "as asked");
        assert_eq!([of("presence"), of("daemon:rate=8")], ["presence", "daemon:rate=8"]);
        assert_eq!(spec_for("competitive", None), "competitive");
        let nobody = Chosen { eyes: Eyes::Nobody, refused: Vec::new() };
        assert_eq!(spec_for("competitive:at=iteration", Some(&nobody)), "competitive:at=iteration");
    }

    #[test]
    fn policies_of_iterations_decide_at_regions_until_one_is_known() {
        let of = |eyes| move |spec: &str| spec_for(spec, Some(&Chosen { eyes, refused: Vec::new() }));
        assert_eq!(of(Eyes::Nobody)("competitive"), "competitive:at=either");
        assert_eq!(of(Eyes::Nobody)("competitive-balanced:gain=5"), "competitive-balanced:gain=5,at=either");
        assert_eq!(of(Eyes::Armed)("competitive"), "competitive:at=either,quiet=0");
        assert_eq!(of(Eyes::Armed)("out-u"), "out-u");
    }
}
