//! `homenode top`: a run while it goes on, in the terminal.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use homenode_error::{Context as _, Error, Result};
use homenode_top::display::COLUMNS;
use homenode_top::output::Output;
use homenode_top::process::{self, NumberSource};
use homenode_top::screen::Screen;
use homenode_top::{Display, DisplayForm, End, SharedPicture, Watch, lines, watch};

use super::run::Showing;
use crate::args::run::LiveArgs;
use crate::args::top::{Looked, TopArgs};
use crate::exit::Exit;
use crate::interrupt::{Interrupt, Second};
use crate::open::data_set;
use crate::output::{say, terminal_width};

/// How pictures look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Screen,
    Plain,
    Json,
}

impl TopArgs {
    pub(super) fn run(self) -> Result<Exit> {
        match self.looked()? {
            Looked::Program(live) => self.program(*live),
            Looked::Process(pid) => match process::source(pid)? {
                NumberSource::Recording(watch) => self.watch(watch),
                NumberSource::Kernel(kernel) => self.follow(move |shown, stop| kernel.run(shown, stop)),
            },
            Looked::Recording(recording) => {
                // What is no recording is found out now.
                data_set(&recording, "look at")?;
                let (command, notes) = (String::new(), Vec::new());
                self.watch(Watch { recording, command, notes, process: None })
            }
        }
    }

    const fn shape(&self, terminal: bool) -> Shape {
        match (self.json, self.plain || !terminal) {
            (true, _) => Shape::Json,
            (_, true) => Shape::Plain,
            _ => Shape::Screen,
        }
    }

    fn watch(self, watch: Watch) -> Result<Exit> {
        self.follow(move |shown, stop| {
            watch.run(shown, stop);
            Ok(())
        })
    }

    /// Shows what `read` keeps up to date.
    fn follow(
        self,
        read: impl FnOnce(&SharedPicture, &dyn Fn() -> bool) -> Result<()> + Send + 'static,
    ) -> Result<Exit> {
        let shape = self.shape(io::stdout().is_terminal());
        let interrupt =
            Interrupt::install(Second::IsThePrograms).context(|| "cannot watch for Ctrl-C".into())?;
        let screen = (shape == Shape::Screen).then(Screen::open).transpose()?;
        let shown = SharedPicture::default();
        let (kept, stopped) = (shown.clone(), interrupt.clone());
        let reader = std::thread::spawn(move || read(&kept, &|| stopped.asked()));
        let display = Display {
            shown: &shown,
            every: Duration::from_millis(self.every),
            times: self.times,
            output: &String::new,
            // A reader that failed says why below.
            stop: &|| interrupt.asked() || reader.is_finished() && !has_end(&shown),
        };
        let mut out = io::stdout();
        let end = display.show(form(shape, screen, &mut out))?;
        interrupt.ask();
        match reader.join() {
            Ok(read) => read?,
            Err(_) => return Err(Error::failed("the recording could not be read to its end")),
        }
        if shape == Shape::Screen && end != End::Quit {
            // The other screen is gone; what was on it stays.
            let _ = out.write_all(lines::text(&shown.get(), columns()).as_bytes());
        }
        Ok(if end == End::Gone { Exit::Partial } else { Exit::Done })
    }

    /// Runs a program, and shows its recording.
    fn program(self, live: LiveArgs) -> Result<Exit> {
        let shape = self.shape(io::stderr().is_terminal());
        let (every, times) = (Duration::from_millis(self.every), self.times);
        live.run_shown(Some(&mut Beside {
            shape,
            every,
            times,
            running: None,
            shown: SharedPicture::default(),
        }))
    }
}

/// Whether there is nothing more to come.
fn has_end(shown: &SharedPicture) -> bool {
    matches!(shown.get().state, homenode_top::State::Ended | homenode_top::State::Gone)
}

fn columns() -> usize {
    terminal_width().map_or(COLUMNS, usize::from)
}

fn form<'a>(shape: Shape, screen: Option<Screen>, to: &'a mut dyn Write) -> DisplayForm<'a> {
    match (shape, screen) {
        (Shape::Json, _) => DisplayForm::Json(to),
        (_, Some(screen)) => DisplayForm::Screen(screen),
        _ => DisplayForm::Plain { to, columns: columns() },
    }
}

/// Beside a program that homenode runs.
struct Beside {
    shape: Shape,
    every: Duration,
    times: Option<u64>,
    running: Option<Running>,
    shown: SharedPicture,
}

struct Running {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    output: Option<Arc<Output>>,
}

impl Showing for Beside {
    fn begin(
        &mut self,
        recording: &Path,
        shown: &str,
        notes: &[String],
        command: &mut Command,
    ) -> Result<()> {
        let screen = (self.shape == Shape::Screen).then(Screen::open).transpose()?;
        let output = match screen {
            Some(_) => Output::keep(command).context(|| "cannot keep the program's output".into())?,
            None => None,
        };
        let output = output.map(Arc::new);
        let stop = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            recording: recording.into(),
            command: shown.into(),
            notes: notes.to_vec(),
            process: None,
        };
        let (to, ends) = (self.shown.clone(), Arc::clone(&stop));
        let reader = std::thread::spawn(move || watch.run(&to, &|| ends.load(Ordering::Relaxed)));
        let (shape, every, times) = (self.shape, self.every, self.times);
        let (from, ends, kept) = (self.shown.clone(), Arc::clone(&stop), output.clone());
        let drawer = std::thread::spawn(move || {
            let display = Display {
                shown: &from,
                every,
                times,
                output: &|| kept.as_ref().map(|o| o.last()).unwrap_or_default(),
                stop: &|| ends.load(Ordering::Relaxed),
            };
            if let Err(e) = display.show(form(shape, screen, &mut io::stderr())) {
                say(&e);
            }
            // Somebody quit, and the program goes on with the terminal.
            kept.iter().for_each(|o| o.free());
        });
        self.running = Some(Running { stop, threads: vec![reader, drawer], output });
        Ok(())
    }

    fn ended(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.stop.store(true, Ordering::Relaxed);
        for thread in running.threads {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        running.output.and_then(Arc::into_inner).into_iter().for_each(Output::end);
    }

    fn complete(&mut self, recording: &Path) {
        let last = watch::last(recording, &self.shown.get());
        let text = match self.shape {
            Shape::Json => format!("{}\n", last.json()),
            Shape::Screen | Shape::Plain => lines::text(&last, columns()) + "\n",
        };
        // Nobody can be told that stderr is gone.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
