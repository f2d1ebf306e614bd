//! A strictly read JSON text, and the values in it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::limits::Limits;
use super::table::{Entry, Table, Tag};
use super::text::Text;
use super::unreadable::Unreadable;
use super::write::Sets;
use super::{Canon, number, read, string, write};

/// The most digits of an integer of 64 bits.
const U64_DIGITS: usize = 20;

/// A strictly read JSON text.
///
/// It has one value, no duplicate keys, no lone surrogates, no number that changes its meaning, and
/// is within its [`Limits`]. The values are spans of the text; nothing is copied until asked for.
///
/// ```
/// use tooltape::{Doc, Limits};
///
/// let doc = Doc::read(r#"{"path": "a.txt", "lines": 2e1}"#, &Limits::default())?;
/// assert_eq!(doc.root().get("lines").and_then(|lines| lines.as_i64()), Some(20));
/// assert_eq!(doc.canonical().as_str(), r#"{"lines":20,"path":"a.txt"}"#);
///
/// let refused = Doc::read(r#"{"path": "a", "path": "b"}"#, &Limits::default());
/// assert_eq!(refused.unwrap_err().code(), "duplicate_key");
/// # Ok::<(), tooltape::Unreadable>(())
/// ```
pub struct Doc<'t> {
    text: &'t str,
    table: Table,
}

impl<'t> Doc<'t> {
    /// Reads a text, in time linear in its length but for the sorting of keys.
    #[inline]
    pub fn read(text: &'t str, limits: &Limits) -> Result<Self, Unreadable> {
        let mut doc = Self { text, table: Table::new() };
        match read::read(text, limits, &mut doc.table) {
            Ok(()) => Ok(doc),
            Err(unreadable) => Err(*unreadable),
        }
    }

    /// Reads bytes, which must be UTF-8 without a byte order mark.
    pub fn read_bytes(bytes: &'t [u8], limits: &Limits) -> Result<Self, Unreadable> {
        if bytes.len() > limits.bytes {
            return Err(Unreadable::TooLong { limit: limits.bytes, found: bytes.len() });
        }
        match str::from_utf8(bytes) {
            Ok(text) => Self::read(text, limits),
            Err(err) => Err(Unreadable::NotUtf8 { at: err.valid_up_to() }),
        }
    }

    /// The one value of the text.
    pub fn root(&self) -> Node<'_> {
        Node { doc: self, index: 0 }
    }

    /// The text that was read.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Whether the text is its own canonical form.
    pub fn is_canonical(&self) -> bool {
        let root = self.entry(0);
        root.verbatim && root.start == 0 && root.end as usize == self.text.len()
    }

    /// The canonical form of the text; a canonical text is taken as it is.
    pub fn canonical(&self) -> Canon {
        self.root().canonical()
    }

    /// The canonical form; where that is the text, and the text is this one, its memory is shared.
    pub(crate) fn canonical_in(&self, text: &Arc<str>) -> Canon {
        match self.is_canonical() && std::ptr::eq(self.text, &**text) {
            true => Canon(Text::Shared(text.clone())),
            false => self.canonical(),
        }
    }

    /// The canonical form, with the arrays that are sets ordered by their items' canonical bytes.
    pub fn canonical_with(&self, sets: &Sets) -> Canon {
        write::canonical(self, 0, Some(sets))
    }

    /// How many values it holds.
    pub(super) fn nodes(&self) -> usize {
        let keys = |entry: &Entry| if entry.tag == Tag::Object { entry.len as usize } else { 0 };
        let entries = &self.table.entries;
        entries.len() - entries.iter().map(keys).sum::<usize>()
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    #[inline]
    pub(super) fn entry(&self, index: u32) -> &Entry {
        &self.table.entries[index as usize]
    }

    /// The text of an entry.
    #[inline]
    pub(super) fn raw(&self, entry: &Entry) -> &str {
        &self.text[entry.start as usize..entry.end as usize]
    }

    /// The text of a string or key, without its quotes.
    pub(super) fn inside(&self, entry: &Entry) -> &str {
        &self.text[entry.start as usize + 1..entry.end as usize - 1]
    }

    /// What a string or key stands for.
    pub(super) fn string(&self, entry: &Entry) -> Cow<'_, str> {
        let inside = self.inside(entry);
        if entry.plain { inside.into() } else { string::unescape(inside).into() }
    }
}

