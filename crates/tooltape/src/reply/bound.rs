//! Output within its bound: heads and tails are shown, and the rest is put aside.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::frame::{self, MARK_BYTES_MAX, defused, imitates};
use crate::artifact::ArtifactId;
use crate::fault::clip;
use crate::tool::Block;

/// The bytes that a model reads of one result, unless its tool or the run says otherwise.
pub const OUTPUT_BYTES_DEFAULT: u64 = 32 << 10;
/// The least that a bound may be: room for the mark that something was left out.
pub const OUTPUT_BYTES_MIN: u64 = 256;
/// The bytes of all images of one result, in base64. They do not count towards its bound.
pub const IMAGE_BYTES_MAX: usize = 4 << 20;
/// The blocks of one result; what comes after them is shown as one text.
pub const BLOCKS_MAX: usize = 64;
/// The bytes of a media type that a model reads.
pub const MEDIA_TYPE_BYTES_MAX: usize = 128;

/// The least room in which a cut text still says something.
const CUT_BYTES_MIN: usize = 2 * MARK_BYTES_MAX;

/// Keeps bytes and returns their handle, or nothing where they cannot be kept.
pub(super) type PutAside<'a> = dyn FnMut(Vec<u8>) -> Option<ArtifactId> + 'a;

/// How many bytes of text a model reads for these blocks.
pub(super) fn size(blocks: &[Block]) -> usize {
    blocks.iter().map(size_of).sum()
}

/// Whether the blocks are as [`bounded`] leaves them.
pub(super) fn fits(blocks: &[Block], bytes_max: usize) -> bool {
    // Whatever is not plain text or JSON is looked at more closely there.
    let is_plain = |block: &Block| match block {
        Block::Text { text } => !imitates(text),
        // Most output has no bracket at all, and that is found out fast.
        Block::Json { value } => !value.as_bytes().contains(&b'[') || !imitates(value.as_str()),
        Block::Image { .. } | Block::ResourceLink { .. } | Block::LeftOut { .. } => false,
    };
    blocks.len() <= BLOCKS_MAX && size(blocks) <= bytes_max && blocks.iter().all(is_plain)
}

/// The same blocks in at most `bytes_max` bytes of text, with no mark of ours but those we made.
///
/// Short blocks stay whole, long ones share the room that is left: a text is cut to its head and
/// its tail, an image or a link is shown whole or replaced. What is cut or replaced is put aside
/// first, whole. Bounding what is bounded changes nothing.
pub(super) fn bounded(
    blocks: Vec<Block>,
    bytes_max: usize,
    put_aside: &mut PutAside<'_>,
) -> Vec<Block> {
    let blocks = few(within_images(blocks, put_aside), put_aside);
    let blocks: Vec<Block> = blocks.into_iter().map(|block| harmless(block, bytes_max)).collect();
    let share = match share(blocks.iter().map(size_of), bytes_max) {
        None => return blocks,
        Some(share) => share,
    };
    if share < CUT_BYTES_MIN {
        let text = joined(blocks, put_aside);
        return cut(text, bytes_max, put_aside);
    }
    let fitting = |block| if size_of(&block) <= share { Ok(block) } else { Err(block) };
    let blocks = blocks.into_iter().map(fitting).flat_map(|fitting| match fitting {
        Ok(block) => vec![block],
        Err(Block::Text { text }) => cut(text, share, put_aside),
        Err(Block::Json { value }) => cut(value.as_str().to_owned(), share, put_aside),
        Err(Block::ResourceLink { uri, .. }) => vec![left_out(uri, put_aside)],
        // Both are shorter than any share.
        Err(block @ (Block::Image { .. } | Block::LeftOut { .. })) => vec![block],
    });
    blocks.collect()
}

/// The bytes that a block takes in a text, with the line break behind it.
fn size_of(block: &Block) -> usize {
    let bytes = match block {
        Block::Text { text } => text.len(),
        Block::Json { value } => value.as_bytes().len(),
        Block::Image { media_type, .. } => "[image: ]".len() + media_type.len(),
        Block::ResourceLink { uri, title, media_type } => {
            let others = [title, media_type].into_iter().flatten();
            "[resource: ]".len() + uri.len() + others.map(String::len).sum::<usize>()
        }
        Block::LeftOut { .. } => MARK_BYTES_MAX,
    };
    bytes + 1
}

/// Replaces the images that are too many bytes together by links to artifacts.
fn within_images(blocks: Vec<Block>, put_aside: &mut PutAside<'_>) -> Vec<Block> {
    let mut bytes = 0;
    let blocks = blocks.into_iter().map(|block| match block {
        Block::Image { media_type, data } => {
            let media_type = clip(defused(media_type), MEDIA_TYPE_BYTES_MAX);
            match bytes + data.len() <= IMAGE_BYTES_MAX {
                true => {
                    bytes += data.len();
                    Block::Image { media_type, data }
                }
                false => image_aside(media_type, data, put_aside),
            }
        }
        Block::ResourceLink { uri, title, media_type } => Block::ResourceLink {
            uri: defused(uri),
            title: title.map(defused),
            media_type: media_type.map(|it| clip(defused(it), MEDIA_TYPE_BYTES_MAX)),
        },
        Block::Text { .. } | Block::Json { .. } | Block::LeftOut { .. } => block,
    });
    blocks.collect()
}

