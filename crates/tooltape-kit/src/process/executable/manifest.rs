//! What a program says about itself as a tool.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tooltape::{Access, Bound, Bounds, Effects, Label, Reach, Repeat, Spec};

use super::ExecutableError;
use crate::sandbox::{Files, ProcessLimits};
use crate::workspace::shown;

/// The most bytes of a manifest.
pub const MANIFEST_BYTES_MAX: u64 = 256 << 10;
/// How long a program may run that does not say.
pub const EXECUTABLE_WALL_DEFAULT: Duration = Duration::from_secs(60);
/// The longest that a program may ask to run.
pub const EXECUTABLE_WALL_MAX: Duration = Duration::from_secs(3_600);
/// The most bytes that a program may write, unless it asks for fewer.
pub const EXECUTABLE_OUTPUT_BYTES_MAX: u64 = 4 << 20;

/// How much longer its call may take than the program: to start it, and to end it.
const START: Duration = Duration::from_secs(10);
/// The most bytes of what is wrong with a manifest that a message shows.
const WHY_BYTES_MAX: usize = 512;
/// The argument that stands for the program.
pub(super) const PROGRAM: &str = "{program}";

/// What a program says about itself: `my_tool.toml` beside `my_tool.py`, or what it prints as JSON
/// when it is asked with `--describe`.
///
/// ```
/// use tooltape_kit::{Files, Manifest};
///
/// let manifest: Manifest = r#"
///     name = "word_count"
///     description = "Counts the words of a text."
///     files = "read"
///
///     [input]
///     type = "object"
///     properties.path = { type = "string", description = "The file." }
///     required = ["path"]
///     additionalProperties = false
/// "#.parse().unwrap();
/// assert_eq!(manifest.files, Files::Read);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// The tool's name.
    pub name: String,
    /// Its version, such as `1.0.0`.
    #[serde(default = "version_default")]
    pub version: String,
    /// What a model reads about it.
    pub description: String,
    /// The program's arguments, in which `{program}` stands for the program itself; with an
    /// interpreter first, where it needs one. The program alone where none are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// How much of the workspace it sees: `none`, `read` or `write`.
    #[serde(default = "files_default")]
    pub files: Files,
    /// The rights that its calls need, beside those for what it sees of the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// What its calls do.
    #[serde(default, skip_serializing_if = "ManifestEffects::is_default")]
    pub effects: ManifestEffects,
    /// Its limits.
    #[serde(default, skip_serializing_if = "ManifestBounds::is_default")]
    pub bounds: ManifestBounds,
    /// The JSON Schema of its arguments.
    pub input: Value,
    /// The JSON Schema of its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// What the calls of a program do, as far as the sandbox lets them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ManifestEffects {
    /// `read` or `write`; the last where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// `idempotent` or `once`; the last where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// Whether a person must confirm each call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
}

/// The limits of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ManifestBounds {
    /// How long it may run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// How much memory it may use, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// How much it may write, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

impl ManifestEffects {
    fn is_default(&self) -> bool {
        *self == ManifestEffects::default()
    }
}

impl ManifestBounds {
    fn is_default(&self) -> bool {
        *self == ManifestBounds::default()
    }
}

fn version_default() -> String {
    "0.1.0".to_owned()
}

fn files_default() -> Files {
    Files::None
}

impl std::str::FromStr for Manifest {
    type Err = String;

    fn from_str(text: &str) -> Result<Manifest, String> {
        let told = |why: &str| shown(why.trim(), WHY_BYTES_MAX);
        let manifest: Manifest = toml::from_str(text).map_err(|err| told(err.message()))?;
        manifest.check()?;
        Ok(manifest)
    }
}

impl Manifest {
    /// Where the manifest of a program is: beside it, under its name with `.toml`.
    pub fn path_of(program: &Path) -> PathBuf {
        program.with_extension("toml")
    }

