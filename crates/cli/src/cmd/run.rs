//! `homenode run`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use homenode_runtime::driver::{Machine, settings};
use homenode_runtime::nodes::Nodes;

use crate::args::run::LiveArgs;
use crate::args::subject::Subject;
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::kernels::{Kernel, Variant};
use crate::live::advice::Names;
use crate::live::facts;
use crate::live::policies;
use crate::live::program::{Loadable, loadable, refuse_launcher};
use crate::live::report::Report;
use crate::output::say;
use crate::plan::apply;
use crate::plan::file::Plan;
use crate::plan::threads::{self, Fit};
use crate::recorder::program::find;
use crate::{child, places, symbols};

/// Smallest static variable that is an object.
const STATIC: u64 = 64 << 10;

/// The policy as the library in the program takes it.
pub(super) struct Policy {
    pub spec: String,
    pub arming: &'static str,
}

impl Policy {
    fn of(text: &str) -> Result<Self> {
        let (spec, arming) = match text {
            "next-touch" | "next-touch=first" => ("next-touch", "first"),
            "next-touch=region" => ("next-touch", "region"),
            "next-touch=asked" => ("next-touch", "asked"),
            other => (other, ""),
        };
        // Its name and options are right or wrong on any machine.
        let machine = Machine::parse("0/4096/10.20;1/4096/20.10").expect("a machine of two nodes");
        let policy = homenode_policy::build(spec, &machine.context(homenode_model::Bytes::kib(4)))
            .map_err(|e| policies::error(text, &e))?;
        let is_told = policy.interest().counts() || spec.split(':').next() == Some("presence");
        let arming = match arming {
            "" if is_told => "watch",
            "" => "first",
            named => named,
        };
        Ok(Self { spec: spec.into(), arming })
    }
}

/// A plan that fits this run.
pub(super) struct Planned {
    plan: Plan,
    threads: usize,
    fit: Fit,
}

impl Planned {
    fn read(path: &Path, args: &LiveArgs) -> Result<Self> {
        let plan = Plan::read(path)?;
        threads::fit_ranks(&plan)?;
        let n = threads::of_run(args.run.threads, &plan);
        let fit = threads::fit(&plan, n)?;
        Ok(Self { plan, threads: n, fit })
    }

    /// Every node of the plan has memory here.
    fn check_nodes(&self, nodes: &Nodes) -> Result<()> {
        match self.plan.nodes.iter().find(|n| !nodes.has_memory(**n)) {
            None => Ok(()),
            Some(n) => Err(CliError::usage(format!(
                "the plan is for {} with {} nodes, and node {n} has no memory here",
                self.plan.machine,
                self.plan.nodes.len()
            ))
            .hint("plan anew for this machine: homenode plan REC")),
        }
    }
}

impl LiveArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let subject = self.subject()?;
        let planned = self.plan.as_deref().map(|path| Planned::read(path, &self)).transpose()?;
        let policy = match &planned {
            // Everything is decided.
            Some(_) => Policy { spec: "first-touch".into(), arming: "asked" },
            None => Policy::of(&self.policy)?,
        };
        let summary = self.summary.as_deref().map(numbered);
        if let Some(path) = &summary {
            // Better known now than after an hour.
            fs::File::create(path).context(|| format!("cannot write the summary {}", path.display()))?;
        }
        let (program, args) = self.program(subject)?;
        refuse_launcher(&program, &args)?;
        let path = find(&program)?;
        let mut command = Command::new(&path);
        command.arg0(&program).args(&args);
        if let Some(threads) = self.run.threads {
            command.env("OMP_NUM_THREADS", threads.to_string());
        }
        let mut live = Live::new()?;
        live.prepare(&self, &policy, planned.as_ref(), &path, &mut command)?;
        let ran = child::run(command, &program, &path)?;
        let text = live.report(&self, &words(&program, &args), ran.elapsed);
        match summary {
            _ if self.quiet && self.summary.is_none() => {}
            None => drop(std::io::stderr().write_all(text.as_bytes())),
            Some(path) => {
                if let Err(e) = fs::write(&path, &text) {
                    say(format_args!("cannot write the summary {}: {e}", path.display()));
                }
            }
        }
        Ok(Exit::of_program(ran.status))
    }

    fn program(&self, subject: Subject) -> Result<(OsString, Vec<OsString>)> {
        match subject {
            Subject::Kernel { name, args } => {
                let kernel = Kernel::find(&name)?;
                let mut all = kernel.arguments(self.run.class.as_deref(), self.run.threads)?;
                all.extend(args);
                Ok((kernel.build(Variant::Native)?.into(), all))
            }
            Subject::Program { program, args } => match &self.run.class {
                None => Ok((program, args)),
                Some(class) => Err(CliError::usage(format!("--class {class} is for kernels"))
                    .hint("give a program's own options after it: -- ./app …")),
            },
            Subject::Recording(path) => Err(CliError::usage(format!("{} is not a program", path.display()))),
        }
    }
}

