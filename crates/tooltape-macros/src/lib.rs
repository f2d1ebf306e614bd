//! `#[tool]` and `#[input]`: names and documentation, never types.
