//! What providers say and read on the wire.

mod recordings;
mod events;
mod streams;
mod prefixes;
mod replies;
mod thoughts;
mod strange;
mod doubts;
mod reader;
mod stage;
mod bodies;
mod again;
mod owners;
mod pictures;
mod asking;
mod ids;
