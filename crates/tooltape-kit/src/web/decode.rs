//! Pages as they were before somebody packed them, as far as there is room for them.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

use super::error::HttpError;

/// The most bytes that are read of one answer, as they come over the wire.
pub const WIRE_BYTES_MAX: usize = 4 << 20;
/// The most that a page may unpack to, as a multiple of its packed size.
pub const RATIO_MAX: usize = 200;
/// The most memory that a packed page may want for looking back, in bytes.
pub const WINDOW_BYTES_MAX: u64 = 8 << 20;
/// As much is unpacked of a small page, whatever the multiple.
const RATIO_FREE_BYTES: usize = 256 << 10;
/// How much is unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;

/// The bytes of a page.
pub(super) struct Unpacked {
    pub(super) bytes: Vec<u8>,
    /// Whether there is more.
    pub(super) truncated: bool,
}

/// Unpacks a page of which the first bytes, or all, are here.
pub(super) fn unpack(
    wire: &[u8],
    encoding: &str,
    bytes_max: usize,
    is_cut: bool,
) -> Result<Unpacked, HttpError> {
    let undecodable = |why: String| HttpError::Undecodable { encoding: encoding.to_owned(), why };
    let unpacks: Box<dyn Read + '_> = match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Box::new(wire),
        _ if wire.is_empty() => Box::new(wire),
        "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(wire)),
        // Some hosts take the word for the format with a header, and some for that without.
        "deflate" if wire[0] & 0x0f == 8 => Box::new(ZlibDecoder::new(wire)),
        "deflate" => Box::new(DeflateDecoder::new(wire)),
        "br" => Box::new(Decompressor::new(wire, PIECE_BYTES)),
        "zstd" => {
            check_window(wire).map_err(undecodable)?;
            let decoder = StreamingDecoder::new(wire);
            Box::new(decoder.map_err(|err| undecodable(err.to_string()))?)
        }
        _ => {
            let expected = "expected one of `gzip`, `deflate`, `br` and `zstd`";
            return Err(undecodable(expected.to_owned()));
        }
    };
    match read(unpacks, wire.len(), bytes_max)? {
        (bytes, Ok(has_more)) => Ok(Unpacked { bytes, truncated: has_more || is_cut }),
        (bytes, Err(_)) if is_cut => Ok(Unpacked { bytes, truncated: true }),
        (_, Err(err)) => Err(undecodable(err.to_string())),
    }
}

/// Reads up to so many bytes; says whether there are more, or why there might be.
fn read(
    mut unpacks: Box<dyn Read + '_>,
    wire_bytes: usize,
    bytes_max: usize,
) -> Result<(Vec<u8>, io::Result<bool>), HttpError> {
    let (mut bytes, mut piece) = (Vec::new(), [0; PIECE_BYTES]);
    let bomb_bytes = RATIO_FREE_BYTES.max(wire_bytes.saturating_mul(RATIO_MAX));
    // Each turn but the last has at least one byte more.
    while bytes.len() <= bytes_max {
        match unpacks.read(&mut piece) {
            Ok(0) => return Ok((bytes, Ok(false))),
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
            Err(err) => return Ok((bytes, Err(err))),
        }
        if bytes.len() > bomb_bytes {
            return Err(HttpError::Bomb);
        }
    }
    bytes.truncate(bytes_max);
    Ok((bytes, Ok(true)))
}

/// Checks how much memory a page in `zstd` wants, before it gets any.
fn check_window(wire: &[u8]) -> Result<(), String> {
    // RFC 8878, section 3.1.1.1: the magic number, the descriptor, and the window or the size.
    let cut = || "its header is cut off".to_owned();
    let descriptor = *wire.get(4).ok_or_else(cut)?;
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let window = if is_single {
        let (at, size) = (5 + dictionary, [1, 2, 4, 8][usize::from(descriptor >> 6)]);
        let field = wire.get(at..at + size).ok_or_else(cut)?;
        field.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte))
    } else {
        let window = *wire.get(5).ok_or_else(cut)?;
        let base = 1_u64 << (10 + (window >> 3));
        base + base / 8 * u64::from(window & 7)
    };
    match window {
        0..=WINDOW_BYTES_MAX => Ok(()),
        _ => Err(format!("it wants {window} bytes of memory, expected at most {WINDOW_BYTES_MAX}")),
    }
}
