//! The labels that the configuration states, and where those of files are kept.

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use tooltape::scope::Hosts;
use tooltape::{Label, Labels, Run};
use tooltape_kit::{Workspace, WorkspacePath};

use crate::config::{Layers, Rank};
use crate::report::Result;

/// A workspace whose files have the labels that were kept, and those that the configuration states.
pub(crate) fn labelled(layers: &Layers, files: Workspace) -> Result<Workspace> {
    // Not in the workspace, where a tool could take them away.
    let files = match Xdg::new() {
        Ok(xdg) => files.labels(Labels::in_dir(xdg.data_dir().join("tooltape/labels"))),
        Err(_) => files,
    };
    let untrusted = layers.all("labels.untrusted", |config| config.labels.untrusted.as_ref());
    let internal = layers.all("labels.internal", |config| config.labels.internal.as_ref());
    let untrusted = untrusted.map(|found| (Label::untrusted(found.value), found));
    let internal = internal.map(|found| (Label::internal(), found));
    untrusted.chain(internal).try_fold(files, |files, (label, found)| {
        let folder = found.value.parse::<WorkspacePath>();
        let folder = folder.map_err(|err| found.problem(None, err.to_string()))?;
        Ok(files.labelled(folder, label))
    })
}

/// A run that may tell these hosts what is not public.
pub(crate) fn telling(layers: &Layers, run: Run) -> Result<Run> {
    let mut hosts = layers.all("labels.tell", |config| config.labels.tell.as_ref());
    hosts.try_fold(run, |run, found| {
        if found.layer.rank() == Rank::Project {
            let why = "a project cannot say who may be told what is not public; your own \
                       configuration can";
            return Err(found.problem(None, why));
        }
        let hosts = found.value.parse::<Hosts>();
        Ok(run.may_tell(hosts.map_err(|err| found.problem(None, err.to_string()))?))
    })
}
