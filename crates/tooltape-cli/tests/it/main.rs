//! The tests of the `tooltape` command, through the built program.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

mod home;
mod call;
mod bad_input;
mod run;
mod stopping;
mod tools;
mod touches;
mod config;
mod policy;
mod workspace;
mod init;
mod terminal;
mod own_tools;
