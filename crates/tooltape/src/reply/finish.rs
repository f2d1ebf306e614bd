//! The last stage before a result is recorded: redacted, bounded, and what is too large put aside.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::bound::{self, BLOCKS_MAX, OUTPUT_BYTES_MIN};
use super::frame::{self, Frame, Framing, defused};
use super::redact::Redactor;
use super::{FaultView, Normal, Reply};
use crate::artifact::{ArtifactId, Artifacts};
use crate::canon::{Canon, Hash, RESULT_BYTES_MAX};
use crate::fault::{BoundKind, Exceeded, Fault, TOLD_BYTES_MAX, clip};
use crate::grant::REDACTED;
use crate::id::{CallNo, RunId};
use crate::label::Label;
use crate::proposal::Facts;
use crate::spec::Spec;
use crate::tool::{Block, Content, Output};

/// The most bytes of a fault's message that the host reads.
pub const FAULT_BYTES_MAX: usize = 16 << 10;
/// The most bytes that are worked on by the thread that performed the call.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// How the results of one run are finished.
pub(crate) struct Finishing {
    pub(crate) run: RunId,
    pub(crate) artifacts: Artifacts,
    pub(crate) redactor: Redactor,
    pub(crate) framing: Framing,
    /// The bound of tools that name none.
    pub(crate) output_bytes: u64,
}

/// A result that may be recorded and shown.
pub(crate) struct Finished {
    pub(super) normal: Normal,
    pub(super) artifacts: Vec<Hash>,
    pub(super) frame: Option<Frame>,
    /// What the tape keeps instead, where the application sees more than may be written down.
    pub(super) on_tape: Option<OnTape>,
}

impl Finished {
    /// A result that is finished as it is.
    pub(crate) fn of(normal: Normal) -> Finished {
        Finished { normal, artifacts: Vec::new(), frame: None, on_tape: None }
    }
}

pub(super) struct OnTape {
    pub(super) value: Option<Canon>,
    pub(super) details: Option<Box<Value>>,
}

impl Finishing {
    /// Whether an output is a short value that is shown as it is: to finish it is to render it.
    #[inline]
    pub(crate) fn is_plain(&self, output: &Output, facts: &Facts) -> bool {
        let is_short = |value: &Canon| {
            let bytes = value.as_bytes();
            // No bound is smaller. A string is shown as its text, and marks of ours are looked for.
            (bytes.len() as u64) < OUTPUT_BYTES_MIN
                && !bytes.starts_with(b"\"")
                && !bytes.contains(&b'[')
        };
        output.content.is_empty()
            && output.value.as_ref().is_some_and(is_short)
            && self.redactor.is_idle()
            && self.framing == Framing::Plain
            && facts.registered.as_ref().is_some_and(|tool| tool.output().is_none())
    }

    /// Whether a result needs nothing more, as most do.
    pub(crate) fn is_needless(&self, normal: &Normal, spec: Option<&Spec>) -> bool {
        self.redactor.is_idle()
            && self.framing == Framing::Plain
            && normal.fault.as_ref().is_none_or(|fault| fault.message.len() <= FAULT_BYTES_MAX)
            && bound::fits(&normal.content, self.bytes_max(normal, spec))
    }

    /// Finishes a result. A large one is worked on by a thread for such things; dropping the future
    /// then leaves an artifact that nothing refers to.
    pub(crate) async fn finish(
        self: &Arc<Finishing>,
        normal: Normal,
        call: CallNo,
        spec: Option<&Spec>,
        label: Option<Arc<Label>>,
    ) -> Finished {
        let bytes_max = self.bytes_max(&normal, spec);
        let is_kept =
            normal.content.len() <= BLOCKS_MAX && bound::size(&normal.content) <= bytes_max;
        let value = normal.value.as_ref().map_or(0, |value| value.as_str().len());
        if value + bytes(&normal.content) <= INLINE_BYTES_MAX
            && (is_kept || self.artifacts.is_memory())
        {
            return self.finished(normal, call, bytes_max, label.as_deref());
        }
        let (finishing, executed) = (self.clone(), normal.executed);
        let done = tokio::task::spawn_blocking(move || {
            finishing.finished(normal, call, bytes_max, label.as_deref())
        });
        done.await.unwrap_or_else(|err| {
            let why = format!("the result could not be finished: {err}");
            Finished::of(Normal::fault(Fault::Bug { executed, why }))
        })
    }

