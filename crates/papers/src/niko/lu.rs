//! Figures 8 and 9: LU, whose columns change hands unless the schedule keeps them.

use std::sync::Arc;

use homenode_error::{Error, Result};
use homenode_launch::record::FILTER_LINES;
use homenode_model::Bytes;
use homenode_schemes::scheme::{Layout, Variant};
use homenode_sim::memory::{MoveWorker, Outcome, Percent};
use homenode_sim::statistics;
use homenode_table::{Cell, Column, Table};

use super::{ALL, LEAST_PAGE, Niko, PAGE, Version, digits, first_nodes};
use crate::runs::{Case, Run};
use crate::verdict::{Says, Shown};

/// Class with the matrix of the paper, 1400 by 1400.
const CLASS: &str = "A";
/// Classes with less data, and how much less, as a power of two.
const SMALLER: [(&str, u64); 2] = [("W", 8), ("S", 128)];

/// A version of section 4.2.
#[derive(Clone, Copy)]
struct LuVersion {
    /// The kernel's options.
    options: &'static [&'static str],
    policy: Version,
}

/// Automatic, manual, online, and schedule reuse (Fig. 7).
const VERSIONS: [LuVersion; 4] = [
    LuVersion { options: &["--schedule", "block"], policy: Version::Automatic },
    LuVersion { options: &["--schedule", "affinity", "--padded"], policy: Version::Manual },
    LuVersion { options: &["--schedule", "block"], policy: Version::Online },
    LuVersion { options: &["--schedule", "affinity"], policy: Version::Manual },
];

/// Why manual does not outperform automatic on 128 processors, with class W.
const MANUAL: &str = "manual: 1.10 million accesses are remote with manual and 1.61 million with automatic, and yet manual is 24 % slower (class W). Columns that are padded to pages lie a way of the cache apart for their owner, and evict each other: with caches of 64 ways instead of 2 manual is 15 % slower. All threads read the column that its owner has just written; the model sends it from its home's memory to each of them, never from the owner's cache";

/// What a version did.
struct Ran {
    outcome: Outcome,
    shared: f64,
}

