//! What a model says through Gemini's `generateContent`.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::partial::{Partial, Piece};
use crate::model::{Delta, ModelError, TurnStop, Usage};
use crate::wire::borrowed::{Text, read};
use crate::wire::draft::{Draft, Told};
use crate::wire::failure::told as failed;

/// What is known of a turn beside its draft.
#[derive(Clone, Debug, Default)]
pub(in crate::wire) struct Gemini {
    /// The call whose arguments come in pieces, by its place.
    open: Option<(usize, Partial)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    usage_metadata: Option<Tokens>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow)]
    function_call: Option<Called<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_args: Option<Vec<Piece<'a>>>,
    #[serde(default)]
    will_continue: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl Gemini {
    /// Takes one event, or a whole body.
    pub(in crate::wire) fn take(
        &mut self,
        draft: &mut Draft,
        data: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = read(data)?;
        if chunk.error.is_some() {
            return Err(failed(data));
        }
        if let Some(tokens) = chunk.usage_metadata {
            draft.usage = tokens.usage();
        }
        // Of several answers, the first is taken.
        let candidates = chunk.candidates.into_iter().flatten();
        for candidate in candidates.filter(|candidate| candidate.index == 0) {
            let parts = candidate.content.and_then(|content| content.parts);
            for part in parts.into_iter().flatten() {
                self.part(draft, part.get(), told)?;
            }
            if let Some(word) = candidate.finish_reason {
                self.close(draft, told)?;
                draft.ends(&word, stop(&word));
                draft.stop();
            }
        }
        if let Some(word) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            draft.ends(&word, TurnStop::Refused);
            draft.stop();
        }
        Ok(())
    }

    /// No more pieces of arguments come.
    pub(in crate::wire) fn close(
        &mut self,
        draft: &mut Draft,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        match self.open.take() {
            Some((place, partial)) => draft.argue(place, &partial.text(), told),
            None => Ok(()),
        }
    }

    fn part(&mut self, draft: &mut Draft, json: &str, told: Told<'_>) -> Result<(), ModelError> {
        let part: Part<'_> = read(json)?;
        let beside =
            part.thought_signature.map(|it| json!({ "thoughtSignature": &*it }).to_string());
        match (part.text, part.function_call) {
            (_, Some(called)) => {
                let place = self.call(draft, called, told)?;
                match (place, beside) {
                    (Some(place), Some(beside)) => draft.beside(place, beside),
                    _ => Ok(()),
                }
            }
            (Some(text), None) if part.thought => {
                told(Delta::Reasoning(&text));
                draft.keep(json)
            }
            (Some(text), None) => {
                draft.say(&text, told)?;
                // A signature belongs to the text before it.
                beside.map_or(Ok(()), |beside| draft.keep(&beside))
            }
            (None, None) => draft.keep(json),
        }
    }

    /// A call, or more of one. The place of one that begins is returned.
    fn call(
        &mut self,
        draft: &mut Draft,
        called: Called<'_>,
        told: Told<'_>,
    ) -> Result<Option<usize>, ModelError> {
        let begins = called.name.is_some() || self.open.is_none();
        let place = if begins {
            self.close(draft, told)?;
            let (id, name) = (called.id.unwrap_or_default(), called.name.unwrap_or_default());
            let place = draft.call(&id, &name, told)?;
            self.open = Some((place, Partial::default()));
            Some(place)
        } else {
            None
        };
        if let (Some(args), Some(place)) = (called.args, place) {
            self.open = None;
            draft.argue(place, args.get(), told)?;
        }
        if let Some((_, partial)) = &mut self.open {
            for piece in called.partial_args.into_iter().flatten() {
                draft.grow(piece.bytes())?;
                draft.grow(partial.add(&piece)?)?;
            }
        }
        if !called.will_continue {
            self.close(draft, told)?;
        }
        Ok(place)
    }
}

impl Tokens {
    fn usage(&self) -> Usage {
        let sum = |first: Option<u64>, second: Option<u64>| {
            first.unwrap_or(0).saturating_add(second.unwrap_or(0))
        };
        Usage {
            input_tokens: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            output_tokens: sum(self.candidates_token_count, self.thoughts_token_count),
            cached_tokens: self.cached_content_token_count.unwrap_or(0),
        }
    }
}

/// Why the model stopped. A word that nobody knows is no reason to execute anything.
fn stop(word: &str) -> TurnStop {
    match word {
        "STOP" => TurnStop::Done,
        "MAX_TOKENS" => TurnStop::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => TurnStop::Refused,
        _ => TurnStop::Cut,
    }
}
