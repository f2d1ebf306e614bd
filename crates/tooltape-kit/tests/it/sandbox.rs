//! Processes in the sandbox: what they can do, and how they end.

pub(crate) mod lab;
mod scene;
mod using;
mod sweeping;
mod previewing;
mod broken;
mod bounds;
mod kills;
mod attacks;
