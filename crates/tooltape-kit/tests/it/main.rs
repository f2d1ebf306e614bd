//! The tests of `tooltape-kit`, through its public interface.
#![cfg(unix)]
#![allow(clippy::print_stdout, reason = "a test says what it counted")]
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod world;
mod naive;
mod forms;
mod users;
mod shown;
mod spec;
mod footprint;
mod labels;
mod limits;
mod list_dir;
mod read_file;
mod edit_file;
mod replacing;
mod crash;
mod full;
mod writing;
mod patching;
mod rights;
mod sandbox;
mod attacks;
mod protected;
mod aliases;
mod cves;
mod special;
mod race;
mod ripgrep;
mod ignoring;
mod reading;
mod executables;
mod plain;
mod search;
mod search_attacks;
mod net;
mod web_fetch;
mod egress;
