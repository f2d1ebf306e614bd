//! The host that a text leads to, where nobody could read another one from it.

use crate::right::{Host, Site};

/// The host of an address, or of `host[:port]`; nothing where that is in doubt.
pub(super) fn host_of(text: &str) -> Option<Host> {
    let is_address = text.contains("://");
    let site = if is_address { Site::of(text) } else { Site::of(&format!("https://{text}")) };
    let host = site.ok()?.host;
    // A bare host has no path behind it.
    (is_address || !text.contains(['/', '?', '#'])).then_some(host)
}
