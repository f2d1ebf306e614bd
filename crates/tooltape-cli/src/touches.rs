//! What the configuration says of the footprints of tools.

use std::collections::HashSet;

use tooltape::limits::FOOTPRINT_KEYS_MAX;
use tooltape::{Access, FootprintOf, KeyTemplate, Registered, Toolbox};

use crate::arguments::can_have;
use crate::config::{Found, Layers, Rank, TouchesTable};
use crate::report::Result;

/// Sets the footprints and promotions that the configuration names.
///
/// `all` are the tools of the program, some of which the configuration may have taken away. What
/// is said of those is checked all the same.
pub(crate) fn apply(layers: &Layers, all: &Toolbox, toolbox: &mut Toolbox) -> Result {
    let mut decided = HashSet::new();
    for (name, found) in layers.touches() {
        let Some(tool) = known(all, name, &found)? else { continue };
        let touches = hook(tool, &found)?;
        if decided.insert(name) && toolbox.get(name).is_some() {
            let set = toolbox.touching(name, touches);
            set.map_err(|err| found.problem(None, err.to_string()))?;
        }
    }
    promote(layers, all, toolbox)
}

fn promote(layers: &Layers, all: &Toolbox, toolbox: &mut Toolbox) -> Result {
    for name in layers.all("tools.promote", |config| config.tools.promote.as_ref()) {
        known(all, name.value, &name)?;
    }
    let Some(found) = layers.find("tools.promote", |config| config.tools.promote.clone()) else {
        return Ok(());
    };
    for (at, name) in found.value.iter().enumerate() {
        if toolbox.get(name).is_some() {
            let promoted = toolbox.promote(name);
            promoted.map_err(|err| found.problem(Some(&at.to_string()), err.to_string()))?;
        }
    }
    Ok(())
}

/// The tool of this name. A user's configuration is for all programs, and not every program has
/// every tool.
fn known<'a, T>(
    all: &'a Toolbox,
    name: &str,
    found: &Found<'_, T>,
) -> Result<Option<&'a Registered>> {
    match all.get(name) {
        Some(tool) => Ok(Some(tool)),
        None if found.layer.rank() == Rank::User => Ok(None),
        None => Err(found.problem(None, format!("there is no tool named `{name}`"))),
    }
}

fn hook(tool: &Registered, found: &Found<'_, &TouchesTable>) -> Result<FootprintOf> {
    let TouchesTable { writes, reads } = found.value;
    let name = tool.id().name();
    match (tool.spec().effects.access, writes, reads) {
        (Access::Pure, ..) => {
            let why = format!("`{name}` is pure, so it touches nothing");
            return Err(found.problem(None, why));
        }
        (Access::Read, Some(_), _) => {
            let why = format!("`{name}` only reads, so it writes nothing");
            return Err(found.stray("writes", why));
        }
        (Access::Read, None, None) => {
            let why = format!("`{name}` reads: expected `reads`, which says what");
            return Err(found.problem(None, why));
        }
        // Without it, a reader would think that what is written stays unknown.
        (Access::Write, None, _) => {
            let why = format!("`{name}` writes: expected `writes`, which says what");
            return Err(found.problem(None, why));
        }
        (Access::Read, None, Some(_)) | (Access::Write, Some(_), _) => {}
    }
    let writes = templates(tool, found, "writes", writes.as_deref().unwrap_or_default())?;
    let reads = templates(tool, found, "reads", reads.as_deref().unwrap_or_default())?;
    Ok(FootprintOf::templates(writes, reads))
}

fn templates(
    tool: &Registered,
    found: &Found<'_, &TouchesTable>,
    list: &str,
    texts: &[String],
) -> Result<Vec<KeyTemplate>> {
    if texts.len() > FOOTPRINT_KEYS_MAX {
        let why = format!("found {} keys, expected at most {FOOTPRINT_KEYS_MAX}", texts.len());
        return Err(found.problem(Some(list), why));
    }
    let template = |(at, text): (usize, &String)| {
        let refused = |why: String| found.problem(Some(&format!("{list}.{at}")), why);
        let template = KeyTemplate::parse(text).map_err(|err| refused(err.to_string()))?;
        let is_stray = |name: &&str| !can_have(&tool.spec().input, name);
        if let Some(stray) = template.arguments().find(is_stray) {
            let whose = tool.id().name();
            let why = format!("found `{stray}`, expected an argument that `{whose}` has");
            return Err(refused(why));
        }
        Ok(template)
    };
    texts.iter().enumerate().map(template).collect()
}
