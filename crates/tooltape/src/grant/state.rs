//! State: a value that calls share, updated one at a time and on tape.

use std::any::type_name;
use std::sync::{Arc, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CallContext, Grant, Note};
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::label::Label;
use crate::sync::Mutex;

/// A value that the calls of a run share. It can be read back, so that a run which is resumed has
/// the last value that the tape knows.
///
/// Updates happen one at a time, each on a copy that replaces the value only when the update
/// succeeded and was noted on the tape; a panic half-way leaves the value as it was.
///
/// ```
/// use tooltape::State;
/// let seen = State::new(Vec::<String>::new());
/// let count = seen.update(|seen| { seen.push("a".into()); seen.len() }).unwrap();
/// assert_eq!((count, seen.get()), (1, vec!["a".to_owned()]));
/// ```
pub struct State<T> {
    value: Arc<Mutex<Labelled<T>>>,
    context: Option<CallContext>,
}

/// A value, and the label of whatever was seen by those who changed it.
struct Labelled<T> {
    value: T,
    label: Label,
}

impl<T: Clone + Serialize> State<T> {
    /// A state that starts with this value.
    pub fn new(value: T) -> State<T> {
        let labelled = Labelled { value, label: Label::default() };
        State { value: Arc::new(Mutex::new(labelled)), context: None }
    }

    /// The value as it is now.
    pub fn get(&self) -> T {
        let labelled = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.saw(&labelled.label);
        labelled.value.clone()
    }

    /// Changes the value and notes the new one on the tape.
    ///
    /// Fails, and changes nothing, where the new value cannot be serialised or noted; once the call
    /// is over, nothing is noted of it any more.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, ToolError> {
        let mut labelled = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        self.saw(&labelled.label);
        let mut changed = labelled.value.clone();
        let result = change(&mut changed);
        let canon = Canon::of(&changed)?;
        let label = match &self.context {
            Some(context) => context.provenance().label(),
            None => labelled.label.clone(),
        };
        let note =
            Note::State { name: type_name::<T>(), value: canon, label: label.clone().kept() };
        if let Some(Err(why)) = self.context.as_ref().map(|context| context.note(note)) {
            return Err(ToolError::tell(format!("the new state could not be recorded: {why}")));
        }
        *labelled = Labelled { value: changed, label };
        Ok(result)
    }

    /// Whoever looks has seen what those had seen who wrote it.
    fn saw(&self, label: &Label) {
        if let Some(context) = &self.context {
            context.provenance().saw(label);
        }
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> State<T> {
        State { value: self.value.clone(), context: self.context.clone() }
    }
}

impl<T: Clone + Serialize + DeserializeOwned + Send + 'static> Grant for State<T> {
    fn restore(&self, state: &str, value: &Canon, label: &Label) -> Result<bool, String> {
        if state != type_name::<T>() {
            return Ok(false);
        }
        let read = serde_json::from_str(value.as_str()).map_err(|err| err.to_string())?;
        let restored = Labelled { value: read, label: label.clone() };
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = restored;
        Ok(true)
    }

    fn for_call(mut self, context: &CallContext) -> State<T> {
        self.context = Some(context.clone());
        self
    }
}
