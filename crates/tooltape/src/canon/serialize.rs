//! The canonical serializer: any value in, canonical text out, in one pass.

use std::cell::{Cell, RefCell};
use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

use super::doc::Doc;
use super::limits::Limits;
use super::pool::{self, Pool};
use super::strict::Strict;
use super::text::Text;
use super::unreadable::{Place, Unreadable};
use super::{Canon, Uncanonical, string};

/// The largest text whose memory a thread keeps, in bytes.
const TEXT_BYTES_KEPT_MAX: usize = 256 << 10;

/// The most fields whose memory a thread keeps.
const FIELDS_KEPT_MAX: usize = 8_192;

/// The canonical form of a value, if it is within limits.
///
/// `serde_json` walks the value and writes its strings and integers, which are canonical as they
/// are. For the rest it asks its formatter, and that is ours: doubles, raw JSON, order of fields.
pub(super) fn canonical<T: Serialize + ?Sized>(
    value: &T,
    limits: &Limits,
) -> Result<Canon, Uncanonical> {
    thread_local! {
        static KEPT: Pool<Box<Draft>> = const { Cell::new(None) };
    }
    let mut draft = pool::take(&KEPT);
    let Draft { text, marks } = &mut *draft;
    (marks.limits, marks.left) = (*limits, *limits);
    let mut serializer = Serializer::with_formatter(Out(text), Canonical { text, marks });
    let written = value.serialize(Strict(&mut serializer));
    let canon = draft.end(written)?;
    let Draft { text, marks } = &mut *draft;
    let (text, fields) = (text.get_mut(), &mut marks.fields);
    if text.capacity() <= TEXT_BYTES_KEPT_MAX && fields.capacity() <= FIELDS_KEPT_MAX {
        text.clear();
        fields.clear();
        marks.objects.clear();
        pool::keep(&KEPT, draft);
    }
    Ok(canon)
}

fn as_str(text: &[u8]) -> &str {
    str::from_utf8(text).expect("serde_json writes UTF-8")
}

/// A text that is being written.
///
/// `serde_json` writes at one end while its formatter looks at the other, hence the cell.
#[derive(Default)]
struct Draft {
    text: RefCell<Vec<u8>>,
    marks: Marks,
}

impl Draft {
    #[inline(always)]
    fn end(&mut self, written: Result<(), serde_json::Error>) -> Result<Canon, Uncanonical> {
        if let Some(unreadable) = self.marks.refusal.take() {
            return Err(unreadable.into());
        }
        written?;
        let text = self.text.get_mut();
        self.marks.check_length(text.len())?;
        Ok(Canon(Text::drawn(text)))
    }
}

/// What is known of a text that is being written.
#[derive(Default)]
struct Marks {
    /// The objects that are open, the innermost last.
    objects: Vec<Object>,
    /// The fields of the open objects, those of the innermost last.
    fields: Vec<Field>,
    /// Where fields are put in order.
    sorted: Vec<u8>,
    /// Whether an escape was written since the last key began.
    escaped: bool,
    limits: Limits,
    /// The depth and the values that may still come.
    left: Limits,
    /// Why writing was stopped.
    refusal: Option<Unreadable>,
}

impl Marks {
    fn check_length(&self, found: usize) -> Result<(), Unreadable> {
        let limit = self.limits.bytes;
        if found > limit { Err(Unreadable::TooLong { limit, found }) } else { Ok(()) }
    }
}

/// An object that is open.
struct Object {
    /// Where its fields begin in the text.
    start: usize,
    /// Where its fields begin among all.
    first: usize,
    /// None of its keys has an escape, and each comes after the one before it.
    ascending: bool,
    escaped: bool,
}

/// A field of an open object.
struct Field {
    /// Where its key begins, with the quote.
    start: usize,
    /// Where its key ends, with the quote.
    key_end: usize,
    /// Where its value ends.
    end: usize,
}

impl Field {
    fn key<'b>(&self, text: &'b [u8]) -> &'b [u8] {
        &text[self.start + 1..self.key_end - 1]
    }
}

/// Where `serde_json` writes.
struct Out<'t>(&'t RefCell<Vec<u8>>);

impl io::Write for Out<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `serde_json` asks how to write.
struct Canonical<'t> {
    text: &'t RefCell<Vec<u8>>,
    marks: &'t mut Marks,
}

