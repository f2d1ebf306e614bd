//! Makes text that others control safe to show on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with everything spelled out that a terminal would obey, reorder or hide.
///
/// Lines and tabs stay.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    spelled(text, |c| is_deceptive(c) && !matches!(c, '\n' | '\t'), brace)
}

/// The same on one line: line ends and tabs are spelled out, too.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    spelled(text, is_deceptive, brace)
}

/// The same JSON document, with such characters as JSON escapes.
///
/// They stand only inside strings, so the document does not change.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    spelled(
        json,
        |c| is_deceptive(c) && !c.is_ascii_whitespace(),
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").expect("a string takes everything");
            }
        },
    )
}

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

fn brace(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything"),
    }
}

fn spelled(text: &str, is_spelled: fn(char) -> bool, spell: fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_spelled) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_spelled(c) { spell(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether a character moves the cursor, starts a control sequence, changes the direction of what
/// stands beside it, or takes no room.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}
