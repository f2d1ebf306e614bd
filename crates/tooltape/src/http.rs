//! A model behind an HTTP API: one request a turn, bounded, tried again, and closed when given up.

mod answer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use answer::{Answer, Tried};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy};

use crate::grant::Secret;
use crate::model::{Delta, Model, ModelError, Request, Turn};
use crate::reply::Redactor;
use crate::tool::BoxFuture;
use crate::wire::{Api, Encoder};

/// How long it may take to reach a server.
pub const CONNECT_DEFAULT: Duration = Duration::from_secs(10);
/// How long a server may say nothing at all.
pub const SILENCE_DEFAULT: Duration = Duration::from_secs(120);
/// How long one turn may take, with all that is tried again.
pub const TURN_DEFAULT: Duration = Duration::from_secs(600);
/// How often a request is sent.
pub const ATTEMPTS_DEFAULT: u32 = 4;
/// The pause before a request is sent again; each is twice the one before.
pub const PAUSE_DEFAULT: Duration = Duration::from_millis(500);
/// The longest pause that a server may ask for. Where it asks for more, it is busy.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The bytes of an answer that is not streamed.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// The version of Anthropic's API that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A model behind an API.
///
/// Keys are sent in headers alone, to the server that was named and to no other: redirects are not
/// followed, and no proxy is used unless one is named. Dropping a turn closes its connection.
///
/// ```
/// use tooltape::http::Provider;
/// use tooltape::wire::Api;
/// use tooltape::{Agent, Run, Secret, Toolbox};
///
/// let key = Secret::new(String::from("…"));
/// let model = Provider::new(Api::Anthropic, "claude-sonnet-4-5").key(&key)?;
/// assert!(!format!("{model:?}").contains('…'));
/// let agent = Agent::new(model.build()?, Run::new(&Toolbox::default()));
/// # Ok::<(), tooltape::http::ProviderError>(())
/// ```
#[derive(Clone)]
pub struct Provider {
    api: Api,
    model: Arc<str>,
    base: String,
    headers: HeaderMap,
    /// Takes the key out of what a server says about it.
    redactor: Redactor,
    proxy: Option<String>,
    waits: Waits,
    streams: bool,
}

/// How long a model's server is waited for, and how often it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// How long it may take to reach the server.
    pub connect: Duration,
    /// How long the server may say nothing at all.
    pub silence: Duration,
    /// How long one turn may take, with all that is tried again.
    pub turn: Duration,
    /// How often a request is sent; at least once.
    pub attempts: u32,
    /// The pause before a request is sent again; each is twice the one before.
    pub pause: Duration,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            connect: CONNECT_DEFAULT,
            silence: SILENCE_DEFAULT,
            turn: TURN_DEFAULT,
            attempts: ATTEMPTS_DEFAULT,
            pause: PAUSE_DEFAULT,
        }
    }
}

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A key is no text that a header can have.
    #[error("the key has a character that no header can have")]
    Key,
    /// An address is none.
    #[error("`{0}` is no address of a server: expected `http://` or `https://` and a host")]
    Address(String),
    /// The network cannot be used.
    #[error("there is no way to the network: {0}")]
    Network(String),
}

impl Provider {
    /// A model by its name, at the server that its maker runs.
    ///
    /// For [`Api::Compatible`] that is this machine, at llama.cpp's port.
    pub fn new(api: Api, model: impl Into<Arc<str>>) -> Provider {
        let base = match api {
            Api::OpenAi | Api::Responses => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com",
            Api::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Api::Mistral => "https://api.mistral.ai/v1",
            Api::Compatible => "http://127.0.0.1:8080/v1",
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Api::Anthropic = api {
            let version = HeaderValue::from_static(ANTHROPIC_VERSION);
            headers.insert(HeaderName::from_static("anthropic-version"), version);
        }
        Provider {
            api,
            model: model.into(),
            base: base.to_owned(),
            headers,
            redactor: Redactor::default(),
            proxy: None,
            waits: Waits::default(),
            streams: true,
        }
    }

    /// Sends this key.
    pub fn key(mut self, key: &Secret<String>) -> Result<Provider, ProviderError> {
        let (name, value) = match self.api {
            Api::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().clone()),
            Api::Gemini => (HeaderName::from_static("x-goog-api-key"), key.expose().clone()),
            Api::OpenAi | Api::Responses | Api::Mistral | Api::Compatible => {
                (AUTHORIZATION, format!("Bearer {}", key.expose()))
            }
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| ProviderError::Key)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        self.redactor = Redactor::default().and([key.expose()]).map_err(|_| ProviderError::Key)?;
        Ok(self)
    }

