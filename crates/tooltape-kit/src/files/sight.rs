//! What a search looks at, as a model says it.

use ignore::overrides::{Override, OverrideBuilder};

/// The longest glob, in bytes.
pub const GLOB_BYTES_MAX: usize = 1_024;

/// Reads a glob, as `.gitignore` has them; one that begins with `!` says what is not looked at.
pub(super) fn only(glob: Option<&str>) -> Result<Override, String> {
    let mut only = OverrideBuilder::new("");
    if let Some(glob) = glob {
        if !(1..=GLOB_BYTES_MAX).contains(&glob.len()) {
            let bytes = glob.len();
            return Err(format!("found {bytes} bytes, expected a glob of 1 to {GLOB_BYTES_MAX}"));
        }
        // An unclosed bracket is a mistake here, and not a name.
        only.allow_unclosed_class(false);
        only.add(glob).map_err(|err| format!("expected a glob, found {err}"))?;
    }
    only.build().map_err(|err| format!("expected a glob that is not too large, found {err}"))
}

/// The names that begin with a dot in a glob itself: whoever writes them asks for them.
pub(super) fn dotted(glob: &str) -> Override {
    let mut dotted = OverrideBuilder::new("");
    // What is not to be looked at is not asked for.
    let glob = if glob.starts_with('!') { "" } else { glob };
    for name in glob.split('/').filter(|name| name.starts_with('.')) {
        // A part of a brace is no glob, and asks for nothing.
        let _ = dotted.add(name);
    }
    dotted.build().unwrap_or_else(|_| Override::empty())
}

/// How many things are asked for.
pub(super) fn at_most(limit: Option<u64>, default: u64, most: u64) -> Result<u64, String> {
    match limit.unwrap_or(default) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(format!("/limit: found {limit}, expected 1 to {most}")),
    }
}
