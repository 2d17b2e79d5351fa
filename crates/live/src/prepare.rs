//! What stands between a program and its run: the environment that loads the library of homenode,
//! and the folder with the settings that the library reads and the facts that it leaves.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use homenode_dataset::DatasetMeta;
use homenode_error::{Context, Error, Result};
use homenode_launch::loadable::{Loadable, loadable};
use homenode_launch::preload::preload;
use homenode_launch::{places, schedule};
use homenode_plan::apply;
use homenode_plan::threads::Fit;
use homenode_runtime::nodes::Nodes;
use homenode_runtime::watch::Wanted;
use homenode_scratch::Scratch;
use homenode_symbols as symbols;
use homenode_verdict::advice::SourceNames;
use homenode_verdict::facts;
use homenode_verdict::report::RunReport;
use homenode_wire::facts::Facts;
use homenode_wire::schedule::RequestedSchedule;
use homenode_wire::settings::{self, MoveWhile, Settings};
use homenode_wire::{Message, plan};

use crate::budget::RunBudget;
use crate::planned::FittingPlan;
use crate::policy::RunPolicy;

/// Smallest static variable that is an object, in bytes.
const STATIC: u64 = 64 << 10;

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct RunOptions<'a> {
    /// Which page moves where.
    pub policy: RunPolicy,
    /// A plan that says where each page lives; the policy then has nothing to decide.
    pub planned: Option<FittingPlan>,
    /// What tells who touches which page.
    pub source: Wanted,
    /// The CPUs are dealt into this many nodes.
    pub pretend_nodes: Option<u16>,
    /// CPU time that homenode may spend; `None`: little until moving shows a gain.
    pub budget: Option<RunBudget>,
    /// Everything moves that the policy names, and nobody judges whether that pays.
    pub force: bool,
    /// Pages are copied also where the program's changes of its memory cannot all be seen.
    pub copy_unseen: bool,
    /// When pages with a known target move.
    pub move_while: MoveWhile,
    /// OpenMP's threads are bound to CPUs, node by node.
    pub bind: bool,
    /// Large allocations begin on pages.
    pub align: bool,
    /// The folder for what the policy saw and decided, which is made if it is not there.
    pub journal: Option<&'a Path>,
    /// Who hands out the iterations of loops; `None`: the program.
    pub schedule: Option<RequestedSchedule>,
    /// The file with schedules to replay.
    pub schedule_from: Option<&'a Path>,
    /// The program is watched for a recording, and nothing moves.
    pub record: bool,
    /// The folder that the library streams its events to.
    pub stream: Option<PathBuf>,
}

/// The folder that the library in the program reports to, and what is known before the program
/// runs. The folder is removed at the end.
#[derive(Debug)]
pub struct RunFolder {
    folder: Scratch,
    /// What a person should know of the run.
    pub told: Vec<String>,
    /// What is known before the program runs, such as why it runs without homenode.
    pub before: Vec<String>,
}

impl RunFolder {
    /// Makes the folder.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: Scratch::new("run")?, told: Vec::new(), before: Vec::new() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the environment so that the program at `path` loads homenode, and writes the settings
    /// for it. Where the program cannot load homenode, notes why, and the program runs without.
    ///
    /// # Errors
    /// The plan does not fit the nodes, homenode's own files are not found, or the system refuses
    /// to write.
    pub fn prepare(&mut self, args: &RunOptions<'_>, path: &Path, command: &mut Command) -> Result<()> {
        command.env_remove(settings::RUN_DIR);
        if let Loadable::No(why) = loadable(path) {
            self.before.push(format!("{why}; it ran as it is"));
            return Ok(());
        }
        let nodes = Nodes::here();
        let nodes = match args.pretend_nodes {
            Some(n) => nodes.pretend(n),
            None => nodes,
        };
        self.before.extend(nodes.hidden.iter().cloned());
        let asked = args.schedule;
        if nodes.with_memory() < 2 && asked.is_none() && !args.align {
            self.before.push(
                "there is one node with memory here: nothing to move, the program ran as it is \
                 (--pretend-nodes 2 tries everything out)"
                    .into(),
            );
            return Ok(());
        }
        if nodes.with_memory() < 2 && asked.is_none() {
            self.before.push("there is one node with memory here; large allocations begin on pages".into());
        }
        if let Some(planned) = &args.planned {
            self.write_plan(planned, &nodes, path, command)?;
        }
        let library = places::live_library()?;
        let mut others = env::var_os("LD_PRELOAD").unwrap_or_default();
        let loops = asked.map(|_| places::loops_library()).transpose()?;
        let preloaded = [Some(library), loops].into_iter().flatten().try_for_each(|library| {
            others = preload(&library, self.folder(), Some(&others))?;
            Ok::<(), String>(())
        });
        match preloaded.map(|()| others) {
            Ok(preload) => command.env("LD_PRELOAD", preload),
            Err(why) => {
                self.before.push(format!("{why}; the program ran as it is"));
                return Ok(());
            }
        };
        command.env(settings::RUN_DIR, self.folder());
        let settings = Settings {
            policy: args.policy.spec.clone(),
            arming: args.policy.arming,
            machine: nodes.machine(),
            pretend: args.pretend_nodes.is_some(),
            budget: args.budget.unwrap_or_default().into(),
            trial: args.budget.is_none() && !args.force,
            force: args.force,
            plan: args.planned.is_some(),
            source: args.source,
            copy_unseen: args.copy_unseen,
            move_while: args.move_while,
            journal: args.journal.map(journal).transpose()?,
            record: args.record,
            stream: args.stream.clone(),
            schedule: asked,
            align: args.align,
        };
        if let Some(from) = args.schedule_from {
            schedule::lay(from, self.folder())?;
        }
        self.leave(settings::FILE, &settings)?;
        if env::var_os("OMP_TOOL").is_some_and(|v| v == "disabled") {
            self.before.push("OMP_TOOL=disabled: libomp tells no tool of its regions".into());
        }
        if args.bind {
            self.bind(&nodes, command);
        }
        Ok(())
    }

