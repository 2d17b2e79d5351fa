//! `homenode record --on live`: the program as it is, here, with the library of `homenode run` loaded, which watches and moves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;

use homenode_log::recording::{Ended, Meta, Recording};
use homenode_runtime::driver::settings;
use homenode_runtime::nodes::Nodes;
use homenode_runtime::watch::Wanted;

use crate::args::record::RecordArgs;
use crate::args::run::{Budget, LiveArgs};
use crate::args::subject::Subject;
use crate::child::{self, Ran};
use crate::cmd::run::{Live, Policy};
use crate::error::{CliError, Context, Result};
use crate::exit::Exit;
use crate::kernels::{Kernel, Variant};
use crate::live::program::{Loadable, loadable, refuse_launcher};
use crate::live::touched::{self, Says, Touched};
use crate::output::say;
use crate::recorder::directory::{self, Target};
use crate::recorder::program::find;
use crate::recorder::{self, shown};
use crate::sighted;

/// What homenode may spend on a recording: nothing is moved that would have to pay.
const BUDGET: Budget = Budget { permille: 50, milliseconds: 2000 };

/// Why there is nothing to tell apart here, or nothing that could tell.
fn cannot(path: &Path, pretend: Option<u16>) -> Option<String> {
    if let Loadable::No(why) = loadable(path) {
        return Some(why);
    }
    let one = pretend.is_none() && Nodes::here().with_memory() < 2;
    one.then(|| "this machine has one node with memory: it is all that touches anything".into())
}

/// Whether a program can be recorded so; its reason if not.
pub(super) fn possible(path: &Path, pretend: Option<u16>) -> std::result::Result<(), String> {
    cannot(path, pretend).map_or(Ok(()), Err)
}

impl RecordArgs {
    pub(super) fn live(self, subject: Subject) -> Result<Exit> {
        let (program, args, stem) = self.of_live(subject)?;
        refuse_launcher(&program, &args).map_err(|mut e| {
            e.hint = e.hint.map(|h| h.replace("homenode run", "homenode record"));
            e
        })?;
        let path = find(&program)?;
        if let Some(why) = cannot(&path, self.pretend_nodes) {
            return Err(CliError::failed(format!("{} cannot be recorded as it runs", program.display()))
                .tried(why)
                .hint("--pretend-nodes 2 deals the CPUs into nodes; --on emulator and --on lab take any program"));
        }
        let mut command = Command::new(&path);
        command.arg0(&program).args(&args);
        if let Some(threads) = self.run.threads {
            command.env("OMP_NUM_THREADS", threads.to_string());
        }
        let mut live = Live::new()?;
        let policy = Policy { spec: "first-touch".into(), arming: "watch" };
        live.prepare(&self.as_run(), &policy, None, &path, &mut command)?;
        command.env(settings::RECORD, "1");
        let target = match &self.output {
            Some(path) => Target::Path { path: path.clone(), force: self.force },
            None => Target::Free(recorder::stem(&stem)),
        };
        let mut recording = directory::make(&target, meta(&program, &args))?;
        let ran = child::run(command, &program, &path);
        let ran = ran.inspect_err(|_| drop(directory::remove(&recording.path)))?;
        let all = touched::all(&live.folder);
        let notes = std::mem::take(&mut live.before);
        let run = sighted::Run { pretended: self.pretend_nodes.is_some(), notes: &notes };
        let (rows, objects) = sighted::write(&recording, &all, &run)?;
        end(&mut recording, &ran, &all)?;
        let text = report(&recording, &all, &ran, [rows, objects], self.quiet);
        match &self.summary {
            None => drop(std::io::stderr().write_all(text.as_bytes())),
            Some(path) => {
                if let Err(e) = fs::write(path, &text) {
                    say(format_args!("cannot write the summary {}: {e}", path.display()));
                }
            }
        }
        Ok(Exit::of_program(ran.status))
    }

    /// Program, arguments, and what the recording is called after.
    fn of_live(&self, subject: Subject) -> Result<(OsString, Vec<OsString>, OsString)> {
        match subject {
            Subject::Kernel { name, args } => {
                let kernel = Kernel::find(&name)?;
                let mut all = kernel.arguments(self.run.class.as_deref(), self.run.threads)?;
                all.extend(args);
                Ok((kernel.build(Variant::Native)?.into(), all, kernel.name.into()))
            }
            other => super::program(other, &self.run, recorder::Way::Instrumented),
        }
    }

