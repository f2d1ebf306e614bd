//! The flat table of a document's values, in the order of its text.

use std::cell::Cell;
use std::mem;

use super::pool::{self, Pool};

/// The largest table that a thread keeps, in entries.
const ENTRIES_KEPT_MAX: usize = 8_192;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

/// One value, or the key of a field, which stands right before its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where its text begins.
    pub(super) start: u32,
    /// Where its text ends.
    pub(super) end: u32,
    /// The entry after it and all that it holds.
    pub(super) next: u32,
    /// How many items or fields it holds.
    pub(super) len: u32,
    /// Where the ordered keys of an object begin; `SOURCE_ORDER` if its text has them in order.
    pub(super) order: u32,
    pub(super) tag: Tag,
    /// A string without escapes, or an integer literal.
    pub(super) plain: bool,
    /// Its text is canonical as it is.
    pub(super) verbatim: bool,
}

/// Says that an object's keys stand in canonical order in its text.
pub(super) const SOURCE_ORDER: u32 = u32::MAX;

/// The values of a document, each before those it holds.
#[derive(Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
    /// The keys of the objects that need it, each object's in canonical order.
    pub(super) order: Vec<u32>,
}

thread_local! {
    static KEPT: Pool<(Vec<Entry>, Vec<u32>)> = const { Cell::new(None) };
}

impl Table {
    /// An empty table, in the memory of an earlier one if the thread kept any.
    pub(super) fn new() -> Self {
        let (entries, order) = pool::take(&KEPT);
        Self { entries, order }
    }

    /// Whether the entry that was added last is plain.
    pub(super) fn last_is_plain(&self) -> bool {
        self.entries.last().is_some_and(|entry| entry.plain)
    }

    /// The key entries of an object in canonical order, if they are listed.
    pub(super) fn ordered_keys(&self, object: &Entry) -> Option<&[u32]> {
        let first = object.order as usize;
        (object.order != SOURCE_ORDER).then(|| &self.order[first..first + object.len as usize])
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.entries.capacity() == 0 || self.entries.capacity() > ENTRIES_KEPT_MAX {
            return;
        }
        let (mut entries, mut order) = (mem::take(&mut self.entries), mem::take(&mut self.order));
        entries.clear();
        order.clear();
        pool::keep(&KEPT, (entries, order));
    }
}
