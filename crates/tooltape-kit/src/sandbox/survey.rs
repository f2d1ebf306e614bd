//! What of the sandbox works on this machine, part by part.

use serde::Serialize;

use super::error::{Part, SandboxError};
use super::{Helper, Sandbox, system};

/// What was found of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which part.
    pub part: Part,
    /// Whether it works.
    pub works: bool,
    /// What was found.
    pub found: String,
    /// How to get it, where it does not work.
    pub hint: Option<&'static str>,
}

/// Looks at every part of the sandbox.
pub fn survey(helper: Helper) -> Vec<Finding> {
    let made = Sandbox::new(helper);
    let broken = match &made {
        Ok(_) => None,
        Err(SandboxError::Missing { part, why }) => Some((*part, why.clone())),
        Err(err) => Some((Part::Helper, err.to_string())),
    };
    let finding = |(part, found): (Part, String)| {
        let why = broken.as_ref().filter(|(broken, _)| *broken == part).map(|(_, why)| why);
        let (works, found) = match why {
            Some(why) => (false, why.clone()),
            None => (!found.is_empty(), found),
        };
        let found = if found.is_empty() { "not found".to_owned() } else { found };
        Finding { part, works, found, hint: (!works).then(|| part.hint()) }
    };
    system::parts(made.as_ref().ok()).into_iter().map(finding).collect()
}
