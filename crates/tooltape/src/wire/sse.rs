//! Server-sent events, as the WHATWG standard reads them, out of bytes that come in any pieces.

use std::borrow::Cow;
use std::mem;

/// The bytes of one event. A server that sends more is not listened to.
pub const EVENT_BYTES_MAX: usize = 16 << 20;

/// The bytes that are kept of a line that is no field.
const STRANGE_BYTES_MAX: usize = 200;
/// What may stand before everything else, and says nothing.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits a stream into events.
///
/// Lines end with CR, LF or both, wherever the pieces end; bytes that are not UTF-8 become U+FFFD;
/// comments, unknown fields and `retry` are passed over; an event without its blank line never
/// happened. An event that lies whole in one piece is not copied, and every byte is looked at once.
///
/// ```
/// use tooltape::wire::{Sse, SseError};
///
/// let (mut sse, mut heard) = (Sse::default(), Vec::new());
/// for piece in ["data: on", "e\r\ndata: two\r", "\n\r\ndata: three\n"] {
///     sse.feed(piece.as_bytes(), |event| -> Result<(), SseError> {
///         heard.push(event.data.to_owned());
///         Ok(())
///     })?;
/// }
/// assert_eq!(heard, ["one\ntwo"]);
/// # Ok::<(), SseError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sse {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The lines of data that came in earlier pieces, each with its line end.
    data: Vec<u8>,
    /// The type of the event, as far as it has been said.
    name: String,
    /// The last id that was said. It stays until another is.
    id: String,
    /// Whether any line has come.
    begun: bool,
    /// The beginning of the first line that is no field.
    strange: Option<String>,
    /// Whether the last piece ended with CR, so that an LF would belong to it.
    after_cr: bool,
}

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Its type; empty where the stream names none.
    pub name: &'a str,
    /// Its lines of data.
    pub data: &'a str,
    /// The last id that the stream named.
    pub id: &'a str,
}

/// Why a stream is not listened to any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// An event is too long.
    #[error("an event has more than {EVENT_BYTES_MAX} bytes")]
    TooLong,
}

