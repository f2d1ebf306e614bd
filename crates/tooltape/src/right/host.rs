//! Hosts: names and addresses in their one spelling.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::error::ScopeError;

/// The most bytes of a host's name.
pub const HOST_BYTES_MAX: usize = 253;
/// The most bytes between two dots of it.
const LABEL_BYTES_MAX: usize = 63;
const PART: &str = "host";

/// A host by its name or its address. Two hosts are the same where they are equal, and only there.
///
/// A name is ASCII and kept in lower case. An address has one spelling: `127.1`, `0x7f.1` and
/// `[0:0::1]` are refused, and so is IPv4 that is dressed up as IPv6. An IPv6 address stands in
/// brackets.
///
/// ```
/// use tooltape::scope::Host;
///
/// assert_eq!("Example.COM".parse::<Host>().unwrap().to_string(), "example.com");
/// assert!("127.1".parse::<Host>().is_err());
/// assert!("user@example.com".parse::<Host>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(Kind);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    /// Checked by `name`, in lower case.
    Name(Box<str>),
    V4(Ipv4Addr),
    /// Never one that stands for an IPv4 address.
    V6(Ipv6Addr),
}

impl Host {
    /// Its name, where it has one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Name(name) => Some(name),
            Kind::V4(_) | Kind::V6(_) => None,
        }
    }

    /// Its address, where it has no name.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.0 {
            Kind::Name(_) => None,
            Kind::V4(address) => Some((*address).into()),
            Kind::V6(address) => Some((*address).into()),
        }
    }

    /// Whether it is a proper subdomain of `other`.
    fn is_below(&self, other: &Host) -> bool {
        let (Some(name), Some(other)) = (self.name(), other.name()) else { return false };
        name.strip_suffix(other).is_some_and(|labels| labels.ends_with('.'))
    }
}

/// The host of that address. IPv4 that is mapped into IPv6 is taken for what it is.
impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Host {
        match address.to_canonical() {
            IpAddr::V4(address) => Host(Kind::V4(address)),
            IpAddr::V6(address) => Host(Kind::V6(address)),
        }
    }
}

impl FromStr for Host {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Host, ScopeError> {
        let expected = "a name, an IPv4 address, or an IPv6 address in brackets";
        ScopeError::unless_sized(PART, text, HOST_BYTES_MAX, expected)?;
        match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => address_v6(address),
            None => name_or_v4(text),
        }
    }
}

fn address_v6(text: &str) -> Result<Host, ScopeError> {
    let Ok(address) = text.parse::<Ipv6Addr>() else {
        return Err(ScopeError::form(PART, text, "an IPv6 address between the brackets"));
    };
    match address.to_canonical() {
        IpAddr::V4(inner) => Err(ScopeError::form(PART, text, format!("`{inner}`"))),
        IpAddr::V6(_) if address.to_string() != text => {
            Err(ScopeError::form(PART, text, format!("`{address}`")))
        }
        IpAddr::V6(address) => Ok(Host(Kind::V6(address))),
    }
}

fn name_or_v4(text: &str) -> Result<Host, ScopeError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    ScopeError::unless_all(PART, text, "only `a-z 0-9 . -`", is_plain)?;
    let is_sound = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !text.split('.').all(is_sound) {
        let expected =
            "between its dots 1 to 63 letters, digits or inner `-`, and no dot at its end";
        return Err(ScopeError::form(PART, text, expected));
    }
    let name = text.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x");
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    // What ends in a number is an address to some resolvers, in spellings that differ.
    match name.parse::<Ipv4Addr>() {
        Ok(address) => Ok(Host(Kind::V4(address))),
        Err(_) if is_number => {
            Err(ScopeError::form(PART, text, "four decimal numbers, or a name that ends in none"))
        }
        Err(_) => Ok(Host(Kind::Name(name.into()))),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Name(name) => f.write_str(name),
            Kind::V4(address) => address.fmt(f),
            Kind::V6(address) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// One host, or every proper subdomain of a name: `example.com`, or `*.example.com`.
///
/// There is no text for every host there is, nor for all below a name of one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hosts {
    base: Host,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Reach {
    Itself,
    /// Only where the base is a name of two labels or more.
    Below,
}

impl Hosts {
    /// Whether every host of `other` is one of these.
    pub fn covers(&self, other: &Hosts) -> bool {
        match (self.reach, other.reach) {
            (Reach::Itself, Reach::Itself) => self.base == other.base,
            (Reach::Itself, Reach::Below) => false,
            (Reach::Below, Reach::Itself) => other.base.is_below(&self.base),
            (Reach::Below, Reach::Below) => {
                other.base == self.base || other.base.is_below(&self.base)
            }
        }
    }
}

impl From<Host> for Hosts {
    fn from(base: Host) -> Hosts {
        Hosts { base, reach: Reach::Itself }
    }
}

impl FromStr for Hosts {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Hosts, ScopeError> {
        let Some(below) = text.strip_prefix("*.") else {
            return text.parse::<Host>().map(Hosts::from);
        };
        let base: Host = below.parse()?;
        if !base.name().is_some_and(|name| name.contains('.')) {
            let expected = "a name of two labels or more below the `*.`";
            return Err(ScopeError::form(PART, text, expected));
        }
        Ok(Hosts { base, reach: Reach::Below })
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reach {
            Reach::Itself => self.base.fmt(f),
            Reach::Below => write!(f, "*.{}", self.base),
        }
    }
}