    /// As a run that decides nothing.
    fn as_run(&self) -> LiveArgs {
        LiveArgs {
            what: None,
            policy: String::new(),
            source: self.source.unwrap_or(Wanted::Auto),
            journal: None,
            plan: None,
            pretend_nodes: self.pretend_nodes,
            budget: BUDGET,
            copy_unseen: false,
            bind: false,
            force: true,
            summary: None,
            json: false,
            quiet: false,
            run: self.run.clone(),
        }
    }
}

fn meta(program: &OsStr, args: &[OsString]) -> Meta {
    let words = std::iter::once(program).chain(args.iter().map(OsString::as_os_str));
    Meta {
        format: homenode_log::VERSION,
        homenode: env!("CARGO_PKG_VERSION").into(),
        kind: sighted::kind(&[]).into(),
        command: words.map(|w| w.to_string_lossy().into_owned()).collect(),
        environment: BTreeMap::new(),
        filter_lines: 0,
        ended: None,
    }
}

fn end(recording: &mut Recording, ran: &Ran, all: &[Touched]) -> Result<()> {
    recording.meta.kind = sighted::kind(all).into();
    recording.meta.ended = Some(Ended {
        status: ran.status.code(),
        signal: ran.status.signal(),
        elapsed_ns: u64::try_from(ran.elapsed.as_nanos()).unwrap_or(u64::MAX),
    });
    recording.save_meta().context(|| "cannot finish the recording".into())
}

/// Lines for a person; `quiet`: only what is wrong.
fn report(recording: &Recording, all: &[Touched], ran: &Ran, found: [usize; 2], quiet: bool) -> String {
    let [rows, objects] = found;
    let mut out = String::new();
    let path = shown(&recording.path);
    let seconds = ran.elapsed.as_secs_f64();
    let told: u64 = all.iter().map(|t| t.told[0]).sum();
    if rows == 0 {
        let _ = writeln!(out, "homenode: {path}: nothing was seen in {seconds:.1} s");
        let nobody = all.iter().all(|t| t.says == Says::Nothing);
        let why = match all.first() {
            None => "the library left nothing: the program ended at once, or took it out of its environment",
            Some(_) if nobody => "there is no source here that tells of touches",
            Some(_) => "it ran too short, has one thread, or no object of 64 KiB",
        };
        let _ = writeln!(out, "  ! {why}");
    } else if !quiet {
        let kind = &recording.meta.kind;
        let part = if all.iter().all(|t| t.whole) { "" } else { " in part" };
        let _ = writeln!(out, "homenode: recorded{part} ({kind}): {path}, {seconds:.1} s");
        let source = sighted::main(all).map_or("", |t| t.source.as_str());
        let _ = writeln!(out, "  {objects} objects, seen {told} times, told by {source}");
        let watching = || all.iter().filter(|t| t.state[1] > 0);
        let [state, watched] = [0, 1].map(|i| watching().map(|t| t.state[i]).sum::<u64>());
        let own: u64 = all.iter().map(|t| t.own[0]).sum();
        let _ = writeln!(
            out,
            "  homenode took {:.3} s of CPU time, and {} KiB of memory for {} MiB that were watched",
            own as f64 * 1e-9,
            state >> 10,
            watched >> 20
        );
    }
    let lost: u64 = all.iter().map(|t| t.told[2]).sum();
    if lost > 0 && !quiet {
        let _ = writeln!(out, "  ! {lost} touches are missing: there were too many at a time");
    }
    for t in all.iter().filter(|t| !t.whole) {
        let at = t.elapsed as f64 * 1e-9;
        let _ = writeln!(
            out,
            "  ! incomplete: process {} ended early: what it had seen by {at:.1} s is kept",
            t.pid
        );
    }
    if !quiet {
        let mut said = BTreeSet::new();
        for note in all.iter().flat_map(|t| &t.notes).filter(|note| said.insert(*note)) {
            let _ = writeln!(out, "  - {note}");
        }
        if rows > 0 {
            let _ = writeln!(out, "  next: homenode show {path}");
        }
    }
    out
}
