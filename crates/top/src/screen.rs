//! The terminal: the other screen, keys without Enter, and everything as it was at the end.
//!
//! Ctrl-C stays what the terminal makes of it: the signal of an interrupt for everybody in the
//! foreground. So the program of `homenode top -- APP` gets Ctrl-C as without homenode. Ctrl-Z is
//! off, for a program that stops leaves the other screen behind.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use homenode_error::{Error, Result};
use homenode_text::human::width;
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::Modifier;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

/// The terminal of this process.
const TERMINAL: &str = "/dev/tty";
/// The other screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// As it was.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// Columns and lines of a terminal that does not say.
const UNKNOWN: (u16, u16) = (80, 24);
/// Tenths of a second that a question for keys waits.
const WAIT: u8 = 1;
/// Value of a special character that switches it off (`_POSIX_VDISABLE`).
const OFF: u8 = 0;

/// A key that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
}

/// The keys in what a terminal sends. What means nothing here is left out.
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        let sequence = match rest {
            [0x1b, b'[' | b'O', behind @ ..] => Some(behind),
            _ => None,
        };
        let Some(sequence) = sequence else {
            if (0x20..0x7f).contains(first) {
                keys.push(Key::Char(char::from(*first)));
            }
            rest = behind;
            continue;
        };
        // Parameters, then one letter or a tilde.
        let end = sequence.iter().position(|b| (0x40..0x7f).contains(b)).unwrap_or(sequence.len());
        let key = match (&sequence[..end], sequence.get(end)) {
            ([], Some(b'A')) => Some(Key::Up),
            ([], Some(b'B')) => Some(Key::Down),
            ([], Some(b'H')) | (b"1" | b"7", Some(b'~')) => Some(Key::Home),
            (b"5", Some(b'~')) => Some(Key::PageUp),
            (b"6", Some(b'~')) => Some(Key::PageDown),
            _ => None,
        };
        keys.extend(key);
        rest = sequence.get(end + 1..).unwrap_or_default();
    }
    keys
}

/// The terminal while homenode draws on it.
#[derive(Debug)]
pub struct Screen {
    file: File,
    before: Termios,
    out: Vec<u8>,
}

impl Screen {
    /// Takes over the terminal of this process.
    ///
    /// # Errors
    /// There is none, or this process is not in its foreground.
    pub fn open() -> Result<Self> {
        let failed = |what: &str, e: io::Error| {
            Error::failed("cannot draw on the terminal")
                .tried(format!("{what} {TERMINAL}: {e}"))
                .hint("--plain prints a table a second instead, --json a line")
        };
        let file = OpenOptions::new().read(true).write(true).open(TERMINAL);
        let file = file.map_err(|e| failed("open", e))?;
        let before = tcgetattr(&file).map_err(|e| failed("ask", e.into()))?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = WAIT;
        modes.special_codes[SpecialCodeIndex::VSUSP] = OFF;
        tcsetattr(&file, OptionalActions::Drain, &modes).map_err(|e| failed("set up", e.into()))?;
        let mut screen = Self { file, before, out: ENTER.into() };
        screen.flush().map_err(|e| failed("write to", e))?;
        Ok(screen)
    }

    /// The keys that were pressed, after at most [`WAIT`] tenths of a second.
    pub fn keys(&mut self) -> Vec<Key> {
        let mut bytes = [0; 256];
        match self.file.read(&mut bytes) {
            Ok(n) => keys(&bytes[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Vec::new(),
            // A process in the background may not read: whoever draws does not spin.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(u64::from(WAIT) * 100));
                Vec::new()
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody can be told that the terminal is gone.
        let _ = self.file.write_all(LEAVE.as_bytes());
        let _ = tcsetattr(&self.file, OptionalActions::Drain, &self.before);
    }
}

impl Backend for Screen {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut at = None;
        let mut modifier = Modifier::empty();
        for (x, y, cell) in content {
            if at != Some((x, y)) {
                write!(self.out, "\x1b[{};{}H", y.saturating_add(1), x.saturating_add(1))?;
            }
            if cell.modifier != modifier {
                modifier = cell.modifier;
                self.out.extend_from_slice(b"\x1b[0m");
                let codes = [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)];
                for (_, code) in codes.into_iter().filter(|(m, _)| modifier.contains(*m)) {
                    write!(self.out, "\x1b[{code}m")?;
                }
            }
            self.out.extend_from_slice(cell.symbol().as_bytes());
            at = Some((x.saturating_add(width(cell.symbol()).max(1) as u16), y));
        }
        self.out.extend_from_slice(b"\x1b[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.out.extend_from_slice(b"\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // Nothing here depends on it.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        write!(self.out, "\x1b[{};{}H", y.saturating_add(1), x.saturating_add(1))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        let sequence: &[u8] = match clear_type {
            ClearType::All => b"\x1b[2J",
            ClearType::AfterCursor => b"\x1b[J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[K",
        };
        self.out.extend_from_slice(sequence);
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(&self.file)?;
        Ok(match (size.ws_col, size.ws_row) {
            (0, _) | (_, 0) => Size::from(UNKNOWN),
            known => Size::from(known),
        })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        self.file.write_all(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_what_a_terminal_sends() {
        let all = keys(b"q\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1~\x1b[H?");
        let expected = [
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::Home,
            Key::Char('?'),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_means_nothing_here_is_left_out() {
        assert_eq!(keys(b"\x1b[1;5C\x1b[200~x"), [Key::Char('x')]);
        assert_eq!(keys("\x1b[\x1b\x03\u{e4}".as_bytes()), []);
        assert_eq!(keys(b"\x1b"), []);
    }
}
