//! `homenode compare --on lab`: the schemes on a virtual NUMA machine.

use homenode_error::{Context, Error, Result};
use homenode_kernels::{BuildVariant, Kernel};
use homenode_lab::run::{Monitoring, Program};
use homenode_launch::places;
use homenode_launch::program;
use homenode_trials::lab::{self, LabTrial};

use crate::args::compare::CompareArgs;
use crate::args::lab::MachineArgs;
use crate::args::subject::{CommandSubject, not_a_program};
use crate::cmd::lab::Signals;
use crate::cmd::record::modelled;
use crate::exit::Exit;
use crate::task::Terminal;

/// Variable that makes the papers' programs count their timed iterations only
/// (`kernels/common/report.c`).
const ITERATIONS: &str = "HOMENODE_LAB_ITERATIONS";

/// The machine of the lab as the words of `compare` say it.
fn machine_args(args: &CompareArgs) -> Result<MachineArgs> {
    let machine = match &args.machines[..] {
        [] => None,
        [one] => Some(one.clone()),
        _ => {
            return Err(Error::usage("the lab is one machine, and several are named")
                .hint("compare on one machine at a time"));
        }
    };
    if machine.is_some() && args.lab.nodes.is_some() {
        return Err(Error::usage("a machine has its own nodes").hint("either --machine or --nodes"));
    }
    let mut all = MachineArgs { machine, ..MachineArgs::default() };
    args.lab.over(&mut all);
    Ok(all)
}

pub fn run(args: &CompareArgs) -> Result<Exit> {
    args.only_real()?;
    args.output.check(&lab::table())?;
    let machine = machine_args(args)?;
    let request = request(args, &machine)?;
    let mut signals = Signals::watch().context(|| "cannot watch for signals".into())?;
    let task = Terminal { quiet: args.quiet, ..Terminal::default() };
    let (table, failed) = lab::run(&request, &task, &mut || signals.next())?;
    let exit = args.output.print(&table)?;
    Ok(if failed && exit == Exit::Done { Exit::Partial } else { exit })
}

fn request(args: &CompareArgs, machine: &MachineArgs) -> Result<LabTrial> {
    let subject = args.program()?;
    let mut lab = machine.lab(None)?;
    let threads = args.run.threads.unwrap_or_else(|| lab.machine.cpus());
    lab.env.insert("OMP_NUM_THREADS".into(), threads.to_string().into());
    // Bind the threads, so that only pages move.
    for (name, value) in [("OMP_PROC_BIND", "true"), ("OMP_PLACES", "threads")] {
        lab.env.entry(name.into()).or_insert_with(|| value.into());
    }
    lab.sync = false;
    let topology = modelled(&lab, machine.machine.as_deref())?;
    lab.monitor = Some(Monitoring { library: places::monitor()?, machine: topology });
    let (kernel, program) = match subject {
        CommandSubject::Kernel { name, args: words } => {
            let kernel = Kernel::find(&name)?;
            lab.env.insert(ITERATIONS.into(), "1".into());
            let mut all = kernel.arguments(args.run.class.as_deref(), Some(threads))?;
            all.extend(words);
            let path = kernel.build(BuildVariant::Native, &Terminal::default())?;
            (Some(kernel), Program { name: path.clone().into(), path, args: all })
        }
        CommandSubject::Program { program: name, args } => {
            (None, Program { path: program::find(&name)?, name, args })
        }
        CommandSubject::Recording(path) => return Err(not_a_program(&path)),
    };
    let repetitions = args.repeat.unwrap_or(1);
    Ok(LabTrial { kernel, program, lab, policies: args.policies.clone(), repetitions })
}
