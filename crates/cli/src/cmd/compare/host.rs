//! `homenode compare --on host`: the schemes on this machine.

use homenode_error::{Error, Result};
use homenode_kernels::{Kernel, Variant};
use homenode_launch::program;
use homenode_trials::host::{self, REPETITIONS, Request};

use crate::args::compare::CompareArgs;
use crate::args::subject::Subject;
use crate::exit::Exit;
use crate::task::Terminal;

pub fn run(args: &CompareArgs, task: &Terminal) -> Result<Exit> {
    args.only_real()?;
    if !args.machines.is_empty() {
        return Err(Error::usage("--on host is this machine").hint("leave --machine out, or --on host"));
    }
    args.output.check(&host::table())?;
    let (kernel, program, words) = match args.program()? {
        Subject::Kernel { name, args: words } => {
            let kernel = Kernel::find(&name)?;
            let mut all = kernel.arguments(args.run.class.as_deref(), args.run.threads)?;
            all.extend(words);
            let path = kernel.build(Variant::Native, task)?;
            (Some(kernel), path, all)
        }
        Subject::Program { program, args } => (None, program::find(&program)?, args),
        Subject::Recording(_) => return Err(Error::usage("a recording is not a program")),
    };
    let request = Request {
        kernel,
        program,
        args: words,
        policies: args.policies.clone(),
        repetitions: args.repeat.unwrap_or(REPETITIONS),
        threads: args.run.threads,
        pretend_nodes: args.pretend_nodes,
    };
    let (table, partial) = host::run(&request, task)?;
    let exit = args.output.print(&table)?;
    Ok(if partial && exit == Exit::Done { Exit::Partial } else { exit })
}
