//! The address of a page: one spelling, and one host in it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tooltape::ScopeError;
use tooltape::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tooltape::scope::{Scheme, Site};
use url::Url;

use crate::workspace::shown;

/// The longest address, in bytes.
pub const URL_BYTES_MAX: usize = 8_192;
/// The most bytes of an address that a message shows.
const URL_SHOWN_BYTES_MAX: usize = 256;

/// The address of a page, `http://` or `https://`, in one spelling.
///
/// The host that rights and rules look at is the host that is connected to: two readers of an
/// address have to agree on its host and its port, or it is none. As a field of a tool's input it
/// is checked while the call is resolved, before anybody is asked about the call.
///
/// ```
/// use tooltape_kit::WebUrl;
///
/// let url: WebUrl = "https://Example.com/a b".replace(' ', "%20").parse().unwrap();
/// assert_eq!(url.as_str(), "https://example.com/a%20b");
/// for text in ["http://2130706433/", "http://user@example.com/", "file:///etc/passwd"] {
///     assert!(text.parse::<WebUrl>().is_err(), "{text}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebUrl {
    url: Url,
    site: Site,
}

/// Why a text is not the address of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is longer than [`URL_BYTES_MAX`].
    #[error("found an address of {bytes} bytes, expected at most {URL_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It does not lead to one host.
    #[error("`{url}` leads to no host: {source}")]
    Site {
        /// The text.
        url: String,
        /// What is wrong with it.
        source: ScopeError,
    },
    /// It is not of the web.
    #[error("`{url}` is `{scheme}`, expected `http` or `https`")]
    Scheme {
        /// The text.
        url: String,
        /// Its scheme.
        scheme: &'static str,
    },
    /// It cannot be read, or in two ways.
    #[error("`{url}` is no address that everybody reads alike, expected `https://host/path`")]
    Vague {
        /// The text.
        url: String,
    },
}

impl WebUrl {
    /// The address, in its one spelling.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The scheme, the host and the port.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// What is asked of the host: the path, and the query if there is one.
    pub(crate) fn target(&self) -> String {
        match self.url.query() {
            None => self.url.path().to_owned(),
            Some(query) => format!("{}?{query}", self.url.path()),
        }
    }

    /// The address that another one means which was read on this page.
    pub(super) fn join(&self, text: &str) -> Result<WebUrl, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong { bytes: text.len() });
        }
        match self.url.join(text) {
            Ok(joined) => joined.as_str().parse(),
            Err(_) => Err(UrlError::Vague { url: shown(text, URL_SHOWN_BYTES_MAX) }),
        }
    }

    /// Without what names a place in the page, which no host is told.
    pub(super) fn without_fragment(&self) -> WebUrl {
        let (mut url, site) = (self.url.clone(), self.site.clone());
        url.set_fragment(None);
        WebUrl { url, site }
    }
}

impl FromStr for WebUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<WebUrl, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong { bytes: text.len() });
        }
        let shown = || shown(text, URL_SHOWN_BYTES_MAX);
        let site = Site::of(text).map_err(|source| UrlError::Site { url: shown(), source })?;
        match site.scheme {
            Scheme::Http | Scheme::Https => {}
            Scheme::Ws | Scheme::Wss => {
                return Err(UrlError::Scheme { url: shown(), scheme: site.scheme.word() });
            }
        }
        let url = Url::parse(text).map_err(|_| UrlError::Vague { url: shown() })?;
        // The second reader.
        let is_same = url.scheme() == site.scheme.word()
            && url.host_str() == Some(&site.host.to_string())
            && url.port_or_known_default() == Some(site.port.get())
            && url.username().is_empty()
            && url.password().is_none();
        is_same.then_some(WebUrl { url, site }).ok_or_else(|| UrlError::Vague { url: shown() })
    }
}

impl TryFrom<String> for WebUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<WebUrl, UrlError> {
        text.parse()
    }
}

impl From<WebUrl> for String {
    fn from(url: WebUrl) -> String {
        url.url.into()
    }
}

/// The address as messages show it: cut where it is long.
impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.as_str(), URL_SHOWN_BYTES_MAX))
    }
}

impl JsonSchema for WebUrl {
    fn schema_name() -> Cow<'static, str> {
        "WebUrl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}
