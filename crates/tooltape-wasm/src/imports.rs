//! What components may import, and what stands behind each import.

mod own;
mod outside;
mod streams;
mod wasi;

use std::fmt;

use tooltape::Right;
use wasmtime::component::types::{ComponentInstance, ComponentItem};
use wasmtime::component::{Component, Linker, ResourceType};

use crate::host::{Host, Stop};

/// The package of the world, and the newest version of it that is known here.
const PACKAGE: &str = "tooltape:tool/";
const VERSION: (u64, u64) = (1, 0);
/// The interface that makes a component a tool.
const TOOL: &str = "tooltape:tool/tool";

/// One import of a component: what it can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The interface with its version, such as `tooltape:tool/clock@1.0.0`.
    pub name: String,
    /// What stands behind it.
    pub kind: ImportKind,
}

impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What stands behind an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ImportKind {
    /// Nothing that tells or changes anything: no arguments, no environment, an empty input.
    Quiet,
    /// Lines of progress.
    Progress,
    /// Whether the call should stop.
    Cancel,
    /// Lines for the host.
    Log,
    /// The moment of the call.
    Clock,
    /// Seeded randomness.
    Random,
    /// Documents that the calls of a run share.
    State,
    /// Files of the workspace.
    Files,
    /// Pages of the web.
    Http,
    /// Functions that standard libraries link and that stop the call: there are no such files.
    Inert,
}

impl ImportKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            ImportKind::Quiet => "quiet",
            ImportKind::Progress => "progress",
            ImportKind::Cancel => "cancel",
            ImportKind::Log => "log",
            ImportKind::Clock => "clock",
            ImportKind::Random => "random",
            ImportKind::State => "state",
            ImportKind::Files => "files",
            ImportKind::Http => "http",
            ImportKind::Inert => "inert",
        }
    }

    /// What a component must declare to have it, in words; nothing where anybody may have it.
    pub fn needs(self) -> Option<&'static str> {
        match self {
            ImportKind::Clock => Some("the right `clock:read:now`"),
            ImportKind::Random => Some("the right `random:read:any`"),
            ImportKind::State => Some("the access `read` or `write`"),
            ImportKind::Files => Some("a right to files, such as `fs:read:data`"),
            ImportKind::Http => Some("a right to a host, such as `net:get:api.example.com`"),
            ImportKind::Quiet
            | ImportKind::Progress
            | ImportKind::Cancel
            | ImportKind::Log
            | ImportKind::Inert => None,
        }
    }

    /// Whether one of these rights is what it needs.
    pub(crate) fn is_declared(self, rights: &[Right]) -> bool {
        let any = |is: fn(&Right) -> bool| rights.iter().any(is);
        match self {
            ImportKind::Clock => any(|right| matches!(right, Right::ClockRead)),
            ImportKind::Random => any(|right| matches!(right, Right::RandomRead)),
            ImportKind::Files => any(|right| matches!(right, Right::FsRead(_) | Right::FsWrite(_))),
            ImportKind::Http => any(|right| matches!(right, Right::Net(_))),
            ImportKind::State
            | ImportKind::Quiet
            | ImportKind::Progress
            | ImportKind::Cancel
            | ImportKind::Log
            | ImportKind::Inert => true,
        }
    }

    /// Whether what is behind it is neither the arguments nor decided by the run's tape.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, ImportKind::State | ImportKind::Files | ImportKind::Http)
    }

    /// What stands behind an interface, if anything does.
    fn of(interface: &str, version: Option<&str>) -> Option<ImportKind> {
        if let Some(own) = interface.strip_prefix(PACKAGE) {
            return Some(match own {
                "types" => ImportKind::Quiet,
                "progress" => ImportKind::Progress,
                "cancel" => ImportKind::Cancel,
                "log" => ImportKind::Log,
                "clock" => ImportKind::Clock,
                "random" => ImportKind::Random,
                "state" => ImportKind::State,
                "files" => ImportKind::Files,
                "http" => ImportKind::Http,
                _ => return None,
            });
        }
        if !version.is_some_and(|version| version.starts_with("0.2.")) {
            return None;
        }
        Some(match interface {
            "wasi:clocks/wall-clock" | "wasi:clocks/monotonic-clock" => ImportKind::Clock,
            "wasi:random/random" | "wasi:random/insecure" | "wasi:random/insecure-seed" => {
                ImportKind::Random
            }
            "wasi:filesystem/types" | "wasi:filesystem/preopens" => ImportKind::Inert,
            "wasi:cli/environment"
            | "wasi:cli/exit"
            | "wasi:cli/stdin"
            | "wasi:cli/stdout"
            | "wasi:cli/stderr"
            | "wasi:cli/terminal-input"
            | "wasi:cli/terminal-output"
            | "wasi:cli/terminal-stdin"
            | "wasi:cli/terminal-stdout"
            | "wasi:cli/terminal-stderr"
            | "wasi:io/error"
            | "wasi:io/poll"
            | "wasi:io/streams" => ImportKind::Quiet,
            _ => return None,
        })
    }
}

