//! A tool as a toolbox holds it: checked, its schemas compiled once, its definition hashed.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::Tool;
use crate::canon::{Canon, Domain, Hash, Uncanonical};
use crate::id::{Name, NameError, ToolId, VersionError};
use crate::schema::{Checker, SchemaError};
use crate::spec::{Access, Bounds, Effects, Retry, Spec};

/// A tool that passed every check at registration.
pub struct Registered {
    tool: Arc<dyn Tool>,
    id: ToolId,
    definition: Hash,
    input: Checker,
    output: Option<Checker>,
}

impl Registered {
    /// Checks a tool's name, version, schemas and needs, and compiles its schemas.
    pub fn new(tool: Arc<dyn Tool>) -> Result<Registered, RegisterError> {
        let spec = tool.spec();
        let id = ToolId::new(Name::new(&spec.name)?, &spec.version)?;
        let refused = |at| {
            let tool = id.clone();
            move |source| RegisterError::Schema { tool, at, source }
        };
        let input = Checker::compile_input(&spec.input).map_err(refused("input"))?;
        let output = spec.output.as_ref().map(Checker::compile).transpose();
        let output = output.map_err(refused("output"))?;
        if spec.effects.access == Access::Pure
            && let Some(need) = spec.needs.iter().find(|need| !need.is_harmless())
        {
            return Err(RegisterError::Impure { tool: id, need: need.name() });
        }
        let definition = definition(spec)
            .map_err(|source| RegisterError::Definition { tool: id.clone(), source })?;
        Ok(Registered { id, definition, input, output, tool })
    }

    /// The tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// What the tool says about itself.
    pub fn spec(&self) -> &Spec {
        self.tool.spec()
    }

    /// Its checked name and version.
    pub fn id(&self) -> &ToolId {
        &self.id
    }

    /// The hash of everything that it declares, hooks aside.
    pub fn definition(&self) -> Hash {
        self.definition
    }

    /// Its compiled input schema.
    pub fn input(&self) -> &Checker {
        &self.input
    }

    /// Its compiled output schema.
    pub fn output(&self) -> Option<&Checker> {
        self.output.as_ref()
    }
}

/// What the definition hash covers, in the order in which a reader expects it.
#[derive(Serialize)]
struct Definition<'a> {
    name: &'a str,
    version: &'a str,
    description: &'a str,
    input: &'a Value,
    output: &'a Option<Value>,
    effects: &'a Effects,
    needs: Vec<String>,
    capabilities: &'a [String],
    bounds: &'a Bounds,
    retry: &'a Retry,
}

fn definition(spec: &Spec) -> Result<Hash, Uncanonical> {
    let canon = Canon::of(&Definition {
        name: &spec.name,
        version: &spec.version,
        description: &spec.description,
        input: &spec.input,
        output: &spec.output,
        effects: &spec.effects,
        needs: spec.needs.iter().map(|need| need.name()).collect(),
        capabilities: &spec.capabilities,
        bounds: &spec.bounds,
        retry: &spec.retry,
    })?;
    Ok(Hash::of(Domain::Definition, canon.as_str().as_bytes()))
}

/// Why a tool was refused at registration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Its name is not safe for every provider.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Its version is not like `1.0.0`.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// One of its schemas is refused.
    #[error("the {at} schema of `{tool}` is refused: {source}")]
    Schema {
        /// The tool.
        tool: ToolId,
        /// Which schema.
        at: &'static str,
        /// Why.
        source: SchemaError,
    },
    /// It says that it is `Pure`, and takes what reads or changes the world.
    #[error("`{tool}` declares access `Pure`, but takes `{need}`; declare `Read` or `Write`")]
    Impure {
        /// The tool.
        tool: ToolId,
        /// The grant.
        need: String,
    },
    /// Its declaration has no canonical form.
    #[error("the definition of `{tool}` has no canonical form: {source}")]
    Definition {
        /// The tool.
        tool: ToolId,
        /// Why.
        source: Uncanonical,
    },
    /// Another tool has that name.
    #[error("two tools are named `{name}`: `{first}` is registered, `{second}` is refused")]
    Duplicate {
        /// The name.
        name: Name,
        /// The tool that stays.
        first: ToolId,
        /// The tool that was refused.
        second: ToolId,
    },
    /// An alias is taken.
    #[error("alias `{alias}` for `{tool}` is already the name or an alias of `{taken_by}`")]
    AliasTaken {
        /// The alias.
        alias: Name,
        /// The tool that should have had it.
        tool: Name,
        /// The tool that has it.
        taken_by: Name,
    },
    /// There is no tool of that name.
    #[error("there is no tool named `{name}` to give an alias to")]
    Unknown {
        /// The name.
        name: String,
    },
}