    /// Reads the manifest beside a program.
    pub fn beside(program: &Path) -> Result<Manifest, ExecutableError> {
        let path = Manifest::path_of(program);
        let unreadable = |source| ExecutableError::Unreadable { path: path.clone(), source };
        let invalid = |why| ExecutableError::Manifest { path: path.clone(), why };
        let metadata = fs::metadata(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => ExecutableError::NoManifest { path: path.clone() },
            _ => unreadable(source),
        })?;
        if !metadata.is_file() || metadata.len() > MANIFEST_BYTES_MAX {
            let why = format!("expected a file of at most {MANIFEST_BYTES_MAX} bytes");
            return Err(invalid(why));
        }
        fs::read_to_string(&path).map_err(unreadable)?.parse().map_err(invalid)
    }

    /// Reads what a program printed.
    pub(super) fn printed(text: &str) -> Result<Manifest, String> {
        let told = |why: String| shown(&why, WHY_BYTES_MAX);
        let manifest: Manifest = serde_json::from_str(text).map_err(|err| told(err.to_string()))?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The manifest as it is written beside a program.
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string_pretty(self).map_err(|err| err.to_string())
    }

    fn check(&self) -> Result<(), String> {
        let is_object = self.input.get("type").is_some_and(|it| it == "object");
        if !is_object {
            return Err("`input` is no schema of an object, expected `type = \"object\"`".into());
        }
        if !self.argv.is_empty() && !self.argv.iter().any(|it| it.contains(PROGRAM)) {
            return Err(format!("`argv` does not name the program, expected `{PROGRAM}` in it"));
        }
        if let Some(need) = self.needs.iter().find(|need| need.starts_with("net:")) {
            return Err(format!("`needs` names `{need}`, but the sandbox has no network"));
        }
        let wall = self.bounds.wall_ms.unwrap_or(1);
        let wall_max = EXECUTABLE_WALL_MAX.as_millis();
        if wall == 0 || u128::from(wall) > wall_max {
            return Err(format!("`bounds.wall_ms` is {wall}, expected 1 to {wall_max}"));
        }
        self.effects().map(drop)
    }

    /// What its calls do. What is said to be harmless must be so by the sandbox's walls.
    fn effects(&self) -> Result<Effects, String> {
        let ManifestEffects { access, repeat, confirm } = &self.effects;
        let access = match access.as_deref() {
            None | Some("write") => Access::Write,
            Some("read") if self.files != Files::Write => Access::Read,
            Some("read") => {
                return Err("`effects.access` is `read`, but `files` is `write`".to_owned());
            }
            Some(word) => {
                let expected = "expected `read` or `write`";
                return Err(format!("`effects.access` is `{word}`, {expected}"));
            }
        };
        let repeat = match repeat.as_deref() {
            None if access == Access::Read => Repeat::Idempotent,
            None | Some("once") => Repeat::Once,
            Some("idempotent") => Repeat::Idempotent,
            Some(word) => {
                let expected = "expected `idempotent` or `once`";
                return Err(format!("`effects.repeat` is `{word}`, {expected}"));
            }
        };
        Ok(Effects {
            access,
            repeat,
            reach: Reach::Local,
            filesystem: self.files != Files::None,
            process: true,
            spend: false,
            confirm: *confirm,
            ..Effects::default()
        })
    }

    /// The limits of its process.
    pub(super) fn limits(&self) -> ProcessLimits {
        let ManifestBounds { wall_ms, memory, output_bytes } = self.bounds;
        let wall = wall_ms.map_or(EXECUTABLE_WALL_DEFAULT, Duration::from_millis);
        let output_bytes = output_bytes.unwrap_or(EXECUTABLE_OUTPUT_BYTES_MAX);
        let output_bytes = output_bytes.min(EXECUTABLE_OUTPUT_BYTES_MAX);
        let default = ProcessLimits::default();
        ProcessLimits {
            wall,
            idle: wall,
            memory_bytes: memory.unwrap_or(default.memory_bytes),
            output_bytes,
            kept_bytes: usize::try_from(output_bytes).unwrap_or(usize::MAX),
            ..default
        }
    }

    /// What the tool declares, bound to the program's bytes by their hash.
    pub(super) fn spec(&self, hash: &str) -> Result<Spec, String> {
        let mut spec = Spec::new(self.name.as_str(), self.description.as_str())
            .version(self.version.as_str())
            .effects(self.effects()?)
            .input(self.input.clone())
            .labelled(Label::untrusted(self.name.as_str()));
        let wall = self.limits().wall + START;
        spec.bounds = Bounds { wall: Bound::At(wall), idle: Bound::At(wall), ..spec.bounds };
        // No model reads it, every result is checked by it, and the definition's hash covers it.
        let mut output = match self.output.clone() {
            None => BTreeMap::new(),
            Some(Value::Object(output)) => output.into_iter().collect(),
            Some(_) => return Err("`output` is no schema, expected an object".to_owned()),
        };
        output.insert("$comment".to_owned(), Value::from(format!("program {hash}")));
        spec = spec.output(output.into_iter().collect());
        let rights: &[&str] = match self.files {
            Files::None => &[],
            Files::Read => &["fs:read:."],
            Files::Write => &["fs:read:.", "fs:write:."],
        };
        let needs = rights.iter().map(ToString::to_string).chain(self.needs.iter().cloned());
        Ok(needs.fold(spec, Spec::needs))
    }
}
