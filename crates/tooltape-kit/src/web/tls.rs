//! TLS: who a host has to prove to be, and to whose satisfaction.

use std::io;
use std::sync::{Arc, OnceLock};

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tooltape::scope::Host;

/// Whose word is taken for who a host is.
#[derive(Default)]
pub(super) struct Trust {
    /// These certificates', or else the machine's.
    roots: Vec<CertificateDer<'static>>,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Trust {
    /// The same and this certificate, or why it is none.
    pub(super) fn and(&self, root: Vec<u8>) -> io::Result<Trust> {
        let roots = self.roots.iter().cloned().chain([CertificateDer::from(root)]).collect();
        let trust = Trust { roots, config: OnceLock::new() };
        trust.config()?;
        Ok(trust)
    }

    /// Talks TLS on a connection, to this host and to no other.
    pub(super) async fn seal(
        &self,
        host: &Host,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = match (host.name(), host.address()) {
            (Some(name), _) => ServerName::try_from(name.to_owned()).map_err(io::Error::other)?,
            (None, Some(address)) => ServerName::from(address),
            (None, None) => return Err(io::Error::other("a host has a name or an address")),
        };
        TlsConnector::from(self.config()?).connect(name, stream).await
    }

    fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.config.get() {
            return Ok(config.clone());
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let builder = match self.roots.as_slice() {
            [] => builder.with_platform_verifier().map_err(io::Error::other)?,
            roots => {
                let mut store = RootCertStore::empty();
                for root in roots {
                    store.add(root.clone()).map_err(io::Error::other)?;
                }
                builder.with_root_certificates(store)
            }
        };
        // No certificate of ours is ever shown.
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(self.config.get_or_init(|| Arc::new(config)).clone())
    }
}
