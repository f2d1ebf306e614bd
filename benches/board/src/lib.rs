//! What is measured, how, and what it is held against.

mod cpu;
mod race;
mod subject;
mod corpus;
pub mod dispatch;
pub mod batch;
pub mod schema;
pub mod canon;
pub mod policy;
pub mod agent;
pub mod sse;
pub mod tape;
pub mod replay;
pub mod kit;
pub mod sandbox;
#[cfg(feature = "wasm")]
pub mod wasm;
mod figure;

pub use corpus::{Customer, Item, Order, Orders, Shipping, order, orders, text};
pub use cpu::{Stopwatch, Time};
pub use figure::{BOARD, Benchmark, Better, Entry, Figure, settle};
pub use race::{Effort, Lane, Measured, Racer, median, race};
pub use subject::{ADD_TEXT, Add, Kind, Subject, add, direct, toolbox};
