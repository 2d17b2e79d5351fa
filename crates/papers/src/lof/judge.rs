//! What Löf, Nordén and Holmgren conclude, judged by our numbers.

use homenode_model::Ps;

use crate::numbers::Program;
use crate::series::{Series, Times};
use crate::verdict::{Says, Shown};

/// "Very few iterations" (section 5).
const FEW: usize = 3;

/// Times over UMA: SI, PI, SI+MIG.
type Ratios = [Option<f64>; 3];

fn list(values: impl Iterator<Item = (&'static str, f64)>) -> String {
    values.map(|(name, v)| format!("{name} {v:.2}")).collect::<Vec<_>>().join(", ")
}

/// Section 5 and conclusions 1 and 2.
pub(super) fn table1(shown: &mut Shown, all: &[(&'static Program, Ratios)]) {
    for (program, [si, _, mig]) in all {
        let name = program.name;
        let numbers = || list([("SI", *si), ("SI+MIG", *mig)].into_iter().filter_map(|(n, v)| Some((n, v?))));
        match (si, mig) {
            (Some(si), Some(mig)) => {
                let claim =
                    format!("{name}: geographical locality affects the time: SI is slower than UMA (5)");
                shown.judge(claim, Says::of(*si > 1.02), numbers());
                let claim = format!("{name}: SI+MIG is faster than SI (5)");
                shown.judge(claim, Says::of(mig < si), numbers());
            }
            _ => shown.judge(
                format!("{name}: SI is slower than UMA, SI+MIG faster than SI (5)"),
                Says::Unknown,
                "iterations have not settled; more of them may (--iterations)",
            ),
        }
    }
    let both = |(p, [_, pi, mig]): &(&'static Program, Ratios)| Some((p.name, mig.as_ref()? / pi.as_ref()?));
    let over: Vec<(&str, f64)> = all.iter().filter_map(both).collect();
    let better = over.iter().filter(|o| o.1 <= 1.02).count();
    let says = if over.is_empty() { Says::Unknown } else { Says::of(2 * better > over.len()) };
    let numbers = format!("SI+MIG over PI: {}; 2 % more counts as equal", list(over.into_iter()));
    shown.judge("migration outperforms first touch in almost all cases (6)", says, numbers);
    if let Some((_, [_, Some(pi), Some(mig)])) = all.iter().find(|(p, _)| p.name == "I-MG") {
        shown.judge(
            "I-MG: with PI and SI+MIG performance is effectively that of UMA (5)",
            Says::of(*pi <= 1.05 && *mig <= 1.05),
            format!("PI {pi:.2}, SI+MIG {mig:.2}; 5 % counts"),
        );
    }
}

/// Shares in percent: SI, PI, SI+MIG.
pub(super) fn table2(shown: &mut Shown, all: &[(&'static Program, Ratios)]) {
    for (program, [si, pi, mig]) in all {
        let name = program.name;
        if let Some(si) = si {
            shown.judge(
                format!("{name}: with SI the data is on a single node of four: about 75 % is remote (5)"),
                Says::of((60.0..=90.0).contains(si)),
                format!("{si:.1} %"),
            );
        }
        if let (Some(si), Some(mig)) = (si, mig) {
            let claim = format!("{name}: SI+MIG takes remote accesses away (5)");
            shown.judge(claim, Says::of(*mig < si / 2.0), format!("{si:.1} to {mig:.1} %; half counts"));
        }
        if let (Some(theirs), Some(pi), Some(mig)) = (program.table2[2], pi, mig) {
            let claim = format!("{name}: fewer are remote with SI+MIG than with PI ({theirs} %) (5)");
            shown.judge(claim, Says::of(mig < pi), format!("PI {pi:.1} %, SI+MIG {mig:.1} %"));
        }
    }
}

/// Overheads in seconds: 4 threads, 12 threads, 12 threads with large pages.
pub(super) fn table3(shown: &mut Shown, all: &[(&'static Program, Vec<f64>)]) {
    for (program, seconds) in all {
        let name = program.name;
        let [four, twelve, large] = seconds[..] else { continue };
        shown.judge(
            format!("{name}: 12 threads instead of 4 do not increase the overhead (5, 6)"),
            Says::of(twelve <= four * 1.15),
            format!("{four:.3} and {twelve:.3} s; 15 % more counts as equal, as theirs for I-CG"),
        );
        shown.judge(
            format!("{name}: large pages reduce it (5, 6)"),
            Says::of(large < twelve),
            format!("{twelve:.3} to {large:.3} s"),
        );
    }
}

/// Figures 1 and 2.
pub(super) fn figure(shown: &mut Shown, program: &Program, times: &Times) {
    let name = program.name;
    let (Some(moving), Some(staying)) = (times.get("SI+MIG"), times.get("SI")) else { return };
    if let [first, second, .., last] = moving.0[..] {
        let later = (second.0 as f64 - last.0 as f64).abs() / (first.0 as f64 - last.0 as f64).abs().max(1.0);
        shown.judge(
            format!("{name}: the overhead of migration is all in the first iteration (5)"),
            Says::of(first > second && later <= 0.1),
            format!("{:.3}, {:.3}, … {:.3} s", first.secs(), second.secs(), last.secs()),
        );
    }
    let wanted = program.break_even;
    let claim = format!("{name}: migration pays after {wanted} iterations (5)");
    match moving.overtakes(staying, program.iterations as usize) {
        Ok(Some(n)) => shown.judge(claim, Says::of(breaks_even(wanted, n)), format!("after {n}")),
        Ok(None) => shown.judge(claim, Says::DoesNot, format!("not within {}", program.iterations)),
        Err(why) => shown.judge(claim, Says::Unknown, why),
    }
}

/// Whether `n` iterations are what the paper says in words.
fn breaks_even(words: &str, n: usize) -> bool {
    match words {
        "the first" => n == 1,
        "two" => n <= 2,
        _ => (4..=6).contains(&n),
    }
}

/// Figure 3, by version: UMA, SI, SI+TMIG, and the same with replicas of pages.
pub(super) fn figure3(shown: &mut Shown, program: &Program, series: &[Vec<Ps>]) {
    let [uma, si, tmig, ..] = series else { return };
    let (Some(near), Some(far)) = (Series(uma.clone()).last(), Series(si.clone()).last()) else { return };
    let name = program.name;
    let ours = far.secs() / near.secs();
    if let Some(theirs) = program.table1[1] {
        shown.judge(
            format!("{name}: locality matters more here than on SF15k, where SI/UMA is {theirs} (5)"),
            Says::of(ours > theirs),
            format!("{ours:.2}"),
        );
    }
    let falls = tmig.windows(2).filter(|w| w[1].0 as f64 <= w[0].0 as f64 * 0.99).count();
    shown.judge(
        format!("{name}: transparent migration is active during several iterations (5)"),
        Says::of(falls >= 2),
        format!("{falls} of {} iterations take at least 1 % less than the one before", tmig.len()),
    );
    let of_few = |times: &[Ps]| times.iter().take(FEW).map(|t| t.secs()).sum::<f64>();
    let (with, without) = (of_few(tmig), of_few(si));
    shown.judge(
        format!("{name}: it is beneficial to migrate even if very few iterations are performed (5)"),
        Says::of(with < without),
        format!("{with:.3} and {without:.3} s for the first {}", FEW.min(tmig.len())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::PROGRAMS;
    use homenode_table::{Column, Table};

    fn shown() -> Shown {
        Shown::new(Table::new("t", 1, vec![Column::text("a", "a")]))
    }

    #[test]
    fn the_papers_own_numbers_agree_with_its_conclusions() {
        let mut s = shown();
        let one: Vec<_> = PROGRAMS.iter().map(|p| (p, [p.table1[1], p.table1[2], p.table1[3]])).collect();
        table1(&mut s, &one);
        let two: Vec<_> = PROGRAMS.iter().map(|p| (p, [p.table2[1], p.table2[2], p.table2[3]])).collect();
        table2(&mut s, &two);
        let three: Vec<_> = PROGRAMS.iter().map(|p| (p, p.table3.to_vec())).collect();
        table3(&mut s, &three);
        assert!(s.verdicts.iter().all(|v| v.says == Says::Holds), "{:#?}", s.verdicts);
        assert!(s.verdicts.len() > 20);
    }

    #[test]
    fn numbers_that_disagree_do_not_hold() {
        let mut s = shown();
        table1(&mut s, &[(&PROGRAMS[0], [Some(1.0), Some(1.0), Some(1.3)])]);
        assert!(s.verdicts.iter().all(|v| v.says == Says::DoesNot), "{:#?}", s.verdicts);
        table3(&mut s, &[(&PROGRAMS[0], vec![1.0, 2.0, 3.0])]);
        assert!(s.verdicts.iter().all(|v| v.says == Says::DoesNot), "{:#?}", s.verdicts);
    }

    #[test]
    fn migration_that_costs_more_than_it_brings_in_few_iterations_is_told() {
        let ps = |times: &[u64]| times.iter().map(|t| Ps(*t)).collect::<Vec<_>>();
        let says = |tmig: &[u64]| {
            let mut s = shown();
            figure3(&mut s, &PROGRAMS[3], &[ps(&[10; 4]), ps(&[30; 4]), ps(tmig)]);
            s.verdicts.iter().map(|v| v.says).collect::<Vec<_>>()
        };
        assert_eq!(says(&[28, 20, 12, 10]), [Says::Holds; 3]);
        assert_eq!(says(&[71, 10, 10, 10]), [Says::Holds, Says::DoesNot, Says::DoesNot]);
    }

    #[test]
    fn words_of_iterations() {
        assert!(breaks_even("two", 2) && !breaks_even("two", 3));
        assert!(breaks_even("approximately five", 5) && !breaks_even("approximately five", 2));
        assert!(breaks_even("the first", 1));
    }
}
