//! `homenode compare --on host`: the schemes on this machine.

use std::sync::Arc;

use homenode_error::{Error, Result};
use homenode_kernels::{BuildVariant, Kernel};
use homenode_launch::program;
use homenode_schemes as schemes;
use homenode_trials::host::{self, HostTrial, Prediction, REPETITIONS};

use crate::args::compare::CompareArgs;
use crate::args::subject::{CommandSubject, not_a_program};
use crate::exit::Exit;
use crate::task::Terminal;

pub fn run(args: &CompareArgs, task: &Terminal) -> Result<Exit> {
    args.only_real()?;
    let prediction = prediction(args)?;
    args.output.check(&host::table())?;
    let (kernel, program, words) = match args.program()? {
        CommandSubject::Kernel { name, args: words } => {
            let kernel = Kernel::find(&name)?;
            let mut all = kernel.arguments(args.run.class.as_deref(), args.run.threads)?;
            all.extend(words);
            let path = kernel.build(BuildVariant::Native, task)?;
            (Some(kernel), path, all)
        }
        CommandSubject::Program { program, args } => (None, program::find(&program)?, args),
        CommandSubject::Recording(path) => return Err(not_a_program(&path)),
    };
    let request = HostTrial {
        kernel,
        program,
        args: words,
        policies: args.policies.clone(),
        repetitions: args.repeat.unwrap_or(REPETITIONS),
        threads: args.run.threads,
        pretend_nodes: args.pretend_nodes,
        prediction,
    };
    let (table, partial) = host::run(&request, task)?;
    let exit = args.output.print(&table)?;
    Ok(if partial && exit == Exit::Done { Exit::Partial } else { exit })
}

/// What predicts the times: a recording, on one machine.
fn prediction(args: &CompareArgs) -> Result<Option<Prediction>> {
    let Some(recording) = args.predict.clone() else {
        return match args.machines.is_empty() {
            true => Ok(None),
            false => Err(Error::usage("--on host is this machine").hint(
                "leave --machine out, or --on host; with --predict REC, --machine is what is simulated",
            )),
        };
    };
    let name = match &args.machines[..] {
        [] => "this",
        [one] => one,
        _ => {
            return Err(Error::usage("--predict simulates one machine, and several are named")
                .hint("name one with --machine"));
        }
    };
    let machine = Arc::new(schemes::machine(name)?.topology);
    Ok(Some(Prediction { recording, machine }))
}
