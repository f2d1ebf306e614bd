//! The strict reader: text in, table out, or the reason why not.

use std::borrow::Cow;

use super::limits::Limits;
use super::table::{Entry, SOURCE_ORDER, Table, Tag};
use super::unreadable::{Flaw, Place, Unreadable};
use super::{number, string};

/// The most fields among which a key is looked up one by one.
const FIELDS_UNLISTED_MAX: u32 = 16;

/// A step of reading; boxed, so that the good case stays in registers.
type Step<T> = Result<T, Box<Unreadable>>;

/// Reads a text that holds one value and white space.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Table, Unreadable> {
    let limits = limits.bounded();
    if text.len() > limits.bytes {
        return Err(Unreadable::TooLong { limit: limits.bytes, found: text.len() });
    }
    if text.starts_with('\u{feff}') {
        return Err(Unreadable::ByteOrderMark);
    }
    let table = Table::new();
    let mut reader =
        Reader { text, bytes: text.as_bytes(), at: 0, depth: 0, nodes: 0, limits, table };
    reader.skip_space();
    if reader.at == text.len() {
        return Err(Unreadable::Empty);
    }
    reader.value().map_err(|unreadable| *unreadable)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(Unreadable::TrailingText { place: Place::of(text, reader.at) });
    }
    Ok(reader.table)
}

/// A place in a text, and what was read before it.
///
/// Its methods begin at the first byte of what they read and end after the last, and say whether
/// the text between is canonical. They call each other no deeper than the depth limit.
struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth: usize,
    nodes: usize,
    limits: Limits,
    table: Table,
}

