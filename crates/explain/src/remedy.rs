//! From a fault to fixes, in the source's words. The first fix is the one that the fault asks for.

use homenode_schemes::padding::PaddingAdvice;
use serde::Serialize;

use crate::pattern::{Diagnosis, Pattern};
use crate::place::Place;

/// What kind of change a fix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixKind {
    /// Touch the pages first in a parallel loop, as they are used later.
    ParallelFirstTouch,
    /// Give two loops the same schedule.
    MatchSchedule,
    /// Swap the loops, or make the other one parallel.
    InterchangeLoops,
    /// Give each thread pages of its own.
    SeparatePages,
    /// Deal the pages of one object to all nodes.
    Interleave,
    /// Keep a copy on each node.
    Replicate,
    /// Let pages follow their next user, from a line of the program on.
    NextTouch,
    /// Run the program under `homenode run`.
    HomenodeRun,
    /// Deal all pages of the program to all nodes, by `numactl`.
    NumactlInterleave,
    /// Leave out the placement that overrides first touch.
    FirstTouch,
    /// Place the pages by a call of homenode's C API before their first touch.
    HnPlace,
    /// Distribute an array over the nodes by a call of homenode's C API.
    HnDistribute,
    /// Run the program with larger pages.
    HugePages,
    /// Make one node of all nodes of a socket, in the firmware.
    OneNodeASocket,
}

impl FixKind {
    /// As JSON spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ParallelFirstTouch => "parallel-first-touch",
            Self::MatchSchedule => "match-schedule",
            Self::InterchangeLoops => "interchange-loops",
            Self::SeparatePages => "separate-pages",
            Self::Interleave => "interleave",
            Self::Replicate => "replicate",
            Self::NextTouch => "next-touch",
            Self::HomenodeRun => "homenode-run",
            Self::NumactlInterleave => "numactl-interleave",
            Self::FirstTouch => "first-touch",
            Self::HnPlace => "hn-place",
            Self::HnDistribute => "hn-distribute",
            Self::HugePages => "huge-pages",
            Self::OneNodeASocket => "one-node-a-socket",
        }
    }

    /// How much work a fix is: 0 for another command line, 1 for another environment, 2 for a
    /// change of the source, 3 for a change of the machine.
    pub const fn effort(self) -> u8 {
        match self {
            Self::HomenodeRun | Self::NumactlInterleave => 0,
            Self::HugePages => 1,
            Self::OneNodeASocket => 3,
            _ => 2,
        }
    }
}

/// How a fix is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixSimulation {
    /// Each page of the variables where its users wait least for it.
    Best,
    /// The pages of the variables in turns.
    Deal,
    /// As [`FixSimulation::Best`], and without the copies that a container makes when it grows.
    WithoutCopies,
    /// All pages where they are touched first.
    FirstTouch,
    /// The pages of the variables follow their next user whenever a region begins.
    Follow,
    /// The rows of the variables on pages of their own, each page on the node of its user.
    Padded,
    /// The pages of each variable by one distribution.
    Distribute,
    /// Each thread goes through a block of its own in order; else as [`FixSimulation::Bound`].
    InOrder,
    /// Every access is local: the fix saves at most that.
    Bound,
}

/// A fix before anybody knows what it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What kind of change it is.
    pub kind: FixKind,
    /// The change in the source's words.
    pub text: String,
    /// The line that changes.
    pub at: Option<Place>,
    /// How it is simulated.
    pub how: FixSimulation,
}

/// The language of a source file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Cxx,
    Fortran,
    Python,
}

impl Language {
    fn of(place: &Place) -> Self {
        let extension = place.file.as_deref().and_then(|f| f.rsplit_once('.')).map_or("", |(_, e)| e);
        match extension {
            "cpp" | "cc" | "cxx" | "C" | "hpp" | "hh" | "hxx" | "h++" | "c++" => Self::Cxx,
            "py" => Self::Python,
            e if e.len() <= 3 && e.to_ascii_lowercase().starts_with('f') => Self::Fortran,
            _ => Self::C,
        }
    }

    const fn parallel_loop(self) -> &'static str {
        match self {
            Self::Fortran => "!$omp parallel do schedule(static)",
            _ => "#pragma omp parallel for schedule(static)",
        }
    }
}

