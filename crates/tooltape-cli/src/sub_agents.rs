//! Sub-agents that the configuration names: tools that give tasks to models.

use std::path::PathBuf;
use std::sync::OnceLock;

use tooltape::{
    AgentLimits, BoxFuture, Domain, Hash, Message, Model, ModelError, Redactor, Request, Script,
    SubAgent, Toolbox, Turn,
};

use crate::config::{Found, Layers, SubAgentTable};
use crate::exit::Exit;
use crate::model::ModelName;
use crate::provider::{self, Remote};
use crate::report::{Problem, Result};
use crate::script::ScriptFile;

/// The sub-agent that there is without a word, where the agent's model is no script.
const OWN: &str = "sub_agent";
const OWN_DESCRIPTION: &str = "Gives a task to another agent like you, with the same tools and a \
    conversation of its own, and returns its answer. Good for what takes many calls and comes to a \
    short answer.";

/// How many characters of a hash stand in the version of a sub-agent.
const VERSION_CHARS: usize = 16;

/// Adds the sub-agents of the configuration to the tools.
pub(crate) fn add(layers: &Layers, tools: &mut Toolbox) -> Result {
    let mut added: Vec<&str> = Vec::new();
    for (name, found) in layers.sub_agents() {
        // What a stronger layer says stands.
        if added.contains(&name) {
            continue;
        }
        added.push(name);
        let SubAgentTable { description, instructions, tools: only, turns, tokens, .. } =
            found.value;
        let mut limits = AgentLimits::default();
        limits.turns = turns.map_or(limits.turns, |turns| turns.get());
        limits.tokens = tokens.map_or(limits.tokens, |tokens| tokens.get().into());
        let agent = SubAgent::new(name, description.as_str(), model(layers, &found)?);
        // Who approves a task approves these, too.
        let mut agent = agent.limits(limits).version(version(&format!("{:?}", found.value)));
        if let Some(instructions) = instructions {
            agent = agent.instructions(instructions.as_str());
        }
        if let Some(only) = only.clone() {
            agent = agent.only(move |spec| only.iter().any(|name| **name == *spec.name));
        }
        tools.add(agent.tool()).map_err(|err| found.problem(None, err.to_string()))?;
    }
    match provider::named(layers) {
        Some(own) if !is_script(&own.value) && tools.get(OWN).is_none() => {
            provider::check_server(&own)?;
            let agent = SubAgent::new(OWN, OWN_DESCRIPTION, Lent::behind(&own.value));
            let agent = agent.version(version(&own.value.to_string()));
            tools.add(agent.tool()).map_err(|err| own.problem(None, err.to_string()))?;
            Ok(())
        }
        Some(_) | None => Ok(()),
    }
}

/// A version that says what a sub-agent is made of.
fn version(made_of: &str) -> String {
    format!(
        "1.0.0+{}",
        &Hash::of(Domain::Definition, made_of.as_bytes()).to_string()[..VERSION_CHARS]
    )
}

/// What keeps the keys of all models that may be asked out of what is written down.
pub(crate) fn redactor(layers: &Layers) -> Redactor {
    let own = provider::named(layers).map(|found| found.value);
    let lent = layers.sub_agents().filter_map(|(_, found)| found.value.model.clone());
    let names: Vec<ModelName> = own.into_iter().chain(lent).collect();
    provider::redactor(&names)
}

/// The model of a sub-agent.
fn model(layers: &Layers, found: &Found<'_, &SubAgentTable>) -> Result<Lent> {
    let nameless = || found.problem(None, "it has no model: the agent's own is a script");
    let own = found.value.model.clone().map(|name| found.part("model").holding(name));
    let (is_own, named) = match own {
        Some(named) => (true, named),
        None => (false, provider::named(layers).ok_or_else(nameless)?),
    };
    provider::check_server(&named)?;
    match (&named.value, is_own) {
        (ModelName::ScriptFile(file), true) => {
            Ok(Lent::Script { file: named.below(file)?, found: OnceLock::new() })
        }
        (ModelName::Script, _) | (ModelName::ScriptFile(_), false) => Err(nameless()),
        (ModelName::Provided(..) | ModelName::Served { .. }, _) => Ok(Lent::behind(&named.value)),
    }
}

/// The model of a sub-agent. It is looked for when it is asked first: nobody needs a key or a file
/// to see which tools there are.
enum Lent {
    /// It plays a script, from its beginning in every task.
    Script { file: PathBuf, found: OnceLock<Result<Script>> },
    /// It is behind an API.
    Behind { name: ModelName, found: Box<OnceLock<Result<Remote>>> },
}

impl Lent {
    fn behind(name: &ModelName) -> Lent {
        Lent::Behind { name: name.clone(), found: Box::default() }
    }
}

impl Model for Lent {
    fn turn<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, std::result::Result<Turn, ModelError>> {
        match self {
            Lent::Script { file, found } => {
                let found = found.get_or_init(|| ScriptFile::read(file)?.parse());
                let turn = found.as_ref().map_err(|problem| failed(problem)).and_then(|script| {
                    let is_turn = |message: &&Message| matches!(message, Message::Model(_));
                    let (taken, turns) =
                        (request.messages.iter().filter(is_turn).count(), script.turns());
                    let over = ModelError::Over { turn: taken + 1, turns: turns.len() };
                    turns.get(taken).cloned().ok_or(over)
                });
                Box::pin(async move { turn })
            }
            Lent::Behind { name, found } => {
                let missing = || Problem::new(Exit::Usage, "model.unusable", "it is a script");
                let found = found.get_or_init(|| provider::behind(name)?.ok_or_else(missing));
                match found {
                    Ok(remote) => remote.model.turn(request),
                    Err(problem) => {
                        let failed = failed(problem);
                        Box::pin(async move { Err(failed) })
                    }
                }
            }
        }
    }
}

/// Why a model that was looked for takes no turn.
fn failed(problem: &Problem) -> ModelError {
    ModelError::Failed(problem.message.clone())
}

/// Whether a model is a script.
fn is_script(name: &ModelName) -> bool {
    match name {
        ModelName::Script | ModelName::ScriptFile(_) => true,
        ModelName::Provided(..) | ModelName::Served { .. } => false,
    }
}
