//! A text file as a model reads it, and back to the bytes that it came from.

use std::borrow::Cow;
use std::str;

use serde::Serialize;
use tooltape::ToolError;
use tooltape::schemars::JsonSchema;

use crate::workspace::WorkspacePath;

/// How the lines of a file end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[serde(rename_all = "snake_case")]
pub(super) enum Newline {
    /// With a line feed, or there is only one line.
    Lf,
    /// With a carriage return and a line feed. The text shows only the line feed.
    Crlf,
    /// Not all in the same way. The text shows every byte.
    Mixed,
}

/// A text whose lines end with `\n`, unless the file mixes its line ends.
pub(super) struct Text {
    pub(super) newline: Newline,
    pub(super) text: String,
}

impl Text {
    /// Reads bytes as text.
    pub(super) fn of(path: &WorkspacePath, bytes: &[u8]) -> Result<Text, ToolError> {
        let binary = |found: String| {
            let told = format!("`{path}` is not text: {found}, expected UTF-8 without NUL");
            ToolError::not_done(told).code("not_text")
        };
        if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
            return Err(binary(format!("found a NUL at byte {at}")));
        }
        let text = str::from_utf8(bytes).map_err(|err| {
            let at = err.valid_up_to();
            binary(format!("found 0x{:02x} at byte {at}", bytes[at]))
        })?;
        let newline = Newline::of(text);
        Ok(Text { newline, text: newline.shown(text).into_owned() })
    }
}

impl Newline {
    fn of(text: &str) -> Newline {
        let (feeds, returns) = (text.matches('\n').count(), text.matches('\r').count());
        match text.matches("\r\n").count() {
            _ if returns == 0 => Newline::Lf,
            pairs if pairs == feeds && pairs == returns => Newline::Crlf,
            _ => Newline::Mixed,
        }
    }

    /// The text as a model reads and writes it.
    pub(super) fn shown(self, text: &str) -> Cow<'_, str> {
        match self {
            Newline::Lf | Newline::Crlf if text.contains("\r\n") => {
                text.replace("\r\n", "\n").into()
            }
            Newline::Lf | Newline::Crlf | Newline::Mixed => text.into(),
        }
    }

    /// The text as the file holds it.
    pub(super) fn stored(self, text: &str) -> Cow<'_, str> {
        match self {
            Newline::Crlf => text.replace('\n', "\r\n").into(),
            Newline::Lf | Newline::Mixed => text.into(),
        }
    }
}
