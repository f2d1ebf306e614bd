//! What a tool says about itself: data, never code, but for its named hooks.

mod bounds;
mod effects;
mod enforced;
mod footprint;
mod identity;
mod preview;
mod reconcile;
mod require;
mod template;

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use bounds::{Bound, Bounds, Retry};
pub use effects::{Access, Determinism, Effects, Reach, Repeat, Vote};
pub use enforced::Enforced;
pub use footprint::{
    FOOTPRINT_KEYS_MAX, Footprint, FootprintOf, RESOURCE_BYTES_MAX, RESOURCE_SEGMENTS_MAX,
    Resource, ResourceError,
};
pub use identity::Identity;
pub use preview::{PREVIEW_BYTES_MAX, Preview};
pub use reconcile::{Found, Reconcile};
pub(crate) use require::Requirement;
pub use template::{KeyTemplate, KeyTemplateError};

use crate::canon::{Canon, Flat};
use crate::fault::Repair;
use crate::grant::{Grant, Need};
use crate::label::Label;

/// The version of a tool that names none.
pub const VERSION_DEFAULT: &str = "0.1.0";

/// A tool's declaration. Only the name, the description and the input schema ever reach a model.
///
/// ```
/// use tooltape::{Access, Spec};
///
/// let spec = Spec::new("add", "Adds two numbers.").access(Access::Pure).version("1.0.0");
/// assert_eq!((spec.name.as_ref(), spec.version.as_ref()), ("add", "1.0.0"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Spec {
    /// The name that the model calls. A [`Toolbox`](crate::Toolbox) checks it.
    pub name: Arc<str>,
    /// The version: a change of behaviour is a change of version.
    pub version: Arc<str>,
    /// What the tool does, for the model.
    pub description: Arc<str>,
    /// The schema of what the model sends.
    pub input: Value,
    /// The schema of what the tool returns, enforced where it is given.
    pub output: Option<Value>,
    /// What a call may do.
    pub effects: Effects,
    /// The grants that the tool takes, by type.
    pub needs: Vec<Need>,
    /// The [rights](crate::Right) that a call needs, as `domain:action:scope`; `{path}` stands for
    /// the argument `path`.
    pub capabilities: Vec<String>,
    /// Whom its results may come from and whom they are not for, where its effects do not say.
    pub label: Option<Label>,
    /// How much a call may use.
    pub bounds: Bounds,
    /// How a failed attempt is repeated, where the effects permit it.
    pub retry: Retry,
    /// How its results may be shortened in a long conversation.
    pub history: History,
    /// What its errors look like.
    pub errors: Errors,
    /// Whether a call keeps a thread of its own busy, of which there are only so many.
    pub blocking: bool,
    /// Whether models are told of it only once they search for it.
    pub deferred: bool,
    /// What must be computed from arguments.
    pub hooks: Hooks,
}

/// How a tool's results may be shortened in a long conversation. The tape keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct History {
    /// A later result for the same value of this argument replaces an earlier one.
    pub dedupe_by: Option<String>,
    /// The result may be summed up by this argument once it is old.
    pub summarise_by: Option<String>,
    /// The result may be cut to its head and tail once it is old.
    pub compact: bool,
    /// The result is never shortened.
    pub pin: bool,
}

/// What a tool's errors look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Errors {
    /// [`ToolError`](crate::ToolError)s, which say what happened and who acts next.
    #[default]
    Structured,
    /// Plain text, of which the model learns only that the tool failed.
    Text,
}

/// A typed input, read from canonical arguments.
pub type Typed = Box<dyn Any + Send + Sync>;
/// Reads and checks a typed input.
pub type Read = Arc<dyn Fn(&Canon) -> Result<Typed, Repair> + Send + Sync>;

/// Reads and checks a typed input where it comes as a flat object; of what it cannot read or
/// refuses it says nothing.
pub(crate) type ReadFlat = fn(&Flat<'_>) -> Option<Typed>;

/// What must be computed from arguments. No part of a tool's definition hash.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Hooks {
    /// Reads the arguments into the tool's own type and checks them, while the call is resolved.
    pub read: Option<Read>,
    /// Computes what a call reads and writes; without it, by its access: nothing or everything.
    pub footprint: Option<FootprintOf>,
    /// Looks whether an attempt had its effect, where a crash left that in doubt.
    pub reconcile: Option<Reconcile>,
    /// Shows what a call would change, to whoever is asked about it.
    pub preview: Option<Preview>,
    /// Says what a call is about, so that a model which fails at one thing for ever is stopped.
    pub identity: Option<Identity>,
    /// The faster way to the same as one certain `read`.
    flat: Option<(Read, ReadFlat)>,
}

impl Hooks {
    /// Sets both ways to read the arguments, which give the same.
    pub(crate) fn reading(&mut self, read: Read, flat: ReadFlat) {
        (self.read, self.flat) = (Some(read.clone()), Some((read, flat)));
    }

