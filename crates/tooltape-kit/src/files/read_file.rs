//! `read_file`: the text of a file, some of its lines, or an image.

use std::num::NonZeroU64;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use tooltape::limits::IMAGE_BYTES_MAX;
use tooltape::schemars::JsonSchema;
use tooltape::{Block, Footprint, Output, ToolError, input, tool};

use super::kind;
use super::text::{Newline, Text};
use crate::workspace::{Workspace, WorkspaceError, WorkspacePath};

/// The most bytes of text that one call returns.
pub const READ_BYTES_MAX: usize = 64 << 10;
/// The largest image that is shown: as large as a result may show in base64.
pub const READ_IMAGE_BYTES_MAX: usize = IMAGE_BYTES_MAX / 4 * 3;

// A doc comment here would reach the model, which reads the tool's already.
#[input]
pub(super) struct ReadFile {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The first line to read, counted from 1. The first of the file where none is given.
    start: Option<NonZeroU64>,
    /// How many lines to read. All where none is given.
    lines: Option<NonZeroU64>,
    /// Whether to put its number and a tab before each line. They are no part of the file.
    #[serde(default)]
    numbered: bool,
    /// Such as `windows-1252` or `shift_jis`, where it is not UTF-8, or UTF-16 that says so.
    encoding: Option<String>,
}

/// What `read_file` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[schemars(extend("type" = "object"))]
#[serde(untagged)]
pub(super) enum FileRead {
    /// A text.
    Text(FileText),
    /// An image.
    Image(FileImage),
}

/// The text of a file.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct FileText {
    /// The file's path, relative to the workspace.
    path: WorkspacePath,
    /// The lines that were asked for, with their line ends.
    text: String,
    /// The first of these lines, counted from 1.
    start: u64,
    /// How many lines these are.
    lines: u64,
    /// How many lines the file has.
    total_lines: u64,
    /// The BLAKE3 hash of the whole file, as lower-case hexadecimal.
    hash: String,
    /// How the lines of the file end.
    newline: Newline,
    /// How the file is encoded, where it is not UTF-8. `edit_file` edits UTF-8 alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    /// Whether less is returned than was asked for.
    truncated: bool,
}

/// A file that is an image, which is shown beside this.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct FileImage {
    /// The file's path, relative to the workspace.
    path: WorkspacePath,
    /// What kind of image it is.
    media_type: &'static str,
    /// How many bytes it has.
    bytes: u64,
    /// The BLAKE3 hash of the file, as lower-case hexadecimal.
    hash: String,
}

/// Reads a text file of the workspace, or `lines` lines of it from line `start` on. Also returns
/// the hash of the whole file, for `expect_hash` of `edit_file`. Where `truncated` is true, not
/// everything fitted: go on at line `start` + `lines`. Images (PNG, JPEG, GIF, WebP) are shown.
#[tool(
    Read,
    filesystem,
    blocking,
    version = "0.1.0",
    needs("fs:read:{path}"),
    touches = path_of,
    output = FileRead,
    wall_ms = 30_000,
    output_bytes = 512 << 10
)]
pub(super) fn read_file(args: ReadFile, files: Workspace) -> Result<Output, ToolError> {
    let bytes = files.read(&args.path).map_err(WorkspaceError::tell)?;
    match Text::decoded(&args.path, &bytes, args.encoding.as_deref()) {
        Ok((text, encoding)) => Output::value(&text_of(args, &bytes, text, encoding)?),
        Err(err) => match kind::image(&bytes) {
            Some(media_type) if args.encoding.is_none() => image_of(args, &bytes, media_type),
            Some(_) | None => Err(err),
        },
    }
}

fn text_of(
    args: ReadFile,
    bytes: &[u8],
    Text { newline, text }: Text,
    encoding: &'static str,
) -> Result<FileRead, ToolError> {
    let ReadFile { path, start, lines, numbered, .. } = args;
    let total_lines = text.split_inclusive('\n').count() as u64;
    let start = start.map_or(1, NonZeroU64::get);
    if start > total_lines.max(1) {
        let told = format!("/start: found {start}, but the last line of `{path}` is {total_lines}");
        return Err(ToolError::not_done(told).code("past_end"));
    }
    let Window { shown, lines, truncated } = window(&text, start, lines, numbered);
    let text = match numbered {
        false => shown.to_owned(),
        true => {
            let lines = (start..).zip(shown.split_inclusive('\n'));
            lines.map(|(number, line)| format!("{number}\t{line}")).collect()
        }
    };
    let hash = blake3::hash(bytes).to_hex().to_string();
    let encoding = Some(encoding).filter(|encoding| *encoding != "UTF-8");
    let read =
        FileText { path, text, start, lines, total_lines, hash, newline, encoding, truncated };
    Ok(FileRead::Text(read))
}

fn image_of(args: ReadFile, bytes: &[u8], media_type: &'static str) -> Result<Output, ToolError> {
    let ReadFile { path, start, lines, .. } = args;
    if bytes.len() > READ_IMAGE_BYTES_MAX {
        let (found, most) = (bytes.len(), READ_IMAGE_BYTES_MAX);
        let told = format!("`{path}` is an image of {found} bytes, expected at most {most}");
        return Err(ToolError::not_done(told).code("too_large"));
    }
    if start.is_some() || lines.is_some() {
        let told = format!("`{path}` is an image and has no lines, expected no `start` or `lines`");
        return Err(ToolError::not_done(told).code("not_text"));
    }
    let told = format!("`{path}`: {media_type}, {} bytes", bytes.len());
    let data = STANDARD.encode(bytes);
    let (hash, bytes) = (blake3::hash(bytes).to_hex().to_string(), bytes.len() as u64);
    let image = FileRead::Image(FileImage { path, media_type, bytes, hash });
    let shown = Block::Image { media_type: media_type.to_owned(), data };
    Ok(Output::value(&image)?.block(Block::text(told)).block(shown))
}

fn path_of(args: &ReadFile) -> Footprint {
    args.path.reads()
}

/// A part of a text that may be shown.
struct Window<'a> {
    shown: &'a str,
    lines: u64,
    truncated: bool,
}

/// As many whole lines as fit, with their numbers where these are shown; a line that does not fit
/// by itself is cut.
fn window(text: &str, start: u64, lines: Option<NonZeroU64>, numbered: bool) -> Window<'_> {
    let count = |lines| usize::try_from(lines).unwrap_or(usize::MAX);
    let asked = lines.map_or(usize::MAX, |lines| count(lines.get()));
    let skipped = text.split_inclusive('\n').take(count(start - 1)).map(str::len).sum();
    let rest = &text[skipped..];
    let (mut bytes, mut numbers, mut fitting) = (0, 0, 0);
    for (number, line) in (start..).zip(rest.split_inclusive('\n').take(asked)) {
        if numbered {
            numbers += number.to_string().len() + "\t".len();
        }
        if numbers + bytes + line.len() > READ_BYTES_MAX {
            let (bytes, lines) = match fitting {
                0 => (line.floor_char_boundary(READ_BYTES_MAX - numbers), 1),
                _ => (bytes, fitting),
            };
            return Window { shown: &rest[..bytes], lines, truncated: true };
        }
        bytes += line.len();
        fitting += 1;
    }
    Window { shown: &rest[..bytes], lines: fitting, truncated: false }
}
