//! Placement schemes: which recording, where the threads run, which policy.

use homenode_error::{Result, suggest};
use homenode_policy::POLICIES;

use crate::regroup::Schedule;

/// Where the threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// All on the first node.
    Packed,
    /// Dealt over the nodes, consecutive ones together.
    Spread,
}

/// Which run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// The recording at hand; for kernels, initialised by one thread, with its next-touch request.
    Serial,
    /// A kernel initialised by all threads.
    Parallel,
    /// The recording at hand, changed.
    Changed(RecordingChange),
}

/// What is changed in the recording at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordingChange {
    /// Who executes which iterations of dynamic loops; none: as recorded.
    pub schedule: Option<Schedule>,
    /// Rows of arrays on pages of their own.
    pub padded: bool,
}

impl Variant {
    /// Its name in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Parallel => "parallel",
            Self::Changed(RecordingChange { schedule: None, .. }) => PADDED,
            Self::Changed(RecordingChange { schedule: Some(schedule), .. }) => schedule.as_str(),
        }
    }

    /// The run that the recorder saw.
    pub const fn recorded(self) -> Self {
        match self {
            Self::Serial | Self::Changed(_) => Self::Serial,
            Self::Parallel => Self::Parallel,
        }
    }

    /// What is changed in the recording at hand.
    pub const fn change(self) -> RecordingChange {
        match self {
            Self::Changed(change) => change,
            Self::Serial | Self::Parallel => RecordingChange { schedule: None, padded: false },
        }
    }
}

/// A placement scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name in the table.
    pub name: String,
    /// What it does.
    pub about: String,
    /// Which run of the program.
    pub variant: Variant,
    /// Where the threads run.
    pub layout: Layout,
    /// The policy.
    pub policy: String,
}

fn scheme(name: &str, about: &str, variant: Variant, layout: Layout, policy: &str) -> Scheme {
    Scheme { name: name.into(), about: about.into(), variant, layout, policy: policy.into() }
}

/// Löf's schemes and round robin, for a kernel that can be initialised either way.
pub fn of_kernel() -> Vec<Scheme> {
    use Layout::{Packed, Spread};
    use Variant::{Parallel, Serial};
    vec![
        scheme("UMA", "threads and data on one node", Serial, Packed, "first-touch"),
        scheme(
            "SI",
            "serial initialisation: first touch puts the data on one node",
            Serial,
            Spread,
            "first-touch",
        ),
        scheme("PI", "parallel initialisation: first touch by the threads", Parallel, Spread, "first-touch"),
        scheme("RR", "pages round robin over the nodes", Serial, Spread, "round-robin"),
        scheme("SI+MIG", "serial initialisation, migrate on next touch", Serial, Spread, "next-touch"),
    ]
}

/// Schemes for any recording.
pub fn of_recording() -> Vec<Scheme> {
    use Layout::{Packed, Spread};
    let serial = Variant::Serial;
    vec![
        scheme("UMA", "threads and data on one node", serial, Packed, "first-touch"),
        scheme("first-touch", "as the program initialises its data", serial, Spread, "first-touch"),
        scheme("one-node", "threads spread, data on one node", serial, Spread, "one-node"),
        scheme("round-robin", "pages round robin over the nodes", serial, Spread, "round-robin"),
        scheme("block", "each object in equal blocks over the nodes", serial, Spread, "block"),
        scheme(
            "next-touch",
            "as 'homenode run': pages follow their next user, once from the first region on, once from the first \
             iteration on, and where the program asks",
            serial,
            Spread,
            "next-touch:at=first-region",
        ),
    ]
}

/// The scheme that pads arrays, alone or in front of a policy: `padded:plan`.
pub const PADDED: &str = "padded";

/// The schemes asked for: names of `all`, or policies.
///
/// # Errors
/// A usage error that names the known ones and the nearest.
pub fn select(all: &[Scheme], asked: &[String]) -> Result<Vec<Scheme>> {
    if asked.is_empty() {
        return Ok(all.to_vec());
    }
    let mut out = Vec::new();
    for name in asked {
        if let Some(s) = all.iter().find(|s| s.name.eq_ignore_ascii_case(name)) {
            out.push(s.clone());
            continue;
        }
        // `padded` alone, or in front of a policy.
        let padded = name.strip_prefix(PADDED).filter(|rest| rest.is_empty() || rest.starts_with(':'));
        let spec = match padded {
            Some("") => "first-touch",
            Some(rest) => &rest[1..],
            None => name,
        };
        let policy = spec.split(':').next().unwrap_or(spec);
        if !POLICIES.iter().any(|p| p.name == policy) {
            let mut names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
            names.push(PADDED);
            names.extend(POLICIES.iter().map(|p| p.name).filter(|p| !all.iter().any(|s| s.name == *p)));
            return Err(suggest::unknown_of("scheme", name, &names));
        }
        let change = RecordingChange { schedule: None, padded: true };
        let variant = if padded.is_some() { Variant::Changed(change) } else { Variant::Serial };
        let about = if padded.is_some() { "rows of arrays on pages of their own" } else { "" };
        out.push(scheme(name, about, variant, Layout::Spread, spec));
    }
    Ok(out)
}

/// The schemes, and behind them each one of the recording at hand under each schedule.
pub fn under_schedules(schemes: Vec<Scheme>, schedules: &[Schedule]) -> Vec<Scheme> {
    let mut all = schemes.clone();
    for schedule in schedules {
        for scheme in schemes.iter().filter(|s| s.variant != Variant::Parallel && s.layout == Layout::Spread)
        {
            let change = RecordingChange { schedule: Some(*schedule), ..scheme.variant.change() };
            all.push(Scheme {
                name: format!("{}/{}", schedule.as_str(), scheme.name),
                about: String::new(),
                variant: Variant::Changed(change),
                ..scheme.clone()
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_is_tried_under_each_schedule() {
        let all = under_schedules(of_recording(), &[Schedule::Cyclic, Schedule::Affinity]);
        // UMA has its threads on one node, where no schedule changes what is remote.
        assert_eq!(all.len(), 6 + 2 * 5);
        let named = |name: &str| all.iter().find(|s| s.name == name).unwrap();
        let change = RecordingChange { schedule: Some(Schedule::Cyclic), padded: false };
        assert_eq!(named("cyclic/first-touch").variant, Variant::Changed(change));
        assert_eq!(named("first-touch").variant, Variant::Serial);
    }

    #[test]
    fn names_are_schemes_first_and_policies_second() {
        let all = of_kernel();
        let got = select(&all, &["si+mig".into(), "cyclic:pages=4".into()]).unwrap();
        assert_eq!((got[0].name.as_str(), got[0].policy.as_str()), ("SI+MIG", "next-touch"));
        assert_eq!((got[1].policy.as_str(), got[1].layout), ("cyclic:pages=4", Layout::Spread));
        assert_eq!(select(&all, &[]).unwrap().len(), 5);
        let got = select(&all, &["padded".into(), "padded:cyclic:pages=4".into()]).unwrap();
        let padded = Variant::Changed(RecordingChange { schedule: None, padded: true });
        assert_eq!((got[0].variant, got[0].policy.as_str()), (padded, "first-touch"));
        assert_eq!((got[1].variant, got[1].policy.as_str()), (padded, "cyclic:pages=4"));
    }

    #[test]
    fn a_slip_names_the_nearest() {
        let e = select(&of_recording(), &["next-tuch".into()]).unwrap_err();
        assert!(e.to_string().contains("next-touch") && e.to_string().contains(" competitive,"), "{e}");
    }
}
