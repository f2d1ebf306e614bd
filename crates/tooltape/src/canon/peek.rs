//! Canonical text that is read when somebody first looks into it, and once.

use std::cell::OnceCell;

use super::{Canon, Doc, Limits, Node};

/// A canonical text, and its values once they were asked for.
pub(crate) struct Peek<'c> {
    canon: &'c Canon,
    doc: OnceCell<Option<Doc<'c>>>,
}

impl<'c> Peek<'c> {
    #[inline]
    pub(crate) fn new(canon: &'c Canon) -> Peek<'c> {
        Peek { canon, doc: OnceCell::new() }
    }

    /// The value of the text; nothing, should it be beyond every limit.
    pub(crate) fn root(&self) -> Option<Node<'_>> {
        let read = || Doc::read(self.canon.as_str(), &Limits::OWN).ok();
        self.doc.get_or_init(read).as_ref().map(Doc::root)
    }
}
