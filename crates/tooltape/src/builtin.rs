//! Tools that need nothing from the host: `echo`, `hash`, `read_artifact` and `tool_search`.

mod read_artifact;
mod tool_search;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub use read_artifact::{PAGE_BYTES_MAX, read_artifact};
use schemars::JsonSchema;
use serde::Serialize;
pub(crate) use tool_search::Hit;
pub use tool_search::{HITS_DEFAULT, HITS_MAX, TOOL_SEARCH, tool_search};

use crate::fault::ToolError;
use crate::spec::{Determinism, Effects, Spec};
use crate::tool::{Input, Tool, schema_of, tool_fn};

/// The tools that need nothing but their input: `echo@1.0.0` and `hash@1.0.0`.
pub fn tools() -> [Arc<dyn Tool>; 2] {
    let effects = Effects { determinism: Determinism::Deterministic, ..Effects::pure() };
    let spec = |name: &str, description: &str| {
        Spec::new(name, description).version("1.0.0").effects(effects.clone())
    };
    let echo = spec("echo", "Returns its input bytes unchanged.").output(schema_of::<Bytes>());
    let hash =
        spec("hash", "Returns the BLAKE3 hash of its input bytes, as lower-case hexadecimal.")
            .output(serde_json::json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }));
    [
        tool_fn(echo, async |bytes: Bytes| Ok::<_, ToolError>(bytes)),
        tool_fn(hash, async |bytes: Bytes| {
            Ok::<_, ToolError>(blake3::hash(&bytes.decoded()?).to_hex().to_string())
        }),
    ]
}

/// Bytes, given as text or as base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Bytes {
    /// The bytes as UTF-8 text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes in base64, with padding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Input for Bytes {
    fn check(&self) -> Result<(), String> {
        match (&self.text, &self.base64) {
            (Some(_), None) => Ok(()),
            (None, Some(base64)) => match STANDARD.decode(base64) {
                Ok(_) => Ok(()),
                Err(err) => Err(format!("/base64: expected base64 with padding, found {err}")),
            },
            (Some(_), Some(_)) => Err("expected one of `text` and `base64`, found both".into()),
            (None, None) => Err("expected one of `text` and `base64`, found neither".into()),
        }
    }
}

impl Bytes {
    fn decoded(&self) -> Result<Vec<u8>, ToolError> {
        match (&self.text, &self.base64) {
            (Some(text), _) => Ok(text.clone().into_bytes()),
            (None, Some(base64)) => Ok(STANDARD.decode(base64)?),
            (None, None) => Ok(Vec::new()),
        }
    }
}
