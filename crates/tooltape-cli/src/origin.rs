//! What a run keeps of where it came from, so that it can be resumed from anywhere.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workspace::Opened;

/// What a fork's note says besides: the run in whose folder it goes on.
pub(crate) const SHARED_KEY: &str = "shares_workspace_with";

/// The part of a note that says where a run works, which is another place in a fork of a copy.
pub(crate) const WORKSPACE_KEY: &str = "workspace";

/// Where a run came from. A path that is not UTF-8 is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The folder or the file of the configuration.
    pub(crate) config: Option<String>,
    /// The folder that its file tools work in.
    pub(crate) workspace: Option<String>,
    /// What that is a copy of.
    #[serde(default)]
    pub(crate) copied_from: Option<String>,
    /// The script that was named on the command line; `-` is one that came from stdin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) script: Option<String>,
    /// The model that was named on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

impl Origin {
    pub(crate) fn new(project: &Path, workspace: &Opened) -> Origin {
        let project = if project.as_os_str().is_empty() { Path::new(".") } else { project };
        Origin {
            config: kept(project),
            workspace: kept(&workspace.folder),
            copied_from: workspace.copied_from.as_deref().and_then(kept),
            script: None,
            model: None,
        }
    }

    /// The same, asking a model that was named. A script is found again from any folder.
    pub(crate) fn asking(self, model: Option<&str>) -> Origin {
        let model = model.map(|model| match model.strip_prefix("script:") {
            Some(file) => kept(Path::new(file)).map(|file| format!("script:{file}")),
            None => Some(model.to_owned()),
        });
        Origin { model: model.flatten(), ..self }
    }

    /// The same, playing a script that was named.
    pub(crate) fn playing(self, script: &Path) -> Origin {
        let script = if script == Path::new("-") { Some("-".to_owned()) } else { kept(script) };
        Origin { script, ..self }
    }

    /// What is on the tape.
    pub(crate) fn note(&self) -> Value {
        serde_json::to_value(self).expect("strings serialise")
    }

    /// What a tape says; nothing, where another program wrote it.
    pub(crate) fn read(note: Option<&Value>) -> Origin {
        note.and_then(|note| Origin::deserialize(note).ok()).unwrap_or_default()
    }
}

fn kept(path: &Path) -> Option<String> {
    let path: PathBuf = path.canonicalize().ok()?;
    path.to_str().map(str::to_owned)
}
