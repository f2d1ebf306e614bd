//! The head of a request to the proxy: read strictly, and written anew.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tooltape::scope::{Method, Scheme, Site};

use super::broker::Brokering;
use crate::web::WebUrl;

/// The most bytes of a head.
pub const EGRESS_HEAD_BYTES_MAX: usize = 16 << 10;
/// The most fields of a head.
const FIELDS_MAX: usize = 64;

/// Fields that are between a program and its proxy, or that would let a second request follow.
const DROPPED: [&str; 10] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "content-length",
];

/// Fields that ask for an answer in which nobody finds a secret: packed, or only a part of it.
const UNMASKED: [&str; 5] = ["accept-encoding", "accept-charset", "a-im", "range", "if-range"];

/// The bytes of a head, and what came with it.
pub(super) struct Head {
    bytes: Vec<u8>,
    end: usize,
}

/// Where a process wants to go.
pub(super) enum Asked<'h> {
    /// `CONNECT host:port`.
    Tunnel { site: Site, rest: &'h [u8] },
    /// A page by its whole address.
    Page(Page<'h>),
}

/// A page that a process asks for.
pub(super) struct Page<'h> {
    pub(super) site: Site,
    pub(super) method: Method,
    url: WebUrl,
    pub(super) fields: Vec<(&'h str, &'h [u8])>,
    body_bytes: u64,
    rest: &'h [u8],
}

/// Why a request is none.
pub(super) struct Unasked(&'static str, &'static str);

impl Unasked {
    pub(super) fn code(&self) -> &'static str {
        self.0
    }

    pub(super) fn said(&self) -> String {
        format!("{}: {}", self.0, self.1)
    }
}

impl Head {
    /// Reads until the head ends; nothing, where it does not.
    pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Option<Head>> {
        let mut bytes = Vec::with_capacity(EGRESS_HEAD_BYTES_MAX);
        while bytes.len() < EGRESS_HEAD_BYTES_MAX {
            let from = bytes.len().saturating_sub(3);
            let room = (EGRESS_HEAD_BYTES_MAX - bytes.len()) as u64;
            if (&mut *stream).take(room).read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
            let end = bytes[from..].windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                return Ok(Some(Head { end: from + end + 4, bytes }));
            }
        }
        Ok(Some(Head { end: 0, bytes }))
    }

    /// What it asks for, as long as there is one way to read it.
    pub(super) fn asked(&self) -> Result<Asked<'_>, Unasked> {
        let malformed = Unasked("malformed", "expected a request to a proxy, of HTTP/1.1");
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let (head, rest) = self.bytes.split_at(self.end);
        let (Ok(httparse::Status::Complete(_)), Some(method), Some(target)) =
            (request.parse(head), request.method, request.path)
        else {
            return Err(malformed);
        };
        if method == "CONNECT" {
            // The port has to be named, and nothing but it may follow.
            let site = Site::of(&format!("https://{target}"));
            let has_port =
                target.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
            let is_bare = !target.contains(['/', '?', '#', '@']);
            let site = site.ok().filter(|_| has_port && is_bare);
            let unclear = Unasked("malformed", "expected `CONNECT host:port`");
            return Ok(Asked::Tunnel { site: site.ok_or(unclear)?, rest });
        }
        let methods = [Method::Get, Method::Head, Method::Post, Method::Put, Method::Patch];
        let mut methods = methods.into_iter().chain([Method::Delete]);
        let method = methods.find(|it| it.word().to_ascii_uppercase() == method);
        let method = method.ok_or(Unasked("malformed", "expected a method that rights know"))?;
        let url: WebUrl = target
            .parse()
            .map_err(|_| Unasked("malformed", "expected a whole address, `http://host/path`"))?;
        let site = url.site().clone();
        if site.scheme != Scheme::Http {
            return Err(Unasked("malformed", "expected `http://`, or `CONNECT` for `https://`"));
        }
        let fields: Vec<_> =
            request.headers.iter().map(|field| (field.name, field.value)).collect();
        let body_bytes = body_bytes(&fields)?;
        if rest.len() as u64 > body_bytes {
            return Err(Unasked("malformed", "expected one request, and nothing behind it"));
        }
        Ok(Asked::Page(Page { site, method, url, fields, body_bytes, rest }))
    }
}

/// How long the body of a request is.
fn body_bytes(fields: &[(&str, &[u8])]) -> Result<u64, Unasked> {
    let named = |name: &'static str| {
        fields.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name))
    };
    if named("transfer-encoding").next().is_some() {
        return Err(Unasked("malformed", "expected a `content-length`, and no chunks"));
    }
    let mut lengths = named("content-length");
    let length = |value: &[u8]| {
        let digits = std::str::from_utf8(value).ok()?.trim();
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(0),
        (Some((_, value)), None) => {
            length(value).ok_or(Unasked("malformed", "expected a length in digits"))
        }
        (Some(_), Some(_)) => Err(Unasked("malformed", "expected one `content-length`")),
    }
}

impl Asked<'_> {
    pub(super) fn site(&self) -> &Site {
        match self {
            Asked::Tunnel { site, .. } => site,
            Asked::Page(page) => &page.site,
        }
    }
}

impl Page<'_> {
    /// The body, as far as it came with the head.
    pub(super) fn rest(&self) -> &[u8] {
        self.rest
    }

    /// How much of the body is still to come.
    pub(super) fn body_left(&self) -> u64 {
        self.body_bytes - self.rest.len() as u64
    }

    /// The head that its host is told, with secrets where it may know them.
    pub(super) fn head(&self, site: &Site, brokering: Option<&Brokering<'_>>) -> Vec<u8> {
        let method = self.method.word().to_ascii_uppercase();
        let port = (site.port != site.scheme.port()).then(|| format!(":{}", site.port));
        let authority = format!("{}{}", site.host, port.unwrap_or_default());
        // In the older version nobody answers in chunks, between which a secret could be cut.
        let version = if brokering.is_some() { "HTTP/1.0" } else { "HTTP/1.1" };
        let line = format!("{method} {} {version}\r\nhost: {authority}\r\n", self.url.target());
        let mut head = line.into_bytes();
        for (name, value) in &self.fields {
            let unmasked = UNMASKED.iter().filter(|_| brokering.is_some());
            if DROPPED.iter().chain(unmasked).any(|it| it.eq_ignore_ascii_case(name)) {
                continue;
            }
            let value = brokering.map_or_else(|| value.to_vec(), |it| it.fill(value));
            head.extend([name.as_bytes(), b": ", &value, b"\r\n"].concat());
        }
        let length = (self.body_bytes > 0 || matches!(self.method, Method::Post | Method::Put))
            .then(|| format!("content-length: {}\r\n", self.body_bytes));
        head.extend(length.unwrap_or_default().into_bytes());
        head.extend(b"connection: close\r\n\r\n");
        head
    }
}
