//! What a call has of its own while it lives: how it is cancelled, its beat, its key, its end.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::{Asked, CallContext, Grant, Token};
use crate::canon::{Domain, Hash};
use crate::id::{CallNo, RunId};
use crate::label::{Label, joined};
use crate::right::SpendScope;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, OnceLock};

/// What one call has of its own, through all its attempts.
pub(crate) struct Life {
    run: RunId,
    call: CallNo,
    args_hash: Hash,
    cancel: Token,
    /// How often the call said something.
    beats: AtomicU32,
    /// How long somebody was asked on behalf of the call's children.
    asked: Arc<Asked>,
    /// When it last did, on the clock by which deadlines run.
    heard_us: AtomicU64,
    /// Its threads that are not done.
    threads: AtomicU32,
    /// Whether nothing more is noted of it, since its end is.
    over: Mutex<bool>,
    /// The labels of what the model was shown, and of what the tool returns.
    labels: [Option<Arc<Label>>; 2],
    /// The label of what the call has seen.
    seen: Mutex<Option<Arc<Label>>>,
    /// What its children spent.
    spent: Mutex<Vec<SpendScope>>,
    /// Whether it waits for an answer that a child of it waits for.
    parked: AtomicBool,
}

impl Life {
    /// The life of a call that is cancelled with `parent`.
    pub(crate) fn new(
        (run, call): (RunId, CallNo),
        args_hash: Hash,
        labels: [Option<&Arc<Label>>; 2],
        parent: &Token,
    ) -> Arc<Life> {
        Arc::new(Life {
            run,
            call,
            args_hash,
            cancel: parent.child(),
            beats: AtomicU32::new(0),
            heard_us: AtomicU64::new(0),
            threads: AtomicU32::new(0),
            over: Mutex::new(false),
            labels: labels.map(|label| label.cloned()),
            seen: Mutex::default(),
            spent: Mutex::default(),
            parked: AtomicBool::new(false),
            asked: Arc::default(),
        })
    }

    pub(crate) fn call(&self) -> CallNo {
        self.call
    }

    /// A child of the call waits for an answer, and so does the call.
    pub(crate) fn park(&self) {
        self.parked.store(true, Ordering::Release);
    }

    /// Whether it waits for an answer that a child of it waits for.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Acquire)
    }

    /// The call sees what has this label.
    pub(crate) fn saw(&self, label: &Label) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.as_ref().is_some_and(|seen| label.flows_to(seen)) {
            let before = seen.take().map(Arc::unwrap_or_clone).unwrap_or_default();
            *seen = before.join(label).kept();
        }
    }

    /// A child of the call spends this.
    pub(crate) fn spend(&self, spends: &[SpendScope]) {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(spends);
    }

    /// What its children spent, where they spent anything.
    pub(crate) fn spent(&self) -> Option<Box<[SpendScope]>> {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        (!spent.is_empty()).then(|| spent.clone().into())
    }

    /// The label of what the call has seen, where that says anything.
    pub(crate) fn seen(&self) -> Option<Arc<Label>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The label of what the call works with: what the model was shown, and what the call has seen.
    pub(crate) fn given(&self) -> Option<Arc<Label>> {
        joined(self.labels[0].as_ref(), self.seen().as_ref())
    }

    /// The label of what the call leaves behind.
    pub(crate) fn label(&self) -> Label {
        let label = joined(self.given().as_ref(), self.labels[1].as_ref());
        label.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// How long somebody was asked on behalf of the call's children.
    pub(crate) fn asked(&self) -> &Arc<Asked> {
        &self.asked
    }

    pub(crate) fn cancel(&self) -> &Token {
        &self.cancel
    }

    /// The call says something at this moment; returns how often it did before.
    pub(super) fn beat(&self, now_us: u64) -> u32 {
        self.heard_us.fetch_max(now_us, Ordering::Relaxed);
        self.beats.fetch_add(1, Ordering::Relaxed)
    }

    /// When the call last said something: 0 if it never did.
    pub(crate) fn heard_us(&self) -> u64 {
        self.heard_us.load(Ordering::Relaxed)
    }

    pub(super) fn thread_begins(&self) {
        self.threads.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn thread_ends(&self) {
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a thread still works for the call, be it one that was given up.
    pub(crate) fn is_working(&self) -> bool {
        self.threads.load(Ordering::SeqCst) > 0
    }

    /// The call is over: whatever still works for it is told, and notes nothing any more.
    pub(crate) fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.cancel.cancel();
    }

    /// Notes something, unless the call is over. It does not end meanwhile.
    pub(super) fn unless_over<T>(&self, note: impl FnOnce() -> T) -> Option<T> {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        (!*over).then(note)
    }
}

/// Tells an attempt, once this is dropped, that nobody waits for it any more.
#[derive(Default)]
pub(crate) struct Leash(OnceLock<Token>);

impl Leash {
    /// What the attempt is told by, which is also how its call is cancelled.
    pub(super) fn token(&self, life: &Life) -> &Token {
        self.0.get_or_init(|| life.cancel.child())
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if let Some(token) = self.0.get() {
            token.cancel();
        }
    }
}

/// A key that is the same for every attempt at one call, and for no other call.
///
/// A tool that declares `repeat = Keyed` hands it to the service that it calls, so that the service
/// does the same thing only once. It is made from the run, the call and the canonical arguments.
///
/// ```
/// use tooltape::IdempotencyKey;
/// assert_eq!(IdempotencyKey::detached("k").as_str(), "k");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// A key of no run. For tests that call the function themselves.
    pub fn detached(key: &str) -> IdempotencyKey {
        IdempotencyKey(key.into())
    }

    /// The key: 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Grant for IdempotencyKey {
    fn for_call(self, context: &CallContext) -> IdempotencyKey {
        let Life { run, call, args_hash, .. } = &*context.life;
        let text = format!("{run} {} {args_hash}", call.0);
        IdempotencyKey(Hash::of(Domain::Key, text.as_bytes()).to_string().into())
    }
}
