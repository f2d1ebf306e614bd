//! What a model says through Chat Completions.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::model::{Delta, ModelError, TurnStop, Usage};
use crate::wire::borrowed::{Pieces, Text, arguments, read};
use crate::wire::draft::{Draft, Slot, Told};
use crate::wire::failure::told as failed;

/// What stands behind the last event.
const DONE: &str = "[DONE]";

/// What is known of a turn beside its draft.
#[derive(Clone, Debug, Default)]
pub(in crate::wire) struct Chat {
    /// The places of calls, by the index that the server gives them.
    places: Vec<(u64, usize)>,
    thought: Option<Thought>,
}

/// What the model thought, which some servers want to see again.
#[derive(Clone, Debug)]
struct Thought {
    slot: Slot,
    /// The field that the server has it in.
    field: &'static str,
    text: String,
    details: Vec<Detail>,
}

/// A piece of a thought, as OpenRouter has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Detail {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    format: Option<String>,
    index: Option<u64>,
}

/// How a message came.
#[derive(Clone, Copy, PartialEq)]
enum Came {
    /// In a stream, of which each event is a piece, even one that says nothing.
    InPieces,
    Whole,
}

// What is seldom there, or large, is boxed: a stream moves one of these for every few letters.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "first")]
    choices: Option<Choice<'a>>,
    usage: Option<Box<Tokens>>,
    x_groq: Option<Box<Groq>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Box<Said<'a>>>,
    #[serde(borrow)]
    message: Option<Box<Said<'a>>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<Pieces<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    reasoning_details: Option<Vec<Detail>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Called<'a>>>,
}

/// A piece of what is said, as Mistral has it.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Pieces<'a>>,
}

#[derive(Deserialize)]
struct Called<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Groq {
    usage: Option<Box<Tokens>>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Chat {
    /// Takes one event.
    pub(in crate::wire) fn take(
        &mut self,
        draft: &mut Draft,
        data: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        match data {
            DONE => Ok(()),
            data => self.chunk(draft, data, Came::InPieces, told),
        }
    }

    /// Takes a whole body.
    pub(in crate::wire) fn take_whole(
        &mut self,
        draft: &mut Draft,
        body: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        self.chunk(draft, body, Came::Whole, told)
    }

    fn chunk(
        &mut self,
        draft: &mut Draft,
        data: &str,
        came: Came,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = read(data)?;
        if chunk.error.is_some() {
            return Err(failed(data));
        }
        let usage = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage));
        if let Some(usage) = usage {
            draft.usage = usage.usage();
        }
        let Some(choice) = chunk.choices else { return Ok(()) };
        let came = if choice.delta.is_some() { Came::InPieces } else { came };
        if let Some(mut said) = choice.delta.or(choice.message) {
            self.say(draft, &mut said, came, told)?;
        }
        // A body that came whole was not cut off, even if it does not say why it ends.
        let word = choice.finish_reason.as_deref().unwrap_or_default();
        if !word.is_empty() || came == Came::Whole {
            draft.ends(word, stop(word));
            draft.stop();
        }
        Ok(())
    }

    /// Nothing more comes.
    pub(in crate::wire) fn close(&mut self, draft: &mut Draft) -> Result<(), ModelError> {
        let Some(Thought { slot, field, text, details }) = self.thought.take() else {
            return Ok(());
        };
        let kept = match details.is_empty() {
            true => json!({ field: text }),
            false => json!({ "reasoning_details": details }),
        };
        draft.fill(slot, kept.to_string())
    }

    fn say(
        &mut self,
        draft: &mut Draft,
        said: &mut Said<'_>,
        came: Came,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let thoughts =
            [("reasoning_content", &said.reasoning_content), ("reasoning", &said.reasoning)];
        let thought =
            thoughts.into_iter().find_map(|(field, text)| Some((field, text.as_deref()?)));
        if let Some((field, text)) = thought {
            self.think(draft, field, text, told)?;
        }
        for detail in said.reasoning_details.take().into_iter().flatten() {
            self.detail(draft, detail)?;
        }
        match &said.content {
            Some(Pieces::One(text)) => draft.say(text, told)?,
            Some(Pieces::Many(pieces)) => {
                pieces.iter().try_for_each(|piece| self.piece(draft, piece.get(), told))?;
            }
            None => {}
        }
        draft.refuse(said.refusal.as_deref().unwrap_or_default(), told)?;
        for called in said.tool_calls.take().into_iter().flatten() {
            self.call(draft, called, came, told)?;
        }
        Ok(())
    }

    fn piece(&mut self, draft: &mut Draft, json: &str, told: Told<'_>) -> Result<(), ModelError> {
        let piece: Piece<'_> = read(json)?;
        draft.say(piece.text.as_deref().unwrap_or_default(), told)?;
        match piece.thinking {
            Some(Pieces::One(text)) => self.think(draft, "thinking", &text, told)?,
            Some(Pieces::Many(pieces)) => {
                for piece in pieces {
                    let piece: Piece<'_> = read(piece.get())?;
                    let text = piece.text.unwrap_or_default();
                    self.think(draft, "thinking", &text, told)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    fn think(
        &mut self,
        draft: &mut Draft,
        field: &'static str,
        text: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        if !text.is_empty() {
            draft.grow(text.len())?;
            self.thought(draft, field)?.text.push_str(text);
            told(Delta::Reasoning(text));
        }
        Ok(())
    }

    /// Keeps a detail: one that goes on with the last as more of it, others beside it.
    fn detail(&mut self, draft: &mut Draft, detail: Detail) -> Result<(), ModelError> {
        draft.grow(detail.bytes())?;
        let details = &mut self.thought(draft, "reasoning")?.details;
        match details.last_mut() {
            Some(last) if last.goes_on_with(&detail) => last.extend(detail),
            Some(_) | None => {
                draft.item()?;
                details.push(detail);
            }
        }
        Ok(())
    }

    fn thought(
        &mut self,
        draft: &mut Draft,
        field: &'static str,
    ) -> Result<&mut Thought, ModelError> {
        let thought = match self.thought.take() {
            Some(thought) => thought,
            None => {
                let (slot, text, details) = (draft.slot()?, String::new(), Vec::new());
                Thought { slot, field, text, details }
            }
        };
        Ok(self.thought.insert(thought))
    }

    fn call(
        &mut self,
        draft: &mut Draft,
        called: Called<'_>,
        came: Came,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let Function { name, arguments: argued } = called.function.unwrap_or_default();
        let (id, name) = (called.id.unwrap_or_default(), name.unwrap_or_default());
        let known = match came {
            Came::Whole => None,
            Came::InPieces => self.known(draft, called.index, &id, &name),
        };
        let place = match known {
            Some(place) => {
                draft.id(place, &id)?;
                draft.name(place, &name, told)?;
                place
            }
            None => {
                let place = draft.call(&id, &name, told)?;
                self.places.extend(called.index.map(|index| (index, place)));
                place
            }
        };
        match argued {
            Some(argued) => draft.argue(place, &arguments(argued)?, told),
            None => Ok(()),
        }
    }

    /// The place of the call that is gone on with: by its index, else by its id, else the last one
    /// if it has no name of its own. Another id is another call.
    fn known(&self, draft: &Draft, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let place = match index {
            Some(index) => self.places.iter().rfind(|(known, _)| *known == index).map(|it| it.1),
            None if !id.is_empty() => draft.place_of(id),
            None if name.is_empty() => draft.last_place(),
            None => None,
        }?;
        let known = draft.id_of(place);
        (id.is_empty() || known.is_empty() || known == id).then_some(place)
    }
}

/// Of several answers, the first is taken.
fn first<'de: 'a, 'a, D: Deserializer<'de>>(choices: D) -> Result<Option<Choice<'a>>, D::Error> {
    choices.deserialize_any(Choices)
}

struct Choices;

impl<'de> Visitor<'de> for Choices {
    type Value = Option<Choice<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut choices: A) -> Result<Self::Value, A::Error> {
        let mut first = None;
        while let Some(choice) = choices.next_element::<Choice<'de>>()? {
            if choice.index == 0 {
                first = first.or(Some(choice));
            }
        }
        Ok(first)
    }
}

