//! Where the address of a page leads, where nobody could read another place from it.

use std::fmt;
use std::num::NonZeroU16;

use super::error::ScopeError;
use super::host::Host;
use super::net::split_port;

const PART: &str = "address";

/// How a host is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
    /// `ws`.
    Ws,
    /// `wss`.
    Wss,
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Http, Scheme::Https, Scheme::Ws, Scheme::Wss];

    /// Its word in an address.
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
        }
    }

    /// The port of an address that names none.
    pub fn port(self) -> NonZeroU16 {
        const PLAIN: NonZeroU16 = NonZeroU16::new(80).expect("it is not zero");
        const SEALED: NonZeroU16 = NonZeroU16::new(443).expect("it is not zero");
        match self {
            Scheme::Http | Scheme::Ws => PLAIN,
            Scheme::Https | Scheme::Wss => SEALED,
        }
    }
}

/// The scheme, the host and the port of an address: what is matched, and what is connected to.
///
/// Programs disagree about backslashes, white space, control characters, user names and missing
/// slashes, so an address with any of them leads nowhere; and a [`Host`] has one spelling.
///
/// ```
/// use tooltape::scope::Site;
///
/// let site = Site::of("https://Example.com/a?b").unwrap();
/// assert_eq!((site.host.to_string(), site.port.get()), ("example.com".to_owned(), 443));
/// for text in ["http://127.1/", "http://a.com\\@b.com/", "http://u@a.com/", "file:///etc"] {
///     assert!(Site::of(text).is_err(), "{text}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: Host,
    /// The port, which an address need not name.
    pub port: NonZeroU16,
}

impl Site {
    /// Where an address such as `https://example.com/page` leads.
    pub fn of(address: &str) -> Result<Site, ScopeError> {
        let is_clear = |c: char| !(c.is_whitespace() || c.is_control() || c == '\\');
        let expected = "no white space, control character or backslash, but `%20` and the like";
        ScopeError::unless_all(PART, address, expected, is_clear)?;
        let unknown = || ScopeError::form(PART, address, "`http://` or `https://` and a host");
        let (word, rest) = address.split_once("://").ok_or_else(unknown)?;
        let scheme = Scheme::ALL.into_iter().find(|it| word.eq_ignore_ascii_case(it.word()));
        let scheme = scheme.ok_or_else(unknown)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(ScopeError::form(PART, address, "no user name or password"));
        }
        let (host, port) = split_port(authority)?;
        Ok(Site { scheme, host: host.parse()?, port: port.unwrap_or(scheme.port()) })
    }
}

/// Writes `scheme://host`, and the port where it is not that of the scheme.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { scheme, host, port } = self;
        match *port == scheme.port() {
            true => write!(f, "{}://{host}", scheme.word()),
            false => write!(f, "{}://{host}:{port}", scheme.word()),
        }
    }
}