impl<'t> Reader<'t> {
    fn value(&mut self) -> Step<bool> {
        if self.nodes == self.limits.nodes {
            let place = self.place(self.at);
            return Err(Unreadable::TooManyNodes { limit: self.limits.nodes, place }.into());
        }
        self.nodes += 1;
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b't') => self.word("true", Tag::True),
            Some(b'f') => self.word("false", Tag::False),
            Some(b'n') => self.word("null", Tag::Null),
            Some(_) | None => Err(self.unexpected("a value")),
        }
    }

    fn array(&mut self) -> Step<bool> {
        let array = self.open(Tag::Array)?;
        let mut verbatim = !self.skip_space();
        let mut len = 0;
        if self.peek() != Some(b']') {
            loop {
                verbatim &= self.value()?;
                len += 1;
                verbatim &= !self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    Some(_) | None => return Err(self.unexpected("`,` or `]`")),
                }
                verbatim &= !self.skip_space();
            }
        }
        self.close(array, len, verbatim);
        Ok(verbatim)
    }

    fn object(&mut self) -> Step<bool> {
        let object = self.open(Tag::Object)?;
        let mut verbatim = !self.skip_space();
        let mut keys = Keys { len: 0, last: None, ascending: true, escaped: false };
        if self.peek() != Some(b'}') {
            loop {
                verbatim &= self.key(&mut keys)?;
                verbatim &= !self.skip_space();
                if self.peek() != Some(b':') {
                    return Err(self.unexpected("`:`"));
                }
                self.at += 1;
                verbatim &= !self.skip_space();
                verbatim &= self.value()?;
                verbatim &= !self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    Some(_) | None => return Err(self.unexpected("`,` or `}`")),
                }
                verbatim &= !self.skip_space();
            }
        }
        if !keys.ascending || keys.len > FIELDS_UNLISTED_MAX {
            verbatim &= self.list_keys(object, &keys)?;
        }
        self.close(object, keys.len, verbatim);
        Ok(verbatim)
    }

    fn key(&mut self, keys: &mut Keys<'t>) -> Step<bool> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in `\"`"));
        }
        let start = self.at + 1;
        let verbatim = self.string()?;
        let bytes = &self.bytes[start..self.at - 1];
        let plain = self.table.entries.last().is_some_and(|key| key.plain);
        keys.escaped |= !plain;
        keys.ascending &= plain && keys.last.is_none_or(|last| string::order(last, bytes).is_lt());
        keys.last = Some(bytes);
        keys.len += 1;
        Ok(verbatim)
    }

    fn string(&mut self) -> Step<bool> {
        let start = self.at;
        let scan = string::scan(self.bytes, start + 1).map_err(|flaw| self.refuse(flaw))?;
        self.at = scan.end + 1;
        self.push(Tag::String, start, scan.plain, scan.verbatim);
        Ok(scan.verbatim)
    }

    fn number(&mut self) -> Step<bool> {
        let start = self.at;
        let scan = number::scan(self.bytes, start).map_err(|flaw| self.refuse(flaw))?;
        let literal = &self.text[start..scan.end];
        let limit = self.limits.integer_digits;
        let too_long = |found| {
            let place = Place::of(self.text, start);
            Box::new(Unreadable::IntegerTooLong { limit, found, place })
        };
        let verbatim = match scan.integer_digits {
            Some(digits) if digits > limit => return Err(too_long(digits)),
            Some(_) => literal != "-0",
            None if number::is_surely_shortest(literal) => true,
            None => match number::form(literal) {
                number::Form::Digits(digits) if digits > limit => return Err(too_long(digits)),
                number::Form::Digits(_) => false,
                number::Form::Shortest(double) => number::is_shortest(literal, double),
                number::Form::OutOfRange => {
                    return Err(Unreadable::NumberOutOfRange { place: self.place(start) }.into());
                }
                number::Form::FractionLost => {
                    return Err(Unreadable::FractionLost { place: self.place(start) }.into());
                }
            },
        };
        self.at = scan.end;
        self.push(Tag::Number, start, scan.integer_digits.is_some(), verbatim);
        Ok(verbatim)
    }

    fn word(&mut self, word: &'static str, tag: Tag) -> Step<bool> {
        let start = self.at;
        for byte in word.bytes() {
            if self.peek() != Some(byte) {
                return Err(self.unexpected(match tag {
                    Tag::True => "`true`",
                    Tag::False => "`false`",
                    Tag::Null => "`null`",
                    Tag::Number | Tag::String | Tag::Array | Tag::Object => "a value",
                }));
            }
            self.at += 1;
        }
        self.push(tag, start, true, true);
        Ok(true)
    }

    /// Steps over an opening bracket.
    fn open(&mut self, tag: Tag) -> Step<usize> {
        if self.depth == self.limits.depth {
            let place = self.place(self.at);
            return Err(Unreadable::TooDeep { limit: self.limits.depth, place }.into());
        }
        self.depth += 1;
        self.push(tag, self.at, false, false);
        self.at += 1;
        Ok(self.table.entries.len() - 1)
    }

    /// Steps over the closing bracket of an array or object.
    fn close(&mut self, index: usize, len: u32, verbatim: bool) {
        self.depth -= 1;
        self.at += 1;
        let next = self.table.entries.len() as u32;
        let entry = &mut self.table.entries[index];
        (entry.end, entry.next, entry.len, entry.verbatim) = (self.at as u32, next, len, verbatim);
    }

    fn push(&mut self, tag: Tag, start: usize, plain: bool, verbatim: bool) {
        let (start, end) = (start as u32, self.at as u32);
        let next = self.table.entries.len() as u32 + 1;
        let order = SOURCE_ORDER;
        self.table.entries.push(Entry { start, end, next, len: 0, order, tag, plain, verbatim });
    }

    /// Lists an object's keys in canonical order, refusing duplicates; true if they stood in order.
    fn list_keys(&mut self, object: usize, keys: &Keys<'_>) -> Step<bool> {
        let Table { entries, order } = &mut self.table;
        let first = order.len();
        let mut key = object as u32 + 1;
        for _ in 0..keys.len {
            order.push(key);
            key = entries[key as usize + 1].next;
        }
        let listed = &mut order[first..];
        let inside = |key: u32| {
            let entry = entries[key as usize];
            &self.text[entry.start as usize + 1..entry.end as usize - 1]
        };
        let duplicate = if keys.escaped {
            let mut names: Vec<(Cow<'_, str>, u32)> =
                listed.iter().map(|key| (name(inside(*key)), *key)).collect();
            names.sort_unstable_by(|(left, left_key), (right, right_key)| {
                string::order(left.as_bytes(), right.as_bytes()).then(left_key.cmp(right_key))
            });
            listed.iter_mut().zip(&names).for_each(|(listed, (_, key))| *listed = *key);
            first_duplicate(&names, |(name, _)| name, |(_, key)| *key)
        } else {
            listed.sort_unstable_by(|left, right| {
                string::order(inside(*left).as_bytes(), inside(*right).as_bytes())
                    .then(left.cmp(right))
            });
            first_duplicate(listed, |key| inside(*key), |key| *key)
        };
        if let Some(key) = duplicate {
            let place = Place::of(self.text, entries[key as usize].start as usize);
            let key = name(inside(key)).into_owned();
            return Err(Unreadable::DuplicateKey { key, place }.into());
        }
        entries[object].order = first as u32;
        Ok(listed.is_sorted())
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Steps over white space; true if there was any.
    #[inline]
    fn skip_space(&mut self) -> bool {
        let start = self.at;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.at > start
    }

    fn place(&self, at: usize) -> Place {
        Place::of(self.text, at)
    }

    #[cold]
    fn unexpected(&self, expected: &'static str) -> Box<Unreadable> {
        self.refuse(Flaw::Expected(expected, self.at))
    }

    #[cold]
    fn refuse(&self, flaw: Flaw) -> Box<Unreadable> {
        Box::new(match flaw {
            Flaw::LoneSurrogate(at) => Unreadable::LoneSurrogate { place: self.place(at) },
            Flaw::Expected(expected, at) => {
                let place = self.place(at);
                match self.text[place.at..].chars().next() {
                    Some(found) => Unreadable::Syntax { expected, found, place },
                    None => Unreadable::Unfinished { expected, place },
                }
            }
        })
    }
}

/// What is known of an object's keys while it is read.
struct Keys<'t> {
    len: u32,
    last: Option<&'t [u8]>,
    /// None has an escape, and each comes after the one before it.
    ascending: bool,
    escaped: bool,
}

/// What a key stands for, given what stands between its quotes.
fn name(inside: &str) -> Cow<'_, str> {
    if inside.contains('\\') { string::unescape(inside).into() } else { inside.into() }
}

/// Of ordered keys, the first in the text that repeats another.
fn first_duplicate<'k, K, N: PartialEq + ?Sized + 'k>(
    ordered: &'k [K],
    name: impl Fn(&'k K) -> &'k N,
    key: impl Fn(&K) -> u32,
) -> Option<u32> {
    let repeats = ordered.windows(2).filter(|pair| name(&pair[0]) == name(&pair[1]));
    repeats.map(|pair| key(&pair[1])).min()
}