    /// Asks another server, such as `http://127.0.0.1:8080/v1`.
    ///
    /// An address has no user, password or query: what is secret goes into a [key](Self::key).
    pub fn at(mut self, base: &str) -> Result<Provider, ProviderError> {
        let url = reqwest::Url::parse(base).map_err(|_| no_address(base))?;
        // A key in an address would be in every error and log.
        let is_plain = url.username().is_empty() && url.password().is_none();
        let is_path = url.query().is_none() && url.fragment().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_web || !is_plain || !is_path {
            return Err(no_address(base));
        }
        self.base = base.trim_end_matches('/').to_owned();
        Ok(self)
    }

    /// The scheme and the host of the server that is asked, such as `https` and `api.openai.com`.
    pub fn server(&self) -> (String, String) {
        let url = reqwest::Url::parse(&self.base).ok();
        let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
        (url.as_ref().map_or("https", |url| url.scheme()).to_owned(), host.to_owned())
    }

    /// Goes through a proxy.
    #[must_use]
    pub fn proxy(mut self, address: impl Into<String>) -> Provider {
        self.proxy = Some(address.into());
        self
    }

    /// Sets how long the server is waited for, and how often it is asked.
    #[must_use]
    pub fn waits(mut self, waits: Waits) -> Provider {
        self.waits = waits;
        self
    }

    /// Has answers sent whole, for servers that cannot stream.
    #[must_use]
    pub fn whole(mut self) -> Provider {
        self.streams = false;
        self
    }

    /// The model, ready to be asked.
    pub fn build(self) -> Result<HttpModel, ProviderError> {
        let network = |err: reqwest::Error| ProviderError::Network(plain(err));
        let mut client = Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(self.waits.connect)
            .read_timeout(self.waits.silence)
            .no_proxy();
        // Servers on one's own machine close connections without a word, and new ones cost nothing.
        if self.base.starts_with("http://") {
            client = client.pool_max_idle_per_host(0);
        }
        if let Some(address) = &self.proxy {
            let proxy = Proxy::all(address).map_err(|_| no_address(address))?;
            client = client.proxy(proxy);
        }
        let client = client.build().map_err(network)?;
        let encoder = Encoder::new(self.api, self.model.clone());
        Ok(HttpModel { client, encoder, provider: self })
    }

