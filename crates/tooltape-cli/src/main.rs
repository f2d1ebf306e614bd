//! The `tooltape` command.

fn main() {}
