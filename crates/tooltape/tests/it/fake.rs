//! Servers on this machine that speak each vendor's API by its published rules, and go wrong.

mod chat;
mod gemini;
mod messages;
mod play;
mod responses;
mod serve;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub(crate) use play::{End, Part, Play, Said, Then, call, said, thought};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tooltape::Secret;
use tooltape::dialect::Dialect;
use tooltape::http::{Provider, Waits};
use tooltape::testing::{Entry, TranscriptRules, check_entries};
use tooltape::wire::Api;

use crate::provider_rules::violations;

/// The key that a server accepts. It must be found nowhere else.
pub(crate) const KEY: &str = "sk-canary-4f0d1a2b3c4d5e6f7a8b9c0d1e2f3a4b";
/// The one model that a server has.
pub(crate) const MODEL: &str = "fake-3-mini";
/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server.
pub(crate) struct Fake {
    api: Api,
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
    key: &'static str,
}

/// What a server has still to say, and what it has heard.
struct State {
    api: Api,
    key: Mutex<&'static str>,
    plays: Mutex<VecDeque<Play>>,
    /// What the model thought, by which its provider knows it again.
    thoughts: Mutex<Vec<String>>,
    seen: Mutex<Vec<Seen>>,
    /// The connections that the other side closed while something was still to come.
    closed: watch::Sender<usize>,
    asked: watch::Sender<usize>,
}

/// A request that came.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    pub(crate) at: Instant,
    /// Why it was refused, if it was.
    pub(crate) refused: Option<String>,
}

impl Seen {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }
}

impl Fake {
    /// Starts a server that plays this, request by request.
    pub(crate) async fn start(api: Api, plays: impl IntoIterator<Item = Play>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            api,
            key: Mutex::new(KEY),
            plays: Mutex::new(plays.into_iter().collect()),
            thoughts: Mutex::default(),
            seen: Mutex::default(),
            closed: watch::Sender::new(0),
            asked: watch::Sender::new(0),
        });
        let serving = tokio::spawn(serve::accept(listener, Arc::clone(&state)));
        Fake { api, address, state, serving, key: KEY }
    }

    /// The server accepts another key instead.
    pub(crate) fn accepting(mut self, key: &'static str) -> Fake {
        *lock(&self.state.key) = key;
        self.key = key;
        self
    }

    /// The address that stands for the one that the vendor publishes.
    pub(crate) fn base(&self) -> String {
        let path = match self.api {
            Api::OpenAi | Api::Responses | Api::Mistral | Api::Compatible => "/v1",
            Api::Anthropic => "",
            Api::Gemini => "/v1beta",
        };
        format!("http://{}{path}", self.address)
    }

    /// The address without a path.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whoever asks this server, with its key, and in a hurry.
    pub(crate) fn provider(&self) -> Provider {
        let key = Secret::new(self.key.to_owned());
        self.keyless().key(&key).unwrap()
    }

    /// Whoever asks this server without a key.
    pub(crate) fn keyless(&self) -> Provider {
        Provider::new(self.api, MODEL).at(&self.base()).unwrap().waits(hurried())
    }

    /// The requests that came so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.state.seen).clone()
    }

    /// What of it was refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.seen().into_iter().filter_map(|seen| seen.refused).collect()
    }

    /// Why a request would be refused.
    pub(crate) fn judge(&self, seen: &Seen) -> Option<String> {
        serve::judge(&self.state, seen).map(|refusal| refusal.told)
    }

    /// What was not played.
    pub(crate) fn left(&self) -> usize {
        lock(&self.state.plays).len()
    }

    /// Waits until so many connections were closed by the other side in the midst of an answer.
    pub(crate) async fn until_closed(&self, times: usize) {
        until(&self.state.closed, times).await;
    }

    /// Waits until so many requests came.
    pub(crate) async fn until_asked(&self, times: usize) {
        until(&self.state.asked, times).await;
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Waits that a test can wait for.
pub(crate) fn hurried() -> Waits {
    let mut waits = Waits::default();
    waits.silence = Duration::from_millis(400);
    waits.pause = Duration::from_millis(1);
    waits.attempts = 3;
    waits
}

async fn until(counter: &watch::Sender<usize>, times: usize) {
    let mut counter = counter.subscribe();
    let reached = tokio::time::timeout(PATIENCE, counter.wait_for(|count| *count >= times));
    reached.await.expect("it happens in time").unwrap();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// Why a server refuses a request.
struct Refusal {
    status: u16,
    /// The vendor's own word for it.
    kind: &'static str,
    told: String,
}

impl Refusal {
    /// The request breaks a rule of the API.
    fn broken(told: impl Into<String>) -> Refusal {
        Refusal { status: 400, kind: "invalid_request_error", told: told.into() }
    }
}

/// Says what is wrong unless something holds.
fn demand(holds: bool, told: impl Into<String>) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::broken(told)) }
}

