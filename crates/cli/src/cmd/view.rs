//! `homenode view`: a recording as a page, from a server on this machine or in one file.

use std::path::Path;

use homenode_dataset::Dataset;
use homenode_error::{Context as _, Error, Result};
use homenode_task::Task as _;
use homenode_text::answer::not_whole;
use homenode_text::human;
use homenode_view::browser;
use homenode_view::findings::{self, Findings};
use homenode_view::job::{JobView, More};
use homenode_view::live::{Follow, Watching};
use homenode_view::server::Server;

use super::explain::command;
use crate::args::view::ViewArgs;
use crate::exit::Exit;
use crate::open::{Simulation, open};
use crate::output::to_stdout;
use crate::task::Terminal;

impl ViewArgs {
    pub(super) fn run(self) -> Result<Exit> {
        let task = Terminal::watching(self.quiet)?;
        let source = self.source.clone().unwrap_or_else(|| ".".into());
        // Take the port before reading anything, so that a wrong one fails at once.
        let server = match &self.output {
            None => Some(listen(self.port.unwrap_or(0))?),
            Some(_) => None,
        };
        let server = match server {
            Some(server) if self.live => {
                let words = Dataset::open(&self.recording).map(|set| set.meta().command.clone());
                let (recording, command) = (self.recording.clone(), command(&words.unwrap_or_default()));
                self.tell(&server)?;
                let watching = Watching::start(server, Follow { recording, command, source: Some(source) });
                watching.until(&|| task.stop_asked());
                return Ok(Exit::Done);
            }
            other => other,
        };
        let explain = |set: &Dataset, more: More<'_>| self.findings(set, more, &task);
        let sets = self.sets(&task)?;
        let job = JobView { sets, source: Some(&source), explain: &explain, task: &task };
        match (server, &self.output) {
            // Ctrl-C ends the server. The page itself says what is missing.
            (Some(server), _) => {
                self.tell(&server)?;
                job.serve(server).map(|()| Exit::Done)
            }
            (None, Some(file)) => {
                let (size, missing) = job.write(file)?;
                if let Some(line) = not_whole(&missing) {
                    to_stdout(&(line + "\n"))?;
                }
                if !self.quiet {
                    let (file, size) = (file.display(), human::bytes(size));
                    to_stdout(&format!("{file}: {size}, one page without a reference to any other\n"))?;
                }
                Ok(if missing.is_empty() { Exit::Done } else { Exit::Partial })
            }
            (None, None) => Err(Error::failed("neither a file nor a server is wanted")),
        }
    }

    /// The recording, and the one to compare it with.
    fn sets(&self, task: &Terminal) -> Result<Vec<Dataset>> {
        let how = Simulation {
            machine: self.machine.as_deref(),
            policy: self.policy.as_deref(),
            ..Simulation::default()
        };
        let mut sets = vec![open(&self.recording, &how, task)?];
        if let Some(other) = &self.against {
            let path = Path::new(other);
            sets.push(match path.exists() {
                true if Dataset::is_at(path) => open(path, &Simulation::default(), task)?,
                true => open(path, &how, task)?,
                false if Dataset::is_at(&self.recording) => {
                    return Err(Error::usage(format!("there is no recording {other}"))
                        .hint("--against takes a policy only where REC can be simulated"));
                }
                false => open(&self.recording, &Simulation { policy: Some(other), ..how }, task)?,
            });
        }
        Ok(sets)
    }

    fn findings(&self, set: &Dataset, more: More<'_>, task: &Terminal) -> Findings {
        let command = command(&set.meta().command);
        if set.path().is_some() || Dataset::is_at(&self.recording) {
            return findings::of(set, &command, more);
        }
        let machine = self.machine.as_deref();
        findings::simulated(&self.recording, machine, &command, task).unwrap_or_else(|e| Findings::none(&e))
    }

    fn tell(&self, server: &Server) -> Result<()> {
        let url = server.url();
        to_stdout(&(browser::directions(&url, server.port()) + "Ctrl-C ends it\n"))?;
        if !self.no_browser {
            browser::start(&url);
        }
        Ok(())
    }
}

pub(super) fn listen(port: u16) -> Result<Server> {
    Server::listen(port).context(|| "cannot serve the page".into()).map_err(|error| match port {
        0 => error,
        _ => error.hint("leave --port out: any free port will do; or write a file with -o"),
    })
}
