//! Recorded streams and replies of providers, and what their own libraries made of them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use tooltape::wire::{Api, Decoder};
use tooltape::{Delta, ModelError, Turn};

use crate::data;

/// How many streams were recorded.
pub(crate) const STREAMS: usize = 790;
/// How many replies were recorded.
pub(crate) const REPLIES: usize = 867;

/// One recorded exchange.
#[derive(Deserialize)]
pub(crate) struct Recording {
    pub(crate) file: String,
    pub(crate) i: u64,
    pub(crate) provider: String,
    pub(crate) dialect: String,
    pub(crate) status: u16,
    pub(crate) response: String,
    pub(crate) expect: Option<Expected>,
    #[serde(default)]
    pub(crate) bad_args: usize,
}

/// What the vendor's own library made of it.
#[derive(Deserialize)]
pub(crate) struct Expected {
    pub(crate) text: Option<String>,
    pub(crate) tool_calls: Vec<ExpectedCall>,
    pub(crate) stop: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ExpectedCall {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Recording {
    /// The API that the server speaks.
    pub(crate) fn api(&self) -> Api {
        match (&*self.dialect, &*self.provider) {
            ("openai-chat", "openai" | "api.openai.com") => Api::OpenAi,
            ("openai-chat", "mistral" | "api.mistral.ai") => Api::Mistral,
            ("openai-chat", _) => Api::Compatible,
            ("openai-responses", _) => Api::Responses,
            ("anthropic-messages", _) => Api::Anthropic,
            ("gemini-generateContent", _) => Api::Gemini,
            other => panic!("an API that nobody knows: {other:?}"),
        }
    }

    pub(crate) fn named(&self) -> String {
        format!("{} #{} ({})", self.file, self.i, self.provider)
    }
}

/// The recorded streams, if they are there.
pub(crate) fn streams() -> Option<Vec<Recording>> {
    read("wire-recordings/sse.jsonl.gz", STREAMS)
}

/// The recorded replies, if they are there.
pub(crate) fn replies() -> Option<Vec<Recording>> {
    read("wire-recordings/json.jsonl.gz", REPLIES)
}

fn read(path: &str, count: usize) -> Option<Vec<Recording>> {
    let lines = unzipped(&data::folder(count)?.join(path));
    let recordings: Vec<Recording> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(recordings.len(), count);
    Some(recordings)
}

pub(crate) fn unzipped(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// What somebody who listens puts together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<(String, String)>,
}

impl Heard {
    pub(crate) fn hear(&mut self, delta: Delta<'_>) {
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(text) => self.reasoning.push_str(text),
            Delta::Call(place, name) => {
                assert!(place <= self.calls.len(), "calls begin one after the other");
                if place == self.calls.len() {
                    self.calls.push(Default::default());
                }
                self.calls[place].0 = name.to_owned();
            }
            Delta::Arguments(place, text) => self.calls[place].1.push_str(text),
            Delta::Again => *self = Heard::default(),
        }
    }

    /// Whether it is what the turn says.
    pub(crate) fn is_of(&self, turn: &Turn) -> bool {
        let calls = turn.proposals.iter().map(|it| (it.name.to_string(), it.text().to_string()));
        self.text == turn.text.as_deref().unwrap_or_default()
            && self.calls == calls.collect::<Vec<_>>()
    }
}

/// A stream in these pieces: the turn, the provider's word for its end, and what was heard.
pub(crate) fn fed<'b>(
    api: Api,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Result<(Turn, Option<String>, Heard), ModelError> {
    let (mut decoder, mut heard) = (Decoder::new(api), Heard::default());
    for piece in pieces {
        decoder.feed(piece, &mut |delta| heard.hear(delta))?;
    }
    let word = decoder.stop_reason().map(str::to_owned);
    Ok((decoder.finish()?, word, heard))
}

/// The payloads of a stream, by a reader that is simple, and of JSON.
pub(crate) fn payloads(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}
