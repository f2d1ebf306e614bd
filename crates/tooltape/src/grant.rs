//! Grants: what the host hands a tool and the model never sees.

mod asked;
mod clock;
mod lease;
mod life;
mod live;
mod named;
mod provenance;
mod random;
mod secret;
mod state;
mod store;
mod token;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError};

pub(crate) use asked::Asked;
pub use clock::Clock;
pub(crate) use lease::{Lease, Vigil, Work};
pub use life::IdempotencyKey;
pub(crate) use life::{Leash, Life};
pub use live::CallContext;
pub use live::{
    Cancel, EMITTED_BYTES_MAX, FUEL_DEFAULT, MEMORY_DEFAULT, NOTES_MAX, PROGRESS_BYTES_MAX,
    Progress, RunInfo,
};
pub(crate) use live::{Note, Noted, RunContext, Witness};
pub(crate) use named::use_of;
use named::{Give, give};
pub use named::{SecretValue, is_word, secret_value, uses_secret};
pub use provenance::Provenance;
pub use random::Random;
pub use secret::Secret;
pub(crate) use secret::{REDACTED, SECRET_SENT};
pub use state::State;
pub(crate) use store::Stored;
pub use store::{NamedStore, STORE_KEY_BYTES_MAX, STORE_VALUE_BYTES_MAX, STORE_VALUES_MAX, Store};
pub(crate) use token::Token;

use crate::canon::{self, Canon};
use crate::id::CallNo;
use crate::label::Label;
use crate::right::Rights;
use crate::sync::{Mutex, OnceLock};

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

    /// Whether a tool that takes it runs a child run.
    #[doc(hidden)]
    const RECURSIVE: bool = false;

    /// What holding it lets a run do, unless [`Run::rights`](crate::Run::rights) says what the run
    /// may do. A handle to files, for example, is the right to use them.
    fn confers(&self) -> Rights {
        Rights::none()
    }

    /// The same grant, as one call holds it. A handle to what outlives calls asks the context what
    /// its call [has seen](CallContext::provenance).
    fn for_call(self, _: &CallContext) -> Self {
        self
    }

    /// Takes over what a tape says was the last value of a state, and its label, if it is this one.
    /// Says whether it is.
    #[doc(hidden)]
    fn restore(&self, _state: &str, _value: &Canon, _label: &Label) -> Result<bool, String> {
        Ok(false)
    }

    /// The name of the secret that it is, where a configuration names it.
    #[doc(hidden)]
    const SECRET: Option<&'static str> = None;

    /// What must never be shown of it.
    #[doc(hidden)]
    fn secret(&self) -> Option<&[u8]> {
        None
    }

    /// The grant that a named secret is.
    #[doc(hidden)]
    fn of_secret(_: &Secret<Vec<u8>>) -> Option<Self> {
        None
    }
}

/// The type of a grant, as a tool declares it and a host checks it.
#[derive(Clone, Copy)]
pub struct Need {
    id: TypeId,
    name: &'static str,
    harmless: bool,
    recursive: bool,
    secret: Option<&'static str>,
    give: Give,
}

// The type says all else.
impl PartialEq for Need {
    fn eq(&self, other: &Need) -> bool {
        self.id == other.id
    }
}

impl Eq for Need {}

impl Hash for Need {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.id.hash(hasher);
    }
}

impl Need {
    /// The need for a grant.
    pub fn of<G: Grant>() -> Need {
        let (harmless, recursive, secret) = (G::HARMLESS, G::RECURSIVE, G::SECRET);
        let (id, name, give) = (TypeId::of::<G>(), type_name::<G>(), give::<G> as Give);
        Need { id, name, harmless, recursive, secret, give }
    }

    /// The name of the secret that it is, where a configuration names it.
    pub fn secret(self) -> Option<&'static str> {
        self.secret
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

