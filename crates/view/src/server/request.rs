//! What a browser asks, and whether it may: bounded, and refused unless everything fits.

use std::collections::BTreeMap;
use std::io::{self, Read};

/// Most bytes of a request's head.
const MOST_HEAD: usize = 16 << 10;
/// Most header lines.
const MOST_HEADERS: usize = 64;

/// A request that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, as in `GET`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query's names and values. Numbers are all that is asked with, so nothing is unescaped.
    pub query: BTreeMap<String, String>,
    host: Vec<String>,
    origin: Option<String>,
    site: Option<String>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no request that this server understands.
    Malformed,
    /// Its head is too large.
    TooLarge,
    /// Not GET or HEAD.
    Method,
    /// It was sent to another name than one of the loopback interface.
    Host,
    /// Another site's page sent it.
    Origin,
    /// It lacks the token.
    Token,
    /// There is nothing of that name.
    NotFound,
    /// Too much is asked at once.
    Busy,
}

impl Refusal {
    /// Status and what a person reads.
    pub const fn answer(self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed => ("400 Bad Request", "This request makes no sense."),
            Self::TooLarge => ("431 Request Header Fields Too Large", "This request is too large."),
            Self::Method => ("405 Method Not Allowed", "Only GET and HEAD are answered."),
            Self::Host => ("403 Forbidden", "This server answers to loopback names alone."),
            Self::Origin => ("403 Forbidden", "Another site may not ask this server."),
            Self::Token => ("403 Forbidden", "The token is missing: use the URL that homenode printed."),
            Self::NotFound => ("404 Not Found", "There is nothing here."),
            Self::Busy => ("503 Service Unavailable", "Too much is asked at once: try again."),
        }
    }
}

/// Reads a request's head.
///
/// # Errors
/// The connection failed or was closed; or the inner refusal.
pub fn read(from: &mut impl Read) -> io::Result<Result<HttpRequest, Refusal>> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&buffer[..n]);
        match parse(&head) {
            Ok(None) if head.len() > MOST_HEAD => return Ok(Err(Refusal::TooLarge)),
            Ok(None) => {}
            Ok(Some(request)) => return Ok(Ok(request)),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
}

/// The request; nothing while it is not whole.
fn parse(head: &[u8]) -> Result<Option<HttpRequest>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
        Err(_) => return Err(Refusal::Malformed),
    }
    let target = parsed.path.unwrap_or("");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pair = |pair: &str| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    let mut request = HttpRequest {
        method: parsed.method.unwrap_or("").to_owned(),
        path: path.to_owned(),
        query: query.split('&').filter_map(pair).collect(),
        ..HttpRequest::default()
    };
    for header in parsed.headers.iter() {
        let value = || String::from_utf8_lossy(header.value).trim().to_ascii_lowercase();
        match header.name.to_ascii_lowercase().as_str() {
            "host" => request.host.push(value()),
            "origin" => request.origin = Some(value()),
            "sec-fetch-site" => request.site = Some(value()),
            _ => {}
        }
    }
    Ok(Some(request))
}

/// Whether `host[:port]` is a name of the loopback interface. A tunnel may have another port here
/// than there; no site of the network has one of these names.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

impl HttpRequest {
    /// Whether the request may be answered, and what it asks for: the path behind the token.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, token: &str) -> Result<&str, Refusal> {
        let [host] = self.host.as_slice() else { return Err(Refusal::Host) };
        if !is_loopback(host) {
            return Err(Refusal::Host);
        }
        let same = |origin: &String| *origin == format!("http://{host}");
        if !self.origin.as_ref().is_none_or(same) {
            return Err(Refusal::Origin);
        }
        // 'none': somebody typed or opened the address.
        if !self.site.as_ref().is_none_or(|site| ["same-origin", "none"].contains(&site.as_str())) {
            return Err(Refusal::Origin);
        }
        if !["GET", "HEAD"].contains(&self.method.as_str()) {
            return Err(Refusal::Method);
        }
        let rest = self.path.strip_prefix('/').ok_or(Refusal::Token)?;
        let (given, rest) = rest.split_once('/').ok_or(Refusal::Token)?;
        if same_text(given, token) { Ok(rest) } else { Err(Refusal::Token) }
    }

    /// A number of the query.
    ///
    /// # Errors
    /// It is not there or no number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Refusal> {
        self.query.get(name).and_then(|v| v.parse().ok()).ok_or(Refusal::Malformed)
    }
}

