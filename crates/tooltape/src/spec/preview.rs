//! Showing what a call would change, before it runs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::canon::Canon;
use crate::fault::ToolError;
use crate::grant::{Grants, Need};

/// The most bytes that a preview shows. A longer one is not shown at all: what is cut misleads.
pub const PREVIEW_BYTES_MAX: usize = 256 << 10;

/// What a hook will have to show.
type Showing<'a> = Pin<Box<dyn Future<Output = Result<String, ToolError>> + Send + 'a>>;
type Hook = dyn for<'a> Fn(&'a Canon, &'a Grants<'_>) -> Showing<'a> + Send + Sync;

/// A hook that shows what a call would change, to whoever is asked about it.
///
/// It is made from an async function of the same kind as a tool: the tool's input first, then what
/// the host grants. It returns a text for people, such as a unified diff, and must change nothing.
/// It shows how things are now. A yes is good for these arguments, as long as they come to what was
/// shown with them; so it must show the same where nothing has changed.
#[derive(Clone)]
pub struct Preview {
    name: Arc<str>,
    needs: Vec<Need>,
    hook: Arc<Hook>,
}

impl Preview {
    pub(crate) fn of(name: Arc<str>, needs: Vec<Need>, hook: Arc<Hook>) -> Preview {
        Preview { name, needs, hook }
    }

    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The grants that it takes.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Shows.
    pub(crate) fn show<'a>(&'a self, args: &'a Canon, grants: &'a Grants<'_>) -> Showing<'a> {
        (self.hook)(args, grants)
    }
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Preview").field(&self.name).finish()
    }
}
