//! Counts the lines, words and characters of a text: a tool that reaches nothing.

use exports::tooltape::tool::tool::{Failure, Guest, Spec};
use serde::{Deserialize, Serialize};
use tooltape::tool::types::{Access, Bounds, FailureKind, Repeat};

wit_bindgen::generate!({ path: "../../../../crates/tooltape-wasm/wit", world: "component" });

struct WordCount;

export!(WordCount);

#[derive(Deserialize)]
struct Input {
    text: String,
}

#[derive(Serialize)]
struct Counts {
    lines: usize,
    words: usize,
    characters: usize,
}

impl Guest for WordCount {
    fn describe() -> Spec {
        Spec {
            name: "word_count".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Counts the lines, words and characters of a text.".into(),
            input: include_str!("input.json").into(),
            output: Some(include_str!("output.json").into()),
            access: Access::Pure,
            repeat: Repeat::Idempotent,
            confirm: false,
            needs: Vec::new(),
            bounds: Bounds { wall_ms: None, memory: None, fuel: None, output_bytes: None },
        }
    }

    fn call(arguments: String) -> Result<String, Failure> {
        let input: Input = serde_json::from_str(&arguments).map_err(not_done)?;
        let counts = Counts {
            lines: input.text.lines().count(),
            words: input.text.split_whitespace().count(),
            characters: input.text.chars().count(),
        };
        serde_json::to_string(&counts).map_err(not_done)
    }
}

fn not_done(err: serde_json::Error) -> Failure {
    Failure { kind: FailureKind::NotDone, message: err.to_string(), code: None }
}
