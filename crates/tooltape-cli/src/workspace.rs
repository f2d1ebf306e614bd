//! The folder that a run works in, opened.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use tooltape::RunId;

use crate::config::{Layers, Workspace};
use crate::copy::copy;
use crate::exit::Exit;
use crate::report::{Problem, Result};

/// A workspace that a run may be granted.
pub(crate) struct Opened {
    pub(crate) grant: tooltape_kit::Workspace,
    /// Where it is.
    pub(crate) folder: PathBuf,
    /// What it is a copy of.
    pub(crate) copied_from: Option<PathBuf>,
}

/// Whether a workspace that is to be copied is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    /// For this run.
    Fresh,
    /// No tool will look into it.
    Unneeded,
}

/// Opens the workspace that the configuration names, or else the project's folder.
pub(crate) fn open(
    layers: &Layers,
    project: &Path,
    run: RunId,
    copying: Copying,
) -> Result<Opened> {
    let Some(found) = layers.find("workspace", |config| config.workspace.clone()) else {
        return opened(project.to_owned(), None);
    };
    match (&found.value, copying) {
        (Workspace::Folder(folder), _) => opened(found.below(folder)?, None),
        (Workspace::Copy(table), Copying::Unneeded) => opened(found.below(&table.copy)?, None),
        (Workspace::Copy(table), Copying::Fresh) => {
            let from = found.below(&table.copy)?;
            let to = copied(&from, run, "`workspace.copy` names a folder of plain files")?;
            opened(to, Some(from))
        }
    }
}

/// The copy that another run worked on, as it is now, copied for this one.
pub(crate) fn open_copy(of: Opened, run: RunId) -> Result<Opened> {
    let to = copied(&of.folder, run, "a copy of a run is forked with a copy of its own")?;
    opened(to, of.copied_from)
}

/// Copies a folder for a run, and says where it is.
fn copied(from: &Path, run: RunId, hint: &str) -> Result<PathBuf> {
    let state = Xdg::new().ok().and_then(|xdg| xdg.state_dir()).ok_or_else(|| {
        Problem::new(Exit::Usage, "workspace.homeless", "there is no folder for copies")
            .hint("set `HOME` or `XDG_STATE_HOME`")
    })?;
    let to = state.join("tooltape/work").join(run.to_string());
    copy(from, &to).map_err(|err| {
        let message = format!("`{}` could not be copied: {err}", from.display());
        Problem::new(Exit::Failed, "workspace.uncopied", message).hint(hint)
    })?;
    Ok(to)
}

/// Opens a folder that a run worked in before.
pub(crate) fn open_folder(folder: &Path) -> Result<Opened> {
    opened(folder.to_owned(), None)
}

fn opened(folder: PathBuf, copied_from: Option<PathBuf>) -> Result<Opened> {
    let folder = absolute(&folder)?;
    let grant = tooltape_kit::Workspace::open(&folder).map_err(|err| unopened(&folder, &err))?;
    Ok(Opened { grant, folder, copied_from })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().map_err(|err| unopened(path, &err))
}

fn unopened(path: &Path, err: &dyn std::fmt::Display) -> Box<Problem> {
    let message = format!("the workspace `{}` cannot be opened: {err}", path.display());
    Problem::new(Exit::Failed, "workspace.missing", message)
        .hint("`tooltape config explain workspace` says who named it")
}
