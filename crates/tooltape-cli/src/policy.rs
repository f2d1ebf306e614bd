//! The policy that `tooltape.toml` states.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tooltape::limits::RIGHTS_MAX;
use tooltape::{
    Access, Call, Domain, Hash, Policy, Registered, Right, RightError, Rights, Run, Toolbox,
    Verdict,
};

use crate::arguments::can_have;
use crate::config::{
    AccessWord, DefaultWord, ExampleTable, Found, Layers, Rank, RuleTable, VerdictWord,
};
use crate::report::Result;

/// What happens to a call whose denial nobody explained.
const DENIED: &str = "this run does not allow it";

/// Rules in their order, and what happens where none matches.
pub(crate) struct Stated {
    rules: Vec<Rule>,
    default: DefaultWord,
    default_name: String,
    /// What a user's own default says, beyond which no rule of a project leads, and its name.
    floor: Option<(DefaultWord, String)>,
}

struct Rule {
    name: String,
    is_users: bool,
    tool: Option<String>,
    access: Option<AccessWord>,
    globs: Vec<(String, GlobMatcher)>,
    verdict: VerdictWord,
    message: Option<String>,
}

impl Stated {
    /// The policy of all layers together.
    pub(crate) fn new(layers: &Layers, toolbox: &Toolbox) -> Result<Stated> {
        let rules =
            layers.rules().map(|found| Rule::new(&found, toolbox)).collect::<Result<_>>()?;
        let (default, default_name) = match layers.policy_default() {
            Some(found) => (found.value, found.rule_name()),
            None => (DefaultWord::Ask, "default".to_owned()),
        };
        let said = layers.narrowed("policy.default", |config| config.policy.default);
        let floor = said
            .iter()
            .find(|found| found.layer.rank() == Rank::User && found.value != DefaultWord::Allow);
        let floor = floor.map(|found| (found.value, found.rule_name()));
        Ok(Stated { rules, default, default_name, floor })
    }

    fn undecided(&self, call: &Call) -> Verdict {
        by_default(self.default, self.default_name.clone(), call)
    }
}

/// What happens to a call that no rule decides.
fn by_default(default: DefaultWord, name: String, call: &Call) -> Verdict {
    let effects = &call.spec().effects;
    match (default, effects.access) {
        (DefaultWord::Deny, _) => Verdict::deny(name, DENIED),
        (DefaultWord::Ask | DefaultWord::Allow, _) if effects.confirm => Verdict::ask(name),
        (DefaultWord::Allow, _) => Verdict::allow(name),
        (DefaultWord::Ask, Access::Pure | Access::Read) => Verdict::allow(name),
        (DefaultWord::Ask, Access::Write) => Verdict::ask(name),
    }
}

/// What the configuration says that runs may do.
#[derive(Default)]
pub(crate) struct StatedRights {
    /// What the user says, in place of what the handles confer.
    users: Option<(String, Rights)>,
    /// What the project says, which only narrows.
    projects: Option<(String, Rights)>,
}

impl StatedRights {
    pub(crate) fn new(layers: &Layers) -> Result<StatedRights> {
        let mut stated = StatedRights::default();
        for found in layers.narrowed("policy.rights", |config| config.policy.rights.clone()) {
            let rights = Some((found.rule_name(), read_rights(&found)?));
            match found.layer.rank() {
                Rank::Project => stated.projects = rights,
                Rank::Flag | Rank::Variable | Rank::User => stated.users = rights,
            }
        }
        Ok(stated)
    }

    /// Gives a run these rights.
    pub(crate) fn give(self, run: Run) -> Run {
        let run = self.users.into_iter().fold(run, |run, (_, rights)| run.rights(rights));
        self.projects.into_iter().fold(run, |run, (_, rights)| run.narrowed(rights))
    }

