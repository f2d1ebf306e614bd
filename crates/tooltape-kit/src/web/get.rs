//! A page and where it led: each redirect is judged like the first address.

use tooltape::Label;
use tooltape::scope::Scheme;

use super::decode::{Unpacked, unpack};
use super::error::HttpError;
use super::exchange::{Answer, Page};
use super::http::Http;
use super::route::within;
use super::url::{UrlError, WebUrl};

/// The most redirects that are followed.
pub const REDIRECTS_MAX: usize = 10;

/// What to ask for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The address.
    pub url: WebUrl,
    /// Header fields, such as credentials. Another scheme, host or port is not told them.
    pub headers: Vec<(String, String)>,
    /// The most bytes of the page that are wanted, unpacked.
    pub bytes_max: usize,
}

/// What a host answered, be it a page or its own excuse.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fetched {
    /// The address that answered, behind all redirects.
    pub url: WebUrl,
    /// The status, such as 200 or 404.
    pub status: u16,
    /// What the page says that it is.
    pub content_type: Option<String>,
    /// The page, unpacked.
    pub bytes: Vec<u8>,
    /// Whether there is more of it.
    pub truncated: bool,
    /// The addresses that sent us on, in their order.
    pub redirects: Vec<WebUrl>,
}

impl Http {
    /// Asks for a page, and follows redirects as far as the call may ask those hosts too.
    ///
    /// Dropping the future closes the connection, and leaves nothing behind.
    pub async fn get(&self, ask: &Ask) -> Result<Fetched, HttpError> {
        let host = &ask.url.site().host;
        within(self.patience.wall, host, "in all", self.follow(ask)).await?
    }

    async fn follow(&self, ask: &Ask) -> Result<Fetched, HttpError> {
        let (mut ask, mut redirects) = (ask.clone(), Vec::new());
        loop {
            let url = ask.url.without_fragment();
            let answer = self.exchange(&url, &ask).await?;
            if let Some(call) = &self.call {
                call.provenance().saw(&Label::untrusted(url.site().host.to_string()));
            }
            let location = match answer {
                Answer::Page(page) => return fetched(page, ask, redirects).await,
                Answer::Onward(location) => location,
            };
            let next = onward(&ask.url, &location)?;
            if next.site() != ask.url.site() {
                ask.headers.clear();
            }
            redirects.push(std::mem::replace(&mut ask.url, next));
            if redirects.len() > REDIRECTS_MAX {
                return Err(HttpError::TooManyRedirects { from: url.to_string() });
            }
            if redirects.contains(&ask.url) {
                let why = format!("`{}` was asked already", ask.url);
                return Err(HttpError::Redirect { from: url.to_string(), why });
            }
        }
    }
}

/// Where a page sends us, if pages may send anybody there.
fn onward(from: &WebUrl, location: &str) -> Result<WebUrl, HttpError> {
    let next = from.join(location).map_err(|err: UrlError| HttpError::redirect(from, &err))?;
    match (from.site().scheme, next.site().scheme) {
        (Scheme::Https, Scheme::Http) => {
            let why = format!("`{next}` is `http`, expected `https` behind `https`");
            Err(HttpError::Redirect { from: from.to_string(), why })
        }
        (_, _) => Ok(next),
    }
}

async fn fetched(page: Page, ask: Ask, redirects: Vec<WebUrl>) -> Result<Fetched, HttpError> {
    let Ask { url, bytes_max, .. } = ask;
    let Page { status, content_type, encoding, wire, is_cut } = page;
    let unpacked = tokio::task::spawn_blocking(move || unpack(&wire, &encoding, bytes_max, is_cut));
    let failed = |err: tokio::task::JoinError| HttpError::Undecodable {
        encoding: "unknown".to_owned(),
        why: err.to_string(),
    };
    let Unpacked { bytes, truncated } = unpacked.await.map_err(failed)??;
    Ok(Fetched { url, status, content_type, bytes, truncated, redirects })
}
