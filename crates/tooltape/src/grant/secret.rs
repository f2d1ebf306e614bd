//! Secrets: values with no schema, no serialised form and no debug text.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::Grant;

/// What stands where a secret stood.
pub(crate) const REDACTED: &str = "[redacted]";
/// Why arguments are none that have a secret in them.
pub(crate) const SECRET_SENT: &str = "the arguments hold a secret";

/// A value that must not be written down: it has no way to be serialised or shown.
///
/// Clones share it, and its memory is overwritten when the last one is dropped. A run that is
/// granted a secret text, or secret bytes, also keeps them out of what leaves it, in memory of its
/// own; another type of secret is added with [`Run::redact`](crate::Run::redact).
///
/// ```
/// use tooltape::Secret;
/// let token = Secret::new(String::from("hunter2"));
/// assert_eq!(token.expose(), "hunter2");
/// assert_eq!(format!("{token:?}"), "Secret(..)");
/// ```
pub struct Secret<T: Zeroize>(Arc<Zeroizing<T>>);

impl<T: Zeroize> Secret<T> {
    /// Wraps a value that must not be written down.
    pub fn new(value: T) -> Secret<T> {
        Secret(Arc::new(Zeroizing::new(value)))
    }

    /// The value, at the one place that needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Clone for Secret<T> {
    fn clone(&self) -> Secret<T> {
        Secret(self.0.clone())
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl<T: Zeroize + Send + Sync + 'static> Grant for Secret<T> {
    fn secret(&self) -> Option<&[u8]> {
        let value: &dyn Any = self.expose();
        let text = value.downcast_ref::<String>().map(String::as_bytes);
        let text = text.or_else(|| value.downcast_ref::<Box<str>>().map(|text| text.as_bytes()));
        let bytes = text.or_else(|| value.downcast_ref::<Vec<u8>>().map(Vec::as_slice));
        let bytes = bytes.or_else(|| value.downcast_ref::<Box<[u8]>>().map(|bytes| &**bytes));
        bytes.or_else(|| value.downcast_ref::<[u8; 32]>().map(<[u8; 32]>::as_slice))
    }
}
