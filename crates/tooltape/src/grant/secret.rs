//! Secrets: values with no schema, no serialised form and no debug text.

use std::fmt;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::Grant;

/// A value that must not be written down: it has no way to be serialised or shown.
///
/// Clones share it, and its memory is overwritten when the last one is dropped.
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

impl<T: Zeroize + Send + Sync + 'static> Grant for Secret<T> {}
