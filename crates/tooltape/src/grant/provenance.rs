//! What a call has seen, and what that says of whatever it leaves behind.

use super::{CallContext, Grant};
use crate::label::Label;

/// What a call has seen: the label of whatever it leaves behind, be it a result or a file.
///
/// A handle to files, values or messages that outlive a call asks for the [label](Self::label) of
/// what is written, keeps it beside that, and [says](Self::saw) what label it finds where something
/// is read. [`Workspace`], [`Artifacts`](crate::Artifacts) and [`Store`](crate::Store) do so by
/// themselves.
///
/// [`Workspace`]: https://docs.rs/tooltape-kit
///
/// ```
/// use tooltape::{Label, Provenance};
///
/// let provenance = Provenance::detached();
/// provenance.saw(&Label::untrusted("forum"));
/// assert!(provenance.label().is_trusted(), "nobody keeps count outside of a run");
/// ```
#[derive(Clone)]
pub struct Provenance(Option<CallContext>);

impl Provenance {
    /// Belongs to no call. For tests that call the function themselves.
    pub fn detached() -> Provenance {
        Provenance(None)
    }

    /// The call has seen what has this label, and so has whoever reads its result.
    pub fn saw(&self, label: &Label) {
        let Some(context) = &self.0 else { return };
        // A source is named by whoever read it, so the name may say anything.
        match label.names().any(|name| context.minds(name)) {
            false => context.life.saw(label),
            true => context.life.saw(&label.hiding(|name| context.minds(name))),
        }
    }

    /// The label of whatever the call leaves behind now.
    pub fn label(&self) -> Label {
        self.0.as_ref().map(|context| context.life.label()).unwrap_or_default()
    }
}

impl CallContext {
    /// What the call has seen.
    pub fn provenance(&self) -> Provenance {
        Provenance(Some(self.clone()))
    }
}

impl Grant for Provenance {
    const HARMLESS: bool = true;

    fn for_call(self, context: &CallContext) -> Provenance {
        context.provenance()
    }
}
