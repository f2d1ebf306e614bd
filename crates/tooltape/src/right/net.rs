//! What may be asked of which hosts, at which port.

use std::fmt;
use std::num::NonZeroU16;

use super::error::ScopeError;
use super::host::Hosts;

const PORT_DEFAULT: NonZeroU16 = NonZeroU16::new(443).expect("it is not zero");

/// A method of HTTP. There are no rights to others than these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
    /// Each of the above.
    Any,
}

impl Method {
    const ALL: [Method; 7] = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Patch,
        Method::Delete,
        Method::Any,
    ];
    pub(super) const WORDS: &str = "`get`, `head`, `post`, `put`, `patch`, `delete` or `any`";

    /// Its word in a right.
    pub fn word(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Head => "head",
            Method::Post => "post",
            Method::Put => "put",
            Method::Patch => "patch",
            Method::Delete => "delete",
            Method::Any => "any",
        }
    }

    /// The method of that word in a right.
    pub fn of_word(word: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.word() == word)
    }

    /// Whether `other` is this one, or this is any.
    pub fn covers(self, other: Method) -> bool {
        self == Method::Any || self == other
    }
}

/// Some hosts at one port, asked by one method or by any; written `method:host[:port]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetScope {
    /// The hosts.
    pub hosts: Hosts,
    /// The port; 443 where the text names none.
    pub port: NonZeroU16,
    /// The method.
    pub method: Method,
}

impl NetScope {
    /// Reads `host[:port]`.
    pub(super) fn parse(method: Method, text: &str) -> Result<NetScope, ScopeError> {
        let (hosts, port) = split_port(text)?;
        Ok(NetScope { hosts: hosts.parse()?, port: port.unwrap_or(PORT_DEFAULT), method })
    }

    /// Whether this allows all that `other` does.
    pub fn covers(&self, other: &NetScope) -> bool {
        self.method.covers(other.method) && self.reaches(other)
    }

    /// Whether they have anything in common.
    pub(super) fn overlaps(&self, other: &NetScope) -> bool {
        let methods = self.method.covers(other.method) || other.method.covers(self.method);
        methods && (self.reaches(other) || other.reaches(self))
    }

    /// What they have in common.
    pub(super) fn meet(&self, other: &NetScope) -> Option<NetScope> {
        let method = if self.method == Method::Any { other.method } else { self.method };
        let hosts = if self.reaches(other) { &other.hosts } else { &self.hosts };
        let meet = || NetScope { hosts: hosts.clone(), port: self.port, method };
        self.overlaps(other).then(meet)
    }

    /// Whether it takes a part of every right that `other` covers and that has its very method.
    pub(super) fn shadows(&self, other: &NetScope) -> bool {
        self.reaches(other) && self.overlaps(other)
    }

    /// The same, for each single method that it allows.
    pub(super) fn by_method(&self) -> impl Iterator<Item = NetScope> {
        let methods = Method::ALL.into_iter().filter(|method| self.method.covers(*method));
        methods.map(|method| NetScope { method, ..self.clone() })
    }

    fn reaches(&self, other: &NetScope) -> bool {
        self.port == other.port && self.hosts.covers(&other.hosts)
    }
}

/// Splits `host[:port]`, of which the host is not looked at.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<NonZeroU16>), ScopeError> {
    // The colons of an IPv6 address are within its brackets.
    let colon = text.find(']').map_or(0, |bracket| bracket + 1);
    match text[colon..].find(':') {
        Some(at) => Ok((&text[..colon + at], Some(port(&text[colon + at + 1..])?))),
        None => Ok((text, None)),
    }
}

fn port(text: &str) -> Result<NonZeroU16, ScopeError> {
    let port = text.parse::<NonZeroU16>().ok().filter(|port| port.to_string() == text);
    port.ok_or_else(|| ScopeError::form("port", text, "a number from 1 to 65535"))
}

/// Writes `method:host[:port]`.
impl fmt::Display for NetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NetScope { method, hosts, port } = self;
        match *port {
            PORT_DEFAULT => write!(f, "{}:{hosts}", method.word()),
            port => write!(f, "{}:{hosts}:{port}", method.word()),
        }
    }
}
