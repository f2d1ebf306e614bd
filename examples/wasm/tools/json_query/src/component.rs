//! The tool, as its host sees it.

use serde::Deserialize;

use crate::{Query, search};
use exports::tooltape::tool::tool::{Failure, Guest, Spec};
use tooltape::tool::types::{Access, Bounds, FailureKind, Repeat};

wit_bindgen::generate!({ path: "../../../../crates/tooltape-wasm/wit", world: "component" });

/// How many matches are returned where nothing is said.
const MATCHES_DEFAULT: usize = 100;

struct JsonQuery;

export!(JsonQuery);

#[derive(Deserialize)]
struct Input {
    json: String,
    query: String,
    most: Option<usize>,
}

impl Guest for JsonQuery {
    fn describe() -> Spec {
        Spec {
            name: "json_query".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: include_str!("description.txt").trim_end().into(),
            input: include_str!("input.json").into(),
            output: Some(include_str!("output.json").into()),
            access: Access::Pure,
            repeat: Repeat::Idempotent,
            confirm: false,
            needs: Vec::new(),
            // The longest query of the largest document needs about half of each.
            bounds: Bounds {
                wall_ms: None,
                memory: Some(128 << 20),
                fuel: Some(8_000_000_000),
                output_bytes: Some(128 << 10),
            },
        }
    }

    fn call(arguments: String) -> Result<String, Failure> {
        let input: Input =
            serde_json::from_str(&arguments).map_err(|err| not_done("args", &err))?;
        let query = Query::parse(&input.query).map_err(|err| not_done("query", &err))?;
        let document = serde_json::from_str(&input.json)
            .map_err(|err| not_done("json", &format!("the text is no JSON: {err}")))?;
        let answer = search(&query, &document, input.most.unwrap_or(MATCHES_DEFAULT));
        Ok(serde_json::to_string(&answer).expect("a JSON value can be written"))
    }
}

fn not_done(code: &str, err: &impl ToString) -> Failure {
    Failure { kind: FailureKind::NotDone, message: err.to_string(), code: Some(code.into()) }
}
