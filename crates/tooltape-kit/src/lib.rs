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
mod web;
mod sandbox;
mod process;
mod plain;

pub use files::tools;
pub use plain::tools as plain_tools;
pub use plain::{AskUser, Plan, Progressed, Question, Step};
pub use process::tools as process_tools;
pub use process::{Executable, ExecutableError, Manifest, ManifestBounds, ManifestEffects};
pub use sandbox::{
    ChangeKind, Chunk, Command, Connection, Ended, FileChange, Files, Finding, Helper, Kept, Limit,
    Part, Process, ProcessLimits, Sandbox, SandboxError, SetAside, Status, Stream, sandbox_helper,
    survey,
};
pub use web::tools as web_tools;
pub use web::{Ask, Dial, Fetched, Http, HttpError, Patience, Resolve, UrlError, WebUrl};
pub use workspace::{
    Entry, EntryKind, Existing, Listing, Original, PathError, Workspace, WorkspaceError,
    WorkspacePath,
};

/// Every limit of the tools in the box, with its value.
pub mod limits {
    pub use crate::files::{
        DIFF_BYTES_MAX, DIFF_LINES_MAX, EDITS_MAX, GLOB_BYTES_MAX, GLOB_FILES_DEFAULT,
        GLOB_FILES_MAX, GLOB_PATHS_BYTES_MAX, GREP_BYTES_MAX, GREP_CONTEXT_MAX,
        GREP_HEAP_BYTES_MAX, GREP_LINE_BYTES_MAX, GREP_MATCHES_DEFAULT, GREP_MATCHES_MAX,
        GREP_PATTERN_BYTES_MAX, GREP_REGEX_BYTES_MAX, GREP_THREADS_MAX, HUNKS_MAX,
        LINE_SHOWN_BYTES_MAX, LIST_DEPTH_MAX, MATCHES_COUNTED_MAX, PATCHED_FILES_MAX,
        READ_BYTES_MAX, READ_IMAGE_BYTES_MAX,
    };
    pub use crate::plain::{
        ANSWER_BYTES_MAX, CHOICES_MAX, HASH_BYTES_MAX, QUESTION_BYTES_MAX, STEP_BYTES_MAX,
        STEPS_MAX,
    };
    pub use crate::process::{
        ARGUMENTS_MAX, DESCRIBE_WALL, EXECUTABLE_OUTPUT_BYTES_MAX, EXECUTABLE_WALL_DEFAULT,
        EXECUTABLE_WALL_MAX, MANIFEST_BYTES_MAX, PATCH_BYTES_MAX, PROGRAM_BYTES_MAX,
    };
    pub use crate::sandbox::{
        ARGV_BYTES_MAX, CHANGES_BYTES_MAX, CHANGES_MAX, CONNECTIONS_MAX, CONNECTIONS_SHOWN_MAX,
        CPU_DEFAULT, EGRESS_BYTES_MAX, EGRESS_HEAD_BYTES_MAX, EGRESS_IDLE,
        FILE_WRITTEN_BYTES_DEFAULT, IDLE_DEFAULT, KEPT_BYTES_DEFAULT, MEMORY_BYTES_DEFAULT,
        MEMORY_BYTES_MIN, OPEN_FILES_DEFAULT, OUTPUT_BYTES_DEFAULT, PROCESSES_DEFAULT,
        SCRATCH_BYTES_DEFAULT, STDIN_BYTES_MAX, WALL_DEFAULT,
    };
    pub use crate::web::{
        ADDRESSES_MAX, DIALS_MAX, FETCH_IDLE_DEFAULT, FETCH_WALL_DEFAULT, HEADER_BYTES_MAX,
        HEADERS_MAX, HTML_BYTES_MAX, HTML_DEPTH_MAX, RATIO_MAX, REDIRECTS_MAX, TEXT_BYTES_DEFAULT,
        TEXT_BYTES_MAX, URL_BYTES_MAX, WINDOW_BYTES_MAX, WIRE_BYTES_MAX,
    };
    pub use crate::workspace::{
        COMPONENT_BYTES_MAX, ENTRIES_MAX, ENTRIES_SCANNED_MAX, FILE_BYTES_MAX, IGNORE_BYTES_MAX,
        PATH_BYTES_MAX, PATH_SHOWN_BYTES_MAX, WALK_DEPTH_MAX, WALK_ENTRIES_MAX, WALK_MS_MAX,
    };
}

// The code of these pages compiles and runs.
#[cfg(all(doctest, target_os = "linux"))]
mod pages {
    #[doc = include_str!("../../../docs/kit-files.md")]
    mod kit_files {}
    #[doc = include_str!("../../../docs/kit-sandbox.md")]
    mod kit_sandbox {}
    #[doc = include_str!("../../../docs/kit-web.md")]
    mod kit_web {}
}
