//! A network of our own: names lead where a case says, and every connection ends at a listener of
//! ours on this machine.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tooltape::BoxFuture;
use tooltape_kit::{Dial, Http, Resolve};

/// The only addresses that are public here.
pub(crate) const PUBLIC: [&str; 3] = ["93.184.216.34", "93.184.216.35", "2606:2800:220:1::1"];

/// What a page does.
#[derive(Clone)]
pub(crate) enum Page {
    /// Says these bytes, and ends.
    Says(Vec<u8>),
    /// Says these bytes, then the others for ever.
    Endless(Vec<u8>, Vec<u8>),
    /// Says these bytes and nothing more, and does not end.
    Stalls(Vec<u8>),
}

/// Everything that happens is written down here.
#[derive(Default)]
pub(crate) struct Log {
    /// Every address that somebody tried to connect to.
    pub(crate) dialled: Vec<SocketAddr>,
    /// The heads of all requests.
    pub(crate) heads: Vec<String>,
    /// Every name that somebody looked up.
    pub(crate) names: Vec<String>,
    /// Connections that reached what is not public.
    pub(crate) inside: usize,
}

struct Shared {
    /// What a name resolves to, answer by answer; the last one stays.
    names: HashMap<String, VecDeque<Vec<IpAddr>>>,
    pages: HashMap<String, Page>,
    log: Log,
}

/// The network.
#[derive(Clone)]
pub(crate) struct Fakes {
    shared: Arc<Mutex<Shared>>,
    server: SocketAddr,
    /// The same behind TLS, as `example.com`.
    sealed: SocketAddr,
    canary: SocketAddr,
}

impl Fakes {
    pub(crate) fn new() -> Fakes {
        let shared = Shared { names: HashMap::new(), pages: HashMap::new(), log: Log::default() };
        let shared = Arc::new(Mutex::new(shared));
        let listen = || TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (server, sealed, canary) = (listen(), listen(), listen());
        let addresses = [&server, &sealed, &canary].map(|it| it.local_addr().unwrap());
        serve(server, shared.clone(), answer);
        serve(sealed, shared.clone(), |stream, shared| {
            answer(StreamOwned::new(ServerConnection::new(identity()).unwrap(), stream), shared);
        });
        serve(canary, shared.clone(), |mut stream, shared| {
            shared.lock().unwrap().log.inside += 1;
            let _ = head(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nCANARY");
        });
        let [server, sealed, canary] = addresses;
        Fakes { shared, server, sealed, canary }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) -> &Fakes {
        let mut shared = self.shared.lock().unwrap();
        (shared.names, shared.pages) = (HashMap::new(), HashMap::new());
        shared.log = Log::default();
        self
    }

    /// A name resolves to these addresses, one answer after the other.
    pub(crate) fn name(&self, name: &str, answers: &[&[&str]]) -> &Fakes {
        let answer = |answer: &&[&str]| answer.iter().map(|it| it.parse().unwrap()).collect();
        let answers = answers.iter().map(answer).collect();
        self.shared.lock().unwrap().names.insert(name.to_owned(), answers);
        self
    }

    /// A host that is public, with a page.
    pub(crate) fn page(&self, host_and_path: &str, page: Page) -> &Fakes {
        let host = host_and_path.split(['/', ':']).next().unwrap();
        self.name(host, &[&[PUBLIC[0]]]);
        self.shared.lock().unwrap().pages.insert(host_and_path.to_owned(), page);
        self
    }

    /// A page that says this text with these header fields.
    pub(crate) fn says(&self, host_and_path: &str, fields: &str, body: impl AsRef<[u8]>) -> &Fakes {
        self.page(host_and_path, Page::Says(response(200, fields, body.as_ref())))
    }

    pub(crate) fn redirects(&self, host_and_path: &str, location: &str) -> &Fakes {
        let head =
            format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        self.page(host_and_path, Page::Says(head.into_bytes()))
    }

    pub(crate) fn log<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.shared.lock().unwrap().log)
    }

    /// Whether nobody tried to get where it is not public.
    pub(crate) fn is_safe(&self) -> bool {
        let is_public = |address: &SocketAddr| PUBLIC.contains(&address.ip().to_string().as_str());
        self.log(|log| log.inside == 0 && log.dialled.iter().all(is_public))
    }

    /// The handle to this network.
    pub(crate) fn http(&self) -> Http {
        Http::new().resolver(self.clone()).dialler(self.clone())
    }

    /// What a name resolves to now. A name that nobody knows leads to this machine.
    pub(crate) fn lookup(&self, name: &str) -> Vec<IpAddr> {
        let mut shared = self.shared.lock().unwrap();
        shared.log.names.push(name.to_owned());
        let Some(answers) = shared.names.get_mut(name) else {
            return vec!["127.0.0.1".parse().unwrap()];
        };
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        }
    }

    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.shared.lock().unwrap().log.dialled.push(address);
        let is_public = PUBLIC.contains(&address.ip().to_string().as_str());
        TcpStream::connect(match (is_public, address.port()) {
            (true, 443) => self.sealed,
            (true, _) => self.server,
            (false, _) => self.canary,
        })
    }
}

impl Resolve for Fakes {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(self.lookup(name)) })
    }
}

impl Dial for Fakes {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move { self.connect(address) })
    }
}

/// The certificate that says who listens here.
pub(crate) const ROOT: &[u8] = include_bytes!("certificates/root.der");

/// Who `example.com` is, signed by [`ROOT`].
fn identity() -> Arc<ServerConfig> {
    let certificate = include_bytes!("certificates/example.com.der").to_vec();
    let key = include_bytes!("certificates/example.com.key.der").to_vec();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = PrivatePkcs8KeyDer::from(key).into();
    Arc::new(builder.with_single_cert(vec![CertificateDer::from(certificate)], key).unwrap())
}

/// An answer in HTTP.
pub(crate) fn response(status: u16, fields: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let fields: String = fields.lines().map(|field| format!("{}\r\n", field.trim())).collect();
    let head = format!("HTTP/1.1 {status} X\r\n{fields}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn serve(listener: TcpListener, shared: Arc<Mutex<Shared>>, talk: fn(TcpStream, &Mutex<Shared>)) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            thread::spawn(move || talk(stream, &shared));
        }
    });
}

/// Answers one request. Whoever asks may be gone in the middle of it.
fn answer(mut stream: impl Read + Write, shared: &Mutex<Shared>) {
    let Some(head) = head(&mut stream) else { return };
    let path = head.split(' ').nth(1).unwrap_or_default();
    let lower = head.to_ascii_lowercase();
    let host = lower.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let page = {
        let mut shared = shared.lock().unwrap();
        shared.log.heads.push(head.clone());
        shared.pages.get(&format!("{host}{path}")).cloned()
    };
    let page = page.unwrap_or_else(|| Page::Says(response(404, "content-type: text/plain", b"no")));
    match page {
        Page::Says(bytes) => drop(stream.write_all(&bytes).and_then(|()| stream.flush())),
        Page::Endless(bytes, again) => {
            let mut sent = stream.write_all(&bytes);
            while sent.is_ok() {
                sent = stream.write_all(&again);
            }
        }
        Page::Stalls(bytes) => {
            let _ = stream.write_all(&bytes);
            // Until whoever asked goes.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

/// The head of a request.
pub(crate) fn head(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}