    /// What everybody who has a say says of one right, given what the handles confer.
    pub(crate) fn explain(&self, conferred: &Rights, right: &Right) -> Vec<SaidOfRight> {
        let said = |source: &str, rights: &Rights| SaidOfRight {
            right: right.to_string(),
            source: source.to_owned(),
            covered: rights.covers(right),
            why: rights.explain(right).to_string(),
        };
        let first = match &self.users {
            Some((name, rights)) => said(name, rights),
            None => said("the handles of the run", conferred),
        };
        let projects = self.projects.as_ref().map(|(name, rights)| said(name, rights));
        std::iter::once(first).chain(projects).collect()
    }
}

/// What one contributor to what a run may do says of a right.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SaidOfRight {
    pub(crate) right: String,
    /// The file and the line, or what else.
    pub(crate) source: String,
    pub(crate) covered: bool,
    pub(crate) why: String,
}

fn read_rights(found: &Found<'_, Vec<String>>) -> Result<Rights> {
    let (mut allowed, mut denied) = (Vec::new(), Vec::new());
    for text in &found.value {
        let (rights, text) = match text.strip_prefix('!') {
            Some(text) => (&mut denied, text),
            None => (&mut allowed, text.as_str()),
        };
        rights.push(text.parse().map_err(|err: RightError| found.problem(None, err.to_string()))?);
    }
    if found.value.len() > RIGHTS_MAX {
        let why = format!("{} rights, expected at most {RIGHTS_MAX}", found.value.len());
        return Err(found.problem(None, why));
    }
    Ok(Rights::of(allowed).denying(denied))
}

/// What one rule, or what holds without one, says of a call.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Said {
    /// The file and the line.
    pub(crate) rule: String,
    pub(crate) verdict: &'static str,
    /// Whether it is what the call comes to.
    pub(crate) decides: bool,
}

impl Stated {
    /// What everything says that matches a call, in order, and which of it decides.
    pub(crate) fn explain(&self, call: &Call) -> Vec<Said> {
        let args = top_level(call);
        let decided = self.judge(call);
        let said = |name: &str, verdict: &Verdict| Said {
            rule: name.to_owned(),
            verdict: word(verdict),
            decides: decided.rule() == name,
        };
        let matching = self.rules.iter().filter(|rule| rule.matches(call, &args));
        let mut all: Vec<Said> =
            matching.map(|rule| said(&rule.name, &rule.verdict(call))).collect();
        all.push(said(&self.default_name, &self.undecided(call)));
        let floor = self.floor.as_ref().filter(|(_, name)| *name != self.default_name);
        all.extend(floor.map(|(floor, name)| said(name, &by_default(*floor, name.clone(), call))));
        all
    }

    /// Rules that never decide, each beside the one that always decides before it.
    pub(crate) fn unreachable(&self) -> Vec<(String, String)> {
        let shadowed = self.rules.iter().enumerate().filter_map(|(at, rule)| {
            let earlier = self.rules[..at].iter().filter(|it| it.is_users == rule.is_users);
            let denies = self.rules.iter().filter(|it| it.verdict == VerdictWord::Deny);
            let before: Vec<&Rule> = match rule.verdict {
                VerdictWord::Deny => earlier.filter(|it| it.verdict == VerdictWord::Deny).collect(),
                VerdictWord::Allow | VerdictWord::Ask => earlier.chain(denies).collect(),
            };
            let by = before.into_iter().find(|it| it.covers_all_of(rule))?;
            Some((rule.name.clone(), by.name.clone()))
        });
        shadowed.collect()
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }
}

/// How much a verdict holds back.
fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow { .. } => 0,
        Verdict::Ask { .. } => 1,
        Verdict::Deny { .. } => 2,
    }
}

/// The word for a verdict.
pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow { .. } => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

fn top_level(call: &Call) -> Map<String, Value> {
    match call.args().to_value() {
        Value::Object(args) => args,
        _ => Map::new(),
    }
}

