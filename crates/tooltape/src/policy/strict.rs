//! What a strict run makes of what tools declare, and do not declare.

use super::Verdict;
use crate::call::Call;
use crate::right::{RelativePath, Right};
use crate::spec::{Effects, Reach, Resource};
use crate::tool::Registered;

/// What a tool may declare that it does, the rights that such a tool needs, and the rule that asks
/// where it names none of them.
const DOMAINS: [(Declares, &[&str], &str); 4] = [
    (
        |effects| effects.spend,
        &["spend:"],
        "strict: the tool spends money, and names no `spend:` right",
    ),
    (
        |effects| effects.process,
        &["process:"],
        "strict: the tool starts processes, and names no `process:` right",
    ),
    (
        |effects| effects.reach == Reach::Network,
        &["net:", "mcp:"],
        "strict: the tool reaches other machines, and names no `net:` right",
    ),
    (
        |effects| effects.filesystem,
        &["fs:"],
        "strict: the tool touches files, and names no `fs:` right",
    ),
];
const CONFIRM: &str = "strict: the tool wants a confirmation";
const NOTHING: &str = "strict: the tool declares nothing";
const ROOT: &str = "workspace root";

type Declares = fn(&Effects) -> bool;

impl Verdict {
    /// What a [strict](crate::Run::strict) run makes of it.
    ///
    /// A tool that declares nothing, that wants a confirmation, or that does what it names no right
    /// for, is asked about, unless a rule which names that very tool allows it.
    #[must_use]
    pub fn strictly(self, call: &Call) -> Verdict {
        match self {
            Verdict::Allow { names_tool: false, .. } => match doubt(call.registered()) {
                Some(rule) => Verdict::ask(rule),
                None => self,
            },
            Verdict::Allow { names_tool: true, .. }
            | Verdict::Ask { .. }
            | Verdict::Deny { .. } => self,
        }
    }
}

/// What is wrong with what a tool declares, as the rule that asks about it.
fn doubt(tool: &Registered) -> Option<&'static str> {
    let (effects, rights) = (tool.effects(), &tool.spec().capabilities);
    if rights.is_empty() && effects.is_undeclared() {
        return Some(NOTHING);
    }
    let named = |domains: &[&str]| {
        rights.iter().any(|right| domains.iter().any(|domain| right.starts_with(domain)))
    };
    let unnamed = DOMAINS.iter().find(|(is, domains, _)| is(effects) && !named(domains));
    unnamed.map(|(.., rule)| *rule).or(effects.confirm.then_some(CONFIRM))
}

/// The denial of a call that is about files outside of the folder that its tool works in.
pub(crate) fn outside(call: &Call) -> Option<Verdict> {
    let root = call.effects().workspace_root.as_deref()?;
    let tool = call.tool().name();
    let deny =
        |what: &str| Verdict::deny(ROOT, format!("`{tool}` works in `{root}`, not in {what}"));
    let Ok(root) = root.parse::<RelativePath>() else {
        return Some(deny("what is no path below the workspace"));
    };
    let needs = call.registered().needs_of(call.args()).unwrap_or_default();
    let stray = needs.iter().find(|right| {
        let (Right::FsRead(files) | Right::FsWrite(files)) = right else { return false };
        files.root.is_some() || !root.covers(&files.path)
    });
    if let Some(right) = stray {
        return Some(deny(&format!("`{right}`")));
    }
    // Footprints say more than a call touches, so only what is surely elsewhere counts; their keys
    // may be in lower case.
    let key = Resource::parse(&format!("file:{root}").to_ascii_lowercase()).ok()?;
    let footprint = call.footprint().ok()?;
    let mut keys = footprint.read_keys().iter().chain(footprint.written_keys());
    let is_stray = |touched: &&Resource| {
        let touched = Resource::parse(&touched.to_string().to_ascii_lowercase());
        touched.is_ok_and(|it| it.segments().next() == Some("file") && !it.overlaps(&key))
    };
    keys.find(is_stray).map(|key| deny(&format!("`{key}`")))
}
