//! `homenode view`: a recording as a page, from a server on this machine or in one file.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use homenode_dataset::{Dataset, Table, tables};
use homenode_error::{Context as _, Error, Result};
use homenode_log::recording::Recording;
use homenode_report::Report;
use homenode_task::Task as _;
use homenode_view::page::{self, Home};
use homenode_view::server::{Server, Site};
use homenode_view::{Budget, Model, build};

use super::show::answer;
use crate::args::view::ViewArgs;
use crate::exit::Exit;
use crate::human;
use crate::open::{Opened, Simulation, open};
use crate::output::to_stdout;
use crate::task::Terminal;

/// Bytes of accesses above which progress is shown.
const LARGE: u64 = 64 << 20;
/// Columns of the first lines on the page.
const COLUMNS: usize = 80;

impl ViewArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let set = match open(&self.recording, &Simulation::default())? {
            Opened::Dataset(set) => *set,
            Opened::NeedsSimulation => {
                // What is no recording at all is told as such.
                Recording::open(&self.recording).context(|| "cannot view".into())?;
                let shown = self.recording.display();
                return Err(Error::usage(format!("{shown} does not tell where pages lived"))
                    .tried("open it as a data set: it is a recording of accesses alone")
                    .hint(format!(
                        "'homenode compare {shown} --keep DIR' simulates it: view a recording in DIR"
                    )));
            }
        };
        let task = Terminal::watching(self.quiet)?;
        // The port is taken before the tables are read: a wrong one is told at once.
        let server = match &self.output {
            Some(_) => None,
            None => Some(listen(self.port.unwrap_or(0))?),
        };
        if set.size_of(tables::Access::NAME) > LARGE {
            task.remark(&"reading all tables; a large recording takes a while");
        }
        let report = Report::of(&set);
        let mut model = model(&set, &report, server.is_some(), &task)?;
        let whole = report.summary.whole;
        match (server, &self.output) {
            (Some(server), _) => {
                self.serve(server, &model, set, &report, &task)?;
                // Ctrl-C is how this ends; the page said what is missing.
                return Ok(Exit::Done);
            }
            (None, Some(file)) => write(&mut model, file, self.quiet)?,
            (None, None) => return Err(Error::failed("neither a file nor a server is wanted")),
        }
        Ok(if whole { Exit::Done } else { Exit::Partial })
    }

    fn serve(
        &self,
        server: Server,
        model: &Model,
        set: Dataset,
        report: &Report,
        task: &Terminal,
    ) -> Result<()> {
        let page = page::write(model, Home::Server).context(|| "cannot write the page".into())?;
        let site = Site::new(page, set, report);
        let (url, port) = (server.url(), server.port());
        to_stdout(&format!(
            "{url}\n\
             from another machine: ssh -L {port}:127.0.0.1:{port} THIS-HOST, then open the same address\n\
             Ctrl-C ends it\n"
        ))?;
        if !self.no_browser {
            start_browser(&url);
        }
        server.run(site, &|| task.stop_asked());
        Ok(())
    }
}

fn listen(port: u16) -> Result<Server> {
    Server::listen(port).context(|| "cannot serve the page".into()).map_err(|error| match port {
        0 => error,
        _ => error.hint("leave --port out: any free port will do; or write a file with -o"),
    })
}

/// What the page is told; stops when Ctrl-C asks.
fn model(set: &Dataset, report: &Report, served: bool, task: &Terminal) -> Result<Model> {
    let budget = if served { Budget::SERVER } else { Budget::FILE };
    let size = set.size_of(tables::Access::NAME);
    let expected = set.meta().rows.get(tables::Access::NAME).copied().filter(|_| size > LARGE);
    let mut progress = expected.map(|rows| task.progress("drawing", Some(rows)));
    let mut before = 0;
    let mut model = build(set, report, budget, &mut |rows| {
        if let Some(progress) = &mut progress {
            progress.advance(rows - before);
            before = rows;
        }
        !task.stop_asked()
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    if model.stopped {
        return Err(Error::interrupted());
    }
    model.answer = answer::lines(report, COLUMNS);
    let missing = answer::partial(&report.summary);
    if !missing.is_empty() {
        model.answer.insert(0, missing.trim_end().to_owned());
        model.answer.truncate(3);
    }
    Ok(model)
}

/// Writes the page beside its place first: a file of that name is whole or not there.
fn write(model: &mut Model, file: &Path, quiet: bool) -> Result<()> {
    let page = page::write_file(model, page::MOST_BYTES).context(|| "cannot write the page".into())?;
    let name = file.file_name().ok_or_else(|| {
        Error::usage(format!("{} names no file", file.display())).hint("-o report.html writes one")
    })?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = file.with_file_name(beside);
    let written = fs::write(&beside, &page).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.context(|| format!("cannot write {}", file.display()))?;
    if quiet {
        return Ok(());
    }
    let size = human::bytes(homenode_model::Bytes(page.len() as u64));
    to_stdout(&format!("{}: {size}, one page without a reference to any other\n", file.display()))
}

/// Starts the user's browser where there is a screen for it. What fails is nobody's error: the address
/// is printed.
fn start_browser(url: &str) {
    let there = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if !there("DISPLAY") && !there("WAYLAND_DISPLAY") {
        return;
    }
    let mut opener = Command::new("xdg-open");
    opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = opener.spawn() {
        std::thread::spawn(move || child.wait());
    }
}
