//! A witness that hears no secrets, not even in parts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use zeroize::Zeroizing;

use super::{Redactor, Secrets};
use crate::canon::Canon;
use crate::grant::{Note, Noted, Stored, Witness};
use crate::id::{CallNo, Name};
use crate::label::Label;
use crate::sync::Mutex;

/// As many bytes of the beginning of a secret are not shown at the end of a note: the next one may
/// go on with it.
pub const SECRET_PART_BYTES_MIN: usize = 4;
/// The most threads of notes whose last words are remembered.
const THREADS_MAX: usize = 1_024;

impl Redactor {
    /// Whether a text, or JSON, holds a secret. Of the beginning of one nothing is said: whoever
    /// may try one beginning after the other would learn it so.
    pub(crate) fn minds(&self, text: &str) -> bool {
        self.finds_in_json(text)
    }

    /// A label, without the names that say what must not be written down.
    pub(crate) fn label(&self, label: Arc<Label>) -> Arc<Label> {
        let is_telling = label.names().any(|name| self.minds(name));
        match is_telling {
            false => label,
            true => Arc::new(label.hiding(|name| self.minds(name))),
        }
    }

    /// A witness that hears no secrets, in front of another one.
    pub(crate) fn before(&self, witness: Arc<dyn Witness>) -> Arc<dyn Witness> {
        match &self.0 {
            None => witness,
            Some(secrets) => Arc::new(Discreet {
                witness,
                redactor: self.clone(),
                secrets: secrets.clone(),
                threads: Mutex::default(),
            }),
        }
    }
}

struct Discreet {
    witness: Arc<dyn Witness>,
    redactor: Redactor,
    secrets: Arc<Secrets>,
    threads: Mutex<Threads>,
}

/// By the call, and the name of the events, how the last of its notes ended.
type Threads = BTreeMap<(CallNo, Option<Name>), Zeroizing<Vec<u8>>>;

impl Witness for Discreet {
    fn note(&self, call: CallNo, note: Note) -> Noted {
        let clean = |value: Canon| self.redactor.canon(&value).unwrap_or(value);
        let note = match note {
            Note::Progress(text) => {
                let said = self.in_thread(call, None, |last| self.go_on(last, &text));
                Note::Progress(said.unwrap_or(text))
            }
            Note::Emitted { name, value } => {
                let name = self.name(name);
                let value = self.in_thread(call, Some(name.clone()), |last| {
                    self.redactor.canon_with(&value, |text| self.go_on(last, text))
                });
                Note::Emitted { name, value }
            }
            Note::State { name, value, label } => {
                let label = label.map(|label| self.redactor.label(label));
                Note::State { name, value: clean(value), label }
            }
            Note::Stored { store, key, wrote, stored: Stored { value, label } } => {
                let (store, key) = (self.name(store), self.redactor.text(key));
                let label = label.map(|label| self.redactor.label(label));
                let stored = Stored { value: value.map(clean), label };
                Note::Stored { store, key, wrote, stored }
            }
            Note::Abandoned { .. } => note,
        };
        self.witness.note(call, note)
    }

    fn minds(&self, text: &str) -> bool {
        self.redactor.minds(text)
    }
}

impl Discreet {
    /// A name may be a secret, too.
    fn name(&self, name: Name) -> Name {
        match self.redactor.finds(name.as_str()) {
            true => Name::new("redacted").expect("it is a name"),
            false => name,
        }
    }

    /// Works on what a thread of notes ended with.
    fn in_thread<T>(
        &self,
        call: CallNo,
        name: Option<Name>,
        work: impl FnOnce(&mut Zeroizing<Vec<u8>>) -> T,
    ) -> T {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (call, name);
        let mut last = threads.remove(&key).unwrap_or_default();
        let done = work(&mut last);
        if !last.is_empty() {
            threads.insert(key, last);
        }
        // Far more than calls run at once; the oldest are over.
        while threads.len() > THREADS_MAX {
            threads.pop_first();
        }
        done
    }

    /// A text that goes on where `last` ended, without what it says of secrets, where it does.
    ///
    /// A note is shown at once and cannot be taken back. So the beginning of a secret is hidden
    /// where a note ends with it, and the rest where the next one goes on.
    fn go_on(&self, last: &mut Zeroizing<Vec<u8>>, text: &str) -> Option<String> {
        let before = last.len();
        let bytes = Zeroizing::new([last.as_slice(), text.as_bytes()].concat());
        let begun = self.secrets.begun(&bytes);
        *last = Zeroizing::new(bytes[bytes.len() - begun..].to_vec());
        let begun = (begun >= SECRET_PART_BYTES_MIN).then(|| bytes.len() - begun..bytes.len());
        let here = |place: Range<usize>| {
            let (start, end) = (place.start.max(before) - before, place.end.max(before) - before);
            text.floor_char_boundary(start)..text.ceil_char_boundary(end)
        };
        let found = self.redactor.places(&bytes, |found| found);
        let hidden = found.into_iter().chain(begun).map(here).filter(|place| !place.is_empty());
        let hidden = hidden.fold(Vec::new(), super::joined);
        if hidden.is_empty() {
            return None;
        }
        Some(super::without(text, hidden))
    }
}
