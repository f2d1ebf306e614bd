//! The tool runtime for AI agents.

mod canon;

pub use canon::{
    ARGUMENT_BYTES_MAX, CANON_PROFILE, Canon, DEPTH_MAX, Doc, Domain, Hash, INTEGER_DIGITS_MAX,
    Kind, Limits, NODES_MAX, Node, NotAHash, Place, RESULT_BYTES_MAX, Sets, Uncanonical,
    Unreadable,
};
