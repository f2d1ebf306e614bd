//! A tool as a toolbox holds it: checked, its schemas compiled once, its definition hashed.

use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::Tool;
use super::redeclared::Redeclared;
use crate::canon::{Canon, Domain, Hash, Peek, Uncanonical};
use crate::fault::{ToolError, panic_text};
use crate::grant::{Need, use_of};
use crate::id::{Name, NameError, ToolId, VersionError};
use crate::label::Label;
use crate::right::{Right, RightError, SpendScope};
use crate::schema::{Checker, SchemaError};
use crate::spec::{
    Access, Bounds, Determinism, Effects, Enforced, Footprint, FootprintOf, Requirement, Retry,
    Spec, Typed,
};

/// A tool that passed every check at registration.
pub struct Registered {
    tool: Arc<dyn Tool>,
    id: ToolId,
    definition: Hash,
    input: Checker,
    output: Option<Checker>,
    /// What a call needs to be allowed.
    requires: Box<[Requirement]>,
    /// What computes a call's footprint: the host's word, or else the tool's.
    touches: Option<FootprintOf>,
    promoted: bool,
    /// Who holds it to what it declares.
    enforced: Enforced,
    effects: Effects,
    /// Whether it is a pure function of its arguments and nothing else.
    silent: bool,
    recursive: bool,
    /// Whether it says what a call spends.
    spends: bool,
    /// The labels of its results: to a reader, and to a strict one.
    labels: [Option<Arc<Label>>; 2],
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
        let hook = spec.hooks.reconcile.as_ref().map_or(&[][..], |hook| hook.needs());
        let secrets = spec.needs.iter().chain(hook).filter_map(|need| need.secret());
        let secrets: BTreeSet<String> = secrets.map(use_of).collect();
        let requires = spec.capabilities.iter().chain(&secrets);
        let requires: Box<[_]> = requires.map(|text| Requirement::read(text)).collect();
        let spends = requires.iter().any(Requirement::is_spending);
        let (touches, effects) = (spec.hooks.footprint.clone(), spec.effects.clone());
        let (silent, recursive, promoted) = (spec.is_silent(), spec.is_recursive(), false);
        let enforced = Enforced::default();
        let labels = [false, true].map(|strict| spec.results(strict).kept());
        Ok(Registered {
            id,
            definition,
            input,
            output,
            requires,
            touches,
            promoted,
            enforced,
            effects,
            silent,
            recursive,
            spends,
            labels,
            tool,
        })
    }

    /// The same tool, whose footprint the host computes.
    pub(crate) fn touching(&self, touches: FootprintOf) -> Result<Registered, RegisterError> {
        if self.spec().effects.access == Access::Pure {
            return Err(self.misfit("it touches nothing"));
        }
        let again = Registered::new(self.tool.clone())?;
        let (promoted, enforced) = (self.promoted, self.enforced);
        Ok(Registered { touches: Some(touches), promoted, enforced, ..again })
    }

    /// The same tool, whose writes the host lets overlap.
    pub(crate) fn promoted(&self) -> Result<Registered, RegisterError> {
        if self.spec().effects.access != Access::Write {
            return Err(self.misfit("only a `Write` tool can be promoted"));
        }
        let again = Registered::new(self.tool.clone())?;
        let (touches, enforced) = (self.touches.clone(), self.enforced);
        Ok(Registered { touches, enforced, promoted: true, ..again })
    }

    /// The same tool, of which the host says who holds it to what it declares.
    pub(crate) fn enforced(&self, enforced: Enforced) -> Result<Registered, RegisterError> {
        let again = Registered::new(self.tool.clone())?;
        let (touches, promoted) = (self.touches.clone(), self.promoted);
        Ok(Registered { touches, promoted, enforced, ..again })
    }

    /// The same tool, of which the host says something else.
    pub(crate) fn redeclared(
        &self,
        change: impl FnOnce(&mut Spec),
    ) -> Result<Registered, RegisterError> {
        let again = Registered::new(Arc::new(Redeclared::new(self.tool.clone(), change)))?;
        let (touches, promoted, enforced) = (self.touches.clone(), self.promoted, self.enforced);
        Ok(Registered { touches, promoted, enforced, ..again })
    }

    fn misfit(&self, why: &'static str) -> RegisterError {
        let (tool, access) = (self.id.clone(), self.spec().effects.access);
        RegisterError::Misfit { tool, access, why }
    }

    /// The tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// What the tool says about itself.
    #[inline]
    pub fn spec(&self) -> &Spec {
        self.tool.spec()
    }

    /// The rights that a call with these arguments needs, or why nobody holds one of them.
    pub fn needs_of(&self, args: &Canon) -> Result<Vec<Right>, RightError> {
        self.needs_in(&Peek::new(args))
    }

    /// The same, of arguments that somebody looks into anyway.
    pub(crate) fn needs_in(&self, args: &Peek<'_>) -> Result<Vec<Right>, RightError> {
        let mut rights = Vec::with_capacity(self.requires.len());
        for required in &self.requires {
            rights.extend(required.of(args)?);
        }
        Ok(rights)
    }

    /// What a call with these arguments spends, where it says so.
    #[inline]
    pub(crate) fn spends(&self, args: &Canon) -> Option<Box<[SpendScope]>> {
        if !self.spends {
            return None;
        }
        let peek = Peek::new(args);
        let needs = self.requires.iter().filter_map(|required| required.of(&peek).ok()).flatten();
        let spends: Box<[SpendScope]> = needs
            .filter_map(|right| match right {
                Right::Spend(spend) => Some(spend),
                _ => None,
            })
            .collect();
        (!spends.is_empty()).then_some(spends)
    }

    /// The grants that it takes, and those of its hook.
    pub(crate) fn needs(&self) -> impl Iterator<Item = Need> {
        let hook = self.spec().hooks.reconcile.as_ref().map_or(&[][..], |hook| hook.needs());
        self.spec().needs.iter().chain(hook).copied()
    }

    /// What a call needs to be allowed.
    #[inline]
    pub(crate) fn requires(&self) -> &[Requirement] {
        &self.requires
    }

    /// What a call may do.
    #[inline]
    pub(crate) fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Whether it is a pure function of its arguments and nothing else.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// Whether a call runs a child run.
    #[inline]
    pub(crate) fn is_recursive(&self) -> bool {
        self.recursive
    }

    /// The label of its results, where that says anything.
    #[inline]
    pub(crate) fn label(&self, strict: bool) -> Option<&Arc<Label>> {
        self.labels[usize::from(strict)].as_ref()
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

    /// What computes the footprint of its calls: the host's word, or else its own.
    pub fn touches(&self) -> Option<&FootprintOf> {
        self.touches.as_ref()
    }

    /// Who holds it to what it declares.
    pub fn enforced_by(&self) -> Enforced {
        self.enforced
    }

    /// Whether its results surely depend on no more than it declares: where a WASM runtime hands a
    /// tool no more than arguments, a clock that stands and seeded randomness, there is no more.
    pub fn is_proven(&self) -> bool {
        self.enforced == Enforced::Wasm
            && self.effects().determinism != Determinism::NonDeterministic
    }

    /// Whether the host lets its writes overlap those of other promoted tools.
    pub fn is_promoted(&self) -> bool {
        self.promoted
    }

    /// What a call with these arguments reads and writes; `typed` is what resolving read of them.
    ///
    /// A tool that is `Pure` touches nothing. One that is `Read` and says what it writes cannot be
    /// right about both, so it counts as a write of everything. A hook that panics fails its call,
    /// before anything was executed.
    #[inline]
    pub fn footprint(&self, args: &Canon, typed: Option<&Typed>) -> Result<Footprint, ToolError> {
        let access = self.effects.access;
        let hook = match &self.touches {
            Some(hook) if access != Access::Pure => hook,
            Some(_) | None => return Ok(Footprint::everything(access)),
        };
        let footprint = panic::catch_unwind(AssertUnwindSafe(|| hook.of(args, typed)));
        let footprint = footprint.map_err(|panic| {
            let (name, text) = (hook.name(), panic_text(panic));
            ToolError::not_done("what the call would touch is not known")
                .code("footprint.panicked")
                .because(format!("the footprint hook `{name}` panicked: {text}"))
        })?;
        Ok(match footprint {
            Some(footprint) if access == Access::Read && footprint.is_write() => {
                Footprint::everything(Access::Write)
            }
            Some(footprint) => footprint,
            None => Footprint::everything(access),
        })
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
    #[serde(skip_serializing_if = "Option::is_none")]
    label: &'a Option<Label>,
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
        label: &spec.label,
        bounds: &spec.bounds,
        retry: &spec.retry,
    })?;
    Ok(Hash::of(Domain::Definition, canon.as_bytes()))
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
    #[error("there is no tool named `{name}`")]
    Unknown {
        /// The name.
        name: String,
    },
    /// What the host says of it does not go with its access.
    #[error("`{tool}` declares access `{access:?}`: {why}")]
    Misfit {
        /// The tool.
        tool: ToolId,
        /// What it declares.
        access: Access,
        /// Why that does not go together.
        why: &'static str,
    },
}
