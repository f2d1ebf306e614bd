//! Tools in the box for `tooltape`: files in a workspace that cannot be escaped.
//!
//! A [`Workspace`] is an open directory handle. Tools reach files only through it, by a
//! [`WorkspacePath`] that is relative to it, so no path of a model's making leads anywhere else.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use tooltape::{Proposal, Run, Toolbox};
//! use tooltape_kit::Workspace;
//!
//! let folder = tempfile::tempdir().unwrap();
//! std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
//!
//! let toolbox = Toolbox::new(tooltape_kit::tools()).unwrap();
//! let run = Run::new(&toolbox).grant(Workspace::open(folder.path()).unwrap());
//! let replies = run
//!     .batch(vec![
//!         Proposal::new("c1", "read_file", r#"{"path":"a.txt","start":2}"#),
//!         Proposal::new("c2", "read_file", r#"{"path":"../secret"}"#),
//!     ])
//!     .await
//!     .unwrap();
//! assert_eq!(replies[0].value.as_ref().unwrap().to_value()["text"], "two\n");
//! assert!(replies[1].text().starts_with("not executed: "));
//! # });
//! ```
//!
//! Modules are declared in layer order. A module uses only those above it.

mod workspace;
mod files;

pub use files::tools;
pub use workspace::{
    Entry, EntryKind, Listing, Original, PathError, Workspace, WorkspaceError, WorkspacePath,
};

/// Every limit of the tools in the box, with its value.
pub mod limits {
    pub use crate::files::{
        DIFF_BYTES_MAX, DIFF_LINES_MAX, EDITS_MAX, LINE_SHOWN_BYTES_MAX, MATCHES_COUNTED_MAX,
        READ_BYTES_MAX,
    };
    pub use crate::workspace::{
        COMPONENT_BYTES_MAX, ENTRIES_MAX, ENTRIES_SCANNED_MAX, FILE_BYTES_MAX, PATH_BYTES_MAX,
        PATH_SHOWN_BYTES_MAX,
    };
}
