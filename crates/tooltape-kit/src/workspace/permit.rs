//! What the call that holds a workspace may do in it, asked whenever it does something.

use tooltape::scope::{FileScope, RelativePath};
use tooltape::{CallContext, Refusal, Right};

use super::{Workspace, WorkspaceError, WorkspacePath};

/// What becomes of symbolic links on the way to a file.
pub(super) enum Links {
    /// They may lead anywhere inside: the host itself looks.
    Followed,
    /// They might lead to what a rule or a right keeps from the call, which was judged by its path.
    NotFollowed,
}

/// What may be done with all files of a workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Workspace {
    /// What the call may do now with everything in here.
    pub(crate) fn may_use_all(&self) -> Use {
        let root = WorkspacePath::root();
        let read = self.may_read(&root).is_ok();
        Use { read, write: read && self.may_write(&root).is_ok() }
    }

    /// Checks that the call may read here now.
    pub(super) fn may_read(&self, path: &WorkspacePath) -> Result<Links, WorkspaceError> {
        let Some(call) = &self.call else { return Ok(Links::Followed) };
        check(call, path, Right::FsRead)?;
        Ok(Links::NotFollowed)
    }

    /// Checks that the call may write here now.
    pub(super) fn may_write(&self, path: &WorkspacePath) -> Result<(), WorkspaceError> {
        self.call.as_ref().map_or(Ok(()), |call| check(call, path, Right::FsWrite))
    }
}

fn check(
    call: &CallContext,
    path: &WorkspacePath,
    right: fn(FileScope) -> Right,
) -> Result<(), WorkspaceError> {
    // What no right can name needs the right to everything.
    let relative = path.as_str().parse().unwrap_or_else(|_| RelativePath::root());
    let withheld = |refusal: Refusal| {
        let (path, refusal) = (path.clone(), Box::new(refusal));
        WorkspaceError::Withheld { path, refusal }
    };
    call.check(&right(scope(relative))).map_err(withheld)
}

fn scope(path: RelativePath) -> FileScope {
    FileScope { root: None, path }
}
