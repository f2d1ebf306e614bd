//! Rules in their order, as one policy that can say why.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use super::evidence::Evidence;
use super::rule::{DENIED, Rule, Says, Side};
use super::{Policy, Verdict, version_of};
use crate::call::Call;
use crate::canon::Hash;
use crate::spec::{Access, Enforced, Reach};

/// Rules in their order, and what happens where none matches: without more, a denial.
///
/// A rule that denies beats every other. Else the first that matches decides: the first of the
/// user's and the first of the project's, of which the stricter holds.
///
/// ```
/// use tooltape::{Rule, Rules, rule::Effect};
///
/// let rules = Rules::allow_reads().ask_before_writes().deny("push", "not on a Friday");
/// let rules = rules.rule(Rule::ask("money").effect(Effect::Spend));
/// assert_eq!(rules.rules().len(), 2);
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rules {
    rules: Vec<Rule>,
    otherwise: Fallback,
    /// Beyond which no rule of a project leads.
    floor: Option<Fallback>,
    /// Beyond which nothing but a user leads, for calls that reach out of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    outward: Option<Fallback>,
    /// Where the rules for each tool are, in their order.
    #[serde(skip)]
    by_tool: HashMap<Box<str>, Vec<usize>>,
    /// Where the rules for every tool are, in their order.
    #[serde(skip)]
    general: Vec<usize>,
}

/// What happens to calls that no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Otherwise {
    /// Pure and reading calls are allowed; all others ask.
    Ask,
    /// All are allowed, but those whose tool wants a confirmation ask.
    Allow,
    /// All are denied.
    Deny,
}

/// What holds where no rule does, by what a call does to the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Fallback {
    reads: Word,
    writes: Word,
    /// What asks where the tool wants a confirmation.
    confirm: Cow<'static, str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Word {
    says: Says,
    rule: Cow<'static, str>,
    told: Option<&'static str>,
}

/// What a rule, or what holds without one, says of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Its name.
    pub rule: String,
    /// What it says.
    #[serde(rename = "verdict")]
    pub says: Says,
    /// Whether that is what the call comes to.
    pub decides: bool,
    /// The rule itself, in words; nothing, where no rule says it.
    pub states: Option<String>,
}

impl Rules {
    /// Denies everything.
    pub fn deny_all() -> Rules {
        Rules::default()
    }

    /// Allows what is pure or only reads; denies the rest.
    pub fn allow_reads() -> Rules {
        let mut rules = Rules::default();
        let rule = "allow reads".into();
        rules.otherwise.reads = Word { says: Says::Allow, rule, told: None };
        let (rule, told) = ("allow reads".into(), Some("this run may only read"));
        rules.otherwise.writes = Word { says: Says::Deny, rule, told };
        rules
    }

    /// Asks before a write that no other rule decides.
    #[must_use]
    pub fn ask_before_writes(mut self) -> Rules {
        let rule = "ask before writes".into();
        self.otherwise.writes = Word { says: Says::Ask, rule, told: None };
        self
    }

    /// Allows the tool of exactly this name.
    #[must_use]
    pub fn allow(self, name: impl Into<String>) -> Rules {
        let name = name.into();
        self.rule(Rule::allow(format!("allow {name}")).tool(name))
    }

    /// Denies the tool of exactly this name, and tells the model why.
    #[must_use]
    pub fn deny(self, name: impl Into<String>, told: impl Into<String>) -> Rules {
        let name = name.into();
        self.rule(Rule::deny(format!("deny {name}"), told).tool(name))
    }

