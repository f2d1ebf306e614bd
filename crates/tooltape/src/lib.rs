//! The tool runtime for AI agents: every call is typed, permitted, bounded, and on tape.
//!
//! A tool is an async function, and its signature says everything. The first parameter is the
//! model's: its type is the schema. Every later parameter is ours: a [`Grant`] that the model never
//! sees. The return value is the output, and the doc comment is the description.
//!
//! Modules are declared in layer order. A module uses only those above it.
#![cfg_attr(docsrs, feature(doc_cfg))]

// So that `#[tool]` and `#[input]` work in here as they do everywhere else.
extern crate self as tooltape;

// words
mod id;
mod canon;
mod fault;
// declaring
mod grant;
mod spec;
mod schema;
mod tool;
pub mod builtin;
// one call
mod call;
mod toolbox;
mod policy;
mod reply;
// doing
mod tape;
mod perform;
mod batch;
mod run;
// talking
pub mod dialect;
mod model;
mod agent;
// proving
pub mod testing;

pub use agent::{Agent, AgentError, Answered, Next, Stopped, Talk};
pub use call::{Arguments, Call, Outcome, Proposal, RepairStep};
pub use canon::{
    CANON_PROFILE, Canon, Doc, Domain, Hash, Kind, Limits, Node, NotAHash, Place, Sets,
    Uncanonical, Unreadable,
};
pub use fault::{BoundKind, Denied, Exceeded, Executed, Fault, Repair, ToolError, ToolErrorKind};
pub use grant::{Cancel, Clock, Grant, Grants, Need, Progress, Random, RunInfo, Secret, State};
pub use id::{CallNo, Name, NameError, RunId, ToolId, VersionError};
pub use model::{Message, Model, ModelError, Recorded, Script, ScriptError, Turn, TurnStop, Usage};
pub use perform::{Attempt, FromTape, Live, Perform};
pub use policy::{Answer, Approver, Pending, Permit, Policy, Rules, Verdict};
pub use reply::{FaultView, Rendered, Reply};
pub use run::{Missing, Recovery, Run, RunError, RunLimits};
pub use schema::{Checker, Mismatch, PatternFault, Problem, ProblemKind, SchemaError, nearest};
pub use spec::{
    Access, Bound, Bounds, Determinism, Effects, Errors, History, Hooks, Reach, Read, Repeat,
    Retry, Spec, Typed, VERSION_DEFAULT, Vote,
};
pub use tape::{
    Ack, Append, Event, Head, Key, MemoryTape, ProposalEvent, Record, Tape, TapeError, TurnEvent,
    verify,
};
pub use tool::{
    Args, BindError, Block, BlockingHandler, BoxFuture, Content, Empty, Handler, Input, IntoOutput,
    IntoResult, IntoToolError, Output, RegisterError, Registered, Source, Stop, Tool, bind,
    tool_fn, tool_fn_blocking,
};
pub use toolbox::{Offer, Repairs, Toolbox};
pub use tooltape_macros::{input, tool};
pub use {schemars, serde_json};

/// Every limit that has a name and is not a field of some type, with its value.
pub mod limits {
    pub use crate::agent::TURNS_DEFAULT;
    pub use crate::canon::{
        ARGUMENT_BYTES_MAX, DEPTH_MAX, INTEGER_DIGITS_MAX, NODES_MAX, RESULT_BYTES_MAX,
    };
    pub use crate::fault::TOLD_BYTES_MAX;
    pub use crate::grant::{NOTES_MAX, PROGRESS_BYTES_MAX};
    pub use crate::id::{NAME_BYTES_MAX, VERSION_BYTES_MAX};
    pub use crate::run::{
        BATCH_CALLS_DEFAULT, DEPTH_DEFAULT, NAME_KEPT_BYTES_MAX, RUN_CALLS_DEFAULT, WALL_DEFAULT,
    };
    pub use crate::schema::{
        ALLOWED_MAX, CHECK_STEPS_MIN, CHECK_STEPS_PER_BYTE, EXCERPT_BYTES_MAX, MISMATCH_BYTES_MAX,
        NEAREST_CHARS_MAX, NEAREST_WORDS_MAX, PATTERN_BYTES_MAX, POINTER_BYTES_MAX, PROBLEMS_MAX,
        SCHEMA_BYTES_MAX, SCHEMA_CHAIN_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NAMES_MAX,
        SCHEMA_PATTERNS_MAX, SCHEMA_VALUES_MAX, SCHEMA_WIDTH_MAX,
    };
    pub use crate::tape::READ_RECORDS_MAX;
    pub use crate::toolbox::SHOWN_BYTES_MAX;
}

/// Lists tools by the names of their functions: `tools![read_file, git::push]`.
#[macro_export]
macro_rules! tools {
    ($($tool:ty),* $(,)?) => { [$(<$tool>::tool()),*] };
}

/// What the macros expand to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::{Part, declared, granted, part, returned, schema_of, sent};
    pub use {schemars, serde};

    /// Whether a `Pure` tool may take this grant.
    pub const fn is_harmless<T: crate::Grant>() -> bool {
        T::HARMLESS
    }
}

// The code of these pages compiles and runs.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/writing-tools.md")]
    mod writing_tools {}
}