    fn finished(
        &self,
        normal: Normal,
        call: CallNo,
        bytes_max: usize,
        label: Option<&Label>,
    ) -> Finished {
        let mut normal = within_cap(normal);
        let on_tape = match self.redactor.is_idle() {
            true => None,
            false => self.redacted(&mut normal),
        };
        let blocks = taken(&mut normal.content);
        let blocks = match normal.fault.as_deref_mut() {
            Some(fault) => {
                bound_fault(fault);
                blocks.into_iter().map(bound_telling).collect()
            }
            None => {
                let put = |bytes| self.artifacts.put_labelled(bytes, label);
                let mut put_aside = |bytes| put(bytes).ok().map(|it| it.id);
                bound::bounded(blocks, bytes_max, &mut put_aside)
            }
        };
        let artifacts: BTreeSet<_> = blocks.iter().filter_map(|it| self.referred(it)).collect();
        normal.content = blocks.into_iter().collect();
        // What the tool did not say, we said; that stands in no frame.
        let is_said = normal.fault.as_ref().is_none_or(|fault| fault.told.is_some());
        let frame = match self.framing {
            Framing::Framed if is_said => Some(Frame::new(self.run, call)),
            Framing::Framed | Framing::Plain => None,
        };
        let artifacts = artifacts.into_iter().map(|ArtifactId(hash)| hash).collect();
        Finished { normal, artifacts, frame, on_tape }
    }

    /// A reply that was read from a tape, framed as the run frames its replies.
    pub(crate) fn framed(&self, reply: Reply) -> Reply {
        let is_said = reply.fault.as_ref().is_none_or(|fault| fault.told.is_some());
        match self.framing {
            Framing::Framed if is_said => {
                let frame = Some(Frame::new(self.run, reply.call));
                reply.in_frame(frame)
            }
            Framing::Framed | Framing::Plain => reply,
        }
    }

    /// Takes secrets out of what a model reads, and returns what the tape keeps where the
    /// application sees more.
    fn redacted(&self, normal: &mut Normal) -> Option<OnTape> {
        let redactor = &self.redactor;
        let blocks = taken(&mut normal.content).into_iter();
        let blocks: Vec<Block> = blocks.map(|block| redacted_block(redactor, block)).collect();
        // A secret may go from one block to the next.
        let is_split = blocks.len() > 1
            && ["", "\n"].iter().any(|between| {
                let texts: Vec<Cow<'_, str>> = blocks.iter().map(frame::text).collect();
                redactor.finds(&texts.join(between))
            });
        normal.content = match is_split {
            true => Content::One([Block::text(REDACTED)]),
            false => blocks.into_iter().collect(),
        };
        if let Some(fault) = &mut normal.fault {
            let clean = |text: &mut Arc<str>| {
                if redactor.finds(text) {
                    *text = redactor.redact(text).into();
                }
            };
            clean(&mut fault.message);
            clean(&mut fault.code);
            fault.told.as_mut().into_iter().chain(&mut fault.rule).for_each(clean);
        }
        let metadata = normal.metadata.as_ref().and_then(|it| redactor.value(it));
        normal.metadata = metadata.map(Box::new).or(normal.metadata.take());
        let value = normal.value.as_ref().and_then(|value| redactor.canon(value));
        let details = normal.details.as_ref().and_then(|details| redactor.value(details));
        if value.is_none() && details.is_none() {
            return None;
        }
        // The hash is of what is on the tape, so that a replay comes to the same one.
        if let Some(value) = &value {
            let ordered = normal.ordered.as_ref().and_then(|it| redactor.canon(it));
            normal.ordered = ordered.or_else(|| Some(value.clone()));
        }
        Some(OnTape {
            value: value.or_else(|| normal.value.clone()),
            details: details.map(Box::new).or_else(|| normal.details.clone()),
        })
    }

