//! The page from a server on the loopback interface, for one person.
//!
//! - Only this machine reaches it: it listens on 127.0.0.1.
//! - The path begins with a token of 128 random bits. Other users of this machine do not know it.
//! - `Host` must be a loopback name: a site that resolves its own name to 127.0.0.1 is refused.
//! - `Origin` and `Sec-Fetch-Site`, where a browser sends them, must be the page's own.
//! - Nothing can be changed: only GET and HEAD are answered, and no path of the system is ever opened.
//! - A request's head, its time and the number of connections are bounded.

mod request;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homenode_dataset::Dataset;
use homenode_model::ObjectId;
use homenode_report::{Report, Unit};

pub use request::{Refusal, Request, read};

use crate::history;
use crate::page::{self, Home};
use crate::tiles::build::{Window, finer};
use crate::tiles::nodes::Nodes;

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

/// What is served: a page, and finer pictures of its data set.
#[derive(Debug)]
pub struct Site {
    page: String,
    set: Dataset,
    nodes: Nodes,
    units: BTreeMap<ObjectId, Unit>,
    /// Only one finer picture is drawn at a time.
    drawing: Mutex<()>,
}

impl Site {
    /// A page and the data set that it shows.
    pub fn new(page: String, set: Dataset, report: &Report) -> Self {
        let nodes = Nodes::of(&set, report);
        let unit = |o: &homenode_report::objects::ObjectReport| Some((o.object?, o.remote.of));
        let units = report.objects.iter().filter_map(unit).collect();
        Self { page, set, nodes, units, drawing: Mutex::new(()) }
    }

    /// The answer to a request that was admitted: its type and its body.
    fn answer(&self, path: &str, request: &Request) -> Result<(&'static str, String), Refusal> {
        let json = |value: Result<String, serde_json::Error>| {
            value.map(|text| ("application/json", text)).map_err(|_| Refusal::Malformed)
        };
        match path {
            "" => Ok(("text/html; charset=utf-8", self.page.clone())),
            "api/finer" => {
                let object = ObjectId(request.number("object")?);
                let unit = *self.units.get(&object).ok_or(Refusal::NotFound)?;
                let window = Window {
                    object,
                    page: request.number("page")?,
                    pages: request.number("pages")?,
                    first: request.number("first")?,
                    intervals: request.number("intervals")?,
                };
                let _one = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
                json(serde_json::to_string(&finer(&self.set, &self.nodes, unit, window)))
            }
            "api/history" => {
                let object = ObjectId(request.number("object")?);
                self.units.get(&object).ok_or(Refusal::NotFound)?;
                let page = request.number("page")?;
                let _one = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
                json(serde_json::to_string(&history::of(&self.set, &self.nodes, object, page)))
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
    pub fn run(self, site: Site, stop: &dyn Fn() -> bool) {
        let site = Arc::new(site);
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
            let (site, token, counted) = (Arc::clone(&site), Arc::clone(&token), Arc::clone(&open));
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

fn serve(stream: &TcpStream, token: &str, site: &Site) -> io::Result<()> {
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
    answer: &Result<(&'static str, String), Refusal>,
    head_only: bool,
) -> io::Result<()> {
    let (status, kind, body) = match answer {
        Ok((kind, body)) => ("200 OK", *kind, body.as_str()),
        Err(refusal) => {
            let (status, text) = refusal.answer();
            (status, "text/plain; charset=utf-8", text)
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Content-Security-Policy: {}; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n",
        body.len(),
        page::policy(Home::Server)
    );
    stream.write_all(head.as_bytes())?;
    if !head_only {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}
