//! The layers of the configuration, and which of them decides a key.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use serde::Deserialize as _;
use toml::{Table, Value};

use super::file::{self, Source};
use super::keys::{KEYS, Key};
use super::{
    Config, CopyTable, DefaultWord, RuleTable, SecretTable, SubAgentTable, TouchesTable, Workspace,
};
use crate::args::Pair;
use crate::exit::Exit;
use crate::report::{Problem, Result};
use crate::trust::Trust;

/// The names of a project's configuration, of which a project has at most one.
const PROJECT_FILES: [&str; 2] = ["tooltape.toml", ".tooltape/config.toml"];
/// Variables that start so are ours, and a mistyped one is refused.
const VARIABLES_OURS: [&str; 5] = [
    "TOOLTAPE_AGENT_",
    "TOOLTAPE_TOOLS_",
    "TOOLTAPE_POLICY_",
    "TOOLTAPE_HTTP_",
    "TOOLTAPE_WORKSPACE",
];

/// All layers, the strongest first.
pub(crate) struct Layers(Vec<Layer>);

/// One source of settings.
pub(crate) struct Layer {
    rank: Rank,
    /// What a person calls it.
    name: String,
    /// Its text, where it is a file.
    source: Option<Source>,
    /// What its paths are relative to.
    folder: PathBuf,
    table: Table,
    config: Config,
    /// Whether it is the user's own, or a project's that the user trusts.
    trusted: bool,
}

/// The kinds of layers, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Flag,
    Variable,
    Project,
    User,
}

/// A value, and the layer that decided it.
pub(crate) struct Found<'a, T> {
    pub(crate) value: T,
    pub(crate) layer: &'a Layer,
    key: String,
}

