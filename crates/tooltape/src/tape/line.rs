//! A record as it stands on a durable tape: its canonical text and the hashes that hold it.

use super::{Head, Record, TapeError};
use crate::canon::{Canon, Doc, Domain, Hash, Limits, run_end};
use crate::id::RunId;

/// The members of a record that differ between a run and its replay: no content hash covers them.
pub const STAMPS: [&str; 9] =
    ["approval", "at_us", "clock_us", "elapsed_us", "parent", "pause_ms", "run", "seq", "until_us"];

/// A record with its two hashes.
///
/// `content` is over the record without its [`STAMPS`]: what a replay compares. `hash` is over the
/// hash of the record before it, `content`, and the stamps: the chain. So what a record says can be
/// erased, and the chain still holds all that is left.
///
/// ```
/// use tooltape::{Event, Head, Line, Record, RunId};
///
/// let event = Event::Asked { text: "Fix the test.".into() };
/// let record = Record::new(RunId::new(1, [7; 10]), 0, 42, event);
/// let line = Line::of(&record, Head::empty().hash)?;
/// assert_eq!(Line::parse(&line.text())?, line);
/// assert!(Line::parse(&line.text().replace("test", "rest")).is_err());
/// # Ok::<(), tooltape::TapeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The whole record, or the stamps alone where it was erased.
    body: Canon,
    erased: bool,
    previous: Hash,
    content: Hash,
    hash: Hash,
}

impl Line {
    /// A record behind the one whose hash is `previous`.
    pub fn of(record: &Record, previous: Hash) -> Result<Line, TapeError> {
        let body = Canon::of(record)
            .map_err(|err| TapeError::Corrupt { seq: record.seq, why: err.to_string() })?;
        let (said, stamps) = parts(body.as_str());
        let content = Hash::of(Domain::Replay, said.as_bytes());
        let hash = link(previous, content, &stamps);
        Ok(Line { body, erased: false, previous, content, hash })
    }

    /// A record as a database keeps it: refused unless its text is canonical and both its hashes
    /// are those of the text.
    pub fn stored(
        body: &str,
        previous: Hash,
        content: Hash,
        hash: Hash,
    ) -> Result<Line, TapeError> {
        let canon = canonical(body)?;
        let (said, stamps) = parts(body);
        if content != Hash::of(Domain::Replay, said.as_bytes()) {
            return Err(corrupt(body, &"its content hash is that of another text"));
        }
        if hash != link(previous, content, &stamps) {
            return Err(corrupt(body, &"its hash is that of another text, or of another place"));
        }
        Ok(Line { body: canon, erased: false, previous, content, hash })
    }

    /// A record of which a database keeps the stamps alone, with the same care.
    pub fn erased(
        stamps: &str,
        previous: Hash,
        content: Hash,
        hash: Hash,
    ) -> Result<Line, TapeError> {
        let canon = canonical(stamps)?;
        if hash != link(previous, content, stamps) {
            return Err(corrupt(stamps, &"its hash is that of another text, or of another place"));
        }
        if parts(stamps).1 != stamps {
            return Err(corrupt(stamps, &"it was erased, and still says something"));
        }
        Ok(Line { body: canon, erased: true, previous, content, hash })
    }

    /// The same line without what the record said. Its hashes stay.
    #[must_use]
    pub fn erase(&self) -> Line {
        let (_, stamps) = parts(self.body());
        let body = canonical(&stamps).unwrap_or_else(|_| self.body.clone());
        Line { body, erased: true, ..self.clone() }
    }

    /// A line of an exported tape, without its line end. Refused unless it is byte for byte what
    /// [`Line::text`] gives.
    pub fn parse(text: &str) -> Result<Line, TapeError> {
        let other = || TapeError::Corrupt { seq: 0, why: "the line is not a record".to_owned() };
        let rest = text.strip_prefix(CONTENT).ok_or_else(other)?;
        let (content, rest) = rest.split_at_checked(HEX).ok_or_else(other)?;
        let erased = rest.starts_with(ERASED);
        let kind = if erased { ERASED } else { EVENT };
        let rest = rest.strip_prefix(kind).ok_or_else(other)?;
        let tail = HASH.len() + HEX + PREVIOUS.len() + HEX + END.len();
        let at = rest.len().checked_sub(tail).ok_or_else(other)?;
        let (body, rest) = rest.split_at_checked(at).ok_or_else(other)?;
        let rest = rest.strip_prefix(HASH).ok_or_else(other)?;
        let (hash, rest) = rest.split_at_checked(HEX).ok_or_else(other)?;
        let rest = rest.strip_prefix(PREVIOUS).ok_or_else(other)?;
        let previous = rest.strip_suffix(END).ok_or_else(other)?;
        let hash_of = |text: &str| text.parse().map_err(|_| other());
        let read = if erased { Line::erased } else { Line::stored };
        read(body, hash_of(previous)?, hash_of(content)?, hash_of(hash)?)
    }