/// What a line says.
enum Line<'a> {
    Blank,
    Data(&'a [u8]),
    Name(&'a [u8]),
    Id(&'a [u8]),
    Nothing,
    Strange(&'a [u8]),
}

impl Sse {
    /// Takes the next bytes of the stream, and tells the events that end in them.
    ///
    /// An error of the listener ends it at once; what follows that event is lost.
    pub fn feed<E: From<SseError>>(
        &mut self,
        bytes: &[u8],
        mut tell: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = match bytes {
            [b'\n', rest @ ..] if self.after_cr => rest,
            bytes => bytes,
        };
        self.after_cr &= bytes.is_empty();
        // The only line of data of an event that began in this piece.
        let mut lone: Option<&[u8]> = None;
        while let Some(end) = line_end(rest) {
            let (line, ending) = (&rest[..end], rest[end]);
            rest = &rest[end + 1..];
            if ending == b'\r' {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if self.line.is_empty() {
                let begun = mem::replace(&mut self.begun, true);
                match read(line, begun) {
                    Line::Data(value) if lone.is_none() && self.data.is_empty() => {
                        lone = Some(bounded(value, 0)?);
                    }
                    said => self.take(said, &mut lone, &mut tell)?,
                }
            } else {
                bounded(line, self.line.len())?;
                self.line.extend_from_slice(line);
                let mut whole = mem::take(&mut self.line);
                let begun = mem::replace(&mut self.begun, true);
                match read(&whole, begun) {
                    // It stays where it is, as it may be long.
                    Line::Data(value) if self.data.is_empty() => {
                        let field = whole.len() - value.len();
                        whole.drain(..field);
                        whole.push(b'\n');
                        mem::swap(&mut self.data, &mut whole);
                    }
                    said => self.take(said, &mut lone, &mut tell)?,
                }
                whole.clear();
                self.line = whole;
            }
        }
        self.spill(&mut lone)?;
        self.line.extend_from_slice(bounded(rest, self.line.len())?);
        Ok(())
    }

    /// The data of an event that has all of its lines but the blank one, if there is one.
    pub(super) fn undispatched(&self) -> Option<Cow<'_, str>> {
        let data = self.data.strip_suffix(b"\n").filter(|_| self.line.is_empty());
        data.map(lossy)
    }

    /// The beginning of the first line that no such stream would have, if there is one.
    pub(super) fn strange(&self) -> Option<String> {
        let fields: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];
        let is_field = |line: &[u8]| {
            fields.iter().any(|field| line.starts_with(field) || field.starts_with(line))
        };
        let line = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line);
        let is_strange = !is_field(line) && !BYTE_ORDER_MARK.starts_with(line);
        self.strange.clone().or_else(|| is_strange.then(|| shown(line))?)
    }

    fn take<E: From<SseError>>(
        &mut self,
        line: Line<'_>,
        lone: &mut Option<&[u8]>,
        tell: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match line {
            Line::Blank => return self.dispatch(lone.take(), tell),
            Line::Data(value) => {
                self.spill(lone)?;
                self.keep(value)?;
            }
            Line::Name(name) => name_into(&mut self.name, name),
            Line::Id(id) if !id.contains(&0) => name_into(&mut self.id, id),
            Line::Id(_) | Line::Nothing => {}
            Line::Strange(line) => self.strange = self.strange.take().or_else(|| shown(line)),
        }
        Ok(())
    }

    /// Copies what would not outlive the piece that it lies in.
    fn spill(&mut self, lone: &mut Option<&[u8]>) -> Result<(), SseError> {
        lone.take().map_or(Ok(()), |value| self.keep(value))
    }

    fn keep(&mut self, value: &[u8]) -> Result<(), SseError> {
        self.data.extend_from_slice(bounded(value, self.data.len())?);
        self.data.push(b'\n');
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        lone: Option<&[u8]>,
        tell: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let told = match lone.or_else(|| self.data.strip_suffix(b"\n")) {
            Some(data) => {
                let data = lossy(data);
                tell(SseEvent { name: &self.name, data: &data, id: &self.id })
            }
            None => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        told
    }
}

fn name_into(name: &mut String, bytes: &[u8]) {
    name.clear();
    name.push_str(&lossy(bytes));
}

/// The text of bytes, whatever they are. The check for those that are text is much the faster one.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// What a line says, the first of a stream without its mark.
fn read(line: &[u8], begun: bool) -> Line<'_> {
    let line = match begun {
        true => line,
        false => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
    };
    if line.is_empty() {
        return Line::Blank;
    }
    let (field, value) = match line.iter().position(|byte| *byte == b':') {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, &line[line.len()..]),
    };
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match field {
        b"data" => Line::Data(value),
        b"event" => Line::Name(value),
        b"id" => Line::Id(value),
        b"" | b"retry" => Line::Nothing,
        _ => Line::Strange(line),
    }
}

fn shown(line: &[u8]) -> Option<String> {
    let line = &line[..line.len().min(STRANGE_BYTES_MAX)];
    Some(String::from_utf8_lossy(line).into_owned())
}

/// The bytes, if so many more are not too many.
fn bounded(bytes: &[u8], before: usize) -> Result<&[u8], SseError> {
    match before.saturating_add(bytes.len()) <= EVENT_BYTES_MAX {
        true => Ok(bytes),
        false => Err(SseError::TooLong),
    }
}

/// Where the first line of these bytes ends, eight bytes at a step.
fn line_end(bytes: &[u8]) -> Option<usize> {
    const STEP: usize = size_of::<u64>();
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let steps = bytes.chunks_exact(STEP).take_while(|step| {
        let word = u64::from_le_bytes((*step).try_into().expect("a step has eight bytes"));
        !(has_byte(word, b'\n') || has_byte(word, b'\r'))
    });
    let passed = steps.count() * STEP;
    bytes[passed..].iter().position(is_end).map(|at| passed + at)
}

/// Whether one of the eight bytes is this one.
fn has_byte(word: u64, byte: u8) -> bool {
    const ONES: u64 = u64::MAX / 0xFF;
    let zeroed = word ^ (ONES * u64::from(byte));
    zeroed.wrapping_sub(ONES) & !zeroed & (ONES << 7) != 0
}
