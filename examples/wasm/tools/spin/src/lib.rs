//! Never ends by itself: a tool that shows how a call is stopped by its fuel.

use std::hint;

use exports::tooltape::tool::tool::{Failure, Guest, Spec};
use tooltape::tool::types::{Access, Bounds, Repeat};

wit_bindgen::generate!({ path: "../../../../crates/tooltape-wasm/wit", world: "component" });

/// What a slow machine uses up in a tenth of a second.
const FUEL: u64 = 100_000_000;

struct Spin;

export!(Spin);

impl Guest for Spin {
    fn describe() -> Spec {
        Spec {
            name: "spin".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Computes without end, until its fuel is used up.".into(),
            input: r#"{"type": "object", "additionalProperties": false}"#.into(),
            output: None,
            access: Access::Pure,
            repeat: Repeat::Idempotent,
            confirm: false,
            needs: Vec::new(),
            bounds: Bounds { wall_ms: None, memory: None, fuel: Some(FUEL), output_bytes: None },
        }
    }

    fn call(_arguments: String) -> Result<String, Failure> {
        let mut turns = 0_u64;
        loop {
            turns = hint::black_box(turns.wrapping_add(1));
        }
    }
}
