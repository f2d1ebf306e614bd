//! What few replies have.

use std::sync::Arc;

use super::{Frame, Rendered, Reply};
use crate::label::{self, Label};
use crate::right::SpendScope;

/// What few replies have, and so is kept apart: every call pays for the size of its reply.
#[derive(Clone, Default)]
pub(super) struct More {
    pub(super) label: Option<Arc<Label>>,
    pub(super) endorsed: Option<Arc<str>>,
    pub(super) spent: Option<Box<[SpendScope]>>,
    pub(super) frame: Option<Frame>,
    /// What the tape keeps instead, where a secret was found that only the application may see.
    pub(super) on_tape: Option<Reply>,
}

impl More {
    /// This, where there is any of it.
    #[inline]
    pub(super) fn kept(self) -> Option<Box<More>> {
        let More { label, endorsed, spent, frame, on_tape } = &self;
        let is_none = label.is_none() && endorsed.is_none() && spent.is_none();
        (!is_none || frame.is_some() || on_tape.is_some()).then(|| Box::new(self))
    }
}

impl Rendered {
    /// The label of what the tool returned.
    pub fn label(&self) -> &Label {
        label::said(self.label_kept())
    }

    /// The same, where that says anything.
    #[inline]
    pub(crate) fn label_kept(&self) -> Option<&Arc<Label>> {
        self.more.as_ref()?.label.as_ref()
    }

    /// Whoever vouches for it, though it was made from what nobody vouches for.
    pub fn endorsed(&self) -> Option<&str> {
        self.more.as_ref()?.endorsed.as_deref()
    }

    /// What the children of the call spent.
    pub fn spent(&self) -> &[SpendScope] {
        self.more.as_ref().and_then(|more| more.spent.as_deref()).unwrap_or_default()
    }

    /// How it is framed when a model reads it. It follows from the run, and is not recorded.
    pub fn frame(&self) -> Option<Frame> {
        self.more.as_ref()?.frame
    }

    /// What the tape keeps instead, where that is something else.
    #[inline]
    pub(super) fn on_tape(&self) -> Option<&Reply> {
        self.more.as_ref()?.on_tape.as_ref()
    }
}
