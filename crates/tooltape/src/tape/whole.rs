//! A call whose every event is appended at once, kept as one.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Event, Key};
use crate::id::CallNo;
use crate::reply::Reply;

/// The events of a call that was proposed, judged, started and settled in one append.
///
/// They say much of the same, so that a tape in memory makes them only where somebody reads them.
pub(crate) struct Whole {
    pub(crate) verdict: &'static str,
    pub(crate) rule: Cow<'static, str>,
    pub(crate) attempt: u32,
    /// The moment that a tool with bounded determinism sees.
    pub(crate) clock_us: Option<u64>,
    pub(crate) settled: Reply,
}

impl Whole {
    /// How many events it is.
    pub(super) const EVENTS: usize = 4;

    /// The event at this place.
    pub(super) fn event(&self, at: usize) -> Event {
        let facts = self.settled.facts();
        match at {
            0 => Event::Proposed(Arc::new(facts.clone())),
            1 => {
                let (facts, rule) = (Arc::new(facts.clone()), self.rule.clone());
                Event::Judged { facts, verdict: self.verdict, rule }
            }
            2 => {
                let Whole { attempt, clock_us, .. } = *self;
                Event::Started { call: facts.call, attempt, clock_us }
            }
            _ => Event::Settled(self.settled.clone()),
        }
    }

    /// Lists all of them, in their order.
    pub(super) fn list(self, events: &mut Vec<Event>) {
        let Whole { verdict, rule, attempt, clock_us, settled } = self;
        let facts = Arc::new(settled.facts().clone());
        events.push(Event::Proposed(facts.clone()));
        events.push(Event::Judged { facts, verdict, rule });
        events.push(Event::Started { call: settled.call, attempt, clock_us });
        events.push(Event::Settled(settled));
    }

    /// The keys that the events of such a call take.
    pub(super) fn keys(call: CallNo, attempt: u32) -> [Key; 2] {
        [Key::Started(call, attempt), Key::Settled(call)]
    }
}
