//! A turn of a model while it is being told.

use std::sync::Arc;

use crate::model::{Delta, ModelError, Turn, TurnStop, Usage};
use crate::proposal::Proposal;
use crate::verbatim::{Part, Verbatim};

/// The bytes of one turn: of what is said, proposed and kept for the provider. A turn with more is
/// not listened to.
pub const TURN_BYTES_MAX: usize = 32 << 20;
/// The calls that one turn proposes. A turn with more is not listened to.
pub const TURN_CALLS_MAX: usize = 1_024;
/// The items of one turn, however little each says: calls, thoughts, messages, and whatever else
/// its provider has. A turn with more is not listened to.
pub const TURN_ITEMS_MAX: usize = 16_384;

/// The bytes that an item counts for beside what it says.
const ITEM_BYTES: usize = 256;

/// Why a call is not executed whose arguments were told twice, and not the same.
const DISPUTED: &str = "its arguments came in two versions";

/// Whoever hears what a model says.
pub(super) type Told<'t> = &'t mut dyn FnMut(Delta<'_>);

/// A turn as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    text: String,
    calls: Vec<Begun>,
    parts: Vec<Piece>,
    bytes: usize,
    items: usize,
    /// Why the model stops, in its provider's word and in ours.
    end: Option<(Box<str>, TurnStop)>,
    /// Whether it has.
    is_over: bool,
    is_refused: bool,
    pub(super) usage: Usage,
}

/// A call that is being proposed.
#[derive(Clone, Debug)]
struct Begun {
    id: String,
    name: String,
    arguments: String,
    /// Whether its arguments came in two versions.
    is_disputed: bool,
    part: usize,
}

/// A part of the turn.
#[derive(Clone, Debug)]
enum Piece {
    Text(usize),
    Call(Option<String>),
    /// Empty where nothing came of it.
    Opaque(String),
}

/// The place of a part that only the provider can read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot(usize);

impl Draft {
    /// More of what is said.
    pub(super) fn say(&mut self, text: &str, told: Told<'_>) -> Result<(), ModelError> {
        if text.is_empty() {
            return Ok(());
        }
        self.goes_on();
        self.grow(text.len())?;
        self.text.push_str(text);
        match self.parts.last_mut() {
            Some(Piece::Text(bytes)) => *bytes += text.len(),
            Some(Piece::Call(_) | Piece::Opaque(_)) | None => {
                self.parts.push(Piece::Text(text.len()));
            }
        }
        told(Delta::Text(text));
        Ok(())
    }

    /// More of why the model refuses, which is what it says.
    pub(super) fn refuse(&mut self, text: &str, told: Told<'_>) -> Result<(), ModelError> {
        self.is_refused |= !text.is_empty();
        self.say(text, told)
    }

    /// A call begins. Its place is returned.
    pub(super) fn call(
        &mut self,
        id: &str,
        name: &str,
        told: Told<'_>,
    ) -> Result<usize, ModelError> {
        self.goes_on();
        self.item()?;
        self.grow(id.len() + name.len())?;
        let place = self.calls.len();
        if place >= TURN_CALLS_MAX {
            let why = format!("a turn with more than {TURN_CALLS_MAX} calls");
            return Err(ModelError::Garbled(why));
        }
        let (id, name, part) = (id.to_owned(), name.to_owned(), self.parts.len());
        told(Delta::Call(place, &name));
        let arguments = String::new();
        self.calls.push(Begun { id, name, arguments, is_disputed: false, part });
        self.parts.push(Piece::Call(None));
        Ok(place)
    }

    /// More of a call's name. One that is said again is not longer for it.
    pub(super) fn name(
        &mut self,
        place: usize,
        name: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        self.grow(name.len())?;
        let call = &mut self.calls[place];
        if !name.is_empty() && call.name != name {
            call.name.push_str(name);
            told(Delta::Call(place, &call.name));
        }
        Ok(())
    }

    /// The id of a call that began without one.
    pub(super) fn id(&mut self, place: usize, id: &str) -> Result<(), ModelError> {
        self.grow(id.len())?;
        if self.calls[place].id.is_empty() {
            id.clone_into(&mut self.calls[place].id);
        }
        Ok(())
    }

    /// More of a call's arguments.
    pub(super) fn argue(
        &mut self,
        place: usize,
        text: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        if !text.is_empty() {
            self.goes_on();
            self.grow(text.len())?;
            self.calls[place].arguments.push_str(text);
            told(Delta::Arguments(place, text));
        }
        Ok(())
    }

