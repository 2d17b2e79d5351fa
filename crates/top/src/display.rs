//! Shows what is shared by whoever reads: on a screen with keys; or as a table, or a line of JSON,
//! every so often where there is no terminal.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use homenode_error::{Error, Result};
use ratatui_core::backend::Backend;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Terminal;

use crate::glance::{Glance, State};
use crate::lines::{self, Choice, Look};
use crate::screen::{Key, Screen};
use crate::watch::SharedPicture;

/// How often the end is looked for while nobody can press a key.
const LOOK: Duration = Duration::from_millis(100);
/// Columns of a table where there is no terminal.
pub const COLUMNS: usize = 80;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A person pressed `q`, or nobody reads any more.
    Quit,
    /// As many as were wanted were printed.
    Counted,
    /// The program has ended, with a complete recording.
    Ended,
    /// The program is gone, and its recording has no end.
    Gone,
    /// Somebody asked to stop.
    Stopped,
}

/// In which form.
pub enum DisplayForm<'a> {
    /// On the terminal's other screen.
    Screen(Screen),
    /// A table each time.
    Plain {
        /// Where to.
        to: &'a mut dyn Write,
        /// Columns.
        columns: usize,
    },
    /// A line each time.
    Json(&'a mut dyn Write),
}

/// What is shown, how often, how many times.
pub struct Display<'a> {
    /// What.
    pub shown: &'a SharedPicture,
    /// How often.
    pub every: Duration,
    /// How many times; `None`: until something ends.
    pub times: Option<u64>,
    /// The last line that the program printed; empty: none.
    pub output: &'a dyn Fn() -> String,
    /// Whether to stop.
    pub stop: &'a dyn Fn() -> bool,
}

const fn end_of(glance: &Glance) -> Option<End> {
    match glance.state {
        State::Ended => Some(End::Ended),
        State::Gone => Some(End::Gone),
        State::Waiting | State::Runs => None,
    }
}

/// Draws on a screen.
///
/// # Errors
/// The terminal is gone.
pub fn draw<B: Backend>(
    terminal: &mut Terminal<B>,
    glance: &Glance,
    choice: &Choice,
) -> std::result::Result<(), B::Error> {
    terminal.draw(|frame| {
        let area = frame.area();
        let all = lines::screen(glance, area.width.into(), area.height.into(), choice);
        for (y, line) in (area.y..area.bottom()).zip(&all) {
            let style = match line.look {
                Look::Plain => Style::new(),
                Look::Title => Style::new().add_modifier(Modifier::REVERSED),
                Look::Heading => Style::new().add_modifier(Modifier::BOLD),
                Look::Faint => Style::new().add_modifier(Modifier::DIM),
            };
            frame.buffer_mut().set_stringn(area.x, y, &line.text, area.width.into(), style);
        }
    })?;
    Ok(())
}

/// What a key does to the choice; says whether to quit.
pub fn press(key: Key, choice: &mut Choice, objects: usize) -> bool {
    let last = objects.saturating_sub(1);
    match key {
        Key::Char('q' | 'Q') => return true,
        Key::Char('?' | 'h') => choice.help = !choice.help,
        Key::Char('p' | ' ') => choice.paused = !choice.paused,
        Key::Char('o') => (choice.order, choice.first) = (choice.order.next(), 0),
        Key::Up => choice.first = choice.first.min(last).saturating_sub(1),
        Key::Down => choice.first = (choice.first + 1).min(last),
        Key::PageUp => choice.first = choice.first.min(last).saturating_sub(10),
        Key::PageDown => choice.first = (choice.first + 10).min(last),
        Key::Home => choice.first = 0,
        Key::Char(_) => {}
    }
    false
}

impl Display<'_> {
    /// Shows until something ends it.
    ///
    /// # Errors
    /// The terminal is gone, or what is printed cannot be written.
    pub fn show(&self, form: DisplayForm<'_>) -> Result<End> {
        match form {
            DisplayForm::Screen(screen) => self.on_screen(screen),
            DisplayForm::Plain { to, columns } => self.printed(to, &|glance| lines::text(glance, columns)),
            DisplayForm::Json(to) => self.printed(to, &|glance| format!("{}\n", glance.json())),
        }
    }

    fn on_screen(&self, screen: Screen) -> Result<End> {
        let gone = |e: io::Error| Error::failed("cannot draw on the terminal any more").tried(e.to_string());
        let mut terminal = Terminal::new(screen).map_err(gone)?;
        let mut choice = Choice::default();
        let mut glance = self.shown.get();
        let (mut next, mut drawn) = (Instant::now(), 0);
        loop {
            let keys = terminal.backend_mut().keys();
            for key in &keys {
                if press(*key, &mut choice, glance.objects.len()) {
                    return Ok(End::Quit);
                }
            }
            let now = self.shown.get();
            let end = end_of(&now);
            if Instant::now() >= next || !keys.is_empty() || end.is_some() {
                if !choice.paused {
                    glance = now;
                }
                choice.output = (self.output)();
                draw(&mut terminal, &glance, &choice).map_err(gone)?;
                if Instant::now() >= next {
                    next = Instant::now() + self.every;
                    drawn += 1;
                }
            }
            if (self.stop)() {
                return Ok(End::Stopped);
            }
            if let Some(end) = end {
                return Ok(end);
            }
            if self.times.is_some_and(|times| drawn > times) {
                return Ok(End::Counted);
            }
        }
    }

    fn printed(&self, to: &mut dyn Write, text: &dyn Fn(&Glance) -> String) -> Result<End> {
        let mut printed = 0;
        loop {
            let next = Instant::now() + self.every;
            while Instant::now() < next && end_of(&self.shown.get()).is_none() && !(self.stop)() {
                std::thread::sleep(LOOK.min(self.every));
            }
            if (self.stop)() {
                return Ok(End::Stopped);
            }
            let glance = self.shown.get();
            match to.write_all(text(&glance).as_bytes()).and_then(|()| to.flush()) {
                Ok(()) => {}
                // Nobody reads any more.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(End::Quit),
                Err(e) => return Err(Error::failed("cannot print").tried(e.to_string())),
            }
            printed += 1;
            if let Some(end) = end_of(&glance) {
                return Ok(end);
            }
            if self.times.is_some_and(|times| printed >= times) {
                return Ok(End::Counted);
            }
        }
    }
}
