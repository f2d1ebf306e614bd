//! `tooltape diff`.

use tooltape::Diff;

use super::Context;
use crate::args::Diff as DiffArgs;
use crate::escape;
use crate::exit::Exit;
use crate::out::Format;
use crate::reel::Reel;
use crate::report::{Problem, Result};

/// Compares two runs, call by call. That they differ is an answer, and no problem.
pub(super) fn diff(context: &Context<'_>, args: &DiffArgs) -> Result<Exit> {
    let location = context.location()?;
    let read = |text: &str| Reel::read(&location, text).and_then(Reel::whole);
    let (left, right) = (read(&args.a)?, read(&args.b)?);
    let diff = Diff::of(&left, &right).ok_or_else(|| {
        Problem::new(Exit::Failed, "run.empty", "one of the runs has no records")
            .hint("`tooltape runs` lists the runs")
    })?;
    match context.out.format {
        Format::Json => context.out.json(&diff)?,
        Format::Text => context.out.table(&escape::text(&diff.to_string()))?,
    }
    Ok(Exit::Done)
}
