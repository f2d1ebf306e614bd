//! The hash that a file is expected to have, so that nobody changes what he has not seen.

use tooltape::ToolError;

use crate::workspace::WorkspacePath;

/// The characters of a BLAKE3 hash in hexadecimal.
const HASH_CHARS: usize = 64;

/// The hash of a file's content, as tools return and expect it.
pub(super) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Checks that the argument `expect_hash` is a hash at all.
pub(super) fn check_form(expect_hash: Option<&str>) -> Result<(), String> {
    let is_hex = |hash: &str| hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match expect_hash {
        Some(hash) if hash.len() != HASH_CHARS || !is_hex(hash) => Err(format!(
            "/expect_hash: expected {HASH_CHARS} lower-case hexadecimal characters, as `read_file` \
             returns them"
        )),
        Some(_) | None => Ok(()),
    }
}

/// Checks that a file has the hash that is expected, where one is.
pub(super) fn check_hash(
    path: &WorkspacePath,
    bytes: &[u8],
    expect_hash: Option<&str>,
) -> Result<(), ToolError> {
    let hash = hash(bytes);
    match expect_hash.filter(|expected| *expected != hash) {
        None => Ok(()),
        Some(expected) => {
            let told = format!(
                "`{path}` has the hash `{hash}`, expected `{expected}`: it was changed, read it \
                 again"
            );
            Err(ToolError::not_done(told).code("precondition_failed"))
        }
    }
}
