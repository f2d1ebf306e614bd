//! The canonical writer: table in, canonical text out.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::doc::Doc;
use super::pool::{self, Pool};
use super::table::{Entry, Tag};
use super::{Canon, number, string};

/// The largest buffer that a thread keeps, in bytes.
const BUFFER_BYTES_KEPT_MAX: usize = 256 << 10;

/// Which arrays of a document are sets, whose order means nothing.
///
/// It has the shape of the documents that it speaks of, as their schema does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sets {
    /// This array is a set.
    pub here: bool,
    /// What holds for each item of this array.
    pub items: Option<Box<Sets>>,
    /// What holds for the fields of this object, by name.
    pub fields: BTreeMap<String, Sets>,
    /// What holds for every field of this object that has no name above.
    pub others: Option<Box<Sets>>,
}

impl Sets {
    /// Whether it names no set at all.
    pub fn is_empty(&self) -> bool {
        !self.here
            && self.items.as_ref().is_none_or(|items| items.is_empty())
            && self.fields.values().all(Self::is_empty)
            && self.others.as_ref().is_none_or(|others| others.is_empty())
    }

    fn field(&self, name: &str) -> Option<&Self> {
        self.fields.get(name).or(self.others.as_deref())
    }
}

/// The canonical form of one value of a document.
pub(super) fn canonical(doc: &Doc<'_>, index: u32, sets: Option<&Sets>) -> Canon {
    thread_local! {
        static KEPT: Pool<String> = const { Cell::new(None) };
    }
    let sets = sets.filter(|sets| !sets.is_empty());
    let entry = doc.entry(index);
    if entry.verbatim && sets.is_none() {
        return Canon::new(doc.raw(entry));
    }
    let mut out = pool::take(&KEPT);
    Writer { doc, out: &mut out }.value(index, sets);
    let canon = Canon::new(&out);
    if out.capacity() <= BUFFER_BYTES_KEPT_MAX {
        out.clear();
        pool::keep(&KEPT, out);
    }
    canon
}

/// Appends values to a text; calls itself no deeper than the reader's depth limit.
struct Writer<'d, 'o> {
    doc: &'d Doc<'d>,
    out: &'o mut String,
}

impl<'d> Writer<'d, '_> {
    fn value(&mut self, index: u32, sets: Option<&Sets>) {
        let entry = self.doc.entry(index);
        if entry.verbatim && sets.is_none() {
            return self.out.push_str(self.doc.raw(entry));
        }
        match entry.tag {
            Tag::Null | Tag::False | Tag::True => self.out.push_str(self.doc.raw(entry)),
            Tag::Number => self.number(entry),
            Tag::String => self.string(entry),
            Tag::Array => self.array(index, entry, sets),
            Tag::Object => self.object(index, entry, sets),
        }
    }

    fn number(&mut self, entry: &Entry) {
        if entry.verbatim {
            self.out.push_str(self.doc.raw(entry));
        } else {
            number::rewrite(self.doc.raw(entry), self.out);
        }
    }

    fn string(&mut self, entry: &Entry) {
        if entry.verbatim {
            self.out.push_str(self.doc.raw(entry));
        } else {
            string::rewrite(self.doc.inside(entry), self.out);
        }
    }

    fn array(&mut self, index: u32, entry: &Entry, sets: Option<&Sets>) {
        let item_sets = sets.and_then(|sets| sets.items.as_deref());
        self.out.push('[');
        let first = self.out.len();
        let mut ends = Vec::new();
        let mut item = index + 1;
        for position in 0..entry.len {
            if position > 0 {
                self.out.push(',');
            }
            self.value(item, item_sets);
            if sets.is_some_and(|sets| sets.here) {
                ends.push(self.out.len());
            }
            item = self.doc.entry(item).next;
        }
        self.sort_items(first, &ends);
        self.out.push(']');
    }

    /// Orders the items that were written from `first` on, each up to its end, by their bytes.
    fn sort_items(&mut self, first: usize, ends: &[usize]) {
        let starts = std::iter::once(first).chain(ends.iter().map(|end| end + 1));
        let mut items: Vec<&str> =
            starts.zip(ends).map(|(start, end)| &self.out[start..*end]).collect();
        if !items.is_sorted() {
            items.sort_unstable();
            let sorted = items.join(",");
            self.out.truncate(first);
            self.out.push_str(&sorted);
        }
    }

    fn object(&mut self, index: u32, entry: &Entry, sets: Option<&Sets>) {
        self.out.push('{');
        match self.doc.table().ordered_keys(entry) {
            Some(keys) => {
                for (position, key) in keys.iter().enumerate() {
                    self.field(*key, position, sets);
                }
            }
            None => {
                let mut key = index + 1;
                for position in 0..entry.len as usize {
                    self.field(key, position, sets);
                    key = self.doc.entry(key + 1).next;
                }
            }
        }
        self.out.push('}');
    }

    fn field(&mut self, key: u32, position: usize, sets: Option<&Sets>) {
        if position > 0 {
            self.out.push(',');
        }
        let entry = self.doc.entry(key);
        self.string(entry);
        self.out.push(':');
        self.value(key + 1, sets.and_then(|sets| sets.field(&self.doc.string(entry))));
    }
}
