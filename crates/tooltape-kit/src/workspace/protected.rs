//! Names that no tool writes, because what stands in them is run or obeyed by others.

/// Protected names, at any depth, with everything below them.
const PROTECTED: [&str; 7] =
    [".git", ".tooltape", "tooltape.toml", ".mcp.json", ".vscode", ".idea", ".envrc"];

/// What a file system that abbreviates names calls `.git`.
const GIT_ABBREVIATED: &str = "git~1";

/// The protected name that a name is, or may be taken for by some file system.
pub(super) fn protected(name: &str) -> Option<&'static str> {
    let name = folded(name);
    let name = if name == GIT_ABBREVIATED { ".git" } else { &name };
    PROTECTED.into_iter().find(|protected| *protected == name)
}

/// The name as the most forgiving file system reads it: without case, without characters that
/// cannot be seen, without a stream after a colon, and without dots and spaces at its end.
fn folded(name: &str) -> String {
    let seen = name.split(':').next().unwrap_or(name).chars().filter(|c| !is_ignorable(*c));
    // Upper case first: some letters, such as a long s, meet their kin only there.
    let folded: String = seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    folded.trim_end_matches(['.', ' ']).to_owned()
}

/// Characters that some file systems leave out when they compare names.
fn is_ignorable(c: char) -> bool {
    let ranges = ['\u{200c}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{206a}'..='\u{206f}'];
    c == '\u{feff}' || ranges.iter().any(|range| range.contains(&c))
}
