//! What it costs to hold arguments against their schema.

use std::hint::black_box;

use serde::de::DeserializeOwned;
use tooltape::{Checker, Doc, Input, Limits, Spec, ToolError, tool_fn};

use crate::corpus::{Order, Orders, order, orders, text};
use crate::dispatch::counted;
use crate::race::{Effort, Lane, Measured, Racer, race};
use crate::subject::{ADD_TEXT, Add};

/// `schema.validate`: from text to a typed value that the schema allows, against plain serde.
///
/// The value is the worst of three sizes. Reading is strict and goes through the canonical form, as
/// on the path; the hash is not part of it.
pub fn validate(effort: Effort) -> Measured {
    let medium = text(&order(0));
    let large = text(&orders(104_000 / effort.shrink));
    let lanes = [
        compare::<Add>(effort, ADD_TEXT),
        compare::<Order>(effort, &medium),
        compare::<Orders>(effort, &large),
    ];
    let worst = lanes.iter().map(|[.., validated]| validated.ratio).fold(0.0, f64::max);
    Measured::of(worst, lanes.as_flattened())
}

/// `schema.compiles`: how often a schema is compiled or cloned while a call is made.
///
/// A tool with a large schema must not allocate more for a call than one with a small schema.
/// Compiling or cloning a schema allocates for every part of it, so what a call allocates more,
/// through what compiling allocates, says how often that happened.
pub fn compiles(_: Effort) -> Measured {
    counted("schema.compiles")
}

fn compare<T: Input>(effort: Effort, text: &str) -> [Lane; 3] {
    let spec = Spec::new("measured", "Takes what is measured.");
    let tool = tool_fn(spec, async |_: T| Ok::<_, ToolError>(()));
    let checker = Checker::compile_input(&tool.spec().input).expect("the schema is admitted");
    let named = |what: &str| format!("{what}, {} bytes", text.len());
    race(
        effort,
        [
            Racer::new(named("serde: typed"), || {
                black_box(typed::<T>(black_box(text)));
            }),
            Racer::new(named("tooltape: strict read"), || {
                black_box(Doc::read(black_box(text), &Limits::ARGUMENTS)).expect("it is JSON");
            }),
            Racer::new(named("tooltape: read, check, canonical, typed"), || {
                black_box(validated::<T>(&checker, black_box(text)));
            }),
        ],
    )
}

fn typed<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("the text fits the type")
}

fn validated<T: DeserializeOwned>(checker: &Checker, text: &str) -> T {
    let doc = Doc::read(text, &Limits::ARGUMENTS).expect("the text is JSON");
    assert!(checker.check(&doc).is_ok(), "the text fits the schema");
    doc.canonical().parse().expect("the text fits the type")
}
