//! Answers that a user saved for a project: exact calls, and patterns of them.

mod entry;
mod file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use tooltape::{Call, Canon, Clock, Domain, Hash};

use crate::escape;
use crate::exit::Exit;
use crate::private;
use crate::report::{Problem, Result};
use crate::workspace::Opened;

pub(crate) use entry::{Entry, Pattern};
use file::{Locked, read, write};

/// The most answers that are saved for a project.
pub(crate) const SAVED_MAX: usize = 256;

/// Where the answers for a project are, which is never where a tool can write.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    file: PathBuf,
    /// The project's folder.
    pub(crate) project: String,
    /// The folder that its file tools work in, or of which they work in a copy.
    workspace: String,
    /// Why no answer is taken from there.
    unusable: Option<String>,
}

/// A call that an answer may be saved for.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) tool: String,
    pub(crate) definition: Hash,
    pub(crate) args: Canon,
}

impl Asking {
    pub(crate) fn of(call: &Call) -> Asking {
        let (tool, definition) = (call.tool().to_string(), call.definition());
        Asking { tool, definition, args: call.args().clone() }
    }
}

impl Saved {
    /// The answers for a project; `config` is the folder or the file of its configuration.
    pub(crate) fn find(config: &Path, workspace: &Opened) -> Result<Saved> {
        let project = if config.is_file() { config.parent().unwrap_or(config) } else { config };
        let project = if project.as_os_str().is_empty() { Path::new(".") } else { project };
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let data = Xdg::new().map(|xdg| xdg.data_dir()).map_err(|_| {
            Problem::new(Exit::Usage, "answers.homeless", "there is no folder for saved answers")
                .hint("set `HOME` or `XDG_DATA_HOME`")
        })?;
        let folder = data.join("tooltape/answers");
        let roots = [Some(&workspace.folder), workspace.copied_from.as_ref()];
        let reachable = roots.into_iter().flatten().find(|root| private::is_below(&folder, root));
        let unusable = reachable.map(|root| {
            let (folder, root) = (folder.display(), root.display());
            format!("`{folder}` is inside the workspace `{root}`, where tools write")
        });
        let root = workspace.copied_from.as_ref().unwrap_or(&workspace.folder);
        let (project, root) = (project.display().to_string(), root.display().to_string());
        // A project's path is of any length and has any letters.
        let name = Hash::of(Domain::Approval, project.as_bytes()).to_string();
        let file = folder.join(format!("{}.toml", &name[..32]));
        Ok(Saved { file, project, workspace: root, unusable })
    }

    /// The answers, in the order in which they were saved.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        Ok(read(&self.file, &self.project)?.unwrap_or_default())
    }

    /// The answer that is good for a call now.
    pub(crate) fn answering(&self, asking: &Asking) -> Result<Option<Entry>> {
        if self.unusable.is_some() {
            return Ok(None);
        }
        let now_us = Clock::system().unix_us();
        let is_good = |entry: &Entry| entry.answers(asking, &self.workspace, now_us);
        Ok(self.entries()?.into_iter().find(is_good))
    }

    /// Whether answers can be saved.
    pub(crate) fn check_usable(&self) -> Result {
        match &self.unusable {
            None => Ok(()),
            Some(why) => Err(Problem::new(Exit::Failed, "answers.exposed", why.clone())
                .hint("name a narrower `workspace`, or another `XDG_DATA_HOME`")),
        }
    }

    /// What would be saved for a call.
    pub(crate) fn draft(
        &self,
        asking: &Asking,
        pattern: &Pattern,
        lifetime: Duration,
    ) -> Result<Entry> {
        self.check_usable()?;
        let now_us = Clock::system().unix_us();
        Entry::new(asking, pattern, &self.workspace, (now_us, lifetime))
    }

    /// Saves an answer. What has expired is forgotten.
    pub(crate) fn save(&self, entry: Entry) -> Result {
        self.check_usable()?;
        let locked = Locked::new(&self.file)?;
        let now_us = Clock::system().unix_us();
        let mut entries = self.entries()?;
        entries.retain(|it| it.expires_us > now_us && it.name != entry.name);
        if entries.len() >= SAVED_MAX {
            let message = format!("{SAVED_MAX} answers are saved for `{}`", self.project);
            return Err(Problem::new(Exit::Failed, "answers.many", message)
                .hint("`tooltape approve saved rm NAME` forgets one"));
        }
        entries.push(entry);
        write(&locked, &self.file, &self.project, &entries)
    }

    /// Forgets an answer: no run takes it from here on.
    pub(crate) fn forget(&self, name: &str) -> Result<Entry> {
        let locked = Locked::new(&self.file)?;
        let mut entries = self.entries()?;
        let at = entries.iter().position(|entry| entry.name == name).ok_or_else(|| {
            let message = format!("no saved answer is called `{}`", escape::line(name));
            Problem::new(Exit::Failed, "answers.unknown", message)
                .hint("`tooltape approve saved ls` lists them")
        })?;
        let forgotten = entries.remove(at);
        write(&locked, &self.file, &self.project, &entries)?;
        Ok(forgotten)
    }
}
