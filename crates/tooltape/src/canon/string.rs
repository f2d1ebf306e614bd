//! The inside of JSON strings: where they end, what they mean, and how keys are ordered.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::unreadable::Flaw;

/// A string that was found.
pub(super) struct Scan {
    /// The offset of its closing quote.
    pub(super) end: usize,
    /// It holds no escape, so it stands for itself.
    pub(super) plain: bool,
    /// Each of its escapes is the one that the canonical form uses.
    pub(super) verbatim: bool,
}

/// Finds the end of a string, given where the first run without escapes in it ends.
pub(super) fn scan(bytes: &[u8], first_run_end: usize) -> Result<Scan, Flaw> {
    let mut scan = Scan { end: first_run_end, plain: true, verbatim: true };
    loop {
        match bytes.get(scan.end) {
            Some(b'"') => return Ok(scan),
            Some(b'\\') => {
                let escape = Escape::read(bytes, scan.end)?;
                scan.end = run_end(bytes, scan.end + escape.len);
                scan.plain = false;
                scan.verbatim &= escape.verbatim;
            }
            Some(_) => {
                return Err(Flaw::Expected("an escape such as `\\n`", scan.end));
            }
            None => return Err(Flaw::Expected("`\"`", scan.end)),
        }
    }
}

/// What an accepted string stands for, given what stands between its quotes.
pub(super) fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    decode(inside, &mut out, String::push);
    out
}

/// Appends an accepted string, given what stands between its quotes, with canonical escapes.
pub(super) fn rewrite(inside: &str, out: &mut String) {
    out.push('"');
    decode(inside, out, push_canonical);
    out.push('"');
}

fn decode(inside: &str, out: &mut String, push: impl Fn(&mut String, char)) {
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = Escape::read(rest.as_bytes(), at).expect("the reader accepted this escape");
        push(out, escape.meaning);
        rest = &rest[at + escape.len..];
    }
    out.push_str(rest);
}

/// Orders two keys without escapes by UTF-16 code units.
///
/// UTF-8 bytes already stand in the order of code points. UTF-16 differs in one thing: characters
/// beyond U+FFFF (first bytes F0 to F4) come before U+E000 to U+FFFF (first bytes EE and EF).
#[inline]
pub(super) fn order(left: &[u8], right: &[u8]) -> Ordering {
    let rank = |byte: u8| if matches!(byte, 0xEE | 0xEF) { byte + 0x0A } else { byte };
    match left.iter().zip(right).find(|(left, right)| left != right) {
        Some((left, right)) => rank(*left).cmp(&rank(*right)),
        None => left.len().cmp(&right.len()),
    }
}

/// The UTF-16 code units of an accepted string, given what stands between its quotes.
pub(super) fn units(inside: &str) -> Vec<u16> {
    unescape(inside).encode_utf16().collect()
}

/// One escape of a string.
struct Escape {
    meaning: char,
    len: usize,
    verbatim: bool,
}

impl Escape {
    /// Reads the escape whose backslash is at `at`.
    fn read(bytes: &[u8], at: usize) -> Result<Self, Flaw> {
        let (meaning, verbatim) = match bytes.get(at + 1) {
            Some(b'"') => ('"', true),
            Some(b'\\') => ('\\', true),
            Some(b'b') => ('\u{8}', true),
            Some(b't') => ('\t', true),
            Some(b'n') => ('\n', true),
            Some(b'f') => ('\u{c}', true),
            Some(b'r') => ('\r', true),
            Some(b'/') => ('/', false),
            Some(b'u') => return Self::read_unicode(bytes, at),
            Some(_) | None => {
                return Err(Flaw::Expected("one of `\"\\/bfnrtu` after `\\`", at + 1));
            }
        };
        Ok(Self { meaning, len: 2, verbatim })
    }

    fn read_unicode(bytes: &[u8], at: usize) -> Result<Self, Flaw> {
        let unit = read_unit(bytes, at + 2)?;
        if let Some(meaning) = char::from_u32(unit) {
            let short = matches!(meaning, '\u{8}' | '\t' | '\n' | '\u{c}' | '\r');
            let lower = !bytes[at + 2..at + 6].iter().any(u8::is_ascii_uppercase);
            return Ok(Self { meaning, len: 6, verbatim: meaning < ' ' && !short && lower });
        }
        let (next, cut_off) = (bytes[at + 6..].iter().take(2), bytes.len() < at + 8);
        if unit >= 0xDC00 || next.zip(b"\\u").any(|(found, expected)| found != expected) {
            return Err(Flaw::LoneSurrogate(at));
        }
        if cut_off {
            return Err(Flaw::Expected("the other half of a surrogate pair", bytes.len()));
        }
        let low = read_unit(bytes, at + 8)?;
        if !(0xDC00..0xE000).contains(&low) {
            return Err(Flaw::LoneSurrogate(at));
        }
        let meaning = char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
        Ok(Self {
            meaning: meaning.expect("a whole pair is a character"),
            len: 12,
            verbatim: false,
        })
    }
}

fn read_unit(bytes: &[u8], at: usize) -> Result<u32, Flaw> {
    (at..at + 4).try_fold(0, |unit, at| {
        match bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16)) {
            Some(digit) => Ok(unit << 4 | digit),
            None => Err(Flaw::Expected("four hexadecimal digits after `\\u`", at)),
        }
    })
}

fn push_canonical(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        control if control < ' ' => {
            write!(out, "\\u{:04x}", u32::from(control)).expect("writing to a string succeeds");
        }
        other => out.push(other),
    }
}

/// The offset of the first quote, backslash or control character, or of the end.
///
/// It is where a run of characters that stand for themselves ends.
#[inline]
pub(crate) fn run_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let stops = stops(u64::from_le_bytes(*word));
        if stops != 0 {
            return at + (stops.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let is_stop = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().position(is_stop).map_or(bytes.len(), |more| at + more)
}

/// Marks the bytes of a word that end a run, right up to and including the lowest one.
#[inline]
fn stops(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (ONES * 0x80)
}