    /// Adds a rule behind the others.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Rules {
        let at = self.rules.len();
        match &rule.tool {
            Some(tool) => self.by_tool.entry(tool.as_str().into()).or_default().push(at),
            None => self.general.push(at),
        }
        self.rules.push(rule);
        self
    }

    /// Sets what happens to calls that no rule decides, and what that is called.
    #[must_use]
    pub fn otherwise(mut self, otherwise: Otherwise, name: impl Into<Cow<'static, str>>) -> Rules {
        self.otherwise = Fallback::of(otherwise, name.into());
        self
    }

    /// Sets what no rule of a project leads beyond, where none of the user's matches.
    #[must_use]
    pub fn floor(mut self, floor: Otherwise, name: impl Into<Cow<'static, str>>) -> Rules {
        self.floor = Some(Fallback::of(floor, name.into()));
        self
    }

    /// Sets what nothing but a rule of the user leads beyond, for calls that reach out of the
    /// workspace (to other machines, to money, as processes that no sandbox holds), and for those
    /// whose tool wants a confirmation.
    ///
    /// It is for projects that nobody vouched for. Their files are theirs; the world is not.
    #[must_use]
    pub fn outward(mut self, floor: Otherwise, name: impl Into<Cow<'static, str>>) -> Rules {
        self.outward = Some(Fallback::of(floor, name.into()));
        self
    }

    /// All rules, in their order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What everything says that matches a call, in order, and which of it decides.
    pub fn explain(&self, call: &Call) -> Vec<Said> {
        let evidence = Evidence::of(call);
        let decided = self.judge(call);
        let matching = self.about(call).filter(|rule| rule.fits(&evidence));
        let rules = matching.map(|rule| (rule.verdict(call), Some(rule.to_string())));
        let floor = self.floor.as_ref().filter(|floor| **floor != self.otherwise);
        let outward = self.outward.as_ref().filter(|_| reaches_out(call));
        let fallbacks = [Some(&self.otherwise), floor, outward].into_iter().flatten();
        let fallbacks = fallbacks.map(|fallback| (fallback.verdict(call), None));
        let mut is_open = true;
        let said = rules.chain(fallbacks).map(|(verdict, states)| {
            let decides = is_open && verdict == decided;
            is_open &= !decides;
            Said { rule: verdict.rule().to_string(), says: verdict.says(), decides, states }
        });
        said.collect()
    }

    /// The rules that could match calls of a call's tool, in their order.
    fn about(&self, call: &Call) -> impl Iterator<Item = &Rule> {
        let named = self.by_tool.get(call.tool().name().as_str());
        let (mut named, mut general) = (named.map_or(&[][..], Vec::as_slice), &self.general[..]);
        std::iter::from_fn(move || {
            let from = match (named.first(), general.first()) {
                (Some(one), Some(other)) if one < other => &mut named,
                (Some(_), None) => &mut named,
                (_, _) => &mut general,
            };
            let (at, rest) = from.split_first()?;
            *from = rest;
            Some(&self.rules[*at])
        })
    }

    /// What the first rule of each side says, unless a rule denies.
    fn first(&self, call: &Call) -> Result<[Option<Verdict>; 2], Verdict> {
        let evidence = Evidence::of(call);
        let (mut users, mut projects) = (None, None);
        for rule in self.about(call) {
            let first = match rule.side {
                Side::User => &mut users,
                Side::Project => &mut projects,
            };
            let decides = rule.says == Says::Deny || first.is_none();
            if !decides || !rule.fits(&evidence) {
                continue;
            }
            match rule.says {
                Says::Deny => return Err(rule.verdict(call)),
                Says::Allow | Says::Ask => *first = Some(rule.verdict(call)),
            }
        }
        Ok([users, projects])
    }
}

impl Policy for Rules {
    fn judge(&self, call: &Call) -> Verdict {
        let outward = self.outward.as_ref().filter(|_| reaches_out(call));
        let outward = outward.map(|outward| outward.verdict(call));
        if self.rules.is_empty() {
            return stricter(self.otherwise.verdict(call), outward);
        }
        let [users, projects] = match self.first(call) {
            Ok(first) => first,
            Err(denied) => return denied,
        };
        // A project can only narrow what its user says, by a rule or as a floor.
        let floor = || self.floor.as_ref().map(|floor| floor.verdict(call));
        match (projects, users) {
            (None, None) => stricter(self.otherwise.verdict(call), outward),
            (None, Some(users)) => users,
            (Some(projects), Some(users)) => stricter(projects, Some(users)),
            (Some(projects), None) => stricter(stricter(projects, floor()), outward),
        }
    }

    /// All that it decides by, and the names of its rules, by which approvals are told apart.
    fn version(&self) -> Hash {
        version_of(self)
    }
}

/// The stricter of both; what was said first, where neither is.
fn stricter(said: Verdict, other: Option<Verdict>) -> Verdict {
    match other {
        Some(other) if other.says() > said.says() => other,
        Some(_) | None => said,
    }
}

/// Whether a call could act on more than its workspace, or its tool wants a confirmation.
fn reaches_out(call: &Call) -> bool {
    let effects = call.effects();
    // What a child run does is judged call by call.
    if call.registered().is_recursive() && !effects.confirm {
        return false;
    }
    let is_loose = effects.process && call.enforced_by() < Enforced::Sandbox;
    effects.reach == Reach::Network || effects.spend || effects.confirm || is_loose
}

impl Fallback {
    fn of(otherwise: Otherwise, rule: Cow<'static, str>) -> Fallback {
        let word = |says| {
            let told = (says == Says::Deny).then_some(DENIED);
            Word { says, rule: rule.clone(), told }
        };
        let (reads, writes) = match otherwise {
            Otherwise::Ask => (word(Says::Allow), word(Says::Ask)),
            Otherwise::Allow => (word(Says::Allow), word(Says::Allow)),
            Otherwise::Deny => (word(Says::Deny), word(Says::Deny)),
        };
        Fallback { reads, writes, confirm: rule.clone() }
    }

    fn verdict(&self, call: &Call) -> Verdict {
        let effects = call.effects();
        let denies_all = (self.reads.says, self.writes.says) == (Says::Deny, Says::Deny);
        if effects.confirm && !denies_all {
            return Verdict::ask(self.confirm.clone());
        }
        let Word { says, rule, told } = match effects.access {
            Access::Pure | Access::Read => &self.reads,
            Access::Write => &self.writes,
        };
        let rule = rule.clone();
        match (says, told) {
            (Says::Allow, _) => Verdict::allow(rule),
            (Says::Ask, _) => Verdict::ask(rule),
            (Says::Deny, Some(told)) => Verdict::deny(rule, *told),
            (Says::Deny, None) => {
                let name = call.tool().name().as_str();
                Verdict::deny(rule, format!("`{name}` is not allowed in this run"))
            }
        }
    }
}

/// Denies everything.
impl Default for Fallback {
    fn default() -> Fallback {
        let word = || Word { says: Says::Deny, rule: "deny all".into(), told: None };
        Fallback { reads: word(), writes: word(), confirm: "confirm".into() }
    }
}
