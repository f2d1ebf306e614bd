//! `tooltape policy`.

use std::path::Path;

use serde_json::{Value, json};
use tooltape::rule::Said;
use tooltape::{Canon, Policy as _, Proposal, Reply, Toolbox};

use super::Context;
use super::call::{Judged, Looked, finish, look, proposal};
use crate::args::What;
use crate::config::Layers;
use crate::escape;
use crate::exit::Exit;
use crate::out::{FAINT, Format, STRONG, paint};
use crate::policy::{SaidOfRight, StatedRights, stated};
use crate::report::Result;
use crate::workspace::Copying;

/// Checks the rules and their examples, and names those that never decide.
pub(super) fn check(context: &Context<'_>) -> Result<Exit> {
    let layers = context.layers(Path::new("."))?;
    let toolbox = context.host.toolbox(&layers)?;
    let policy = stated(&layers, &toolbox)?;
    StatedRights::new(&layers)?;
    let (version, count) = (policy.version(), policy.rules().len());
    let shadowed = policy.shadowed();
    let shadowed = shadowed.iter().map(|[by, rule]| (&rule.name, &by.name));
    let unreachable: Vec<_> = shadowed.collect();
    match context.out.format {
        Format::Json => {
            let unreachable: Vec<_> =
                unreachable.iter().map(|(rule, by)| json!({ "rule": rule, "by": by })).collect();
            let document =
                json!({ "rules": count, "version": version, "unreachable": unreachable });
            context.out.json(&document)?;
        }
        Format::Text => {
            context.out.table(&format!("{count} rules, version {version}"))?;
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
    let rights = rights(context, &layers, &toolbox, &proposal)?;
    let (shown, said) = match judged {
        Some(Judged { shown, said, .. }) => (shown, said),
        None if let Some(rule) = withheld_by(&reply) => (withheld(&reply, rule), Vec::new()),
        None => return finish(context, &toolbox, &proposal, None, &reply, None),
    };
    match context.out.format {
        Format::Json => {
            let mut document = shown;
            document["said"] = json!(said);
            document["rights"] = json!(rights);
            context.out.json(&document)?;
        }
        Format::Text => {
            let text = |key: &str| escape::line(shown[key].as_str().unwrap_or("")).into_owned();
            let (verdict, rule) = (paint(STRONG, text("verdict")), text("rule"));
            context.out.table(&format!("{verdict} by {rule}: {}", text("tool_id")))?;
            for Said { rule, says, decides, states, .. } in &said {
                let mark = if *decides { "→" } else { " " };
                let states = states.as_ref().map(|states| format!("  {states}"));
                let text = format!("{rule}{}", states.unwrap_or_default());
                let line = format!("  {mark} {:<5} {}", says.word(), escape::line(&text));
                context.out.table(&if *decides { line } else { paint(FAINT, line) })?;
            }
            if let Some(name) = shown["saved"]["name"].as_str() {
                let until = escape::line(shown["saved"]["expires"].as_str().unwrap_or(""));
                let name = escape::line(name);
                let line = format!("  → allowed by your saved answer {name}, until {until}");
                context.out.table(&line)?;
            }
            for SaidOfRight { right, source, covered, why } in &rights {
                let mark = if *covered { " " } else { "→" };
                let (right, source) = (escape::line(right), escape::line(source));
                let line = format!("  {mark} needs {right}, {source}: {}", escape::line(why));
                context.out.table(&if *covered { paint(FAINT, line) } else { line })?;
            }
            context.out.say("not executed: this only explains");
        }
    }
    Ok(Exit::Done)
}

/// The rule that denied before the policy was asked: the run does not hold what the call needs, or
/// its tool works elsewhere.
fn withheld_by(reply: &Reply) -> Option<&str> {
    let rule = reply.fault.as_ref()?.rule.as_deref()?;
    ["rights", "workspace root"].contains(&rule).then_some(rule)
}

/// A call that no rule can let through, as `--json` prints it.
fn withheld(reply: &Reply, rule: &str) -> Value {
    json!({
        "dry_run": true,
        "tool": reply.name,
        "tool_id": reply.tool(),
        "verdict": "deny",
        "rule": rule,
        "told": reply.fault.as_ref().map(|fault| &fault.message),
        "args_hash": reply.args_hash,
        "executed": reply.executed,
    })
}

/// What everybody says of the rights that a call needs.
fn rights(
    context: &Context<'_>,
    layers: &Layers,
    toolbox: &Toolbox,
    proposal: &Proposal,
) -> Result<Vec<SaidOfRight>> {
    let args: Value = serde_json::from_str(proposal.text()).unwrap_or_default();
    let (Some(tool), Ok(args)) = (toolbox.get(&proposal.name), Canon::of(&args)) else {
        return Ok(Vec::new());
    };
    let conferred = context.host.conferred(layers, Path::new("."), Copying::Unneeded)?;
    let stated = StatedRights::new(layers)?;
    let needed = tool.needs_of(&args).unwrap_or_default();
    Ok(needed.iter().flat_map(|right| stated.explain(&conferred, right)).collect())
}