    /// The line of an exported tape, without its line end. It is canonical JSON.
    pub fn text(&self) -> String {
        let Line { body, erased, previous, content, hash } = self;
        let kind = if *erased { ERASED } else { EVENT };
        format!("{CONTENT}{content}{kind}{body}{HASH}{hash}{PREVIOUS}{previous}{END}")
    }

    /// Whether what the record said was erased.
    pub fn is_erased(&self) -> bool {
        self.erased
    }

    /// The run of the record, and its place there.
    pub fn place(&self) -> Result<(RunId, u64), TapeError> {
        let (mut run, mut seq) = (None, None);
        for (name, value) in members(self.body()).into_iter().flatten() {
            match name {
                "run" => run = value.trim_matches('"').parse().ok(),
                "seq" => seq = value.parse().ok(),
                _ => {}
            }
        }
        run.zip(seq).ok_or_else(|| corrupt(self.body(), &"it does not say where it belongs"))
    }

    /// The record's canonical text; of an erased one, its stamps.
    pub fn body(&self) -> &str {
        self.body.as_str()
    }

    /// The hash of the record before it.
    pub fn previous(&self) -> Hash {
        self.previous
    }

    /// The hash of what a replay compares.
    pub fn content(&self) -> Hash {
        self.content
    }

    /// The hash of the record and of all before it.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The record, unless it was erased.
    pub fn record(&self) -> Result<Record, TapeError> {
        match self.erased {
            true => Err(TapeError::Erased { seq: self.place()?.1 }),
            false => Record::read(self.body()),
        }
    }
}

impl Head {
    /// The head once this line follows.
    pub fn then_line(self, line: &Line) -> Result<Head, TapeError> {
        let (_, seq) = line.place()?;
        let corrupt = |why: String| TapeError::Corrupt { seq: self.len, why };
        if seq != self.len {
            return Err(corrupt(format!("record {seq} is where record {} should be", self.len)));
        }
        if line.previous != self.hash {
            let (found, expected) = (line.previous, self.hash);
            return Err(corrupt(format!("it follows `{found}`, expected `{expected}`")));
        }
        Ok(Head { len: self.len + 1, hash: line.hash })
    }
}

const CONTENT: &str = r#"{"content":""#;
const EVENT: &str = r#"","event":"#;
const ERASED: &str = r#"","erased":"#;
const HASH: &str = r#","hash":""#;
const PREVIOUS: &str = r#"","previous":""#;
const END: &str = r#""}"#;
/// The digits of a hash.
const HEX: usize = 64;

fn corrupt(body: &str, why: &dyn std::fmt::Display) -> TapeError {
    // Where the place can still be read, the error names it.
    let seq = members(body).and_then(|mut members| members.find(|(name, _)| *name == "seq"));
    let seq = seq.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    TapeError::Corrupt { seq, why: why.to_string() }
}

fn canonical(text: &str) -> Result<Canon, TapeError> {
    let doc = Doc::read(text, &Limits::OWN).map_err(|err| corrupt(text, &err))?;
    match doc.is_canonical() {
        true => Ok(doc.canonical()),
        false => Err(corrupt(text, &"its text is not in canonical form")),
    }
}

fn link(previous: Hash, content: Hash, stamps: &str) -> Hash {
    let mut text = Vec::with_capacity(64 + stamps.len());
    text.extend_from_slice(previous.as_bytes());
    text.extend_from_slice(content.as_bytes());
    text.extend_from_slice(stamps.as_bytes());
    Hash::of(Domain::Event, &text)
}

/// A record's canonical text in two: what it says, and its stamps.
fn parts(body: &str) -> (String, String) {
    let (mut said, mut stamps) = (String::with_capacity(body.len()), String::with_capacity(128));
    for (name, value) in members(body).into_iter().flatten() {
        let part = if STAMPS.contains(&name) { &mut stamps } else { &mut said };
        part.push(if part.is_empty() { '{' } else { ',' });
        part.push('"');
        part.push_str(name);
        part.push_str("\":");
        part.push_str(value);
    }
    for part in [&mut said, &mut stamps] {
        part.push_str(if part.is_empty() { "{}" } else { "}" });
    }
    (said, stamps)
}

/// The members of an object in canonical form: names as written, and the text of values.
fn members(body: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let mut rest = body.strip_prefix('{')?;
    Some(std::iter::from_fn(move || {
        let named = rest.strip_prefix('"')?;
        let (name, after) = named.split_at(string_end(named)?);
        let after = after.strip_prefix("\":")?;
        let (value, after) = after.split_at(value_end(after)?);
        rest = after.get(1..)?;
        Some((name, value))
    }))
}

/// Where a string ends that began before this text.
fn string_end(text: &str) -> Option<usize> {
    let (bytes, mut at) = (text.as_bytes(), 0);
    loop {
        at = run_end(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Where the comma or the brace is that ends a member's value.
fn value_end(text: &str) -> Option<usize> {
    let (bytes, mut at, mut depth) = (text.as_bytes(), 0, 0_usize);
    loop {
        match *bytes.get(at)? {
            b',' | b'}' if depth == 0 => return Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => at += string_end(text.get(at + 1..)?)? + 1,
            _ => {}
        }
        at += 1;
    }
}
