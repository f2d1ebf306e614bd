//! A text file as a model reads it, and back to the bytes that it came from.

use std::borrow::Cow;
use std::str;

use encoding_rs::{Encoding, UTF_8};
use serde::Serialize;
use tooltape::ToolError;
use tooltape::schemars::JsonSchema;

use super::kind;
use crate::workspace::{WorkspacePath, shown};

/// The most bytes of the name of an encoding that a message shows.
const ENCODING_SHOWN_BYTES_MAX: usize = 64;

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
    /// Reads bytes as UTF-8.
    pub(super) fn of(path: &WorkspacePath, bytes: &[u8]) -> Result<Text, ToolError> {
        let expected = "expected UTF-8 without NUL";
        if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
            return Err(not_text(path, bytes, &format!("found a NUL at byte {at}, {expected}")));
        }
        let text = str::from_utf8(bytes).map_err(|err| {
            let at = err.valid_up_to();
            not_text(path, bytes, &format!("found 0x{:02x} at byte {at}, {expected}", bytes[at]))
        })?;
        Ok(Text::from(text))
    }

    /// Reads bytes as the encoding says; where none is named, as a byte order mark says, or as
    /// UTF-8.
    pub(super) fn decoded(
        path: &WorkspacePath,
        bytes: &[u8],
        named: Option<&str>,
    ) -> Result<(Text, &'static str), ToolError> {
        let marked = Encoding::for_bom(bytes).filter(|(encoding, _)| *encoding != UTF_8);
        let (encoding, skipped) = match (named, marked) {
            (None, None) => return Ok((Text::of(path, bytes)?, UTF_8.name())),
            (None, Some(marked)) => marked,
            (Some(named), marked) => {
                let encoding = Encoding::for_label(named.as_bytes()).ok_or_else(|| {
                    let named = shown(named, ENCODING_SHOWN_BYTES_MAX);
                    let told = format!(
                        "/encoding: `{named}` is not known, expected a label such as \
                         `windows-1252`, `utf-16le` or `shift_jis`"
                    );
                    ToolError::not_done(told).code("unknown_encoding")
                })?;
                let same = marked.filter(|(marked, _)| *marked == encoding);
                (encoding, same.map_or(0, |(_, skipped)| skipped))
            }
        };
        let name = encoding.name();
        let decoded =
            encoding.decode_without_bom_handling_and_without_replacement(&bytes[skipped..]);
        match decoded {
            Some(text) if !text.contains('\0') => Ok((Text::from(&text), name)),
            Some(_) => Err(not_text(path, bytes, &format!("found a NUL, read as {name}"))),
            None => Err(not_text(path, bytes, &format!("found what is not {name}"))),
        }
    }

    /// Reads what is text already.
    pub(super) fn from(text: &str) -> Text {
        let newline = Newline::of(text);
        Text { newline, text: newline.shown(text).into_owned() }
    }
}

/// Says what a file is instead of text, as far as that is known.
fn not_text(path: &WorkspacePath, bytes: &[u8], found: &str) -> ToolError {
    let told = match kind::image(bytes).or_else(|| kind::other(bytes)) {
        Some(kind) => format!("`{path}` is not text but {kind}: {found}"),
        None => format!("`{path}` is not text: {found}"),
    };
    ToolError::not_done(told).code("not_text")
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

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Newline::Lf => "lf",
            Newline::Crlf => "crlf",
            Newline::Mixed => "mixed",
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
