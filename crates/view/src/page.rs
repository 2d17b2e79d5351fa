//! The page: one file without a reference to any other.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use homenode_model::Bytes;

use crate::model::PageModel;

/// The page's program.
pub const SCRIPT: &str = include_str!("../assets/viewer.js");
/// Its looks.
pub const STYLE: &str = include_str!("../assets/viewer.css");
/// `script-src` and `style-src` of the two above: their hashes.
const HASHES: &str = include_str!("../assets/viewer.csp");

/// Most bytes of a page in a file.
pub const MOST_BYTES: usize = 5_000_000;

/// Where the page gets finer pictures from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureSource {
    /// From nobody: it is a file.
    File,
    /// From the server that it came from.
    Server,
}

/// The policy that a browser is told: nothing is loaded from anywhere, and nothing but the page's
/// own program runs.
pub fn policy(home: PictureSource) -> String {
    let connect = if home == PictureSource::Server { "'self'" } else { "'none'" };
    format!(
        "default-src 'none'; {}; connect-src {connect}; img-src data:; base-uri 'none'; form-action 'none'",
        HASHES.trim()
    )
}

/// A text between tags.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// What the page is told, as JSON that cannot end the element that it stands in.
///
/// # Errors
/// The model cannot be written as JSON.
pub fn json(model: &PageModel) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(model)?.replace('<', "\\u003c"))
}

/// The page.
///
/// # Errors
/// The model cannot be written as JSON.
pub fn write(model: &PageModel, home: PictureSource) -> Result<String, serde_json::Error> {
    Ok(around(&json(model)?, &model.summary.command, home))
}

/// The page around what [`json`] made, or around nothing: then the page asks the server for it.
pub fn around(json: &str, command: &[String], home: PictureSource) -> String {
    let mut out = String::with_capacity(json.len() + SCRIPT.len() + STYLE.len() + 4096);
    let title = escaped(&title(command));
    let finer = if home == PictureSource::Server { " data-finer=\"api\"" } else { "" };
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main id=\"app\"{finer}><noscript>This page draws with JavaScript. \
         'homenode show' prints the same recording as text.</noscript></main>\n\
         <script type=\"application/json\" id=\"model\">{json}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        policy(home)
    );
    out
}

/// The name of the page.
fn title(command: &[String]) -> String {
    let mut command = command.join(" ");
    if let Some((at, _)) = command.char_indices().nth(80) {
        command.truncate(at);
        command.push('…');
    }
    format!("{command} – homenode")
}

/// The page for a file. Finest pictures are left out until it has at most `most` bytes; at least
/// one of each object stays.
///
/// # Errors
/// The model cannot be written as JSON.
pub fn write_file(model: &mut PageModel, most: usize) -> Result<String, serde_json::Error> {
    loop {
        let page = write(model, PictureSource::File)?;
        if page.len() <= most || !coarser(model) {
            return Ok(page);
        }
    }
}

/// Writes the page for a file to its place: it is whole or not there. Returns its size.
///
/// # Errors
/// `file` names no file, or the system refuses.
pub fn save(model: &mut PageModel, file: &Path) -> io::Result<Bytes> {
    let page = write_file(model, MOST_BYTES)?;
    let name = file.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "it names no file: -o report.html writes one")
    })?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = file.with_file_name(beside);
    let written = fs::write(&beside, &page).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map(|()| Bytes(page.len() as u64))
}

/// Leaves something out, of a recording beside this one as well; says whether there was anything.
fn coarser(model: &mut PageModel) -> bool {
    let beside = model.against.as_deref_mut().is_some_and(coarser);
    coarser_alone(model) || beside
}

fn coarser_alone(model: &mut PageModel) -> bool {
    let deep = model.objects.iter().map(|o| o.levels.len()).max().unwrap_or(0);
    if deep > 1 {
        for object in model.objects.iter_mut().filter(|o| o.levels.len() == deep) {
            object.levels.remove(0);
        }
        model.levels_left_out += 1;
        return true;
    }
    let told = model.moves.told.len();
    if told > 100 {
        model.moves.told.truncate(told / 2);
        return true;
    }
    for object in &mut model.objects {
        object.touches_left_out += object.touches.len() as u64;
        object.touches.clear();
    }
    let objects = model.objects.len();
    model.others.clear();
    model.regions.truncate(100);
    if objects > 1 {
        model.objects.truncate(objects / 2);
        model.objects_without_picture += (objects - objects / 2) as u64;
        return true;
    }
    false
}