    /// The faster way to the same as `read`, if there is one.
    #[inline]
    pub(crate) fn read_flat(&self) -> Option<ReadFlat> {
        let (read, (of, flat)) = (self.read.as_ref()?, self.flat.as_ref()?);
        Arc::ptr_eq(read, of).then_some(*flat)
    }
}

impl Spec {
    /// A declaration with cautious defaults: a write, not deterministic, never repeated.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Spec {
        Spec {
            name: name.into(),
            version: VERSION_DEFAULT.into(),
            description: description.into(),
            input: serde_json::json!({ "type": "object", "properties": {} }),
            output: None,
            effects: Effects::default(),
            needs: Vec::new(),
            capabilities: Vec::new(),
            label: None,
            bounds: Bounds::default(),
            retry: Retry::default(),
            history: History::default(),
            errors: Errors::default(),
            blocking: false,
            deferred: false,
            hooks: Hooks::default(),
        }
    }

    /// Whether it is a pure function that takes its arguments and nothing else: it touches nothing,
    /// and has nobody to say anything to.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.effects.access == Access::Pure
            && self.needs.is_empty()
            && !self.blocking
            && self.hooks.read_flat().is_some()
    }

    /// The label of its results. Where it says nothing, a `strict` reader believes nothing.
    pub(crate) fn results(&self, strict: bool) -> Label {
        let effects = &self.effects;
        let is_foreign = effects.reach == Reach::Network || effects.process;
        match (&self.label, effects.access) {
            (Some(label), _) => label.clone(),
            (None, Access::Read) if is_foreign => Label::untrusted(&self.name),
            (None, Access::Write) if is_foreign && strict => Label::untrusted(&self.name),
            (None, Access::Pure | Access::Read | Access::Write) => Label::default(),
        }
    }

    /// Whether a call runs a child run.
    #[inline]
    pub(crate) fn is_recursive(&self) -> bool {
        self.effects.recursive || self.needs.iter().any(|need| need.is_recursive())
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<Arc<str>>) -> Spec {
        self.version = version.into();
        self
    }

    /// Sets the schema of what the model sends. Tools made from functions have their own.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Spec {
        self.input = schema;
        self
    }

    /// Sets the schema of what the tool returns.
    #[must_use]
    pub fn output(mut self, schema: Value) -> Spec {
        self.output = Some(schema);
        self
    }

    /// Sets what a call may do to the world, and leaves the other effects as they are.
    #[must_use]
    pub fn access(mut self, access: Access) -> Spec {
        self.effects.access = access;
        self
    }

    /// Sets all effects.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Spec {
        self.effects = effects;
        self
    }

    /// Sets all bounds.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Spec {
        self.bounds = bounds;
        self
    }

    /// Sets how a failed attempt is repeated.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Spec {
        self.retry = retry;
        self
    }

    /// Sets how results may be shortened in a long conversation.
    #[must_use]
    pub fn history(mut self, history: History) -> Spec {
        self.history = history;
        self
    }

    /// Adds a [right](crate::Right) that a call needs, such as `net:get:api.example.com`.
    ///
    /// In `fs:write:{path}`, `{path}` stands for the argument `path`, so that a call needs no more
    /// than what it is about. What is no right is held by nobody, and its calls are denied.
    #[must_use]
    pub fn needs(mut self, capability: impl Into<String>) -> Spec {
        self.capabilities.push(capability.into());
        self
    }

    /// Says whom all results may come from and whom they are not for.
    ///
    /// Without it, the results of what only reads are untrusted where it asks other machines or
    /// starts processes, and all others are trusted and public.
    ///
    /// ```
    /// use tooltape::{Label, Spec};
    ///
    /// let inbox = Spec::new("inbox", "Lists mails.").labelled(Label::untrusted("inbox"));
    /// let prices = Spec::new("prices", "Our own prices.").labelled(Label::default());
    /// ```
    #[must_use]
    pub fn labelled(mut self, label: Label) -> Spec {
        self.label = Some(label);
        self
    }

    /// Sets what computes the resources that a call reads and writes.
    ///
    /// Calls overlap as far as this permits, so it must name everything that the tool touches.
    #[must_use]
    pub fn touches(mut self, footprint: FootprintOf) -> Spec {
        self.hooks.footprint = Some(footprint);
        self
    }

    /// Sets what looks whether an attempt had its effect, where a crash left that in doubt.
    #[must_use]
    pub fn reconcile(mut self, reconcile: Reconcile) -> Spec {
        self.hooks.reconcile = Some(reconcile);
        self
    }

    /// Sets what shows a call's changes to whoever is asked about it.
    #[must_use]
    pub fn preview(mut self, preview: Preview) -> Spec {
        self.hooks.preview = Some(preview);
        self
    }

    /// Sets what says what a call is about.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Spec {
        self.hooks.identity = Some(identity);
        self
    }

    /// Keeps the tool from models until they [search](crate::builtin::tool_search) for it.
    #[must_use]
    pub fn deferred(mut self) -> Spec {
        self.deferred = true;
        self
    }

    /// Adds a grant that the tool takes.
    #[must_use]
    pub fn takes<G: Grant>(mut self) -> Spec {
        self.needs.push(Need::of::<G>());
        self
    }
}