/// Says how much was read, and nothing of what it holds.
impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let canonical = self.is_canonical();
        f.debug_struct("Doc")
            .field("bytes", &self.text.len())
            .field("entries", &self.table.entries.len())
            .field("canonical", &canonical)
            .finish()
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// The name that JSON Schema has for it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        })
    }
}

/// One value inside a [`Doc`].
#[derive(Clone, Copy)]
pub struct Node<'d> {
    doc: &'d Doc<'d>,
    index: u32,
}

impl<'d> Node<'d> {
    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self.entry().tag {
            Tag::Null => Kind::Null,
            Tag::False => Kind::Bool(false),
            Tag::True => Kind::Bool(true),
            Tag::Number => Kind::Number,
            Tag::String => Kind::String,
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// Its text, as it was written.
    pub fn raw(&self) -> &'d str {
        self.doc.raw(self.entry())
    }

    /// The bytes of the document before it.
    pub fn offset(&self) -> usize {
        self.entry().start as usize
    }

    /// What a string stands for; borrowed if it has no escapes.
    pub fn as_str(&self) -> Option<Cow<'d, str>> {
        let entry = self.entry();
        (entry.tag == Tag::String).then(|| self.doc.string(entry))
    }

    /// The literal of a number, as it was written.
    pub fn number_text(&self) -> Option<&'d str> {
        let entry = self.entry();
        (entry.tag == Tag::Number).then(|| self.doc.raw(entry))
    }

    /// Whether its value is an integer, however it is written: `1.0` and `1e3` are.
    pub fn is_integer(&self) -> bool {
        let integral = |literal| self.entry().plain || number::is_integer(literal);
        self.number_text().is_some_and(integral)
    }

    /// The integer that it is, if it has one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.integer()?.parse().ok()
    }

    /// The integer that it is, if it has one that fits.
    pub fn as_u64(&self) -> Option<u64> {
        self.integer()?.parse().ok()
    }

    /// The double nearest to a number; never infinite.
    pub fn as_f64(&self) -> Option<f64> {
        self.number_text()?.parse().ok()
    }

    /// How many items an array or fields an object has; 0 for all else.
    pub fn len(&self) -> usize {
        self.entry().len as usize
    }

    /// Whether it has neither items nor fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of an array, in order; none for all else.
    pub fn items(&self) -> impl Iterator<Item = Node<'d>> + use<'d> {
        let Self { doc, index } = *self;
        let len = if self.entry().tag == Tag::Array { self.len() } else { 0 };
        let mut next = index + 1;
        (0..len).map(move |_| {
            let item = Node { doc, index: next };
            next = item.entry().next;
            item
        })
    }

    /// The fields of an object, in the order of the text; none for all else.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'d, str>, Node<'d>)> + use<'d> {
        let doc = self.doc;
        self.keys().map(move |key| (doc.string(doc.entry(key)), Node { doc, index: key + 1 }))
    }

    /// The field of that name; fast also among many.
    pub fn get(&self, name: &str) -> Option<Node<'d>> {
        let doc = self.doc;
        let order =
            |key: u32| string::order(doc.string(doc.entry(key)).as_bytes(), name.as_bytes());
        let key = match doc.table().ordered_keys(self.entry()) {
            Some(keys) => keys.binary_search_by(|key| order(*key)).ok().map(|found| keys[found]),
            None => self.keys().find(|key| order(*key).is_eq()),
        };
        key.map(|key| Node { doc, index: key + 1 })
    }

    /// Its canonical form.
    pub fn canonical(&self) -> Canon {
        write::canonical(self.doc, self.index, None)
    }

    #[inline]
    fn entry(&self) -> &'d Entry {
        self.doc.entry(self.index)
    }

    /// The entries of an object's keys, in the order of the text.
    fn keys(&self) -> impl Iterator<Item = u32> + use<'d> {
        let Self { doc, index } = *self;
        let len = if self.entry().tag == Tag::Object { self.len() } else { 0 };
        let mut next = index + 1;
        (0..len).map(move |_| {
            let key = next;
            next = doc.entry(key + 1).next;
            key
        })
    }

    /// The digits of a number that is an integer of 64 bits or a little more.
    fn integer(&self) -> Option<Cow<'d, str>> {
        let literal = self.number_text()?;
        if self.entry().plain && self.entry().verbatim {
            return Some(literal.into());
        }
        number::integer(literal, U64_DIGITS).map(Cow::from)
    }
}

/// Says what it is and where, and nothing of what it holds.
impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("kind", &self.kind())
            .field("offset", &self.offset())
            .field("bytes", &self.raw().len())
            .finish()
    }
}
