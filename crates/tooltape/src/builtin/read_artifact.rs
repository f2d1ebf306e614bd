//! `read_artifact`: pages through what was too large to show.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifact::{ArtifactError, ArtifactId, Artifacts, Page as Part};
use crate::fault::ToolError;
use crate::grant::REDACTED;
use crate::spec::{Bound, Bounds, Effects, Spec};
use crate::tool::{Block, Input, Output, Tool, schema_of, tool_fn};

/// The most bytes of an artifact that one page shows.
pub const PAGE_BYTES_MAX: u64 = 16 << 10;

/// The least that a page is asked for: the longest character.
const PAGE_BYTES_MIN: u64 = 4;

/// The tool `read_artifact@1.0.0`: reads an artifact of its run, page by page.
///
/// It needs no file tools, and a page is always small enough to be shown whole. No secret of the
/// run is on it, not even a half of one that the next page ends.
pub fn read_artifact() -> Arc<dyn Tool> {
    let description = "Reads output that was left out of an earlier result because it was too \
        long, by the handle that stands where it was left out. Pages are counted in bytes; \
        `next_offset` is where the next page begins.";
    let output_bytes = Bound::At(2 * PAGE_BYTES_MAX);
    let spec = Spec::new("read_artifact", description)
        .version("1.0.0")
        .effects(Effects::read())
        .bounds(Bounds { output_bytes, ..Bounds::default() })
        .output(schema_of::<Page>());
    tool_fn(spec, async |wanted: Wanted, artifacts: Artifacts| read(wanted, artifacts).await)
}

/// Which part of which artifact.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The handle: `artifact:` and 64 hexadecimal digits.
    artifact: String,
    /// The first byte to show, counted from 0.
    #[serde(default)]
    offset: u64,
    /// The most bytes to show. Up to 16384, which is also the default.
    #[serde(default)]
    length: Option<u64>,
    /// How to show them: `text`, or `base64` for what is not text.
    #[serde(default)]
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    #[default]
    Text,
    Base64,
}

impl Input for Wanted {
    fn check(&self) -> Result<(), String> {
        self.artifact.parse::<ArtifactId>().map(drop).map_err(|err| format!("/artifact: {err}"))
    }
}

/// A part of an artifact, as the application sees it.
#[derive(Debug, Serialize, JsonSchema)]
struct Page {
    artifact: String,
    /// The first byte that is shown.
    offset: u64,
    /// How many bytes are shown.
    bytes: u64,
    /// How many bytes the artifact has.
    total: u64,
    /// Where the next page begins, if there is more.
    next_offset: Option<u64>,
    encoding: Encoding,
    content: String,
}

async fn read(wanted: Wanted, artifacts: Artifacts) -> Result<Output, ToolError> {
    let Wanted { artifact, offset, length, encoding } = wanted;
    let id: ArtifactId = artifact.parse()?;
    let most = match encoding {
        Encoding::Text => PAGE_BYTES_MAX,
        // Four characters show three bytes.
        Encoding::Base64 => PAGE_BYTES_MAX / 4 * 3,
    };
    let length = length.unwrap_or(most).clamp(PAGE_BYTES_MIN, most);
    let Part { bytes, total, hidden } = artifacts.page(id, offset, length).await.map_err(told)?;
    if offset > total {
        let told = format!("`offset` is {offset}, expected at most {total}, where it ends");
        return Err(ToolError::tell(told).code("artifact.offset"));
    }
    let (shown, content) = match encoding {
        Encoding::Base64 => {
            let shown = 0..bytes.len();
            let content = STANDARD.encode(redacted(&bytes, shown.clone(), &hidden));
            (shown, content)
        }
        Encoding::Text => {
            let (shown, text) = characters(&bytes, offset, total)?;
            // A secret that is no text may begin or end inside of a character.
            let place = |at: usize| at.clamp(shown.start, shown.end) - shown.start;
            let whole = |it: &Range<usize>| {
                let start = text.floor_char_boundary(place(it.start));
                shown.start + start..shown.start + text.ceil_char_boundary(place(it.end))
            };
            let hidden: Vec<_> = hidden.iter().map(whole).collect();
            let content = String::from_utf8(redacted(&bytes, shown.clone(), &hidden));
            (shown, content.expect("whole characters were left of whole characters"))
        }
    };
    let (offset, bytes) = (offset + shown.start as u64, shown.len() as u64);
    let end = offset + bytes;
    let next_offset = (end < total).then_some(end);
    let where_next = match next_offset {
        Some(next) => format!("next_offset {next}"),
        None => "the end".to_owned(),
    };
    let place = format!("bytes {offset} to {end} of {total}; {where_next}");
    let block = Block::text(content.clone());
    let page = Page { artifact, offset, bytes, total, next_offset, encoding, content };
    Ok(Output::value(&page)?.block(block).block(Block::text(place)))
}

/// Some bytes of a page, with a mark in each place that is hidden.
fn redacted(bytes: &[u8], shown: Range<usize>, hidden: &[Range<usize>]) -> Vec<u8> {
    let (mut out, mut from) = (Vec::with_capacity(shown.len()), shown.start);
    for place in hidden {
        let (start, end) = (place.start.max(from), place.end.min(shown.end));
        if start < end {
            out.extend_from_slice(&bytes[from..start]);
            out.extend_from_slice(REDACTED.as_bytes());
            from = end;
        }
    }
    out.extend_from_slice(&bytes[from..shown.end]);
    out
}

/// The whole characters of a page, and where they are in it.
fn characters(bytes: &[u8], offset: u64, total: u64) -> Result<(Range<usize>, &str), ToolError> {
    let is_inside = |byte: &&u8| (**byte & 0b1100_0000) == 0b1000_0000;
    let skipped = match offset {
        0 => 0,
        _ => bytes.iter().take(3).take_while(is_inside).count(),
    };
    let page = &bytes[skipped..];
    let is_last = offset + bytes.len() as u64 == total;
    let text = match str::from_utf8(page) {
        Ok(text) => text,
        // A character that goes on behind the page is the next one's.
        Err(err) if err.error_len().is_none() && !is_last => {
            str::from_utf8(&page[..err.valid_up_to()]).expect("it is valid up to here")
        }
        Err(_) => {
            let told = "these bytes are not text, expected `\"encoding\":\"base64\"` to read them";
            return Err(ToolError::tell(told).code("artifact.binary"));
        }
    };
    Ok((skipped..skipped + text.len(), text))
}

/// What the model learns: which artifacts there are is its business, the machine's state is not.
fn told(err: ArtifactError) -> ToolError {
    match err {
        ArtifactError::Unknown { .. } => ToolError::tell(err.to_string()).code("artifact.unknown"),
        ArtifactError::Corrupt { .. } => {
            ToolError::tell("the artifact is damaged and cannot be read")
                .code("artifact.corrupt")
                .because(err)
        }
        ArtifactError::TooLarge { .. } | ArtifactError::Full { .. } | ArtifactError::Io(_) => {
            ToolError::tell("the artifact could not be read").because(err)
        }
    }
}