impl Canonical<'_> {
    #[cold]
    fn refuse(&mut self, why: impl FnOnce(Place) -> Unreadable, at: usize) -> io::Error {
        self.marks.refusal = Some(why(Place::of(as_str(&self.text.borrow()), at)));
        io::ErrorKind::InvalidData.into()
    }

    /// Counts an array or object that begins.
    fn enter(&mut self) -> io::Result<()> {
        if self.marks.left.depth == 0 {
            let (limit, at) = (self.marks.limits.depth, self.text.borrow().len());
            return Err(self.refuse(|place| Unreadable::TooDeep { limit, place }, at));
        }
        self.marks.left.depth -= 1;
        Ok(())
    }

    /// Counts a value that is written inside another.
    fn count(&mut self) -> io::Result<()> {
        let at = self.text.borrow().len();
        if let Err(unreadable) = self.marks.check_length(at) {
            return Err(self.refuse(|_| unreadable, 0));
        }
        // One is left for the value that holds all others.
        if self.marks.left.nodes == 1 {
            let limit = self.marks.limits.nodes;
            return Err(self.refuse(|place| Unreadable::TooManyNodes { limit, place }, at));
        }
        self.marks.left.nodes -= 1;
        Ok(())
    }

    /// Writes a JSON text from elsewhere in its canonical form.
    fn write_raw(&mut self, json: &str) -> io::Result<()> {
        match Doc::read(json, &self.marks.left) {
            Ok(doc) => {
                self.marks.left.nodes -= doc.nodes() - 1;
                let canonical = doc.canonical();
                self.text.borrow_mut().extend_from_slice(canonical.as_bytes());
                Ok(())
            }
            Err(unreadable) => Err(self.refuse(|_| unreadable, 0)),
        }
    }

    /// Brings the fields of the innermost object into canonical order, refusing duplicates.
    fn sort_fields(&mut self, object: &Object) -> io::Result<()> {
        let mut text = self.text.borrow_mut();
        let Marks { fields, sorted, .. } = &mut *self.marks;
        let fields = &mut fields[object.first..];
        let repeats: fn(&[u8], &[u8]) -> bool = if object.escaped {
            fields.sort_by_cached_key(|field| string::units(as_str(field.key(&text))));
            |left, right| string::units(as_str(left)) == string::units(as_str(right))
        } else {
            fields.sort_by(|left, right| string::order(left.key(&text), right.key(&text)));
            |left, right| left == right
        };
        let repeats = |pair: &&[Field]| repeats(pair[0].key(&text), pair[1].key(&text));
        if let Some(pair) = fields.windows(2).find(repeats) {
            let (key, at) = (string::unescape(as_str(pair[1].key(&text))), pair[1].start);
            drop(text);
            return Err(self.refuse(|place| Unreadable::DuplicateKey { key, place }, at));
        }
        for field in fields {
            if !sorted.is_empty() {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&text[field.start..field.end]);
        }
        text.truncate(object.start);
        text.append(sorted);
        Ok(())
    }
}

impl Formatter for Canonical<'_> {
    fn write_f32<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        writer.write_all(ryu_js::Buffer::new().format_finite(value).as_bytes())
    }

    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(ryu_js::Buffer::new().format_finite(value).as_bytes())
    }

    fn write_number_str<W: io::Write + ?Sized>(&mut self, _: &mut W, json: &str) -> io::Result<()> {
        self.write_raw(json)
    }

    fn write_raw_fragment<W: io::Write + ?Sized>(
        &mut self,
        _: &mut W,
        json: &str,
    ) -> io::Result<()> {
        self.write_raw(json)
    }

    #[inline]
    fn write_char_escape<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.marks.escaped = true;
        CompactFormatter.write_char_escape(writer, escape)
    }

    #[inline]
    fn begin_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    #[inline]
    fn end_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.marks.left.depth += 1;
        writer.write_all(b"]")
    }

    #[inline]
    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.count()?;
        if first { Ok(()) } else { writer.write_all(b",") }
    }

    #[inline]
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")?;
        let (start, first) = (self.text.borrow().len(), self.marks.fields.len());
        self.marks.objects.push(Object { start, first, ascending: true, escaped: false });
        Ok(())
    }

    #[inline]
    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        let object = self.marks.objects.pop().expect("an object ends after it began");
        if !object.ascending {
            self.sort_fields(&object)?;
        }
        self.marks.fields.truncate(object.first);
        self.marks.left.depth += 1;
        writer.write_all(b"}")
    }

    #[inline]
    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.count()?;
        if !first {
            writer.write_all(b",")?;
        }
        let start = self.text.borrow().len();
        self.marks.escaped = false;
        self.marks.fields.push(Field { start, key_end: start, end: start });
        Ok(())
    }

    #[inline]
    fn end_object_key<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        let text = self.text.borrow();
        let Marks { objects, fields, escaped, .. } = &mut *self.marks;
        let object = objects.last_mut().expect("a key belongs to an object");
        let fields = &mut fields[object.first..];
        fields.last_mut().expect("a key belongs to a field").key_end = text.len();
        object.escaped |= *escaped;
        object.ascending &= !object.escaped;
        if let ([.., last, field], true) = (&*fields, object.ascending) {
            object.ascending = string::order(last.key(&text), field.key(&text)).is_lt();
        }
        Ok(())
    }

    #[inline]
    fn end_object_value<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        let end = self.text.borrow().len();
        self.marks.fields.last_mut().expect("the value belongs to a field").end = end;
        Ok(())
    }
}