    /// Whether who has it runs a child run.
    pub(crate) fn is_recursive(self) -> bool {
        self.recursive
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
pub(crate) struct GrantMap {
    grants: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    secrets: Vec<Secret<Vec<u8>>>,
    restore: HashMap<TypeId, Arc<Restore>>,
    conferred: HashMap<TypeId, Rights>,
}

/// Takes over the last value of a state.
type Restore = dyn Fn(&str, &Canon, &Label) -> Result<bool, String> + Send + Sync;

impl GrantMap {
    pub(crate) fn insert<G: Grant>(&mut self, grant: G) {
        self.secrets.extend(grant.secret().map(|secret| Secret::new(secret.to_vec())));
        self.conferred.insert(TypeId::of::<G>(), grant.confers());
        let grant = Arc::new(grant);
        let restored = grant.clone();
        let restore =
            move |state: &str, value: &Canon, label: &Label| restored.restore(state, value, label);
        self.restore.insert(TypeId::of::<G>(), Arc::new(restore));
        self.grants.insert(TypeId::of::<G>(), grant);
    }

    pub(crate) fn get<G: Grant>(&self) -> Option<&G> {
        self.grants.get(&TypeId::of::<G>())?.downcast_ref()
    }

    pub(crate) fn covers(&self, need: Need) -> bool {
        self.grants.contains_key(&need.id)
    }

    /// What the grants confer together. What one of them denies, none confers.
    pub(crate) fn confer(&self) -> Rights {
        let all = || self.conferred.values();
        let allowed = all().flat_map(|rights| rights.allowed().iter().cloned());
        let denied = all().flat_map(|rights| rights.denied().iter().cloned());
        Rights::of(allowed).denying(denied)
    }

    /// Takes over the last value of a state, where one of the grants is it.
    pub(crate) fn restore(&self, state: &str, value: &Canon, label: &Label) -> Result<(), String> {
        self.restore.values().try_for_each(|restore| restore(state, value, label).map(drop))
    }

    /// Takes a named secret, and hands it out as each of these types that it is. Fails with the
    /// first that it cannot be.
    pub(crate) fn keep(
        &mut self,
        secret: Secret<Vec<u8>>,
        wanted: impl IntoIterator<Item = Need>,
    ) -> Result<(), Need> {
        for need in wanted {
            if !(need.give)(&secret, self) {
                return Err(need);
            }
        }
        self.secrets.push(secret);
        Ok(())
    }

    /// What must never be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        self.secrets.iter().map(|secret| secret.expose().as_slice())
    }
}

/// The grants that one attempt at a call may take, each by its type.
pub struct Grants<'c> {
    pub(crate) map: &'c GrantMap,
    pub(crate) run: &'c Arc<RunContext>,
    pub(crate) call: CallNo,
    /// Which attempt it is, counted from 1.
    pub(crate) attempt: u32,
    pub(crate) id: &'c Arc<str>,
    pub(crate) args_hash: &'c canon::Hash,
    /// The labels of what the model was shown, and of what the tool returns.
    pub(crate) labels: [Option<&'c Arc<Label>>; 2],
    /// The one moment that a tool with bounded determinism sees.
    pub(crate) frozen_unix_us: Option<u64>,
    /// Whether the tool says that it changes something.
    pub(crate) is_write: bool,
    /// What it declares to take.
    pub(crate) needs: &'c [Need],
    /// What cancels the call.
    pub(crate) cancel: &'c Token,
    /// What the call has of its own, made once somebody wants it.
    pub(crate) life: &'c OnceLock<Arc<Life>>,
    /// What tells the attempt that nobody waits for it any more.
    pub(crate) leash: Leash,
    /// The thread that a blocking tool may use.
    pub(crate) lease: Mutex<Option<Lease>>,
}

impl Grants<'_> {
    /// The grant of this type, if the run has it. A run checks every tool's needs before its first
    /// call, so a tool that declares a need finds it here. A secret is only there for a tool that
    /// declares it.
    pub fn get<G: Grant>(&self) -> Option<G> {
        let grant = self.map.get::<G>()?;
        if grant.secret().is_some() && !self.needs.contains(&Need::of::<G>()) {
            return None;
        }
        let grant = grant.clone();
        Some(grant.for_call(&self.context()))
    }

    fn context(&self) -> CallContext {
        let (run, id, life) = (self.run.clone(), self.id.clone(), self.life().clone());
        let cancel = self.leash.token(&life).clone();
        let info = CallContext::info(run, life.call(), id);
        let (frozen_unix_us, is_write) = (self.frozen_unix_us, self.is_write);
        CallContext { info, life, cancel, frozen_unix_us, is_write }
    }

    /// What the call has of its own.
    pub(crate) fn life(&self) -> &Arc<Life> {
        self.life.get_or_init(|| {
            Life::new((self.run.run, self.call), *self.args_hash, self.labels, self.cancel)
        })
    }

    /// The thread that a blocking tool may use. Only the first who asks gets it.
    pub(crate) fn thread(&self) -> Option<(Work, Vigil)> {
        let lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
        lease.map(|lease| lease.split(self.context(), self.attempt))
    }

    /// The run's clock, which no call's declaration freezes.
    pub(crate) fn clock(&self) -> Clock {
        self.map.get::<Clock>().expect("every run grants its clock").clone()
    }
}
