//! Why a text is not acceptable JSON.

use std::fmt;

/// The most characters of a text that a message shows.
const CHARS_SHOWN_MAX: usize = 64;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes before it.
    pub at: usize,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column in characters, counted from 1.
    pub column: usize,
}

impl Place {
    pub(super) fn of(text: &str, at: usize) -> Self {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            at,
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}

/// Why a text is not acceptable JSON: what was found, and where.
///
/// The message is short whatever the text was, and says what to change in words that a model can
/// act on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// There is no value, only white space.
    #[error("the text is empty, expected a JSON value")]
    Empty,
    /// A character stands where JSON does not allow it.
    #[error("found {}, expected {expected}, at {place}", Shown(found.encode_utf8(&mut [0; 4])))]
    Syntax {
        /// What may stand there.
        expected: &'static str,
        /// What stands there.
        found: char,
        /// Where.
        place: Place,
    },
    /// The text ends inside the value: it was probably cut off.
    #[error("the text ends at {place}, expected {expected}")]
    Unfinished {
        /// What may come next.
        expected: &'static str,
        /// The end of the text.
        place: Place,
    },
    /// There is more text after the value.
    #[error("found more text after the JSON value, at {place}")]
    TrailingText {
        /// Where it begins.
        place: Place,
    },
    /// An object has two fields of the same name.
    #[error("found the key {} a second time in one object, at {place}", Shown(key))]
    DuplicateKey {
        /// The name, without escapes.
        key: String,
        /// The second of the two.
        place: Place,
    },
    /// A string holds half of a surrogate pair, which is no character.
    #[error("found half of a surrogate pair, expected both halves, at {place}")]
    LoneSurrogate {
        /// The escape.
        place: Place,
    },
    /// The bytes are not UTF-8.
    #[error("found a byte that is not UTF-8 at offset `{at}`")]
    NotUtf8 {
        /// The first such byte.
        at: usize,
    },
    /// The text begins with a byte order mark.
    #[error("found a byte order mark, expected a JSON value")]
    ByteOrderMark,
    /// The text is longer than the limit.
    #[error("the text has `{found}` bytes, expected at most `{limit}`")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
        /// The length of the text.
        found: usize,
    },
    /// Arrays and objects are nested deeper than the limit.
    #[error("arrays and objects are nested more than `{limit}` deep at {place}")]
    TooDeep {
        /// The limit.
        limit: usize,
        /// The first that is too deep.
        place: Place,
    },
    /// There are more values than the limit.
    #[error("there are more than `{limit}` values at {place}")]
    TooManyNodes {
        /// The limit.
        limit: usize,
        /// The first value too many.
        place: Place,
    },
    /// An integer has more digits than are kept exactly.
    #[error("an integer has `{found}` digits, expected at most `{limit}`, at {place}")]
    IntegerTooLong {
        /// The limit, in digits.
        limit: usize,
        /// The digits of the integer.
        found: usize,
        /// The number.
        place: Place,
    },
    /// A number is larger than the largest double.
    #[error("a number is out of the range of a double at {place}")]
    NumberOutOfRange {
        /// The number.
        place: Place,
    },
    /// A number beyond ±(2^53−1) has a fraction, which no double can hold.
    #[error("a number beyond 2^53 has a fraction, expected an integer, at {place}")]
    FractionLost {
        /// The number.
        place: Place,
    },
}

impl Unreadable {
    /// The bytes before the place where reading stopped.
    pub fn at(&self) -> usize {
        match self {
            Self::Empty | Self::ByteOrderMark => 0,
            Self::NotUtf8 { at } => *at,
            Self::TooLong { limit, .. } => *limit,
            Self::Syntax { place, .. }
            | Self::Unfinished { place, .. }
            | Self::TrailingText { place }
            | Self::DuplicateKey { place, .. }
            | Self::LoneSurrogate { place }
            | Self::TooDeep { place, .. }
            | Self::TooManyNodes { place, .. }
            | Self::IntegerTooLong { place, .. }
            | Self::NumberOutOfRange { place }
            | Self::FractionLost { place } => place.at,
        }
    }

    /// A word for the reason that stays the same from version to version.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Syntax { .. } => "syntax",
            Self::Unfinished { .. } => "unfinished",
            Self::TrailingText { .. } => "trailing_text",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::LoneSurrogate { .. } => "lone_surrogate",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::ByteOrderMark => "byte_order_mark",
            Self::TooLong { .. } => "too_long",
            Self::TooDeep { .. } => "too_deep",
            Self::TooManyNodes { .. } => "too_many_nodes",
            Self::IntegerTooLong { .. } => "integer_too_long",
            Self::NumberOutOfRange { .. } => "number_out_of_range",
            Self::FractionLost { .. } => "fraction_lost",
        }
    }
}

/// A text in backticks, without control characters and cut to a bounded length.
struct Shown<'t>(&'t str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`")?;
        for (position, character) in self.0.chars().enumerate() {
            match character {
                _ if position == CHARS_SHOWN_MAX => return f.write_str("…`"),
                '\'' | '"' | '\\' => write!(f, "{character}")?,
                _ => write!(f, "{}", character.escape_debug())?,
            }
        }
        f.write_str("`")
    }
}

/// What the parts of the reader that know no places found wrong, and at which offset.
#[derive(Debug)]
pub(super) enum Flaw {
    Expected(&'static str, usize),
    LoneSurrogate(usize),
}
