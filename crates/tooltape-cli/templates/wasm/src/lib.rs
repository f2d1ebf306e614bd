//! Makes a name for addresses of a title: a tool.

mod slug;

#[cfg(target_family = "wasm")]
mod component;

pub use slug::{Input, Output, slug};
