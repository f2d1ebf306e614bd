//! One encoder for what a model is asked.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::conversation::{entries, named};
use super::{Api, anthropic, gemini, openai, responses};
use crate::canon::Hash;
use crate::dialect::{Advert, Compiled, Dialect, Uncompilable, compile, export};
use crate::model::{Choice, Message, Request, Turn};
use crate::reply::Reply;
use crate::sync::{Mutex, MutexGuard};
use crate::tool::{Block, Registered};

/// The tools of which an encoder remembers how an API is told about them.
pub const ADVERTS_MAX: usize = 4_096;
/// The tokens that a model may write at Anthropic, which wants to know, where nobody says.
pub const OUTPUT_TOKENS_DEFAULT: u64 = 16_384;

/// What a model is told of a tool that nobody knows any more.
const GONE: &str = "no longer offered";
/// The name of the schema of an answer.
pub(super) const ANSWER: &str = "answer";

/// Writes what a model is asked as its API reads it.
///
/// Tools stand in the order of the offer, and each is translated once. A turn that this model wrote
/// is shown to it as it wrote it, with its reasoning and signatures; one of another is shown
/// plainly. Ids that the API would refuse are replaced, in calls and replies alike, the same ones
/// each time. Arguments that are no JSON object are shown as `{"_unparsed": "…"}` where the API
/// takes nothing but objects.
///
/// ```
/// use tooltape::wire::{Api, Encoder};
/// use tooltape::{Message, Request, Run, Toolbox, builtin};
///
/// let offer = Run::new(&Toolbox::new(builtin::tools()).unwrap()).offer_all();
/// let messages = [Message::User("Hello.".into())];
/// let encoder = Encoder::new(Api::OpenAi, "gpt-5");
/// let body = encoder.encode(&Request::new(&messages, &offer), true)?;
/// let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
/// assert_eq!(body["messages"][0]["content"], "Hello.");
/// assert_eq!(body["tools"][0]["function"]["name"], "echo");
/// # Ok::<(), tooltape::wire::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    api: Api,
    model: Arc<str>,
    adverts: Mutex<Adverts>,
    /// The schema of the last answer that was wanted.
    answer: Mutex<Option<(Value, Arc<AnswerSchema>)>>,
}

/// Tools as the API is told about them, by their definition and the name that they have there.
type Adverts = HashMap<(Hash, Box<str>), Arc<Tool>>;

/// A tool as the API is told about it.
#[derive(Debug)]
struct Tool {
    json: Arc<RawValue>,
    compiled: Compiled,
}

/// The schema of an answer as the API is told about it.
#[derive(Debug)]
pub(super) struct AnswerSchema {
    pub(super) compiled: Compiled,
    /// Whether the model cannot leave it.
    pub(super) is_strict: bool,
}

/// What is asked, as all APIs have it in common.
pub(super) struct Asked<'r> {
    pub(super) api: Api,
    pub(super) model: &'r str,
    pub(super) request: &'r Request<'r>,
    tools: Vec<Arc<RawValue>>,
    pub(super) choice: Choice<'r>,
    pub(super) answer: Option<Arc<AnswerSchema>>,
    pub(super) streaming: bool,
}

/// Why a model cannot be asked this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The API has no form for the input of a tool.
    #[error("`{api}` cannot be told about the tool `{tool}`: {why}")]
    Tool {
        /// The API.
        api: Api,
        /// The tool.
        tool: String,
        /// What is wrong with its schema.
        why: Uncompilable,
    },
    /// The API has no form for the schema of the answer.
    #[error("`{api}` cannot be told about the answer that is wanted: {why}")]
    Answer {
        /// The API.
        api: Api,
        /// What is wrong with the schema.
        why: Uncompilable,
    },
    /// A call must be proposed of a tool that is not offered.
    #[error("a call of `{0}` is required, which is not offered")]
    NotOffered(String),
    /// A turn and its replies do not fit.
    #[error("message {at} has {calls} calls and {replies} replies")]
    Unanswered {
        /// The message, counted from 0.
        at: usize,
        /// Its calls.
        calls: usize,
        /// The replies to them.
        replies: usize,
    },
    /// Nobody asks anything first.
    #[error("the conversation does not begin with what a user said")]
    NobodyAsks,
}

impl Encoder {
    /// An encoder for a model of an API.
    pub fn new(api: Api, model: impl Into<Arc<str>>) -> Encoder {
        let (adverts, answer) = (Mutex::new(HashMap::new()), Mutex::new(None));
        Encoder { api, model: model.into(), adverts, answer }
    }

