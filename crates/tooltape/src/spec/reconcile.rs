//! Finding out whether an attempt that is in doubt had its effect.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::canon::Canon;
use crate::fault::ToolError;
use crate::grant::{Grants, Need};

/// What became of an attempt that was in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// Its effect happened.
    Happened,
    /// Its effect did not happen.
    DidNot,
    /// The tool cannot tell either.
    CannotTell,
}

/// What a hook will have found.
type Finding<'a> = Pin<Box<dyn Future<Output = Result<Found, ToolError>> + Send + 'a>>;
type Hook = dyn for<'a> Fn(&'a Canon, &'a Grants<'_>) -> Finding<'a> + Send + Sync;

/// A hook that looks whether an attempt of which nobody knows had its effect.
///
/// It is made from an async function of the same kind as a tool: the tool's input first, then what
/// the host grants, such as the [`IdempotencyKey`](crate::IdempotencyKey) that the attempt had. It
/// must change nothing.
#[derive(Clone)]
pub struct Reconcile {
    name: Arc<str>,
    needs: Vec<Need>,
    hook: Arc<Hook>,
}

impl Reconcile {
    pub(crate) fn of(name: Arc<str>, needs: Vec<Need>, hook: Arc<Hook>) -> Reconcile {
        Reconcile { name, needs, hook }
    }

    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The grants that it takes.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Looks.
    pub(crate) fn find<'a>(&'a self, args: &'a Canon, grants: &'a Grants<'_>) -> Finding<'a> {
        (self.hook)(args, grants)
    }
}

impl fmt::Debug for Reconcile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reconcile").field(&self.name).finish()
    }
}
