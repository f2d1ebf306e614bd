//! Says which links of a Markdown page lead nowhere: a tool that asks for a folder and a host.

mod links;
#[cfg(target_family = "wasm")]
mod component;

pub use links::{Target, links};
