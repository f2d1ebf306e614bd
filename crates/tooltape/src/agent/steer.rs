//! Steering a conversation from outside, while its model is at work.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use tokio::sync::Notify;

use crate::id::CallNo;
use crate::sync::{Mutex, MutexGuard};

/// The messages that wait for the model's next turn.
pub const SAID_MAX: usize = 64;
/// The bytes of one message.
pub const SAID_BYTES_MAX: usize = 1 << 20;

/// A hand on the wheel: says something to a model at work, interrupts it, or makes it wait.
///
/// Clones are one and the same. What it asks for is done at the next step of the conversation.
///
/// ```
/// use tooltape::Steer;
///
/// let steer = Steer::new();
/// steer.say("Use the other branch.").unwrap();
/// assert!(steer.say("x".repeat(2 << 20)).is_err());
/// ```
#[derive(Clone, Default)]
pub struct Steer(Arc<Wheel>);

#[derive(Default)]
struct Wheel {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    said: VecDeque<Arc<str>>,
    calls: Vec<CallNo>,
    is_interrupted: bool,
    is_held: bool,
}

/// A message that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SteerError {
    /// It is too long.
    #[error("a message has at most {SAID_BYTES_MAX} bytes, and this one has {0}")]
    Long(usize),
    /// Too many wait already.
    #[error("{SAID_MAX} messages wait already for the model's next turn")]
    Full,
}

impl Steer {
    /// A hand on no wheel yet.
    pub fn new() -> Steer {
        Steer::default()
    }

    /// Says something to the model before its next turn.
    pub fn say(&self, text: impl Into<Arc<str>>) -> Result<(), SteerError> {
        let text = text.into();
        if text.len() > SAID_BYTES_MAX {
            return Err(SteerError::Long(text.len()));
        }
        let mut state = self.state();
        if state.said.len() >= SAID_MAX {
            return Err(SteerError::Full);
        }
        state.said.push_back(text);
        Ok(())
    }

    /// Interrupts the turn: what the model was about to say is given up, calls that run are
    /// cancelled, and every one gets its reply. The conversation goes on with what was said
    /// meanwhile, or ends.
    pub fn interrupt(&self) {
        self.change(|state| state.is_interrupted = true);
    }

    /// Interrupts one call. The turn goes on with its reply.
    pub fn interrupt_call(&self, call: CallNo) {
        self.change(|state| state.calls.push(call));
    }

    /// Makes the conversation wait before the model's next turn.
    pub fn hold(&self) {
        self.change(|state| state.is_held = true);
    }

    /// Lets the conversation go on.
    pub fn go_on(&self) {
        self.change(|state| state.is_held = false);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.changed.notify_waiters();
    }

    /// What was said meanwhile. An interrupt that came with it is heard with it.
    pub(super) fn take_said(&self) -> VecDeque<Arc<str>> {
        let mut state = self.state();
        if !state.said.is_empty() {
            state.is_interrupted = false;
        }
        std::mem::take(&mut state.said)
    }

    /// Whether the turn was interrupted; it is not any more.
    pub(super) fn take_interrupt(&self) -> bool {
        std::mem::take(&mut self.state().is_interrupted)
    }

    /// Waits until the turn is interrupted.
    pub(super) async fn interrupted(&self) {
        self.until(|state| state.is_interrupted.then_some(())).await;
    }

    /// Waits until calls are to be interrupted.
    pub(super) async fn calls(&self) -> Vec<CallNo> {
        let some =
            |state: &mut State| (!state.calls.is_empty()).then(|| std::mem::take(&mut state.calls));
        self.until(some).await
    }

    /// Waits as long as the conversation is held.
    pub(super) async fn released(&self) {
        self.until(|state| (!state.is_held).then_some(())).await;
    }

    async fn until<T>(&self, mut found: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if let Some(found) = found(&mut self.state()) {
                return found;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