    /// The address that a turn is asked for at.
    fn address(&self) -> String {
        let Provider { api, model, base, streams, .. } = self;
        match api {
            Api::OpenAi | Api::Mistral | Api::Compatible => format!("{base}/chat/completions"),
            Api::Responses => format!("{base}/responses"),
            Api::Anthropic => format!("{base}/v1/messages"),
            Api::Gemini => {
                // A name may say itself what kind of model it is of.
                let folder = if model.contains('/') { "" } else { "models/" };
                let method =
                    if *streams { "streamGenerateContent?alt=sse" } else { "generateContent" };
                format!("{base}/{folder}{model}:{method}")
            }
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("api", &self.api)
            .field("model", &self.model)
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// A model behind an API, ready to be asked.
pub struct HttpModel {
    client: Client,
    encoder: Encoder,
    provider: Provider,
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpModel").field(&self.provider).finish()
    }
}

impl Model for HttpModel {
    fn turn<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Result<Turn, ModelError>> {
        Box::pin(async move {
            let waits = &self.provider.waits;
            let asking = self.ask(request);
            match tokio::time::timeout(waits.turn, asking).await {
                Ok(asked) => asked.map_err(|err| self.discreet(err)),
                Err(_) => Err(ModelError::Unreachable(format!("no turn within {:?}", waits.turn))),
            }
        })
    }
}

impl HttpModel {
    /// Asks until there is a turn, or no sense in asking again.
    async fn ask(&self, request: &Request<'_>) -> Result<Turn, ModelError> {
        let Waits { attempts, pause, .. } = self.provider.waits;
        let mut pause = pause.min(PAUSE_MAX);
        let body = self.encoder.encode(request, self.provider.streams);
        let body = body.map_err(|err| ModelError::Failed(err.to_string()))?;
        let mut left = attempts.max(1);
        loop {
            left -= 1;
            let (again, wait) = match self.try_once(request, body.clone()).await {
                Ok(Tried::Turn(turn)) => return Ok(self.encoder.restore(request, turn)),
                Ok(Tried::Cut(turn)) if left == 0 => return told(turn),
                Ok(Tried::Cut(_)) => (None, None),
                Err((err, wait)) => (Some(err), wait),
            };
            let wait = wait.unwrap_or(pause);
            if let Some(err) = again
                && (left == 0 || !is_worth_it(&err) || wait > PAUSE_MAX)
            {
                return Err(err);
            }
            request.tell(Delta::Again);
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }

    /// Asks once. An error says how long the server wants to be left alone, where it does.
    async fn try_once(
        &self,
        request: &Request<'_>,
        body: Vec<u8>,
    ) -> Result<Tried, (ModelError, Option<Duration>)> {
        let Provider { api, headers, streams, .. } = &self.provider;
        let accept = if *streams { "text/event-stream" } else { "application/json" };
        let sent = self
            .client
            .post(self.provider.address())
            .headers(headers.clone())
            .header(ACCEPT, accept)
            .body(body)
            .send()
            .await;
        let response = sent.map_err(|err| (unreachable(err), None))?;
        Answer::new(*api, *streams, response).read(request).await
    }

    /// The error without the key, which some servers say again.
    fn discreet(&self, err: ModelError) -> ModelError {
        let clean = |told: String| self.provider.redactor.redact(&told).into_owned();
        match err {
            ModelError::Unauthorised(told) => ModelError::Unauthorised(clean(told)),
            ModelError::Unreachable(told) => ModelError::Unreachable(clean(told)),
            ModelError::Rejected { status, told } => {
                ModelError::Rejected { status, told: clean(told) }
            }
            ModelError::Busy { status, told } => ModelError::Busy { status, told: clean(told) },
            ModelError::Garbled(told) => ModelError::Garbled(clean(told)),
            ModelError::Failed(told) => ModelError::Failed(clean(told)),
            err @ ModelError::Over { .. } => err,
        }
    }
}

/// A turn that was cut off, as long as anything of it came.
fn told(turn: Turn) -> Result<Turn, ModelError> {
    if turn.text.is_none() && turn.proposals.is_empty() {
        let why = "the answer ended before anything was said";
        return Err(ModelError::Unreachable(why.to_owned()));
    }
    Ok(turn)
}

/// Whether the same request may fare better at once.
fn is_worth_it(err: &ModelError) -> bool {
    err.is_passing() && !matches!(err, ModelError::Unauthorised(_))
}

/// Says that this is no address, without what may be secret in it: its user and its query.
fn no_address(address: &str) -> ProviderError {
    let shown = address.split(['?', '#']).next().unwrap_or_default();
    let shown = match (shown.split_once("://"), shown.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => shown.to_owned(),
    };
    ProviderError::Address(shown)
}

fn unreachable(err: reqwest::Error) -> ModelError {
    ModelError::Unreachable(plain(err))
}

/// What went wrong, and why, without the address: a proxy's may have a password in it.
fn plain(err: reqwest::Error) -> String {
    let err = err.without_url();
    let mut text = err.to_string();
    let mut source = std::error::Error::source(&err);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
