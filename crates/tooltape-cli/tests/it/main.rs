//! The tests of the `tooltape` command, through the built program.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]
#![allow(clippy::print_stdout, reason = "a test says what it counted, and what it could not check")]

mod home;
mod guide;
mod call;
mod doctor;
mod bad_input;
mod run;
mod saved_answers;
mod stopping;
mod sub_agents;
mod tools;
mod touches;
mod trust;
mod executables;
mod components;
mod config;
mod policy;
mod policy_rules;
mod secrets;
mod secrets_leaving;
mod web;
mod workspace;
mod init;
mod wasm_template;
mod labels;
mod models;
mod terminal;
mod asking;
mod disguises;
mod own_tools;
mod taped;
mod verifying;
mod replaying;
mod bad_tapes;
mod resuming;
mod approval_card;
mod approving;
mod recorded_talk;
mod kills;
mod tape_flaws;
