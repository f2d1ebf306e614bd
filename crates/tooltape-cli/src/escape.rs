//! Makes text that others control safe to show on a terminal.

pub(crate) use tooltape::visible::{json, line, text};

/// As much of one line as fits into `chars`.
pub(crate) fn clipped(text: &str, chars: usize) -> String {
    // A spelled-out character is longer than itself, so no more than these are ever shown.
    let head: String = text.chars().take(chars + 1).collect();
    let line = line(&head);
    match line.char_indices().nth(chars) {
        None => line.into_owned(),
        Some(_) => line.chars().take(chars.saturating_sub(1)).chain(['…']).collect(),
    }
}
