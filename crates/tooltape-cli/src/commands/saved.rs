//! `tooltape approve saved`.

use std::path::Path;

use tooltape::Clock;

use super::Context;
use crate::escape;
use crate::exit::Exit;
use crate::host::new_id;
use crate::out::{FAINT, Format, STRONG, paint};
use crate::report::Result;
use crate::saved::Saved;
use crate::when;
use crate::workspace::{self, Copying};

/// Lists the answers that were saved for this project.
pub(super) fn list(context: &Context<'_>) -> Result<Exit> {
    let saved = here(context)?;
    let entries = saved.entries()?;
    match context.out.format {
        Format::Json => context.out.json(&entries)?,
        Format::Text if entries.is_empty() => {
            context.out.say(&format!("no answer is saved for {}", escape::line(&saved.project)));
        }
        Format::Text => {
            let now_us = Clock::system().unix_us();
            for entry in &entries {
                let word = if entry.expires_us <= now_us { "expired" } else { "until" };
                let until = format!("{word} {}", when::rfc3339(entry.expires_us));
                let name = paint(STRONG, &entry.name);
                context.out.table(&format!("{name}  {}", paint(FAINT, until)))?;
                context.out.table(&format!("  {}", entry.scope()))?;
                context
                    .out
                    .table(&paint(FAINT, format!("  in {}", escape::line(&entry.workspace))))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Forgets answers.
pub(super) fn forget(context: &Context<'_>, names: &[String]) -> Result<Exit> {
    let saved = here(context)?;
    let forgotten: Vec<_> = names.iter().map(|name| saved.forget(name)).collect::<Result<_>>()?;
    match context.out.format {
        Format::Json => context.out.json(&forgotten)?,
        Format::Text => {
            forgotten.iter().for_each(|entry| context.out.say(&format!("forgot {}", entry.name)));
        }
    }
    Ok(Exit::Done)
}

/// The answers for the project of the current folder.
fn here(context: &Context<'_>) -> Result<Saved> {
    let layers = context.layers(Path::new("."))?;
    let project = Path::new(".");
    let workspace = workspace::open(&layers, project, new_id(), Copying::Unneeded)?;
    Saved::find(project, &workspace)
}