/// What the fixes of a finding are about.
#[derive(Clone, Copy, Debug)]
pub struct FixSubject<'a> {
    /// The name of the first variable.
    pub name: &'a str,
    /// Where it is allocated.
    pub allocated: &'a Place,
    /// The region that uses it most.
    pub used: Option<&'a Place>,
    /// Whether it is allocated several times, as a container that grows is.
    pub grows: bool,
    /// Whether the program has parallel regions, where a directive makes a loop parallel.
    pub regions: bool,
    /// Bytes of a page.
    pub page: u64,
}

fn place(place: &Place) -> String {
    match (&place.function, place.short(), place.line) {
        (_, Some(short), Some(_)) => short,
        (Some(function), ..) => format!("an unknown line of {function}"),
        (None, Some(short), None) => format!("an unknown line of {short}"),
        (None, None, _) => "an unknown line".into(),
    }
}

/// Padding for an array whose pages hold parts of several nodes.
pub fn padded(advice: &PaddingAdvice, allocated: &Place) -> Remedy {
    Remedy {
        kind: FixKind::SeparatePages,
        text: format!("{}, and let each thread touch its part first: {}", advice.change(), advice.evidence()),
        at: Some(allocated.clone()).filter(|p| !p.is_unknown()),
        how: FixSimulation::Padded,
    }
}

/// The fixes of a fault.
pub fn remedies(found: &Diagnosis, subject: &FixSubject<'_>) -> Vec<Remedy> {
    let fault = Fault::new(found, subject);
    if let Some(fix) = fault.for_python() {
        return vec![fix];
    }
    let first = fault.for_container().unwrap_or_else(|| fault.for_pattern());
    // The same placement by a call: without another loop, for a program that links homenode.
    let call = fault.call(first.how);
    let mut all = vec![first];
    all.extend(fault.copies());
    all.extend(call);
    all
}

/// A fault in the words of its fixes.
struct Fault<'a> {
    found: &'a Diagnosis,
    subject: &'a FixSubject<'a>,
    /// The place of the first touch.
    touched: String,
    /// The line of the first touch, if it is known.
    at: Option<Place>,
    language: Language,
    /// The directive that makes a loop parallel.
    pragma: &'static str,
    /// The loop that uses the variable.
    user: String,
}

impl<'a> Fault<'a> {
    fn new(found: &'a Diagnosis, subject: &'a FixSubject<'a>) -> Self {
        let language = Language::of(&found.touched);
        Self {
            found,
            subject,
            touched: place(&found.touched),
            at: Some(found.touched.clone()).filter(|p| !p.is_unknown()),
            language,
            pragma: language.parallel_loop(),
            user: subject.used.map_or_else(|| "the loop that uses it".to_owned(), place),
        }
    }

    fn fix(&self, kind: FixKind, text: String, at: Option<&Place>, how: FixSimulation) -> Remedy {
        Remedy { kind, text, at: at.cloned(), how }
    }

    /// The loop that touches the variable first. A live run does not always tell which code that
    /// is.
    fn first_loop(&self) -> String {
        match self.at {
            Some(_) => format!("the loop around {}", self.touched),
            None => format!("the loop that first touches {}", self.subject.name),
        }
    }

    /// Python has no directive: the threads that use an array have to touch it first themselves.
    fn for_python(&self) -> Option<Remedy> {
        let is_first_touch = matches!(
            self.found.pattern,
            Pattern::SerialFirstTouch
                | Pattern::FilledByOneThread
                | Pattern::WrongSchedule
                | Pattern::SharedPages
        );
        (is_first_touch && Language::of(self.subject.allocated) == Language::Python).then(|| {
            let text = format!(
                "make {} with numpy.empty, then let each worker thread set its own part of it first",
                self.subject.name
            );
            self.fix(FixKind::ParallelFirstTouch, text, self.at.as_ref(), FixSimulation::Best)
        })
    }

    /// A container of C++ that touches its memory when it is made or resized.
    fn for_container(&self) -> Option<Remedy> {
        let (found, FixSubject { name, grows, .. }) = (self.found, *self.subject);
        let is_container = !found.touched.is_unknown()
            && found.touched == *self.subject.allocated
            && self.language == Language::Cxx
            && matches!(found.pattern, Pattern::SerialFirstTouch | Pattern::FilledByOneThread);
        is_container.then(|| {
            let (touched, pragma) = (&self.touched, self.pragma);
            let first = match grows {
                true => {
                    format!("{touched} sets and copies elements: give {name} its final size at first, and")
                }
                false => format!("{touched} sets all elements: give {name}"),
            };
            let text =
                format!("{first} an allocator whose construct() does nothing, then set them with {pragma}");
            let how = if grows { FixSimulation::WithoutCopies } else { FixSimulation::Best };
            self.fix(FixKind::ParallelFirstTouch, text, self.at.as_ref(), how)
        })
    }