/// A path with `%p` replaced by this process's number: several may run side by side.
fn numbered(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) => text.replace("%p", &std::process::id().to_string()).into(),
        None => path.to_owned(),
    }
}

fn words(program: &OsStr, args: &[OsString]) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    let all = std::iter::once(name).chain(args.iter().map(OsString::as_os_str));
    all.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The folder that the library in the program reports to, removed in the end; and what is known before the program runs.
pub(super) struct Live {
    pub folder: PathBuf,
    /// What a person should know.
    told: Vec<String>,
    pub before: Vec<String>,
}

impl Drop for Live {
    fn drop(&mut self) {
        // What is left in a temporary folder harms nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Live {
    pub fn new() -> Result<Self> {
        let base = env::temp_dir();
        for n in 0..1000 {
            let folder = base.join(format!("homenode-run-{}-{n}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    return Ok(Self { folder, told: Vec::new(), before: Vec::new() });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(CliError::failed("cannot make a folder for the program's report")
                        .tried(format!("make {}: {e}", folder.display()))
                        .hint("set TMPDIR to a folder that can be written"));
                }
            }
        }
        Err(CliError::failed(format!("{} is full of folders of homenode's", base.display())))
    }

    /// Sets the environment so that the program loads homenode; where it cannot, notes why, and the program runs without.
    pub fn prepare(
        &mut self,
        args: &LiveArgs,
        policy: &Policy,
        planned: Option<&Planned>,
        path: &Path,
        command: &mut Command,
    ) -> Result<()> {
        for name in settings::ALL {
            command.env_remove(name);
        }
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
        if nodes.with_memory() < 2 {
            self.before.push(
                "there is one node with memory here: nothing to move, the program ran as it is \
                 (--pretend-nodes 2 tries everything out)"
                    .into(),
            );
            return Ok(());
        }
        if let Some(planned) = planned {
            self.write_plan(planned, &nodes, path, command)?;
        }
        let library = places::live_library()?;
        let mut preload = library.into_os_string();
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        command.env(settings::RUN_DIR, &self.folder);
        command.env(settings::POLICY, &policy.spec);
        command.env(settings::ARMING, policy.arming);
        command.env(settings::MACHINE, nodes.description());
        command.env(settings::BUDGET, format!("{},{}", args.budget.permille, args.budget.milliseconds));
        command.env(settings::SOURCE, args.source.to_string());
        if let Some(folder) = &args.journal {
            let failed = || format!("cannot make the folder {} for the journal", folder.display());
            fs::create_dir_all(folder).context(failed)?;
            command.env(settings::JOURNAL, fs::canonicalize(folder).context(failed)?);
        }
        if let Some(n) = args.pretend_nodes {
            command.env(settings::PRETEND, n.to_string());
        }
        if args.force {
            command.env(settings::FORCE, "1");
        }
        if args.copy_unseen {
            command.env(settings::COPY_UNSEEN, "1");
        }
        if env::var_os("OMP_TOOL").is_some_and(|v| v == "disabled") {
            self.before.push("OMP_TOOL=disabled: libomp tells no tool of its regions".into());
        }
        if args.bind {
            self.bind(&nodes, command);
        }
        Ok(())
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

    /// The plan as the library needs it; without a number of threads in the environment, the plan's.
    fn write_plan(
        &mut self,
        planned: &Planned,
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
        let file = self.folder.join("plan");
        fs::write(&file, applied.table).context(|| format!("cannot write {}", file.display()))?;
        command.env(settings::PLAN, file);
        if env::var_os("OMP_NUM_THREADS").is_none() {
            command.env("OMP_NUM_THREADS", planned.threads.to_string());
        }
        Ok(())
    }

    fn report(&self, args: &LiveArgs, command: &str, elapsed: std::time::Duration) -> String {
        let processes = facts::all(&self.folder);
        let names: Vec<_> = processes.iter().map(Names::of).collect();
        let report = Report {
            elapsed,
            command: command.to_owned(),
            policy: match &args.plan {
                Some(path) => format!("plan {}", path.display()),
                None => args.policy.clone(),
            },
            told: self.told.clone(),
            before: self.before.clone(),
            processes: &processes,
            names: &names,
        };
        if args.json { format!("{:#}\n", report.json()) } else { report.text() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_known_before_the_program_runs() {
        let arming = |text: &str| Policy::of(text).map(|p| p.arming);
        assert_eq!(arming("next-touch"), Ok("first"));
        assert_eq!(arming("next-touch=region"), Ok("region"));
        assert_eq!(arming("round-robin"), Ok("first"));
        assert_eq!(arming("presence:gap=5ms"), Ok("watch"));
        assert_eq!([arming("competitive"), arming("daemon"), arming("out-w")], [const { Ok("watch") }; 3]);
    }

    #[test]
    fn what_names_no_policy_is_told_which_there_are() {
        let error = |text: &str| Policy::of(text).err().unwrap().to_string();
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