fn image_aside(media_type: String, data: String, put_aside: &mut PutAside<'_>) -> Block {
    // What is not base64 is kept as it was sent.
    let image = STANDARD.decode(&data).unwrap_or_else(|_| data.into_bytes());
    let bytes = image.len() as u64;
    match put_aside(image) {
        None => Block::LeftOut { bytes, of: bytes, artifact: None },
        Some(id) => Block::ResourceLink {
            uri: id.to_string(),
            title: Some(format!("an image of {bytes} bytes")),
            media_type: Some(media_type),
        },
    }
}

/// At most [`BLOCKS_MAX`] blocks: the last is the text of all that come after the others.
fn few(mut blocks: Vec<Block>, put_aside: &mut PutAside<'_>) -> Vec<Block> {
    // A bounded result has up to three blocks for each that the tool made.
    let made = blocks.iter().filter(|block| !matches!(block, Block::LeftOut { .. })).count();
    if made > 2 * BLOCKS_MAX || (made > BLOCKS_MAX && made == blocks.len()) {
        let rest = joined(blocks.split_off(BLOCKS_MAX - 1), put_aside);
        blocks.push(Block::text(rest));
    }
    blocks
}

/// All blocks as one text. Images are put aside, since a text cannot hold them.
fn joined(blocks: Vec<Block>, put_aside: &mut PutAside<'_>) -> String {
    let mut text = String::new();
    for block in blocks {
        let block = match block {
            Block::Image { media_type, data } => image_aside(media_type, data, put_aside),
            Block::Text { .. }
            | Block::Json { .. }
            | Block::ResourceLink { .. }
            | Block::LeftOut { .. } => block,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&frame::text(&block));
    }
    text
}

/// A block that imitates no mark of ours. What is longer than the bound is cut first.
fn harmless(block: Block, bytes_max: usize) -> Block {
    match block {
        Block::Text { text } if text.len() <= bytes_max => Block::Text { text: defused(text) },
        Block::Json { value } if value.as_str().len() <= bytes_max && imitates(value.as_str()) => {
            Block::text(defused(value.as_str().to_owned()))
        }
        Block::Text { .. }
        | Block::Json { .. }
        | Block::Image { .. }
        | Block::ResourceLink { .. }
        | Block::LeftOut { .. } => block,
    }
}

/// What each may have at most, so that all fit; `None` where they fit as they are.
pub(crate) fn share(sizes: impl Iterator<Item = usize>, bytes_max: usize) -> Option<usize> {
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    let mut left = bytes_max;
    for (at, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - at);
        if *size > share {
            return Some(share);
        }
        left -= size;
    }
    None
}

/// The head and the tail of a text, in `bytes_max` bytes, and between them what was left out.
fn cut(text: String, bytes_max: usize, put_aside: &mut PutAside<'_>) -> Vec<Block> {
    if text.len() < bytes_max && !imitates(&text) {
        return vec![Block::text(text)];
    }
    // Each of the three ends in a line break.
    let room = bytes_max.saturating_sub(MARK_BYTES_MAX + 3) / 2;
    let mut head = defused(text[..text.floor_char_boundary(room)].to_owned());
    head.truncate(head.floor_char_boundary(room));
    let mut tail =
        defused(text[text.ceil_char_boundary(text.len().saturating_sub(room))..].to_owned());
    tail.drain(..tail.ceil_char_boundary(tail.len().saturating_sub(room)));
    let of = text.len() as u64;
    let bytes = of.saturating_sub((head.len() + tail.len()) as u64);
    let artifact = put_aside(text.into_bytes());
    vec![Block::text(head), Block::LeftOut { bytes, of, artifact }, Block::text(tail)]
}

/// The head and the tail of blocks that were bounded before, and between them what is left out of
/// all that there was.
pub(super) fn compacted(
    blocks: &[Block],
    bytes_max: usize,
    artifact: Option<ArtifactId>,
) -> Vec<Block> {
    let room = bytes_max.saturating_sub(MARK_BYTES_MAX + 3) / 2;
    let texts = || {
        blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Json { value } => Some(value.as_str()),
            Block::Image { .. } | Block::ResourceLink { .. } | Block::LeftOut { .. } => None,
        })
    };
    let (first, last) = (texts().next().unwrap_or(""), texts().next_back().unwrap_or(""));
    let head = &first[..first.floor_char_boundary(room)];
    let tail = &last[last.ceil_char_boundary(last.len().saturating_sub(room))..];
    let of = blocks.iter().map(|block| match block {
        Block::LeftOut { bytes, .. } => *bytes,
        Block::Text { .. }
        | Block::Json { .. }
        | Block::Image { .. }
        | Block::ResourceLink { .. } => size_of(block) as u64 - 1,
    });
    let of = of.sum::<u64>();
    let bytes = of.saturating_sub((head.len() + tail.len()) as u64);
    let shown = |text: &str| (!text.is_empty()).then(|| Block::text(text));
    let left_out = Some(Block::LeftOut { bytes, of, artifact });
    [shown(head), left_out, shown(tail)].into_iter().flatten().collect()
}

fn left_out(text: String, put_aside: &mut PutAside<'_>) -> Block {
    let bytes = text.len() as u64;
    Block::LeftOut { bytes, of: bytes, artifact: put_aside(text.into_bytes()) }
}