    /// All of a call's arguments: what has not been said of them is said now.
    ///
    /// Where something else was said, that stays, as whoever listened has heard it, and nobody
    /// knows which of the two the model meant.
    pub(super) fn argued(
        &mut self,
        place: usize,
        whole: &str,
        told: Told<'_>,
    ) -> Result<(), ModelError> {
        match whole.strip_prefix(&*self.calls[place].arguments) {
            Some(more) => self.argue(place, more, told),
            None => {
                self.calls[place].is_disputed |= !whole.is_empty();
                Ok(())
            }
        }
    }

    /// What a call is to have beside it when its provider sees it again.
    pub(super) fn beside(&mut self, place: usize, json: String) -> Result<(), ModelError> {
        self.grow(json.len())?;
        self.parts[self.calls[place].part] = Piece::Call(Some(json));
        Ok(())
    }

    /// Keeps a place for what only the provider can read.
    pub(super) fn slot(&mut self) -> Result<Slot, ModelError> {
        self.goes_on();
        self.item()?;
        self.parts.push(Piece::Opaque(String::new()));
        Ok(Slot(self.parts.len() - 1))
    }

    /// Fills such a place.
    pub(super) fn fill(&mut self, slot: Slot, json: String) -> Result<(), ModelError> {
        self.grow(json.len())?;
        self.parts[slot.0] = Piece::Opaque(json);
        Ok(())
    }

    /// Keeps what only the provider can read.
    pub(super) fn keep(&mut self, json: &str) -> Result<(), ModelError> {
        let slot = self.slot()?;
        self.fill(slot, json.to_owned())
    }

    /// The provider says why the model stops. A turn that was not done is not done by saying so.
    pub(super) fn ends(&mut self, word: &str, stop: TurnStop) {
        let known = self.end.as_ref().map_or(TurnStop::Done, |(_, stop)| *stop);
        if known == TurnStop::Done || stop != TurnStop::Done {
            self.end = Some((word.into(), stop));
        }
    }

    /// The model stops.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
    }

    /// The provider's word for why the model stopped.
    pub(super) fn stop_word(&self) -> Option<&str> {
        self.end.as_ref().map(|(word, _)| &**word)
    }

    /// The id of the call at a place.
    pub(super) fn id_of(&self, place: usize) -> &str {
        &self.calls[place].id
    }

    /// Whether nothing has been said of a call's arguments.
    pub(super) fn has_no_arguments(&self, place: usize) -> bool {
        self.calls[place].arguments.is_empty()
    }

    /// The place of the call with this id.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.id == id)
    }

    /// The place of the last call.
    pub(super) fn last_place(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }

    /// Whether anything was said or proposed.
    pub(super) fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    /// A model that goes on has not stopped.
    fn goes_on(&mut self) {
        if self.is_over {
            (self.end, self.is_over) = (None, false);
        }
    }

    /// Counts an item that is kept for this turn, here or by whoever reads it.
    pub(super) fn item(&mut self) -> Result<(), ModelError> {
        self.items += 1;
        match self.items <= TURN_ITEMS_MAX {
            true => self.grow(ITEM_BYTES),
            false => {
                Err(ModelError::Garbled(format!("a turn with more than {TURN_ITEMS_MAX} items")))
            }
        }
    }

    /// Counts bytes that are kept for this turn, here or by whoever reads it.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes <= TURN_BYTES_MAX {
            true => Ok(()),
            false => {
                Err(ModelError::Garbled(format!("a turn with more than {TURN_BYTES_MAX} bytes")))
            }
        }
    }

    /// The turn. One whose end was not told was cut off, and a provider reads nothing of its own
    /// in what was.
    pub(super) fn finish(self, api: &str) -> Turn {
        let stop = match (self.end.filter(|_| self.is_over), self.is_refused) {
            (None, _) => TurnStop::Cut,
            (Some(_), true) => TurnStop::Refused,
            (Some((_, stop)), false) => stop,
        };
        let parts = self.parts.into_iter().filter_map(|piece| match piece {
            Piece::Text(bytes) => Some(Part::Text(bytes)),
            Piece::Call(beside) => Some(Part::Call(beside.map(Arc::from))),
            Piece::Opaque(json) => (!json.is_empty()).then(|| Part::Opaque(json.into())),
        });
        let verbatim = match stop {
            TurnStop::Done | TurnStop::Length | TurnStop::Refused => {
                Verbatim::new(api, parts.collect())
            }
            TurnStop::Cut => None,
        };
        let proposals = self.calls.into_iter();
        let proposals = proposals.map(|call| match call.is_disputed {
            true => Proposal::unparsed(call.id, call.name, call.arguments, DISPUTED),
            false => Proposal::new(call.id, call.name, call.arguments),
        });
        Turn {
            text: (!self.text.is_empty()).then(|| self.text.into()),
            proposals: proposals.collect(),
            stop,
            usage: self.usage,
            verbatim: verbatim.map(Arc::new),
        }
    }
}
