//! `tooltape trust`.

use std::path::Path;

use serde_json::json;
use tooltape::rule::{Says, Side};

use super::Context;
use crate::args::Trust;
use crate::config::DefaultWord;
use crate::escape;
use crate::exit::Exit;
use crate::out::Format;
use crate::policy::stated;
use crate::report::{Problem, Result};

/// Lets a project's configuration, as it is now, decide also about what is beyond its workspace.
pub(super) fn trust(context: &Context<'_>, args: &Trust) -> Result<Exit> {
    let layers = context.layers(&args.project)?;
    let trust = layers.trust()?.ok_or_else(|| nothing(&args.project))?;
    let was_given = trust.is_given();
    match args.withdraw {
        true => drop(trust.withdraw()?),
        false => trust.give()?,
    }
    let rules = stated(&layers, &context.host.toolbox(&layers)?)?;
    let projects = rules.rules().iter();
    let allowing = projects.filter(|it| (it.side, it.says) == (Side::Project, Says::Allow));
    let mut allows: Vec<String> = allowing.map(|rule| format!("{}: {rule}", rule.name)).collect();
    let default = layers.policy_default();
    if let Some(found) = default.filter(|found| found.value == DefaultWord::Allow) {
        allows.push(format!("{}: whatever no rule decides", found.rule_name()));
    }
    let file = trust.file.display().to_string();
    match context.out.format {
        Format::Json => {
            let trusted = !args.withdraw;
            let document = json!({
                "file": file, "trusted": trusted, "was_trusted": was_given, "allows": allows,
            });
            context.out.json(&document)?;
        }
        Format::Text => {
            let file = escape::line(&file);
            let word = if args.withdraw { "no longer trusted" } else { "trusted as it is now" };
            context.out.say(&format!("{file} is {word}"));
            if !args.withdraw {
                let allows = allows.iter().map(|it| format!("  allows {}", escape::line(it)));
                allows.for_each(|line| context.out.say(&line));
                context.out.say("any change of it ends this; `tooltape trust --withdraw`, too");
            }
        }
    }
    Ok(Exit::Done)
}

fn nothing(project: &Path) -> Box<Problem> {
    let message = format!("there is no configuration in `{}` to trust", project.display());
    Problem::new(Exit::Failed, "trust.nothing", message).hint("`tooltape init` writes one")
}