    /// The fix of the fault's pattern.
    fn for_pattern(&self) -> Remedy {
        let FixSubject { name, page, used, .. } = *self.subject;
        let (user, at) = (&self.user, self.at.as_ref());
        match self.found.pattern {
            Pattern::SerialFirstTouch => self.serial_first_touch(),
            Pattern::FilledByOneThread => self.filled_by_one_thread(),
            Pattern::WrongSchedule => {
                let text = match at {
                    Some(_) => {
                        format!("give the loops at {} and {user} the same schedule over {name}", self.touched)
                    }
                    None => format!("give {} the schedule of {user}", self.first_loop()),
                };
                self.fix(FixKind::MatchSchedule, text, at, FixSimulation::Best)
            }
            Pattern::RegionsDisagree => {
                let text = format!("give all loops over {name} the same schedule as {user}");
                self.fix(FixKind::MatchSchedule, text, used, FixSimulation::Best)
            }
            Pattern::Misplaced => {
                let text = "leave out numactl --interleave or --membind: the threads that use the pages touch them first";
                self.fix(FixKind::FirstTouch, text.into(), None, FixSimulation::FirstTouch)
            }
            Pattern::PhaseChange => {
                let text = format!(
                    "call hn_next_touch on {name} where its users change, or homenode run --policy next-touch=region"
                );
                self.fix(FixKind::NextTouch, text, used, FixSimulation::Follow)
            }
            Pattern::Transposed => {
                let text =
                    format!("swap the loops at {user}: let each thread go through whole rows of {name}");
                self.fix(FixKind::InterchangeLoops, text, used, FixSimulation::InOrder)
            }
            Pattern::PageFalseSharing => {
                let text = format!(
                    "give each thread pages of its own in {name}: thread first in the index, or parts of {page} bytes"
                );
                let allocated = Some(self.subject.allocated).filter(|p| !p.is_unknown());
                self.fix(FixKind::SeparatePages, text, allocated, FixSimulation::Bound)
            }
            Pattern::ContestedTable | Pattern::Communication | Pattern::SharedPages => {
                let text =
                    format!("deal the pages of {name} to all nodes: numactl --interleave=all, or mbind");
                self.fix(FixKind::Interleave, text, at, FixSimulation::Deal)
            }
        }
    }

    fn serial_first_touch(&self) -> Remedy {
        let first_loop = self.first_loop();
        let text = if !self.subject.regions {
            format!(
                "let each thread set its own part of {} first, in place of {first_loop}",
                self.subject.name
            )
        } else if self.found.in_turns {
            format!("make {first_loop} parallel, with the schedule of {}", self.user)
        } else {
            format!("{} on {first_loop}", self.pragma)
        };
        self.fix(FixKind::ParallelFirstTouch, text, self.at.as_ref(), FixSimulation::Best)
    }

    fn filled_by_one_thread(&self) -> Remedy {
        let (name, pragma, user) = (self.subject.name, self.pragma, &self.user);
        let filler = if self.at.is_some() { &self.touched } else { "one thread" };
        let text = match self.subject.regions {
            true => {
                format!("before {filler} fills it, set {name} once with {pragma}, as {user} reads it")
            }
            false => {
                format!("before {filler} fills it, let each thread set once the part of {name} that it reads")
            }
        };
        self.fix(FixKind::ParallelFirstTouch, text, self.at.as_ref(), FixSimulation::Best)
    }

    /// Copies of a table that all threads read.
    fn copies(&self) -> Option<Remedy> {
        (self.found.pattern == Pattern::ContestedTable).then(|| {
            let text = format!("keep a copy of {} on each node: all threads only read it", self.subject.name);
            self.fix(FixKind::Replicate, text, None, FixSimulation::Bound)
        })
    }

