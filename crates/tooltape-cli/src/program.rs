//! How the program was started, so that what it suggests can be typed.

use std::path::Path;

use crate::escape;

/// The program's name, without its folder.
pub(crate) fn name() -> String {
    let typed = std::env::args().next().unwrap_or_default();
    let name = Path::new(&typed).file_stem().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "tooltape".to_owned())
}

/// The program as the user typed it.
pub(crate) fn program() -> String {
    let typed = std::env::args().next().filter(|typed| !typed.is_empty());
    quoted(&typed.unwrap_or_else(|| "tooltape".to_owned()))
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", escape::line(word).replace('\'', r"'\''"))
    }
}
