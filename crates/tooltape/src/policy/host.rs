//! The host that a text leads to, where nobody could read another one from it.

use crate::right::Host;

/// Addresses that name a host in one way only.
const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];

/// The host of an address, or of `host[:port]`; nothing where that is in doubt.
///
/// Programs disagree about backslashes, white space, user names and missing slashes, so a text with
/// any of them has no host here.
pub(super) fn host_of(text: &str) -> Option<Host> {
    let is_vague = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if text.contains(is_vague) {
        return None;
    }
    let authority = match text.split_once("://") {
        None => text,
        Some((scheme, rest)) => {
            let is_known = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
            is_known.then(|| rest.split(['/', '?', '#']).next().unwrap_or_default())?
        }
    };
    // The colons of an IPv6 address are within its brackets.
    let colon = authority.find(']').map_or(0, |bracket| bracket + 1);
    let (host, port) = match authority[colon..].find(':') {
        Some(at) => (&authority[..colon + at], Some(&authority[colon + at + 1..])),
        None => (authority, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|number| number.to_string() == port);
    port.is_none_or(is_port).then(|| host.parse().ok())?
}
