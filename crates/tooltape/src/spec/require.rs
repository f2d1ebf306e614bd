//! What a call needs to be allowed, as its tool declares it.

use serde_json::Value;

use crate::canon::Canon;
use crate::right::{Right, RightError};

/// One capability that a tool declares: a right, or one with arguments in it.
///
/// In `fs:write:{path}`, `{path}` stands for the top-level argument `path`, so that a call needs no
/// more than what it is about. What cannot be filled in needs the whole: for files all of them, and
/// for all else there is no such right.
#[derive(Clone, Debug)]
pub(crate) enum Requirement {
    Fixed(Right),
    Filled(Template),
    /// Nobody holds what is no right.
    Never(RightError),
}

/// A right with arguments in it.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    text: Box<str>,
    /// What is needed where an argument is missing or is no scope.
    whole: Option<Right>,
}

impl Requirement {
    pub(crate) fn read(text: &str) -> Requirement {
        match text.contains('{') {
            false => text.parse().map_or_else(Requirement::Never, Requirement::Fixed),
            true => {
                let whole = ["fs:read:", "fs:write:"].iter().find(|it| text.starts_with(**it));
                let whole = whole.and_then(|domain| format!("{domain}.").parse().ok());
                Requirement::Filled(Template { text: text.into(), whole })
            }
        }
    }

    /// What a call with these arguments needs, or why nobody holds that.
    pub(crate) fn of(&self, args: &Canon) -> Result<Right, RightError> {
        match self {
            Requirement::Fixed(right) => Ok(right.clone()),
            Requirement::Never(err) => Err(err.clone()),
            Requirement::Filled(template) => template.fill(&args.to_value()),
        }
    }
}

impl Template {
    fn fill(&self, args: &Value) -> Result<Right, RightError> {
        let mut filled = String::new();
        let mut rest = &*self.text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}').unwrap_or((behind, ""));
            filled.push_str(before);
            // What is not there leaves a text that is no right.
            filled.push_str(args.get(name).and_then(Value::as_str).unwrap_or("{"));
            rest = after;
        }
        filled.push_str(rest);
        filled.parse().or_else(|err| self.whole.clone().ok_or(err))
    }
}
