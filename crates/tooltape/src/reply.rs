//! What a model reads back, and what the application sees of it.

mod bound;
mod draft;
mod fault;
mod finish;
mod frame;
mod more;
mod read;
mod redact;
mod shorten;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub(crate) use bound::share;
pub use bound::{
    BLOCKS_MAX, IMAGE_BYTES_MAX, MEDIA_TYPE_BYTES_MAX, OUTPUT_BYTES_DEFAULT, OUTPUT_BYTES_MIN,
};
pub(crate) use draft::Draft;
pub use fault::FaultView;
pub use finish::FAULT_BYTES_MAX;
use finish::OnTape;
pub(crate) use finish::{Finished, Finishing};
pub use frame::{Frame, Framing};
use more::More;
pub(crate) use read::Settled;
pub use redact::{
    RedactError, RedactedBytes, RedactedText, Redactor, SECRET_BYTES_MIN, SECRET_PART_BYTES_MIN,
    SECRETS_BYTES_MAX,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::canon::{Canon, Doc, Domain, Hash, Limits};
use crate::fault::{Executed, Fault, ToolError};
use crate::label::Label;
use crate::proposal::{Facts, Outcome};
use crate::right::SpendScope;
use crate::schema::Checker;
use crate::spec::{Enforced, Vote};
use crate::tool::{Block, Content, Output, Registered, Source};

/// What the model reads back. There is exactly one for every proposal.
///
/// It is read like the [`Rendered`] outcome that it shares, so cloning it is cheap.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Reply(Arc<Rendered>);

impl Deref for Reply {
    type Target = Rendered;

    fn deref(&self) -> &Rendered {
        &self.0
    }
}

/// What became of a call, as the model and the application read it.
///
/// What the call was is read in the same way, from the [`Facts`] that its events have, too.
///
/// It is written down, and debugged, without the secrets that were found: what the tool returned
/// whole is only in `value` and `details` themselves.
#[derive(Clone)]
#[non_exhaustive]
pub struct Rendered {
    facts: Facts,
    /// Whether the call's effect happened.
    pub executed: Executed,
    /// Whether the call failed.
    pub is_error: bool,
    /// What the model reads.
    pub content: Content,
    /// What the tool returned, for the application.
    pub value: Option<Canon>,
    /// Why the call did not succeed.
    pub fault: Option<Box<FaultView>>,
    /// Where the result came from.
    pub source: Source,
    /// Whether the result votes to end the run.
    pub stop: bool,
    /// How that vote counts.
    pub vote: Vote,
    /// Large output that was put aside, by its hash.
    pub artifacts: Vec<Hash>,
    /// The hash of the normalised result.
    pub result_hash: Hash,
    /// What the tool told only the host.
    pub details: Option<Box<Value>>,
    /// What the tool told the provider.
    pub metadata: Option<Box<Value>>,
    /// How long the attempt took. Outside the hashes that a replay compares.
    pub elapsed_us: u64,
    /// What held the tool to what it declares.
    pub enforced_by: Enforced,
    /// Whether the result surely depends on no more than the tool declares: a runtime gave the tool
    /// nothing else.
    pub proven: bool,
    more: Option<Box<More>>,
}

impl Rendered {
    /// What its tool was held to, and how long it took.
    #[inline]
    fn held(&mut self, elapsed_us: u64) {
        self.elapsed_us = elapsed_us;
        let Some(tool) = self.facts.registered.as_deref() else { return };
        self.vote = tool.effects().vote;
        (self.enforced_by, self.proven) = (tool.enforced_by(), tool.is_proven());
    }
}

impl Deref for Rendered {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.on_tape().map_or(self, |on_tape| on_tape);
        f.debug_struct("Rendered")
            .field("facts", &self.facts)
            .field("executed", &self.executed)
            .field("is_error", &self.is_error)
            .field("content", &self.content)
            .field("value", &kept.value)
            .field("fault", &self.fault)
            .field("source", &self.source)
            .field("stop", &self.stop)
            .field("vote", &self.vote)
            .field("artifacts", &self.artifacts)
            .field("result_hash", &self.result_hash)
            .field("details", &kept.details)
            .field("metadata", &self.metadata)
            .field("elapsed_us", &self.elapsed_us)
            .field("frame", &self.frame())
            .finish()
    }
}