impl Detail {
    fn bytes(&self) -> usize {
        let Detail { kind, text, summary, data, signature, id, format, index: _ } = self;
        let texts = [text, summary, data, signature, id, format];
        kind.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }

    fn goes_on_with(&self, next: &Detail) -> bool {
        let is_text = matches!(&*self.kind, "reasoning.text" | "reasoning.summary");
        let is_same_id = self.id == next.id || next.id.is_none();
        is_text && self.kind == next.kind && self.index == next.index && is_same_id
    }

    fn extend(&mut self, next: Detail) {
        let texts = [(&mut self.text, next.text), (&mut self.summary, next.summary)];
        for (text, more) in texts.into_iter().filter_map(|(text, more)| Some((text, more?))) {
            text.get_or_insert_default().push_str(&more);
        }
        self.signature = next.signature.or(self.signature.take());
        self.format = self.format.take().or(next.format);
    }
}

impl Tokens {
    fn usage(&self) -> Usage {
        let cached = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or(0),
            output_tokens: self.completion_tokens.unwrap_or(0),
            cached_tokens: cached.or(self.prompt_cache_hit_tokens).unwrap_or(0),
        }
    }
}

/// Why the model stopped. A word that nobody knows is no reason to execute anything.
fn stop(word: &str) -> TurnStop {
    match word {
        "" | "stop" | "tool_calls" | "tool_call" | "tool_use" | "function_call" | "end_turn"
        | "stop_sequence" | "eos" | "eos_token" | "COMPLETE" => TurnStop::Done,
        "length" | "model_length" | "max_tokens" => TurnStop::Length,
        "content_filter" | "refusal" => TurnStop::Refused,
        _ => TurnStop::Cut,
    }
}
