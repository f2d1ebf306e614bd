//! Why a replay may differ: what changed since, most likely first.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::canon::Hash;
use crate::id::ToolId;
use crate::proposal::Facts;
use crate::tape::Event;
use crate::toolbox::Toolbox;

/// A likely cause of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Today's toolbox has no such tool.
    ToolMissing {
        /// Its name.
        name: String,
    },
    /// Today's toolbox has a tool that there was not.
    ToolNew {
        /// The tool.
        tool: ToolId,
    },
    /// The tool has another version.
    OtherVersion {
        /// The recorded one.
        recorded: ToolId,
        /// Today's.
        now: ToolId,
    },
    /// The tool declares something else under the same version.
    DefinitionChanged {
        /// The tool.
        tool: ToolId,
    },
    /// The policy decides otherwise.
    PolicyChanged {
        /// The rule that decided then.
        recorded: String,
        /// The rule that decides now.
        now: String,
    },
    /// The tool does something else, though it declares the same.
    CodeChanged {
        /// The tool.
        tool: ToolId,
    },
    /// The run is set up otherwise: its limits, hooks, repairs, layers or secrets.
    SetupChanged,
    /// The tape was written by another version of the runtime.
    RuntimeChanged,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::ToolMissing { name } => write!(f, "there is no tool `{name}` any more"),
            Cause::ToolNew { tool } => write!(f, "`{tool}` was not offered when it was recorded"),
            Cause::OtherVersion { recorded, now } => {
                write!(f, "`{recorded}` was recorded, today's tool is `{now}`")
            }
            Cause::DefinitionChanged { tool } => {
                write!(f, "`{tool}` declares something else under the same version")
            }
            Cause::PolicyChanged { recorded, now } => {
                write!(f, "the rule `{recorded}` decided then, and `{now}` now")
            }
            Cause::CodeChanged { tool } => {
                write!(f, "`{tool}` does something else, or is not deterministic as it says")
            }
            Cause::SetupChanged => f.write_str(
                "the run is set up otherwise: its limits, hooks, repairs, layers or secrets",
            ),
            Cause::RuntimeChanged => f.write_str("another version of the runtime wrote the tape"),
        }
    }
}

impl Cause {
    /// A stable word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Cause::ToolMissing { .. } => "tool_missing",
            Cause::ToolNew { .. } => "tool_new",
            Cause::OtherVersion { .. } => "other_version",
            Cause::DefinitionChanged { .. } => "definition_changed",
            Cause::PolicyChanged { .. } => "policy_changed",
            Cause::CodeChanged { .. } => "code_changed",
            Cause::SetupChanged => "setup_changed",
            Cause::RuntimeChanged => "runtime_changed",
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Cause", 2)?;
        fields.serialize_field("kind", self.kind())?;
        fields.serialize_field("message", &self.to_string())?;
        fields.end()
    }
}

/// What the record says of the tool of a call.
#[derive(Clone, Default)]
pub(super) struct Declared {
    pub(super) tool: Option<ToolId>,
    pub(super) definition: Option<Hash>,
}

impl Declared {
    pub(super) fn of(facts: &Facts) -> Declared {
        Declared { tool: facts.tool().cloned(), definition: facts.definition() }
    }
}

/// What may have led from one event to the other, most likely first.
pub(super) fn causes(
    name: &str,
    declared: &Declared,
    toolbox: &Toolbox,
    recorded: &Event,
    now: &Event,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    let today = toolbox.get(name);
    let then = match recorded {
        Event::Tools { added, .. } => added.as_ref(),
        _ => declared.tool.as_ref(),
    };
    match (then, today) {
        (Some(_), None) => causes.push(Cause::ToolMissing { name: name.to_owned() }),
        (Some(then), Some(today)) if then != today.id() => {
            causes.push(Cause::OtherVersion { recorded: then.clone(), now: today.id().clone() });
        }
        (Some(then), Some(today))
            if declared.definition.is_some_and(|it| it != today.definition()) =>
        {
            causes.push(Cause::DefinitionChanged { tool: then.clone() });
        }
        (None, Some(today)) if matches!(now, Event::Judged { .. }) => {
            causes.push(Cause::ToolNew { tool: today.id().clone() });
        }
        (Some(_) | None, Some(_)) | (None, None) => {}
    }
    match (recorded, now) {
        (Event::Judged { verdict: then, rule: by, .. }, Event::Judged { verdict, rule, .. })
            if (then, by) != (verdict, rule) =>
        {
            let (recorded, now) = (by.to_string(), rule.to_string());
            causes.push(Cause::PolicyChanged { recorded, now });
        }
        (Event::Settled(then), Event::Settled(now)) if causes.is_empty() => {
            let ran = then.result_hash != now.result_hash || then.executed != now.executed;
            if let Some(today) = today.filter(|_| ran) {
                causes.push(Cause::CodeChanged { tool: today.id().clone() });
            }
        }
        _ => {}
    }
    if causes.is_empty() {
        causes.push(Cause::SetupChanged);
    }
    causes.push(Cause::RuntimeChanged);
    causes
}
