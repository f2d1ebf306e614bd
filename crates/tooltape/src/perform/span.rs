//! The `tracing` span of an attempt, named as OpenTelemetry names the execution of a tool.

use tracing::field::Empty;
use tracing::info_span;

use super::SPAN_CONTENT_BYTES_MAX;
use crate::call::Call;
use crate::fault::clip;
use crate::id::RunId;
use crate::reply::{Redactor, Reply};

/// Which spans a run makes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spans {
    /// Whether they show arguments and results.
    pub(crate) content: bool,
}

impl Spans {
    /// The span of an attempt: no more than one look at a number where nobody records spans.
    pub(crate) fn of(self, run: RunId, call: &Call, attempt: u32, redactor: &Redactor) -> Span {
        let (name, spec) = (call.tool().name().as_str(), call.spec());
        let span = info_span!(
            target: "tooltape",
            "execute_tool",
            "otel.name" = format!("execute_tool {name}"),
            "otel.kind" = "internal",
            "otel.status_code" = Empty,
            "gen_ai.operation.name" = "execute_tool",
            "gen_ai.tool.name" = name,
            "gen_ai.tool.call.id" = &**call.id(),
            "gen_ai.tool.type" = "function",
            "gen_ai.tool.description" = &*spec.description,
            "gen_ai.tool.call.arguments" = Empty,
            "gen_ai.tool.call.result" = Empty,
            "error.type" = Empty,
            "tooltape.run" = %run,
            "tooltape.call" = call.no().0,
            "tooltape.attempt" = attempt,
        );
        let shows = self.content && !span.is_disabled();
        if shows {
            let args = redactor.redact(call.args().as_str());
            span.record("gen_ai.tool.call.arguments", content(&args));
        }
        Span { span, shows }
    }
}

/// The span of one attempt. It ends when it is dropped.
pub(crate) struct Span {
    span: tracing::Span,
    shows: bool,
}

impl Span {
    /// The span of a call that was not attempted.
    pub(crate) fn none() -> Span {
        Span { span: tracing::Span::none(), shows: false }
    }

    /// Works inside the span.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.in_scope(work)
    }

    /// The attempt failed, by the code of its fault.
    pub(crate) fn failed(&self, code: &str) {
        self.span.record("otel.status_code", "ERROR").record("error.type", code);
    }

    /// The call was settled by this attempt.
    pub(crate) fn settled(&self, reply: &Reply) {
        if self.shows {
            self.span.record("gen_ai.tool.call.result", content(&reply.text()));
        }
    }
}

fn content(text: &str) -> String {
    clip(text.to_owned(), SPAN_CONTENT_BYTES_MAX)
}
