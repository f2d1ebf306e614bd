//! Text that is shared, or small enough to be copied instead.

use std::sync::Arc;

/// The most bytes of a text that is copied; the whole is then no larger than three words.
const SHORT_BYTES_MAX: usize = 15;

/// The longest text that is copied out of the memory that it was written in, in bytes.
const COPIED_BYTES_MAX: usize = 1 << 20;

/// A text that is cheap to clone, whatever its length.
#[derive(Clone)]
pub(super) enum Text {
    Short(Bytes),
    Shared(Arc<str>),
    /// In the memory that it was written in, since two of it would be too much.
    Long(Arc<String>),
}

/// The bytes of a short text, zeros behind them, and how many they are: two words, so that a text
/// is moved word by word.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(super) struct Bytes([u8; SHORT_BYTES_MAX + 1]);

impl Bytes {
    /// All bytes of a text, if they are few: its first and its last ones, which may overlap.
    #[inline]
    fn of(text: &[u8]) -> Option<Bytes> {
        let behind = |last: u64, len: usize| u128::from(last) << (8 * (text.len() - len));
        let both = match (text.first_chunk(), text.last_chunk(), text) {
            (Some(first), Some(last), _) if text.len() <= SHORT_BYTES_MAX => {
                u128::from(u64::from_le_bytes(*first)) | behind(u64::from_le_bytes(*last), 8)
            }
            (Some(_), Some(_), _) => return None,
            (_, _, [first, .., last]) => match (text.first_chunk(), text.last_chunk()) {
                (Some(first), Some(last)) => {
                    let last = u64::from(u32::from_le_bytes(*last));
                    u128::from(u32::from_le_bytes(*first)) | behind(last, 4)
                }
                (_, _) => {
                    let middle = u128::from(text[text.len() / 2]) << (8 * (text.len() / 2));
                    u128::from(*first) | middle | behind(u64::from(*last), 1)
                }
            },
            (_, _, [only]) => u128::from(*only),
            (_, _, []) => 0,
        };
        let len = (text.len() as u128) << (8 * SHORT_BYTES_MAX);
        Some(Bytes((both | len).to_le_bytes()))
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.0[..usize::from(self.0[SHORT_BYTES_MAX])]
    }
}

impl Text {
    #[inline]
    pub(super) fn new(text: &str) -> Text {
        match Text::short(text.as_bytes()) {
            Some(short) => short,
            None => Text::Shared(text.into()),
        }
    }

    /// Bytes that are known to be UTF-8, if they are few.
    #[inline]
    pub(super) fn short(text: &[u8]) -> Option<Text> {
        Bytes::of(text).map(Text::Short)
    }

    /// A text whose memory is shared, unless that costs more than a copy.
    #[inline]
    pub(super) fn sharing(text: &Arc<str>) -> Text {
        Text::short(text.as_bytes()).unwrap_or_else(|| Text::Shared(text.clone()))
    }

    /// A text whose memory may be kept.
    pub(super) fn written(mut text: String) -> Text {
        if text.len() <= COPIED_BYTES_MAX {
            return Text::new(&text);
        }
        text.shrink_to_fit();
        Text::Long(Arc::new(text))
    }

    /// Bytes that are known to be UTF-8, in a buffer whose memory is taken where they are many.
    #[inline]
    pub(super) fn drawn(buffer: &mut Vec<u8>) -> Text {
        const UTF_8: &str = "whoever wrote it wrote UTF-8";
        if let Some(short) = Text::short(buffer) {
            return short;
        }
        match buffer.len() <= COPIED_BYTES_MAX {
            true => Text::Shared(str::from_utf8(buffer).expect(UTF_8).into()),
            false => Text::written(String::from_utf8(std::mem::take(buffer)).expect(UTF_8)),
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Text::Short(bytes) => bytes.as_slice(),
            Text::Shared(text) => text.as_bytes(),
            Text::Long(text) => text.as_bytes(),
        }
    }

    #[inline]
    pub(super) fn as_str(&self) -> &str {
        match self {
            Text::Short(bytes) => str::from_utf8(bytes.as_slice()).expect("it was UTF-8"),
            Text::Shared(text) => text,
            Text::Long(text) => text,
        }
    }
}
