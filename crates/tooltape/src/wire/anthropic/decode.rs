//! What a model says through Anthropic's Messages.

use std::collections::BTreeMap;
use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::{Delta, ModelError, TurnStop, Usage};
use crate::wire::borrowed::{Text, read};
use crate::wire::draft::{Draft, Slot, Told};
use crate::wire::failure::{garbled, told as failed};

/// What is known of a turn beside its draft.
#[derive(Clone, Debug, Default)]
pub(in crate::wire) struct Messages {
    /// The blocks that have begun and not ended, by their index.
    open: BTreeMap<u64, Open>,
    tokens: Tokens,
    has_begun: bool,
}

/// A block that has begun.
#[derive(Clone, Debug)]
enum Open {
    Text,
    /// A call, with the arguments that it began with.
    Call(usize, String),
    /// Something that only the provider can read: as it began, and what was added to it.
    Opaque {
        slot: Slot,
        block: String,
        added: String,
        signature: String,
    },
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Added<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    usage: Option<Tokens>,
}

/// What a delta adds to a block, or to the message.
#[derive(Deserialize)]
struct Added<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

/// A message: its beginning in a stream, or all of it.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    caller: Option<Caller<'a>>,
}

#[derive(Deserialize)]
struct Caller<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl Messages {
    /// Takes one event.
    pub(in crate::wire) fn take(
        &mut self,
        draft: &mut Draft,
        data: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        // Some who are compatible end as others do.
        if data == "[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = read(data)?;
        match (&*event.kind, &event.content_block, event.delta, &event.message) {
            ("message_start", _, _, Some(message)) => self.begin(draft, message.get(), told),
            ("content_block_start", Some(block), ..) => {
                self.open(draft, event.index, block.get(), told)
            }
            ("content_block_delta", _, Some(added), _) => {
                self.add(draft, event.index, &added, told)
            }
            ("content_block_stop", ..) => self.shut(draft, event.index, told),
            ("message_delta", _, delta, _) => {
                self.count(draft, event.usage);
                if let Some(word) = delta.and_then(|delta| delta.stop_reason) {
                    draft.ends(&word, stop(&word));
                }
                Ok(())
            }
            ("message_stop", ..) => {
                draft.stop();
                Ok(())
            }
            ("error", ..) => Err(failed(data)),
            _ => Ok(()),
        }
    }

    /// Takes a whole body.
    pub(in crate::wire) fn take_whole(
        &mut self,
        draft: &mut Draft,
        body: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let message: Message<'_> = read(body)?;
        let Some(content) = message.content else { return Err(failed_or_garbled(body)) };
        self.count(draft, message.usage);
        for (index, block) in (0..).zip(content) {
            self.open(draft, index, block.get(), told)?;
            self.shut(draft, index, told)?;
        }
        if let Some(word) = message.stop_reason {
            draft.ends(&word, stop(&word));
            draft.stop();
        }
        Ok(())
    }

    /// A message begins. If another one had, that was cut off.
    fn begin(
        &mut self,
        draft: &mut Draft,
        message: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let message: Message<'_> = read(message)?;
        if mem::replace(&mut self.has_begun, true) && draft.has_begun() {
            *draft = Draft::default();
            *self = Messages { has_begun: true, ..Messages::default() };
            told(Delta::Again);
        }
        self.count(draft, message.usage);
        Ok(())
    }

    fn open(
        &mut self,
        draft: &mut Draft,
        index: u64,
        json: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        // A block that begins where another is open ends that one.
        self.shut(draft, index, told)?;
        let block: Block<'_> = read(json)?;
        let open = match &*block.kind {
            "text" => {
                draft.item()?;
                draft.say(block.text.as_deref().unwrap_or_default(), told)?;
                Open::Text
            }
            "tool_use" => {
                let (id, name) = (block.id.unwrap_or_default(), block.name.unwrap_or_default());
                let place = draft.call(&id, &name, told)?;
                if block.caller.is_some_and(|caller| &*caller.kind != "direct") {
                    let fields: Value = read(json)?;
                    draft.beside(place, json!({ "caller": fields["caller"] }).to_string())?;
                }
                let input = block.input.map_or("{}", RawValue::get);
                draft.grow(input.len())?;
                Open::Call(place, input.to_owned())
            }
            _ => {
                if let Some(thought) = block.thinking.filter(|thought| !thought.is_empty()) {
                    told(Delta::Reasoning(&thought));
                }
                draft.grow(json.len())?;
                let (slot, block) = (draft.slot()?, json.to_owned());
                Open::Opaque { slot, block, added: String::new(), signature: String::new() }
            }
        };
        self.open.insert(index, open);
        Ok(())
    }

