//! What a component declares, held against what it imports.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tooltape::limits::SCHEMA_BYTES_MAX;
use tooltape::{
    Access, Bound, Bounds, Cancel, Clock, Determinism, Effects, Label, Progress, Random, Reach,
    Repeat, Right, Spec, Store,
};

use crate::error::RefusedImport;
use crate::guest::{GuestAccess, GuestBounds, GuestRepeat, GuestSpec};
use crate::imports::{Import, ImportKind};
use crate::limit::{
    BOUND_FUEL_MAX, BOUND_MEMORY_MAX, BOUND_WALL_MAX, DESCRIPTION_BYTES_MAX, NEEDS_MAX,
};
use crate::seam::{HostFiles, HostWeb};

/// A declaration that its component is held to.
pub(crate) struct Declared {
    pub(crate) spec: Spec,
    pub(crate) rights: Arc<[Right]>,
}

/// Why a declaration is refused.
pub(crate) enum Undeclared {
    /// It makes no sense.
    Wrong(String),
    /// The component imports more than it says.
    Imports(Vec<RefusedImport>),
}

/// Reads what a component says about itself.
pub(crate) fn declared(
    said: GuestSpec,
    imports: &[Import],
    hash: &str,
) -> Result<Declared, Undeclared> {
    let rights = rights(&said.needs).map_err(Undeclared::Wrong)?;
    let refused = refused(imports, |kind| match kind {
        ImportKind::State => !matches!(said.access, GuestAccess::Pure),
        kind => kind.is_declared(&rights),
    });
    if !refused.is_empty() {
        return Err(Undeclared::Imports(refused));
    }
    let (bytes, most) = (said.description.len(), DESCRIPTION_BYTES_MAX);
    if bytes > most {
        let why = format!("`description` has {bytes} bytes, expected at most {most}");
        return Err(Undeclared::Wrong(why));
    }
    let schema = |at: &str, text: &str| {
        // A text of this length is no schema, and its values would fill the memory.
        let (bytes, most) = (text.len(), SCHEMA_BYTES_MAX);
        if bytes > most {
            let why = format!("`{at}` has {bytes} bytes, expected at most {most}");
            return Err(Undeclared::Wrong(why));
        }
        let schema = serde_json::from_str::<Value>(text);
        schema.map_err(|err| Undeclared::Wrong(format!("`{at}` is no JSON: {err}")))
    };
    let input = schema("input", &said.input)?;
    let output = said.output.as_ref().map(|output| schema("output", output)).transpose()?;
    let mut spec = Spec::new(said.name.as_str(), said.description.as_str())
        .version(said.version.as_str())
        .input(input)
        .output(signed(output, hash).map_err(Undeclared::Wrong)?)
        .effects(effects(&said, imports, &rights))
        .bounds(bounds(&said.bounds).map_err(Undeclared::Wrong)?)
        .labelled(Label::untrusted(said.name.as_str()));
    spec.capabilities = said.needs;
    Ok(Declared { spec: taking(spec, imports), rights: rights.into() })
}

/// The imports that a component may not have, by what it declares.
pub(crate) fn refused(
    imports: &[Import],
    is_declared: impl Fn(ImportKind) -> bool,
) -> Vec<RefusedImport> {
    let refused = imports.iter().filter(|import| !is_declared(import.kind));
    let refused = refused.filter_map(|import| {
        let needs = import.kind.needs()?;
        Some(RefusedImport {
            import: import.name.clone(),
            why: format!("it does not declare {needs}"),
        })
    });
    refused.collect()
}

/// The grants that stand behind the imports.
pub(crate) fn taking(spec: Spec, imports: &[Import]) -> Spec {
    let has = |kind| imports.iter().any(|import| import.kind == kind);
    [
        (ImportKind::Progress, Spec::takes::<Progress> as fn(Spec) -> Spec),
        (ImportKind::Cancel, Spec::takes::<Cancel>),
        (ImportKind::Clock, Spec::takes::<Clock>),
        (ImportKind::Random, Spec::takes::<Random>),
        (ImportKind::State, Spec::takes::<Store>),
        (ImportKind::Files, Spec::takes::<HostFiles>),
        (ImportKind::Http, Spec::takes::<HostWeb>),
    ]
    .into_iter()
    .filter(|(kind, _)| has(*kind))
    .fold(spec, |spec, (_, takes)| takes(spec))
}

