//! `tooltape doctor`.

use tooltape_kit::{Finding, survey};

use super::Context;
use crate::escape;
use crate::exit::Exit;
use crate::out::{BAD, FAINT, Format, GOOD, STRONG, paint};
use crate::report::Result;
use crate::sandbox;

/// Says of each part of the sandbox whether it works here, and how to get what does not.
pub(super) fn doctor(context: &Context<'_>) -> Result<Exit> {
    let findings = survey(sandbox::helper()?);
    let is_complete = findings.iter().all(|finding| finding.works);
    match context.out.format {
        Format::Json => {
            let found = serde_json::json!({ "sandbox": is_complete, "parts": findings });
            context.out.json(&found)?;
        }
        Format::Text => {
            for Finding { part, works, found, hint } in &findings {
                let mark = if *works { paint(GOOD, "✓") } else { paint(BAD, "✗") };
                let part = paint(STRONG, format!("{:<11}", part.word()));
                let state = if *works { "ok" } else { "missing" };
                let found = paint(FAINT, escape::line(found));
                context.out.table(&format!("{mark} {part} {state:<8} {found}"))?;
                if let Some(hint) = hint {
                    context.out.table(&format!("  hint: {hint}"))?;
                }
            }
        }
    }
    match is_complete {
        true => Ok(Exit::Done),
        false => Ok(Exit::Failed),
    }
}