/// What a component wants of the world.
pub(crate) enum Wanted {
    /// An import that can be given.
    Known(Import),
    /// One that nobody gives.
    Unknown(String),
    /// One of ours in a version that is not known here.
    Newer(String),
}

/// All imports of a component, by name.
pub(crate) fn wanted(component: &Component) -> Vec<Wanted> {
    let (ty, engine) = (component.component_type(), component.engine());
    let mut names: Vec<&str> = ty.imports(engine).map(|(name, _)| name).collect();
    names.sort_unstable();
    let wanted = names.into_iter().map(|name| {
        let (interface, version) = parted(name);
        if is_newer(interface, version) {
            return Wanted::Newer(name.to_owned());
        }
        match ImportKind::of(interface, version) {
            Some(kind) => Wanted::Known(Import { name: name.to_owned(), kind }),
            None => Wanted::Unknown(name.to_owned()),
        }
    });
    wanted.collect()
}

/// The interface that makes a component a tool, under the name that it has there.
pub(crate) enum Exported {
    /// In a version that is known here.
    Tool(String),
    /// In another.
    Newer(String),
    /// There is none.
    Nothing,
}

/// Whether a component is a tool.
pub(crate) fn exported(component: &Component) -> Exported {
    let (ty, engine) = (component.component_type(), component.engine());
    let mut exports = ty.exports(engine).map(|(name, _)| name);
    let Some(name) = exports.find(|name| parted(name).0 == TOOL) else { return Exported::Nothing };
    let (interface, version) = parted(name);
    match is_newer(interface, version) {
        true => Exported::Newer(name.to_owned()),
        false => Exported::Tool(name.to_owned()),
    }
}

/// An interface and its version.
fn parted(name: &str) -> (&str, Option<&str>) {
    name.split_once('@').map_or((name, None), |(interface, version)| (interface, Some(version)))
}

/// Whether it is an interface of ours in a version that is not known here: within `1.x` all that
/// is older is.
fn is_newer(interface: &str, version: Option<&str>) -> bool {
    let known = || {
        // What comes before a release, such as `1.0.0-next`, may be anything.
        let mut numbers = version?.split('.').map(|number| number.parse::<u64>().ok());
        let (major, minor, _) = (numbers.next()??, numbers.next()??, numbers.next()??);
        Some(major == VERSION.0 && minor <= VERSION.1 && numbers.next().is_none())
    };
    interface.starts_with(PACKAGE) && known() != Some(true)
}

/// All that components may import, but for what is inert.
pub(crate) fn linker(engine: &wasmtime::Engine) -> Result<Linker<Host>, wasmtime::Error> {
    let mut linker = Linker::new(engine);
    own::define(&mut linker)?;
    outside::define(&mut linker)?;
    streams::define(&mut linker)?;
    wasi::define(&mut linker)?;
    Ok(linker)
}

/// The resources of `wasi:filesystem`, of which there are none.
struct NoFile;

/// The same for one component, whose inert imports stop a call that uses them.
pub(crate) fn with_inert(
    linker: &Linker<Host>,
    component: &Component,
    imports: &[Import],
) -> Result<Linker<Host>, wasmtime::Error> {
    let mut linker = linker.clone();
    let (ty, engine) = (component.component_type(), component.engine());
    for import in imports.iter().filter(|import| import.kind == ImportKind::Inert) {
        if let Some(found) = ty.get_import(engine, &import.name)
            && let ComponentItem::ComponentInstance(instance) = found.ty
        {
            inert(&mut linker, engine, &import.name, &instance)?;
        }
    }
    Ok(linker)
}

fn inert(
    linker: &mut Linker<Host>,
    engine: &wasmtime::Engine,
    interface: &str,
    instance: &ComponentInstance,
) -> Result<(), wasmtime::Error> {
    let mut defined = linker.instance(interface)?;
    for (name, item) in instance.exports(engine) {
        match item.ty {
            // Standard libraries look here first, and find that there is nothing.
            ComponentItem::ComponentFunc(_) if name == "get-directories" => {
                wasi::no_folders::<NoFile>(&mut defined, name)?;
            }
            ComponentItem::ComponentFunc(_) => {
                let function = format!("{interface}#{name}");
                defined.func_new(name, move |_, _, _, _| {
                    Err(wasmtime::Error::new(Stop::Inert(function.clone())))
                })?;
            }
            // The others are those of `wasi:io`, which are defined there.
            ComponentItem::Resource(_)
                if matches!(name, "descriptor" | "directory-entry-stream") =>
            {
                defined.resource(name, ResourceType::host::<NoFile>(), |_, _| Ok(()))?;
            }
            _ => {}
        }
    }
    Ok(())
}