/// A schema of results that names the component: no model reads it, every result is checked by
/// it, and the definition's hash covers it.
pub(crate) fn signed(output: Option<Value>, hash: &str) -> Result<Value, String> {
    let mut output = match output {
        None => Map::new(),
        Some(Value::Object(output)) => output,
        Some(_) => return Err("`output` is no schema, expected an object".to_owned()),
    };
    output.insert("$comment".to_owned(), Value::from(format!("component {hash}")));
    Ok(Value::Object(output))
}

/// What a call can do, by what it imports. What it says can only add to that.
fn effects(said: &GuestSpec, imports: &[Import], rights: &[Right]) -> Effects {
    let has = |kind| imports.iter().any(|import| import.kind == kind);
    if !imports.iter().any(|import| import.kind.is_outside()) {
        let determinism = determinism(imports);
        return Effects { determinism, confirm: said.confirm, ..Effects::pure() };
    }
    let writes = rights.iter().any(|right| matches!(right, Right::FsWrite(_)));
    let access = match said.access {
        GuestAccess::Write => Access::Write,
        GuestAccess::Pure | GuestAccess::Read if writes => Access::Write,
        GuestAccess::Pure | GuestAccess::Read => Access::Read,
    };
    let repeat = match (access, said.repeat) {
        (Access::Write, GuestRepeat::Once) => Repeat::Once,
        (Access::Pure | Access::Read | Access::Write, _) => Repeat::Idempotent,
    };
    let reach = match has(ImportKind::Http) {
        true => Reach::Network,
        false => Reach::Local,
    };
    let (filesystem, confirm) = (has(ImportKind::Files), said.confirm);
    Effects { access, repeat, reach, filesystem, confirm, ..Effects::read() }
}

/// How far the results of what reaches nothing outside are decided by its arguments.
pub(crate) fn determinism(imports: &[Import]) -> Determinism {
    let has = |kind| imports.iter().any(|import| import.kind == kind);
    match (has(ImportKind::Cancel), has(ImportKind::Clock) || has(ImportKind::Random)) {
        // When somebody cancels a call is on no tape.
        (true, _) => Determinism::NonDeterministic,
        (false, true) => Determinism::Bounded,
        (false, false) => Determinism::Deterministic,
    }
}

fn rights(needs: &[String]) -> Result<Vec<Right>, String> {
    if needs.len() > NEEDS_MAX {
        return Err(format!("it declares {} rights, expected at most {NEEDS_MAX}", needs.len()));
    }
    let right = |need: &String| {
        let right = need.parse::<Right>().map_err(|err| format!("`needs`: {err}"))?;
        match right {
            Right::FsRead(_)
            | Right::FsWrite(_)
            | Right::Net(_)
            | Right::ClockRead
            | Right::RandomRead => Ok(right),
            Right::ProcessRun(_)
            | Right::ProcessShell(_)
            | Right::EnvRead(_)
            | Right::SecretUse(_)
            | Right::Spend(_)
            | Right::AgentsSpawn(_)
            | Right::McpCall(_) => {
                Err(format!("`needs` names `{right}`, which no component can use"))
            }
        }
    };
    needs.iter().map(right).collect()
}

fn bounds(said: &GuestBounds) -> Result<Bounds, String> {
    let bound = |name: &str, said: Option<u64>, most: u64| match said {
        None => Ok(Bound::Default),
        Some(bound) if (1..=most).contains(&bound) => Ok(Bound::At(bound)),
        Some(bound) => Err(format!("`bounds.{name}` is {bound}, expected 1 to {most}")),
    };
    let wall_max = u64::try_from(BOUND_WALL_MAX.as_millis()).unwrap_or(u64::MAX);
    let wall = match bound("wall-ms", said.wall_ms, wall_max)? {
        Bound::At(ms) => Bound::At(Duration::from_millis(ms)),
        Bound::Default | Bound::Unlimited => Bound::Default,
    };
    Ok(Bounds {
        wall,
        fuel: bound("fuel", said.fuel, BOUND_FUEL_MAX)?,
        memory: bound("memory", said.memory, BOUND_MEMORY_MAX)?,
        output_bytes: bound("output-bytes", said.output_bytes, u64::MAX)?,
        ..Bounds::default()
    })
}
