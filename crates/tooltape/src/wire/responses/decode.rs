//! What a model says through OpenAI's Responses.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::model::{Delta, ModelError, TurnStop, Usage};
use crate::wire::borrowed::{Text, arguments, read};
use crate::wire::draft::{Draft, Slot, Told};
use crate::wire::failure::{garbled, told as failed};

/// What is known of a turn beside its draft.
#[derive(Clone, Debug, Default)]
pub(in crate::wire) struct Responses {
    /// The items that have begun, by their index. Their ids are no help: some servers change them
    /// from event to event.
    items: BTreeMap<u64, Item>,
}

/// An item that has begun.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// What is said, and whether anything of it has been.
    Message { spoke: bool },
    /// A call, by its place.
    Call(usize),
    /// Something that only the provider can read.
    Opaque(Slot),
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    output_index: u64,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Vec<Content<'a>>>,
    #[serde(borrow)]
    phase: Option<Text<'a>>,
    #[serde(borrow)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<Vec<Content<'a>>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Responses {
    /// Takes one event.
    pub(in crate::wire) fn take(
        &mut self,
        draft: &mut Draft,
        data: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        if data == "[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = read(data)?;
        let index = event.output_index;
        let delta = || read::<Text<'_>>(event.delta.map_or("\"\"", RawValue::get));
        match (&*event.kind, event.item, event.response) {
            ("response.output_text.delta", ..) => {
                self.spoke(index);
                draft.say(&delta()?, told)
            }
            ("response.refusal.delta", ..) => {
                self.spoke(index);
                draft.refuse(&delta()?, told)
            }
            ("response.reasoning_summary_text.delta" | "response.reasoning_text.delta", ..) => {
                told(Delta::Reasoning(&delta()?));
                Ok(())
            }
            ("response.function_call_arguments.delta", ..) => match self.place(index) {
                Some(place) => draft.argue(place, &delta()?, told),
                None => Err(garbled(&"arguments of no call", data)),
            },
            ("response.function_call_arguments.done", ..) => {
                match (self.place(index), event.arguments) {
                    (Some(place), Some(whole)) => draft.argued(place, &whole, told),
                    _ => Ok(()),
                }
            }
            ("response.output_item.added", Some(item), _) => {
                self.add(draft, index, item.get(), told).map(drop)
            }
            ("response.output_item.done", Some(item), _) => {
                self.end(draft, index, item.get(), told)
            }
            ("response.completed" | "response.incomplete" | "response.failed", _, Some(whole)) => {
                self.take_whole(draft, whole.get(), told)
            }
            ("error", ..) => Err(failed(data)),
            _ => Ok(()),
        }
    }

    /// Takes a whole response: a body, or what stands at the end of a stream.
    pub(in crate::wire) fn take_whole(
        &mut self,
        draft: &mut Draft,
        body: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let response: Response<'_> = read(body)?;
        let word = response.status.as_deref().unwrap_or_default();
        if response.error.is_some() || word == "failed" {
            return Err(failed(body));
        }
        if let Some(tokens) = response.usage {
            draft.usage = tokens.usage();
        }
        // What was streamed is not said again.
        if self.items.is_empty() {
            for (index, item) in (0..).zip(response.output.into_iter().flatten()) {
                self.end(draft, index, item.get(), told)?;
            }
        }
        let details = response.incomplete_details.and_then(|details| details.reason);
        if let Some(stop) = stop(word, details.as_deref()) {
            draft.ends(word, stop);
            draft.stop();
        }
        Ok(())
    }

    /// An item begins.
    fn add(
        &mut self,
        draft: &mut Draft,
        index: u64,
        json: &str,
        told: Told<'_>,
    ) -> Result<Item, ModelError> {
        let fields: Fields<'_> = read(json)?;
        let item = match &*fields.kind {
            "message" => {
                draft.item()?;
                if let Some(phase) = fields.phase {
                    let message = json!({ "type": "message", "phase": &*phase });
                    draft.keep(&message.to_string())?;
                }
                Item::Message { spoke: false }
            }
            "function_call" => {
                let (id, name) =
                    (fields.call_id.unwrap_or_default(), fields.name.unwrap_or_default());
                Item::Call(draft.call(&id, &name, told)?)
            }
            _ => Item::Opaque(draft.slot()?),
        };
        self.items.insert(index, item);
        Ok(item)
    }

    /// An item is whole. What has not been said of it is said now.
    fn end(
        &mut self,
        draft: &mut Draft,
        index: u64,
        json: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let known = self.items.get(&index).copied();
        let item = match known {
            Some(item) => item,
            None => self.add(draft, index, json, told)?,
        };
        let fields: Fields<'_> = read(json)?;
        match item {
            Item::Message { spoke: true } => Ok(()),
            Item::Message { spoke: false } => {
                fields.content.iter().flatten().try_for_each(|content| {
                    draft.say(content.text.as_deref().unwrap_or_default(), told)?;
                    draft.refuse(content.refusal.as_deref().unwrap_or_default(), told)
                })
            }
            Item::Call(place) => match fields.arguments {
                Some(whole) => draft.argued(place, &arguments(whole)?, told),
                None => Ok(()),
            },
            Item::Opaque(slot) => {
                if known.is_none() {
                    let summary = fields.summary.iter().flatten().filter_map(|it| it.text.as_ref());
                    summary.for_each(|text| told(Delta::Reasoning(text)));
                }
                // A thought that is not encrypted has an id which the provider does not keep.
                match &*fields.kind == "reasoning" && fields.encrypted_content.is_none() {
                    true => Ok(()),
                    false => draft.fill(slot, json.to_owned()),
                }
            }
        }
    }

    fn spoke(&mut self, index: u64) {
        if let Some(Item::Message { spoke }) = self.items.get_mut(&index) {
            *spoke = true;
        }
    }

    fn place(&self, index: u64) -> Option<usize> {
        match self.items.get(&index)? {
            Item::Call(place) => Some(*place),
            Item::Message { .. } | Item::Opaque(_) => None,
        }
    }
}

impl Tokens {
    fn usage(&self) -> Usage {
        let cached = self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
            cached_tokens: cached.unwrap_or(0),
        }
    }
}

/// Why the model stopped, if it did. A reason that nobody knows is no reason to execute anything.
fn stop(status: &str, reason: Option<&str>) -> Option<TurnStop> {
    Some(match (status, reason) {
        ("completed", _) => TurnStop::Done,
        ("incomplete", Some("max_output_tokens" | "max_tokens")) => TurnStop::Length,
        ("incomplete", Some("content_filter")) => TurnStop::Refused,
        ("incomplete" | "cancelled", _) => TurnStop::Cut,
        _ => return None,
    })
}
