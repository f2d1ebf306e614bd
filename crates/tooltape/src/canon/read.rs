//! The strict reader: text in, table out, or the reason why not.

use super::limits::Limits;
use super::table::{Entry, SOURCE_ORDER, Table, Tag};
use super::unreadable::{Flaw, Place, Unreadable};
use super::{number, string};

/// The most fields among which a key is looked up one by one.
const FIELDS_UNLISTED_MAX: u32 = 16;

/// A step of reading; boxed, so that its good case is no more than a null pointer.
pub(super) type Step = Result<(), Box<Unreadable>>;

/// Reads a text that holds one value and white space into an empty table.
#[inline]
pub(super) fn read(text: &str, limits: &Limits, table: &mut Table) -> Step {
    let limits = limits.bounded();
    if text.len() > limits.bytes {
        return Err(Unreadable::TooLong { limit: limits.bytes, found: text.len() }.into());
    }
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        depth_left: limits.depth,
        nodes_left: limits.nodes,
        deviations: 0,
        limits,
        table,
    };
    match reader.token() {
        END if reader.at == text.len() => return Err(Unreadable::Empty.into()),
        0xEF if text.starts_with('\u{feff}') => return Err(Unreadable::ByteOrderMark.into()),
        first => reader.value(first)?,
    }
    if reader.token() != END || reader.at < text.len() {
        return Err(Unreadable::TrailingText { place: reader.place(reader.at) }.into());
    }
    Ok(())
}

/// What stands for the end of the text; as a byte of the text it is refused everywhere.
const END: u8 = 0;

/// A place in a text, and what was read before it.
///
/// Its methods begin at the first byte of what they read, which they are given, and end after the
/// last. They call each other no deeper than the depth limit.
struct Reader<'t, 'k> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    depth_left: usize,
    nodes_left: usize,
    /// How often the text was not canonical: a value without any is copied as it is.
    deviations: usize,
    limits: Limits,
    table: &'k mut Table,
}

