//! The walls that a process builds around itself, and can never take down again.

mod landlock;
mod limits;
mod privileges;
mod seccomp;

pub(super) use landlock::restrict as landlock;
pub(super) use limits::set as limits;
pub(super) use privileges::{count, give_up};
pub(super) use seccomp::filter as seccomp;