impl Niko<'_> {
    fn lu(&self, table: &mut Table, processors: u32) -> Result<Vec<Ran>> {
        let class = self.ask.class_of("S", "W");
        let shrunk = match SMALLER.iter().find(|(c, _)| *c == class) {
            Some((_, s)) => *s,
            None if class == CLASS => 1,
            None => {
                return Err(Error::usage(format!("LU has no class {class} here"))
                    .hint(format!("the paper's is {CLASS}, smaller ones are W, S")));
            }
        };
        let page = Bytes((PAGE / shrunk).max(LEAST_PAGE));
        let mut part = first_nodes(&self.machine.topology_for("lu"), processors);
        for cache in &mut part.caches {
            cache.size.0 /= shrunk;
        }
        part.migration.fixed.0 = part.migration.fixed.0 * page.0 / PAGE;
        let pace = part.migration.of(page, u64::from(processors) - 1);
        let filter_lines = homenode_schemes::filter_lines(&part, FILTER_LINES);
        let machine = Arc::new(part);
        let note = format!(
            "class {class} (the paper's 1400 x 1400 is {CLASS}), all rounds simulated, caches 1/{shrunk}, pages of {} KiB",
            page.0 >> 10
        );
        if !table.notes().contains(&note) {
            table.note(note);
        }
        let ran = |version: &LuVersion| {
            let run = Run {
                more: version.options.iter().map(|o| (*o).to_owned()).collect(),
                ..Run::new(&class, processors, Variant::Parallel, filter_lines)
            };
            let case = Case {
                policy: version.policy.policy(pace),
                mover: MoveWorker::Apart,
                ..Case::new(machine.clone(), page, Layout::Spread, Percent::ZERO)
            };
            let mut outcomes = self.shop.outcomes("lu", &run, &[case])?;
            let outcome = outcomes.pop().ok_or_else(|| Error::failed("LU was not simulated"))?;
            let shared = outcome.timed.secs() + outcome.migration.secs() / 2.0;
            Ok(Ran { outcome, shared })
        };
        VERSIONS.iter().map(ran).collect()
    }

    /// Figure 8: times of LU.
    ///
    /// # Errors
    /// The kernel cannot be built, recorded or simulated.
    pub fn figure8(&self) -> Result<Shown> {
        let mut columns = vec![Column::number("processors", "processors")];
        for version in ["automatic", "manual", "online", "shared", "reuse"] {
            columns.push(Column::unit(version, version, "s"));
        }
        let mut shown = Shown::new(Table::new("niko-fig8", 1, columns));
        let most = self.most()?;
        for processors in self.processors()? {
            let ran = self.lu(&mut shown.table, processors)?;
            let [automatic, manual, online, reuse] = [0, 1, 2, 3].map(|i| ran[i].outcome.timed.secs());
            let shared = ran[2].shared;
            let mut row = vec![Cell::int(processors)];
            row.extend([automatic, manual, online, shared, reuse].map(|s| Cell::float(s, digits(s))));
            shown.table.row(row);
            if processors == most {
                let over = |a: f64, b: f64| format!("{:+.1} % on {most}", 100.0 * (a / b - 1.0));
                let mut say = |claim: &str, holds, numbers| shown.judge(claim, at(most, holds), numbers);
                say(
                    "online does not improve on round robin (4.2)",
                    shared >= automatic * 0.98,
                    over(shared, automatic) + " with 50-50 sharing",
                );
                say("manual outperforms automatic (4.2)", manual < automatic, over(manual, automatic));
                say("manual outperforms online (4.2)", manual < shared, over(manual, shared));
                let claim = "schedule reuse matches or exceeds manual (4.2)";
                say(claim, reuse <= manual * 1.05, over(reuse, manual) + "; 5 % counts as a match");
            }
        }
        shown.explain("manual outperforms automatic", MANUAL);
        shown.table.note(
            "automatic and online: block schedule from round robin; manual: columns padded to pages, dealt cyclically, \
             each updated by its owner; reuse: the same schedule with first touch, unpadded (Fig. 7)",
        );
        Ok(shown)
    }

    /// Figure 9: accesses to each node's memory.
    ///
    /// # Errors
    /// As [`Niko::figure8`].
    pub fn figure9(&self) -> Result<Shown> {
        let mut columns = vec![Column::number("node", "node")];
        for (key, title) in [
            ("automatic_local", "automatic local"),
            ("automatic_remote", "remote"),
            ("manual_local", "manual local"),
            ("manual_remote", "remote"),
            ("reuse_local", "reuse local"),
            ("reuse_remote", "remote"),
        ] {
            columns.push(Column::number(key, title));
        }
        let mut shown = Shown::new(Table::new("niko-fig9", 1, columns));
        let most = self.most()?;
        let ran = self.lu(&mut shown.table, most)?;
        let by_node = [0, 1, 3].map(|i| statistics::by_node(&ran[i].outcome));
        for node in 0..by_node[0].len() {
            let mut row = vec![Cell::int(node as u64)];
            for version in &by_node {
                row.extend([Cell::int(version[node].local), Cell::int(version[node].served)]);
            }
            shown.table.row(row);
        }
        let [automatic, manual, reuse] = [0, 1, 3].map(|i| ran[i].outcome.timed_counts.total().1);
        shown.judge(
            "as to remote accesses the schedule is as effective as manual distribution (4.2)",
            at(most, reuse as f64 <= manual as f64 * 1.1 && manual < automatic),
            format!("automatic {automatic}, manual {manual}, reuse {reuse}; 10 % more counts"),
        );
        shown.table.note(format!("{most} processors; remote: by processors of other nodes"));
        Ok(shown)
    }
}

/// What the text says of 128 processors cannot be said of fewer.
const fn at(processors: u32, holds: bool) -> Says {
    if processors == ALL { Says::of(holds) } else { Says::Unknown }
}
