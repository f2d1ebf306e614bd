//! The last look for secrets, before an event is on the tape and before anybody watches it.

use std::borrow::Cow;
use std::sync::Arc;

use super::Event;
use crate::reply::Redactor;

impl Event {
    /// Takes out what no stage before has looked at. What calls say and return, and what models
    /// propose, holds no secret any more when it comes here.
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        let text = |text: &mut String| {
            if let Cow::Owned(redacted) = redactor.redact(text) {
                *text = redacted;
            }
        };
        let shared = |text: &mut Option<Arc<str>>| {
            *text = text.take().map(|text| redactor.shared(text));
        };
        let rule = |rule: &mut Cow<'static, str>| {
            if redactor.finds(rule) {
                *rule = redactor.redact(rule).into_owned().into();
            }
        };
        match self {
            Event::RunStarted { thread, note, .. } => {
                shared(thread);
                if let Some(redacted) = note.as_ref().and_then(|note| redactor.value(note)) {
                    *note = Some(Arc::new(redacted));
                }
            }
            Event::RunPaused { why } => text(why),
            Event::Asked { text } | Event::Said { text } => *text = redactor.shared(text.clone()),
            Event::Turn(turn) => shared(&mut turn.text),
            Event::Nudged(nudge) => nudge.text = redactor.shared(nudge.text.clone()),
            Event::Judged { rule: judged, .. } => rule(judged),
            Event::CallAsked(question) => rule(&mut question.rule),
            Event::Answered { told, .. } => told.iter_mut().for_each(text),
            Event::RunEnded { stop, answer, .. } => {
                text(stop);
                shared(answer);
            }
            Event::RunResumed { .. }
            | Event::Recalled { .. }
            | Event::Tools { .. }
            | Event::Proposed(_)
            | Event::Started { .. }
            | Event::Retried { .. }
            | Event::Abandoned { .. }
            | Event::Progress { .. }
            | Event::Emitted { .. }
            | Event::State { .. }
            | Event::Stored { .. }
            | Event::Reconciled { .. }
            | Event::Settled(_) => {}
        }
    }
}
