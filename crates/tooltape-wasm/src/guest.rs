//! What components say and answer, as the world `tooltape:tool` has it.

use wasmtime::component::{ComponentType, Lift, Lower};

/// What a tool says about itself.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct GuestSpec {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) input: String,
    pub(crate) output: Option<String>,
    pub(crate) access: GuestAccess,
    pub(crate) repeat: GuestRepeat,
    pub(crate) confirm: bool,
    pub(crate) needs: Vec<String>,
    pub(crate) bounds: GuestBounds,
}

#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "only components construct it")]
pub(crate) enum GuestAccess {
    #[component(name = "pure")]
    Pure,
    #[component(name = "read")]
    Read,
    #[component(name = "write")]
    Write,
}

#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "only components construct it")]
pub(crate) enum GuestRepeat {
    #[component(name = "idempotent")]
    Idempotent,
    #[component(name = "once")]
    Once,
}

#[derive(Clone, Copy, ComponentType, Lift)]
#[component(record)]
pub(crate) struct GuestBounds {
    #[component(name = "wall-ms")]
    pub(crate) wall_ms: Option<u64>,
    pub(crate) memory: Option<u64>,
    pub(crate) fuel: Option<u64>,
    #[component(name = "output-bytes")]
    pub(crate) output_bytes: Option<u64>,
}

/// Why a call did not succeed.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct GuestFailure {
    pub(crate) kind: GuestFailureKind,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
}

#[derive(Clone, Copy, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum GuestFailureKind {
    #[component(name = "failed")]
    Failed,
    #[component(name = "not-done")]
    NotDone,
    #[component(name = "retry-after")]
    RetryAfter(u64),
    #[component(name = "user-must-act")]
    UserMustAct,
    #[component(name = "cancelled")]
    Cancelled,
}

/// One entry of a folder.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct GuestEntry {
    pub(crate) name: String,
    #[component(name = "is-folder")]
    pub(crate) is_folder: bool,
}

/// What a host of the web answered.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct GuestPage {
    pub(crate) url: String,
    pub(crate) status: u16,
    #[component(name = "content-type")]
    pub(crate) content_type: Option<String>,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: bool,
}

/// Why there is no answer.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct GuestTrouble {
    pub(crate) message: String,
    #[component(name = "request-sent")]
    pub(crate) request_sent: bool,
}