    /// The artifact that a block leads to, if the run knows it.
    fn referred(&self, block: &Block) -> Option<ArtifactId> {
        let id = match block {
            Block::LeftOut { artifact, .. } => *artifact,
            Block::ResourceLink { uri, .. } => uri.parse().ok(),
            Block::Text { .. } | Block::Json { .. } | Block::Image { .. } => None,
        };
        id.filter(|id| self.artifacts.knows(*id))
    }

    /// The bound of a result. Where unlimited was written out, there is still the limit of results.
    fn bytes_max(&self, normal: &Normal, spec: Option<&Spec>) -> usize {
        if normal.fault.is_some() {
            return TOLD_BYTES_MAX;
        }
        let bound = spec
            .map_or(Some(self.output_bytes), |spec| spec.bounds.output_bytes.or(self.output_bytes));
        let bytes = bound.map(|bytes| usize::try_from(bytes.max(OUTPUT_BYTES_MIN)));
        bytes.and_then(Result::ok).map_or(RESULT_BYTES_MAX, |bytes| bytes.min(RESULT_BYTES_MAX))
    }
}

/// Content that is about to be replaced.
fn taken(content: &mut Content) -> Vec<Block> {
    std::mem::replace(content, Content::Many(Vec::new())).into_vec()
}

/// The bytes of content, images and all.
fn bytes(content: &[Block]) -> usize {
    let images = content.iter().map(|block| match block {
        Block::Image { data, .. } => data.len(),
        Block::Text { .. }
        | Block::Json { .. }
        | Block::ResourceLink { .. }
        | Block::LeftOut { .. } => 0,
    });
    bound::size(content) + images.sum::<usize>()
}

/// The result, or the fault that it is larger than any result may be.
fn within_cap(normal: Normal) -> Normal {
    let used = bytes(&normal.content);
    if normal.fault.is_some() || used <= RESULT_BYTES_MAX {
        return normal;
    }
    let Normal { executed, value, details, .. } = normal;
    let (bound, limit) = (BoundKind::OutputBytes, RESULT_BYTES_MAX as u64);
    let fault = Exceeded { bound, limit, used: Some(used as u64), executed };
    Normal { value, details, ..Normal::fault(Fault::Exceeded(fault)) }
}

fn redacted_block(redactor: &Redactor, block: Block) -> Block {
    match block {
        Block::Text { text } => Block::Text { text: redactor.text(text) },
        Block::Json { value } => {
            let redacted = redactor.canon(&value);
            Block::Json { value: redacted.unwrap_or(value) }
        }
        Block::Image { media_type, data } => match is_telling(redactor, &data) {
            true => Block::text(REDACTED),
            false => Block::Image { media_type: redactor.text(media_type), data },
        },
        Block::ResourceLink { uri, title, media_type } => Block::ResourceLink {
            uri: redactor.text(uri),
            title: title.map(|title| redactor.text(title)),
            media_type: media_type.map(|it| redactor.text(it)),
        },
        Block::LeftOut { .. } => block,
    }
}

/// Whether an image says a secret, in base64 or in what that stands for.
fn is_telling(redactor: &Redactor, data: &str) -> bool {
    let bytes = STANDARD.decode(data).unwrap_or_default();
    redactor.finds(data) || redactor.finds_in(&bytes)
}

fn bound_telling(block: Block) -> Block {
    match block {
        Block::Text { text } => Block::text(clip(defused(text), TOLD_BYTES_MAX)),
        Block::Json { .. }
        | Block::Image { .. }
        | Block::ResourceLink { .. }
        | Block::LeftOut { .. } => block,
    }
}

fn bound_fault(fault: &mut FaultView) {
    let FaultView { message, told, .. } = fault;
    for text in [Some(message), told.as_mut()].into_iter().flatten() {
        if text.len() > FAULT_BYTES_MAX {
            *text = clip(text.to_string(), FAULT_BYTES_MAX).into();
        }
    }
}