impl Serialize for Rendered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = self.on_tape().map_or(self, |on_tape| on_tape);
        let mut fields = serializer.serialize_struct("Rendered", 18)?;
        fields.serialize_field("call", &self.call)?;
        fields.serialize_field("call_id", &self.id)?;
        fields.serialize_field("tool", &self.name)?;
        fields.serialize_field("tool_id", &self.tool())?;
        fields.serialize_field("executed", &self.executed)?;
        fields.serialize_field("is_error", &self.is_error)?;
        fields.serialize_field("content", &self.content)?;
        fields.serialize_field("value", &kept.value)?;
        fields.serialize_field("fault", &self.fault)?;
        fields.serialize_field("source", &self.source)?;
        fields.serialize_field("stop", &self.stop)?;
        fields.serialize_field("vote", &self.vote)?;
        fields.serialize_field("artifacts", &self.artifacts)?;
        fields.serialize_field("args_hash", &self.args_hash)?;
        fields.serialize_field("result_hash", &self.result_hash)?;
        fields.serialize_field("details", &kept.details)?;
        fields.serialize_field("metadata", &self.metadata)?;
        fields.serialize_field("elapsed_us", &self.elapsed_us)?;
        if let Some(label) = self.label_kept() {
            fields.serialize_field("label", label)?;
        }
        if let spent @ [_, ..] = self.spent() {
            let spent: Vec<String> = spent.iter().map(ToString::to_string).collect();
            fields.serialize_field("spent", &spent)?;
        }
        if let Some(endorsed) = self.endorsed() {
            fields.serialize_field("endorsed", endorsed)?;
        }
        if !self.enforced_by.is_default() {
            fields.serialize_field("enforced_by", &self.enforced_by)?;
        }
        if self.proven {
            fields.serialize_field("determinism", "proven")?;
        }
        fields.end()
    }
}

impl Reply {
    /// What the call was.
    #[inline]
    pub(crate) fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// The same reply, where something went wrong after it was made.
    pub(crate) fn replaced_by(self, fault: Fault) -> Reply {
        let normal = Normal::fault(fault);
        let result_hash = normal.hash();
        let Normal { executed, content, fault, source, .. } = normal;
        let (is_error, stop) = (true, false);
        let rest = Arc::unwrap_or_clone(self.0);
        let replaced =
            Rendered { executed, is_error, content, fault, source, result_hash, stop, ..rest };
        Reply(Arc::new(replaced)).but(|more| (more.frame, more.on_tape) = (None, None))
    }

    /// The same reply, but for this.
    fn but(self, change: impl FnOnce(&mut More)) -> Reply {
        let mut rendered = Arc::unwrap_or_clone(self.0);
        let mut more = rendered.more.map(|more| *more).unwrap_or_default();
        change(&mut more);
        rendered.more = more.kept();
        Reply(Arc::new(rendered))
    }

    /// The reply as the tape keeps it.
    pub(crate) fn recorded(&self) -> Reply {
        self.on_tape().unwrap_or(self).clone()
    }

    /// What a tape says became of a call, said again of the call as it is known now.
    pub(crate) fn again(&self, draft: Draft) -> Reply {
        let facts = draft.into_facts();
        let tool = facts.registered.as_deref();
        let vote = tool.map_or(Vote::Counting, |tool| tool.spec().effects.vote);
        Reply(Arc::new(Rendered { facts, vote, ..Rendered::clone(self) }))
    }

    /// The same reply, if it is no more than a value that somebody vouches for.
    #[cold]
    pub(crate) fn endorsed_by(self, by: &Arc<str>) -> Reply {
        let is_value = |it: &Canon| *self.content == [shown(it)] && self.metadata.is_none();
        if self.fault.is_some() || !self.value.as_ref().is_some_and(is_value) {
            return self;
        }
        self.but(|more| {
            more.label = more.label.take().and_then(|label| label.endorsed().kept());
            more.endorsed = Some(by.clone());
            more.on_tape = more.on_tape.take().map(|on_tape| on_tape.endorsed_by(by));
        })
    }

