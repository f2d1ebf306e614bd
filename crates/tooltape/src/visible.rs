//! Text that others wrote, made safe for a person to look at.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The most marks on one character that are shown as they are; more would cover other lines.
const MARKS_MAX: usize = 4;

/// The text with everything spelled out that a terminal would obey, reorder or hide: control
/// sequences, also those of one character, what changes the direction of the text beside it, and
/// what takes no room.
///
/// Lines and tabs stay.
///
/// ```
/// use tooltape::visible;
///
/// assert_eq!(visible::text("user\u{202e}txt.exe\n"), "user\\u{202e}txt.exe\n");
/// assert_eq!(visible::line("a\u{1b}[2Jb\nc"), r"a\u{1b}[2Jb\nc");
/// assert_eq!(visible::json("\"\u{9b}\""), r#""\u009b""#);
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    spelled(text, |c| matches!(c, '\n' | '\t'), brace)
}

/// The same on one line: line ends and tabs are spelled out, too.
pub fn line(text: &str) -> Cow<'_, str> {
    spelled(text, |_| false, brace)
}

/// The same JSON document, with such characters as JSON escapes.
///
/// They stand only inside strings, so the document does not change.
pub fn json(json: &str) -> Cow<'_, str> {
    spelled(
        json,
        |c| c.is_ascii_whitespace(),
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").expect("a string takes everything");
            }
        },
    )
}

fn brace(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything"),
    }
}

fn spelled(text: &str, stays: fn(char) -> bool, spell: fn(&mut String, char)) -> Cow<'_, str> {
    let (mut before, mut out) = (Before::default(), None);
    for (at, c) in text.char_indices() {
        if before.hides(c) && !stays(c) {
            spell(out.get_or_insert_with(|| text[..at].to_owned()), c);
        } else if let Some(out) = &mut out {
            out.push(c);
        }
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// What stands before a character.
#[derive(Default)]
struct Before {
    /// Whether it is a character that may have a variant.
    varies: bool,
    /// How many marks the last character has.
    marks: usize,
}

impl Before {
    /// Whether the next character must be spelled out.
    fn hides(&mut self, c: char) -> bool {
        let (is_variant, is_mark) = (matches!(c, '\u{fe00}'..='\u{fe0f}'), is_mark(c));
        self.marks = if is_mark { self.marks + 1 } else { 0 };
        // One behind a picture says how to draw it; others say something else.
        let hides = match is_variant {
            true => !self.varies,
            false => is_deceptive(c) || self.marks > MARKS_MAX,
        };
        self.varies = !is_variant && !hides && !c.is_ascii();
        hides
    }
}

/// Whether a character is drawn on the one before it.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
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
            | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffc}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}