/// Compares in a time that does not tell where two texts differ.
fn same_text(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> HttpRequest {
        parse(text.replace('\n', "\r\n").as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_request_needs_the_token_a_loopback_name_and_its_own_origin() {
        let ask = |path: &str, more: &str| {
            let r = request(&format!("GET {path} HTTP/1.1\n{more}\n\n"));
            r.admit("secret").map(str::to_owned)
        };
        assert_eq!(ask("/secret/", "Host: 127.0.0.1:8000"), Ok(String::new()));
        assert_eq!(
            ask("/secret/api/x?a=1", "Host: localhost:9\nOrigin: http://localhost:9"),
            Ok("api/x".into())
        );
        assert_eq!(ask("/secret/", "Host: [::1]:80\nSec-Fetch-Site: none"), Ok(String::new()));
        for path in ["/", "/secret", "/secre/", "/secrets/", "/Secret/", "//secret/", "secret/"] {
            assert_eq!(ask(path, "Host: 127.0.0.1:8000"), Err(Refusal::Token), "{path}");
        }
        for host in ["X: y", "Host: evil.example:80", "Host: 127.0.0.1.evil.example", "Host: localhost:99999"]
        {
            assert_eq!(ask("/secret/", host), Err(Refusal::Host), "{host}");
        }
        assert_eq!(ask("/secret/", "Host: localhost\nHost: localhost"), Err(Refusal::Host));
        for more in ["Origin: http://evil.example", "Origin: null", "Origin: http://localhost:10"] {
            let more = format!("Host: localhost:9\n{more}");
            assert_eq!(ask("/secret/", &more), Err(Refusal::Origin), "{more}");
        }
        for site in ["cross-site", "same-site"] {
            let more = format!("Host: localhost:9\nSec-Fetch-Site: {site}");
            assert_eq!(ask("/secret/", &more), Err(Refusal::Origin));
        }
    }

    #[test]
    fn nothing_is_changed_here() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let r = request(&format!("{method} /t/ HTTP/1.1\nHost: localhost\n\n"));
            assert_eq!(r.admit("t"), Err(Refusal::Method));
        }
    }

    #[test]
    fn a_head_is_bounded_and_may_come_in_pieces() {
        let whole = b"GET /t/?object=3 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for at in 1..whole.len() {
            let mut pieces = (&whole[..at]).chain(&whole[at..]);
            assert_eq!(read(&mut pieces).unwrap().unwrap().number("object"), Ok(3));
        }
        let endless = std::io::repeat(b'a');
        let mut endless = (&b"GET / HTTP/1.1\r\nX: "[..]).chain(endless);
        assert_eq!(read(&mut endless).unwrap(), Err(Refusal::TooLarge));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(read(&mut many.as_bytes()).unwrap(), Err(Refusal::TooLarge));
        assert_eq!(read(&mut &b"\x16\x03\x01\x02\x00 hello"[..]).unwrap(), Err(Refusal::Malformed));
        assert!(read(&mut &b"GET /"[..]).is_err(), "closed");
    }

    #[test]
    fn a_number_is_a_number() {
        let r = request("GET /t/?a=1&b=x&c HTTP/1.1\nHost: localhost\n\n");
        assert_eq!(r.number::<u64>("a"), Ok(1));
        for name in ["b", "c", "d"] {
            assert_eq!(r.number::<u64>(name), Err(Refusal::Malformed));
        }
    }
}
