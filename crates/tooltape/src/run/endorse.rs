//! Endorsements: somebody vouches for what a tool extracts, by name and on tape.

use std::sync::PoisonError;

use super::Run;
use crate::schema::check_extract;

/// Why nobody can vouch for the results of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndorseError {
    /// The run has no such tool.
    #[error("there is no tool named `{tool}`")]
    Unknown {
        /// The name.
        tool: String,
    },
    /// The tool does not say what it returns.
    #[error("`{tool}` declares no output schema, so that it may return anything")]
    Undeclared {
        /// The name.
        tool: String,
    },
    /// What it returns has room for a text that somebody else wrote.
    #[error(
        "`{tool}` returns {found} at `{at}` of its output schema, expected booleans, choices, \
         numbers between bounds, and objects of those"
    )]
    Loose {
        /// The name.
        tool: String,
        /// Where in the schema.
        at: String,
        /// What was found.
        found: &'static str,
    },
}

impl Run {
    /// Lets somebody vouch for the results of a tool, though they are made from what nobody vouches
    /// for: the one way to lower a label.
    ///
    /// Its output schema must leave no room for a text of somebody else's: booleans, choices,
    /// numbers between bounds, and objects of those. The reply of each such call, and so the tape,
    /// names who vouches for it. What fails, and what shows a model more than its value, is nothing
    /// that anybody vouches for; and what is secret stays so.
    ///
    /// A tool that reads a page in a child run of its own, and returns whether it mentions a
    /// recall, leaves the run trusted in which it is called:
    ///
    /// ```
    /// use tooltape::{Empty, Run, Spec, ToolError, Toolbox, serde_json::json, tool_fn};
    ///
    /// let spec = Spec::new("is_recalled", "Whether the vendor's page mentions a recall.");
    /// let spec = spec.output(json!({ "type": "boolean" }));
    /// let recalled = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>(true));
    /// let run = Run::new(&Toolbox::new([recalled]).unwrap());
    /// assert!(run.endorse("is_recalled", "safety desk").is_ok());
    /// ```
    pub fn endorse(mut self, tool: &str, by: &str) -> Result<Run, EndorseError> {
        let toolbox = self.setup.toolbox.lock().unwrap_or_else(PoisonError::into_inner);
        let found = toolbox.get(tool).cloned();
        drop(toolbox);
        let unknown = || EndorseError::Unknown { tool: tool.to_owned() };
        let found = found.ok_or_else(unknown)?;
        let Some(schema) = &found.spec().output else {
            return Err(EndorseError::Undeclared { tool: tool.to_owned() });
        };
        check_extract(schema).map_err(|(at, found)| {
            let at = if at.is_empty() { "/".to_owned() } else { at };
            EndorseError::Loose { tool: tool.to_owned(), at, found }
        })?;
        // By its definition: another tool of that name is another's word.
        self.setup.taint.endorsed.insert(found.definition(), by.into());
        Ok(self)
    }
}
