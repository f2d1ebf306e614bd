//! `tooltape policy`.

use std::path::Path;

use serde_json::json;
use tooltape::Policy as _;

use super::Context;
use super::call::{Judged, Looked, finish, look, proposal};
use crate::args::What;
use crate::escape;
use crate::exit::Exit;
use crate::out::{FAINT, Format, STRONG, paint};
use crate::policy::{Said, Stated};
use crate::report::Result;

/// Checks the rules and their examples, and names those that never decide.
pub(super) fn check(context: &Context<'_>) -> Result<Exit> {
    let layers = context.layers(Path::new("."))?;
    let toolbox = context.host.toolbox(&layers)?;
    let policy = Stated::new(&layers, &toolbox)?;
    let (version, unreachable) = (policy.version(), policy.unreachable());
    match context.out.format {
        Format::Json => {
            let unreachable: Vec<_> =
                unreachable.iter().map(|(rule, by)| json!({ "rule": rule, "by": by })).collect();
            let document =
                json!({ "rules": policy.len(), "version": version, "unreachable": unreachable });
            context.out.json(&document)?;
        }
        Format::Text => {
            context.out.table(&format!("{} rules, version {version}", policy.len()))?;
            for (rule, by) in &unreachable {
                let (rule, by) = (escape::line(rule), escape::line(by));
                context.out.warn(&format!("{rule} never decides: {by} does before it"));
            }
        }
    }
    Ok(Exit::Done)
}

/// Says what a call would come to, and why. Executes nothing.
pub(super) async fn explain(context: &Context<'_>, what: &What) -> Result<Exit> {
    let project = Path::new(".");
    let layers = context.layers(project)?;
    let toolbox = context.host.toolbox(&layers)?;
    let proposal = proposal(what, &toolbox)?;
    let Looked { reply, judged } = look(context, &layers, project, &proposal).await?;
    let Some(Judged { shown, said, .. }) = judged else {
        return finish(context, &toolbox, &proposal, None, &reply, None);
    };
    match context.out.format {
        Format::Json => {
            let mut document = shown;
            document["said"] = json!(said);
            context.out.json(&document)?;
        }
        Format::Text => {
            let text = |key: &str| escape::line(shown[key].as_str().unwrap_or("")).into_owned();
            let (verdict, rule) = (paint(STRONG, text("verdict")), text("rule"));
            context.out.table(&format!("{verdict} by {rule}: {}", text("tool_id")))?;
            for Said { rule, verdict, decides } in &said {
                let mark = if *decides { "→" } else { " " };
                let line = format!("  {mark} {verdict:<5} {}", escape::line(rule));
                context.out.table(&if *decides { line } else { paint(FAINT, line) })?;
            }
            context.out.say("not executed: this only explains");
        }
    }
    Ok(Exit::Done)
}
