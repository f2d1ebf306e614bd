//! The `tooltape` command as a library.