impl<'t> Reader<'t, '_> {
    fn value(&mut self, first: u8) -> Step {
        if self.nodes_left == 0 {
            let place = self.place(self.at);
            return Err(Unreadable::TooManyNodes { limit: self.limits.nodes, place }.into());
        }
        self.nodes_left -= 1;
        match first {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b'{' => self.object(),
            b'[' => self.array(),
            b't' => self.word(b"true", Tag::True),
            b'f' => self.word(b"false", Tag::False),
            b'n' => self.word(b"null", Tag::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn array(&mut self) -> Step {
        let open = self.mark();
        self.enter(Tag::Array)?;
        let mut len = 0;
        let mut token = self.token();
        if token != b']' {
            loop {
                self.value(token)?;
                len += 1;
                match self.token() {
                    b',' => self.at += 1,
                    b']' => break,
                    _ => return Err(self.unexpected("`,` or `]`")),
                }
                token = self.token();
            }
        }
        self.leave(open, len);
        Ok(())
    }

    fn object(&mut self) -> Step {
        let open = self.mark();
        self.enter(Tag::Object)?;
        let mut keys = Keys { len: 0, last: None, ascending: true, escaped: false };
        let mut token = self.token();
        if token != b'}' {
            loop {
                if token != b'"' {
                    return Err(self.unexpected("a key in `\"`"));
                }
                let start = self.at + 1;
                self.string()?;
                keys.add(&self.bytes[start..self.at - 1], self.table.last_is_plain());
                if self.token() != b':' {
                    return Err(self.unexpected("`:`"));
                }
                self.at += 1;
                let first = self.token();
                self.value(first)?;
                match self.token() {
                    b',' => self.at += 1,
                    b'}' => break,
                    _ => return Err(self.unexpected("`,` or `}`")),
                }
                token = self.token();
            }
        }
        if !keys.ascending || keys.len > FIELDS_UNLISTED_MAX {
            self.list_keys(open.index, &keys)?;
        }
        self.leave(open, keys.len);
        Ok(())
    }

    #[inline]
    fn string(&mut self) -> Step {
        let start = self.at;
        let end = string::run_end(self.bytes, start + 1);
        if self.bytes.get(end) != Some(&b'"') {
            return self.string_with_escapes(end);
        }
        self.at = end + 1;
        self.push(Tag::String, start, true, true);
        Ok(())
    }

    #[inline(never)]
    fn string_with_escapes(&mut self, first_run_end: usize) -> Step {
        let start = self.at;
        let scan = string::scan(self.bytes, first_run_end).map_err(|flaw| self.refuse(flaw))?;
        self.at = scan.end + 1;
        self.push(Tag::String, start, scan.plain, scan.verbatim);
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Step {
        let start = self.at;
        match number::scan_plain(self.bytes, start) {
            Some(end) if end - start <= self.limits.integer_digits => {
                self.at = end;
                self.push(Tag::Number, start, true, true);
                Ok(())
            }
            Some(_) | None => self.any_number(),
        }
    }

    #[inline(never)]
    fn any_number(&mut self) -> Step {
        let start = self.at;
        let scan = number::scan(self.bytes, start).map_err(|flaw| self.refuse(flaw))?;
        let limit = self.limits.integer_digits;
        let too_long = |found| {
            let place = Place::of(self.text, start);
            Box::new(Unreadable::IntegerTooLong { limit, found, place })
        };
        let verbatim = match scan.integer_digits {
            Some(digits) if digits > limit => return Err(too_long(digits)),
            Some(_) => !self.bytes[start..].starts_with(b"-0"),
            None => match number::form(&self.text[start..scan.end]) {
                number::Form::Digits(digits) if digits > limit => return Err(too_long(digits)),
                number::Form::Digits(_) => false,
                number::Form::Shortest { verbatim } => verbatim,
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
        Ok(())
    }

    #[inline]
    fn word<const LEN: usize>(&mut self, word: &[u8; LEN], tag: Tag) -> Step {
        let start = self.at;
        if self.bytes[start..].first_chunk() != Some(word) {
            let same = self.bytes[start..].iter().zip(word);
            self.at += same.take_while(|(found, expected)| found == expected).count();
            return Err(self.unexpected("`true`, `false` or `null`"));
        }
        self.at += LEN;
        self.push(tag, start, true, true);
        Ok(())
    }

    /// What must be known at the end of the array or object that begins here.
    fn mark(&self) -> Open {
        Open { index: self.table.entries.len(), deviations: self.deviations }
    }

    /// Steps over an opening bracket.
    #[inline]
    fn enter(&mut self, tag: Tag) -> Step {
        if self.depth_left == 0 {
            let place = self.place(self.at);
            return Err(Unreadable::TooDeep { limit: self.limits.depth, place }.into());
        }
        self.depth_left -= 1;
        self.push(tag, self.at, true, true);
        self.at += 1;
        Ok(())
    }

    /// Steps over the closing bracket of an array or object.
    fn leave(&mut self, open: Open, len: u32) {
        self.depth_left += 1;
        self.at += 1;
        let next = self.table.entries.len() as u32;
        let entry = &mut self.table.entries[open.index];
        (entry.end, entry.next, entry.len) = (self.at as u32, next, len);
        entry.verbatim = self.deviations == open.deviations;
    }

    #[inline]
    fn push(&mut self, tag: Tag, start: usize, plain: bool, verbatim: bool) {
        let (start, end) = (start as u32, self.at as u32);
        let next = self.table.entries.len() as u32 + 1;
        let order = SOURCE_ORDER;
        self.deviations += usize::from(!verbatim);
        self.table.entries.push(Entry { start, end, next, len: 0, order, tag, plain, verbatim });
    }

    /// Lists an object's keys in canonical order, refusing duplicates.
    fn list_keys(&mut self, object: usize, keys: &Keys<'_>) -> Step {
        let Table { entries, order } = &mut *self.table;
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
        let repeats: fn(&str, &str) -> bool = if keys.escaped {
            listed.sort_by_cached_key(|key| string::units(inside(*key)));
            |left, right| string::units(left) == string::units(right)
        } else {
            listed.sort_by(|left, right| {
                string::order(inside(*left).as_bytes(), inside(*right).as_bytes())
            });
            |left, right| left == right
        };
        let repeats = |pair: &&[u32]| repeats(inside(pair[0]), inside(pair[1]));
        if let Some(key) = listed.windows(2).filter(repeats).map(|pair| pair[1]).min() {
            let place = Place::of(self.text, entries[key as usize].start as usize);
            let key = string::unescape(inside(key));
            return Err(Unreadable::DuplicateKey { key, place }.into());
        }
        entries[object].order = first as u32;
        self.deviations += usize::from(!listed.is_sorted());
        Ok(())
    }

    /// Steps over white space; gives the byte that follows, or `END`.
    #[inline]
    fn token(&mut self) -> u8 {
        match self.bytes.get(self.at) {
            Some(byte) if *byte > b' ' => *byte,
            Some(_) => self.token_after_space(),
            None => END,
        }
    }

    #[inline(never)]
    fn token_after_space(&mut self) -> u8 {
        let space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        let spaces = self.bytes[self.at..].iter().take_while(space).count();
        self.at += spaces;
        self.deviations += usize::from(spaces > 0);
        self.bytes.get(self.at).copied().unwrap_or(END)
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

/// An array or object whose end was not read yet.
struct Open {
    index: usize,
    /// The deviations before it.
    deviations: usize,
}

/// What is known of an object's keys while it is read.
struct Keys<'t> {
    len: u32,
    last: Option<&'t [u8]>,
    /// None has an escape, and each comes after the one before it.
    ascending: bool,
    escaped: bool,
}

impl<'t> Keys<'t> {
    /// Adds a key, given what stands between its quotes.
    #[inline]
    fn add(&mut self, inside: &'t [u8], plain: bool) {
        let after = |last: &'t [u8]| string::order(last, inside).is_lt();
        self.escaped |= !plain;
        self.ascending = self.ascending && plain && self.last.is_none_or(after);
        self.last = Some(inside);
        self.len += 1;
    }
}
