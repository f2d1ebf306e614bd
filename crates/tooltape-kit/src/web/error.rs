//! Why nothing could be fetched.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use tooltape::scope::{Host, Site};
use tooltape::{Refusal, ToolError};

use super::get::REDIRECTS_MAX;
use super::url::UrlError;
use super::vet::Kind;

/// Why nothing could be fetched.
///
/// Return [`HttpError::tell`] from a tool: a plain `?` would hide the reason from the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The run of the call may not ask the host, or may not any more.
    #[error("`{site}` may not be asked: {refusal}")]
    Withheld {
        /// What was to be asked.
        site: Box<Site>,
        /// Who withholds what.
        refusal: Box<Refusal>,
    },
    /// The host is the metadata service of a cloud, which nobody may ask.
    #[error("`{host}` is the metadata service of a cloud, which no tool may ask")]
    Metadata {
        /// The host.
        host: Host,
    },
    /// An address of the host is not public.
    #[error("`{host}` is at `{address}`, which is {what}, expected a public address")]
    NotPublic {
        /// The host.
        host: Host,
        /// Its address.
        address: IpAddr,
        /// What that is.
        what: String,
    },
    /// The host has no address.
    #[error("`{host}` has no address")]
    Unresolved {
        /// The host.
        host: Host,
        /// What the resolver said.
        source: Option<io::Error>,
    },
    /// The host has more addresses than are looked at.
    #[error("`{host}` has {found} addresses, expected at most {}", super::ADDRESSES_MAX)]
    TooManyAddresses {
        /// The host.
        host: Host,
        /// How many.
        found: usize,
    },
    /// No connection could be made.
    #[error("`{host}` could not be reached: {}", .source.kind())]
    Unreachable {
        /// The host.
        host: Host,
        /// What the operating system said.
        source: io::Error,
    },
    /// The host could not show that it is that host.
    #[error("`{host}` could not show that it is that host: {source}")]
    Tls {
        /// The host.
        host: Host,
        /// What is wrong.
        source: io::Error,
    },
    /// The host did not talk HTTP as it should, or stopped in the middle.
    #[error("`{host}` did not answer as HTTP wants it: {source}")]
    Protocol {
        /// The host.
        host: Host,
        /// What is wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A page sent us to where no page may send us.
    #[error("`{from}` redirects to what is not followed: {why}")]
    Redirect {
        /// The page.
        from: String,
        /// Why not.
        why: String,
    },
    /// Pages sent us on and on.
    #[error("more than {REDIRECTS_MAX} redirects, the last by `{from}`")]
    TooManyRedirects {
        /// The last page.
        from: String,
    },
    /// It took too long.
    #[error("`{host}` took longer than {ms} ms {what}")]
    TooSlow {
        /// The host.
        host: Host,
        /// How long it may take.
        ms: u128,
        /// To do what.
        what: &'static str,
    },
    /// The page is compressed in a way that nobody asked for, or wrongly.
    #[error("the page is encoded as `{encoding}`, and cannot be read: {why}")]
    Undecodable {
        /// Its encoding.
        encoding: String,
        /// Why not.
        why: String,
    },
    /// The page is far larger than it pretends to be.
    #[error("the page unpacks to more than {} times its size", super::RATIO_MAX)]
    Bomb,
}

impl HttpError {
    pub(super) fn not_public(host: &Host, address: IpAddr, kind: Kind) -> HttpError {
        match kind {
            Kind::Metadata => HttpError::Metadata { host: host.clone() },
            kind => HttpError::NotPublic { host: host.clone(), address, what: kind.to_string() },
        }
    }

    pub(super) fn redirect(from: impl ToString, why: &UrlError) -> HttpError {
        HttpError::Redirect { from: from.to_string(), why: why.to_string() }
    }

    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            HttpError::Withheld { .. } => "withheld",
            HttpError::Metadata { .. } => "metadata",
            HttpError::NotPublic { .. } => "not_public",
            HttpError::Unresolved { .. } | HttpError::TooManyAddresses { .. } => "unresolved",
            HttpError::Unreachable { .. } => "unreachable",
            HttpError::Tls { .. } => "tls",
            HttpError::Protocol { .. } => "protocol",
            HttpError::Redirect { .. } | HttpError::TooManyRedirects { .. } => "redirect",
            HttpError::TooSlow { .. } => "too_slow",
            HttpError::Undecodable { .. } => "encoding",
            HttpError::Bomb => "bomb",
        }
    }

    /// The same as a tool returns it: the model reads why. Whoever only asks changes nothing.
    pub fn tell(self) -> ToolError {
        let (told, code) = (self.to_string(), self.code());
        match self {
            HttpError::Withheld { .. }
            | HttpError::Metadata { .. }
            | HttpError::NotPublic { .. }
            | HttpError::Unresolved { .. }
            | HttpError::TooManyAddresses { .. }
            | HttpError::Unreachable { .. }
            | HttpError::Tls { .. } => ToolError::not_done(told).code(code),
            HttpError::Protocol { .. }
            | HttpError::Redirect { .. }
            | HttpError::TooManyRedirects { .. }
            | HttpError::TooSlow { .. }
            | HttpError::Undecodable { .. }
            | HttpError::Bomb => ToolError::tell(told).code(code),
        }
    }
}
