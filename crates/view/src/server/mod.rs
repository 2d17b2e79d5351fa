//! The page from a server on the loopback interface, for one person.
//!
//! - Only this machine reaches it: it listens on 127.0.0.1.
//! - The path begins with a token of 128 random bits. Other users of this machine do not know it.
//! - `Host` must be a loopback name: a site that resolves its own name to 127.0.0.1 is refused.
//! - `Origin` and `Sec-Fetch-ServedContent`, where a browser sends them, must be the page's own.
//! - Nothing can be changed: only GET and HEAD are answered, and no path of the system is ever
//!   opened.
//! - A request's head, its time and the number of connections are bounded.

mod request;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use homenode_dataset::Dataset;
use homenode_model::ObjectId;
use homenode_report::Unit;
use homenode_report::time::Timeline;
use serde::Serialize;

pub use request::{HttpRequest, Refusal, read};

use crate::history;
use crate::model::PageModel;
use crate::opened::Opened;
use crate::page::{self, PictureSource};
use crate::pulse::Pulse;
use crate::tiles::build::{Window, finer};
use crate::tiles::nodes::RecordedNodes;
use crate::tiles::pyramid::Pyramid;

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 32;
/// How long a browser may take to send or to take something.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the server looks whether somebody asked it to stop.
const LOOK: Duration = Duration::from_millis(25);

/// What fails of a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The port is taken, or not allowed.
    #[error("listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port; 0 is any.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// There are no random bytes.
    #[error("read /dev/urandom for a token: {0}")]
    Random(io::Error),
}

/// The tables of a recording, for finer pictures.
#[derive(Debug)]
struct Tables {
    set: Dataset,
    /// Its intervals, which are read when they are first needed.
    timeline: OnceLock<Timeline>,
    nodes: RecordedNodes,
    units: BTreeMap<ObjectId, Unit>,
    pyramid: OnceLock<Arc<Pyramid>>,
}

impl Tables {
    fn new(
        set: Dataset,
        nodes: RecordedNodes,
        units: BTreeMap<ObjectId, Unit>,
        pyramid: Option<Arc<Pyramid>>,
    ) -> Self {
        let pyramid = pyramid.map_or_else(OnceLock::new, OnceLock::from);
        Self { set, timeline: OnceLock::new(), nodes, units, pyramid }
    }

    fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| Timeline::of(&self.set))
    }

    fn of(opened: &Opened) -> Self {
        let nodes = RecordedNodes::of(&opened.set, &opened.report);
        let unit = |o: &homenode_report::objects::ObjectReport| Some((o.object?, o.remote.of));
        let units = opened.report.objects.iter().filter_map(unit).collect();
        Self::new(opened.set.clone(), nodes, units, opened.pyramid.clone())
    }
}

/// What the page shows: its data, and the recordings that the data is of.
#[derive(Debug, Default)]
pub struct ServedPage {
    model: String,
    command: Vec<String>,
    tables: Vec<Tables>,
}

impl ServedPage {
    /// A page of recordings: the one, and the one beside it if there is one.
    ///
    /// # Errors
    /// The model cannot be written as JSON.
    pub fn new(model: &PageModel, opened: &[Opened]) -> Result<Self, serde_json::Error> {
        let tables = opened.iter().map(Tables::of).collect();
        Ok(Self { model: page::json(model)?, command: model.summary.command.clone(), tables })
    }
}

impl ServedPage {
    /// What was drawn of a recording before, as JSON.
    pub(crate) fn kept(
        model: String,
        set: Dataset,
        nodes: RecordedNodes,
        units: BTreeMap<ObjectId, Unit>,
    ) -> Self {
        let command = set.meta().command.clone();
        Self { model, command, tables: vec![Tables::new(set, nodes, units, None)] }
    }

    /// Draws finer pictures of the first recording from this from now on.
    pub(crate) fn draw_from(&self, pyramid: Pyramid) {
        if let [tables, ..] = &self.tables[..] {
            let _ = tables.pyramid.set(Arc::new(pyramid));
        }
    }

    /// What the page is told, as JSON.
    pub fn model(&self) -> &str {
        &self.model
    }
}

/// How far a recording is, for a page that asks again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordingProgress {
    /// Counts what is shown: 0 while nothing is.
    pub version: u64,
    /// What homenode is doing, for a person; empty: nothing more is to come.
    pub doing: String,
    /// How much of that is done, in thousandths; none where nobody knows.
    pub done: Option<u64>,
    /// The program runs: what it did until now.
    pub pulse: Option<Pulse>,
    /// The program has ended while it was watched.
    pub ended: bool,
}

/// What is served: a page, and finer pictures of its recordings. What is shown may change.
#[derive(Debug, Default)]
pub struct ServedContent {
    shown: RwLock<Arc<ServedPage>>,
    progress: Mutex<RecordingProgress>,
    asked: Mutex<Option<Instant>>,
    /// Only one finer picture is drawn at a time.
    drawing: Mutex<()>,
}

impl ServedContent {
    /// Nothing yet of a program: the page says what homenode is doing.
    pub fn empty(command: &[String], doing: &str) -> Self {
        let site = Self::default();
        *site.shown.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(ServedPage { command: command.to_vec(), ..ServedPage::default() });
        site.tell(|p| doing.clone_into(&mut p.doing));
        site
    }