    /// The API that it writes for.
    pub fn api(&self) -> Api {
        self.api
    }

    /// The model that it asks.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The body that asks for a turn, streamed or whole.
    pub fn encode(&self, request: &Request<'_>, streaming: bool) -> Result<Vec<u8>, EncodeError> {
        let entries = entries(self, request)?;
        let tools = request.offer.tools().map(|tool| self.tool(request, tool));
        let tools = tools.map(|tool| Ok(tool?.json.clone()));
        let mut tools: Vec<Arc<RawValue>> = tools.collect::<Result<_, _>>()?;
        let mut choice = self.choice(request)?;
        // Anthropic refuses calls, also those of old, where no tool is told of.
        if self.api == Api::Anthropic && tools.is_empty() {
            (tools, choice) = (self.withdrawn(request), Choice::None);
        }
        let asked = Asked {
            api: self.api,
            model: &self.model,
            request,
            tools,
            choice,
            answer: request.answer.map(|schema| self.answer(schema)).transpose()?,
            streaming,
        };
        Ok(match self.api {
            Api::OpenAi | Api::Mistral | Api::Compatible => openai::encode::body(&asked, &entries),
            Api::Responses => responses::encode::body(&asked, &entries),
            Api::Anthropic => anthropic::encode::body(&asked, &entries),
            Api::Gemini => gemini::encode::body(&asked, &entries),
        })
    }

    /// The turn, with arguments and an answer for the schemas that the host knows, from what the
    /// model wrote for those that it was shown when it was asked this.
    ///
    /// Most schemas are shown as they are, and nothing changes. What only the model can read of
    /// its turn is its own from here on: no other model is shown it.
    pub fn restore(&self, request: &Request<'_>, mut turn: Turn) -> Turn {
        for proposal in &mut turn.proposals {
            let Some(tool) = request.offer.find(&proposal.name) else { continue };
            let Ok(tool) = self.tool(request, tool) else { continue };
            if tool.compiled.reshapes() && proposal.failure().is_none() {
                let restored = tool.compiled.restore(proposal.text()).into_owned();
                proposal.arguments = crate::proposal::Arguments::Text(restored.into());
            }
        }
        let answer = request.answer.filter(|_| turn.proposals.is_empty());
        if let (Some(schema), Some(text)) = (answer, &turn.text)
            && let Ok(answer) = self.answer(schema)
            && answer.compiled.reshapes()
        {
            turn.text = Some(answer.compiled.restore(text).into());
        }
        if let Some(verbatim) = turn.verbatim.take() {
            let verbatim = Arc::unwrap_or_clone(verbatim).written_by(self.model.clone());
            turn.verbatim = Some(Arc::new(verbatim));
        }
        turn
    }

    /// The tools that were called and are not offered any more, each once.
    fn withdrawn(&self, request: &Request<'_>) -> Vec<Arc<RawValue>> {
        let turns = request.messages.iter().filter_map(|message| match message {
            Message::Model(turn) => Some(&turn.proposals),
            Message::User(_) | Message::Replies(_) => None,
        });
        let mut names = HashSet::new();
        let mut tools = Vec::new();
        for proposal in turns.flatten() {
            let name = named(self.api, request.offer, proposal);
            if names.insert(name.clone()) {
                let known = request.offer.find(&proposal.name);
                let known = known.and_then(|tool| self.tool(request, tool).ok());
                let gone = || {
                    let input = json!({ "type": "object" });
                    raw(&json!({ "name": name, "description": GONE, "input_schema": input }))
                };
                tools.push(known.map_or_else(|| gone().into(), |tool| tool.json.clone()));
            }
        }
        tools
    }

    fn tool(&self, request: &Request<'_>, tool: &Registered) -> Result<Arc<Tool>, EncodeError> {
        let name = request.offer.name_for(self.api.name(), tool.id().name().as_str());
        let key = (tool.definition(), Box::from(name));
        if let Some(known) = lock(&self.adverts).get(&key) {
            return Ok(known.clone());
        }
        let spec = tool.spec();
        let advert = Advert { name, description: &spec.description, input: &spec.input };
        let exported = export(dialect(self.api), &advert).map_err(|why| {
            let tool = tool.id().name().as_str().to_owned();
            EncodeError::Tool { api: self.api, tool, why }
        })?;
        let json = match self.api {
            Api::Responses => responses::encode::tool(exported.tool),
            Api::OpenAi | Api::Mistral | Api::Compatible | Api::Anthropic | Api::Gemini => {
                exported.tool
            }
        };
        let made = Arc::new(Tool { json: raw(&json).into(), compiled: exported.compiled });
        let mut adverts = lock(&self.adverts);
        if adverts.len() >= ADVERTS_MAX {
            adverts.clear();
        }
        adverts.insert(key, made.clone());
        Ok(made)
    }