/// Where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file, variable or flag.
    pub(crate) name: String,
    /// The line and the column, both counted from 1, where it is a file.
    pub(crate) at: Option<(usize, usize)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl Layers {
    /// Reads every layer. `project` is a folder, or a configuration file itself.
    pub(crate) fn read(flags: &[Pair], project: &Path) -> Result<Layers> {
        let mut layers = Vec::new();
        for Pair { name, value } in flags {
            let layer = Layer::setting(Rank::Flag, name, value, format!("--set {name}={value}"))?;
            // The last of two flags for the same key wins.
            layers.insert(0, layer);
        }
        layers.extend(variables(std::env::vars_os())?);
        layers.extend(project_layer(project)?);
        if let Ok(xdg) = Xdg::new() {
            let path = xdg.config_dir().join("tooltape/config.toml");
            layers.extend(Layer::file(Rank::User, &path)?);
        }
        let mut layers = Layers(layers);
        let trusted = layers.trust().is_ok_and(|it| it.is_none_or(|it| it.is_given()));
        let project = layers.0.iter_mut().find(|layer| layer.rank == Rank::Project);
        project.into_iter().for_each(|project| project.trusted = trusted);
        Ok(layers)
    }

    /// Where the tools of a run write, or copy from: the project and what it names as a workspace.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let named = self.find("workspace", |config| config.workspace.clone()).map(|found| {
            let (Workspace::Folder(folder) | Workspace::Copy(CopyTable { copy: folder })) =
                &found.value;
            found.layer.folder.join(folder)
        });
        let project = self.project().map(Path::to_owned).or_else(|| Some(PathBuf::from(".")));
        let here = |path: PathBuf| if path.as_os_str().is_empty() { ".".into() } else { path };
        [named, project].into_iter().flatten().map(here).collect()
    }

    /// What the strongest layer says that says anything.
    pub(crate) fn find<T>(
        &self,
        key: &str,
        get: impl Fn(&Config) -> Option<T>,
    ) -> Option<Found<'_, T>> {
        self.0.iter().find_map(|layer| {
            let value = get(&layer.config)?;
            Some(Found { value, layer, key: key.to_owned() })
        })
    }

    /// All that counts for a key which a project can only narrow, the strongest first: what was
    /// typed counts alone, and what a project says counts beside what its user says.
    pub(crate) fn narrowed<T>(
        &self,
        key: &str,
        get: impl Fn(&Config) -> Option<T>,
    ) -> Vec<Found<'_, T>> {
        let said = self.0.iter().filter_map(|layer| {
            let value = get(&layer.config)?;
            Some(Found { value, layer, key: key.to_owned() })
        });
        let mut said: Vec<Found<'_, T>> = said.collect();
        match said.first().map(|found| found.layer.rank) {
            Some(Rank::Flag | Rank::Variable) => said.truncate(1),
            Some(Rank::Project | Rank::User) | None => {}
        }
        said
    }

    /// What happens to calls that no rule decides: of what counts, the strictest.
    pub(crate) fn policy_default(&self) -> Option<Found<'_, DefaultWord>> {
        let said = self.narrowed("policy.default", |config| config.policy.default);
        said.into_iter().min_by_key(|found| Reverse(found.value.strictness()))
    }

    /// Whether what tools do not declare counts as the worst: whoever counts and says so decides.
    pub(crate) fn policy_strict(&self) -> Option<Found<'_, bool>> {
        let said = self.narrowed("policy.strict", |config| config.policy.strict);
        said.into_iter().min_by_key(|found| Reverse(found.value))
    }

    /// What all layers say.
    pub(crate) fn all<'a, T: 'a>(
        &'a self,
        key: &'a str,
        get: impl Fn(&'a Config) -> Option<&'a Vec<T>> + 'a,
    ) -> impl Iterator<Item = Found<'a, &'a T>> {
        self.0.iter().flat_map(move |layer| {
            let values = get(&layer.config).into_iter().flatten().enumerate();
            values.map(move |(at, value)| Found { value, layer, key: format!("{key}.{at}") })
        })
    }

    /// All rules, in the order in which they decide.
    pub(crate) fn rules(&self) -> impl Iterator<Item = Found<'_, &RuleTable>> {
        self.all("policy.rules", |config| config.policy.rules.as_ref())
    }

    /// What each layer says of what a tool touches, the strongest first.
    pub(crate) fn touches(&self) -> impl Iterator<Item = (&str, Found<'_, &TouchesTable>)> {
        self.0.iter().flat_map(|layer| {
            let said = layer.config.tools.touches.iter().flatten();
            said.map(move |(name, value)| {
                let key = format!("tools.touches.{name}");
                (name.as_str(), Found { value, layer, key })
            })
        })
    }

    /// What each layer says of a sub-agent, the strongest first.
    pub(crate) fn sub_agents(&self) -> impl Iterator<Item = (&str, Found<'_, &SubAgentTable>)> {
        self.0.iter().flat_map(|layer| {
            let said = layer.config.sub_agents.iter().flatten();
            said.map(move |(name, value)| {
                let key = format!("sub_agents.{name}");
                (name.as_str(), Found { value, layer, key })
            })
        })
    }

    /// What each layer says of where a secret is read from, the strongest first.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, Found<'_, &SecretTable>)> {
        self.0.iter().flat_map(|layer| {
            let said = layer.config.secrets.iter().flatten();
            said.map(move |(name, value)| {
                let key = format!("secrets.{name}");
                (name.as_str(), Found { value, layer, key })
            })
        })
    }

    /// Everything that some layer says about a key, the strongest first.
    pub(crate) fn said<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = (&'a Value, Place)> {
        self.0.iter().filter_map(|layer| Some((key.of(&layer.table)?, layer.place(key.name))))
    }

    /// The folder of the project, where it has a configuration.
    pub(crate) fn project(&self) -> Option<&Path> {
        let layer = self.0.iter().find(|layer| layer.rank == Rank::Project)?;
        Some(&layer.folder)
    }

    /// Whether there is a project's configuration that its user does not trust.
    pub(crate) fn is_untrusted(&self) -> bool {
        let mut projects = self.0.iter().filter(|layer| layer.rank == Rank::Project);
        projects.any(|layer| !layer.is_trusted())
    }

    /// The project's configuration, for its user to trust.
    pub(crate) fn trust(&self) -> Result<Option<Trust>> {
        let project = self.0.iter().find(|layer| layer.rank == Rank::Project);
        project.and_then(|layer| layer.trust(&self.roots())).transpose()
    }

    /// The names of the files that were read, the strongest first.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|layer| layer.source.is_some()).map(|layer| layer.name.as_str())
    }
}

impl<'a, T> Found<'a, T> {
    /// Where it was said.
    pub(crate) fn place(&self) -> Place {
        self.layer.place(&self.key)
    }

    /// Says what is wrong with it, at its place, or at that of a part of it.
    pub(crate) fn problem(&self, part: Option<&str>, why: impl Into<String>) -> Box<Problem> {
        let key = part.map_or(self.key.clone(), |part| format!("{}.{part}", self.key));
        self.layer.invalid(&key, Source::value_span, why.into())
    }

    /// Says that a part of it should not be there, at the part's name.
    pub(crate) fn stray(&self, part: &str, why: impl Into<String>) -> Box<Problem> {
        self.layer.invalid(&format!("{}.{part}", self.key), Source::name_span, why.into())
    }

