//! The tool runtime for AI agents.

mod canon;
mod schema;

pub use canon::{
    ARGUMENT_BYTES_MAX, CANON_PROFILE, Canon, DEPTH_MAX, Doc, Domain, Hash, INTEGER_DIGITS_MAX,
    Kind, Limits, NODES_MAX, Node, NotAHash, Place, RESULT_BYTES_MAX, Sets, Uncanonical,
    Unreadable,
};
pub use schema::{
    ALLOWED_MAX, CHECK_STEPS_MIN, CHECK_STEPS_PER_BYTE, Checker, EXCERPT_BYTES_MAX,
    MISMATCH_BYTES_MAX, Mismatch, NEAREST_CHARS_MAX, NEAREST_WORDS_MAX, PATTERN_BYTES_MAX,
    POINTER_BYTES_MAX, PROBLEMS_MAX, PatternFault, Problem, ProblemKind, SCHEMA_BYTES_MAX,
    SCHEMA_CHAIN_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NAMES_MAX, SCHEMA_PATTERNS_MAX, SCHEMA_VALUES_MAX,
    SCHEMA_WIDTH_MAX, SchemaError, nearest,
};
