//! The one pass over a document.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::query::{Name, Query, Step, StepKind};

/// The most bytes of all matches together.
const MATCHES_BYTES_MAX: usize = 64 << 10;

/// What a search found.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    /// How many values match.
    pub count: usize,
    /// The first of them: members by name, elements by number, a value before what is in it.
    pub matches: Vec<Match<'a>>,
}

/// A value, and where it is.
#[derive(Debug, Serialize)]
pub struct Match<'a> {
    /// The JSON Pointer to it.
    pub at: String,
    /// The value.
    pub value: &'a Value,
}

/// Finds all values that match, and returns at most the first `most` of them.
pub fn search<'a>(query: &Query, document: &'a Value, most: usize) -> Answer<'a> {
    let answer = Answer { count: 0, matches: Vec::new() };
    let room = Room { bytes_left: MATCHES_BYTES_MAX };
    let mut search = Search { steps: &query.steps, at: String::new(), answer, most, room };
    search.visit(document, Steps(1));
    search.answer
}

/// Where a value is in the one that it is in.
#[derive(Clone, Copy)]
enum Key<'a> {
    Member(&'a str),
    Element(usize),
}

/// The steps that the way to a value may take next, as bits; one more is set where it may end.
#[derive(Clone, Copy)]
struct Steps(u64);

impl Steps {
    fn has(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }

    fn insert(&mut self, number: usize) {
        self.0 |= 1 << number;
    }
}

struct Search<'q, 'a> {
    steps: &'q [Step],
    /// The pointer to the value that is visited.
    at: String,
    answer: Answer<'a>,
    most: usize,
    room: Room,
}

impl<'a> Search<'_, 'a> {
    fn visit(&mut self, value: &'a Value, mut steps: Steps) {
        for (number, step) in self.steps.iter().enumerate() {
            let is_below = matches!(step.kind, StepKind::Below);
            if is_below && steps.has(number) && step.admits(value) {
                steps.insert(number + 1);
            }
        }
        if steps.has(self.steps.len()) {
            self.keep(value);
        }
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(name, it)| self.descend(Key::Member(name), it, steps));
            }
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                elements.for_each(|(index, it)| self.descend(Key::Element(index), it, steps));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn descend(&mut self, key: Key<'_>, value: &'a Value, steps: Steps) {
        let mut next = Steps(0);
        for (number, step) in self.steps.iter().enumerate().filter(|(it, _)| steps.has(*it)) {
            let is_taken = match &step.kind {
                StepKind::Below => {
                    next.insert(number);
                    false
                }
                StepKind::Each => true,
                StepKind::Name(name) => key.is(name),
            };
            if is_taken && step.admits(value) {
                next.insert(number + 1);
            }
        }
        if next.0 != 0 {
            let length = self.at.len();
            key.append_to(&mut self.at);
            self.visit(value, next);
            self.at.truncate(length);
        }
    }

    fn keep(&mut self, value: &'a Value) {
        self.answer.count += 1;
        if self.answer.matches.len() < self.most {
            let found = Match { at: self.at.clone(), value };
            match serde_json::to_writer(&mut self.room, &found) {
                Ok(()) => self.answer.matches.push(found),
                // What comes behind a match that has no room is not shown either.
                Err(_) => self.most = 0,
            }
        }
    }
}

impl Step {
    fn admits(&self, value: &Value) -> bool {
        self.filters.iter().all(|filter| filter.admits(value))
    }
}

impl Key<'_> {
    fn is(self, name: &Name) -> bool {
        match self {
            Key::Member(text) => name.text == text,
            Key::Element(index) => name.index == Some(index),
        }
    }

    fn append_to(self, pointer: &mut String) {
        pointer.push('/');
        match self {
            Key::Member(text) => pointer.push_str(&text.replace('~', "~0").replace('/', "~1")),
            Key::Element(index) => pointer.push_str(&index.to_string()),
        }
    }
}

/// Counts what is written, and refuses what is too much: a large value is not even looked through.
struct Room {
    bytes_left: usize,
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.bytes_left.checked_sub(bytes.len());
        self.bytes_left = left.ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
