//! Rules that cannot do what somebody wrote them for.

use std::fmt;

use super::argument::{Argument, Test};
use super::literal::{Literal, Number};
use super::rule::{Effect, Mark, Rule, Says, Walls};
use super::rules::Rules;
use crate::spec::{Access, Enforced, Reach};
use crate::tool::Registered;

/// Why a rule never matches, or could never have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flaw {
    /// Which part of the rule it is in.
    pub part: Part,
    /// What is wrong with it.
    pub why: String,
}

/// A part of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// What the tool does to the world.
    Access,
    /// What the tool declares.
    Effects,
    /// How the tool is held to that.
    Walls,
    /// The label of what the model was shown.
    Marks,
    /// The hosts that a call asks.
    Hosts,
    /// What an argument must be like.
    Argument(Argument),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

fn flaw(part: Part, why: impl Into<String>) -> Option<Flaw> {
    Some(Flaw { part, why: why.into() })
}

impl Rule {
    /// Why it matches no call at all, as far as can be told from it alone.
    pub fn flaw(&self) -> Option<Flaw> {
        let accesses = [Effect::Pure, Effect::Read, Effect::Write];
        let accesses = || self.effects.iter().filter(|effect| accesses.contains(effect));
        let named = self.access.map(effect_of);
        if let Some(other) =
            accesses().find(|it| Some(**it) != named.or(accesses().next().copied()))
        {
            let why = format!("no tool is `{}` and something else, too", other.word());
            return flaw(Part::Effects, format!("{why}, so this rule would never match"));
        }
        let has = |mark| self.marks.contains(&mark);
        if has(Mark::Trusted) && has(Mark::Untrusted) {
            return flaw(Part::Marks, "nothing is both `trusted` and `untrusted`");
        }
        if self.says == Says::Allow && has(Mark::Internal) && has(Mark::Secret) {
            let why = "what is `secret` is more than `internal`: name one of them";
            return flaw(Part::Marks, why);
        }
        if self.walls == Some(Walls::Below(Enforced::Declaration)) {
            return flaw(Part::Walls, "nothing is weaker than `declaration`");
        }
        self.arguments.iter().enumerate().find_map(|(at, (argument, test))| {
            let part = || Part::Argument(argument.clone());
            if let (Test::Glob(glob), Says::Allow) = (test, self.says)
                && !glob.is_plain()
            {
                let why = format!("no plain relative path is like `{glob}`");
                return flaw(part(), format!("{why}, so this rule would never allow anything"));
            }
            if is_empty(test) {
                return flaw(part(), format!("nothing is {test}, so this rule would never match"));
            }
            let others = self.arguments[..at].iter().filter(|(other, _)| other == argument);
            let mut others = others.map(|(_, other)| other);
            let other = others.find(|other| excludes(test, other) || excludes(other, test))?;
            let why = format!("nothing is both {other} and {test}");
            flaw(part(), format!("{why}, so this rule would never match"))
        })
    }

    /// Why it matches no call of this tool, which it names.
    pub fn flaw_for(&self, tool: &Registered) -> Option<Flaw> {
        let (name, effects) = (tool.id().name(), tool.effects());
        if self.access.is_some_and(|access| access != effects.access) {
            let declared = effect_of(effects.access).word();
            return flaw(Part::Access, format!("`{name}` declares access `{declared}`"));
        }
        if let Some(effect) = self.effects.iter().find(|effect| !effect.is_declared(effects)) {
            return flaw(Part::Effects, format!("`{name}` does not declare `{}`", effect.word()));
        }
        if self.walls.is_some_and(|walls| !walls.covers(tool.enforced_by())) {
            return flaw(Part::Walls, format!("`{name}` is enforced by `{}`", tool.enforced_by()));
        }
        let names_hosts = tool.spec().capabilities.iter().any(|it| it.starts_with("net:"));
        match (self.hosts.is_empty() || names_hosts, effects.reach, self.says) {
            (true, _, _) | (false, Reach::Network, Says::Ask | Says::Deny) => None,
            (false, Reach::Local, _) => flaw(Part::Hosts, format!("`{name}` asks no host")),
            (false, Reach::Network, Says::Allow) => {
                let why = format!("`{name}` does not say which hosts it asks");
                flaw(Part::Hosts, format!("{why}, so this rule would never allow it"))
            }
        }
    }

    /// Whether it matches whatever another rule does, as far as can be told from both.
    fn covers(&self, other: &Rule) -> bool {
        // A rule that allows covers less of what is in doubt.
        let is_sure = |rule: &Rule| {
            rule.hosts.is_empty() && rule.arguments.is_empty() && rule.marks.is_empty()
        };
        let covers_doubts = |rule: &Rule| rule.says != Says::Allow || is_sure(rule);
        (self.tool.is_none() || self.tool == other.tool)
            && (self.access.is_none() || self.access == other.access)
            && self.effects.iter().all(|effect| other.effects.contains(effect))
            && self.marks.iter().all(|mark| other.marks.contains(mark))
            && (self.walls.is_none() || self.walls == other.walls)
            && (self.hosts.is_empty()
                || !other.hosts.is_empty()
                    && other.hosts.iter().all(|it| self.hosts.iter().any(|mine| mine.covers(it))))
            && self.arguments.iter().all(|(argument, test)| {
                let of_same = other.arguments.iter().filter(|(other, _)| other == argument);
                of_same.into_iter().any(|(_, other)| is_implied(test, other))
            })
            && (covers_doubts(self) || !covers_doubts(other))
    }
}

