//! The policy that `tooltape.toml` states.

mod rule;

use serde::Serialize;
use tooltape::limits::RIGHTS_MAX;
use tooltape::rule::Otherwise;
use tooltape::{Right, RightError, Rights, Rules, Run, Toolbox};

use crate::config::{DefaultWord, Found, Layers, Rank};
use crate::report::Result;

/// What asks about calls that an untrusted project allows and that reach out of its workspace.
pub(crate) const UNTRUSTED: &str = "the project is not trusted";

/// The rules of all layers together.
pub(crate) fn stated(layers: &Layers, toolbox: &Toolbox) -> Result<Rules> {
    let mut rules = match layers.policy_default() {
        Some(found) => Rules::deny_all().otherwise(otherwise(found.value), found.rule_name()),
        None => Rules::deny_all().otherwise(Otherwise::Ask, "default"),
    };
    // What a user's own default says, beyond which no rule of a project leads.
    let said = layers.narrowed("policy.default", |config| config.policy.default);
    let floor = said
        .iter()
        .find(|found| found.layer.rank() == Rank::User && found.value != DefaultWord::Allow);
    if let Some(found) = floor {
        rules = rules.floor(otherwise(found.value), found.rule_name());
    }
    // A project's files are its own; what is beyond them is not, unless its user trusts it.
    let users_allow = said
        .iter()
        .any(|found| found.layer.rank() != Rank::Project && found.value == DefaultWord::Allow);
    if layers.is_untrusted() && !users_allow {
        rules = rules.outward(Otherwise::Ask, UNTRUSTED);
    }
    layers.rules().try_fold(rules, |rules, found| Ok(rules.rule(rule::read(&found, toolbox)?)))
}

fn otherwise(word: DefaultWord) -> Otherwise {
    match word {
        DefaultWord::Ask => Otherwise::Ask,
        DefaultWord::Allow => Otherwise::Allow,
        DefaultWord::Deny => Otherwise::Deny,
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
