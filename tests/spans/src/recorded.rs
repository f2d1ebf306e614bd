//! A subscriber that remembers every span.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// A span as it was recorded.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) name: &'static str,
    pub(crate) target: String,
    /// The span that it was made in, by its place in the list.
    pub(crate) parent: Option<usize>,
    pub(crate) fields: BTreeMap<&'static str, String>,
    pub(crate) closed: bool,
    handles: usize,
}

pub(crate) type Spans = Arc<Mutex<Vec<Recorded>>>;

/// Remembers what this thread records, until the guard is dropped.
pub(crate) fn recording() -> (Spans, DefaultGuard) {
    let spans = Spans::default();
    let recorder = Recorder { spans: spans.clone(), entered: Mutex::default() };
    (spans, tracing::subscriber::set_default(recorder))
}

struct Recorder {
    spans: Spans,
    entered: Mutex<Vec<usize>>,
}

impl Recorder {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Recorded)) {
        change(&mut self.spans.lock().unwrap()[place(id)]);
    }
}

fn place(id: &Id) -> usize {
    usize::try_from(id.into_u64()).unwrap() - 1
}

impl Visit for Recorded {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let metadata = attributes.metadata();
        let mut span = Recorded {
            name: metadata.name(),
            target: metadata.target().to_owned(),
            parent: self.entered.lock().unwrap().last().copied(),
            fields: BTreeMap::new(),
            closed: false,
            handles: 1,
        };
        attributes.record(&mut span);
        let mut spans = self.spans.lock().unwrap();
        spans.push(span);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.change(id, |span| values.record(span));
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.change(id, |span| span.handles += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut closed = false;
        self.change(&id, |span| {
            span.handles -= 1;
            span.closed = span.handles == 0;
            closed = span.closed;
        });
        closed
    }

    fn enter(&self, id: &Id) {
        self.entered.lock().unwrap().push(place(id));
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}
}
