//! `apply_patch`: the changes of a unified diff, all of them or none.

mod fit;

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{Footprint, Random, ToolError, input, tool};

use super::diff::{Side, bounded, diff};
use super::expected::hash;
use super::patch::{FilePatch, parse};
use super::text::Text;
use crate::workspace::{Changes, Folders, Original, Workspace, WorkspaceError, WorkspacePath};

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct ApplyPatch {
    /// Every path in the patch, old and new, relative to the workspace.
    paths: Vec<WorkspacePath>,
    /// A unified diff; `/dev/null` stands for a file that is not there.
    patch: String,
}

impl ApplyPatch {
    /// The patch says what happens, and the paths say where: to the rules and to whoever is asked.
    fn check(&self) -> Result<(), String> {
        let files = parse(&self.patch).map_err(|why| format!("/patch: {why}"))?;
        let sorted = |paths: &mut dyn Iterator<Item = &WorkspacePath>| {
            let mut paths: Vec<String> = paths.map(|path| path.as_str().to_owned()).collect();
            paths.sort();
            paths
        };
        let found = sorted(&mut self.paths.iter());
        let expected = sorted(&mut files.iter().flat_map(FilePatch::paths));
        match found == expected {
            true => Ok(()),
            false => Err(format!("/paths: expected exactly those of the patch: {expected:?}")),
        }
    }
}

/// What `apply_patch` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Patched {
    /// What became of each file.
    files: Vec<PatchedFile>,
    /// What changed, as a unified diff.
    diff: String,
}

/// What became of one file.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct PatchedFile {
    /// The file's path, relative to the workspace.
    path: WorkspacePath,
    /// What was done to it.
    done: Done,
    /// Where it was, if it is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<WorkspacePath>,
    /// The BLAKE3 hash of the whole file as it is now, as lower-case hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[serde(rename_all = "snake_case")]
enum Done {
    Created,
    Changed,
    Deleted,
    Renamed,
}

/// Applies a unified diff to files of the workspace: all of its changes, or none. The lines around
/// each change must be in the file exactly; if they are not at the line that the hunk names, they
/// must be in one other place only. Folders of new files are created. Returns a diff and the new
/// hashes.
#[tool(
    Write,
    filesystem,
    blocking,
    version = "0.1.0",
    repeat = Once,
    reach = Local,
    process = false,
    spend = false,
    needs("fs:read:{paths}", "fs:write:{paths}"),
    touches = paths_of,
    preview = would_be,
    output = Patched,
    wall_ms = 60_000,
    output_bytes = 256 << 10
)]
pub(super) fn apply_patch(
    args: ApplyPatch,
    files: Workspace,
    random: Random,
) -> Result<Patched, ToolError> {
    let drafts = drafts(&args, &files)?;
    let diff = bounded(drafts.iter().map(|draft| draft.diff.as_str()).collect());
    let mut folders = Vec::new();
    let mut changes = Changes::new(&files);
    let mut patched = Vec::new();
    for draft in drafts {
        let done = draft.file();
        draft.add_to(&mut changes, &files, &mut folders).map_err(WorkspaceError::tell)?;
        patched.push(done);
    }
    changes.make(&random).map_err(WorkspaceError::tell)?;
    for folders in folders {
        folders.keep().map_err(WorkspaceError::tell)?;
    }
    Ok(Patched { files: patched, diff })
}

/// What would become of one file.
struct Draft {
    patch: FilePatch,
    original: Option<Original>,
    /// What it holds afterwards.
    bytes: Vec<u8>,
    diff: String,
}

fn drafts(args: &ApplyPatch, files: &Workspace) -> Result<Vec<Draft>, ToolError> {
    let invalid = |why: String| ToolError::not_done(format!("/patch: {why}")).code("not_a_patch");
    let patches = parse(&args.patch).map_err(invalid)?;
    patches.into_iter().map(|patch| draft(patch, files)).collect()
}

fn draft(patch: FilePatch, files: &Workspace) -> Result<Draft, ToolError> {
    let original = match &patch.from {
        Some(from) => Some(files.original(from).map_err(WorkspaceError::tell)?),
        None => None,
    };
    let text = match (&original, &patch.from) {
        (Some(original), Some(from)) => Some(Text::of(from, original.bytes())?),
        (Some(_), None) | (None, _) => None,
    };
    let patched = fit::patched(&patch, text.as_ref())?;
    let side = |path, text| Some(Side { path, text });
    let before = patch.from.as_ref().zip(text.as_ref());
    let before = before.and_then(|(path, text)| side(path, &text.text));
    let after = patch.to.as_ref().and_then(|path| side(path, &patched));
    let diff = mode_lines(&patch, original.as_ref()) + &diff(before, after);
    let bytes = match &text {
        Some(text) => text.newline.stored(&patched).into_owned().into_bytes(),
        None => patched.into_bytes(),
    };
    Ok(Draft { patch, original, bytes, diff })
}

/// What a patch says of the right to run a file, as git says it; nothing, where that stays.
fn mode_lines(patch: &FilePatch, original: Option<&Original>) -> String {
    let (Some(is_executable), Some(to)) = (patch.is_executable, &patch.to) else {
        return String::new();
    };
    let from = patch.from.as_ref().unwrap_or(to);
    let header = format!("diff --git a/{from} b/{to}\n");
    match original.map(|original| original.modes(is_executable)) {
        None if is_executable => format!("{header}new file mode 100755\n"),
        Some((old, new)) if old != new => {
            format!("{header}old mode 100{old:03o}\nnew mode 100{new:03o}\n")
        }
        None | Some(_) => String::new(),
    }
}

impl Draft {
    fn file(&self) -> PatchedFile {
        let hash = || Some(hash(&self.bytes));
        let (path, done, from, hash) = match (&self.patch.from, &self.patch.to) {
            (None, Some(to)) => (to, Done::Created, None, hash()),
            (Some(from), Some(to)) if from == to => (to, Done::Changed, None, hash()),
            (Some(from), Some(to)) => (to, Done::Renamed, Some(from.clone()), hash()),
            (Some(from), None) => (from, Done::Deleted, None, None),
            (None, None) => unreachable!("a patch of a file names it"),
        };
        PatchedFile { path: path.clone(), done, from, hash }
    }

    fn add_to(
        self,
        changes: &mut Changes,
        files: &Workspace,
        folders: &mut Vec<Folders>,
    ) -> Result<(), WorkspaceError> {
        let Draft { patch: FilePatch { from, to, is_executable, .. }, original, bytes, .. } = self;
        let is_new = from != to;
        if let Some(parent) = to.as_ref().filter(|_| is_new).and_then(WorkspacePath::parent) {
            folders.push(files.make_folders(&parent)?);
        }
        match (original, to) {
            (None, Some(to)) => changes.create(&to, bytes, is_executable == Some(true))?,
            (Some(original), Some(to)) if is_new => {
                changes.rename(original, &to, bytes, is_executable)?;
            }
            (Some(original), Some(_)) => changes.replace(original, bytes, is_executable),
            (Some(original), None) => changes.remove(original),
            (None, None) => {}
        }
        Ok(())
    }
}

/// The change as it would be now, for whoever is asked about it.
async fn would_be(args: ApplyPatch, files: Workspace) -> Result<String, ToolError> {
    Ok(drafts(&args, &files)?.into_iter().map(|draft| draft.diff).collect())
}

fn paths_of(args: &ApplyPatch) -> Footprint {
    WorkspacePath::all_written(args.paths.iter())
}