    /// A part of it.
    pub(crate) fn part(&self, part: &str) -> Found<'a, ()> {
        Found { value: (), layer: self.layer, key: format!("{}.{part}", self.key) }
    }

    /// The same place, holding this.
    pub(crate) fn holding<U>(self, value: U) -> Found<'a, U> {
        Found { value, layer: self.layer, key: self.key }
    }

    /// The path that it names. A project's configuration stays within the project's folder:
    /// whoever runs it need not trust it with more.
    pub(crate) fn below(&self, path: &str) -> Result<PathBuf> {
        let Layer { rank, folder, .. } = self.layer;
        let joined = folder.join(path);
        let is_inside = match rank {
            Rank::Flag | Rank::Variable | Rank::User => true,
            Rank::Project => {
                let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
                let home = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                // A link could lead elsewhere. What is not there is reported by whoever opens it.
                let leads_out = match (home.canonicalize(), joined.canonicalize()) {
                    (Ok(home), Ok(joined)) => !joined.starts_with(home),
                    (Err(_), _) | (_, Err(_)) => false,
                };
                Path::new(path).components().all(is_plain) && !leads_out
            }
        };
        match is_inside {
            true => Ok(joined),
            false => {
                let why =
                    format!("`{path}` leaves the folder of this file, expected a path below it");
                Err(self.problem(None, why))
            }
        }
    }

    /// The rule's name on the tape, which is the same on every machine.
    pub(crate) fn rule_name(&self) -> String {
        let file = self.layer.name.rsplit('/').next().unwrap_or(&self.layer.name);
        let owner = if self.layer.rank == Rank::User { "user " } else { "" };
        match &self.layer.source {
            Some(source) => {
                let line = source.line(source.value_span(&self.key).start);
                format!("{owner}{file}:{line}")
            }
            None => self.layer.name.clone(),
        }
    }
}

impl Layer {
    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// Whether what it says is believed: it is the user's own, or the user trusts it.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// What its paths are relative to.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(rank: Rank, path: &Path) -> Result<Option<Layer>> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let name = path.display().to_string();
        let Some(text) = file::text(path, &name)? else { return Ok(None) };
        let (source, config) = Source::parse(name.clone(), text)?;
        let table = toml::from_str(source.text()).expect("it was parsed just above");
        let mut folder = path.parent().unwrap_or(Path::new("")).to_owned();
        if folder.ends_with(".tooltape") {
            folder.pop();
        }
        let (source, trusted) = (Some(source), rank != Rank::Project);
        Ok(Some(Layer { rank, name, source, folder, table, config, trusted }))
    }

    /// What its user says of it, where it is a file.
    fn trust(&self, roots: &[PathBuf]) -> Option<Result<Trust>> {
        let source = self.source.as_ref()?;
        Some(Trust::of(&self.folder, Path::new(&self.name), source.text(), roots))
    }

    /// A layer of one key, set by a flag or a variable.
    fn setting(rank: Rank, key: &str, text: &str, name: String) -> Result<Layer> {
        let invalid = |why: String| {
            Problem::new(Exit::Usage, "config.invalid", format!("`{name}`: {why}"))
                .hint("`tooltape config explain` lists the keys")
        };
        let key = Key::named(key).ok_or_else(|| invalid(format!("unknown key `{key}`")))?;
        let table = key.table(text).map_err(invalid)?;
        let config = Config::deserialize(table.clone());
        let config = config.map_err(|err| invalid(err.message().to_owned()))?;
        let (source, folder, trusted) = (None, PathBuf::new(), true);
        Ok(Layer { rank, name, source, folder, table, config, trusted })
    }

    fn place(&self, key: &str) -> Place {
        let source = self.source.as_ref();
        let at = source.map(|source| source.line_and_column(source.value_span(key).start));
        Place { name: self.name.clone(), at }
    }

    /// A problem at what `span` finds for a key.
    fn invalid(
        &self,
        key: &str,
        span: impl Fn(&Source, &str) -> Range<usize>,
        why: String,
    ) -> Box<Problem> {
        match &self.source {
            Some(source) => source.invalid(span(source, key), why),
            None => Problem::new(Exit::Usage, "config.invalid", format!("`{}`: {why}", self.name))
                .hint("`tooltape config explain` lists the keys"),
        }
    }
}

fn variables(all: impl Iterator<Item = (OsString, OsString)>) -> Result<Vec<Layer>> {
    let mut layers = Vec::new();
    for (name, value) in all {
        let Some(name) = name.to_str() else { continue };
        let is_ours = VARIABLES_OURS.iter().any(|prefix| name.starts_with(prefix));
        if !is_ours {
            continue;
        }
        let key = KEYS.iter().find(|key| key.variable().as_deref() == Some(name));
        let refused = |why: &str| {
            Problem::new(Exit::Usage, "config.invalid", format!("variable `{name}` {why}"))
                .hint("`tooltape config explain` lists the keys")
        };
        let key = key.ok_or_else(|| refused("sets no key that there is"))?;
        let value = value.to_str().ok_or_else(|| refused("is not UTF-8"))?;
        layers.push(Layer::setting(Rank::Variable, key.name, value, name.to_owned())?);
    }
    Ok(layers)
}

fn project_layer(project: &Path) -> Result<Option<Layer>> {
    if project.is_file() {
        return Layer::file(Rank::Project, project);
    }
    let mut layers = Vec::new();
    for name in PROJECT_FILES {
        layers.extend(Layer::file(Rank::Project, &project.join(name))?);
    }
    match layers.as_slice() {
        [first, second] => {
            let message = format!("`{}` and `{}` are both there", first.name, second.name);
            Err(Problem::new(Exit::Usage, "config.ambiguous", message).hint("keep one of them"))
        }
        _ => Ok(layers.pop()),
    }
}
