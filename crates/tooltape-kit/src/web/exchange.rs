//! One question to one host, and its answer: a connection of its own, closed behind it.

use std::future::pending;
use std::pin::pin;

use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HeaderMap, HeaderName, LOCATION};
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tooltape::scope::{Host, Method, Scheme, Site};

use super::decode::WIRE_BYTES_MAX;
use super::error::HttpError;
use super::get::Ask;
use super::http::Http;
use super::url::WebUrl;

/// The most header fields of an answer.
pub const HEADERS_MAX: usize = 128;
/// The most bytes of all of them.
pub const HEADER_BYTES_MAX: usize = 64 << 10;

const ENCODINGS: &str = "gzip, deflate, br, zstd";
const AGENT: &str = concat!("tooltape/", env!("CARGO_PKG_VERSION"));

/// A connection, sealed or not.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

/// What a host answered.
pub(super) enum Answer {
    Page(Page),
    /// Somebody else is to be asked.
    Onward(String),
}

/// A page as it came over the wire.
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) encoding: String,
    pub(super) wire: Vec<u8>,
    /// Whether there is more of it.
    pub(super) is_cut: bool,
}

impl Http {
    /// Asks for one page. Dropping the future closes the connection.
    pub(super) async fn exchange(&self, url: &WebUrl, ask: &Ask) -> Result<Answer, HttpError> {
        let site = url.site();
        let wire = self.wire(site, Method::Get).await?;
        let broken = |source: hyper::Error| broken(&site.host, source);
        let mut builder = http1::Builder::new();
        builder.max_headers(HEADERS_MAX).max_buf_size(HEADER_BYTES_MAX);
        let handshake = builder.handshake::<_, Empty<Bytes>>(TokioIo::new(wire));
        let (mut sender, connection) = handshake.await.map_err(broken)?;
        let asked = async {
            let sent = sender.send_request(request(url, ask)?);
            let answer = self.in_time(&site.host, "to answer", sent).await?.map_err(broken)?;
            self.read(&site.host, answer).await
        };
        // Whatever ends the connection also ends the answer, which says so.
        let driven = async {
            let _ = connection.await;
            pending().await
        };
        match select(pin!(asked), pin!(driven)).await {
            Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
        }
    }

    /// A connection to a host, sealed if it has to be.
    pub(crate) async fn wire(
        &self,
        site: &Site,
        method: Method,
    ) -> Result<Box<dyn Wire>, HttpError> {
        let stream = self.connect(site, method).await?;
        match site.scheme {
            Scheme::Http | Scheme::Ws => Ok(Box::new(stream)),
            Scheme::Https | Scheme::Wss => {
                let sealed = self.trust.seal(&site.host, stream);
                let sealed = self.in_time(&site.host, "to show who it is", sealed).await?;
                let unproven = |source| HttpError::Tls { host: site.host.clone(), source };
                Ok(Box::new(sealed.map_err(unproven)?))
            }
        }
    }

    async fn read(&self, host: &Host, answer: Response<Incoming>) -> Result<Answer, HttpError> {
        let (head, mut body) = answer.into_parts();
        let status = head.status.as_u16();
        if let (301..=303 | 307..=308, Some(location)) = (status, text(&head.headers, LOCATION)) {
            return Ok(Answer::Onward(location));
        }
        let content_type = text(&head.headers, header::CONTENT_TYPE);
        let encoding = text(&head.headers, header::CONTENT_ENCODING).unwrap_or_default();
        let (mut wire, mut is_cut) = (Vec::new(), false);
        while let Some(frame) = self.in_time(host, "to say more", body.frame()).await? {
            let frame = frame.map_err(|source| broken(host, source))?;
            let Ok(data) = frame.into_data() else { continue };
            wire.extend_from_slice(&data[..data.len().min(WIRE_BYTES_MAX - wire.len())]);
            if wire.len() == WIRE_BYTES_MAX {
                is_cut = true;
                break;
            }
        }
        Ok(Answer::Page(Page { status, content_type, encoding, wire, is_cut }))
    }
}

fn request(url: &WebUrl, ask: &Ask) -> Result<Request<Empty<Bytes>>, HttpError> {
    let Site { scheme, host, port } = url.site();
    let authority = match *port == scheme.port() {
        true => host.to_string(),
        false => format!("{host}:{port}"),
    };
    let request = Request::get(url.target())
        .header(header::HOST, authority)
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT_ENCODING, ENCODINGS)
        .header(header::CONNECTION, "close");
    let fields = ask.headers.iter();
    let request = fields.fold(request, |request, (name, value)| request.header(name, value));
    request
        .body(Empty::new())
        .map_err(|source| HttpError::Protocol { host: host.clone(), source: source.into() })
}

/// The value of a field that is there once and is a text.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).into_iter();
    let (value, others) = (values.next()?, values.next());
    let value = value.to_str().ok().filter(|_| others.is_none())?;
    Some(value.trim().to_owned())
}

fn broken(host: &Host, source: hyper::Error) -> HttpError {
    HttpError::Protocol { host: host.clone(), source: source.into() }
}
