//! The way to a host: a right, an address that was vetted, and a connection to that address.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tooltape::scope::{Host, Method, NetScope, Site};
use tooltape::{CallContext, Refusal, Right, Withheld};

use super::error::HttpError;
use super::http::Http;
use super::vet;

/// The most addresses of one host.
pub const ADDRESSES_MAX: usize = 64;
/// The most of them that are tried for one connection.
pub const DIALS_MAX: usize = 4;

/// An address that may be connected to. Only [`Http::vetted`] makes one.
struct Vetted(SocketAddr);

impl Http {
    /// A connection to a host that may be asked by this method now.
    pub(crate) async fn connect(
        &self,
        site: &Site,
        method: Method,
    ) -> Result<TcpStream, HttpError> {
        self.check(site, method)?;
        let mut refused = None;
        for Vetted(address) in self.vetted(site).await? {
            let dialled = self.dialler.dial(address);
            match self.in_time(&site.host, "to take a connection", dialled).await? {
                Ok(stream) => {
                    let stream = stream.set_nonblocking(true).map(|()| stream);
                    let stream = stream.and_then(TcpStream::from_std);
                    return stream.map_err(|source| unreachable(&site.host, source));
                }
                Err(source) => refused = Some(source),
            }
        }
        let source = refused.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into());
        Err(unreachable(&site.host, source))
    }

    /// Checks that the call may ask the host now.
    pub(crate) fn check(&self, site: &Site, method: Method) -> Result<(), HttpError> {
        if vet::is_metadata(&site.host) {
            return Err(HttpError::Metadata { host: site.host.clone() });
        }
        let right =
            Right::Net(NetScope { hosts: site.host.clone().into(), port: site.port, method });
        let checked = match &self.call {
            _ if self.only.as_ref().is_some_and(|only| !only.covers(&right)) => {
                let (holder, right) = ("the tool".into(), Box::new(right));
                Err(Refusal { holder, depth: 0, right, why: Withheld::Missing })
            }
            Some(call) => call.check(&right),
            None if self.allowed.covers(&right) => Ok(()),
            None => {
                let (holder, right) = ("the handle".into(), Box::new(right));
                Err(Refusal { holder, depth: 0, right, why: Withheld::Missing })
            }
        };
        let withheld = |refusal: Refusal| HttpError::Withheld {
            site: Box::new(site.clone()),
            refusal: Box::new(refusal),
        };
        checked.map_err(withheld)
    }

    /// Whether there is any host that may be asked now.
    pub(crate) fn may_ask_somebody(&self) -> bool {
        let held = self.call.as_ref().and_then(CallContext::held);
        let held = held.unwrap_or_else(|| self.allowed.clone());
        held.allowed().iter().any(|right| matches!(right, Right::Net(_)))
    }

    /// The addresses of a host, of which none may be other than public.
    async fn vetted(&self, site: &Site) -> Result<Vec<Vetted>, HttpError> {
        let Site { host, port, .. } = site;
        let addresses = match (host.address(), host.name()) {
            (Some(address), _) => vec![address],
            (None, Some(name)) => {
                let resolved = self.resolver.resolve(name);
                let unresolved =
                    |source| HttpError::Unresolved { host: host.clone(), source: Some(source) };
                self.in_time(host, "to be found", resolved).await?.map_err(unresolved)?
            }
            (None, None) => Vec::new(),
        };
        match addresses.len() {
            0 => return Err(HttpError::Unresolved { host: host.clone(), source: None }),
            1..=ADDRESSES_MAX => {}
            found => return Err(HttpError::TooManyAddresses { host: host.clone(), found }),
        }
        for address in &addresses {
            self.vet(site, *address)?;
        }
        let dialled = addresses.into_iter().take(DIALS_MAX);
        Ok(dialled.map(|address| Vetted(SocketAddr::new(address, port.get()))).collect())
    }

    fn vet(&self, site: &Site, address: IpAddr) -> Result<(), HttpError> {
        let is_named = || self.private.iter().any(|it| *it == (site.host.clone(), site.port));
        match vet::kind(address) {
            None => Ok(()),
            Some(kind) if kind.may_be_named() && is_named() => Ok(()),
            Some(kind) => Err(HttpError::not_public(&site.host, address, kind)),
        }
    }

    /// What a host does, if it does not take too long.
    pub(crate) async fn in_time<T>(
        &self,
        host: &Host,
        what: &'static str,
        future: impl Future<Output = T>,
    ) -> Result<T, HttpError> {
        within(self.patience.idle, host, what, future).await
    }
}

/// What a host does, if it does not take longer than this.
pub(super) async fn within<T>(
    limit: Duration,
    host: &Host,
    what: &'static str,
    future: impl Future<Output = T>,
) -> Result<T, HttpError> {
    tokio::time::timeout(limit, future).await.map_err(|_| HttpError::TooSlow {
        host: host.clone(),
        ms: limit.as_millis(),
        what,
    })
}

fn unreachable(host: &Host, source: io::Error) -> HttpError {
    HttpError::Unreachable { host: host.clone(), source }
}
