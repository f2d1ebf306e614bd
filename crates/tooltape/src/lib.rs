//! The tool runtime for AI agents: every call is typed, permitted, bounded, and on tape.
//!
//! A tool is an async function, and its signature says everything. The first parameter is the
//! model's: its type is the schema. Every later parameter is ours: a [`Grant`] that the model never
//! sees. The return value is the output, and the doc comment is the description.
//!
//! The feature `http`, which is off unless named, asks models behind an API over the network. The
//! feature `tracing`, which is off unless named, puts a span around each attempt, named as
//! OpenTelemetry names the execution of a tool; arguments and results are left out of it unless a
//! run says otherwise.
//!
//! Modules are declared in layer order. A module uses only those above it.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// So that `#[tool]` and `#[input]` work in here as they do everywhere else.
extern crate self as tooltape;

// words
mod sync;
mod id;
mod canon;
pub mod visible;
mod fault;
mod place;
mod label;
// declaring
mod right;
mod grant;
mod artifact;
mod spec;
mod schema;
mod tool;
pub mod builtin;
// one call
mod proposal;
mod reply;
mod call;
mod toolbox;
mod approve;
mod policy;
mod verbatim;
// doing
mod tape;
mod perform;
mod batch;
mod run;
// talking
pub mod dialect;
mod model;
pub mod wire;
#[cfg(feature = "http")]
pub mod http;
mod history;
mod agent;
// proving
mod replay;
pub mod testing;

pub use agent::{
    Agent, AgentError, AgentLimits, Answered, Conversation, Next, Patience, Price, Steer,
    SteerError, Step, Stopped, SubAgent, Talk, mend,
};
pub use approve::Question;
pub use artifact::{Artifact, ArtifactError, ArtifactId, ArtifactPart, Artifacts, NotAnArtifact};
pub use batch::{Claim, Order, Waiting};
pub use call::Call;
pub use canon::{
    CANON_PROFILE, Canon, Doc, Domain, Hash, Kind, Limits, Node, NotAHash, Place, Sets,
    Uncanonical, Unreadable,
};
pub use fault::{
    BoundKind, Denied, Exceeded, Executed, Fault, FaultKind, Repair, ToolError, ToolErrorKind,
};
pub use grant::{
    CallContext, Cancel, Clock, Grant, Grants, IdempotencyKey, NamedStore, Need, Progress,
    Provenance, Random, RunInfo, Secret, SecretValue, State, Store,
};
pub use history::Window;
pub use id::{CallNo, Name, NameError, NotARun, RunId, ToolId, VersionError};
pub use label::{Label, Labels};
pub use model::{
    Choice, Delta, Message, Model, ModelError, Recorded, Request, Script, ScriptError, Turn,
    TurnStop, Usage,
};
pub use perform::{Attempt, FromTape, Live, Perform};
pub use policy::{Answer, Approver, Pending, Permit, Policy, Rule, Rules, Verdict};
pub use proposal::{Arguments, Facts, Outcome, Proposal, RepairStep};
pub use replay::{
    CallDiff, Cause, Change, Diff, Divergence, RecordTest, Replay, ReplayError, Report, Stage,
};
pub use reply::{
    FaultView, Frame, Framing, RedactError, RedactedBytes, RedactedText, Redactor, Rendered, Reply,
};
pub use right::{
    Allowance, Amounts, Holding, Measure, Refusal, Right, RightError, Rights, RightsError,
    ScopeError, Short, Why, Withheld,
};
pub use run::{
    AnswerError, Canceller, Child, EndorseError, Fork, Missing, Nested, OpenQuestion, Recovery,
    ResumeError, Run, RunEnd, RunError, RunLimits, SecretError, Spawn, answer_question,
    open_questions,
};
pub use schema::{Checker, Mismatch, PatternFault, Problem, ProblemKind, SchemaError, nearest};
pub use spec::{
    Access, Bound, Bounds, Determinism, Effects, Enforced, Errors, Footprint, FootprintOf, Found,
    History, Hooks, Identity, KeyTemplate, KeyTemplateError, Preview, Reach, Read, Reconcile,
    Repeat, Resource, ResourceError, Retry, Spec, Typed, VERSION_DEFAULT, Vote,
};
#[cfg(feature = "sign")]
pub use tape::SignKey;
pub use tape::{
    Ack, Append, Backlog, Damage, EVENT_VERSION, End, Event, ForkPoint, Head, InDoubt, Key, Line,
    MemoryTape, Nudge, Parent, ProposalEvent, Recalled, RecalledReply, Record, RunHead, STAMPS,
    Seen, Subscription, TAPE_FILE_HEADER, Tape, TapeError, TapeRead, TapeWriter, TurnEvent,
    Verified, Verify, read_tape, verify,
};
#[cfg(feature = "sqlite")]
pub use tape::{
    Audit, DeadWriter, Erase, NotAStatus, Recovered, RunStatus, RunSummary, RunsQuery,
    SqliteOptions, SqliteTape, TornTail,
};
pub use tool::{
    Args, BindError, Block, BlockingHandler, BoxFuture, Content, Empty, Handler, Input, IntoOutput,
    IntoResult, IntoToolError, Output, RegisterError, Registered, Source, Stop, Tool, bind,
    tool_fn, tool_fn_blocking,
};
pub use toolbox::{Offer, Repairs, Toolbox};
pub use tooltape_macros::{input, tool};
pub use verbatim::{Part, Verbatim};
pub use {schemars, serde_json};

