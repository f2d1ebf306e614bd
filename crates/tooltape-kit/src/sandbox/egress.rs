//! The one way out of a box: a proxy outside, which asks for processes what their call may ask.

// A box has a network of its own with nobody else in it. Its helper opens a port there and hands
// the open port out, so that whoever connects to it within talks to the proxy out here.

mod broker;
mod head;
mod ledger;
mod mask;
#[cfg(target_os = "linux")]
pub(super) mod port;
mod relay;

use std::io;
use std::net::TcpListener as Port;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) use broker::Brokered;
pub use head::EGRESS_HEAD_BYTES_MAX;
use head::{Asked, Head};
use ledger::Ledger;
use mask::Mask;
use relay::Relay;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tooltape::schemars::JsonSchema;
use tooltape::scope::Method;

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
    /// `allowed`, or the code of what refused it; `pending` where the process ended before.
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
    ledger: Ledger,
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
        let (ledger, left) = (Ledger::default(), relay::Left::new(EGRESS_BYTES_MAX));
        let shared = Arc::new(Shared { http, secrets, ledger, left });
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

    /// What was asked for, in that order, and how much more than is listed. Lets nothing through
    /// any more.
    pub(crate) fn close(self) -> (Vec<Connection>, u64) {
        self.shared.ledger.close()
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
        let passed = match head.asked() {
            Err(why) => {
                self.ledger.refuse(why.code());
                Err(why.said())
            }
            Ok(asked) => {
                let passed = self.pass(&asked, &mut stream).await;
                passed.map_err(|err| format!("{}: {err}", err.code()))
            }
        };
        if let Err(why) = passed {
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
    }

    /// Lets a connection through, if the call may ask that host in that way.
    async fn pass(&self, asked: &Asked<'_>, stream: &mut TcpStream) -> Result<(), HttpError> {
        let brokered = match asked {
            Asked::Tunnel { .. } => None,
            Asked::Page(page) => Brokered::of(&self.secrets, &page.site, &page.fields),
        };
        let site = brokered.as_ref().map_or(asked.site(), |brokered| &brokered.site);
        // A process that has ended asks nobody.
        let Some(line) = self.ledger.begin(site) else { return Ok(()) };
        let wire: Result<Box<dyn Wire>, HttpError> = match asked {
            // Nobody sees what is asked in a tunnel, so it has to be anything.
            Asked::Tunnel { .. } => match self.http.connect(site, Method::Any).await {
                Ok(wire) => Ok(Box::new(wire)),
                Err(err) => Err(err),
            },
            Asked::Page(page) => self.http.wire(site, page.method).await,
        };
        let wire = wire.inspect_err(|err| line.refuse(err.code()))?;
        if !line.allow() {
            return Ok(());
        }
        let left = &self.left;
        match asked {
            Asked::Tunnel { rest, .. } => {
                let relay = Relay { left, out: None, mask: Mask::none(), line };
                // What breaks off is over, as it is for whoever had asked by themselves.
                let _ = stream.write_all(ESTABLISHED).await;
                relay.run(stream, wire, rest).await;
            }
            Asked::Page(page) => {
                let brokered = brokered.as_ref();
                let mask = brokered.map_or_else(Mask::none, |it| Mask::of(&it.values));
                let begun = [&page.head(site, brokered)[..], page.rest()].concat();
                let relay = Relay { left, out: Some(page.body_left()), mask, line };
                relay.run(stream, wire, &begun).await;
            }
        }
        Ok(())
    }
}