    fn choice<'r>(&self, request: &Request<'r>) -> Result<Choice<'r>, EncodeError> {
        let Choice::Tool(name) = request.choice else { return Ok(request.choice) };
        let offered = request.offer.find(name);
        let offered = offered.filter(|it| request.offer.tools().any(|tool| tool.id() == it.id()));
        let Some(tool) = offered else { return Err(EncodeError::NotOffered(name.to_owned())) };
        Ok(Choice::Tool(request.offer.name_for(self.api.name(), tool.id().name().as_str())))
    }

    fn answer(&self, schema: &Value) -> Result<Arc<AnswerSchema>, EncodeError> {
        if let Some((known, answer)) = &*lock(&self.answer)
            && known == schema
        {
            return Ok(answer.clone());
        }
        let strict = match self.api {
            Api::OpenAi | Api::Responses => Some(Dialect::OpenAiStrict),
            Api::Anthropic => Some(Dialect::AnthropicStrict),
            Api::Gemini | Api::Mistral | Api::Compatible => None,
        };
        let strict = strict.and_then(|dialect| compile(schema, dialect).ok());
        let is_strict = strict.is_some();
        let compiled = match strict {
            Some(compiled) => compiled,
            None => compile(schema, dialect(self.api))
                .map_err(|why| EncodeError::Answer { api: self.api, why })?,
        };
        let answer = Arc::new(AnswerSchema { compiled, is_strict });
        *lock(&self.answer) = Some((schema.clone(), answer.clone()));
        Ok(answer)
    }
}

impl Asked<'_> {
    /// The tools, each as the API takes it.
    pub(super) fn tools(&self) -> Vec<&RawValue> {
        self.tools.iter().map(|tool| &**tool).collect()
    }
}

fn dialect(api: Api) -> Dialect {
    match api {
        Api::OpenAi | Api::Responses | Api::Mistral | Api::Compatible => Dialect::OpenAi,
        Api::Anthropic => Dialect::Anthropic,
        Api::Gemini => Dialect::Gemini,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is remembered is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The image that a block is, if the API takes such images: its media type as the API spells it,
/// and its data. One that it does not take would have it refuse all requests from here on.
pub(super) fn picture(api: Api, block: &Block) -> Option<(&'static str, &str)> {
    let (media_type, data) = match block {
        Block::Image { media_type, data } => (media_type, data),
        Block::Text { .. }
        | Block::Json { .. }
        | Block::ResourceLink { .. }
        | Block::LeftOut { .. } => return None,
    };
    let taken: &[&'static str] = match api {
        Api::OpenAi | Api::Responses | Api::Anthropic | Api::Mistral | Api::Compatible => {
            &["image/png", "image/jpeg", "image/gif", "image/webp"]
        }
        Api::Gemini => &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    };
    let taken = taken.iter().find(|it| it.eq_ignore_ascii_case(media_type))?;
    Some((taken, data))
}

/// A reply as one text.
pub(super) fn words(api: Api, reply: &Reply) -> String {
    let shown = reply.shown();
    shown.iter().map(|block| text(api, block)).collect::<Vec<_>>().join("\n")
}

/// A block as text, where an API takes no other.
pub(super) fn text(api: Api, block: &Block) -> Cow<'_, str> {
    match block {
        Block::Text { text } => text.into(),
        Block::Json { value } => value.as_str().into(),
        Block::Image { media_type, data } => match picture(api, block) {
            Some(_) => format!("[image: {media_type}]").into(),
            None => {
                let bytes = data.trim_end_matches('=').len() * 3 / 4;
                format!("[image: {media_type}, {bytes} bytes]").into()
            }
        },
        Block::ResourceLink { uri, .. } => format!("[resource: {uri}]").into(),
        Block::LeftOut { bytes, of, .. } => format!("[{bytes} of {of} bytes left out]").into(),
    }
}

/// A value as JSON.
pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("what we write has text for keys")
}

/// A whole body.
pub(super) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("what we write has text for keys")
}