    /// A file in the folder of the run, for the library in the program.
    fn leave<M: Message>(&self, name: &str, message: &M) -> Result<()> {
        let file = self.folder().join(name);
        let failed = || format!("cannot write {}", file.display());
        let bytes =
            homenode_wire::encode(message).map_err(|e| Error::failed(failed()).tried(e.to_string()))?;
        fs::write(&file, bytes).context(failed)
    }

    fn bind(&mut self, nodes: &Nodes, command: &mut Command) {
        let set = |name: &str| env::var_os(name).is_some_and(|v| !v.is_empty());
        if set("OMP_PROC_BIND") || set("OMP_PLACES") || set("GOMP_CPU_AFFINITY") || set("KMP_AFFINITY") {
            self.before
                .push("--bind: the environment says already where threads are bound, and that holds".into());
            return;
        }
        command.env("OMP_PLACES", nodes.places()).env("OMP_PROC_BIND", "close");
    }

    /// The plan as the library needs it; without a number of threads in the environment, the
    /// plan's.
    fn write_plan(
        &mut self,
        planned: &FittingPlan,
        nodes: &Nodes,
        path: &Path,
        command: &mut Command,
    ) -> Result<()> {
        planned.check_nodes(nodes)?;
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let applied =
            apply::table(&planned.plan, planned.threads, &path, &symbols::statics_of(&path, STATIC));
        self.before.extend(applied.notes);
        if let Fit::Scaled(text) = &planned.fit {
            self.told.push(text.clone());
        }
        self.leave(plan::FILE, &applied.table)?;
        if env::var_os("OMP_NUM_THREADS").is_none() {
            command.env("OMP_NUM_THREADS", planned.threads.to_string());
        }
        Ok(())
    }

    /// Adds to a recording's description what else is known: the verdict, the policy's `name`, the
    /// notes.
    pub fn complete(&self, name: &str, meta: &mut DatasetMeta) {
        let verdict = |f: &Facts| f.guard.to_string();
        meta.verdict = facts::all(self.folder()).whole.first().map(verdict);
        meta.policy = Some(name.into());
        meta.notes.extend(self.before.iter().cloned());
    }

    /// Hands the report of the ended run to `shown`. `policy`: its name.
    pub fn report<R>(
        &self,
        policy: &str,
        command: &str,
        elapsed: Duration,
        shown: impl FnOnce(&RunReport<'_>) -> R,
    ) -> R {
        let mut left = facts::all(self.folder());
        let room = || fs::write(self.folder().join("room"), [0; 1 << 16]);
        if let (true, Err(e)) = (left.whole.is_empty(), room()) {
            let folder = self.folder().display();
            left.damaged.push(format!(
                "there is no room for its report in {folder}: {e}; set TMPDIR to a folder that has"
            ));
        }
        let names: Vec<_> = left.whole.iter().map(SourceNames::of).collect();
        shown(&RunReport {
            elapsed,
            command: command.into(),
            policy: policy.into(),
            told: self.told.clone(),
            before: self.before.iter().chain(&left.damaged).cloned().collect(),
            processes: &left.whole,
            names: &names,
        })
    }
}

/// The folder for journals, which is made if it is not there.
fn journal(folder: &Path) -> Result<PathBuf> {
    let failed = || format!("cannot make the folder {} for the journal", folder.display());
    fs::create_dir_all(folder).context(failed)?;
    fs::canonicalize(folder).context(failed)
}
