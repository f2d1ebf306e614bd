//! What a call is about, for those who must know whether two calls are about the same.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::canon::Canon;

type Hook = dyn Fn(&Canon) -> Option<String> + Send + Sync;

/// A hook that says what a call is about: the file that it edits, the order that it pays.
///
/// A model that fails again and again at one thing is told so, however it words its calls.
///
/// ```
/// use tooltape::{Identity, Spec};
///
/// let edit = Spec::new("edit", "Edits a file.").identity(Identity::argument("path"));
/// assert_eq!(edit.hooks.identity.unwrap().name(), "path");
/// ```
#[derive(Clone)]
pub struct Identity {
    name: Arc<str>,
    hook: Arc<Hook>,
}

impl Identity {
    /// The value of one argument.
    pub fn argument(name: impl Into<Arc<str>>) -> Identity {
        let name = name.into();
        let key = name.clone();
        let hook = Arc::new(move |args: &Canon| match value(args)?.get(&*key)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        });
        Identity { name, hook }
    }

    /// What a function says of the tool's input. The name is for people.
    pub fn by<I, F>(name: impl Into<Arc<str>>, function: F) -> Identity
    where
        I: DeserializeOwned,
        F: Fn(&I) -> String + Send + Sync + 'static,
    {
        let hook = Arc::new(move |args: &Canon| {
            let input: I = serde_json::from_str(args.as_str()).ok()?;
            Some(function(&input))
        });
        Identity { name: name.into(), hook }
    }

    /// The name of the argument or of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the call with these arguments is about.
    pub(crate) fn of(&self, args: &Canon) -> Option<String> {
        (self.hook)(args)
    }
}

fn value(args: &Canon) -> Option<Value> {
    serde_json::from_str(args.as_str()).ok()
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.name).finish()
    }
}
