//! Secrets that a configuration names, each a type of its own.

use zeroize::{Zeroize, Zeroizing};

use super::{Grant, GrantMap, Secret};
use crate::right::Right;

/// What a named secret is: a text, or bytes.
pub trait SecretValue: Zeroize + Sized + Send + Sync + 'static {
    /// The value that these bytes are, if they are one.
    fn of_bytes(bytes: Zeroizing<Vec<u8>>) -> Option<Self>;
}

impl SecretValue for String {
    fn of_bytes(mut bytes: Zeroizing<Vec<u8>>) -> Option<String> {
        // The text takes the bytes' own memory, so no copy is left behind.
        String::from_utf8(std::mem::take(&mut *bytes))
            .map_err(|err| err.into_bytes().zeroize())
            .ok()
    }
}

impl SecretValue for Vec<u8> {
    fn of_bytes(mut bytes: Zeroizing<Vec<u8>>) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut *bytes))
    }
}

/// Declares a secret that a configuration names: a type of its own, so that only a tool which
/// takes it has it.
///
/// A tool that takes it needs the right `secret:use:NAME`, which the grant confers. It is given by
/// [`Run::secret`](crate::Run::secret), and by the command line from `[secrets.NAME]`. It is a text
/// (`String`), or bytes (`Vec<u8>`).
///
/// ```
/// use tooltape::{Empty, ToolError, secret, tool};
///
/// secret! {
///     /// The token of the forge.
///     pub struct ForgeToken(String) = "forge";
/// }
///
/// /// Counts the open issues.
/// #[tool(Read)]
/// async fn count_issues(_: Empty, token: ForgeToken) -> Result<usize, ToolError> {
///     Ok(token.expose().len())
/// }
///
/// let token = ForgeToken::new("ghp_0123456789".to_owned());
/// assert_eq!(format!("{token:?}"), "ForgeToken(..)");
/// ```
#[macro_export]
macro_rules! secret {
    ($(#[$about:meta])* $reach:vis struct $name:ident($value:ty) = $word:literal;) => {
        $(#[$about])*
        #[derive(Clone)]
        $reach struct $name($crate::Secret<$value>);

        #[allow(dead_code, reason = "not every program makes it itself")]
        impl $name {
            /// Wraps the value, which must not be written down.
            $reach fn new(value: $value) -> Self {
                Self($crate::Secret::new(value))
            }

            /// The value, at the one place that needs it.
            $reach fn expose(&self) -> &$value {
                self.0.expose()
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }

        impl $crate::Grant for $name {
            const SECRET: ::std::option::Option<&'static str> = {
                assert!($crate::__private::is_word($word), "not the name of a secret");
                ::std::option::Option::Some($word)
            };

            fn confers(&self) -> $crate::Rights {
                $crate::__private::uses_secret($word)
            }

            fn secret(&self) -> ::std::option::Option<&[u8]> {
                $crate::Grant::secret(&self.0)
            }

            fn of_secret(secret: &$crate::Secret<Vec<u8>>) -> ::std::option::Option<Self> {
                $crate::__private::secret_value(secret).map(Self::new)
            }
        }
    };
}

/// Hands a run the grant that a named secret is.
pub(super) type Give = fn(&Secret<Vec<u8>>, &mut GrantMap) -> bool;

pub(super) fn give<G: Grant>(secret: &Secret<Vec<u8>>, grants: &mut GrantMap) -> bool {
    let given = G::of_secret(secret).map(|grant| grants.insert(grant));
    given.is_some()
}

/// The value of a named secret.
#[doc(hidden)]
pub fn secret_value<T: SecretValue>(secret: &Secret<Vec<u8>>) -> Option<T> {
    T::of_bytes(Zeroizing::new(secret.expose().clone()))
}

/// The right to use a secret.
pub(crate) fn use_of(name: &str) -> String {
    format!("secret:use:{name}")
}

/// What holding a named secret confers.
#[doc(hidden)]
pub fn uses_secret(name: &str) -> crate::right::Rights {
    crate::right::Rights::of(use_of(name).parse::<Right>())
}

/// Whether a secret may have this name: that of a [`Word`](crate::scope::Word).
#[doc(hidden)]
pub const fn is_word(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_inner = at > 0 && (bytes[at] == b'.' || bytes[at] == b'-');
        if !bytes[at].is_ascii_alphanumeric() && bytes[at] != b'_' && !is_inner {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes.len() <= crate::right::WORD_BYTES_MAX
}
