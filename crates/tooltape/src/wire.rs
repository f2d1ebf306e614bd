//! What providers say and read on the wire, without any network.

mod sse;
mod borrowed;
mod failure;
mod draft;
mod ids;
mod conversation;
mod openai;
mod responses;
mod anthropic;
mod gemini;
mod decode;
mod encode;

use std::fmt;
use std::str::FromStr;

pub use decode::{Decoder, decode};
pub use draft::{TURN_BYTES_MAX, TURN_CALLS_MAX, TURN_ITEMS_MAX};
pub use encode::{ADVERTS_MAX, EncodeError, Encoder, OUTPUT_TOKENS_DEFAULT};
pub use failure::{REFUSAL_BYTES_MAX, refusal};
pub use sse::{EVENT_BYTES_MAX, Sse, SseError, SseEvent};

/// The API that a model is asked through.
///
/// ```
/// use tooltape::wire::Api;
///
/// assert_eq!("anthropic".parse(), Ok(Api::Anthropic));
/// assert_eq!(Api::Anthropic.to_string(), "anthropic");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's Chat Completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Mistral's Chat Completions, whose ids have nine letters or digits.
    Mistral,
    /// Chat Completions as others have them: llama.cpp, Ollama, vLLM, OpenRouter and more.
    Compatible,
}

impl Api {
    /// Every API, in the order of the documentation.
    pub const ALL: [Api; 6] =
        [Api::OpenAi, Api::Responses, Api::Anthropic, Api::Gemini, Api::Mistral, Api::Compatible];

    /// The name that [`FromStr`] reads and [`Display`](fmt::Display) writes, and by which the tape
    /// and aliases know it.
    pub fn name(self) -> &'static str {
        match self {
            Api::OpenAi => "openai",
            Api::Responses => "responses",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
            Api::Mistral => "mistral",
            Api::Compatible => "compatible",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Api, UnknownApi> {
        let found = Api::ALL.into_iter().find(|api| api.name() == name);
        found.ok_or_else(|| UnknownApi(name.to_owned()))
    }
}

/// A name that is no [`Api`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown API `{0}`, expected `openai`, `responses`, `anthropic`, `gemini`, `mistral` or \
     `compatible`"
)]
pub struct UnknownApi(String);