    /// Shows something else from now on.
    pub fn show(&self, shown: ServedPage) {
        self.show_shared(Arc::new(shown));
    }

    /// As [`ServedContent::show`], of something that somebody else holds, too.
    pub(crate) fn show_shared(&self, shown: Arc<ServedPage>) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
        self.tell(|p| p.version += 1);
    }

    /// Changes what pages that ask are told.
    pub fn tell(&self, change: impl FnOnce(&mut RecordingProgress)) {
        change(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// When a page asked last for anything; never: none.
    pub fn asked(&self) -> Option<Instant> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request that was admitted: its type and its body.
    fn answer(&self, path: &str, request: &HttpRequest) -> Result<(&'static str, Vec<u8>), Refusal> {
        const JSON: &str = "application/json";
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let shown = Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner));
        let json = |value: Result<String, serde_json::Error>| {
            value.map(|text| (JSON, text.into_bytes())).map_err(|_| Refusal::Malformed)
        };
        match path {
            "" => {
                let page = page::around(&shown.model, &shown.command, PictureSource::Server);
                return Ok(("text/html; charset=utf-8", page.into_bytes()));
            }
            "api/model" if shown.model.is_empty() => return Err(Refusal::NotFound),
            "api/model" => return Ok((JSON, shown.model.clone().into_bytes())),
            "api/progress" => {
                let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return json(serde_json::to_string(&progress));
            }
            _ => {}
        }
        let side: usize = if request.query.contains_key("side") { request.number("side")? } else { 0 };
        let tables = shown.tables.get(side).ok_or(Refusal::NotFound)?;
        let object = || {
            let object = ObjectId(request.number("object")?);
            let unit = *tables.units.get(&object).ok_or(Refusal::NotFound)?;
            Ok((object, unit))
        };
        match path {
            "api/finer" => {
                let (object, unit) = object()?;
                let window = Window {
                    object,
                    page: request.number("page")?,
                    pages: request.number("pages")?,
                    first: request.number("first")?,
                    intervals: request.number("intervals")?,
                };
                let _one = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
                let pyramid = tables.pyramid.get().map(|p| &**p);
                let drawn = finer(&tables.set, tables.timeline(), &tables.nodes, unit, window, pyramid);
                Ok(("application/octet-stream", drawn.bytes()))
            }
            "api/history" => {
                let (object, _) = object()?;
                let page = request.number("page")?;
                let _one = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
                json(serde_json::to_string(&history::of(
                    &tables.set,
                    tables.timeline(),
                    &tables.nodes,
                    object,
                    page,
                )))
            }
            _ => Err(Refusal::NotFound),
        }
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

impl Server {
    /// Listens on a port of the loopback interface; on any that is free for 0.
    ///
    /// # Errors
    /// The port cannot be had; there are no random bytes for the token.
    pub fn listen(port: u16) -> Result<Self, ServerError> {
        let wrong = |source| ServerError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let mut random = [0; 16];
        File::open("/dev/urandom")
            .and_then(|mut f| f.read_exact(&mut random))
            .map_err(ServerError::Random)?;
        let token = random.iter().map(|b| format!("{b:02x}")).collect();
        Ok(Self { listener, address, token })
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where the page is. Whoever knows it can read the recording.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Answers until `stop` says so. Connections that are open then end with the process.
    pub fn run(self, site: &Arc<ServedContent>, stop: &dyn Fn() -> bool) {
        let token: Arc<str> = self.token.into();
        let open = Arc::new(AtomicUsize::new(0));
        while !stop() {
            let Ok((stream, _)) = self.listener.accept() else {
                std::thread::sleep(LOOK);
                continue;
            };
            if open.load(Ordering::Relaxed) >= MOST_CONNECTIONS {
                let _ = respond(&stream, &Err(Refusal::Busy), false);
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (site, token, counted) = (Arc::clone(site), Arc::clone(&token), Arc::clone(&open));
            let answering = move || {
                // A browser that went away is nobody's error.
                let _ = serve(&stream, &token, &site);
                counted.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().name("viewer".into()).spawn(answering).is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

fn serve(stream: &TcpStream, token: &str, site: &ServedContent) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = read(&mut &*stream)?;
    let head_only = request.as_ref().is_ok_and(|r| r.method == "HEAD");
    let answer = request.and_then(|r| r.admit(token).and_then(|path| site.answer(path, &r)));
    respond(stream, &answer, head_only)
}

fn respond(
    mut stream: &TcpStream,
    answer: &Result<(&'static str, Vec<u8>), Refusal>,
    head_only: bool,
) -> io::Result<()> {
    let (status, kind, body) = match answer {
        Ok((kind, body)) => ("200 OK", *kind, &body[..]),
        Err(refusal) => {
            let (status, text) = refusal.answer();
            (status, "text/plain; charset=utf-8", text.as_bytes())
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Content-Security-Policy: {}; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n",
        body.len(),
        page::policy(PictureSource::Server)
    );
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(body)?;
    }
    stream.flush()
}
