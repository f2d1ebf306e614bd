//! The two ways to the network, which tests replace.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

use tooltape::BoxFuture;

/// Finds out the addresses of a name.
///
/// Whatever it says is vetted, and asked once for each connection.
pub trait Resolve: Send + Sync {
    /// The addresses of a host's name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Opens a connection to an address, which was vetted before.
pub trait Dial: Send + Sync {
    /// A connection to this address and to no other.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// The resolver of the operating system.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// TCP.
pub(super) struct SystemDialler;

impl Dial for SystemDialler {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move { tokio::net::TcpStream::connect(address).await?.into_std() })
    }
}
