//! The one way out of a box: a proxy outside, which asks for processes what their call may ask.

// A box has a network of its own with nobody else in it. Its helper opens a port there and hands
// the open port out, so that whoever connects to it within talks to the proxy out here.

mod broker;
mod head;
#[cfg(target_os = "linux")]
pub(super) mod port;
mod relay;

use std::io;
use std::net::TcpListener as Port;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) use broker::Brokered;
pub use head::EGRESS_HEAD_BYTES_MAX;
use head::{Asked, Head};
use relay::{Mask, Relay};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tooltape::schemars::JsonSchema;
use tooltape::scope::{Method, Site};

use crate::web::{Http, HttpError, Wire};

/// The most connections of a process at once; more wait.
pub const CONNECTIONS_MAX: usize = 64;
/// The most connections that a result lists.
pub const CONNECTIONS_SHOWN_MAX: usize = 100;
/// The most bytes of all connections of a process together, in and out.
pub const EGRESS_BYTES_MAX: u64 = 1 << 30;
/// How long a connection may be silent.
pub const EGRESS_IDLE: Duration = Duration::from_secs(60);

/// How much more is taken from a process that was refused.
const REFUSED_BYTES_MAX: u64 = 64 << 10;
/// How long it is listened to.
const REFUSED_WALL: Duration = Duration::from_secs(1);

/// What is said to a process whose connection is let through.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// A connection that a process asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub struct Connection {
    /// The host, as far as it was one.
    pub host: String,
    /// The port; 0 where there was none.
    pub port: u16,
    /// How many bytes went out and came in.
    pub bytes: u64,
    /// `allowed`, or the code of what refused it.
    pub verdict: String,
}

/// A proxy for one process. Dropping it ends all its connections.
pub(crate) struct Egress {
    shared: Arc<Shared>,
    /// Closed when it is dropped, which ends what it serves.
    _stop: oneshot::Sender<()>,
}

/// What its connections have in common.
struct Shared {
    http: Http,
    secrets: Vec<Brokered>,
    connections: Mutex<Vec<Connection>>,
    /// What is left of [`EGRESS_BYTES_MAX`].
    left: relay::Left,
}

impl Egress {
    /// Waits for a port, and serves whoever connects to it, on a thread of its own.
    pub(crate) fn start(
        port: impl FnOnce() -> io::Result<Port> + Send + 'static,
        http: Http,
        secrets: Vec<Brokered>,
    ) -> io::Result<Egress> {
        let (connections, left) = (Mutex::default(), relay::Left::new(EGRESS_BYTES_MAX));
        let shared = Arc::new(Shared { http, secrets, connections, left });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let serve = move || {
            // A box that ends before it has a port needs nobody.
            if let Ok(port) = port() {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(port, serving) => {}
                        _ = stopped => {}
                    }
                });
            }
            // A name that is still looked for is nobody's any more.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("tooltape-egress".to_owned()).spawn(serve)?;
        Ok(Egress { shared, _stop: stop })
    }

    /// What was asked for so far, in the order of its end.
    pub(crate) fn connections(&self) -> Vec<Connection> {
        self.shared.connections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(port: Port, shared: Arc<Shared>) {
    let port = port.set_nonblocking(true).and_then(|()| TcpListener::from_std(port));
    let Ok(port) = port else { return };
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut serving = JoinSet::new();
    loop {
        let Ok(seat) = seats.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = port.accept().await else { return };
        let shared = shared.clone();
        serving.spawn(async move {
            shared.talk(stream).await;
            drop(seat);
        });
        while serving.try_join_next().is_some() {}
    }
}

impl Shared {
    /// Serves one connection, and writes down what became of it.
    async fn talk(&self, mut stream: TcpStream) {
        let head = tokio::time::timeout(EGRESS_IDLE, Head::read(&mut stream)).await;
        let Ok(Ok(Some(head))) = head else { return };
        let asked = head.asked();
        let mut connection = match &asked {
            Ok(asked) => Connection::to(asked.site()),
            Err(why) => Connection::refused(why.code()),
        };
        let refused = match asked {
            Err(why) => Err(why.said()),
            Ok(asked) => match self.pass(&asked, &mut stream, &mut connection).await {
                Ok(()) => Ok(()),
                Err(err) => {
                    connection.verdict = err.code().to_owned();
                    Err(format!("{}: {err}", err.code()))
                }
            },
        };
        if let Err(why) = refused {
            let why = format!("tooltape: {why}\n");
            let head = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{why}", why.len());
            // Whoever asked may be gone, or still be talking: who is hung up on hears no answer.
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
            let mut rest = (&mut stream).take(REFUSED_BYTES_MAX);
            let mut nowhere = tokio::io::sink();
            let unheard = tokio::io::copy(&mut rest, &mut nowhere);
            let _ = tokio::time::timeout(REFUSED_WALL, unheard).await;
        }
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if connections.len() < CONNECTIONS_SHOWN_MAX {
            connections.push(connection);
        }
    }

    /// Lets a connection through, if the call may ask that host in that way.
    async fn pass(
        &self,
        asked: &Asked<'_>,
        stream: &mut TcpStream,
        connection: &mut Connection,
    ) -> Result<(), HttpError> {
        match asked {
            Asked::Tunnel { site, rest } => {
                // Nobody sees what is asked in a tunnel, so it has to be anything.
                let wire: Box<dyn Wire> = Box::new(self.http.connect(site, Method::Any).await?);
                let relay = Relay { left: &self.left, out: None, mask: Mask::none() };
                // What breaks off is over, as it is for whoever had asked by themselves.
                let _ = stream.write_all(ESTABLISHED).await;
                connection.bytes = relay.run(stream, wire, rest).await;
            }
            Asked::Page(page) => {
                let brokered = Brokered::of(&self.secrets, &page.site, &page.fields);
                let site = brokered.as_ref().map_or(&page.site, |brokered| &brokered.site);
                connection.port = site.port.get();
                let wire = self.http.wire(site, page.method).await?;
                let values = brokered.as_ref().map(|brokered| brokered.values.as_slice());
                let head = page.head(site, brokered.as_ref());
                let mask = Mask::of(values.unwrap_or_default());
                let relay = Relay { left: &self.left, out: Some(page.body_left()), mask };
                let begun = [&head[..], page.rest()].concat();
                connection.bytes = relay.run(stream, wire, &begun).await;
            }
        }
        Ok(())
    }
}

impl Connection {
    fn to(site: &Site) -> Connection {
        let (host, port) = (site.host.to_string(), site.port.get());
        Connection { host, port, bytes: 0, verdict: "allowed".to_owned() }
    }

    fn refused(verdict: &str) -> Connection {
        Connection { host: String::new(), port: 0, bytes: 0, verdict: verdict.to_owned() }
    }
}