/// Every limit that has a name and is not a field of some type, with its value.
pub mod limits {
    pub use crate::agent::{
        FAILURES_DEFAULT, FRUITLESS_DEFAULT, NUDGES_DEFAULT, REPAIRS_DEFAULT, REPEATS_DEFAULT,
        ROUNDS_DEFAULT, SAID_BYTES_MAX, SAID_MAX, TARGETS_DEFAULT, TASK_BYTES_MAX, TURNS_DEFAULT,
    };
    pub use crate::artifact::{
        ARTIFACT_BYTES_MAX, ARTIFACT_MEMORY_BYTES_MAX, ARTIFACT_READ_BYTES_MAX,
        ARTIFACT_STORE_BYTES_MAX, ARTIFACTS_MAX,
    };
    pub use crate::builtin::{HITS_DEFAULT, HITS_MAX, PAGE_BYTES_MAX};
    pub use crate::canon::{
        ARGUMENT_BYTES_MAX, DEPTH_MAX, INTEGER_DIGITS_MAX, NODES_MAX, RESULT_BYTES_MAX,
    };
    pub use crate::fault::TOLD_BYTES_MAX;
    pub use crate::grant::{
        EMITTED_BYTES_MAX, FUEL_DEFAULT, MEMORY_DEFAULT, NOTES_MAX, PROGRESS_BYTES_MAX,
        STORE_KEY_BYTES_MAX, STORE_VALUE_BYTES_MAX, STORE_VALUES_MAX,
    };
    pub use crate::history::{ARGUMENT_SHOWN_BYTES_MAX, COMPACTED_BYTES_MAX, WINDOW_BYTES_DEFAULT};
    #[cfg(feature = "http")]
    pub use crate::http::{
        ATTEMPTS_DEFAULT, BODY_BYTES_MAX, CONNECT_DEFAULT, PAUSE_DEFAULT, PAUSE_MAX,
        SILENCE_DEFAULT, TURN_DEFAULT,
    };
    pub use crate::id::{NAME_BYTES_MAX, VERSION_BYTES_MAX};
    pub use crate::label::{LABEL_NAME_BYTES_MAX, LABEL_NAMES_MAX, LABELLED_MAX};
    pub use crate::perform::{CACHE_BYTES_DEFAULT, CACHE_ENTRIES_DEFAULT, SPAN_CONTENT_BYTES_MAX};
    pub use crate::policy::{ARGUMENT_STEPS_MAX, GLOB_BYTES_MAX, GLOB_WAYS_MAX};
    pub use crate::replay::{DIFF_CALLS_MAX, DIFF_CHANGES_MAX, REPLAY_WALL_DEFAULT};
    pub use crate::reply::{
        BLOCKS_MAX, FAULT_BYTES_MAX, IMAGE_BYTES_MAX, MEDIA_TYPE_BYTES_MAX, OUTPUT_BYTES_DEFAULT,
        OUTPUT_BYTES_MIN, SECRET_BYTES_MIN, SECRET_PART_BYTES_MIN, SECRETS_BYTES_MAX,
    };
    pub use crate::right::{
        HOST_BYTES_MAX, RIGHT_BYTES_MAX, RIGHT_PATH_BYTES_MAX, RIGHT_PATH_DEPTH_MAX,
        RIGHTS_LISTED_MAX, RIGHTS_MAX, WORD_BYTES_MAX,
    };
    pub use crate::run::{
        APPROVAL_DEFAULT, BATCH_CALLS_DEFAULT, BATCH_WALL_DEFAULT, BLOCKING_DEFAULT,
        CANCEL_GRACE_DEFAULT, CONCURRENCY_DEFAULT, DEPTH_DEFAULT, IDLE_DEFAULT, MUTATIONS_DEFAULT,
        NAME_KEPT_BYTES_MAX, PREVIEW_WALL, QUEUE_DEFAULT, RUN_BYTES_DEFAULT, RUN_CALLS_DEFAULT,
        RUN_WALL_DEFAULT, TAPE_WALL_DEFAULT, WALL_DEFAULT,
    };
    pub use crate::schema::{
        ALLOWED_MAX, CHECK_STEPS_MIN, CHECK_STEPS_PER_BYTE, EXCERPT_BYTES_MAX, EXTRACT_CHOICES_MAX,
        EXTRACT_SCHEMAS_MAX, MISMATCH_BYTES_MAX, NEAREST_CHARS_MAX, NEAREST_WORDS_MAX,
        PATTERN_BYTES_MAX, POINTER_BYTES_MAX, PROBLEMS_MAX, SCHEMA_BYTES_MAX, SCHEMA_CHAIN_MAX,
        SCHEMA_DEPTH_MAX, SCHEMA_NAMES_MAX, SCHEMA_PATTERNS_MAX, SCHEMA_VALUES_MAX,
        SCHEMA_WIDTH_MAX,
    };
    pub use crate::spec::{
        FOOTPRINT_KEYS_MAX, PREVIEW_BYTES_MAX, RESOURCE_BYTES_MAX, RESOURCE_SEGMENTS_MAX,
    };
    pub use crate::tape::{
        BACKLOG_BYTES_DEFAULT, BACKLOG_PROGRESS_DEFAULT, BACKLOG_RECORDS_DEFAULT, READ_RECORDS_MAX,
        TAPE_LINE_BYTES_MAX,
    };
    #[cfg(feature = "sqlite")]
    pub use crate::tape::{
        BUSY_DEFAULT, CHECKPOINT_PAGES, COMMIT_EVENTS_MAX, QUEUE_EVENTS_MAX, READERS_MAX,
        RESERVE_BYTES_MIN, RESERVE_CALL_BYTES, RUN_RECORDS_MAX, RUNS_HELD_MAX, RUNS_MAX,
    };
    pub use crate::toolbox::SHOWN_BYTES_MAX;
    pub use crate::verbatim::VERBATIM_BYTES_MAX;
    pub use crate::wire::{
        ADVERTS_MAX, EVENT_BYTES_MAX, OUTPUT_TOKENS_DEFAULT, REFUSAL_BYTES_MAX, TURN_BYTES_MAX,
        TURN_CALLS_MAX, TURN_ITEMS_MAX,
    };
}

