//! `#[tool]` and `#[input]`: names and documentation, never types.
//!
//! Neither macro looks inside a type. `#[tool]` carries a function's name, doc comment and declared
//! effects into a `Spec`; the compiler's trait resolution decides what each parameter is.
#![forbid(unsafe_code)]

mod declare;
mod input;
mod signature;
mod tool;

use proc_macro::TokenStream;

/// Turns a function into a tool, and leaves the function as it was.
///
/// The first parameter is what the model sends, the others are grants, the result is the output,
/// and the doc comment is the description; `#[doc = include_str!("…")]` is one too. `tools![name]`
/// lists the tool, and `tools![name<T>]` an instance of a generic one.
///
/// The arguments are the access (`Pure`, `Read` or `Write`; `Write` where none is given) and then,
/// in any order:
///
/// * `name = "…"`, `version = "…"`, `output = Type`, `needs("domain:action:scope", …)`, and
///   `blocking` for a synchronous function;
/// * every field of `Effects`: `determinism = Deterministic`, `repeat = Idempotent`,
///   `reach = Local`, `filesystem`, `process`, `spend`, `confirm`, `workspace_root = "…"`,
///   `redact`, `exclusive`, `recursive`, `aborts_siblings`, `vote = Advisory`, `counted = false`;
/// * every field of `Bounds`: `wall_ms = 5_000`, `idle_ms`, `memory`, `fuel`, `output_bytes`,
///   `concurrency`, each a number or `unlimited`; and of `Retry`: `attempts`, `pause_ms`,
///   `pause_ms_max`;
/// * every hint for the history: `dedupe_by = "…"`, `summarise_by = "…"`, `compact`, `pin`.
#[proc_macro_attribute]
pub fn tool(args: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(args.into(), item.into()).into()
}

/// Makes a type a tool's input: readable, described by a schema, closed to unknown fields.
///
/// It derives `Deserialize` and `JsonSchema`, and takes all their attributes. An enum with fields
/// needs a tag, `#[serde(tag = "action")]`; an enum of plain words may be a field of an input, but
/// is none itself. `#[input(check)]` also calls the type's own `check(&self) -> Result<(), String>`
/// while a call is resolved.
#[proc_macro_attribute]
pub fn input(args: TokenStream, item: TokenStream) -> TokenStream {
    input::expand(args.into(), item.into()).into()
}
