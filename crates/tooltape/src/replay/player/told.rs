//! What a replay makes of each record: written down where it is the same, told where it is not.

use super::{Player, Stand};
use crate::replay::causes::causes;
use crate::replay::compare::{Place, is_same};
use crate::replay::{Divergence, Stage};
use crate::tape::{Append, Event, Record, Tape};

impl Player<'_> {
    /// Compares what happens now with the record, and writes it down. Says whether to go on.
    pub(super) fn compare(&mut self, record: &Record, now: Option<Event>, stage: Stage) -> bool {
        let same = now.as_ref().is_none_or(|now| is_same(&record.event, now));
        if same {
            if self.report.divergences.is_empty() {
                let mut events = vec![now.unwrap_or_else(|| record.event.clone())];
                let append = Append::new(record.run, record.seq, record.at_us, &mut events);
                let _ = self.report.tape.append(append).accepted();
            }
            return true;
        }
        let Some(now) = now else { return true };
        if let Some(call) = record.event.call().filter(|call| self.calls.contains_key(call)) {
            self.calls.insert(call, Stand::Served);
        }
        if !self.plan.within.contains(&record.seq) {
            return true;
        }
        self.report.divergences.push(self.divergence(record, &now, stage));
        !self.plan.strict
    }

    fn divergence(&self, record: &Record, now: &Event, source: Stage) -> Divergence {
        let Place { pointer, recorded, now: now_there } = Place::of(&record.event, now);
        let call = record.event.call();
        let fate = call.and_then(|call| self.fates.get(&call));
        let declared = fate.map(|fate| fate.declared.clone()).unwrap_or_default();
        let name = match (&record.event, &declared.tool) {
            (Event::Proposed(facts), _) | (Event::Judged { facts, .. }, _) => {
                facts.name.to_string()
            }
            (Event::Settled(reply), _) => reply.name.to_string(),
            (Event::Tools { added: Some(tool), .. }, _) | (_, Some(tool)) => {
                tool.name().to_string()
            }
            (_, None) => String::new(),
        };
        let causes = causes(&name, &declared, &self.toolbox, &record.event, now);
        let tool = declared.tool.map(|tool| tool.to_string());
        Divergence {
            seq: record.seq,
            event: record.event.kind().to_owned(),
            call,
            tool: tool.or_else(|| Some(name).filter(|name| !name.is_empty())),
            source,
            pointer,
            recorded,
            now: now_there,
            causes,
        }
    }
}