    /// The same reply of a call whose children spent this.
    #[cold]
    pub(crate) fn having_spent(self, spent: Box<[SpendScope]>) -> Reply {
        self.but(|more| {
            let on_tape = more.on_tape.take();
            more.on_tape = on_tape.map(|on_tape| on_tape.having_spent(spent.clone()));
            more.spent = Some(spent);
        })
    }

    /// The same reply in another frame.
    fn in_frame(self, frame: Option<Frame>) -> Reply {
        self.but(|more| more.frame = frame)
    }

    /// The same reply, with what the world decided of the recorded one: how long it took, and,
    /// where both succeeded, where it came from.
    pub(crate) fn lasting_like(self, recorded: &Reply) -> Reply {
        let mut rendered = Arc::unwrap_or_clone(self.0);
        rendered.elapsed_us = recorded.elapsed_us;
        (rendered.enforced_by, rendered.proven) = (recorded.enforced_by, recorded.proven);
        if !rendered.is_error && !recorded.is_error {
            rendered.source = recorded.source;
        }
        let More { label, endorsed, spent, .. } =
            recorded.more.as_deref().cloned().unwrap_or_default();
        let world = (label, endorsed, spent);
        Reply(Arc::new(rendered)).but(|more| (more.label, more.endorsed, more.spent) = world)
    }

    /// How many bytes the model reads.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.content.iter().map(|block| match block {
            Block::Text { text } => text.len(),
            Block::Json { value } => value.as_bytes().len(),
            Block::Image { data, .. } => data.len(),
            Block::ResourceLink { uri, .. } => uri.len(),
            Block::LeftOut { .. } => 0,
        });
        bytes.sum::<usize>() as u64
    }

    /// The content block by block, as a model reads it: what was left out, and the frame where
    /// there is one, are texts of their own.
    pub fn shown(&self) -> Vec<Cow<'_, Block>> {
        frame::shown(self)
    }

    /// The content as one text, as a model without content blocks reads it.
    pub fn text(&self) -> String {
        let shown = self.shown();
        shown.iter().map(|block| frame::text(block)).collect::<Vec<_>>().join("\n")
    }
}

/// Renders a result. With [`render_plain`], the only constructor of a reply.
#[inline]
pub(crate) fn render(
    draft: Draft,
    finished: Finished,
    label: Option<Arc<Label>>,
    elapsed_us: u64,
) -> Reply {
    let Finished { normal: result, artifacts, frame, on_tape } = finished;
    let is_chance = result.fault.as_ref().is_some_and(|fault| fault.is_chance());
    let reply = draft.rendered(|reply| {
        reply.held(elapsed_us);
        reply.proven &= !is_chance;
        reply.result_hash = result.hash();
        let Normal { content, value, fault, details, metadata, .. } = result;
        (reply.executed, reply.is_error) = (result.executed, fault.is_some());
        (reply.content, reply.value, reply.fault) = (content, value, fault);
        (reply.source, reply.stop) = (result.source, result.stop);
        (reply.details, reply.metadata) = (details, metadata);
        reply.artifacts = artifacts;
        reply.more = More { label, frame, ..More::default() }.kept();
    });
    let Some(OnTape { value, details }) = on_tape else { return reply };
    let on_tape = Reply(Arc::new(Rendered { value, details, ..Rendered::clone(&reply) }));
    reply.but(|more| more.on_tape = Some(on_tape))
}

/// Renders a value that is shown as it is, and takes it out of the output.
#[inline]
pub(crate) fn render_plain(
    draft: Draft,
    output: &mut Output,
    label: Option<Arc<Label>>,
    elapsed_us: u64,
) -> Reply {
    draft.rendered(|reply| {
        reply.held(elapsed_us);
        let value = output.value.take().expect("what is plain has a value");
        reply.executed = Executed::Executed;
        reply.result_hash = Hash::of(Domain::Result, value.as_bytes());
        reply.content = Content::One([Block::Json { value: value.clone() }]);
        reply.value = Some(value);
        (reply.source, reply.stop) = (output.source, output.stop);
        (reply.details, reply.metadata) = (output.details.take(), output.metadata.take());
        if label.is_some() {
            reply.more = More { label, ..More::default() }.kept();
        }
    })
}

