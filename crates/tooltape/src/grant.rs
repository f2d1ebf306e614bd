//! Grants: what the host hands a tool and the model never sees.

mod clock;
mod live;
mod random;
mod secret;
mod state;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use clock::Clock;
pub(crate) use live::{CallContext, Note, RunContext, Witness};
pub use live::{Cancel, NOTES_MAX, PROGRESS_BYTES_MAX, Progress, RunInfo};
pub use random::Random;
pub use secret::Secret;
pub use state::State;

use crate::id::CallNo;

/// A value that a tool may ask for by naming its type after the first parameter.
///
/// ```
/// use tooltape::Grant;
///
/// #[derive(Clone)]
/// struct Database;
/// impl Grant for Database {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be granted to a tool",
    label = "every parameter after the first must be a `Grant`",
    note = "the first parameter is what the model sends; to grant `{Self}`, write \
            `impl tooltape::Grant for {Self} {{}}`"
)]
pub trait Grant: Clone + Send + Sync + 'static {
    /// Whether a `Pure` tool may take it: it neither reads nor changes the world.
    #[doc(hidden)]
    const HARMLESS: bool = false;

    /// The same grant, as one call holds it.
    #[doc(hidden)]
    fn for_call(self, _: &CallContext) -> Self {
        self
    }
}

/// The type of a grant, as a tool declares it and a host checks it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Need {
    id: TypeId,
    name: &'static str,
    harmless: bool,
}

impl Need {
    /// The need for a grant.
    pub fn of<G: Grant>() -> Need {
        Need { id: TypeId::of::<G>(), name: type_name::<G>(), harmless: G::HARMLESS }
    }

    /// The type's name, without the paths that a reader does not need.
    pub fn name(self) -> String {
        let mut short = String::new();
        let mut word = 0;
        for (at, c) in self.name.char_indices() {
            if !(c.is_alphanumeric() || c == '_' || c == ':') {
                short.push_str(last_segment(&self.name[word..at]));
                short.push(c);
                word = at + c.len_utf8();
            }
        }
        short.push_str(last_segment(&self.name[word..]));
        short
    }

    /// Whether a `Pure` tool may have it.
    pub(crate) fn is_harmless(self) -> bool {
        self.harmless
    }
}

fn last_segment(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

impl fmt::Debug for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// The grants of one run, by type.
#[derive(Clone, Default)]
pub(crate) struct GrantMap(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl GrantMap {
    pub(crate) fn insert<G: Grant>(&mut self, grant: G) {
        self.0.insert(TypeId::of::<G>(), Arc::new(grant));
    }

    pub(crate) fn covers(&self, need: Need) -> bool {
        self.0.contains_key(&need.id)
    }
}

/// The grants that one call may take, each by its type.
pub struct Grants<'c> {
    pub(crate) map: &'c GrantMap,
    pub(crate) run: &'c Arc<RunContext>,
    pub(crate) call: CallNo,
    pub(crate) id: &'c Arc<str>,
    /// The one moment that a tool with bounded determinism sees.
    pub(crate) frozen_unix_us: Option<u64>,
}

impl Grants<'_> {
    /// The grant of this type, if the run has it. A run checks every tool's needs before its first
    /// call, so a tool that declares a need finds it here.
    pub fn get<G: Grant>(&self) -> Option<G> {
        let grant = self.map.0.get(&TypeId::of::<G>())?.downcast_ref::<G>()?.clone();
        let mut context = CallContext::new(self.run.clone(), self.call, self.id.clone());
        context.frozen_unix_us = self.frozen_unix_us;
        Some(grant.for_call(&context))
    }
}