    /// The call that places pages as a first fix does that is simulated like `how`; `None` if there
    /// is no such call.
    fn call(&self, how: FixSimulation) -> Option<Remedy> {
        let name = self.subject.name;
        let call = match how {
            FixSimulation::Best if self.found.pattern != Pattern::RegionsDisagree => {
                format!("hn_place each thread's part of {name} on the thread's node")
            }
            FixSimulation::Deal => format!("hn_place the pages of {name} on all nodes in turns"),
            _ => return None,
        };
        let before = if self.at.is_some() { &self.touched } else { "its first touch" };
        (self.language != Language::Python)
            .then(|| self.fix(FixKind::HnPlace, format!("{call}, before {before}"), self.at.as_ref(), how))
    }
}

/// The call of `hn_distribute` for a variable; `None`: its language has no such call. `how` is the
/// distribution in the words of the C API.
pub fn distribute(found: &Diagnosis, name: &str, how: &str) -> Option<Remedy> {
    let at = Some(found.touched.clone()).filter(|p| !p.is_unknown());
    if Language::of(&found.touched) == Language::Python {
        return None;
    }
    let before = at.as_ref().map_or_else(|| "its first touch".to_owned(), place);
    let text = format!("hn_distribute {name} {how}, before {before}");
    Some(Remedy { kind: FixKind::HnDistribute, text, at, how: FixSimulation::Distribute })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: Pattern, file: &str, allocated: bool) -> String {
        let touched = Place { file: Some(format!("/src/{file}")), line: Some(7), function: None };
        let elsewhere = Place::default();
        let found = Diagnosis { pattern, touched: touched.clone(), touched_by: 1, in_turns: false };
        let allocated = if allocated { &touched } else { &elsewhere };
        let subject =
            FixSubject { name: "u", allocated, used: None, grows: false, regions: true, page: 4096 };
        remedies(&found, &subject)[0].text.clone()
    }

    #[test]
    fn a_fix_is_in_the_words_of_the_language() {
        let serial = Pattern::SerialFirstTouch;
        assert_eq!(
            text(serial, "a.c", true),
            "#pragma omp parallel for schedule(static) on the loop around a.c:7"
        );
        assert_eq!(
            text(serial, "a.F90", true),
            "!$omp parallel do schedule(static) on the loop around a.F90:7"
        );
        assert!(text(serial, "a.cpp", false).starts_with("#pragma omp"));
        assert!(text(serial, "a.cpp", true).starts_with("a.cpp:7 sets all elements: give u an allocator"));
    }

    #[test]
    fn a_program_without_regions_is_told_of_its_threads() {
        let touched = Place { file: Some("/src/a.c".into()), line: Some(7), function: None };
        let subject = FixSubject {
            name: "u",
            allocated: &touched,
            used: None,
            grows: false,
            regions: false,
            page: 4096,
        };
        for pattern in [Pattern::SerialFirstTouch, Pattern::FilledByOneThread] {
            let found = Diagnosis { pattern, touched: touched.clone(), touched_by: 1, in_turns: false };
            let text = &remedies(&found, &subject)[0].text;
            assert!(text.contains("let each thread set") && !text.contains("#pragma"), "{text}");
        }
    }

    #[test]
    fn a_call_is_offered_where_it_places_pages_as_the_first_fix_does() {
        let touched = Place { file: Some("/src/a.c".into()), line: Some(7), function: None };
        let subject = FixSubject {
            name: "u",
            allocated: &touched,
            used: None,
            grows: false,
            regions: true,
            page: 4096,
        };
        let fixes = |pattern| {
            let found = Diagnosis { pattern, touched: touched.clone(), touched_by: 1, in_turns: false };
            remedies(&found, &subject)
        };
        // The names that a program can call.
        let header = include_str!("../../../include/homenode.h");
        for (pattern, how) in
            [(Pattern::SerialFirstTouch, FixSimulation::Best), (Pattern::ContestedTable, FixSimulation::Deal)]
        {
            let all = fixes(pattern);
            let call = all.iter().find(|r| r.kind == FixKind::HnPlace).unwrap();
            assert_eq!(call.how, how);
            assert!(call.text.ends_with("before a.c:7"), "{}", call.text);
            let name = call.text.split(' ').next().unwrap();
            assert!(header.contains(&format!("int {name}(")), "{name}");
        }
        for pattern in [Pattern::Transposed, Pattern::PhaseChange, Pattern::RegionsDisagree] {
            assert!(fixes(pattern).iter().all(|r| r.kind != FixKind::HnPlace), "{pattern:?}");
        }
    }
}
