//! The program of a recording.

use std::ffi::OsString;

use homenode_error::{Error, Result};
use homenode_kernels::{BuildVariant, Kernel};
use homenode_launch::record::AccessRecorder;

use crate::args::subject::{CommandSubject, RunArgs, not_a_program};
use crate::task::Terminal;

/// Program, arguments, and the name from which the recording's name is made.
pub(super) fn program(
    subject: CommandSubject,
    run: &RunArgs,
    way: AccessRecorder,
) -> Result<(OsString, Vec<OsString>, OsString)> {
    match subject {
        CommandSubject::Kernel { name, args } => {
            let kernel = Kernel::find(&name)?;
            let mut all = kernel.arguments(run.class.as_deref(), run.threads)?;
            all.extend(args);
            let variant = match way {
                AccessRecorder::Instrumented => BuildVariant::Instrumented,
                AccessRecorder::Emulated => BuildVariant::Linked,
            };
            let binary = kernel.build(variant, &Terminal::default())?;
            Ok((binary.into(), all, kernel.name.into()))
        }
        CommandSubject::Program { program, args } => match &run.class {
            None => Ok((program.clone(), args, program)),
            Some(class) => Err(Error::usage(format!("--class {class} is for kernels"))
                .hint("give a program's own options after it: -- ./app …")),
        },
        CommandSubject::Recording(path) => Err(not_a_program(&path)),
    }
}
