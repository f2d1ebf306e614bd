//! Who holds a tool to what it declares.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Who holds a tool to what it declares, the weakest first.
///
/// A declaration is no wall: a tool in our own process could do more than it says. So every reply
/// states what stood between the tool and the world, and rules can ask for a minimum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Enforced {
    /// Nobody: what it declares is all that is known of it, as of a remote service.
    Declaration,
    /// The host, who chose its code and what that is handed; nothing stops the code itself.
    #[default]
    Host,
    /// The operating system, in a process of its own.
    Sandbox,
    /// A WASM runtime: it has no way to anything that it was not handed.
    Wasm,
}

impl Enforced {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Enforced::Declaration => "declaration",
            Enforced::Host => "host",
            Enforced::Sandbox => "sandbox",
            Enforced::Wasm => "wasm",
        }
    }

    /// Whether it is what native tools have, of which nothing is said.
    pub(crate) fn is_default(&self) -> bool {
        *self == Enforced::default()
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
