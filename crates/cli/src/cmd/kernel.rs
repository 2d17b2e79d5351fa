//! `homenode kernel`: the papers' programs.

use std::ffi::OsString;
use std::process::Command;

use homenode_error::{Context, Error, FailureKind, Result};
use homenode_kernels::{self as kernels, BuildVariant, Kernel};
use homenode_table::{Cell, Column, Table};

use crate::args::kernel::{KernelArgs, KernelCommand};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::output::say;
use crate::task::Terminal;

impl KernelArgs {
    pub(super) fn run(self) -> Result<Exit> {
        match self.command {
            KernelCommand::List { output } => output.print(&list(&kernels::all()?)),
            KernelCommand::Build { names } => build(&names),
            KernelCommand::Run { name, class, threads, args } => run(&name, class.as_deref(), threads, &args),
        }
    }
}

fn list(kernels: &[Kernel]) -> Table {
    let columns = vec![
        Column::text("kernel", "kernel"),
        Column::text("language", "language"),
        Column::text("classes", "classes and sizes"),
        Column::text("memory", "memory"),
        Column::text("about", "about"),
        Column::text("shows", "shows"),
        Column::text("source", "source"),
    ];
    let mut table = Table::new("kernel-list", 1, columns);
    for k in kernels {
        let classes: Vec<String> = k
            .classes()
            .map(|(class, size)| format!("{class}{} {size}", if class == k.default_class { "*" } else { "" }))
            .collect();
        let least = k.classes().next().and_then(|(c, _)| k.memory.get(c));
        let most = k.classes().last().and_then(|(c, _)| k.memory.get(c));
        let memory = match (least, most) {
            (Some(least), Some(most)) if least != most => Cell::text(format!("{least} to {most}")),
            (Some(one), _) => Cell::text(one.as_str()),
            _ => Cell::missing("the manifest does not say"),
        };
        table.row(vec![
            Cell::text(k.name.as_str()),
            Cell::text(k.language.as_str()),
            Cell::text(classes.join(", ")),
            memory,
            Cell::text(k.about.as_str()),
            Cell::text(k.shows.as_str()),
            Cell::text(k.source.as_str()),
        ]);
    }
    table.note("*: the class when none is given");
    table.note("kernel:NAME stands where a program may stand: 'homenode record kernel:nas-cg --class W'");
    table
}

fn build(names: &[String]) -> Result<Exit> {
    let kernels = match names {
        [] => kernels::all()?,
        names => names.iter().map(|n| Kernel::find(n)).collect::<Result<_>>()?,
    };
    let mut failures: Vec<Error> = Vec::new();
    let mut built = 0;
    for kernel in &kernels {
        for variant in [BuildVariant::Native, BuildVariant::Instrumented] {
            match kernel.build(variant, &Terminal::default()) {
                Ok(path) => {
                    built += 1;
                    say(format_args!("{} ({}): {}", kernel.name, variant.name(), path.display()));
                }
                Err(error) => failures.push(error),
            }
        }
    }
    let Some(last) = failures.pop() else { return Ok(Exit::Done) };
    failures.iter().for_each(say);
    Err(if built > 0 { last.kind(FailureKind::Partial) } else { last })
}

fn run(name: &str, class: Option<&str>, threads: Option<u32>, args: &[OsString]) -> Result<Exit> {
    let kernel = Kernel::find(name)?;
    let own = kernel.arguments(class, threads)?;
    let binary = kernel.build(BuildVariant::Native, &Terminal::default())?;
    // Ctrl-C is the kernel's.
    let _interrupt =
        Interrupt::install(Second::IsThePrograms).context(|| "cannot watch for Ctrl-C".into())?;
    let mut command = Command::new(&binary);
    command.args(own).args(args);
    if let Some(threads) = threads {
        command.env("OMP_NUM_THREADS", threads.to_string());
    }
    let status = command.status().map_err(|e| {
        Error::failed(format!("cannot run {name}"))
            .tried(format!("start {}: {e}", binary.display()))
            .kind(FailureKind::of_start(&e))
    })?;
    Ok(Exit::of_program(status))
}
