//! Replies that were shown in full before, made shorter for a long conversation.

use std::sync::Arc;

use super::bound::{self, compacted};
use super::frame::defused;
use super::{Rendered, Reply};
use crate::artifact::ArtifactId;
use crate::tool::Block;

/// What an image counts for in a conversation, in bytes of text.
const IMAGE_BYTES_COUNTED: usize = 8 << 10;

impl Reply {
    /// How many bytes a model reads, where an image counts as much as a long text.
    pub(crate) fn bytes_shown(&self) -> usize {
        let images = self.content.iter().filter(|block| matches!(block, Block::Image { .. }));
        bound::size(&self.content) + images.count() * IMAGE_BYTES_COUNTED
    }

    /// The same reply, cut to its head and tail.
    pub(crate) fn compacted(&self, bytes_max: usize) -> Reply {
        self.showing(compacted(&self.content, bytes_max, self.kept()))
    }

    /// The same reply, of which only a summary is left.
    pub(crate) fn summed_up(&self, summary: String) -> Reply {
        let left_out = compacted(&self.content, 0, self.kept());
        self.showing([Block::text(defused(summary))].into_iter().chain(left_out).collect())
    }

    /// Where all of it is, if it is in one place.
    fn kept(&self) -> Option<ArtifactId> {
        match &*self.artifacts {
            [hash] => Some(ArtifactId(*hash)),
            [] | [_, _, ..] => None,
        }
    }

    fn showing(&self, blocks: Vec<Block>) -> Reply {
        let content = blocks.into_iter().collect();
        Reply(Arc::new(Rendered { content, ..Rendered::clone(self) }))
    }
}