/// Layers around every attempt: those in the box, and what it takes to write one.
pub mod layer {
    pub use crate::perform::{
        Breaker, Cache, Concurrency, Layer, LayerFn, Layered, Next, RateLimit, Timeout, layer_fn,
        only,
    };
}

/// What rules are made of: the typed parts of a [`Rule`], and what [`Rules`] say.
pub mod rule {
    pub use crate::policy::{
        Argument, ArgumentError, Effect, Flaw, Glob, GlobError, Literal, Mark, NotANumber, Number,
        Otherwise, Part, Said, Says, Side, Test, Walls,
    };
}

/// What rights are about: the typed parts of a [`Right`].
pub mod scope {
    pub use crate::right::{
        Amount, Currency, FileScope, Host, Hosts, McpTool, Method, NetScope, Program, RelativePath,
        Scheme, Site, SpawnScope, SpendScope, Variable, Word,
    };
}

/// Lists tools by the names of their functions: `tools![read_file, git::push]`.
#[macro_export]
macro_rules! tools {
    ($($tool:ty),* $(,)?) => { [$(<$tool>::tool()),*] };
}

/// What the macros expand to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::grant::{is_word, secret_value, uses_secret};
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
    #[doc = include_str!("../../../docs/results.md")]
    mod results {}
    #[doc = include_str!("../../../docs/labels.md")]
    mod labels {}
    #[doc = include_str!("../../../docs/guide/writing-a-tool.md")]
    mod guide_writing_a_tool {}
    #[doc = include_str!("../../../docs/guide/testing-from-a-tape.md")]
    mod guide_testing_from_a_tape {}
    #[doc = include_str!("../../../docs/guide/approvals-and-policy.md")]
    mod guide_approvals_and_policy {}
}
