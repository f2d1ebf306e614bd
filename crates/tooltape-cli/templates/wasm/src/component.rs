//! The tool, as its host sees it.

use exports::tooltape::tool::tool::{Failure, Guest, Spec};
use tooltape::tool::types::{Access, Bounds, FailureKind, Repeat};

// `wit/tool.wit` says what can be imported: clock, random, state, files, http, progress, cancel
// and log. What is not used is not imported, and this tool uses nothing: so it is pure.
wit_bindgen::generate!({ path: "wit", world: "component" });

struct Slug;

export!(Slug);

impl Guest for Slug {
    fn describe() -> Spec {
        Spec {
            name: "slug".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Makes a name for addresses of a title: lower-case words with hyphens \
                between them."
                .into(),
            input: include_str!("input.json").into(),
            output: Some(include_str!("output.json").into()),
            access: Access::Pure,
            repeat: Repeat::Idempotent,
            confirm: false,
            // Such as `fs:read:data`, if it imported `files`.
            needs: Vec::new(),
            // What is not said here is the run's default.
            bounds: Bounds {
                wall_ms: None,
                memory: Some(16 << 20),
                fuel: Some(100_000_000),
                output_bytes: None,
            },
        }
    }

    fn call(arguments: String) -> Result<String, Failure> {
        let input = serde_json::from_str(&arguments).map_err(|err| not_done(err.to_string()))?;
        let output = crate::slug(&input).map_err(not_done)?;
        serde_json::to_string(&output).map_err(|err| not_done(err.to_string()))
    }
}

/// Nothing was done, and the model reads why.
fn not_done(message: String) -> Failure {
    Failure {
        kind: FailureKind::NotDone,
        message,
        code: None,
    }
}