/// The reply of a call that a stage before its tool refused, before it is finished.
pub(crate) fn refusal(draft: Draft, fault: Fault) -> Reply {
    render(draft, Finished::of(Normal::fault(fault)), None, 0)
}

/// A result in normal form.
pub(crate) struct Normal {
    executed: Executed,
    content: Content,
    value: Option<Canon>,
    /// The value with its sets in order, where its schema has any.
    ordered: Option<Canon>,
    fault: Option<Box<FaultView>>,
    source: Source,
    stop: bool,
    details: Option<Box<Value>>,
    metadata: Option<Box<Value>>,
}

impl Normal {
    /// Whether the call's effect happened.
    pub(crate) fn executed(&self) -> Executed {
        self.executed
    }

    /// The outcome of a call, checked against what its tool declared.
    pub(crate) fn of(outcome: Outcome, tool: Option<&Registered>) -> Normal {
        match outcome {
            Outcome::Done(output) => normalise(output, tool),
            Outcome::Not(fault) => Normal::fault(fault),
        }
    }

    #[cold]
    fn fault(fault: Fault) -> Normal {
        let details = fault.said().and_then(|err| err.host_details().cloned()).map(Box::new);
        Normal {
            executed: fault.executed(),
            content: Content::One([Block::text(fault.telling())]),
            value: None,
            ordered: None,
            fault: Some(Box::new(FaultView::new(&fault))),
            source: Source::Error,
            stop: false,
            details,
            metadata: None,
        }
    }

    /// Over the value where there is one, else over what the model reads.
    #[inline]
    fn hash(&self) -> Hash {
        match self.ordered.as_ref().or(self.value.as_ref()) {
            Some(value) if self.fault.is_none() => Hash::of(Domain::Result, value.as_bytes()),
            _ => {
                let content = Canon::of(&self.content);
                let bytes = content.as_ref().map_or("", |content| content.as_str());
                Hash::of(Domain::Result, bytes.as_bytes())
            }
        }
    }
}

/// Checks a value against the tool's output schema and puts it into canonical form.
#[inline]
fn normalise(output: Output, tool: Option<&Registered>) -> Normal {
    let Output { value, content, details, metadata, stop, source, label: _ } = output;
    let Some(value) = value else {
        return Normal {
            executed: Executed::Executed,
            content: Content::Many(content),
            value: None,
            ordered: None,
            fault: None,
            source,
            stop,
            details,
            metadata,
        };
    };
    let ordered = match tool.and_then(Registered::output) {
        Some(checker) => match checked(checker, &value) {
            Ok(ordered) => ordered,
            // The application still sees the value; the model learns that it cannot be trusted.
            Err(fault) => return Normal { value: Some(value), details, ..Normal::fault(fault) },
        },
        None => None,
    };
    let content = match content.is_empty() {
        true => Content::One([shown(&value)]),
        false => Content::Many(content),
    };
    Normal {
        executed: Executed::Executed,
        content,
        value: Some(value),
        ordered,
        fault: None,
        source,
        stop,
        details,
        metadata,
    }
}

/// Checks a value, and puts its sets in order where its schema has any.
fn checked(checker: &Checker, value: &Canon) -> Result<Option<Canon>, Fault> {
    let doc = Doc::read(value.as_str(), &Limits::RESULT);
    let doc = doc.map_err(|err| unnormal("output.unreadable", &err))?;
    checker.check(&doc).map_err(|mismatch| unnormal("output.invalid", &mismatch))?;
    Ok(checker.sets().map(|sets| doc.canonical_with(sets)))
}

/// A string is shown as its text; everything else as canonical JSON.
fn shown(value: &Canon) -> Block {
    match value.as_bytes().starts_with(b"\"") {
        true => Block::text(value.to_text().expect("a canonical string is a string")),
        false => Block::Json { value: value.clone() },
    }
}

fn unnormal(code: &'static str, why: &dyn fmt::Display) -> Fault {
    let told = format!("executed, but the tool's output does not fit what it declared: {why}");
    Fault::Failed(ToolError::tell(told).code(code))
}
