//! Tapes on disks that fail.

mod crashes;
mod errors;
mod full;
mod power;
mod stage;
mod workloads;