    fn add(
        &mut self,
        draft: &mut Draft,
        index: u64,
        more: &Added<'_>,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        match self.open.get_mut(&index) {
            Some(Open::Text) => draft.say(more.text.as_deref().unwrap_or_default(), told),
            Some(Open::Call(place, _)) => {
                draft.argue(*place, more.partial_json.as_deref().unwrap_or_default(), told)
            }
            Some(Open::Opaque { added, signature, .. }) => {
                if let Some(thought) = &more.thinking {
                    told(Delta::Reasoning(thought));
                }
                for text in [&more.thinking, &more.partial_json, &more.content] {
                    added.push_str(text.as_deref().unwrap_or_default());
                }
                signature.push_str(more.signature.as_deref().unwrap_or_default());
                draft.grow(more.bytes())
            }
            None => Err(garbled(&format!("a delta of block {index}, which has not begun"), "")),
        }
    }

    fn shut(&mut self, draft: &mut Draft, index: u64, told: Told<'_>) -> Result<(), ModelError> {
        let Some(open) = self.open.remove(&index) else { return Ok(()) };
        match open {
            Open::Text => Ok(()),
            // What no delta said is what the block began with.
            Open::Call(place, input) if draft.has_no_arguments(place) => {
                draft.argue(place, &input, told)
            }
            Open::Call(..) => Ok(()),
            Open::Opaque { slot, block, added, signature } => {
                draft.fill(slot, whole(block, &added, signature)?)
            }
        }
    }

    fn count(&mut self, draft: &mut Draft, tokens: Option<Tokens>) {
        let Some(tokens) = tokens else { return };
        let known = &mut self.tokens;
        known.input_tokens = tokens.input_tokens.or(known.input_tokens);
        known.output_tokens = tokens.output_tokens.or(known.output_tokens);
        let (created, read) = (tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens);
        known.cache_creation_input_tokens = created.or(known.cache_creation_input_tokens);
        known.cache_read_input_tokens = read.or(known.cache_read_input_tokens);
        draft.usage = known.usage();
    }
}

impl Added<'_> {
    fn bytes(&self) -> usize {
        let texts = [&self.thinking, &self.partial_json, &self.content, &self.signature];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }
}

impl Tokens {
    /// What was read from the cache, or into it, is counted apart from the rest of the input.
    fn usage(&self) -> Usage {
        let cached_tokens = self.cache_read_input_tokens.unwrap_or(0);
        let created = self.cache_creation_input_tokens.unwrap_or(0);
        let input = self.input_tokens.unwrap_or(0);
        Usage {
            input_tokens: input.saturating_add(created).saturating_add(cached_tokens),
            output_tokens: self.output_tokens.unwrap_or(0),
            cached_tokens,
        }
    }
}

/// A block with all that was added to it.
fn whole(block: String, added: &str, signature: String) -> Result<String, ModelError> {
    if added.is_empty() && signature.is_empty() {
        return Ok(block);
    }
    let mut fields: Value = read(&block)?;
    let is_input = fields.get("input").is_some();
    let field = if is_input { "input" } else { "content" };
    if fields["type"] == "thinking" {
        let begun = fields["thinking"].as_str().unwrap_or_default();
        fields["thinking"] = format!("{begun}{added}").into();
    } else if !added.is_empty() {
        // Input that is no JSON is the provider's own affair, and stays text.
        let said = if is_input { serde_json::from_str(added).ok() } else { None };
        fields[field] = said.unwrap_or_else(|| added.into());
    }
    if !signature.is_empty() {
        fields["signature"] = signature.into();
    }
    Ok(fields.to_string())
}

fn failed_or_garbled(body: &str) -> ModelError {
    match body.contains("\"error\"") {
        true => failed(body),
        false => garbled(&"no `content`", body),
    }
}

/// Why the model stopped. A word that nobody knows is no reason to execute anything.
fn stop(word: &str) -> TurnStop {
    match word {
        "end_turn" | "tool_use" | "stop_sequence" => TurnStop::Done,
        "max_tokens" | "model_context_window_exceeded" => TurnStop::Length,
        "refusal" => TurnStop::Refused,
        _ => TurnStop::Cut,
    }
}