impl Rules {
    /// Rules that never decide, each behind the one that always decides before it.
    pub fn shadowed(&self) -> Vec<[&Rule; 2]> {
        let shadowed = self.rules().iter().enumerate().filter_map(|(at, rule)| {
            let earlier = self.rules()[..at].iter().filter(|it| it.side == rule.side);
            let denies = self.rules().iter().filter(|it| it.says == Says::Deny);
            let before: Vec<&Rule> = match rule.says {
                Says::Deny => earlier.filter(|it| it.says == Says::Deny).collect(),
                Says::Allow | Says::Ask => earlier.chain(denies).collect(),
            };
            let by = before.into_iter().find(|it| it.covers(rule))?;
            Some([by, rule])
        });
        shadowed.collect()
    }
}

fn effect_of(access: Access) -> Effect {
    match access {
        Access::Pure => Effect::Pure,
        Access::Read => Effect::Read,
        Access::Write => Effect::Write,
    }
}

/// Whether no value passes a test.
fn is_empty(test: &Test) -> bool {
    match test {
        Test::OneOf(literals) => literals.is_empty(),
        Test::Host(hosts) => hosts.is_empty(),
        Test::ShorterThan(chars) => *chars == 0,
        Test::Glob(_) | Test::AtLeast(_) | Test::AtMost(_) | Test::LongerThan(_) => false,
    }
}

/// Whether no value passes both tests, as far as the first can tell.
fn excludes(one: &Test, other: &Test) -> bool {
    match (one, other) {
        (Test::OneOf(literals), other) => !literals.iter().any(|it| may_pass(it, other)),
        (Test::AtLeast(least), Test::AtMost(most)) => least > most,
        (Test::AtLeast(_) | Test::AtMost(_), other) => is_of_text(other),
        (Test::LongerThan(chars), Test::ShorterThan(than)) => *than <= chars.saturating_add(1),
        (Test::Glob(_) | Test::Host(_) | Test::LongerThan(_) | Test::ShorterThan(_), _) => false,
    }
}

fn is_of_text(test: &Test) -> bool {
    match test {
        Test::Glob(_) | Test::Host(_) | Test::LongerThan(_) | Test::ShorterThan(_) => true,
        Test::OneOf(_) | Test::AtLeast(_) | Test::AtMost(_) => false,
    }
}

fn may_pass(literal: &Literal, test: &Test) -> bool {
    match (literal, test) {
        (literal, Test::OneOf(literals)) => literals.contains(literal),
        (Literal::Number(number), Test::AtLeast(least)) => number >= least,
        (Literal::Number(number), Test::AtMost(most)) => number <= most,
        (Literal::Number(_) | Literal::Bool(_), test) => !is_of_text(test) && !is_range(test),
        (Literal::Text(text), Test::LongerThan(chars)) => text.chars().count() > *chars,
        (Literal::Text(text), Test::ShorterThan(chars)) => text.chars().count() < *chars,
        (Literal::Text(text), Test::Glob(glob)) => glob.matches(text) != Some(false),
        (Literal::Text(_), Test::Host(_)) => true,
        (Literal::Text(_), Test::AtLeast(_) | Test::AtMost(_)) => false,
    }
}

fn is_range(test: &Test) -> bool {
    matches!(test, Test::AtLeast(_) | Test::AtMost(_))
}

/// Whether whatever passes `other` passes this test.
fn is_implied(test: &Test, other: &Test) -> bool {
    let all = |literals: &[Literal], passes: &dyn Fn(&Number) -> bool| {
        literals.iter().all(|literal| matches!(literal, Literal::Number(it) if passes(it)))
    };
    match (test, other) {
        (Test::AtLeast(mine), Test::AtLeast(others)) => others >= mine,
        (Test::AtMost(mine), Test::AtMost(others)) => others <= mine,
        (Test::AtLeast(mine), Test::OneOf(literals)) => all(literals, &|it| it >= mine),
        (Test::AtMost(mine), Test::OneOf(literals)) => all(literals, &|it| it <= mine),
        (Test::LongerThan(mine), Test::LongerThan(others)) => others >= mine,
        (Test::ShorterThan(mine), Test::ShorterThan(others)) => others <= mine,
        (Test::OneOf(mine), Test::OneOf(others)) => others.iter().all(|it| mine.contains(it)),
        (test, other) => test == other,
    }
}
