//! Which projects a user trusts: each by its folder, and by every byte of its configuration.

use std::fs;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use etcetera::base_strategy::Xdg;
use tooltape::{Domain, Hash};

use crate::exit::Exit;
use crate::private;
use crate::report::{Problem, Result};

/// The most bytes of a note that a project is trusted: two hashes and a path.
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// A project's configuration, and where a user notes that it is trusted.
pub(crate) struct Trust {
    /// The configuration.
    pub(crate) file: PathBuf,
    note: PathBuf,
    /// What the note says of exactly this configuration.
    says: String,
    /// Why it cannot be trusted.
    unfit: Option<String>,
}

impl Trust {
    /// The configuration of a project in this file, with this text. Its tools write below `roots`.
    pub(crate) fn of(folder: &Path, file: &Path, text: &str, roots: &[PathBuf]) -> Result<Trust> {
        let homeless = |_| {
            Problem::new(Exit::Usage, "trust.homeless", "there is no folder to note it in")
                .hint("set `HOME` or `XDG_DATA_HOME`")
        };
        let notes = Xdg::new().map_err(homeless)?.data_dir().join("tooltape/trusted");
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let named = real(here).join(file.strip_prefix(folder).unwrap_or(file));
        let is_linked = real(file) != named;
        let exposed = roots.iter().find(|root| private::is_below(&notes, root));
        // What is noted where tools write, they could have noted; another's file is another's.
        let unfit = match (exposed, is_linked) {
            (Some(root), _) => {
                let (notes, root) = (notes.display(), root.display());
                Some(format!("`{notes}` is inside `{root}`, where tools write"))
            }
            (None, true) => Some(format!("`{}` is a link", file.display())),
            (None, false) => None,
        };
        let name = Hash::of(Domain::Approval, named.as_os_str().as_encoded_bytes()).to_string();
        let hash = Hash::of(Domain::Approval, text.as_bytes());
        let says = format!("{hash} {}\n", named.display());
        Ok(Trust { file: named, note: notes.join(&name[..32]), says, unfit })
    }

    /// Whether the user trusts it, as it is now.
    pub(crate) fn is_given(&self) -> bool {
        let folder = self.note.parent().unwrap_or(&self.note);
        let noted = || private::text(&self.note, NOTE_BYTES_MAX);
        self.unfit.is_none()
            && private::check_folder(folder).is_ok()
            && noted().is_ok_and(|noted| noted.as_ref() == Some(&self.says))
    }

    /// Notes that the user trusts it.
    pub(crate) fn give(&self) -> Result {
        if let Some(why) = &self.unfit {
            return Err(self.unusable(why));
        }
        let folder = self.note.parent().unwrap_or(&self.note);
        let noted = private::folder(folder).and_then(|()| private::replace(&self.note, &self.says));
        noted.map_err(|err| self.unusable(&err.to_string()))
    }

    /// Forgets it; says whether there was anything to forget.
    pub(crate) fn withdraw(&self) -> Result<bool> {
        match fs::remove_file(&self.note) {
            Ok(()) => Ok(true),
            Err(err) if private::is_missing(&err) => Ok(false),
            Err(err) => Err(self.unusable(&err.to_string())),
        }
    }

    fn unusable(&self, why: &str) -> Box<Problem> {
        let message = format!("`{}` cannot be trusted: {why}", self.file.display());
        Problem::new(Exit::Failed, "trust.unusable", message)
            .hint("mend it, or name another `XDG_DATA_HOME`")
    }
}