/// Refuses fields that the API does not know.
fn only(value: &Value, known: &[&str]) -> Result<(), Refusal> {
    let fields = value.as_object().ok_or_else(|| Refusal::broken("expected an object"))?;
    let unknown = fields.keys().find(|field| !known.contains(&field.as_str()));
    demand(unknown.is_none(), format!("unknown field `{unknown:?}`"))
}

/// A list of the request.
fn list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value], Refusal> {
    let list = value[name].as_array().map(Vec::as_slice);
    list.ok_or_else(|| Refusal::broken(format!("`{name}` is no list")))
}

/// A text of the request that is not empty.
fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, Refusal> {
    let text = value[name].as_str().filter(|text| !text.is_empty());
    text.ok_or_else(|| Refusal::broken(format!("`{name}` is no text, or empty")))
}

/// What a request says of itself, and its body.
struct Asked<'a> {
    path: &'a str,
    seen: &'a Seen,
    key: &'a str,
    thoughts: &'a [String],
}

impl Asked<'_> {
    /// Refuses a request that does not show every thought again which led to its last replies.
    fn shows_thoughts(&self) -> Result<(), Refusal> {
        let body = self.seen.body.to_string();
        let lost = self.thoughts.iter().find(|thought| !body.contains(thought.as_str()));
        demand(lost.is_none(), format!("the thought {lost:?} is not shown again"))
    }

    /// Refuses a key that is not ours, wherever this API has it.
    fn has_key(&self, header: &str, value: &str, kind: &'static str) -> Result<(), Refusal> {
        let told = match self.seen.header(header) {
            Some(found) if found == value => return Ok(()),
            // Vendors do say what they were sent.
            Some(found) => format!("Incorrect API key provided: {found}"),
            None => "You didn't provide an API key".to_owned(),
        };
        Err(Refusal { status: 401, kind, told })
    }
}

/// Holds a request against the rules of its API.
fn check(api: Api, asked: &Asked<'_>) -> Result<(), Refusal> {
    let is_json = asked.seen.header("content-type") == Some("application/json");
    demand(is_json, "the body is not said to be JSON")?;
    demand(asked.seen.body.is_object(), "the body is no JSON object")?;
    match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => chat::check(api, asked),
        Api::Responses => responses::check(asked),
        Api::Anthropic => messages::check(asked),
        Api::Gemini => gemini::check(asked),
    }
}

/// The body of a refusal, as the vendor writes it.
fn refusal(api: Api, refusal: &Refusal) -> Value {
    match api {
        Api::OpenAi | Api::Responses | Api::Compatible => chat::refusal(refusal),
        Api::Mistral => chat::refusal_of_mistral(refusal),
        Api::Anthropic => messages::refusal(refusal),
        Api::Gemini => gemini::refusal(refusal),
    }
}

/// A turn told whole.
fn whole(api: Api, said: &Said) -> Value {
    match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => chat::whole(api, said),
        Api::Responses => responses::whole(said),
        Api::Anthropic => messages::whole(said),
        Api::Gemini => gemini::whole(said),
    }
}

/// A turn told event by event, each with its blank line.
fn events(api: Api, said: &Said) -> Vec<String> {
    match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => chat::events(api, said),
        Api::Responses => responses::events(said),
        Api::Anthropic => messages::events(said),
        Api::Gemini => gemini::events(said),
    }
}

/// What a thought is known by when it is shown again, where it must be.
fn sealed(api: Api, thought: &str) -> Option<String> {
    match api {
        Api::OpenAi => None,
        Api::Mistral | Api::Compatible => Some(thought.to_owned()),
        Api::Responses | Api::Anthropic | Api::Gemini => Some(signature(thought)),
    }
}

/// What only the vendor can read.
fn signature(thought: &str) -> String {
    let seal: String = thought.bytes().map(|byte| format!("{byte:02X}")).collect();
    format!("Eq{seal}==")
}

/// Refuses a transcript that breaks the rules of a provider.
fn transcript(provider: &str, entries: &[Entry<'_>]) -> Result<(), Refusal> {
    let rules = TranscriptRules::ALL.into_iter().find(|rules| rules.provider == provider);
    let checked = check_entries(entries, &rules.expect("a provider with rules"));
    checked.map_err(|err| Refusal::broken(err.to_string()))
}

/// Refuses tools that break the rules of a dialect.
fn tools(dialect: Dialect, tools: &[Value]) -> Result<(), Refusal> {
    demand(tools.len() <= 128, "more than 128 tools")?;
    let mut broken = tools.iter().flat_map(|tool| violations(dialect, tool));
    broken.next().map_or(Ok(()), |why| Err(Refusal::broken(why)))
}

/// An event with its name in front, as some vendors have it.
fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// An event of nothing but data.
fn unnamed(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// A text in pieces of a few letters.
fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(5).map(|piece| piece.iter().collect()).collect()
}
