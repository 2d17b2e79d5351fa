//! What a policy is asked to do otherwise because of how it is told.

use crate::watch::Chosen;

/// Policies that decide at iterations, and end for good after a few without a move.
const BY_ITERATION: [&str; 2] = ["competitive", "competitive-balanced"];

/// The spec to build a policy of that is told by what was chosen.
///
/// Until an iteration is known it decides at the end of regions, unless it was asked for another
/// time: some programs have four iterations, or none. Of draws it is told a few blocks at a time,
/// and that none of these moves says nothing of the others: it goes on, unless it was asked to end.
/// Blocks that stay where they are rest ever longer.
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