impl Policy for Stated {
    fn judge(&self, call: &Call) -> Verdict {
        let args = top_level(call);
        let matching = || self.rules.iter().filter(|rule| rule.matches(call, &args));
        if let Some(denying) = matching().find(|rule| rule.verdict == VerdictWord::Deny) {
            return denying.verdict(call);
        }
        // Each side's first rule is what it says, and a project can only narrow what its user says.
        let projects = matching().find(|rule| !rule.is_users);
        let users = matching().find(|rule| rule.is_users);
        match (projects, users, &self.floor) {
            (Some(project), None, Some((floor, name))) => {
                let (verdict, floor) =
                    (project.verdict(call), by_default(*floor, name.clone(), call));
                if strictness(&floor) > strictness(&verdict) { floor } else { verdict }
            }
            (Some(project), Some(user), _)
                if user.verdict.strictness() > project.verdict.strictness() =>
            {
                user.verdict(call)
            }
            (Some(rule), _, _) | (None, Some(rule), _) => rule.verdict(call),
            (None, None, _) => self.undecided(call),
        }
    }

    /// All that it decides by, and the names of its rules, by which approvals are told apart.
    fn version(&self) -> Hash {
        let rule = |rule: &Rule| {
            let globs: Vec<_> =
                rule.globs.iter().map(|(name, glob)| (name, glob.glob().glob())).collect();
            json!({
                "name": rule.name,
                "tool": rule.tool,
                "access": rule.access.map(|access| format!("{access:?}")),
                "where": globs,
                "verdict": format!("{:?}", rule.verdict),
                "users": rule.is_users,
                "message": rule.message,
            })
        };
        let rules: Vec<_> = self.rules.iter().map(rule).collect();
        let default = format!("{:?}", self.default);
        let floor = self.floor.as_ref().map(|(floor, _)| format!("{floor:?}"));
        let version = json!({ "rules": rules, "default": default, "floor": floor });
        Hash::of(Domain::Policy, version.to_string().as_bytes())
    }
}

impl Rule {
    fn new(found: &Found<'_, &RuleTable>, toolbox: &Toolbox) -> Result<Rule> {
        let RuleTable { tool, access, globs, verdict, message, .. } = found.value;
        // A user's rules are for all programs, and not every program has every tool.
        if let Some(name) = tool
            && found.layer.rank() != Rank::User
            && toolbox.get(name).is_none()
        {
            let why = format!("there is no tool named `{name}`, so this rule would never match");
            return Err(found.problem(Some("tool"), why));
        }
        let mut matchers = Vec::new();
        for (name, glob) in globs.iter().flatten() {
            check_argument(found, toolbox, name)?;
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            let built = built.map_err(|err| {
                found.problem(Some(&format!("where.{name}")), format!("{}", err.kind()))
            })?;
            matchers.push((name.clone(), built.compile_matcher()));
        }
        let rule = Rule {
            name: found.rule_name(),
            is_users: found.layer.rank() == Rank::User,
            tool: tool.clone(),
            access: *access,
            globs: matchers,
            verdict: *verdict,
            message: message.clone(),
        };
        rule.try_examples(found, toolbox)?;
        Ok(rule)
    }

    /// Tries the rule on the calls that its file names.
    fn try_examples(&self, found: &Found<'_, &RuleTable>, toolbox: &Toolbox) -> Result {
        for (at, example) in found.value.examples.iter().flatten().enumerate() {
            let ExampleTable { tool, args, matches } = example;
            let part = format!("examples.{at}");
            let Some(tool) = tool.as_deref().or(self.tool.as_deref()) else {
                let why = "the rule names no tool, so its examples must";
                return Err(found.problem(Some(&part), why));
            };
            let Some(registered) = toolbox.get(tool) else {
                // A user's rules are for all programs, and not every program has every tool.
                if found.layer.rank() == Rank::User {
                    continue;
                }
                let why = format!("there is no tool named `{tool}`");
                return Err(found.problem(Some(&part), why));
            };
            let args = args.clone().unwrap_or_default().into_iter().collect();
            let does = self.fits(tool, registered.spec().effects.access, &args);
            let should = matches.unwrap_or(true);
            if does != should {
                let word = |matches| if matches { "matches" } else { "does not match" };
                let why = format!("the rule {} it, expected that it {}", word(does), word(should));
                return Err(found.problem(Some(&part), why));
            }
        }
        Ok(())
    }

