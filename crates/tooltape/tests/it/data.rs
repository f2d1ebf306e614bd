//! The folder of third-party data that some checks read.

use std::io::Write as _;
use std::path::PathBuf;

/// The folder of data, or nothing, having said how many checks cannot be made without it.
pub(crate) fn folder(checks: usize) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = PathBuf::from(std::env::var_os("TOOLTAPE_DATA").unwrap_or(beside.into()));
    if folder.is_dir() {
        return Some(folder);
    }
    let required = std::env::var_os("TOOLTAPE_DATA_REQUIRED").is_some_and(|value| value == "1");
    assert!(!required, "data: not present in `{}`, but required", folder.display());
    // Written past the test harness, which hides what a passing test prints.
    writeln!(std::io::stderr(), "data: not present, {checks} checks not made").ok();
    None
}
