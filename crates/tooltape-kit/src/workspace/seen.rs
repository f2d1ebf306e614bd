//! The labels of files: whom what they hold may come from, and whom it is not for.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::Dir;
use tooltape::{Label, Labels, Provenance};

use super::{FILE_BYTES_MAX, Found, Workspace, WorkspaceError, WorkspacePath};

/// The shortest content of which copies elsewhere are known: shorter ones are alike by chance.
const COPY_BYTES_MIN: usize = 8;

/// How the labels of files are known.
#[derive(Clone)]
pub(super) struct Seen {
    labels: Labels,
    /// Where the workspace was opened, which tells its files from those of others.
    place: Arc<str>,
    /// Folders of which all files have a label.
    folders: Vec<(WorkspacePath, Label)>,
    /// What the call has seen that holds the workspace, where one does.
    pub(super) provenance: Provenance,
}

impl Seen {
    pub(super) fn new(folder: &Path) -> Seen {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let (labels, provenance) = (Labels::memory(), Provenance::detached());
        Seen { labels, place: folder.to_string_lossy().into(), folders: Vec::new(), provenance }
    }

    /// Somebody reads these bytes here.
    ///
    /// A copy of a file that has a label has it too, and so has a link to it.
    pub(super) fn read(&self, root: &Dir, path: &WorkspacePath, bytes: &[u8]) {
        if self.is_plain() {
            return;
        }
        let (label, key) = (self.at(root, path), bytes_key(bytes));
        // Of what lies in a labelled folder, copies elsewhere are known from now on. A label that
        // cannot be kept is seen all the same.
        if bytes.len() >= COPY_BYTES_MIN {
            let _ = self.labels.add(&key, &label);
        }
        self.provenance.saw(&label.join(&self.labels.of(&key)));
    }

    /// Somebody reads the names of these files.
    pub(super) fn listed<'n>(
        &self,
        root: &Dir,
        path: &WorkspacePath,
        names: impl Iterator<Item = &'n str>,
    ) {
        if self.is_plain() {
            return;
        }
        let mut label = self.at(root, path);
        if !self.labels.is_empty() {
            for name in names {
                label = label.join(&self.labels.of(&self.file_key(&below(path, name))));
            }
        }
        self.provenance.saw(&label);
    }

    /// Somebody reads the names of files all over the workspace.
    fn found<'n>(&self, paths: impl Iterator<Item = &'n str>) {
        if !self.is_plain() {
            let label = paths.fold(Label::default(), |label, path| label.join(&self.of(path)));
            self.provenance.saw(&label);
        }
    }

    /// Somebody is about to write these bytes here.
    pub(super) fn writing(&self, path: &WorkspacePath, bytes: &[u8]) -> Result<(), WorkspaceError> {
        let label = self.provenance.label();
        let unlabelled = |source| WorkspaceError::Unlabelled { path: path.clone(), source };
        self.labels.add(&self.file_key(path.as_str()), &label).map_err(unlabelled)?;
        if bytes.len() >= COPY_BYTES_MIN {
            self.labels.add(&bytes_key(bytes), &label).map_err(unlabelled)?;
        }
        Ok(())
    }

    /// Somebody is about to move a file, which keeps its label.
    pub(super) fn moving(
        &self,
        root: &Dir,
        from: &WorkspacePath,
        to: &WorkspacePath,
    ) -> Result<(), WorkspaceError> {
        let label = self.at(root, from).join(&self.provenance.label());
        let unlabelled = |source| WorkspaceError::Unlabelled { path: to.clone(), source };
        self.labels.add(&self.file_key(to.as_str()), &label).map_err(unlabelled)
    }

    /// These are all that is here now.
    pub(super) fn written(&self, path: &WorkspacePath) {
        // A label that says too much is no failure.
        let _ = self.labels.set(&self.file_key(path.as_str()), &self.provenance.label());
    }

    /// Whether nothing has a label.
    fn is_plain(&self) -> bool {
        self.folders.is_empty() && self.labels.is_empty()
    }

    /// The label of whatever is here, by the name that was given and by where that leads.
    fn at(&self, root: &Dir, path: &WorkspacePath) -> Label {
        let label = self.of(path.as_str());
        match root.canonicalize(path.as_str()) {
            Ok(real) if real != Path::new(path.as_str()) => {
                label.join(&self.of(&real.to_string_lossy()))
            }
            Ok(_) | Err(_) => label,
        }
    }

    fn file_key(&self, path: &str) -> String {
        format!("file {}/{path}", self.place)
    }

    fn of(&self, path: &str) -> Label {
        let folders = self.folders.iter().filter(|(folder, _)| is_below(folder.as_str(), path));
        folders.fold(self.labels.of(&self.file_key(path)), |label, (_, folder)| label.join(folder))
    }
}

impl Workspace {
    /// Somebody reads the names of files that a walk came to.
    pub(crate) fn saw_names<'n>(&self, paths: impl Iterator<Item = &'n str>) {
        self.seen.found(paths);
    }

    /// Somebody reads lines of a file that a walk came to.
    pub(crate) fn saw_lines(&self, found: &Found) {
        if self.seen.is_plain() {
            return;
        }
        let mut bytes = Vec::new();
        // Of what cannot be read again, or is too large, only the place is known.
        let read = found.open().map(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
        let _ = read;
        if let Ok(path) = found.shown().parse() {
            self.seen.read(&self.root, &path, &bytes);
        }
    }

    /// Keeps the labels of files there, which otherwise end with the last clone. Workspaces that
    /// share them know the copies of each other's files.
    #[must_use]
    pub fn labels(mut self, labels: Labels) -> Workspace {
        self.seen.labels = labels;
        self
    }

    /// Gives all files below a folder a label: downloads, say, that anybody may have written.
    ///
    /// ```
    /// use tooltape::Label;
    /// use tooltape_kit::Workspace;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let files = Workspace::open(folder.path()).unwrap();
    /// let files = files.labelled("downloads".parse().unwrap(), Label::untrusted("downloads"));
    /// ```
    #[must_use]
    pub fn labelled(mut self, folder: WorkspacePath, label: Label) -> Workspace {
        self.seen.folders.push((folder, label));
        self
    }
}

fn bytes_key(bytes: &[u8]) -> String {
    format!("bytes {}", blake3::hash(bytes).to_hex())
}

fn below(folder: &WorkspacePath, name: &str) -> String {
    match folder.as_str() {
        "." => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// Whether a path is a folder or lies below it.
fn is_below(folder: &str, path: &str) -> bool {
    folder == "." || Path::new(path).starts_with(folder)
}