    /// Whether it matches whatever another rule does.
    fn covers_all_of(&self, other: &Rule) -> bool {
        let is_same = |mine: &(String, GlobMatcher), others: &(String, GlobMatcher)| {
            mine.0 == others.0 && mine.1.glob() == others.1.glob()
        };
        // A rule that allows covers less of what is in doubt.
        let in_doubt = |rule: &Rule| rule.verdict != VerdictWord::Allow || rule.globs.is_empty();
        (self.tool.is_none() || self.tool == other.tool)
            && (self.access.is_none() || self.access == other.access)
            && self.globs.iter().all(|mine| other.globs.iter().any(|it| is_same(mine, it)))
            && (in_doubt(self) || !in_doubt(other))
    }

    fn matches(&self, call: &Call, args: &Map<String, Value>) -> bool {
        self.fits(call.tool().name().as_str(), call.spec().effects.access, args)
    }

    fn fits(&self, tool: &str, does: Access, args: &Map<String, Value>) -> bool {
        let is_tool = self.tool.as_ref().is_none_or(|named| named == tool);
        let is_access = self.access.is_none_or(|word| access(word) == does);
        is_tool
            && is_access
            && self.globs.iter().all(|(name, glob)| self.covers(glob, args.get(name)))
    }

    /// Whether a glob covers an argument. In doubt a rule that allows covers nothing, and one that
    /// asks or denies covers everything.
    fn covers(&self, glob: &GlobMatcher, value: Option<&Value>) -> bool {
        let in_doubt = self.verdict != VerdictWord::Allow;
        let covers = |value: &Value| match value.as_str().map(plain) {
            Some(Some(path)) => glob.is_match(path),
            Some(None) | None => in_doubt,
        };
        match value {
            // What is not there is nowhere.
            None => false,
            Some(Value::Array(values)) if in_doubt => values.iter().any(covers),
            Some(Value::Array(values)) => !values.is_empty() && values.iter().all(covers),
            Some(value) => covers(value),
        }
    }

    fn verdict(&self, call: &Call) -> Verdict {
        let name = self.name.clone();
        match self.verdict {
            // Only a rule that names the tool can stand in for the confirmation that it wants.
            VerdictWord::Allow if call.spec().effects.confirm && self.tool.is_none() => {
                Verdict::ask(name)
            }
            VerdictWord::Allow => Verdict::allow(name),
            VerdictWord::Ask => Verdict::ask(name),
            VerdictWord::Deny => Verdict::deny(name, self.message.as_deref().unwrap_or(DENIED)),
        }
    }
}

/// A mistyped argument must not leave a rule that never matches.
fn check_argument(found: &Found<'_, &RuleTable>, toolbox: &Toolbox, name: &str) -> Result {
    let is_known = |tool: &Registered| can_have(&tool.spec().input, name);
    let (is_known, whose) = match &found.value.tool {
        Some(tool) => {
            (toolbox.get(tool).is_none_or(|tool| is_known(tool)), format!("`{tool}` has"))
        }
        // A user's rules are for all programs, and another one may have such a tool.
        None if found.layer.rank() == Rank::User => return Ok(()),
        None => (toolbox.tools().any(|tool| is_known(tool)), "some tool has".to_owned()),
    };
    let why = || format!("found `{name}`, expected an argument that {whose}");
    if is_known { Ok(()) } else { Err(found.stray(&format!("where.{name}"), why())) }
}

fn access(word: AccessWord) -> Access {
    match word {
        AccessWord::Pure => Access::Pure,
        AccessWord::Read => Access::Read,
        AccessWord::Write => Access::Write,
    }
}

/// A relative path without detours; `None` where it is not one.
fn plain(text: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => return None,
        }
    }
    // A backslash separates folders on some systems, and is a letter on others.
    (!text.contains('\\')).then_some(path)
}
